use super::*;
use fanin_units::HostId;
use proptest::prelude::*;

fn flow(spec: &DatagramSpec, size: u64, start: Time) -> FlowSpec {
    FlowSpec {
        src: HostId(0),
        dst: HostId(1),
        size,
        request: 0,
        start,
        transport: 0,
        class: 0,
        entry: 0,
        index: 0,
        query: None,
        id: None,
        kind: FlowKind::Datagrams(spec.clone()),
        first: None,
        known: None,
    }
}

fn spec(rate: BitRate, counts: RateCounts, periods: Option<(Span, Span)>) -> DatagramSpec {
    DatagramSpec {
        rate,
        counts,
        packet: Bytes(1000),
        on: periods.map(|(on, _)| on),
        off: periods.map(|(_, off)| off),
        exponential: false,
        until: Time::MAX,
        entity: 5,
    }
}

const START: Time = Time::from_ps(7);

fn clock(spec: &DatagramSpec, size: u64) -> Vec<(u64, u32)> {
    let clock = DatagramClock::new(spec, &flow(spec, size, START), Bytes(1066), 1);
    clock.map(|(at, bytes)| (at.since(START).ps(), bytes)).collect()
}

#[test]
fn a_constant_rate_neither_drifts_nor_sends_too_much() {
    // 1000 B at 3 Gb/s take 2666666.67 ps: every third departure is exact.
    let sent = clock(&spec(BitRate::from_gbps(3), RateCounts::Payload, None), 3_500);
    assert_eq!(sent, [(0, 1000), (2_666_667, 1000), (5_333_334, 1000), (8_000_000, 500)]);
}

#[test]
fn a_rate_on_the_wire_counts_headers_and_gap() {
    let sent = clock(&spec(BitRate::from_gbps(1), RateCounts::Wire, None), 2_000);
    assert_eq!(sent, [(0, 1000), (1066 * 8_000, 1000)]);
}

#[test]
fn off_periods_interrupt_the_clock_and_do_not_reset_it() {
    // A datagram every 8 µs of on time; on 20 µs, off 100 µs.
    let periods = Some((Span::from_us(20), Span::from_us(100)));
    let us: Vec<u64> =
        clock(&spec(BitRate::from_gbps(1), RateCounts::Payload, periods), 7_000).iter().map(|(at, _)| at / 1_000_000).collect();
    assert_eq!(us, [0, 8, 16, 124, 132, 240, 248]);
}

#[test]
fn nothing_leaves_at_or_after_the_end() {
    let until =
        |ps: u64| DatagramSpec { until: START + Span::from_ps(ps), ..spec(BitRate::from_gbps(1), RateCounts::Payload, None) };
    assert_eq!(clock(&until(8_000_000), 0).len(), 1);
    assert_eq!(clock(&until(8_000_001), 0).len(), 2);
}

#[test]
fn exponential_periods_keep_the_mean_rate() {
    let end = Span::from_s(2);
    let spec = DatagramSpec {
        exponential: true,
        until: START + end,
        ..spec(BitRate::from_gbps(1), RateCounts::Payload, Some((Span::from_us(100), Span::from_us(300))))
    };
    let sent: u64 = clock(&spec, 0).iter().map(|(_, bytes)| u64::from(*bytes)).sum();
    let expected = BitRate::from_mbps(250).bytes_in(end).get() as f64;
    // 5000 cycles; the on fraction of a cycle has a relative deviation of about 1.1, hence 1.5 % of the sum.
    assert!((sent as f64 / expected - 1.0).abs() < 3.3 * 0.015, "{sent} for {expected}");
}

proptest! {
    #[test]
    fn departures_rise_and_the_bytes_are_those_asked_for(
        gbps in 1u64..400, packet in 1u64..9_000, size in 1u64..200_000, on in 1u64..50, off in 1u64..50, exponential: bool
    ) {
        let spec = DatagramSpec {
            packet: Bytes(packet),
            exponential,
            ..spec(BitRate::from_gbps(gbps), RateCounts::Payload, Some((Span::from_us(on), Span::from_us(off))))
        };
        let sent = clock(&spec, size.min(packet * 500));
        prop_assert!(sent.windows(2).all(|pair| pair[0].0 < pair[1].0));
        prop_assert_eq!(sent.iter().map(|(_, bytes)| u64::from(*bytes)).sum::<u64>(), size.min(packet * 500));
    }
}
