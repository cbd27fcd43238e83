use super::*;
use crate::tests::{packet, stream, view};
use crate::{Marker, Marking, PortView};

fn registers() -> SlopeParams {
    SlopeParams { clock: Span::from_ns(8), credit: Bytes(1538), after_mark: AfterMark::Subtract }
}

fn s_ecn(slope: SlopeParams) -> SEcnParams {
    SEcnParams { k: None, form: SlopeForm::Registers(slope), at: At::Enqueue }
}

fn params() -> SEcnParams {
    s_ecn(registers())
}

proptest::proptest! {
    /// A multiplication instead of a division, at any time and with any clock.
    #[test]
    fn clocks_are_whole_clocks(clock in 100u64..=20_000, ps in proptest::prelude::any::<u64>(), near in 0u64..1 << 40) {
        let params = SlopeParams { clock: Span::from_ps(clock), ..registers() };
        let registers = SlopeRegisters::new(&params, BitRate::from_gbps(1));
        for ps in [ps, near, near / clock * clock, (near / clock * clock).saturating_sub(1), u64::MAX - clock] {
            proptest::prop_assert_eq!(registers.clocks(ps), ps / clock);
        }
    }
}

/// Wire bytes of a full frame.
const FULL: u32 = 1538;

const RATES: [u64; 9] = [10, 100, 1_000, 10_000, 25_000, 100_000, 400_000, 800_000, 1_600_000];

/// Share of marked packets when packets of `wire` bytes arrive evenly at `load` times the rate, after the first few.
fn share(params: &SEcnParams, rate: BitRate, wire: u32, load: f64) -> f64 {
    let marking = Marking::SEcn(params.clone());
    let (mut marker, mut rng) = (Marker::new(&marking), stream());
    let gap = rate.time_to_send(Bytes(u64::from(wire))).ps() as f64 / load;
    let n = 20_000;
    let mut marks = 0;
    for i in 0..n + 10 {
        let now = Time::from_ps((1e6 + f64::from(i) * gap) as u64);
        let view = PortView { now, rate, ..view(1) };
        let verdict = marker.on_enqueue(&view, &packet((wire - 20) as u16, Ecn::Ect0), &mut rng);
        marks += u32::from(i >= 10 && verdict != MarkVerdict::Pass);
    }
    f64::from(marks) / f64::from(n)
}

#[test]
fn both_forms_mark_the_share_that_equation_1_says() {
    let rate = BitRate::from_gbps(1);
    for slope in [-0.5, -0.1, -0.01, 0.0, 0.02, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.98, 1.0, 1.2, 2.0, 7.0] {
        let expected = f64::clamp(slope, 0.0, 1.0);
        let by_registers = share(&params(), rate, FULL, 1.0 + slope);
        let by_chance = share(&SEcnParams { form: SlopeForm::Probability(ByChance {}), ..params() }, rate, FULL, 1.0 + slope);
        // Clock of 8 ns in intervals of 6 us and more, R to 2⁻²⁰: within 0.2 %.
        assert!((by_registers - expected).abs() < 0.002, "slope {slope} R: {by_registers} of the packets");
        // Four standard deviations of 20,000 draws.
        let tolerance = 4.0 * libm::sqrt(expected * (1.0 - expected) / 20_000.0) + 1e-4;
        assert!((by_chance - expected).abs() < tolerance, "slope {slope} R: {by_chance} of the packets by chance");
    }
}

#[test]
fn a_counter_that_starts_again_marks_in_steps() {
    let reset = s_ecn(SlopeParams { after_mark: AfterMark::Reset, ..registers() });
    for (slope, expected) in [(0.1, 1.0 / 11.0), (0.3, 0.25), (0.6, 0.5), (0.95, 0.5), (1.05, 1.0)] {
        let share = share(&reset, BitRate::from_gbps(1), FULL, 1.0 + slope);
        assert!((share - expected).abs() < 0.01, "slope {slope} R: {share}");
    }
}

#[test]
fn every_rate_and_size() {
    for mbps in RATES {
        let rate = BitRate::from_mbps(mbps);
        for wire in [84, 600, FULL, 9038] {
            // Below one clock per packet the registers cannot count intervals: docs/switch/s-ecn.md.
            let clock = if mbps >= 100_000 { Span::from_ps(100) } else { Span::from_ns(1) };
            let params = s_ecn(SlopeParams { clock, credit: Bytes(u64::from(wire)), ..registers() });
            let clocks = rate.time_to_send(Bytes(u64::from(wire))).ps() as f64 / clock.ps() as f64;
            assert_eq!(share(&params, rate, wire, 0.9), 0.0, "{rate}, {wire} B, falling");
            let half = share(&params, rate, wire, 1.5);
            assert!((half - 0.5).abs() < 0.001 + 0.6 / clocks, "{rate}, {wire} B: {half} instead of 0.5");
            let full = share(&params, rate, wire, 2.2);
            assert!(full > 0.999 || clocks < 10.0 && full > 0.9, "{rate}, {wire} B: {full} instead of 1");
        }
    }
}

/// Feeds (gap, wire bytes) and says which are marked.
fn marks(registers: &mut SlopeRegisters, now: &mut u64, arrivals: &[(u64, u32)]) -> Vec<bool> {
    arrivals
        .iter()
        .map(|(gap, wire)| {
            *now += gap;
            registers.on_arrival(Time::from_ps(*now), *wire, true).mark
        })
        .collect()
}

#[test]
fn idle_or_draining_time_is_not_saved_up_beyond_the_credit() {
    for pause in [12_304_000u64, 1_000_000_000, 1_000_000_000_000, 3_600_000_000_000_000] {
        let mut registers = SlopeRegisters::new(&registers(), BitRate::from_gbps(1));
        let now = &mut 0;
        assert!(marks(&mut registers, now, &[(0, FULL), (pause, FULL)]).iter().all(|mark| !mark), "first after {pause} ps");
        assert_eq!(registers.sum(), -1538 << SlopeRegisters::FRACTION, "never below the credit");
        // Arrivals at twice the rate: the credit of one packet is used up by the second, the fourth is marked at the latest.
        let after = marks(&mut registers, now, &[(6_152_000, FULL); 6]);
        assert_eq!(after, [false, false, false, true, true, true], "after {pause} ps");
    }
}

#[test]
fn growth_is_not_saved_up_either() {
    let mut registers = SlopeRegisters::new(&registers(), BitRate::from_gbps(1));
    let now = &mut 0;
    marks(&mut registers, now, &[(1_000_000, FULL); 1000]);
    // Twelve times the rate for a thousand packets; then exactly the rate: nothing.
    let after = marks(&mut registers, now, &[(12_304_000, FULL); 100]);
    assert!(after.iter().all(|mark| !mark));
    assert!(
        registers.sum() <= (1_000_000 / 8_000 + 1) << SlopeRegisters::FRACTION,
        "no more than R·I of a short interval: {}",
        registers.sum()
    );
}

#[test]
fn pairs_that_arrive_together_are_no_growth() {
    // Two packets from two inputs at a time, at the rate on the average: with a credit of one packet no mark, without it half.
    for (credit, expected) in [(1538, 0), (0, 50)] {
        let mut registers = SlopeRegisters::new(&SlopeParams { credit: Bytes(credit), ..registers() }, BitRate::from_gbps(1));
        let pairs: Vec<(u64, u32)> = (0..100).map(|i| (if i % 2 == 0 { 24_608_000 } else { 0 }, FULL)).collect();
        let marked = marks(&mut registers, &mut 0, &pairs).iter().filter(|mark| **mark).count();
        assert_eq!(marked, expected, "credit {credit}");
    }
}

#[test]
fn what_cannot_be_marked_counts_and_leaves_its_mark_to_the_next() {
    let rate = BitRate::from_gbps(1);
    let (mut marker, mut rng) = (Marker::new(&Marking::SEcn(params())), stream());
    let mut marked = [0, 0];
    for i in 0..10_000u64 {
        let ecn = if i % 4 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
        // 1.2 times the rate: a fifth of all packets. One mark at most waits for a packet that can carry it: a sixth.
        let view = PortView { now: Time::from_ps(i * 10_253_333), rate, ..view(1) };
        let verdict = marker.on_enqueue(&view, &packet(1518, ecn), &mut rng);
        marked[usize::from(ecn == Ecn::NotEct)] += u32::from(verdict == MarkVerdict::Mark(SLOPE));
    }
    assert_eq!(marked[1], 0);
    assert!((1_600..=2_000).contains(&marked[0]), "{marked:?}");
}

#[test]
fn from_k_on_everything_is_marked() {
    let p = packet(1518, Ecn::Ect0);
    for (at, k) in [(At::Enqueue, Amount::Bytes(3 * 1518)), (At::Dequeue, Amount::Packets(3))] {
        let mut marker = Marker::new(&Marking::SEcn(SEcnParams { k: Some(k), at, ..params() }));
        let mut now = Time::from_ps(0);
        let mut verdict = |waiting, p: &Envelope| {
            now += Span::from_ms(1);
            let view = PortView { now, ..view(waiting) };
            let arriving = marker.on_enqueue(&view, p, &mut stream());
            let leaving = marker.on_dequeue(&view, p, &mut stream());
            if at == At::Enqueue {
                (arriving, leaving)
            } else {
                (leaving, arriving)
            }
        };
        assert_eq!(verdict(2, &p), (MarkVerdict::Pass, MarkVerdict::Pass));
        assert_eq!(verdict(3, &p), (MarkVerdict::Mark(AT_K), MarkVerdict::Pass));
        assert_eq!(verdict(9, &packet(1518, Ecn::NotEct)), (MarkVerdict::Pass, MarkVerdict::Pass));
    }
}

#[test]
fn at_dequeue_the_marks_go_to_those_that_leave_and_none_is_lost() {
    let rate = BitRate::from_gbps(1);
    let dequeue = SEcnParams { at: At::Dequeue, ..params() };
    let (mut there, mut here) = (Marker::new(&Marking::SEcn(dequeue)), Marker::new(&Marking::SEcn(params())));
    assert!(there.acts_at_dequeue() && !here.acts_at_dequeue());
    let p = packet(1518, Ecn::Ect0);
    let (mut early, mut late) = (0, 0);
    for i in 0..1000u64 {
        let view = PortView { now: Time::from_ps(i * 8_000_000), rate, ..view(4) };
        early += u32::from(here.on_enqueue(&view, &p, &mut stream()) != MarkVerdict::Pass);
        assert_eq!(there.on_enqueue(&view, &p, &mut stream()), MarkVerdict::Pass);
        if i >= 5 {
            late += u32::from(there.on_dequeue(&view, &p, &mut stream()) == MarkVerdict::Mark(SLOPE));
        }
    }
    for _ in 0..5 {
        late += u32::from(there.on_dequeue(&view(0), &p, &mut stream()) == MarkVerdict::Mark(SLOPE));
    }
    assert!(early > 500);
    assert_eq!(early, late);
    assert_eq!(there.on_dequeue(&view(0), &p, &mut stream()), MarkVerdict::Pass, "nothing is owed to later packets");
}

proptest::proptest! {
    #[test]
    fn the_registers_stay_in_their_widths(
        rate in 10_000_000u64..=1_600_000_000_000,
        clock in 100u64..=20_000,
        credit in 0u64..=65_535,
        reset in proptest::bool::ANY,
        arrivals in proptest::collection::vec((0u64..1 << 44, 0u32..40, 84u32..=65_535, proptest::bool::ANY), 1..200),
    ) {
        let after_mark = if reset { AfterMark::Reset } else { AfterMark::Subtract };
        let params = SlopeParams { clock: Span::from_ps(clock), credit: Bytes(credit), after_mark };
        let mut registers = SlopeRegisters::new(&params, BitRate(rate));
        proptest::prop_assert!(registers.rate() < 1 << 32);
        let mut now = 0;
        for (gap, shift, wire, markable) in arrivals {
            now += gap >> shift;
            let before = registers.sum();
            let step = registers.on_arrival(Time::from_ps(now), wire, markable);
            let arrived = i64::from(wire) << SlopeRegisters::FRACTION;
            proptest::prop_assert!(step.interval < 1 << 24 && step.sendable < 1 << 56);
            proptest::prop_assert!(step.sum >= -((credit as i64) << SlopeRegisters::FRACTION) && step.sum < 1 << 36, "{step:?}");
            proptest::prop_assert_eq!(step.mark, arrived > step.sendable && step.added > step.sendable);
            // A queue that does not grow is not marked.
            proptest::prop_assert!(!(step.mark && arrived <= step.sendable));
            proptest::prop_assert!(step.sum <= before.max(step.sendable).max(before + arrived - step.sendable));
        }
    }
}

#[test]
fn a_threshold_of_zero_is_refused_and_one_out_of_reach_leaves_the_slope() {
    let marking = |k| Marking::SEcn(SEcnParams { k: Some(k), ..params() });
    let mut cx = fanin_params::Cx::new();
    marking(Amount::Bytes(0)).check(&mut cx);
    let said: Vec<String> = cx.into_problems().iter().map(ToString::to_string).collect();
    assert!(said.len() == 1 && said[0].contains("k: is zero"), "{said:?}");
    assert!(marking(Amount::Bytes(9)).out_of_reach(Amount::Bytes(9)).starts_with("acts without it"));
}
