//! The parameters of TCP, with the defaults of two profiles side by side.

use crate::cc::{CongestionControl, Cubic, NewReno};
use fanin_packet::IpVersion;
use fanin_params::{names, params, Node};
use fanin_units::{Bytes, Span, Time};

mod check;

names! {
    /// Which defaults apply to keys that are not given.
    pub enum Profile {
        /// What the RFCs say.
        "rfc" => Rfc,
        /// What Linux does.
        "linux" => Linux,
    }
}
names! {
    /// How the initial window follows from the segment size.
    pub enum InitialWindow {
        /// 4, 3 or 2 segments; 3 on Ethernet. Source: RFC 5681 §3.1, which takes RFC 3390's place.
        "rfc5681" => Rfc5681,
        /// min (10·MSS, max (2·MSS, 14600)). Source: RFC 6928 §2.
        "rfc6928" => Rfc6928,
    }
}
names! {
    /// What RTO_min bounds.
    pub enum RtoFloor {
        /// The whole RTO. Source: RFC 6298 §2.4.
        "rto" => Rto,
        /// The variance term: RTO = SRTT + max (RTO_min, 4·RTTVAR). Source: Linux tcp_rtt_estimator.
        "variance" => Variance,
    }
}
names! {
    /// When a doubled RTO is reset.
    pub enum BackoffReset {
        /// With the next RTT sample, which retransmitted segments do not give. Source: RFC 6298 §3, §5.7.
        "sample" => Sample,
        /// With any ACK of new data. Source: Linux tcp_clean_rtx_queue.
        "ack" => Ack,
    }
}
names! {
    /// Where RTT samples come from.
    pub enum RttSampling {
        /// One timed segment per round, Karn's algorithm. Source: RFC 6298 §3.
        "timed_segment" => TimedSegment,
        /// Every ACK's echoed timestamp, with the gains of RFC 7323 appendix G; needs `timestamps`, and is as fine as
        /// `timestamp_tick`. Source: RFC 7323 §4.
        "timestamps" => Timestamps,
        /// Every ACK: the first segment that it acknowledges newly, if it was sent once, by the exact clock; the variance follows
        /// the largest deviation of each round. Source: Linux tcp_ack_update_rtt, tcp_rtt_estimator.
        "every_ack" => EveryAck,
    }
}
names! {
    /// How losses are found where both ends have SACK.
    pub enum LossDetection {
        /// By the number of segments that were SACKed above. Source: RFC 6675 §4.
        "rfc6675" => Rfc6675,
        /// By time: a segment is lost when one that left later has arrived and the reordering window has passed; lost
        /// retransmissions are found too. Source: RFC 8985; Linux tcp_rack_mark_lost.
        "rack" => Rack,
    }
}
names! {
    /// How a receiver echoes congestion marks.
    pub enum EcnEcho {
        /// ECE on every ACK until CWR arrives. Source: RFC 3168 §6.1.3.
        "classic" => Classic,
        /// ECE reports exactly which segments were marked, by the DCTCP.CE state. Source: RFC 8257 §3.2.
        "dctcp" => Dctcp,
    }
}
names! {
    /// Which packets are sent ECN-capable.
    pub enum EctOn {
        /// Data sent for the first time. Source: RFC 3168 §6.1.4, §6.1.5.
        "new_data" => NewData,
        /// All data, retransmissions too.
        "data" => Data,
        /// Every packet, ACKs, SYN and FIN too. Source: Linux, for congestion controls that need ECN.
        "all" => All,
    }
}
names! {
    /// What becomes of the window of a connection that has been idle for longer than an RTO.
    pub enum IdleRestart {
        /// It stays.
        "none" => None,
        /// It falls to min (initial window, cwnd). Source: RFC 5681 §4.1.
        "rfc5681" => Rfc5681,
        /// It halves once per RTO of idle time, down to that. Source: RFC 2861 §3.1, Linux tcp_cwnd_restart.
        "decay" => Decay,
    }
}
names! {
    /// How a timeout that was not a loss is found out. The answer is RFC 4015's.
    pub enum SpuriousRto {
        /// It is not.
        "none" => None,
        /// By the first two ACKs after it. Source: RFC 5682 §2.1.
        "f_rto" => FRto,
        /// By the echoed timestamp of the first ACK after it; needs `timestamps`. Source: RFC 3522 §3.2.
        "eifel" => Eifel,
    }
}

names! {
    /// What ends slow start before a loss.
    pub enum SlowStart {
        /// Nothing but ssthresh. Source: RFC 5681 §3.1.
        "standard" => Standard,
        /// HyStart: a train of ACKs as long as half the least RTT, or an RTT that has risen by an eighth (4 to 16 ms); a part of
        /// CUBIC. Source: Linux tcp_cubic.c hystart_update.
        "hystart" => HyStart,
        /// HyStart++: when the RTT has risen by an eighth (4 to 16 ms), up to five rounds at a quarter of the speed. Source: RFC 9406.
        "hystart++" => HyStartPlusPlus,
    }
}
names! {
    /// By whose arithmetic the window falls and grows.
    pub enum WindowRules {
        /// ssthresh from FlightSize; CUBIC as RFC 9438 has it; congestion avoidance counts bytes that are acknowledged cumulatively.
        /// Source: RFC 5681 §3.1, RFC 9438.
        "rfc" => Rfc,
        /// ssthresh from cwnd in whole segments, once per recovery with its timeouts; CUBIC as tcp_cubic.c has it, in ticks of
        /// `clock_granularity`; congestion avoidance counts bytes that are delivered. Source: Linux tcp_reno_ssthresh,
        /// tcp_enter_loss, bictcp_update, tcp_cong_avoid.
        "linux" => Linux,
    }
}

names! {
    /// When a segment is retransmitted after a drop notification.
    pub enum DropResend {
        /// At once, whatever congestion window and pacing say. Source: PDN §IV.
        "at_once" => AtOnce,
        /// When the window has room for it, before anything new; at once where nothing else is in flight.
        "window" => Window,
    }
}

params! {
    /// The last segment of what the application has written carries PSH. Source: RFC 9293 §3.9.1.2.
    pub struct LastPush { }
}
params! {
    /// So does each that ends more than half a window beyond the last PSH, counted where the application writes; the window is the
    /// largest that the other end had offered then. A receiver whose `delayed_acks` are "adaptive" takes it for the end of a message,
    /// and one whose NIC merges segments merges none behind it. Source: Linux tcp_sendmsg_locked, forced_push.
    /// Deviation: a segment that is sent again carries none.
    pub struct HalfWindowPush {
        /// How much each call of the application writes, the last value again and again; calls follow each other at once. Each
        /// begins a new half of the window. Empty: one call.
        pub writes: Vec<Bytes> = Vec::new();
    }
}
fanin_params::choice! {
    /// Which segments carry PSH.
    pub enum PushBit {
        /// The last one of what the application has written.
        "last" => Last(LastPush),
        /// And one after each half window.
        "half_window" => HalfWindow(HalfWindowPush),
    }
}

names! {
    /// How long an ACK may wait.
    pub enum DelayedAcks {
        /// For `ack_every` segments, or `delayed_ack_timeout`. Source: RFC 5681 §4.2.
        "fixed" => Fixed,
        /// For more than `ack_every` − 1 segments of the size seen, or a time that follows the spacing of arrivals, from
        /// `delayed_ack_timeout` to `delayed_ack_max`; the end of a message (PSH or a short segment) does not wait, unless this end
        /// answers each message with one of its own. Source: Linux __tcp_ack_snd_check, tcp_measure_rcv_mss,
        /// tcp_send_delayed_ack, tcp_cleanup_rbuf.
        "adaptive" => Adaptive,
    }
}
params! {
    /// Each segment out of order is acknowledged at once. Source: RFC 5681 §4.2.
    pub struct Uncompressed { }
}
params! {
    /// The first three ACKs with the same number leave at once, as fast retransmit needs them; those after it wait and are merged.
    pub struct CompressedSacks {
        /// The longest wait; at most 5 % of the RTT. Source: Linux tcp_comp_sack_delay_ns.
        pub delay: Span = Span::from_ms(1), in Span::from_ns(1)..=Span::from_ms(100);
        /// How much later than that the timer runs. Source: Linux tcp_comp_sack_slack_ns, which the kernel takes in full unless
        /// another timer runs in between.
        pub slack: Span = Span::from_us(100), in Span::ZERO..=Span::from_ms(100);
        /// So many ACKs are merged at most. Source: Linux tcp_comp_sack_nr.
        pub most: u32 = 44, in 1..=255;
    }
}
fanin_params::choice! {
    /// Whether ACKs of segments out of order are merged.
    pub enum SackCompression {
        /// They are not.
        "none" => None(Uncompressed),
        /// By a timer. Source: Linux tcp_comp_sack_delay_ns.
        "timer" => Timer(CompressedSacks),
    }
}

params! {
    /// As many segments back to back as the window allows.
    pub struct Unpaced { }
}
params! {
    /// Paced at gain · cwnd / SRTT, from the first RTT sample on. Source: Linux tcp_update_pacing_rate, sch_fq.
    pub struct Paced {
        /// Gain while cwnd < ssthresh / 2. Source: Linux tcp_pacing_ss_ratio (200 %).
        pub slow_start_gain: f64 = 2.0, in 0.1..=100.0;
        /// Gain otherwise. Source: Linux tcp_pacing_ca_ratio (120 %).
        pub gain: f64 = 1.2, in 0.1..=100.0;
    }
}
fanin_params::choice! {
    /// Whether segments are spread over the RTT.
    pub enum Pacing {
        /// Not paced.
        "none" => None(Unpaced),
        /// Paced by the window and the RTT.
        "fq" => Fq(Paced),
    }
}

params! {
    /// A receive buffer of one size.
    pub struct FixedWindow {
        /// Its size, rounded down to what the window scale can express.
        pub size: Bytes = Bytes(16_777_216), in Bytes(1_460)..=Bytes(1_073_725_440);
    }
}
names! {
    /// How a receiver measures its RTT, and what it gives room for after one in which more was read than in any before.
    pub enum WindowGrowth {
        /// The RTT is smoothed over 8 samples, echoes of the present tick of the clock count as a tick; twice what was read and 16
        /// segments, and twice the growth on top. Source: Linux 5.15 and 6.12 tcp_rcv_rtt_update, tcp_rcv_space_adjust.
        "linux-5.15" => Linux515,
        /// A lower RTT counts at once, echoes of the present tick and higher RTTs while data is unread do not; no segments more,
        /// unread data counts against what was read, and data beyond a gap makes room for what is missing. Source: Linux 6.18
        /// tcp_rcv_rtt_update, tcp_rcv_rtt_measure_ts, tcp_rcv_space_adjust, tcp_rcvbuf_grow.
        "linux-6.18" => Linux618,
    }
}
params! {
    /// A receive buffer that grows with the rate, of which a part is window. At the start the window is `buffer` · `share` less a
    /// segment (64,088 B). Once per RTT in which more has been read than in any before it, the buffer is given room for twice as
    /// much, and twice the growth on top (`growth`); the window follows by two segments for each that arrives.
    ///
    /// Source: DRS; Linux tcp_init_buffer_space, tcp_rcv_space_adjust, tcp_grow_window, __tcp_select_window.
    /// Deviation: Linux 5.15 rounds the memory of a segment up, which makes windows 3 % larger.
    pub struct GrowingWindow {
        /// Memory at the start. Source: Linux tcp_rmem\[1\].
        pub buffer: Bytes = Bytes(131_072), in Bytes(4_096)..=Bytes(1_073_725_440);
        /// Memory at most. Source: Linux tcp_rmem\[2\] (6.18: 32 MiB).
        pub max_buffer: Bytes = Bytes(6_291_456), in Bytes(4_096)..=Bytes(1_073_725_440);
        /// Which part of the memory is window before the first full segment arrives. Source: Linux 5.15 tcp_adv_win_scale = 1; 6.12
        /// TCP_DEFAULT_SCALING_RATIO.
        pub share: f64 = 0.5, in 0.05..=1.0;
        /// Which part it is afterwards: payload of a full segment over the memory that holds it; `linux`: 0.625, 1448 B in a buffer
        /// of 2 KiB with 256 B of sk_buff. Absent: `share`. Source: Linux 6.12 scaling_ratio; 5.15 has none.
        pub frame_share: Option<f64> = None, in 0.05..=1.0;
        /// How it grows; `linux`: "linux-6.18".
        pub growth: WindowGrowth = WindowGrowth::Linux515;
    }
}
fanin_params::choice! {
    /// The receive window.
    pub enum ReceiveWindow {
        /// One size.
        "fixed" => Fixed(FixedWindow),
        /// Growing with the rate.
        "auto" => Auto(GrowingWindow),
    }
}

/// Writes the parameters once, with the default of the `rfc` profile and, after `=>`, of the `linux` profile where it
/// differs.
macro_rules! profiled {
    (
        $(#[doc = $doc:expr])*
        pub struct $name:ident over $base:ident {
            $( $(#[doc = $field_doc:expr])* pub $field:ident : $ty:ty = $rfc:expr $(=> $linux:expr)? $(, in $range:expr)? ; )*
        }
    ) => {
        params! {
            $(#[doc = $doc])*
            pub struct $name over $base {
                $( $(#[doc = $field_doc])* pub $field: $ty = $rfc $(, in $range)?; )*
            }
        }

        impl $name {
            /// The defaults of a profile, before the congestion control has its say.
            fn bare(profile: Profile) -> Self {
                match profile {
                    Profile::Rfc => $name { $( $field: $rfc, )* },
                    Profile::Linux => $name { $( $field: profiled!(@last $rfc $(, $linux)?), )* },
                }
            }
        }
    };
    (@last $rfc:expr) => { $rfc };
    (@last $rfc:expr, $linux:expr) => { $linux };
}

profiled! {
    /// TCP. Defaults are those of the `rfc` profile; where the `linux` profile has another, the text says so.
    pub struct Tcp over profile_defaults {
        /// Which defaults apply to the other keys.
        pub profile: Profile = Profile::Rfc => Profile::Linux;
        /// Congestion control; `linux`: cubic. "dctcp" also turns `ecn` on with `ecn_echo = "dctcp"` (and in the `linux`
        /// profile `ect_on = "all"`), "reno" turns `sack` off, unless these keys are given.
        pub congestion_control: CongestionControl = CongestionControl::NewReno(NewReno {})
            => CongestionControl::Cubic(Cubic { c: 0.4, beta: 0.7, fast_convergence: true, reno_friendly: true });
        /// Open with a three-way handshake and close with FIN; without it connections are open from the start and never
        /// close, as persistent connections between servers. Source: RFC 9293 §3.5, §3.6.
        pub handshake: bool = true;
        /// Maximum transmission unit: bytes of the largest IP packet; with IPv6 at least 1280 (RFC 8200 §5).
        pub mtu: u16 = 1500, in 576..=65_000;
        /// Payload bytes of a full segment. Absent: MTU − 40, and 12 less with timestamps (RFC 6691): 1448 or 1460; with IPv6
        /// 20 less, 1428 or 1440.
        pub mss: Option<u16> = None, in 64u16..=64_000;
        /// Window after the handshake, in segments; `linux`: 10. Absent: by `initial_window_rule`.
        /// Source: Linux TCP_INIT_CWND.
        pub initial_window: Option<u32> = None => Some(10), in 1u32..=100_000;
        /// The initial window where `initial_window` is absent.
        pub initial_window_rule: InitialWindow = InitialWindow::Rfc5681;
        /// ssthresh at the start. Absent: arbitrarily high. Source: RFC 5681 §3.1.
        pub initial_ssthresh: Option<Bytes> = None, in Bytes(1_000)..;
        /// By whose arithmetic ssthresh and CUBIC are computed; `linux`: "linux".
        pub window_rules: WindowRules = WindowRules::Rfc => WindowRules::Linux;
        /// What ends slow start before a loss; `linux` with CUBIC: "hystart".
        pub slow_start: SlowStart = SlowStart::Standard;
        /// In slow start, cwnd grows by what an ACK covers, at most by this many segments (L of RFC 3465); `linux`:
        /// no limit; with `slow_start = "hystart++"` 8, or no limit with pacing. Source: RFC 5681 §3.1 (1), RFC 9406 §4.3.
        pub slow_start_limit: u32 = 1 => 65_535, in 1..=65_535;
        /// The window grows only while it is used up. Source: RFC 7661 §4.2; Linux tcp_is_cwnd_limited.
        pub cwnd_validation: bool = true;
        /// What idle time does to the window; `linux`: "decay".
        pub idle_restart: IdleRestart = IdleRestart::Rfc5681 => IdleRestart::Decay;
        /// Selective acknowledgments and loss recovery with them. Source: RFC 2018, RFC 6675.
        pub sack: bool = true;
        /// How losses are found, with SACK; `linux`: "rack".
        pub loss_detection: LossDetection = LossDetection::Rfc6675 => LossDetection::Rack;
        /// With "rack": a segment is sent after two RTTs without an ACK, so that the loss of a tail is found before the RTO.
        /// Source: RFC 8985 §7.
        pub tail_loss_probe: bool = true;
        /// With "rack": a reduction is undone when D-SACKs or timestamps show that nothing was lost. Source: Linux
        /// tcp_try_undo_recovery, tcp_try_undo_loss.
        pub undo: bool = true;
        /// With "rack": what probe and reordering timeouts wait longer, for timers that are late; `linux`: 2 ms. Source: Linux
        /// TCP_TIMEOUT_MIN_US.
        pub timer_slack: Span = Span::ZERO => Span::from_ms(2), in Span::ZERO..=Span::from_s(1);
        /// Duplicate ACKs (or segments SACKed above) that mean a loss; with "rack", that end the waiting for reordered
        /// segments. More than windows have segments: none do, as for networks that reorder. Source: RFC 5681 §3.2, RFC 6675 §2 (3),
        /// RFC 8985 §6.2 step 4.
        pub dup_thresh: u32 = 3, in 1..=65_535;
        /// New data on the first duplicate ACKs. Source: RFC 3042.
        pub limited_transmit: bool = true;
        /// Proportional rate reduction in SACK recovery and after ECN echoes; `linux`: on. With "rack" the window is bounded by
        /// what was delivered, and a segment more on cumulative ACKs that report no loss (RFC 9937); else by slow start (RFC 6937).
        /// Source: RFC 6937, RFC 9937.
        pub prr: bool = false => true;
        /// RTO before the first RTT sample. Source: RFC 6298 §2.1 (1 s).
        pub rto_initial: Span = Span::from_s(1), in Span::from_us(1)..=Span::from_s(60);
        /// RTO_min; `linux`: 200 ms. Source: RFC 6298 §2.4 (1 s); Linux TCP_RTO_MIN.
        pub rto_min: Span = Span::from_s(1) => Span::from_ms(200), in Span::ZERO..=Span::from_s(60);
        /// What RTO_min bounds; `linux`: "variance".
        pub rto_floor: RtoFloor = RtoFloor::Rto => RtoFloor::Variance;
        /// RTO_max, also after back-off; `linux`: 120 s. Source: RFC 6298 §2.5 (at least 60 s); Linux TCP_RTO_MAX.
        pub rto_max: Span = Span::from_s(60) => Span::from_s(120), in Span::from_us(1)..=Span::from_s(3600);
        /// Clock granularity G: the least variance term, and RTOs are multiples of it. Source: RFC 6298 §2.2, §4 (at most
        /// 100 ms); Linux HZ = 1000.
        pub clock_granularity: Span = Span::from_ms(1), in Span::ZERO..=Span::from_ms(500);
        /// The timers of RACK, its RTO with them, and of adaptive delayed ACKs expire at a tick of a clock that all hosts share: the
        /// first after they are due, ticks being `clock_granularity` apart from the start of the simulation on. Off: exactly.
        /// Source: Linux timer wheel (calc_index). Deviation: other timers are exact.
        pub timer_ticks: bool = false;
        /// When a doubled RTO is reset; `linux`: "ack".
        pub backoff_reset: BackoffReset = BackoffReset::Sample => BackoffReset::Ack;
        /// Where RTT samples come from; `linux`: "every_ack".
        pub rtt_sampling: RttSampling = RttSampling::TimedSegment => RttSampling::EveryAck;
        /// Detection of spurious timeouts; `linux`: "f_rto".
        pub spurious_rto: SpuriousRto = SpuriousRto::None => SpuriousRto::FRto;
        /// Timeouts in a row that end a connection with `Aborted`. Source: Linux tcp_retries2 (15); RFC 9293 §3.8.3 (R2:
        /// at least 100 s).
        pub max_retries: u32 = 15, in 1..=200;
        /// The same for SYN and SYN/ACK. Source: Linux tcp_syn_retries (6); RFC 9293 §3.8.3 (at least 3 minutes).
        pub syn_retries: u32 = 8 => 6, in 1..=200;
        /// Time in TIME-WAIT; `linux`: 60 s. Source: RFC 9293 §3.6.1 (2 MSL, 4 minutes); Linux TCP_TIMEWAIT_LEN.
        pub time_wait: Span = Span::from_s(240) => Span::from_s(60), in Span::ZERO..=Span::from_s(3600);
        /// The timestamps option: 12 bytes of every segment. Source: RFC 7323 §3.
        pub timestamps: bool = true;
        /// Tick of the timestamp clock. Source: RFC 7323 §5.4 (1 ms to 1 s).
        pub timestamp_tick: Span = Span::from_ms(1), in Span::from_ns(1)..=Span::from_s(1);
        /// One ACK for this many segments that arrive in order; 1: no delayed ACKs. Source: RFC 5681 §4.2 (2).
        pub ack_every: u32 = 2, in 1..=255;
        /// How long other ACKs wait; `linux`: "adaptive".
        pub delayed_acks: DelayedAcks = DelayedAcks::Fixed => DelayedAcks::Adaptive;
        /// How long an ACK may wait, where adaptive at the start; `linux`: 40 ms. Source: RFC 9293 §3.8.6.3 (less than 500 ms; BSD
        /// has 200 ms); Linux TCP_ATO_MIN, TCP_DELACK_MIN.
        pub delayed_ack_timeout: Span = Span::from_ms(200) => Span::from_ms(40), in Span::from_ns(1)..Span::from_ms(500);
        /// The longest wait of an adaptive ACK. Source: Linux TCP_DELACK_MAX.
        pub delayed_ack_max: Span = Span::from_ms(200), in Span::from_ns(1)..Span::from_ms(500);
        /// ACKs that are not delayed at the start, after idle time and, where fixed, after out-of-order data, where adaptive, after
        /// duplicates and at most as many as half a window has segments; `linux`: 16. Source: Linux TCP_MAX_QUICKACKS,
        /// tcp_incr_quickack.
        pub quick_acks: u32 = 0 => 16, in 0..=255;
        /// Whether ACKs of segments out of order are merged; `linux`: "timer". Needs `sack`.
        pub sack_compression: SackCompression = SackCompression::None(Uncompressed {})
            => SackCompression::Timer(CompressedSacks { delay: Span::from_ms(1), slack: Span::from_us(100), most: 44 });
        /// The first SACK block of the next ACK reports data that arrived twice; `linux`: on. Needs `sack`. Source: RFC 2883 §4.
        pub dsack: bool = false => true;
        /// Segments with a timestamp older than the one to be echoed, by more than a tick, are dropped and acknowledged; `linux`: on.
        /// Needs `timestamps`. Source: RFC 7323 §5; Linux tcp_paws_discard, tcp_disordered_ack. Deviation: none for timestamps that
        /// were not updated for 24 days.
        pub paws: bool = false => true;
        /// The receive window; `linux`: "auto".
        pub receive_window: ReceiveWindow = ReceiveWindow::Fixed(FixedWindow { size: Bytes(16_777_216) })
            => ReceiveWindow::Auto(GrowingWindow {
                buffer: Bytes(131_072),
                max_buffer: Bytes(6_291_456),
                share: 0.5,
                frame_share: Some(0.625),
                growth: WindowGrowth::Linux618,
            });
        /// Which segments carry PSH; `linux`: "half_window".
        pub push: PushBit = PushBit::Last(LastPush {}) => PushBit::HalfWindow(HalfWindowPush { writes: Vec::new() });
        /// Explicit congestion notification, where the other end agrees. Source: RFC 3168 §6.1.1.
        pub ecn: bool = false;
        /// How marks are echoed.
        pub ecn_echo: EcnEcho = EcnEcho::Classic;
        /// Which packets are ECN-capable.
        pub ect_on: EctOn = EctOn::NewData;
        /// Acts on drop notifications of switches: what was dropped is sent again at once, and the window falls, at most once per
        /// RTT. Segments are 20 bytes smaller, with IPv6 44, so that a full frame has room for a notification; both ends should
        /// have it. Source: PDN §IV.
        pub drop_notification: bool = false;
        /// Answers trimmed packets: a receiver of headers whose payload a switch has cut off notifies the sender at once, by an ACK
        /// with a NACK, and the sender acts on it as on a drop notification. Both ends have it. Source: NDP §3.1, CP.
        pub trim_nack: bool = false;
        /// When segments named by drop notifications and NACKs are retransmitted.
        pub drop_resend: DropResend = DropResend::AtOnce;
        /// Pacing.
        pub pacing: Pacing = Pacing::None(Unpaced {});
        /// Segmentation offload: segments leave in back-to-back bursts of what cwnd / SRTT sends in a millisecond, at least two
        /// segments and at most `tso_max`, and the sender waits for a third of the window before it starts one.
        /// Source: Linux tcp_tso_autosize (sk_pacing_shift = 10, tcp_min_tso_segs = 2), tcp_tso_should_defer.
        pub tso: bool = false;
        /// Largest burst with `tso`. Source: Linux GSO_MAX_SIZE (64 KiB).
        pub tso_max: Bytes = Bytes(65_536), in Bytes(1_460)..=Bytes(65_536);
        /// With `tso`, bursts are longer where the RTT is short: by `tso_max` halved once per 2^this µs of the shortest RTT; 0: they
        /// are not, as before Linux 5.18. Source: Linux tcp_tso_rtt_log.
        pub tso_rtt_log: u8 = 9, in 0..=31;
        /// TCP small queues: of a connection no more stands in a `nic = "fifo"` than cwnd / SRTT sends in a millisecond, twice that
        /// when retransmitting, two bursts at least; without pacing 1 MiB at most. The rest stays in its socket. `linux`: on.
        /// Source: Linux tcp_small_queue_check (since 3.6), sk_pacing_shift = 10, tcp_limit_output_bytes.
        pub small_queues: bool = false => true;
    }
}

/// The defaults that a document asks for with `profile` and `congestion_control`.
fn profile_defaults(node: &Node) -> Tcp {
    let named = |key: &str| node.get(key).and_then(|entry| entry.text().or_else(|| entry.get("kind").and_then(Node::text)));
    let profile = if named("profile") == Some("linux") { Profile::Linux } else { Profile::Rfc };
    let mut tcp = Tcp::bare(profile);
    let default = tcp.congestion_control.kind();
    CongestionControl::suit(named("congestion_control").unwrap_or(default), &mut tcp);
    if named("slow_start") == Some(SlowStart::HyStartPlusPlus.name()) {
        tcp.slow_start_limit = if matches!(named("pacing"), None | Some("none")) { 8 } else { 65_535 };
    }
    tcp
}

impl Tcp {
    /// The defaults of `profile` with `control`.
    pub fn new(profile: Profile, control: CongestionControl) -> Self {
        let mut tcp = Self::bare(profile);
        CongestionControl::suit(control.kind(), &mut tcp);
        tcp.congestion_control = control;
        tcp
    }

    /// Payload bytes of a full segment on a path that carries packets of `ip` of `mtu` bytes: `mss`, or what fits; never more
    /// than fits. Source: RFC 6691 §2; PDN §IV for the room of a notification.
    pub fn payload(&self, mtu: u16, ip: IpVersion, timestamps: bool) -> u16 {
        let options = if timestamps { TIMESTAMP_BYTES } else { 0 };
        let fits = mtu.saturating_sub(ip.header() + TCP_HEADER + options + self.notification_room(ip)).max(1);
        self.mss.map_or(fits, |mss| mss.min(fits))
    }

    /// Bytes that segments leave for a notification at the end of their frame. Source: PDN §IV.
    pub fn notification_room(&self, ip: IpVersion) -> u16 {
        if self.drop_notification {
            crate::endpoint::notification_bytes(ip)
        } else {
            0
        }
    }

    /// What a SYN announces as MSS: without options. Source: RFC 6691 §2.
    pub fn announced_mss(&self, mtu: u16, ip: IpVersion) -> u16 {
        let options = if self.timestamps { TIMESTAMP_BYTES } else { 0 };
        self.payload(mtu, ip, self.timestamps) + options
    }

    /// Initial window in bytes.
    pub fn initial_window_bytes(&self, mss: u32) -> u64 {
        let mss = u64::from(mss);
        match (self.initial_window, self.initial_window_rule) {
            (Some(segments), _) => u64::from(segments) * mss,
            (None, InitialWindow::Rfc5681) => {
                let segments = if mss > 2190 {
                    2
                } else if mss > 1095 {
                    3
                } else {
                    4
                };
                segments * mss
            }
            (None, InitialWindow::Rfc6928) => (10 * mss).min((2 * mss).max(14_600)),
        }
    }

    /// Whether losses are found by RACK on connections that have SACK.
    pub(crate) fn uses_rack(&self) -> bool {
        self.sack && self.loss_detection == LossDetection::Rack
    }

    /// Whether every ACK gives an RTT sample by the times of all segments.
    pub(crate) fn times_every_ack(&self) -> bool {
        self.rtt_sampling == RttSampling::EveryAck
    }

    /// The window scale of the largest receive window: of a fixed one the smallest that can express it (RFC 7323 §2.3), of a growing
    /// one that of its memory. Source: Linux tcp_select_initial_window.
    pub fn window_scale(&self) -> u8 {
        match &self.receive_window {
            ReceiveWindow::Fixed(w) => (0..14).find(|shift| w.size.get() >> shift <= u64::from(u16::MAX)).unwrap_or(14),
            ReceiveWindow::Auto(w) => w.max_buffer.max(w.buffer).get().ilog2().clamp(15, 29) as u8 - 15,
        }
    }

    /// The receive window of a connection with segments of `mss` bytes of payload that is open and has received nothing.
    pub fn opening_window(&self, mss: u32) -> u64 {
        let scale = self.window_scale();
        match &self.receive_window {
            ReceiveWindow::Fixed(w) => (w.size.get() >> scale).min(u64::from(u16::MAX)) << scale,
            ReceiveWindow::Auto(w) => (w.opening(mss).next_multiple_of(1 << scale)).min(u64::from(u16::MAX) << scale),
        }
    }
}

impl Tcp {
    /// Whether ACKs that are delayed wait as Linux has it.
    pub(crate) fn adapts_acks(&self) -> bool {
        self.ack_every > 1 && self.delayed_acks == DelayedAcks::Adaptive
    }

    /// When a timer that is due at `at` expires.
    pub(crate) fn tick(&self, at: Time) -> Time {
        let grain = self.clock_granularity.ps();
        if !self.timer_ticks || grain == 0 || at == Time::MAX {
            return at;
        }
        Time::from_ps((at.ps() / grain).saturating_add(1).saturating_mul(grain))
    }

    /// Whether ACKs of segments out of order are merged.
    pub(crate) fn merges_sacks(&self) -> bool {
        !matches!(self.sack_compression, SackCompression::None(_))
    }
}

impl GrowingWindow {
    /// The window that a SYN announces: whole segments. Source: Linux tcp_select_initial_window.
    pub(crate) fn announced(&self, mss: u32) -> u64 {
        let (all, mss) = (part(self.buffer.get(), fraction(self.share)), u64::from(mss));
        if all > mss {
            all - all % mss
        } else {
            all
        }
    }

    /// The window of an open connection, before rounding: a segment of the buffer is kept. Source: Linux tcp_init_buffer_space.
    pub(crate) fn opening(&self, mss: u32) -> u64 {
        let (all, one) = (part(self.buffer.get(), fraction(self.share)), u64::from(mss));
        let clamp = if all > 2 * one { (all - one).max(2 * one) } else { all };
        clamp.min(self.announced(mss))
    }

    /// The largest window.
    pub(crate) fn largest(&self) -> Bytes {
        Bytes(part(self.max_buffer.get(), fraction(self.frame_share.unwrap_or(self.share))))
    }
}

/// A share of memory in the kernel's units, 256ths. Source: Linux TCP_RMEM_TO_WIN_SCALE.
pub(crate) fn fraction(share: f64) -> u64 {
    ((share * 256.0) as u64).max(1)
}

/// The window that `memory` gives.
pub(crate) fn part(memory: u64, fraction: u64) -> u64 {
    (memory * fraction) >> 8
}

impl Default for Tcp {
    fn default() -> Self {
        Tcp::bare(Profile::Rfc)
    }
}

/// TCP header without options. Source: RFC 9293 §3.1.
pub(crate) const TCP_HEADER: u16 = 20;
/// The timestamps option with its padding. Source: RFC 7323 appendix A.
pub(crate) const TIMESTAMP_BYTES: u16 = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_params::{Cx, Param, Value};

    fn parse(entries: &[(&str, Value)]) -> (Option<Tcp>, Vec<String>) {
        let table = Value::Table(entries.iter().map(|(k, v)| (k.to_string(), v.clone().into())).collect());
        let mut cx = Cx::new();
        let tcp = Tcp::parse(&table.into(), &mut cx);
        (tcp, cx.into_problems().iter().map(ToString::to_string).collect())
    }
    fn text(s: &str) -> Value {
        Value::Text(s.to_string())
    }

    #[test]
    fn the_profile_and_the_congestion_control_choose_the_defaults() {
        assert_eq!(parse(&[]).0.unwrap(), Tcp::default());
        let linux = parse(&[("profile", text("linux"))]).0.unwrap();
        assert_eq!((linux.rto_min, linux.prr, linux.initial_window), (Span::from_ms(200), true, Some(10)));
        assert_eq!(linux.congestion_control.kind(), "cubic");
        let dctcp = parse(&[("congestion_control", text("dctcp"))]).0.unwrap();
        assert_eq!((dctcp.ecn, dctcp.ecn_echo, dctcp.ect_on), (true, EcnEcho::Dctcp, EctOn::NewData));
        let table = Value::Table(vec![("kind".to_string(), text("dctcp").into()), ("g".to_string(), Value::Float(0.125).into())]);
        let dctcp = parse(&[("profile", text("linux")), ("congestion_control", table), ("ecn_echo", text("classic"))]).0.unwrap();
        assert_eq!((dctcp.ecn_echo, dctcp.ect_on), (EcnEcho::Classic, EctOn::All));
        assert!(!parse(&[("congestion_control", text("reno"))]).0.unwrap().sack);
        assert_eq!((linux.slow_start, linux.window_rules), (SlowStart::HyStart, WindowRules::Linux));
        assert_eq!((dctcp.slow_start, dctcp.window_rules), (SlowStart::Standard, WindowRules::Linux));
        assert_eq!(parse(&[("congestion_control", text("cubic"))]).0.unwrap().slow_start, SlowStart::Standard);
        let plus = |more: (&str, Value)| parse(&[("profile", text("linux")), ("slow_start", text("hystart++")), more]).0.unwrap();
        assert_eq!(plus(("pacing", text("none"))).slow_start_limit, 8); // RFC 9406 §4.3
        assert_eq!(plus(("pacing", text("fq"))).slow_start_limit, 65_535);
        assert_eq!(plus(("slow_start_limit", Value::Int(3))).slow_start_limit, 3);
        assert_eq!(parse(&[("profile", text("linux")), ("rto_min", text("10ms"))]).0.unwrap().rto_min, Span::from_ms(10));
    }

    #[test]
    fn a_resolved_configuration_reads_back_the_same() {
        for profile in [Profile::Rfc, Profile::Linux] {
            let tcp =
                Tcp::new(profile, CongestionControl::Dctcp(crate::cc::Dctcp { g: 0.125, initial_alpha: 0.0, min_window: 1 }));
            assert_eq!(Tcp::parse(&tcp.to_value().into(), &mut Cx::new()).unwrap(), tcp);
        }
    }

    #[test]
    fn every_default_lies_in_its_range_and_every_parameter_is_documented() {
        for profile in [Profile::Rfc, Profile::Linux] {
            let mut cx = Cx::new();
            Tcp::parse(&Tcp::bare(profile).to_value().into(), &mut cx);
            assert_eq!(cx.into_problems(), vec![]);
        }
        for field in Tcp::struct_schema().fields {
            assert!(!field.doc.is_empty(), "{}", field.name);
        }
    }

    #[test]
    fn bad_values_are_refused_with_what_is_accepted() {
        let (_, problems) = parse(&[
            ("congestion_control", text("cubik")),
            ("mtu", Value::Int(100)),
            ("rto_min", text("200")),
            ("timestamp", Value::Bool(true)),
        ]);
        let all = problems.join("\n");
        for expected in
            ["did you mean 'cubic'?", "mtu: 100 is out of range", "rto_min: \"200\" has no unit", "did you mean 'timestamps'?"]
        {
            assert!(all.contains(expected), "{expected}\n{all}");
        }
    }

    #[test]
    fn segment_sizes_and_initial_windows_follow_the_rfcs() {
        use IpVersion::{V4, V6};
        let mut tcp = Tcp::default();
        assert_eq!((tcp.payload(1500, V6, true), tcp.payload(1500, V6, false), tcp.announced_mss(1500, V6)), (1428, 1440, 1440));
        assert_eq!(tcp.payload(1280, V6, false), 1220); // RFC 9293 §3.7.1
        assert_eq!((tcp.payload(1500, V4, true), tcp.payload(1500, V4, false), tcp.announced_mss(1500, V4)), (1448, 1460, 1460));
        assert_eq!(tcp.initial_window_bytes(1448), 3 * 1448);
        assert_eq!(tcp.initial_window_bytes(8948), 2 * 8948);
        assert_eq!(tcp.initial_window_bytes(536), 4 * 536);
        tcp.initial_window_rule = InitialWindow::Rfc6928;
        assert_eq!(tcp.initial_window_bytes(1448), 14_480);
        assert_eq!(tcp.initial_window_bytes(8948), 17_896);
        tcp.initial_window = Some(1);
        assert_eq!(tcp.initial_window_bytes(1448), 1448);
        tcp.mss = Some(1000);
        assert_eq!((tcp.payload(1500, V4, true), tcp.announced_mss(1500, V4)), (1000, 1012));
        tcp.mss = Some(9000);
        assert_eq!((tcp.payload(1500, V4, true), tcp.announced_mss(1500, V4)), (1448, 1460));
    }

    #[test]
    fn the_window_scale_is_the_smallest_that_fits() {
        let mut tcp = Tcp::default();
        assert_eq!(tcp.window_scale(), 9); // 16 MiB / 65535 needs 2^9: 2^24 >> 8 = 65536
        tcp.receive_window = ReceiveWindow::Fixed(FixedWindow { size: Bytes(65_535) });
        assert_eq!(tcp.window_scale(), 0);
        tcp.receive_window = ReceiveWindow::Fixed(FixedWindow { size: Bytes(1_073_725_440) });
        assert_eq!(tcp.window_scale(), 14);
    }
}
