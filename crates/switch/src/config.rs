//! Settings of switches in a scenario.

use crate::admission::CELL;
use crate::marking::by_class;
use crate::{Architecture, OutputQueued};
use crate::{
    Buffer, ClassMarking, Ecmp, Except, FifoParams, Marking, Mechanisms, NoMarking, Origins, PathChoice, PortSettings, Scheduling,
};
use crate::{Setting, StaticBuffer, Unit};
use fanin_params::{params, Cx};
use fanin_units::{Amount, Bytes, Span};

params! {
    /// Settings of all switches. A packet is routed when its last bit has arrived, then waits where `architecture` says.
    pub struct Switch {
        /// Latency from the arrival of a packet's last bit until it joins a queue.
        pub latency: Span = Span::ZERO, in Span::ZERO..=Span::from_ms(10);
        /// Size of a buffer cell, for settings in cells; a packet takes whole cells. Source: DT (memory in fixed cells); 80
        /// bytes are common, 208 in large chips.
        pub cell: Bytes = Bytes(80), in CELL;
        /// Architecture: packets wait at output ports only, or at input ports too.
        pub architecture: Architecture = Architecture::OutputQueued(OutputQueued {});
        /// Buffer of output-queued switches.
        pub buffer: Buffer = Buffer::Static(StaticBuffer { per_port: Amount::Bytes(512_000) });
        /// Marking policy of ports.
        pub marking: Marking = Marking::None(NoMarking {});
        /// Marking policies of single classes, each by its own queue.
        pub class_marking: Vec<ClassMarking> = Vec::new();
        /// Mechanisms beyond forwarding, queueing and marking.
        pub mechanisms: Mechanisms = Mechanisms::NONE;
        /// Scheduler that chooses the next packet of a port.
        pub scheduling: Scheduling = Scheduling::Fifo(FifoParams {});
        /// Exceptions: settings of single ports and switches. Source: DCTCP §4 (K = 20 packets at 1 Gb/s, 65 at 10 Gb/s).
        pub except: Vec<Except> = Vec::new();
        /// Choice among several shortest paths.
        pub routing: PathChoice = PathChoice::Ecmp(Ecmp {});
        /// Initial TTL. Each switch decrements it and drops the packet at zero: a packet crosses at most `ttl` − 1 switches.
        /// Source: RFC 1812 §5.3.1, RFC 1700 p. 64 (64).
        pub ttl: u8 = 64, in 2..;
    }
}

/// The smallest Ethernet frame, for comparing packets with bytes.
pub(crate) const MIN_FRAME: u64 = 64;

impl Switch {
    /// Bytes of a buffer cell, as [`cells`](crate::cells) takes them.
    pub fn cell_bytes(&self) -> u32 {
        u32::try_from(self.cell.0).unwrap_or(u32::MAX).max(1)
    }

    /// True if cells have to be counted at some port.
    pub fn counts_cells(&self) -> bool {
        let in_cells = |amount: &Amount| Unit::of(*amount) == Unit::Cells;
        let markings = std::iter::once(&self.marking).chain(self.except.iter().filter_map(|entry| entry.marking.as_ref()));
        let mechanisms = std::iter::once(&self.mechanisms).chain(self.except.iter().filter_map(|e| e.mechanisms.as_ref()));
        self.buffer.counts_cells()
            || self.except.iter().filter_map(|entry| entry.buffer.as_ref()).any(in_cells)
            || markings.flat_map(Marking::amounts).any(|amount| in_cells(&amount))
            || mechanisms.flat_map(Mechanisms::amounts).any(|amount| in_cells(&amount))
    }

    /// Settings of a port whose exceptions come from these entries.
    pub fn port(&self, from: Origins) -> PortSettings<'_> {
        let entry = |setting| from.of(setting).and_then(|i| self.except.get(i));
        let scheduling = entry(Setting::Scheduling).and_then(|entry| entry.scheduling.as_ref()).unwrap_or(&self.scheduling);
        let (own, alpha) = match (&self.architecture, &self.buffer) {
            // Of each class.
            (Architecture::Combined(combined), _) => {
                (Some(Amount::Bytes(combined.output.get() * scheduling.classes() as u64)), None)
            }
            (_, Buffer::Static(buffer)) => (Some(buffer.per_port), None),
            (_, Buffer::Dynamic(buffer)) => (None, Some(buffer.alpha)),
            (_, Buffer::Unlimited(_)) => (None, None),
        };
        PortSettings {
            buffer: entry(Setting::Buffer).and_then(|entry| entry.buffer).or(own),
            alpha: entry(Setting::Alpha).and_then(|entry| entry.alpha).or(alpha),
            marking: entry(Setting::Marking).and_then(|entry| entry.marking.as_ref()).unwrap_or(&self.marking),
            class_marking: &self.class_marking,
            scheduling,
        }
    }

    /// Mechanisms of a switch: those of this entry of `except`; `None`: `mechanisms` of all switches.
    pub fn mechanisms_of(&self, entry: Option<usize>) -> &Mechanisms {
        entry.and_then(|i| self.except.get(i)?.mechanisms.as_ref()).unwrap_or(&self.mechanisms)
    }

    /// Records errors that single keys cannot show, at the present path of `cx`.
    pub fn check(&self, cx: &mut Cx) {
        cx.key("buffer", |cx| self.buffer.check(cx));
        cx.key("marking", |cx| self.marking.check(cx));
        cx.key("class_marking", |cx| by_class::check(&self.class_marking, cx));
        cx.key("scheduling", |cx| self.scheduling.check(cx));
        for (i, entry) in self.except.iter().enumerate() {
            cx.key("except", |cx| cx.index(i, |cx| entry.check(self, cx)));
        }
    }

    /// Warns of thresholds that no queue of a port with these exceptions can exceed.
    pub fn check_thresholds(&self, from: Origins, cx: &mut Cx) {
        let port = self.port(from);
        let marking = from.of(Setting::Marking);
        self.check_thresholds_of(port.marking, &port, from, &mut |message| {
            Except::at(marking, "marking", cx, |cx| cx.warn(None, message, None).severity);
        });
        for (i, entry) in port.class_marking.iter().enumerate() {
            self.check_thresholds_of(&entry.marking, &port, from, &mut |message| {
                cx.key("class_marking", |cx| cx.index(i, |cx| cx.key("marking", |cx| cx.warn(None, message, None).severity)));
            });
        }
    }

    fn check_thresholds_of(&self, of: &Marking, port: &PortSettings<'_>, from: Origins, warn: &mut dyn FnMut(String)) {
        let marking = from.of(Setting::Marking);
        // The entry that decides what the port holds, where it is not the one that decides how it marks.
        let other = |setting| from.of(setting).filter(|i| marking != Some(*i));
        let itself = u64::from(of.counts_itself());
        for threshold in of.needs() {
            let message = of.out_of_reach(threshold);
            let message = match (port.buffer, port.alpha, &self.buffer) {
                (Some(most), _, _) if self.never_above(threshold, most, itself) => {
                    let of = other(Setting::Buffer).map_or(String::new(), |i| format!(" of switch.except[{i}]"));
                    format!("{message} the buffer{of}, {most}")
                }
                (None, _, Buffer::Dynamic(shared)) if self.never_above(threshold, shared.total, itself) => {
                    format!("{message} the buffer, {}", shared.total)
                }
                (None, Some(alpha), Buffer::Dynamic(shared))
                    if Unit::of(threshold) == Unit::of(shared.total) && threshold.count() >= shared.alone(alpha) + itself =>
                {
                    let with = other(Setting::Alpha).map_or(String::new(), |i| format!(" with the alpha of switch.except[{i}]"));
                    format!("{message} what one queue may hold{with}, alpha/(1 + alpha) of the buffer")
                }
                _ => continue,
            };
            warn(message);
        }
    }

    /// True if a queue held to `most` is never above `threshold`, whatever the sizes of packets. `itself`: 1 where it is enough
    /// to reach it.
    fn never_above(&self, threshold: Amount, most: Amount, itself: u64) -> bool {
        let cell = u64::from(self.cell_bytes());
        let most_in_unit = match (Unit::of(threshold), most) {
            (Unit::Bytes, Amount::Bytes(n)) | (Unit::Packets, Amount::Packets(n)) | (Unit::Cells, Amount::Cells(n)) => n,
            (Unit::Packets, Amount::Bytes(n)) => n / MIN_FRAME,
            (Unit::Packets, Amount::Cells(n)) => n,
            (Unit::Bytes, Amount::Cells(n)) => n.saturating_mul(cell),
            (Unit::Cells, Amount::Bytes(n)) => n / cell + n / MIN_FRAME,
            (Unit::Bytes | Unit::Cells, Amount::Packets(_)) => return false,
        };
        most_in_unit < threshold.count().saturating_add(1 - itself)
    }
}
