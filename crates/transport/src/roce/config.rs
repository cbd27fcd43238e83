//! Parameters of RoCEv2.

use super::cc::{NoRateControl, Path, RoceControl, Sending};
use crate::transport::{CheckSite, FailsAfter, Idle, LossTimer, Shape, TransportParams};
use fanin_packet::{IpVersion, RoceHeader, RoceOp};
use fanin_params::{params, Cx, Ground, Trial};
use fanin_units::{Bytes, Span};

params! {
    /// Go-back-N: out-of-order packets are dropped, and the sender starts again from the missing one. Source: IBTA §9.7.5.1,
    /// §9.9.2.
    pub struct GoBackN {
        /// Local ACK timeout n: 4.096 us · 2^n without an acknowledgment. Source: IBTA §9.7.6.1.3; 67 ms is what Linux'
        /// perftest sets.
        pub ack_timeout: u32 = 14, in 1_u32..=31;
    }
}
params! {
    /// Selective repeat: out-of-order packets are kept, and only the missing ones retransmitted. Every packet carries an
    /// RETH. Source: IRN §3.1.
    pub struct SelectiveRepeat {
        /// Timeout while few packets are outstanding. Source: IRN §4.1 (100 us).
        pub rto_low: Span = Span::from_us(100), in Span::from_us(1)..=Span::from_s(1);
        /// Timeout while many packets are outstanding. Source: IRN §4.1 (320 us).
        pub rto_high: Span = Span::from_us(320), in Span::from_us(1)..=Span::from_s(1);
        /// Largest number of outstanding packets with which `rto_low` applies. Source: IRN §4.1 (3).
        pub few: u32 = 3, in 1_u32..=1_000;
    }
}
fanin_params::choice! {
    /// Recovery from packet loss.
    pub enum RoceRecovery {
        /// Go-back-N: out-of-order packets are dropped, and the sender starts again from the missing one. Source: IBTA
        /// §9.7.5.1, §9.9.2.
        "go_back_n" => GoBackN(GoBackN),
        /// Selective repeat: out-of-order packets are kept, and only the missing ones retransmitted. Every packet carries an
        /// RETH. Source: IRN §3.1.
        "selective_repeat" => SelectiveRepeat(SelectiveRepeat),
    }
}

params! {
    /// No limit besides the congestion control's.
    pub struct NoRoceWindow { }
}
params! {
    /// Bandwidth-delay product: line rate times the flow's base RTT. Source: IRN §3.2 (BDP-FC).
    pub struct BdpWindow {
        /// Multiple of the bandwidth-delay product.
        pub factor: f64 = 1.0, in 0.01..=100.0;
    }
}
params! {
    /// Fixed number of bytes.
    pub struct FixedRoceWindow {
        /// Payload bytes that may be outstanding; one packet always may.
        pub size: Bytes, in Bytes(1)..=Bytes(1_073_741_824);
    }
}
fanin_params::choice! {
    /// Limit of a queue pair's outstanding bytes, in addition to congestion control.
    pub enum RoceWindow {
        /// No limit.
        "none" => None(NoRoceWindow),
        /// Bandwidth-delay product: line rate times the flow's base RTT. Source: IRN §3.2 (BDP-FC).
        "bdp" => Bdp(BdpWindow),
        /// Fixed number of bytes.
        "fixed" => Fixed(FixedRoceWindow),
    }
}

impl RoceWindow {
    /// The limit in payload bytes.
    pub(super) fn bytes(&self, path: &Path) -> u64 {
        match self {
            RoceWindow::None(_) => Sending::UNLIMITED,
            RoceWindow::Bdp(bdp) => libm::ceil(path.bdp() as f64 * bdp.factor) as u64,
            RoceWindow::Fixed(fixed) => fixed.size.get(),
        }
    }
}

/// Largest message. Source: IBTA §9.3.3 (DMA length), §9.7.2.
const LONGEST: Bytes = Bytes(1 << 31);

params! {
    /// RoCEv2: each flow is a reliable queue pair that writes to the peer's memory (RDMA WRITE). Queue pairs exist
    /// beforehand: nothing on the wire opens or closes them.
    pub struct Roce {
        /// Congestion control of queue pairs.
        pub congestion_control: RoceControl = RoceControl::None(NoRateControl { rate: None });
        /// Path MTU, payload bytes of a full packet: 256, 512, 1024, 2048 or 4096. Source: IBTA §5.2.1; Linux takes the
        /// largest that fits the interface: 1024 with 1500 B, 4096 with 9000 B (iboe_get_mtu).
        pub mtu: u16 = 1_024, in 256_u16..=4_096;
        /// Size of the messages into which each write of an application is cut, a multiple of `mtu`. If absent, one message
        /// of at most 2 GiB.
        pub message: Option<Bytes> = None, in Bytes(256)..=LONGEST;
        /// Recovery from packet loss.
        pub recovery: RoceRecovery = RoceRecovery::GoBackN(GoBackN { ack_timeout: 14 });
        /// Number of retransmissions of a packet after which the queue pair fails. Source: IBTA §9.9.2.1.1 (3 bits); 7 is
        /// what Linux' perftest sets.
        pub retry_count: u32 = 7, in 0_u32..=7;
        /// Number of packets per acknowledgment that the sender requests, besides one at the end of each message. Selective
        /// repeat, `window` and congestion controls by window need 1.
        pub ack_every: u32 = 1, in 1_u32..=4_096;
        /// Limit of outstanding bytes, besides congestion control.
        pub window: RoceWindow = RoceWindow::None(NoRoceWindow {});
        /// Burst of the rate limiter: payload bytes sent back to back before a pause; if absent, one packet. The rate holds
        /// over burst and pause together.
        pub burst: Option<Bytes> = None, in Bytes(256)..=Bytes(1_048_576);
        /// Traffic class of acknowledgments; if absent, that of the flow.
        pub ack_class: Option<u8> = None, in 0_u8..=7;
        /// Traffic class of congestion notifications (CNP); if absent, that of the flow.
        pub cnp_class: Option<u8> = None, in 0_u8..=7;
    }
}

impl Default for Roce {
    fn default() -> Self {
        fanin_params::defaults()
    }
}

/// Local ACK timeout for the exponent n: 4.096 us · 2^n. Source: IBTA §9.7.6.1.3.
pub(super) fn local_ack_timeout(n: u32) -> Span {
    Span::from_ns(4_096).saturating_mul(1 << n.min(31))
}

impl Roce {
    /// True with selective repeat.
    pub fn selective(&self) -> bool {
        matches!(self.recovery, RoceRecovery::SelectiveRepeat(_))
    }

    /// Number of packets of a full message.
    pub(super) fn packets_per_message(&self) -> u64 {
        self.message.unwrap_or(LONGEST).get().div_ceil(u64::from(self.mtu))
    }

    /// Headers of a full packet that is not the first one of its message.
    pub(super) fn data_header(&self) -> RoceHeader {
        RoceHeader { reth: self.selective(), ..RoceHeader::default() }
    }

    /// Length of the headers of the longest packet.
    fn longest_data_header(&self) -> u16 {
        RoceHeader { reth: true, ..self.data_header() }.bytes()
    }
}

impl TransportParams for Roce {
    fn check(&self, cx: &mut Cx, _site: &CheckSite) {
        if !self.mtu.is_power_of_two() {
            cx.error_at("mtu", &self.mtu, "is no path MTU", "256, 512, 1024, 2048 or 4096");
        }
        if let Some(message) = self.message.filter(|bytes| bytes.get() % u64::from(self.mtu) != 0) {
            cx.error_at("message", &message, "is not a multiple of mtu", &format!("a multiple of {}", self.mtu));
        }
        let each = if self.selective() {
            Some("recovery = \"selective_repeat\"")
        } else if !matches!(self.window, RoceWindow::None(_)) {
            Some("a window")
        } else {
            self.congestion_control.needs().window.then_some("this congestion_control")
        };
        if let Some(why) = each.filter(|_| self.ack_every > 1) {
            let message = format!("leaves packets unacknowledged, and {why} needs an acknowledgment for each");
            cx.error_at("ack_every", &self.ack_every, message, "1");
        }
        if let RoceRecovery::SelectiveRepeat(repeat) = &self.recovery {
            if repeat.rto_low > repeat.rto_high {
                cx.key("recovery", |cx| {
                    let accepted = format!("at most {}", repeat.rto_high);
                    cx.error_at("rto_low", &repeat.rto_low, "is above rto_high", &accepted).severity
                });
            }
        }
        if self.congestion_control.notifying().is_none() {
            let remedy = "a congestion_control that works by CNPs, or no cnp_class";
            cx.unused_at("cnp_class", &self.cnp_class, "has no effect: nothing sends notifications", remedy);
        }
        cx.key("congestion_control", |cx| self.congestion_control.check(cx));
    }

    fn trials(_kind: &'static str, _docs: &[&str], at: &Ground) -> Vec<Trial> {
        RoceControl::trials(at)
    }

    fn check_at(&self, at: &Idle, cx: &mut Cx) {
        cx.key("congestion_control", |cx| self.congestion_control.check_at(at, cx));
    }

    fn mtu(&self, ip: IpVersion) -> u16 {
        ip.header() + self.longest_data_header() + self.mtu
    }

    /// Path MTUs are fixed: stamps make frames longer instead.
    fn with_mtu_less(self, _bytes: u16) -> Self {
        self
    }

    fn shape(&self, _ip: IpVersion) -> Shape {
        let header = self.data_header().bytes();
        Shape { payload: u64::from(self.mtu), header, first: self.longest_data_header() - header, opening: None }
    }

    fn longest_header(&self, ip: IpVersion) -> u16 {
        let early = self.selective().then_some(0);
        let waited = self.congestion_control.needs().waited.then_some(0);
        ip.header() + RoceHeader { op: RoceOp::Acknowledge, early, waited, ..RoceHeader::default() }.bytes()
    }

    fn largest_message(&self) -> Option<Bytes> {
        Some(Bytes(self.packets_per_message() * u64::from(self.mtu)))
    }

    fn first_window(&self, _ip: IpVersion) -> u64 {
        match &self.window {
            RoceWindow::Fixed(fixed) => fixed.size.get(),
            _ => u64::MAX,
        }
    }

    fn burst(&self) -> Option<(&'static str, Bytes)> {
        self.burst.filter(|burst| burst.get() > u64::from(self.mtu)).map(|burst| ("burst", burst))
    }

    fn loss_timers(&self) -> Vec<LossTimer> {
        match &self.recovery {
            RoceRecovery::GoBackN(back) => vec![LossTimer {
                key: "recovery.ack_timeout",
                value: local_ack_timeout(back.ack_timeout),
                exponent: Some(back.ack_timeout),
                fixed: true,
                cost: "each lost end of a message costs that much",
            }],
            RoceRecovery::SelectiveRepeat(repeat) => {
                vec![LossTimer {
                    key: "recovery.rto_low",
                    value: repeat.rto_low,
                    exponent: None,
                    fixed: true,
                    cost: "each lost end of a message costs that much",
                }]
            }
        }
    }

    fn fails_after(&self) -> Option<FailsAfter> {
        let timer = self.loss_timers().into_iter().next()?;
        let raise = if self.selective() { "recovery.rto_low and rto_high" } else { timer.key };
        Some(FailsAfter { timer, times: self.retry_count + 1, raise })
    }

    fn needs_telemetry(&self) -> Option<&'static str> {
        self.congestion_control.needs().telemetry
    }

    fn wants_lossless(&self) -> Option<&'static str> {
        (!self.selective()).then_some("recovery = \"selective_repeat\"")
    }

    fn wants_order(&self) -> Option<&'static str> {
        self.wants_lossless()
    }

    fn ecn_remedy(&self) -> Option<&'static str> {
        Some("set switch.marking = \"none\", or a congestion_control that works by marks, such as \"dcqcn\"")
    }

    fn other_classes(&self) -> Vec<(&'static str, u8)> {
        let all = [("ack_class", self.ack_class), ("cnp_class", self.cnp_class)];
        all.into_iter().filter_map(|(key, class)| Some((key, class?))).collect()
    }

    fn needs_marks(&self) -> Option<&'static str> {
        self.congestion_control.needs().marks
    }

    fn marks_by_curve(&self) -> bool {
        self.congestion_control.needs().curve
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_params::defaults;
    use fanin_units::BitRate;

    fn with(congestion_control: RoceControl) -> Roce {
        Roce { congestion_control, ..Roce::default() }
    }

    fn selective(cfg: Roce) -> Roce {
        Roce { recovery: RoceRecovery::SelectiveRepeat(defaults()), ..cfg }
    }

    /// Each control can be tried, with its own table, and under its own name.
    #[test]
    fn every_control_has_a_trial() {
        let at = Ground { rate: BitRate::from_gbps(100), rtt: Span::from_us(10), buffer: None, marks: None };
        let trials = Roce::trials("roce", &[], &at);
        let kinds: Vec<_> = trials.iter().map(|trial| trial.kind).collect();
        assert_eq!(kinds, ["none", "hpcc", "powertcp", "theta_powertcp", "dcqcn", "timely", "swift"]);
        for trial in &trials {
            let (path, table) = &trial.settings[0];
            assert_eq!((trial.part, path.as_str()), ("transport.congestion_control", "transport"));
            let begins = format!("{{ kind = \"roce\", congestion_control = {{ kind = {:?}", trial.kind);
            assert!(table.starts_with(&begins) && table.ends_with(" } }"), "{table}");
            let unmarked = trial.settings[1..].iter().any(|(path, value)| path == "switch.marking" && value == "\"none\"");
            assert_eq!(unmarked, trial.kind != "dcqcn", "DCQCN alone works by marks: {:?}", trial.settings);
        }
    }

    /// An acknowledgment is UDP 8, BTH 12, AETH 4 and ICRC 4. Source: IBTA §9.2, Annex A17. Selective repeat names the packet
    /// that came early, and Swift says how long it waited: 4 B each.
    #[test]
    fn the_longest_acknowledgment_has_what_recovery_and_control_add() {
        let swift = || with(RoceControl::Swift(defaults()));
        let cases = [(Roce::default(), 28), (swift(), 32), (selective(Roce::default()), 32), (selective(swift()), 36)];
        for (cfg, bytes) in cases {
            assert_eq!([IpVersion::V4, IpVersion::V6].map(|ip| cfg.longest_header(ip)), [20 + bytes, 40 + bytes]);
        }
    }

    /// DCQCN alone works by marks, and its data alone is ECN-capable. Source: DCQCN §3.1.
    #[test]
    fn data_is_capable_of_ecn_where_the_control_works_by_marks() {
        let dcqcn = with(RoceControl::Dcqcn(defaults()));
        assert_eq!((dcqcn.needs_marks(), dcqcn.uses_ecn(), dcqcn.marks_by_curve()), (Some("DCQCN"), true, true));
        let others = [
            RoceControl::Hpcc(defaults()),
            RoceControl::PowerTcp(defaults()),
            RoceControl::Timely(defaults()),
            RoceControl::Swift(defaults()),
        ];
        for cfg in others.map(with) {
            assert_eq!((cfg.needs_marks(), cfg.uses_ecn(), cfg.marks_by_curve()), (None, false, false));
        }
    }

    /// 4.096 us · 2^n. Source: IBTA §9.7.6.1.3, where 31 stands for 8,800 s.
    #[test]
    fn timeouts_and_sizes_are_those_of_the_standard() {
        assert_eq!([1, 14].map(local_ack_timeout), [Span::from_ns(8_192), Span::from_ns(67_108_864)]);
        assert_eq!(local_ack_timeout(31), Span::from_ns(4_096 << 31));
        let [back, repeat] = [Roce::default(), selective(Roce::default())];
        let fails = |cfg: &Roce| cfg.fails_after().map(|fails| (fails.timer.key, fails.timer.value, fails.times, fails.raise));
        let of_back = ("recovery.ack_timeout", Span::from_ns(67_108_864), 8, "recovery.ack_timeout");
        assert_eq!(fails(&back), Some(of_back), "seven retransmissions, and the eighth timeout ends it");
        let of_repeat = ("recovery.rto_low", Span::from_us(100), 8, "recovery.rto_low and rto_high");
        assert_eq!(fails(&repeat), Some(of_repeat));
        // The first packet has an RETH of 16 B; with selective repeat every one has.
        let shapes = [&back, &repeat].map(|cfg| cfg.shape(IpVersion::V4));
        assert_eq!(shapes.map(|shape| (shape.payload, shape.header, shape.first)), [(1_024, 24, 16), (1_024, 40, 0)]);
        assert_eq!([&back, &repeat].map(|cfg| cfg.mtu(IpVersion::V4)), [20 + 40 + 1_024; 2]);
        let three = Roce { message: Some(Bytes(3_072)), ..Roce::default() };
        assert_eq!([&back, &three].map(|cfg| cfg.largest_message()), [Some(Bytes(1 << 31)), Some(Bytes(3_072))]);
    }

    /// What `check` warns of: losses and reordering hurt go-back-N alone; a burst is one if it is longer than a packet.
    #[test]
    fn what_a_queue_pair_says_of_itself() {
        let [back, repeat] = [Roce::default(), selective(Roce::default())];
        let remedy = Some("recovery = \"selective_repeat\"");
        assert_eq!([back.wants_lossless(), back.wants_order(), repeat.wants_lossless()], [remedy, remedy, None]);
        let burst = |bytes| Roce { burst: Some(Bytes(bytes)), ..Roce::default() }.burst();
        assert_eq!([back.burst(), burst(1_024), burst(1_025)], [None, None, Some(("burst", Bytes(1_025)))]);
        let window = Roce { window: RoceWindow::Fixed(FixedRoceWindow { size: Bytes(5_000) }), ..Roce::default() };
        assert_eq!([&back, &window].map(|cfg| cfg.first_window(IpVersion::V4)), [u64::MAX, 5_000]);
        assert_eq!(back.other_classes(), []);
        let classes = Roce { cnp_class: Some(6), ack_class: Some(5), ..Roce::default() };
        assert_eq!(classes.other_classes(), [("ack_class", 5), ("cnp_class", 6)]);
        assert!(back.ecn_remedy().is_some_and(|remedy| remedy.contains("congestion_control") && remedy.contains("\"dcqcn\"")));
        assert_eq!(classes.clone().with_mtu_less(100), classes, "stamps make frames longer");
        assert_eq!((back.needs_telemetry(), with(RoceControl::Hpcc(defaults())).needs_telemetry()), (None, Some("HPCC")));
    }
}
