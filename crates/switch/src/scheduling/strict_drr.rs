//! Strict priority above deficit round robin.

use super::drr::Drr;
use super::strict::Strict;
use super::{check_classes, Discipline, MAX_CLASSES};
use fanin_params::{params, Cx};
use fanin_units::Bytes;

params! {
    /// Strict priority for classes 0 … `strict` − 1; when they are empty, the others are served by deficit round robin.
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
    first: usize,
    drr: Drr,
}

impl Discipline for StrictDrr {
    type Params = StrictDrrParams;

    fn new(params: &StrictDrrParams) -> Self {
        let first = usize::from(params.strict);
        StrictDrr { strict: Strict::with_classes(first), first, drr: Drr::with_quanta(&params.quanta) }
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
        self.first + self.drr.queues()
    }

    fn enqueue(&mut self, class: usize, frame: u16) {
        if class < self.first {
            self.strict.enqueue(class, frame);
        } else {
            self.drr.enqueue(class - self.first, frame);
        }
    }

    fn moved(&mut self, class: usize, place: usize) {
        if class >= self.first {
            self.drr.moved(class - self.first, place);
        }
    }

    fn removed(&mut self, class: usize, place: usize, frame: u16) {
        if class < self.first {
            self.strict.removed(class, place, frame);
        } else {
            self.drr.removed(class - self.first, place, frame);
        }
    }

    fn next(&self) -> Option<usize> {
        self.strict.next().or_else(|| self.drr.next().map(|class| class + self.first))
    }

    fn gate(&mut self, closed: u8) {
        self.strict.gate(closed);
        self.drr.gate(closed >> self.first);
    }

    fn flush(&mut self, class: usize) {
        if class < self.first {
            self.strict.flush(class);
        } else {
            self.drr.flush(class - self.first);
        }
    }

    fn dequeued(&mut self, class: usize, frame: u16) {
        if class < self.first {
            self.strict.dequeued(class, frame);
        } else {
            self.drr.dequeued(class - self.first, frame);
        }
    }

    fn dropped(&mut self, class: usize, frame: u16) {
        if class < self.first {
            self.strict.dropped(class, frame);
        } else {
            self.drr.dropped(class - self.first, frame);
        }
    }

    fn resume(&mut self, class: usize, sent: u64, frames: &[u16]) {
        if class < self.first {
            self.strict.resume(class, sent, frames);
        } else {
            self.drr.resume(class - self.first, sent, frames);
        }
    }
}
