//! First in, first out.

use super::Discipline;
use fanin_params::params;
use fanin_units::QueueClass;

params! {
    /// First in, first out: one queue for all classes.
    pub struct FifoParams { }
}

/// State of first in, first out: one queue.
#[derive(Clone, Debug)]
pub struct Fifo {
    packets: u32,
    closed: bool,
}

impl Discipline for Fifo {
    type Params = FifoParams;

    fn new(_params: &FifoParams) -> Self {
        Fifo { packets: 0, closed: false }
    }

    fn classes(_params: &FifoParams) -> usize {
        1
    }

    fn queues(&self) -> usize {
        1
    }

    #[inline]
    fn enqueue(&mut self, class: QueueClass, _frame: u16) {
        assert!(class == QueueClass::FIRST, "class {class} at a port of one class");
        self.packets += 1;
    }

    #[inline]
    fn next(&self) -> Option<QueueClass> {
        (self.packets > 0 && !self.closed).then_some(QueueClass::FIRST)
    }

    fn gate(&mut self, closed: u8) {
        self.closed = closed & 1 != 0;
    }

    fn removed(&mut self, _class: QueueClass, _place: usize, _frame: u16) {
        self.packets -= 1;
    }

    fn flush(&mut self, _class: QueueClass) {
        self.packets = 0;
    }

    #[inline]
    fn dequeued(&mut self, _class: QueueClass, _frame: u16) {
        self.packets -= 1;
    }
}
