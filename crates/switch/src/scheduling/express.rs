//! Express queue of a port, served before those of the scheduler in a fixed ratio: mechanisms can ask for it.

use fanin_packet::PacketId;
use fanin_units::Bytes;
use std::collections::VecDeque;

/// Room and weight of the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExpressParams {
    /// Room of the queue.
    pub room: Bytes,
    /// Packets of the queue that leave for each packet of another queue while both wait.
    pub ratio: u32,
}

/// Express queue of one port, and its share of the transmission opportunities.
#[derive(Clone, Debug)]
pub struct Express {
    params: ExpressParams,
    /// Waiting packets in order, and their frame bytes.
    waiting: VecDeque<(PacketId, u16)>,
    bytes: u64,
    /// Packets of this queue that have left since the last one of another queue did, while others waited.
    served: u32,
    peak: u64,
}

impl Express {
    pub fn new(params: ExpressParams) -> Self {
        Express { params, waiting: VecDeque::new(), bytes: 0, served: 0, peak: 0 }
    }

    /// True if there is room for a frame.
    #[inline]
    pub fn fits(&self, frame: u16) -> bool {
        self.bytes + u64::from(frame) <= self.params.room.get()
    }

    /// Packets of this queue that wait.
    #[inline(always)]
    pub fn packets(&self) -> u32 {
        self.waiting.len() as u32
    }

    /// Frame bytes of this queue that wait.
    #[inline(always)]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The most bytes that have waited.
    pub fn peak(&self) -> Bytes {
        Bytes(self.peak)
    }

    /// Appends a packet to the queue.
    pub fn push(&mut self, packet: PacketId, frame: u16) {
        self.waiting.push_back((packet, frame));
        self.bytes += u64::from(frame);
        self.peak = self.peak.max(self.bytes);
    }

    /// Takes the next packet of the queue, if the queue may send now. `others`: packets of other queues wait.
    pub fn pop(&mut self, others: bool) -> Option<PacketId> {
        if self.waiting.is_empty() || (others && self.served >= self.params.ratio) {
            self.served = 0; // another leaves, or nothing waits
            return None;
        }
        let (packet, frame) = self.waiting.pop_front()?;
        self.bytes -= u64::from(frame);
        self.served += u32::from(others);
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn queue(room: u64, ratio: u32) -> Express {
        Express::new(ExpressParams { room: Bytes(room), ratio })
    }

    #[test]
    fn ten_leave_for_each_other_packet_that_waits() {
        let mut q = queue(12_144, 10);
        (0..25).map(PacketId).for_each(|id| q.push(id, 64));
        let mut order = String::new();
        let mut data = 4;
        while q.packets() > 0 || data > 0 {
            if q.pop(data > 0).is_some() {
                order.push('h');
            } else {
                data -= 1;
                order.push('D');
            }
        }
        assert_eq!(order, "hhhhhhhhhhDhhhhhhhhhhDhhhhhDD");
        assert_eq!((q.peak(), q.bytes()), (Bytes(25 * 64), 0));
    }

    #[test]
    fn what_leaves_while_no_other_waits_does_not_count() {
        let mut q = queue(12_144, 2);
        (0..6).map(PacketId).for_each(|id| q.push(id, 64));
        let left: Vec<_> = [false, false, false, true, true, true].map(|data| q.pop(data)).into();
        assert_eq!(left, [Some(0), Some(1), Some(2), Some(3), Some(4), None].map(|id| id.map(PacketId)));
        assert_eq!(q.pop(true), Some(PacketId(5))); // the other has left
    }

    proptest! {
        /// Neither starves: between two packets of it at most one other leaves while its own wait, and between two others at most
        /// `ratio` of it while others wait. Never more than the bound waits.
        #[test]
        fn neither_starves(ratio in 1u32..12, most in 128u64..1000, ops in prop::collection::vec((0u8..3, 64u16..98), 1..300)) {
            let mut q = queue(most, ratio);
            let (mut waiting, mut data, mut id) = (VecDeque::new(), 0u32, 0);
            let (mut headers_in_turn, mut data_in_turn) = (0, 0);
            for (op, frame) in ops {
                match op {
                    0 if q.fits(frame) => {
                        q.push(PacketId(id), frame);
                        waiting.push_back((id, frame));
                        id += 1;
                    }
                    0 => {}
                    1 => data += 1,
                    _ => match q.pop(data > 0) {
                        Some(left) => {
                            prop_assert_eq!(waiting.pop_front().map(|(id, _)| PacketId(id)), Some(left));
                            headers_in_turn = if data > 0 { headers_in_turn + 1 } else { headers_in_turn };
                            data_in_turn = 0;
                        }
                        None if data > 0 => {
                            data -= 1;
                            headers_in_turn = 0;
                            data_in_turn = if waiting.is_empty() { 0 } else { data_in_turn + 1 };
                        }
                        None => prop_assert!(waiting.is_empty()),
                    },
                }
                prop_assert!(headers_in_turn <= ratio && data_in_turn <= 1);
                let bytes = waiting.iter().map(|(_, f)| u64::from(*f)).sum::<u64>();
                prop_assert_eq!((q.bytes(), q.packets() as usize), (bytes, waiting.len()));
                prop_assert!(bytes <= most && q.peak().get() >= q.bytes());
            }
        }
    }
}
