//! UDP sources, sans-IO, and a sink that counts.

use fanin_packet::{Ecn, Framing, Packet};
use fanin_params::{names, params};
use fanin_units::{BitRate, Bytes, Span, Stream, Time};

names! {
    /// How the lengths of on and off periods are drawn.
    pub enum Periods {
        /// Always the given length.
        "fixed" => Fixed,
        /// Exponentially distributed with that mean.
        "exponential" => Exponential,
    }
}
names! {
    /// What the rate of a source counts.
    pub enum RateOf {
        /// UDP payload.
        "payload" => Payload,
        /// Payload, UDP and IPv4 header.
        "ip" => Ip,
        /// All that an Ethernet link is busy with: preamble, header, FCS and gap too. "10Gbps" fills a 10 Gb/s link.
        "wire" => Wire,
    }
}

params! {
    /// Datagrams at a constant bit rate.
    pub struct Cbr {
        /// Rate while sending.
        pub rate: BitRate, in BitRate(1)..;
        /// What the rate counts.
        pub rate_of: RateOf = RateOf::Wire;
        /// UDP payload of a datagram; 1472 fills an Ethernet frame.
        pub packet_size: Bytes = Bytes(1472), in Bytes(1)..=Bytes(65_000);
        /// Stop after this many datagrams.
        pub packets: Option<u64>, in 1u64..;
        /// Stop after this many payload bytes; the last datagram may be smaller.
        pub bytes: Option<Bytes>, in Bytes(1)..;
        /// Send ECN-capable datagrams, which are marked instead of dropped.
        pub ecn: bool = false;
    }
}
params! {
    /// A constant bit rate in on periods, silence in off periods. It begins with an on period.
    pub struct OnOff {
        /// Rate in on periods.
        pub rate: BitRate, in BitRate(1)..;
        /// What the rate counts.
        pub rate_of: RateOf = RateOf::Wire;
        /// UDP payload of a datagram; 1472 fills an Ethernet frame.
        pub packet_size: Bytes = Bytes(1472), in Bytes(1)..=Bytes(65_000);
        /// Length of an on period.
        pub on: Span, in Span::from_ns(1)..;
        /// Length of an off period.
        pub off: Span, in Span::from_ns(1)..;
        /// How the lengths are drawn.
        pub periods: Periods = Periods::Fixed;
        /// Stop after this many datagrams.
        pub packets: Option<u64>, in 1u64..;
        /// Stop after this many payload bytes; the last datagram may be smaller.
        pub bytes: Option<Bytes>, in Bytes(1)..;
        /// Send ECN-capable datagrams, which are marked instead of dropped.
        pub ecn: bool = false;
    }
}
fanin_params::choice! {
    /// A UDP source.
    pub enum UdpConfig {
        /// Constant bit rate.
        "cbr" => Cbr(Cbr),
        /// On and off periods.
        "on_off" => OnOff(OnOff),
    }
}

/// UDP and IPv4 header.
const HEADERS: u64 = 8 + Framing::IPV4_HEADER as u64;
/// Preamble, Ethernet header, FCS and gap.
const ETHERNET: u64 = Framing::ETHERNET.header as u64 + Framing::ETHERNET.gap as u64;
/// Smallest Ethernet frame with preamble and gap.
const MIN_WIRE: u64 = Framing::ETHERNET.min_frame as u64 + Framing::ETHERNET.gap as u64;

struct OnOffTimes {
    on: Span,
    off: Span,
    exponential: bool,
}

/// A UDP source.
///
/// The n-th datagram of an on period is due n · size / rate after the period's start, whatever the NIC did in between: a
/// source that was held up catches up.
pub struct UdpSource {
    rate: BitRate,
    /// Bytes of a full datagram that count towards the rate, beyond its payload.
    overhead: u64,
    least: u64,
    size: u64,
    packets_left: u64,
    bytes_left: u64,
    ecn: Ecn,
    times: Option<OnOffTimes>,
    random: Stream,
    /// Start of the present on period, and what was sent in it as the rate counts.
    period: Time,
    counted: Bytes,
    period_end: Time,
    due: Time,
    sent: u64,
    sent_bytes: u64,
}

impl UdpSource {
    /// A source that begins at `start`; `random` draws the periods.
    pub fn new(cfg: &UdpConfig, start: Time, random: Stream) -> Self {
        let (rate, rate_of, size, packets, bytes, ecn, times) = match cfg {
            UdpConfig::Cbr(c) => (c.rate, c.rate_of, c.packet_size, c.packets, c.bytes, c.ecn, None),
            UdpConfig::OnOff(c) => {
                let times = OnOffTimes { on: c.on, off: c.off, exponential: c.periods == Periods::Exponential };
                (c.rate, c.rate_of, c.packet_size, c.packets, c.bytes, c.ecn, Some(times))
            }
        };
        let (overhead, least) = match rate_of {
            RateOf::Payload => (0, 0),
            RateOf::Ip => (HEADERS, 0),
            RateOf::Wire => (HEADERS + ETHERNET, MIN_WIRE),
        };
        let mut source = UdpSource {
            rate,
            overhead,
            least,
            size: size.get(),
            packets_left: packets.unwrap_or(u64::MAX),
            bytes_left: bytes.map_or(u64::MAX, Bytes::get),
            ecn: if ecn { Ecn::Ect0 } else { Ecn::NotEct },
            times,
            random,
            period: start,
            counted: Bytes(0),
            period_end: Time::MAX,
            due: start,
            sent: 0,
            sent_bytes: 0,
        };
        source.period_end = source.draw_period(start);
        source
    }

    fn draw(&mut self, length: Span, exponential: bool) -> Span {
        if exponential {
            Span::from_ps(self.random.exponential(length.ps() as f64) as u64)
        } else {
            length
        }
    }

    fn draw_period(&mut self, start: Time) -> Time {
        match self.times {
            Some(OnOffTimes { on, exponential, .. }) => start.saturating_add(self.draw(on, exponential)),
            None => Time::MAX,
        }
    }

    /// The next datagram, if one is due. Fills the transport fields of `out`.
    pub fn poll(&mut self, now: Time, out: &mut Packet) -> bool {
        if now < self.due || self.is_done() {
            return false;
        }
        let payload = self.size.min(self.bytes_left);
        out.set_udp(self.sent as u32, payload as u16);
        out.ecn = self.ecn;
        self.sent += 1;
        self.sent_bytes += payload;
        self.packets_left -= 1;
        self.bytes_left -= payload;
        self.counted += Bytes((payload + self.overhead).max(self.least));
        self.due = self.period.saturating_add(self.rate.time_to_send(self.counted));
        while self.due >= self.period_end {
            self.next_period();
        }
        true
    }

    /// The on period is over. What of a datagram's time lies beyond it is not carried into the next.
    fn next_period(&mut self) {
        let Some(OnOffTimes { off, exponential, .. }) = self.times else { return };
        let silence = self.draw(off, exponential);
        self.period = self.period_end.saturating_add(silence);
        self.counted = Bytes(0);
        self.due = self.period;
        self.period_end = self.draw_period(self.period).max(self.period.saturating_add(Span::from_ps(1)));
    }

    /// When the next datagram is due; `Time::MAX` when all are sent.
    pub fn next_timeout(&self) -> Time {
        if self.is_done() { Time::MAX } else { self.due }
    }

    /// Whether all is sent.
    pub fn is_done(&self) -> bool {
        self.packets_left == 0 || self.bytes_left == 0
    }

    /// Datagrams sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Payload bytes sent.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }
}

/// What a UDP receiver counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpSink {
    /// Datagrams received.
    pub packets: u64,
    /// Payload bytes received.
    pub bytes: u64,
    /// Datagrams that arrived after one with a higher number.
    pub reordered: u64,
    /// Datagrams marked CE.
    pub marked: u64,
    /// One more than the highest number received.
    next: u64,
}

impl UdpSink {
    /// Takes a datagram in.
    pub fn on_packet(&mut self, p: &Packet) {
        let number = self.next.wrapping_add_signed(i64::from(p.seq.wrapping_sub(self.next as u32) as i32));
        self.packets += 1;
        self.bytes += u64::from(p.payload);
        self.marked += u64::from(p.ecn == Ecn::Ce);
        if number < self.next {
            self.reordered += 1;
        } else {
            self.next = number + 1;
        }
    }

    /// Datagrams that are missing so far: those numbered below the highest and not received. Duplicates, which no Fanin
    /// network makes, would hide losses.
    pub fn lost(&self) -> u64 {
        self.next.saturating_sub(self.packets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_units::Purpose;

    fn cbr() -> Cbr {
        Cbr {
            rate: BitRate::from_gbps(10),
            rate_of: RateOf::Wire,
            packet_size: Bytes(1472),
            packets: None,
            bytes: None,
            ecn: false,
        }
    }
    fn stream() -> Stream {
        Stream::new(1, Purpose::Arrivals, 0)
    }
    /// Times and sizes of the datagrams before `end`.
    fn run(source: &mut UdpSource, end: Time) -> Vec<(Time, u16)> {
        let mut out = Packet::default();
        let mut sent = Vec::new();
        while source.next_timeout() < end {
            let now = source.next_timeout();
            assert!(source.poll(now, &mut out));
            sent.push((now, out.payload));
        }
        sent
    }

    #[test]
    fn a_constant_bit_rate_fills_the_wire_exactly() {
        let mut source = UdpSource::new(&UdpConfig::Cbr(cbr()), Time::ZERO, stream());
        let sent = run(&mut source, Time::ZERO + Span::from_us(100));
        for (i, (at, _)) in sent.iter().enumerate() {
            assert_eq!(at.ps(), i as u64 * 1538 * 800);
        }
        let mut source = UdpSource::new(&UdpConfig::Cbr(Cbr { rate_of: RateOf::Ip, ..cbr() }), Time::ZERO, stream());
        assert_eq!(run(&mut source, Time::ZERO + Span::from_us(2))[1].0.ps(), 1500 * 800);
        let mut source =
            UdpSource::new(&UdpConfig::Cbr(Cbr { packet_size: Bytes(1), ..cbr() }), Time::ZERO, stream());
        assert_eq!(run(&mut source, Time::ZERO + Span::from_us(2))[1].0.ps(), 84 * 800);
    }

    #[test]
    fn rates_that_do_not_divide_time_do_not_drift() {
        let odd = Cbr { rate: BitRate(3_333_333_333), rate_of: RateOf::Payload, packet_size: Bytes(1000), ..cbr() };
        let mut source = UdpSource::new(&UdpConfig::Cbr(odd), Time::ZERO, stream());
        let sent = run(&mut source, Time::ZERO + Span::from_ms(10));
        assert_eq!(sent.len(), 4167); // 10 ms · 3.33 Gb/s / 8000 bit, the one at time zero included
        let exact = 4166.0 * 8000.0 / 3.333_333_333;
        assert!((sent[4166].0.ps() as f64 / 1000.0 - exact).abs() < 0.002, "{exact}");
    }

    #[test]
    fn it_stops_after_its_packets_or_bytes() {
        let mut source = UdpSource::new(&UdpConfig::Cbr(Cbr { packets: Some(3), ..cbr() }), Time::ZERO, stream());
        assert_eq!(run(&mut source, Time::MAX).len(), 3);
        assert!(source.is_done());
        let limited = Cbr { bytes: Some(Bytes(3000)), ..cbr() };
        let mut source = UdpSource::new(&UdpConfig::Cbr(limited), Time::ZERO, stream());
        let sizes: Vec<u16> = run(&mut source, Time::MAX).iter().map(|s| s.1).collect();
        assert_eq!(sizes, [1472, 1472, 56]);
    }

    fn on_off(periods: Periods) -> UdpConfig {
        UdpConfig::OnOff(OnOff {
            rate: BitRate::from_gbps(1),
            rate_of: RateOf::Payload,
            packet_size: Bytes(125),
            on: Span::from_us(10),
            off: Span::from_us(30),
            periods,
            packets: None,
            bytes: None,
            ecn: true,
        })
    }

    #[test]
    fn on_and_off_periods_alternate() {
        let mut source = UdpSource::new(&on_off(Periods::Fixed), Time::ZERO, stream());
        let sent = run(&mut source, Time::ZERO + Span::from_us(80));
        let expected: Vec<u64> = (0..10).chain(40..50).map(|us| us * 1_000_000).collect();
        assert_eq!(sent.iter().map(|s| s.0.ps()).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn exponential_periods_have_their_mean_duty() {
        let mut source = UdpSource::new(&on_off(Periods::Exponential), Time::ZERO, stream());
        let sent = run(&mut source, Time::ZERO + Span::from_ms(400)).len() as f64;
        // 10 000 cycles of 40 µs: in each, 1 + floor(on / 1 µs) datagrams, 10.5 in the mean; 3 standard errors are 3 %.
        assert!((sent / 10_000.0 - 10.5).abs() < 0.4, "{sent}");
    }

    #[test]
    fn the_sink_counts_loss_and_reordering() {
        let mut sink = UdpSink::default();
        for number in [0, 1, 4, 3, 6] {
            let mut p = Packet::default();
            p.set_udp(number, 100);
            p.ecn = if number == 4 { Ecn::Ce } else { Ecn::Ect0 };
            sink.on_packet(&p);
        }
        assert_eq!((sink.packets, sink.bytes, sink.reordered, sink.marked, sink.lost()), (5, 500, 1, 1, 2));
    }
}
