//! Parameters of TCP, with the defaults of two profiles side by side.

use crate::cc::{CongestionControl, Cubic, NewReno};
use fanin_packet::IpVersion;
use fanin_params::{names, params, Node};
use fanin_units::{Bytes, Span, Time};

mod check;

names! {
    /// Profile: the set of defaults for keys that are not given.
    pub enum Profile {
        /// Defaults of the RFCs.
        "rfc" => Rfc,
        /// Defaults of Linux.
        "linux" => Linux,
    }
}
names! {
    /// Rule that derives the initial window from the segment size.
    pub enum InitialWindow {
        /// Initial window of 4, 3 or 2 segments; 3 on Ethernet. Source: RFC 5681 §3.1, which takes RFC 3390's place.
        "rfc5681" => Rfc5681,
        /// Initial window of min (10·MSS, max (2·MSS, 14600)). Source: RFC 6928 §2.
        "rfc6928" => Rfc6928,
    }
}
names! {
    /// Part of the RTO that RTO_min bounds.
    pub enum RtoFloor {
        /// RTO_min bounds the whole RTO. Source: RFC 6298 §2.4.
        "rto" => Rto,
        /// RTO_min bounds the variance term: RTO = SRTT + max (RTO_min, 4·RTTVAR). Source: Linux tcp_rtt_estimator.
        "variance" => Variance,
    }
}
names! {
    /// Event that resets a backed-off RTO.
    pub enum BackoffReset {
        /// The next RTT sample, which retransmitted segments do not give. Source: RFC 6298 §3, §5.7.
        "sample" => Sample,
        /// Any ACK of new data. Source: Linux tcp_clean_rtx_queue.
        "ack" => Ack,
    }
}
names! {
    /// Source of RTT samples.
    pub enum RttSampling {
        /// One timed segment per round, with Karn's algorithm. Source: RFC 6298 §3.
        "timed_segment" => TimedSegment,
        /// The timestamp echoed by every ACK, in steps of `timestamp_tick`, with the gains of RFC 7323 appendix G; needs
        /// `timestamps`. Source: RFC 7323 §4.
        "timestamps" => Timestamps,
        /// Every ACK: the first segment that it newly acknowledges, if that was sent only once, by the exact clock; the
        /// variance follows the largest deviation of each round. Source: Linux tcp_ack_update_rtt, tcp_rtt_estimator.
        "every_ack" => EveryAck,
    }
}
names! {
    /// Loss detection on connections with SACK.
    pub enum LossDetection {
        /// By count: segments SACKed above a hole. Source: RFC 6675 §4.
        "rfc6675" => Rfc6675,
        /// By time (RACK): a segment is lost when one sent later has arrived and the reordering window has passed; lost
        /// retransmissions are detected, too. Source: RFC 8985; Linux tcp_rack_mark_lost.
        "rack" => Rack,
    }
}
names! {
    /// Rule by which a receiver echoes congestion marks.
    pub enum EcnEcho {
        /// Classic echo: ECE on every ACK until CWR arrives. Source: RFC 3168 §6.1.3.
        "classic" => Classic,
        /// DCTCP echo: ECE says exactly which segments were marked, by the DCTCP.CE state. Source: RFC 8257 §3.2.
        "dctcp" => Dctcp,
    }
}
names! {
    /// Packets that are sent as ECN-capable.
    pub enum EctOn {
        /// Data segments when sent for the first time. Source: RFC 3168 §6.1.4, §6.1.5.
        "new_data" => NewData,
        /// All data segments, retransmissions included.
        "data" => Data,
        /// All packets, ACKs, SYN and FIN included. Source: Linux, for congestion controls that need ECN.
        "all" => All,
    }
}
names! {
    /// Congestion window after an idle period longer than an RTO.
    pub enum IdleRestart {
        /// The window is kept.
        "none" => None,
        /// The window falls to min (initial window, cwnd). Source: RFC 5681 §4.1.
        "rfc5681" => Rfc5681,
        /// The window halves once per RTO of idle time, down to min (initial window, cwnd). Source: RFC 2861 §3.1, Linux
        /// tcp_cwnd_restart.
        "decay" => Decay,
    }
}
names! {
    /// Detection of spurious timeouts. The response is that of RFC 4015.
    pub enum SpuriousRto {
        /// No detection.
        "none" => None,
        /// F-RTO: detection by the first two ACKs after the timeout. Source: RFC 5682 §2.1.
        "f_rto" => FRto,
        /// Eifel: detection by the timestamp echoed in the first ACK after the timeout; needs `timestamps`. Source: RFC 3522
        /// §3.2.
        "eifel" => Eifel,
    }
}

names! {
    /// Mechanism that ends slow start before a loss.
    pub enum SlowStart {
        /// Slow start ends at ssthresh only. Source: RFC 5681 §3.1.
        "standard" => Standard,
        /// HyStart, a part of CUBIC: slow start ends at a train of ACKs as long as half the minimum RTT, or when the RTT has
        /// risen by an eighth (4 to 16 ms). Source: Linux tcp_cubic.c hystart_update.
        "hystart" => HyStart,
        /// HyStart++: once the RTT has risen by an eighth (4 to 16 ms), slow start goes on at a quarter of its speed for up
        /// to five rounds. Source: RFC 9406.
        "hystart++" => HyStartPlusPlus,
    }
}
names! {
    /// Arithmetic of window growth and reductions.
    pub enum WindowRules {
        /// Arithmetic of the RFCs: ssthresh from FlightSize; CUBIC of RFC 9438; congestion avoidance counts cumulatively
        /// acknowledged bytes.
        /// Source: RFC 5681 §3.1, RFC 9438.
        "rfc" => Rfc,
        /// Arithmetic of Linux: ssthresh from cwnd in whole segments, once per recovery, timeouts included; CUBIC of
        /// tcp_cubic.c, in ticks of `clock_granularity`; congestion avoidance counts delivered bytes. Source: Linux
        /// tcp_reno_ssthresh, tcp_enter_loss, bictcp_update, tcp_cong_avoid.
        "linux" => Linux,
    }
}

names! {
    /// Time at which a segment named by a drop notification is retransmitted.
    pub enum DropResend {
        /// At once, regardless of congestion window and pacing. Source: PDN §IV.
        "at_once" => AtOnce,
        /// Once the window has room, before new data; at once if nothing else is in flight.
        "window" => Window,
    }
}

params! {
    /// PSH on the last segment of the application's written data. Source: RFC 9293 §3.9.1.2.
    pub struct LastPush { }
}
params! {
    /// PSH also on each segment that ends more than half a window beyond the last PSH, counted in the application's writes;
    /// the window is the largest offered by the peer so far. A receiver with "adaptive" `delayed_acks` takes PSH for the end
    /// of a message; a NIC that merges segments merges nothing behind it. Source: Linux tcp_sendmsg_locked, forced_push.
    /// Deviation: retransmitted segments carry no PSH.
    pub struct HalfWindowPush {
        /// Sizes of the application's write calls, the last one repeated; calls follow each other at once, and each begins a
        /// new half window. Empty: a single call.
        pub writes: Vec<Bytes> = Vec::new();
    }
}
fanin_params::choice! {
    /// Segments that carry PSH.
    pub enum PushBit {
        /// The last segment of the application's written data.
        "last" => Last(LastPush),
        /// The last segment, and each that ends more than half a window beyond the last PSH.
        "half_window" => HalfWindow(HalfWindowPush),
    }
}

names! {
    /// Delay of acknowledgments.
    pub enum DelayedAcks {
        /// Fixed delay: an ACK waits for `ack_every` segments or `delayed_ack_timeout`. Source: RFC 5681 §4.2.
        "fixed" => Fixed,
        /// Adaptive delay: an ACK waits for more than `ack_every` − 1 segments of the size seen, or for a time that follows
        /// the spacing of arrivals, from `delayed_ack_timeout` to `delayed_ack_max`. The end of a message (PSH or a short
        /// segment) is acknowledged at once, unless this end answers each message with one of its own. Source: Linux
        /// __tcp_ack_snd_check, tcp_measure_rcv_mss, tcp_send_delayed_ack, tcp_cleanup_rbuf.
        "adaptive" => Adaptive,
    }
}
params! {
    /// No compression: each out-of-order segment is acknowledged at once. Source: RFC 5681 §4.2.
    pub struct Uncompressed { }
}
params! {
    /// Compression by a timer: the first three ACKs with equal number leave at once, as fast retransmit needs them; later
    /// ones wait and are merged. Source: Linux tcp_comp_sack_delay_ns.
    pub struct CompressedSacks {
        /// Longest wait of a merged ACK; at most 5 % of the RTT.
        pub delay: Span = Span::from_ms(1), in Span::from_ns(1)..=Span::from_ms(100);
        /// Time by which the timer fires late. Source: Linux tcp_comp_sack_slack_ns, which the kernel takes in full unless
        /// another timer runs in between.
        pub slack: Span = Span::from_us(100), in Span::ZERO..=Span::from_ms(100);
        /// Largest number of ACKs merged into one. Source: Linux tcp_comp_sack_nr.
        pub most: u32 = 44, in 1..=255;
    }
}
fanin_params::choice! {
    /// Compression of the ACKs of out-of-order segments.
    pub enum SackCompression {
        /// ACKs are not merged.
        "none" => None(Uncompressed),
        /// Compression by a timer: the first three ACKs with equal number leave at once, as fast retransmit needs them;
        /// later ones wait and are merged. Source: Linux tcp_comp_sack_delay_ns.
        "timer" => Timer(CompressedSacks),
    }
}

params! {
    /// No pacing: segments leave back to back, as many as the window allows.
    pub struct Unpaced { }
}
params! {
    /// Pacing at gain · cwnd / SRTT, from the first RTT sample on. Source: Linux tcp_update_pacing_rate, sch_fq.
    pub struct Paced {
        /// Gain while cwnd < ssthresh / 2. Source: Linux tcp_pacing_ss_ratio (200 %).
        pub slow_start_gain: f64 = 2.0, in 0.1..=100.0;
        /// Gain otherwise. Source: Linux tcp_pacing_ca_ratio (120 %).
        pub gain: f64 = 1.2, in 0.1..=100.0;
    }
}
fanin_params::choice! {
    /// Pacing of segments over the RTT.
    pub enum Pacing {
        /// No pacing.
        "none" => None(Unpaced),
        /// Pacing at gain · cwnd / SRTT, from the first RTT sample on. Source: Linux tcp_update_pacing_rate, sch_fq.
        "fq" => Fq(Paced),
    }
}

params! {
    /// Receive buffer of constant size.
    pub struct FixedWindow {
        /// Size, rounded down to what the window scale can express.
        pub size: Bytes = Bytes(16_777_216), in Bytes(1_460)..=Bytes(1_073_725_440);
    }
}
names! {
    /// Measurement of the receiver's RTT, and growth of the buffer after an RTT with more read than in any before.
    pub enum WindowGrowth {
        /// Linux 5.15 to 6.12. RTT: smoothed over 8 samples; echoes within the present clock tick count as one tick. Buffer:
        /// twice the bytes read plus 16 segments, and twice the growth on top. Source: Linux 5.15 and 6.12
        /// tcp_rcv_rtt_update, tcp_rcv_space_adjust.
        "linux-5.15" => Linux515,
        /// Linux 6.18. RTT: a lower one counts at once; echoes within the present tick, and higher ones while data is
        /// unread, are ignored. Buffer: no extra segments; unread data counts against the bytes read, data beyond a gap
        /// reserves room for the missing bytes. Source: Linux 6.18 tcp_rcv_rtt_update, tcp_rcv_rtt_measure_ts,
        /// tcp_rcv_space_adjust, tcp_rcvbuf_grow.
        "linux-6.18" => Linux618,
    }
}
params! {
    /// Autotuning: a receive buffer that grows with the rate, of which a share is window. The initial window is `buffer` ·
    /// `share` less a segment (64,088 B). After each RTT in which more was read than in any before, the buffer grows to
    /// twice that amount, plus twice the growth (`growth`); the window follows by two segments for each that arrives.
    ///
    /// Source: DRS; Linux tcp_init_buffer_space, tcp_rcv_space_adjust, tcp_grow_window, __tcp_select_window. Deviation:
    /// Linux 5.15 rounds the memory of a segment up, which makes windows 3 % larger.
    pub struct GrowingWindow {
        /// Initial size of the buffer's memory. Source: Linux tcp_rmem\[1\].
        pub buffer: Bytes = Bytes(131_072), in Bytes(4_096)..=Bytes(1_073_725_440);
        /// Largest size of the buffer's memory. Source: Linux tcp_rmem\[2\] (6.18: 32 MiB).
        pub max_buffer: Bytes = Bytes(6_291_456), in Bytes(4_096)..=Bytes(1_073_725_440);
        /// Share of the memory that is window before the first full segment arrives. Source: Linux 5.15 tcp_adv_win_scale =
        /// 1; 6.12 TCP_DEFAULT_SCALING_RATIO.
        pub share: f64 = 0.5, in 0.05..=1.0;
        /// Share of the memory that is window once a full segment has arrived: its payload over the memory that holds it;
        /// `linux`: 0.625 (1448 B in 2 KiB and 256 B of sk_buff). If absent, `share`. Source: Linux 6.12 scaling_ratio; 5.15
        /// has none.
        pub frame_share: Option<f64> = None, in 0.05..=1.0;
        /// Growth rule of the buffer; `linux`: "linux-6.18".
        pub growth: WindowGrowth = WindowGrowth::Linux515;
    }
}
fanin_params::choice! {
    /// Receive buffer and window.
    pub enum ReceiveWindow {
        /// Receive buffer of constant size.
        "fixed" => Fixed(FixedWindow),
        /// Receive window that grows with the rate (autotuning).
        "auto" => Auto(GrowingWindow),
    }
}

/// Declares the parameters once, with the default of the `rfc` profile and, after `=>`, of the `linux` profile if it differs.
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
            /// Defaults of a profile, before the congestion control adapts them.
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
    /// TCP. Defaults are those of the `rfc` profile; if the `linux` profile has another, the description gives it.
    pub struct Tcp over profile_defaults {
        /// Profile that gives the defaults of all other keys.
        pub profile: Profile = Profile::Rfc => Profile::Linux;
        /// Congestion control; `linux`: cubic.
        pub congestion_control: CongestionControl = CongestionControl::NewReno(NewReno {})
            => CongestionControl::Cubic(Cubic { c: 0.4, beta: 0.7, fast_convergence: true, reno_friendly: true });
        /// Three-way handshake at the start and FIN at the end; if false, connections are open from the start and never
        /// close, as persistent ones between servers. Source: RFC 9293 §3.5, §3.6.
        pub handshake: bool = true;
        /// MTU: bytes of the largest IP packet; with IPv6 at least 1280 (RFC 8200 §5).
        pub mtu: u16 = 1500, in 576..=65_000;
        /// MSS: payload bytes of a full segment. If absent, MTU − 40, and 12 less with timestamps (RFC 6691): 1460 or 1448;
        /// with IPv6 20 less, 1440 or 1428.
        pub mss: Option<u16> = None, in 64u16..=64_000;
        /// Initial window in segments, after the handshake; `linux`: 10. If absent, by `initial_window_rule`. Source: Linux
        /// TCP_INIT_CWND.
        pub initial_window: Option<u32> = None => Some(10), in 1u32..=100_000;
        /// Rule of the initial window if `initial_window` is absent.
        pub initial_window_rule: InitialWindow = InitialWindow::Rfc5681;
        /// Initial ssthresh; if absent, arbitrarily high. Source: RFC 5681 §3.1.
        pub initial_ssthresh: Option<Bytes> = None, in Bytes(1_000)..;
        /// Arithmetic of ssthresh and CUBIC; `linux`: "linux".
        pub window_rules: WindowRules = WindowRules::Rfc => WindowRules::Linux;
        /// Mechanism that ends slow start before a loss; `linux` with CUBIC: "hystart".
        pub slow_start: SlowStart = SlowStart::Standard;
        /// Limit of slow-start growth per ACK, in segments (L of RFC 3465); `linux`: none; with `slow_start = "hystart++"`
        /// 8, or none if paced. Source: RFC 5681 §3.1 (1), RFC 9406 §4.3.
        pub slow_start_limit: u32 = 1 => 65_535, in 1..=65_535;
        /// Congestion window validation: the window grows only while it is fully used. Source: RFC 7661 §4.2; Linux
        /// tcp_is_cwnd_limited.
        pub cwnd_validation: bool = true;
        /// Window after idle time longer than an RTO; `linux`: "decay".
        pub idle_restart: IdleRestart = IdleRestart::Rfc5681 => IdleRestart::Decay;
        /// Selective acknowledgments, and loss recovery by them. Source: RFC 2018, RFC 6675.
        pub sack: bool = true;
        /// Loss detection with SACK; `linux`: "rack".
        pub loss_detection: LossDetection = LossDetection::Rfc6675 => LossDetection::Rack;
        /// Tail loss probe with "rack": after two RTTs without an ACK a segment is sent, so that a tail loss shows before
        /// the RTO. Source: RFC 8985 §7.
        pub tail_loss_probe: bool = true;
        /// Undo with "rack": a reduction is reverted when D-SACKs or timestamps show that nothing was lost. Source: Linux
        /// tcp_try_undo_recovery, tcp_try_undo_loss.
        pub undo: bool = true;
        /// Slack of probe and reordering timeouts with "rack", for late timers; `linux`: 2 ms. Source: Linux
        /// TCP_TIMEOUT_MIN_US.
        pub timer_slack: Span = Span::ZERO => Span::from_ms(2), in Span::ZERO..=Span::from_s(1);
        /// Duplicate ACK threshold: number of duplicate ACKs (or segments SACKed above) that indicate a loss; with "rack",
        /// that end the wait for reordered segments. A number beyond any window turns it off, for networks that reorder.
        /// Source: RFC 5681 §3.2, RFC 6675 §2 (3), RFC 8985 §6.2 step 4.
        pub dup_thresh: u32 = 3, in 1..=65_535;
        /// Limited transmit: the first duplicate ACKs send new data. Source: RFC 3042.
        pub limited_transmit: bool = true;
        /// Proportional rate reduction (PRR) in SACK recovery and after ECN echoes; `linux`: on. The window is bounded by
        /// slow start (RFC 6937); with "rack" by delivered bytes, plus a segment on cumulative ACKs that report no loss (RFC
        /// 9937). Source: RFC 6937, RFC 9937.
        pub prr: bool = false => true;
        /// Initial RTO, before the first RTT sample. Source: RFC 6298 §2.1 (1 s).
        pub rto_initial: Span = Span::from_s(1), in Span::from_us(1)..=Span::from_s(60);
        /// Minimum RTO; `linux`: 200 ms. Source: RFC 6298 §2.4 (1 s); Linux TCP_RTO_MIN.
        pub rto_min: Span = Span::from_s(1) => Span::from_ms(200), in Span::ZERO..=Span::from_s(60);
        /// Part of the RTO that `rto_min` bounds; `linux`: "variance".
        pub rto_floor: RtoFloor = RtoFloor::Rto => RtoFloor::Variance;
        /// Maximum RTO, also after back-off; `linux`: 120 s. Source: RFC 6298 §2.5 (at least 60 s); Linux TCP_RTO_MAX.
        pub rto_max: Span = Span::from_s(60) => Span::from_s(120), in Span::from_us(1)..=Span::from_s(3600);
        /// Clock granularity G: smallest variance term of the RTO, and its unit. Source: RFC 6298 §2.2, §4 (at most 100 ms);
        /// Linux HZ = 1000.
        pub clock_granularity: Span = Span::from_ms(1), in Span::ZERO..=Span::from_ms(500);
        /// Coarse timers: RACK's timers (its RTO, too) and adaptive delayed ACKs expire at the next tick of a clock that all
        /// hosts share: one tick per `clock_granularity`, from the start of the run. If false, exactly when due. Source:
        /// Linux timer wheel (calc_index). Deviation: other timers are exact.
        pub timer_ticks: bool = false;
        /// Event that resets a backed-off RTO; `linux`: "ack".
        pub backoff_reset: BackoffReset = BackoffReset::Sample => BackoffReset::Ack;
        /// Source of RTT samples; `linux`: "every_ack".
        pub rtt_sampling: RttSampling = RttSampling::TimedSegment => RttSampling::EveryAck;
        /// Detection of spurious timeouts; `linux`: "f_rto".
        pub spurious_rto: SpuriousRto = SpuriousRto::None => SpuriousRto::FRto;
        /// Number of timeouts in a row that end a connection with `Aborted`. Source: Linux tcp_retries2 (15); RFC 9293
        /// §3.8.3 (R2: at least 100 s).
        pub max_retries: u32 = 15, in 1..=200;
        /// Number of timeouts of SYN or SYN/ACK in a row that end a connection. Source: Linux tcp_syn_retries (6); RFC 9293
        /// §3.8.3 (at least 3 minutes).
        pub syn_retries: u32 = 8 => 6, in 1..=200;
        /// Time in TIME-WAIT; `linux`: 60 s. Source: RFC 9293 §3.6.1 (2 MSL, 4 minutes); Linux TCP_TIMEWAIT_LEN.
        pub time_wait: Span = Span::from_s(240) => Span::from_s(60), in Span::ZERO..=Span::from_s(3600);
        /// Timestamps option: 12 bytes of every segment. Source: RFC 7323 §3.
        pub timestamps: bool = true;
        /// Tick of the clock in the timestamps option. Source: RFC 7323 §5.4 (1 ms to 1 s).
        pub timestamp_tick: Span = Span::from_ms(1), in Span::from_ns(1)..=Span::from_s(1);
        /// Number of in-order segments per ACK; 1: no delayed ACKs. Source: RFC 5681 §4.2 (2).
        pub ack_every: u32 = 2, in 1..=255;
        /// Delay rule of ACKs; `linux`: "adaptive".
        pub delayed_acks: DelayedAcks = DelayedAcks::Fixed => DelayedAcks::Adaptive;
        /// Timeout of a delayed ACK, the initial one if adaptive; `linux`: 40 ms. Source: RFC 9293 §3.8.6.3 (less than 500
        /// ms; BSD has 200 ms); Linux TCP_ATO_MIN, TCP_DELACK_MIN.
        pub delayed_ack_timeout: Span = Span::from_ms(200) => Span::from_ms(40), in Span::from_ns(1)..Span::from_ms(500);
        /// Longest delay of an adaptive ACK. Source: Linux TCP_DELACK_MAX.
        pub delayed_ack_max: Span = Span::from_ms(200), in Span::from_ns(1)..Span::from_ms(500);
        /// Quick ACKs: number of ACKs without delay at the start, after idle time, and after out-of-order data (fixed delay)
        /// or duplicates (adaptive delay; at most as many as half a window has segments); `linux`: 16. Source: Linux
        /// TCP_MAX_QUICKACKS, tcp_incr_quickack.
        pub quick_acks: u32 = 0 => 16, in 0..=255;
        /// Compression of the ACKs of out-of-order segments; `linux`: "timer". Needs `sack`.
        pub sack_compression: SackCompression = SackCompression::None(Uncompressed {})
            => SackCompression::Timer(CompressedSacks { delay: Span::from_ms(1), slack: Span::from_us(100), most: 44 });
        /// D-SACK: the first SACK block of the next ACK reports data that arrived twice; `linux`: on. Needs `sack`. Source:
        /// RFC 2883 §4.
        pub dsack: bool = false => true;
        /// PAWS: a segment whose timestamp is more than a tick older than the one to be echoed is dropped and acknowledged;
        /// `linux`: on. Needs `timestamps`. Source: RFC 7323 §5; Linux tcp_paws_discard, tcp_disordered_ack. Deviation: none
        /// for timestamps that were not updated for 24 days.
        pub paws: bool = false => true;
        /// Receive buffer and window; `linux`: "auto".
        pub receive_window: ReceiveWindow = ReceiveWindow::Fixed(FixedWindow { size: Bytes(16_777_216) })
            => ReceiveWindow::Auto(GrowingWindow {
                buffer: Bytes(131_072),
                max_buffer: Bytes(6_291_456),
                share: 0.5,
                frame_share: Some(0.625),
                growth: WindowGrowth::Linux618,
            });
        /// Segments that carry PSH; `linux`: "half_window".
        pub push: PushBit = PushBit::Last(LastPush {}) => PushBit::HalfWindow(HalfWindowPush { writes: Vec::new() });
        /// Explicit congestion notification, if the peer agrees. Source: RFC 3168 §6.1.1.
        pub ecn: bool = false;
        /// Rule by which the receiver echoes marks.
        pub ecn_echo: EcnEcho = EcnEcho::Classic;
        /// Packets that are sent as ECN-capable.
        pub ect_on: EctOn = EctOn::NewData;
        /// Drop notifications of switches: the dropped packet is retransmitted at once, the window reduced at most once per
        /// RTT. Segments are 20 bytes smaller (IPv6: 44) to leave room for a notification. Both ends should have it. Source:
        /// PDN §IV.
        pub drop_notification: bool = false;
        /// NACKs for trimmed packets: the receiver answers at once by an ACK with a NACK, on which the sender acts as on a
        /// drop notification. Both ends should have it. Source: NDP §3.1, CP.
        pub trim_nack: bool = false;
        /// Moment at which segments named by drop notifications and NACKs are retransmitted.
        pub drop_resend: DropResend = DropResend::AtOnce;
        /// Pacing of segments over the RTT.
        pub pacing: Pacing = Pacing::None(Unpaced {});
        /// Segmentation offload: segments leave in back-to-back bursts of what cwnd / SRTT sends in 1 ms, from two segments
        /// to `tso_max`; a burst starts once a third of the window is free. Source: Linux tcp_tso_autosize (sk_pacing_shift
        /// = 10, tcp_min_tso_segs = 2), tcp_tso_should_defer.
        pub tso: bool = false;
        /// Largest burst with `tso`. Source: Linux GSO_MAX_SIZE (64 KiB).
        pub tso_max: Bytes = Bytes(65_536), in Bytes(1_460)..=Bytes(65_536);
        /// Longer bursts at short RTTs, with `tso`: plus `tso_max`, halved once per 2^this µs of the minimum RTT; 0: off, as
        /// before Linux 5.18. Source: Linux tcp_tso_rtt_log.
        pub tso_rtt_log: u8 = 9, in 0..=31;
        /// TCP small queues: a connection keeps in the transmit queue of a `nic = "fifo"` at most what cwnd / SRTT sends in
        /// 1 ms (twice that when retransmitting), but two bursts at least; without pacing 1 MiB at most. The rest waits in
        /// its socket. `linux`: on. Source: Linux tcp_small_queue_check (since 3.6), sk_pacing_shift = 10,
        /// tcp_limit_output_bytes.
        pub small_queues: bool = false => true;
    }
}

/// Defaults that a document selects by `profile` and `congestion_control`.
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
    /// Defaults of a profile with a congestion control.
    pub fn new(profile: Profile, control: CongestionControl) -> Self {
        let mut tcp = Self::bare(profile);
        CongestionControl::suit(control.kind(), &mut tcp);
        tcp.congestion_control = control;
        tcp
    }

    /// Payload bytes of a full segment on a path with packets of `ip` of `mtu` bytes: `mss`, or the largest that fits; never
    /// more than fits. Source: RFC 6691 §2; PDN §IV for the room of a notification.
    pub fn payload(&self, mtu: u16, ip: IpVersion, timestamps: bool) -> u16 {
        let options = if timestamps { TIMESTAMP_BYTES } else { 0 };
        let fits = mtu.saturating_sub(ip.header() + TCP_HEADER + options + self.notification_room(ip)).max(1);
        self.mss.map_or(fits, |mss| mss.min(fits))
    }

    /// Bytes that segments reserve for a drop notification at the end of their frame. Source: PDN §IV.
    pub fn notification_room(&self, ip: IpVersion) -> u16 {
        if self.drop_notification {
            crate::endpoint::notification_bytes(ip)
        } else {
            0
        }
    }

    /// MSS that a SYN announces, without options. Source: RFC 6691 §2.
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

    /// True if RACK detects losses on connections that have SACK.
    pub(crate) fn uses_rack(&self) -> bool {
        self.sack && self.loss_detection == LossDetection::Rack
    }

    /// True if every ACK gives an RTT sample by the send times of all segments.
    pub(crate) fn times_every_ack(&self) -> bool {
        self.rtt_sampling == RttSampling::EveryAck
    }

    /// Window scale of the largest receive window: of a fixed one the smallest that can express it (RFC 7323 §2.3), of a
    /// growing one that of its memory. Source: Linux tcp_select_initial_window.
    pub fn window_scale(&self) -> u8 {
        match &self.receive_window {
            ReceiveWindow::Fixed(w) => (0..14).find(|shift| w.size.get() >> shift <= u64::from(u16::MAX)).unwrap_or(14),
            ReceiveWindow::Auto(w) => w.max_buffer.max(w.buffer).get().ilog2().clamp(15, 29) as u8 - 15,
        }
    }

    /// Receive window of a connection with segments of `mss` payload bytes that is open and has received nothing.
    pub fn opening_window(&self, mss: u32) -> u64 {
        let scale = self.window_scale();
        match &self.receive_window {
            ReceiveWindow::Fixed(w) => (w.size.get() >> scale).min(u64::from(u16::MAX)) << scale,
            ReceiveWindow::Auto(w) => (w.opening(mss).next_multiple_of(1 << scale)).min(u64::from(u16::MAX) << scale),
        }
    }
}

impl Tcp {
    /// True if ACKs are delayed adaptively, as in Linux.
    pub(crate) fn adapts_acks(&self) -> bool {
        self.ack_every > 1 && self.delayed_acks == DelayedAcks::Adaptive
    }

    /// Expiry time of a timer that is due at `at`: the next tick with `timer_ticks`.
    pub(crate) fn tick(&self, at: Time) -> Time {
        let grain = self.clock_granularity.ps();
        if !self.timer_ticks || grain == 0 || at == Time::MAX {
            return at;
        }
        Time::from_ps((at.ps() / grain).saturating_add(1).saturating_mul(grain))
    }

    /// True if ACKs of out-of-order segments are merged.
    pub(crate) fn merges_sacks(&self) -> bool {
        !matches!(self.sack_compression, SackCompression::None(_))
    }
}

impl GrowingWindow {
    /// Window that a SYN announces: a whole number of segments. Source: Linux tcp_select_initial_window.
    pub(crate) fn announced(&self, mss: u32) -> u64 {
        let (all, mss) = (part(self.buffer.get(), fraction(self.share)), u64::from(mss));
        if all > mss {
            all - all % mss
        } else {
            all
        }
    }

    /// Window of an open connection, before rounding: one segment of the buffer is reserved. Source: Linux
    /// tcp_init_buffer_space.
    pub(crate) fn opening(&self, mss: u32) -> u64 {
        let (all, one) = (part(self.buffer.get(), fraction(self.share)), u64::from(mss));
        let clamp = if all > 2 * one { (all - one).max(2 * one) } else { all };
        clamp.min(self.announced(mss))
    }

    /// Largest window that the buffer can give.
    pub(crate) fn largest(&self) -> Bytes {
        Bytes(part(self.max_buffer.get(), fraction(self.frame_share.unwrap_or(self.share))))
    }
}

/// Share of memory in the kernel's unit of 256ths. Source: Linux TCP_RMEM_TO_WIN_SCALE.
pub(crate) fn fraction(share: f64) -> u64 {
    ((share * 256.0) as u64).max(1)
}

/// Window that `memory` gives.
pub(crate) fn part(memory: u64, fraction: u64) -> u64 {
    (memory * fraction) >> 8
}

impl Default for Tcp {
    fn default() -> Self {
        Tcp::bare(Profile::Rfc)
    }
}

/// Length of the TCP header without options. Source: RFC 9293 §3.1.
pub(crate) const TCP_HEADER: u16 = 20;
/// Length of the timestamps option with its padding. Source: RFC 7323 appendix A.
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
            let tcp = Tcp::new(
                profile,
                CongestionControl::Dctcp(crate::cc::Dctcp {
                    g: 0.125,
                    initial_alpha: 0.0,
                    min_window: 1,
                    ..fanin_params::defaults()
                }),
            );
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
