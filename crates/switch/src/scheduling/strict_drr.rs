//! Strict priority above deficit round robin.

use super::drr::Drr;
use super::strict::Strict;
use super::{check_classes, Discipline, MAX_CLASSES};
use fanin_params::{params, Cx};
use fanin_units::{Bytes, QueueClass};

params! {
    /// Strict priority for classes 0 … `strict` − 1; when they are empty, deficit round robin for the others.
    pub struct StrictDrrParams {
        /// Number of strict classes. Source: IEEE 802.1Q §8.6.8 (priority and weighted classes at one port).
        pub strict: u8 = 1, in 1..=7;
        /// Quantum of each further class. Source: DRR.
        pub quanta: Vec<Bytes> = vec![Bytes(1518), Bytes(1518)], in Bytes(1)..=Bytes(1_000_000_000);
    }
}

/// State of both disciplines at one port. A visit of deficit round robin that a strict class interrupts goes on afterwards.
#[derive(Clone, Debug)]
pub struct StrictDrr {
    strict: Strict,
    first: u8,
    drr: Drr,
}

impl StrictDrr {
    /// The class among those of deficit round robin, where it is one of them.
    fn below(&self, class: QueueClass) -> Option<QueueClass> {
        class.0.checked_sub(self.first).map(QueueClass)
    }
}

impl Discipline for StrictDrr {
    type Params = StrictDrrParams;

    fn new(params: &StrictDrrParams) -> Self {
        StrictDrr {
            strict: Strict::with_classes(usize::from(params.strict)),
            first: params.strict,
            drr: Drr::with_quanta(&params.quanta),
        }
    }

    fn check(params: &StrictDrrParams, cx: &mut Cx) {
        if params.quanta.is_empty() {
            cx.key("quanta", |cx| cx.error(None, "is empty", Some(format!("from 1 to {} quanta", MAX_CLASSES - 1))).severity);
        }
        check_classes(Self::classes(params), "quanta", cx);
    }

    fn classes(params: &StrictDrrParams) -> usize {
        usize::from(params.strict) + params.quanta.len()
    }

    fn queues(&self) -> usize {
        usize::from(self.first) + self.drr.queues()
    }

    fn enqueue(&mut self, class: QueueClass, frame: u16) {
        match self.below(class) {
            None => self.strict.enqueue(class, frame),
            Some(class) => self.drr.enqueue(class, frame),
        }
    }

    fn moved(&mut self, class: QueueClass, place: usize) {
        if let Some(class) = self.below(class) {
            self.drr.moved(class, place);
        }
    }

    fn removed(&mut self, class: QueueClass, place: usize, frame: u16) {
        match self.below(class) {
            None => self.strict.removed(class, place, frame),
            Some(class) => self.drr.removed(class, place, frame),
        }
    }

    fn next(&self) -> Option<QueueClass> {
        self.strict.next().or_else(|| self.drr.next().map(|class| QueueClass(class.0 + self.first)))
    }

    fn gate(&mut self, closed: u8) {
        self.strict.gate(closed);
        self.drr.gate(closed >> self.first);
    }

    fn flush(&mut self, class: QueueClass) {
        match self.below(class) {
            None => self.strict.flush(class),
            Some(class) => self.drr.flush(class),
        }
    }

    fn dequeued(&mut self, class: QueueClass, frame: u16) {
        match self.below(class) {
            None => self.strict.dequeued(class, frame),
            Some(class) => self.drr.dequeued(class, frame),
        }
    }

    fn dropped(&mut self, class: QueueClass, frame: u16) {
        match self.below(class) {
            None => self.strict.dropped(class, frame),
            Some(class) => self.drr.dropped(class, frame),
        }
    }

    fn resume(&mut self, class: QueueClass, sent: u64, frames: &[u16]) {
        match self.below(class) {
            None => self.strict.resume(class, sent, frames),
            Some(class) => self.drr.resume(class, sent, frames),
        }
    }
}
