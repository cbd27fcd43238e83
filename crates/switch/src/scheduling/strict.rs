//! Strict priority.

use super::{check_classes, Discipline, MAX_CLASSES};
use fanin_params::{params, Cx};
use fanin_units::QueueClass;

params! {
    /// Strict priority: a class is served only when every more urgent one is empty.
    pub struct StrictParams {
        /// Number of classes. Source: IEEE 802.1Q §8.6.8.1 (strict priority), eight at most.
        pub classes: u8 = 8, in 1..=8;
    }
}

/// Counts of packets, most urgent class first. A packet on the wire is not interrupted. Source: IEEE 802.1Q §8.6.8.1.
#[derive(Clone, Debug)]
pub struct Strict {
    packets: [u32; MAX_CLASSES],
    classes: usize,
    closed: u8,
}

impl Strict {
    /// A port with this many classes and no packets.
    pub(super) fn with_classes(classes: usize) -> Self {
        Strict { packets: [0; MAX_CLASSES], classes, closed: 0 }
    }
}

impl Discipline for Strict {
    type Params = StrictParams;

    fn new(params: &StrictParams) -> Self {
        Self::with_classes(usize::from(params.classes))
    }

    fn check(params: &StrictParams, cx: &mut Cx) {
        check_classes(usize::from(params.classes), "classes", cx);
    }

    fn classes(params: &StrictParams) -> usize {
        usize::from(params.classes)
    }

    fn queues(&self) -> usize {
        self.classes
    }

    #[inline]
    fn enqueue(&mut self, class: QueueClass, _frame: u16) {
        assert!(class.index() < self.classes, "class {class} at a port of {} classes", self.classes);
        self.packets[class] += 1;
    }

    #[inline]
    fn next(&self) -> Option<QueueClass> {
        QueueClass::all(MAX_CLASSES).find(|class| self.packets[*class] > 0 && !class.is_in(self.closed))
    }

    fn gate(&mut self, closed: u8) {
        self.closed = closed;
    }

    fn removed(&mut self, class: QueueClass, _place: usize, _frame: u16) {
        self.packets[class] -= 1;
    }

    fn flush(&mut self, class: QueueClass) {
        self.packets[class] = 0;
    }

    #[inline]
    fn dequeued(&mut self, class: QueueClass, _frame: u16) {
        self.packets[class] -= 1;
    }
}
