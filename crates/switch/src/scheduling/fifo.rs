//! First in, first out.

use super::Discipline;
use fanin_params::params;

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
    fn enqueue(&mut self, class: usize, _frame: u16) {
        assert!(class == 0, "class {class} at a port of one class");
        self.packets += 1;
    }

    #[inline]
    fn next(&self) -> Option<usize> {
        (self.packets > 0 && !self.closed).then_some(0)
    }

    fn gate(&mut self, closed: u8) {
        self.closed = closed & 1 != 0;
    }

    fn removed(&mut self, _class: usize, _place: usize, _frame: u16) {
        self.packets -= 1;
    }

    fn flush(&mut self, _class: usize) {
        self.packets = 0;
    }

    #[inline]
    fn dequeued(&mut self, _class: usize, _frame: u16) {
        self.packets -= 1;
    }
}
