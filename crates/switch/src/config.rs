//! Everything that a scenario says of its switches.

use crate::buffer::CELL;
use crate::{
    Buffer, Ecmp, FifoParams, Marking, NoMarking, NoNotification, NoTrimming, NotificationConfig, PathChoice, Scheduling,
    StaticBuffer, TrimmingConfig, Unit,
};
use fanin_params::{params, Cx};
use fanin_units::{Amount, Bytes, Span};

params! {
    /// All switches of a network. Output queued: a packet is routed when its last bit has come in, and waits at its output
    /// port.
    pub struct Switch {
        /// From a packet's last bit coming in to its joining the output queue.
        pub latency: Span = Span::ZERO, in Span::ZERO..=Span::from_ms(10);
        /// Size of a buffer cell, where something counts in cells; a packet takes a whole number of them. Source: DT
        /// (memory in fixed cells); 80 bytes is common, 208 in large chips.
        pub cell: Bytes = Bytes(80), in CELL;
        /// How much may wait.
        pub buffer: Buffer = Buffer::Static(StaticBuffer::of(Amount::Bytes(512_000)));
        /// How packets are told of congestion.
        pub marking: Marking = Marking::None(NoMarking {});
        /// Whether senders are told of packets that are dropped for want of room.
        pub notification: NotificationConfig = NotificationConfig::None(NoNotification {});
        /// Whether packets that find no room lose their payload instead of being dropped.
        pub trimming: TrimmingConfig = TrimmingConfig::None(NoTrimming {});
        /// In which order packets leave.
        pub scheduling: Scheduling = Scheduling::Fifo(FifoParams {});
        /// Which of several shortest paths a packet takes.
        pub routing: PathChoice = PathChoice::Ecmp(Ecmp {});
        /// Time to live that hosts send with: every switch takes one off and drops the packet when none is left, so that it
        /// crosses one switch less than this. Source: RFC 1812 §5.3.1, RFC 1700 p. 64 (64).
        pub ttl: u8 = 64, in 2..;
    }
}

/// The smallest Ethernet frame, for comparing packets with bytes.
const MIN_FRAME: u64 = 64;

impl Switch {
    /// Bytes of a cell, as [`cells`](crate::cells) takes them.
    pub fn cell_bytes(&self) -> u32 {
        u32::try_from(self.cell.0).unwrap_or(u32::MAX).max(1)
    }

    /// Whether cells have to be counted.
    pub fn counts_cells(&self) -> bool {
        self.buffer.counts_cells() || self.marking.amounts().iter().any(|a| Unit::of(*a) == Unit::Cells)
    }

    /// Records what single keys cannot show to be wrong, at the present path of `cx`.
    pub fn check(&self, cx: &mut Cx) {
        cx.key("buffer", |cx| self.buffer.check(cx));
        cx.key("marking", |cx| {
            self.marking.check(cx);
            self.check_thresholds(cx);
        });
        cx.key("scheduling", |cx| self.scheduling.check(cx));
    }

    /// Warns of thresholds that no queue can exceed.
    fn check_thresholds(&self, cx: &mut Cx) {
        let buffers: Vec<Amount> = match &self.buffer {
            Buffer::Static(b) => b.amounts().collect(),
            Buffer::Dynamic(b) => vec![b.total],
            Buffer::Unlimited(_) => return,
        };
        for threshold in self.marking.amounts() {
            for most in buffers.iter().filter(|most| self.never_above(threshold, **most)) {
                cx.warn(None, format!("{} the buffer, {most}", self.marking.out_of_reach(threshold)), None);
            }
        }
    }

    /// Whether a queue held to `most` is never above `threshold`, whatever the sizes of packets.
    fn never_above(&self, threshold: Amount, most: Amount) -> bool {
        let cell = u64::from(self.cell_bytes());
        let most_in_unit = match (Unit::of(threshold), most) {
            (Unit::Bytes, Amount::Bytes(n)) | (Unit::Packets, Amount::Packets(n)) | (Unit::Cells, Amount::Cells(n)) => n,
            (Unit::Packets, Amount::Bytes(n)) => n / MIN_FRAME,
            (Unit::Packets, Amount::Cells(n)) => n,
            (Unit::Bytes, Amount::Cells(n)) => n.saturating_mul(cell),
            (Unit::Cells, Amount::Bytes(n)) => n / cell + n / MIN_FRAME,
            (Unit::Bytes | Unit::Cells, Amount::Packets(_)) => return false,
        };
        most_in_unit <= threshold.count()
    }
}
