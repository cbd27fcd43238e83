//! Settings of RCM, and their checks beside the scenario.

use super::{Mechanism, Rcm};
use crate::mechanism::{Context, Site};
use fanin_params::{counters, names, params, CounterDef, Cx};
use fanin_units::{Amount, Bytes, Span};

names! {
    /// Value of W_c to which a congestion degree applies.
    pub enum Decrease {
        /// Present W_c: each further degree reduces it again. Source: RCM formula 5.
        "each" => Each,
        /// Measured W_c: only the last degree counts, and takes at most half. Source: RCM §4.2 (a flow of half of the port
        /// falls to a quarter, and stays there).
        "measured" => Measured,
    }
}

names! {
    /// State of the CAM by which flows are harmful, at a port for which no neighbour has named any.
    pub enum Recognise {
        /// Present: flows in the CAM now are harmful; the CAM is updated while the region lasts.
        "now" => Now,
        /// At detection: flows that were in the CAM when the output queue became congested are harmful until congestion is
        /// over. Source: RCM §3.1 (a root that is reported "starts congestion control to the flows recognized by CFR").
        "at_detection" => AtDetection,
    }
}

names! {
    /// Queues that set an output port's local flag, which makes it a root.
    pub enum LocalFlag {
        /// The output queue alone.
        "output" => Output,
        /// Input queues, too: a congested sample sets the flag, with its degree, of the output by which the sampled packet
        /// leaves. Source: RCM §3.2 ("firstly detected in an input queue, the port will set its local congestion flag").
        "either" => Either,
    }
}

names! {
    /// Use of transmission time when harmful flows have used up W_c and no other flow has anything to send.
    pub enum WhenIdle {
        /// Harmful flows send: no port idles while a packet waits.
        "send" => Send,
        /// Harmful flows wait until W could have been sent, at ports notified from downstream; elsewhere they send. Source:
        /// RCM §3.1 ("performs pacing to harmful flows").
        "wait" => Wait,
    }
}

params! {
    /// Regional congestion mitigation (RCM): switches detect a region of congestion, hold harmful flows at their ports, and
    /// reroute the others. Source: RCM.
    pub struct RcmParams {
        /// Regional congestion control: harmful flows share a window W_c. If false, congestion is only detected and
        /// notified.
        pub rcc: bool = true;
        /// Adaptive routing: harmless flows take the equal-cost path with the least degree of congestion.
        pub sar: bool = true;
        /// Q_eq: queue length in equilibrium. Source: IEEE 802.1Qau (cpQSp, 26,000 B).
        pub q_eq: Bytes = Bytes(26_000), in Bytes(1)..=Bytes(1_000_000_000);
        /// w_q: weight of the queue's growth. Source: IEEE 802.1Qau (cpW, 2).
        pub w_q: u32 = 2, in 0..=64;
        /// Bytes that arrive at a queue from one sample to the next, without congestion; an eighth at the largest degree.
        /// Deviation: IEEE 802.1Qau has 150 KB, for queues that hosts answer for.
        pub sample: Bytes = Bytes(30_000), in Bytes(64)..=Bytes(1_000_000_000);
        /// w: weight of the degree from downstream in the one passed upstream.
        pub w: f64 = 0.5, in 0.0..=1.0;
        /// Capacity in flows of a port's CAM, and of a notification from downstream.
        pub cam: u32 = 8, in 1..=256;
        /// Number of CAM entries that a flow must have to be harmful at its port. Source: RCM §3.3 (flows whose IDs are
        /// stored, so one).
        pub cam_hits: u32 = 1, in 1..=256;
        /// State of the CAM that counts: the present one, or the one at the detection of congestion.
        pub recognise: Recognise = Recognise::Now;
        /// Queues whose congestion makes a port the root of a region.
        pub local_flag: LocalFlag = LocalFlag::Output;
        /// Bytes that pass a port from one update of its CAM to the next.
        pub cam_period: Bytes = Bytes(8_000), in Bytes(64)..=Bytes(1_000_000_000);
        /// Lifetime of a notification that is not renewed.
        pub expiry: Span = Span::from_us(20), in Span::from_ns(1)..=Span::from_ms(100);
        /// Smallest number of bytes over which W is measured; if absent, 16 KB or two of the largest frames.
        pub window_min: Option<Bytes>, in Bytes(64)..=Bytes(1_000_000_000);
        /// Largest number of bytes over which W is measured.
        pub window_max: Bytes = Bytes(100_000), in Bytes(64)..=Bytes(1_000_000_000);
        /// Lower bound of W_c, as each window must fit a frame; if absent, the largest frame of the traffic.
        pub max_frame: Option<Bytes>, in Bytes(64)..=Bytes(65_535);
        /// Value of W_c that a degree reduces.
        pub decrease: Decrease = Decrease::Each;
        /// Use of transmission time that no other flow needs.
        pub when_idle: WhenIdle = WhenIdle::Send;
        /// Bytes that a port holds at reduced windows; above that, harmful flows get their measured share of the port.
        /// Source: RCM §4.1 (100 KB for each input and output, and 12 ports).
        pub reserved: Bytes = Bytes(1_000_000), in Bytes(64)..=Bytes(1_000_000_000);
        /// Degree from which on a notification, or the switch's own sample, is severe.
        pub severe_degree: u32 = 32, in 1..=63;
        /// Number of severe degrees within `severe_within` after which flows are moved.
        pub severe_count: u32 = 3, in 1..=1_000;
        /// Time over which severe degrees are counted, and for which flows are then moved.
        pub severe_within: Span = Span::from_us(20), in Span::from_ns(1)..=Span::from_ms(100);
        /// Capacity of a switch's table of moved flows.
        pub moved_flows: u32 = 1_024, in 1..=1_048_576;
        /// Pause of a moved flow after which it returns to its own path; nothing is reordered if this exceeds the difference
        /// of path delays.
        pub moved_stay: Span = Span::from_us(100), in Span::from_ns(1)..=Span::from_s(1);
        /// Probability of losing a notification on its link, for any reason.
        pub loss: f64 = 0.0, in 0.0..=1.0;
        /// Switches without RCM, by name, `*` stands for anything: they neither send nor receive notifications.
        pub unaware: Vec<String> = Vec::new();
    }
}

counters! {
    /// Activity of regional congestion mitigation. At any time notifications_sent = notifications_received +
    /// notifications_lost + those on the way, and held = released + those still held, without drops.
    pub struct RcmCounts in "rcm" {
        /// Samples of input and output queues.
        samples,
        /// Samples with a congestion degree above zero.
        congested,
        /// Notifications sent to neighbours upstream (frames with degrees and flows), including those that end a congestion.
        notifications_sent,
        /// Notifications received by switches.
        notifications_received,
        /// Notifications lost, by `loss`.
        notifications_lost: failure,
        /// Congested input queues without a notification: no harmful flow had arrived there, or the neighbour has no RCM.
        not_notified,
        /// CAM entries written.
        cam_writes,
        /// Times that a port became the root of a congestion region, or part of one.
        regions,
        /// Windows that ended.
        windows,
        /// Packets of harmful flows that were held.
        held,
        /// Held packets that were sent.
        released: success,
        /// Frame bytes of packets that were held.
        held_bytes,
        /// Packets dropped while they were held.
        held_dropped: failure,
        /// Flows moved to another port.
        flows_moved: success,
        /// Packets sent by the port to which their flow was moved.
        packets_moved,
        /// Packets of harmful flows that stayed at a severely congested port.
        harmful_stayed,
        /// Packets of other flows that stayed at a severely congested port because no equal path had a smaller degree.
        no_better_path,
        /// Packets of other flows that stayed at a severely congested port because the entry in the table of moved flows was
        /// occupied.
        table_full: failure,
    }
}

pub(super) const PEAKS: &[CounterDef] = &[
    CounterDef::step("held_peak_bytes", "Most that a port held."),
    CounterDef::step("held_longest_ps", "Longest that a packet was held."),
    CounterDef::step(
        "head_wait_bytes",
        "Most that a port sent while a packet was the first of those it held: a window and a frame at most, but for pauses.",
    ),
];

/// Bytes over which W is measured at least, where frames are no larger than half of it.
const WINDOW: Bytes = Bytes(16_000);

const FOR_RCC: &str = "rcc = true, or no such key";
const FOR_SAR: &str = "sar = true, or no such key";

impl RcmParams {
    pub(super) fn check(&self, context: &Context<'_>, cx: &mut Cx) {
        self.check_unused(cx);
        self.check_queues(context, cx);
        self.check_windows(context, cx);
        if !context.is_lossless() {
            let message =
                "does not keep back-pressure on the path of harmful flows: without PFC what is held takes nobody's memory, and \
                           ports drop";
            cx.warn(None, message, None).suggestion =
                Some("switch.mechanisms.pfc, with switch.buffer = \"unlimited\"".to_string());
        }
        if self.loss == 1.0 {
            cx.warn_at("loss", &self.loss, "loses every notification: no neighbour hears of congestion");
        }
        context.check_neighbours(|switch| Rcm::runs_at(self, switch), Some("rcm"), cx);
        cx.key("unaware", |cx| context.check_unaware(&self.unaware, false, ("nobody detects congestion", "no rcm"), cx));
    }

    /// Settings of parts that are off.
    fn check_unused(&self, cx: &mut Cx) {
        if !self.rcc {
            let message = "has no effect: nothing is held with rcc = false";
            cx.unused_at("window_min", &self.window_min, message, FOR_RCC);
            cx.unused_at("window_max", &self.window_max, message, FOR_RCC);
            cx.unused_at("max_frame", &self.max_frame, message, FOR_RCC);
            cx.unused_at("decrease", &self.decrease, message, FOR_RCC);
            cx.unused_at("when_idle", &self.when_idle, message, FOR_RCC);
            cx.unused_at("reserved", &self.reserved, message, FOR_RCC);
        }
        if !self.sar {
            let message = "has no effect: no flow is moved with sar = false";
            cx.unused_at("severe_degree", &self.severe_degree, message, FOR_SAR);
            cx.unused_at("severe_count", &self.severe_count, message, FOR_SAR);
            cx.unused_at("severe_within", &self.severe_within, message, FOR_SAR);
            cx.unused_at("moved_flows", &self.moved_flows, message, FOR_SAR);
            cx.unused_at("moved_stay", &self.moved_stay, message, FOR_SAR);
        }
    }

    /// Checks queue lengths against the room that there is.
    fn check_queues(&self, context: &Context<'_>, cx: &mut Cx) {
        let bytes = |buffer: &Amount| match buffer {
            Amount::Bytes(bytes) => Some(*bytes),
            Amount::Cells(cells) => Some(cells.saturating_mul(u64::from(context.cell()))),
            Amount::Packets(_) => None,
        };
        let buffer = context.buffers().iter().filter_map(bytes).min();
        let room = [buffer, context.mechanisms.packet_memory().map(Bytes::get)].into_iter().flatten().min();
        if let Some(room) = room.filter(|room| self.q_eq.get() >= *room) {
            let what = if buffer == Some(room) { "buffer of a port" } else { "memory of a switch" };
            let message = format!("is never exceeded: the {what} is {room} B");
            cx.error_at("q_eq", &self.q_eq, message, &format!("less than {room} B; IEEE 802.1Qau has 26000 B"));
        }
        if let Some(memory) =
            context.mechanisms.packet_memory().map(Bytes::get).filter(|memory| self.rcc && self.reserved.get() > *memory)
        {
            let message = format!("is more than the memory of a switch, {memory} B");
            cx.error_at("reserved", &self.reserved, message, &format!("at most {memory} B"));
        }
    }

    fn check_windows(&self, context: &Context<'_>, cx: &mut Cx) {
        if self.cam_hits > self.cam {
            let message = format!("is more than the places of a CAM, {}: no flow is harmful", self.cam);
            cx.error_at("cam_hits", &self.cam_hits, message, &format!("at most {}", self.cam));
        }
        if !self.rcc {
            return;
        }
        let largest = context.traffic.transports.iter().map(|t| u64::from(t.mtu) + u64::from(t.telemetry)).max().unwrap_or(0);
        let largest = largest + u64::from(context.frames.framing.header + context.frames.trailer + context.frames.header_bytes);
        if let Some(frame) = self.max_frame.filter(|frame| frame.get() < largest) {
            let message = format!("is less than the largest frame of the traffic, {largest} B: one may wait for several windows");
            cx.error_at("max_frame", &frame, message, &format!("at least {largest} B, or no such key"));
        }
        let frame = self.max_frame.unwrap_or(Bytes(largest));
        let least = self.least(frame);
        if least.get() < 2 * frame.get() {
            let message = "is too short: a frame of harmful flows fits into each window, and is at most half of it";
            cx.error_at("window_min", &least, message, &format!("at least {} B, two frames", 2 * frame.get()));
        }
        if self.window_max < least {
            let message = format!("is less than window_min, {least}");
            cx.error_at("window_max", &self.window_max, message, &format!("at least {least}"));
        }
    }

    /// The largest frame of harmful flows.
    pub(super) fn floor(&self, site: &Site) -> Bytes {
        self.max_frame.unwrap_or(site.largest_frame)
    }

    /// Least number of bytes over which W is measured, at a switch.
    pub(super) fn least_window(&self, site: &Site) -> Bytes {
        self.least(self.floor(site))
    }

    fn least(&self, frame: Bytes) -> Bytes {
        self.window_min.unwrap_or(WINDOW.max(Bytes(2 * frame.get())))
    }

    /// Memory of a switch, in registers and tables. A 5-tuple is that of a notification, without the protocol.
    pub(super) fn state(&self, site: &Site) -> Bytes {
        const REGISTER: u64 = 32;
        const PORT: u64 = 16;
        let (tuple, cam) = (8 * u64::from(site.framing.ip.tuple()), u64::from(self.cam));
        // left, before, degree; local, remote, arriving, notified, and two times.
        let detection = 2 * (2 * REGISTER + 6) + 3 * 6 + 1 + 2 * REGISTER;
        // The degree of each input queue that has set the flag.
        let inputs = if self.local_flag == LocalFlag::Either { 6 * site.ports.len() as u64 } else { 0 };
        // The CAM with its next place and the bytes until then; named flows, each with the port that it comes in by and a time.
        let recognition = cam * (tuple + PORT) + 8 + REGISTER + cam * (tuple + PORT + REGISTER);
        // W, W_c as it is and as measured, used, used_c, since; harmful flows that have not sent; for each held flow its packets here and in
        // the queue.
        let control = if self.rcc { 6 * REGISTER + cam + cam * (tuple + 2 * PORT) } else { 0 };
        // Times of the latest severe degrees, and until when.
        let severity = if self.sar { (u64::from(self.severe_count) + 1) * REGISTER } else { 0 };
        let moved = if self.sar { u64::from(self.moved_flows) * (tuple + PORT + REGISTER) } else { 0 };
        let ports = site.ports.len() as u64 * (detection + inputs + recognition + control + severity);
        Bytes((ports + moved).div_ceil(Bytes(1).bits()))
    }
}
