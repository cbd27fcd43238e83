//! Trimming: instead of a whole packet, its payload is dropped. Source: NDP §3.1, after CP.
//!
//! What remains are the headers. They wait in a queue of their own, with all other packets that are nothing but headers, and
//! leave by weighted round robin with the data. The receiver learns from them what was lost.

use crate::DropReason;
use fanin_packet::{Framing, Packet, Protocol};
use fanin_params::{choice, names, params};
use fanin_units::Bytes;

names! {
    /// Whose payload is cut off when a data packet finds its queue full.
    pub enum Cut {
        /// Its own.
        "arriving" => Arriving,
        /// Its own or, as often, that of the last packet in the queue, whose place it takes: so that not always the same flow
        /// is late. Source: NDP §3.1.
        "either" => Either,
    }
}

params! {
    /// What finds no room is dropped.
    pub struct NoTrimming { }
}

params! {
    /// What finds no room loses its payload. Source: NDP §3.1.
    pub struct NdpParams {
        /// Room for headers that wait, at each port, beside the buffer for data. Source: NDP §3.1 (as much as for data:
        /// eight packets, of 9000 bytes).
        pub headers: Bytes = Bytes(72_000), in Bytes(128)..=Bytes(10_000_000);
        /// Headers that leave for each data packet while both wait. Source: NDP §3.1 (10).
        pub ratio: u32 = 10, in 1..=1_000_000;
        /// Whose payload is cut off.
        pub cut: Cut = Cut::Either;
        /// Switches that do not trim, by name, `*` stands for anything.
        pub unaware: Vec<String> = Vec::new();
    }
}

choice! {
    /// Whether packets that find no room lose their payload instead of being dropped.
    pub enum TrimmingConfig {
        /// They are dropped.
        "none" => None(NoTrimming),
        /// As NDP's switches do it.
        "ndp" => Ndp(NdpParams),
    }
}

impl DropReason {
    /// The queue of headers had no room.
    pub const HEADERS_FULL: DropReason = DropReason("headers_full");
}

/// Frame bytes of a packet's headers alone.
pub fn header_frame(p: &Packet, framing: &Framing) -> u16 {
    framing.frame(p.transport_header())
}

/// Whether a packet can lose its payload: TCP, as nobody sends datagrams again, with more payload than fills the smallest frame and
/// than the `trailer` bytes that frames have behind it.
///
/// So the length on the wire tells what was trimmed: the IP header speaks of more than the frame holds, trailer included.
pub fn is_trimmable(p: &Packet, framing: &Framing, trailer: u16) -> bool {
    p.protocol() == Protocol::Tcp && p.frame > header_frame(p, framing) + trailer
}

/// Whether a packet is one for the queue of headers: TCP that cannot be trimmed. Acknowledgments, SYN, FIN, what was trimmed
/// before, and short payloads.
pub fn is_header(p: &Packet, framing: &Framing, trailer: u16) -> bool {
    p.protocol() == Protocol::Tcp && !is_trimmable(p, framing, trailer)
}

/// The queue of headers of one port, and whose turn it is. The caller holds the packets.
///
/// ```
/// use fanin_switch::HeaderQueue;
/// use fanin_units::Bytes;
/// let mut queue = HeaderQueue::new(Bytes(130), 1);
/// queue.push(64);
/// queue.push(64);
/// assert!(!queue.fits(64)); // 192 B
/// assert!(queue.is_next(true));
/// queue.sent(64, true);
/// assert!(!queue.is_next(true)); // one header for each data packet
/// queue.turn_over();
/// assert!(queue.is_next(true));
/// ```
#[derive(Clone, Debug)]
pub struct HeaderQueue {
    bytes: u64,
    packets: u32,
    most: u64,
    ratio: u32,
    /// Headers that have left since the last data packet did, while data waited.
    served: u32,
    peak: u64,
}

impl HeaderQueue {
    /// An empty queue with room for `headers`, of which `ratio` leave for each data packet.
    pub fn new(headers: Bytes, ratio: u32) -> Self {
        HeaderQueue { bytes: 0, packets: 0, most: headers.get(), ratio, served: 0, peak: 0 }
    }

    /// Whether a frame has room.
    pub fn fits(&self, frame: u16) -> bool {
        self.bytes + u64::from(frame) <= self.most
    }

    /// A frame that fits joins.
    pub fn push(&mut self, frame: u16) {
        debug_assert!(self.fits(frame));
        self.bytes += u64::from(frame);
        self.packets += 1;
        self.peak = self.peak.max(self.bytes);
    }

    /// Whether the next frame is a header. `data`: data waits too.
    pub fn is_next(&self, data: bool) -> bool {
        self.packets > 0 && !(data && self.served >= self.ratio)
    }

    /// The first header, of `frame` bytes, has left. `data`: data waited too.
    ///
    /// # Panics
    /// When there is no such header: the caller's books are wrong.
    pub fn sent(&mut self, frame: u16, data: bool) {
        self.bytes = self.bytes.checked_sub(u64::from(frame)).expect("a header that waited");
        self.packets -= 1;
        self.served += u32::from(data);
    }

    /// It is not a header's turn: data leaves, or nothing waits.
    pub fn turn_over(&mut self) {
        self.served = 0;
    }

    /// Headers that wait.
    pub fn len(&self) -> u32 {
        self.packets
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.bytes)
    }

    /// The most bytes that ever waited.
    pub fn peak(&self) -> Bytes {
        Bytes(self.peak)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_packet::{TcpFlags, Timestamps};
    use proptest::prelude::*;

    fn queue(headers: u64, ratio: u32) -> HeaderQueue {
        HeaderQueue::new(Bytes(headers), ratio)
    }

    fn tcp(payload: u16, timestamps: bool) -> Packet {
        let mut p = Packet::default();
        p.set_tcp(TcpFlags::ACK, 1, 1, 1, payload);
        if timestamps {
            p.set_timestamps(Timestamps { value: 1, echo: 2 });
        }
        p.frame = Framing::ETHERNET.frame(p.transport_header() + p.payload);
        p
    }

    #[test]
    fn what_is_no_longer_than_its_headers_is_one() {
        let e = &Framing::ETHERNET;
        for (payload, timestamps, header) in
            [(0, false, true), (6, false, true), (7, false, false), (0, true, true), (1, true, false), (1460, false, false)]
        {
            let mut p = tcp(payload, timestamps);
            assert_eq!((is_header(&p, e, 0), is_trimmable(&p, e, 0)), (header, !header), "{payload}");
            if !header {
                p.trim(header_frame(&p, e));
                assert_eq!(
                    (p.frame, is_header(&p, e, 0), is_trimmable(&p, e, 0)),
                    (if timestamps { 70 } else { 64 }, true, false)
                );
            }
        }
        let mut p = Packet::default();
        for payload in [1, 1000] {
            p.set_udp(1, payload);
            p.frame = e.frame(p.transport_header() + payload);
            assert!(!is_header(&p, e, 0) && !is_trimmable(&p, e, 0));
        }
        // With stamps eight bytes of payload are not seen to be missing: the stamp has as many.
        let stamped = &e.with_trailer(8);
        for (payload, header) in [(8, true), (9, false)] {
            let mut p = tcp(payload, true);
            p.frame = stamped.frame(p.transport_header() + payload);
            assert_eq!((is_header(&p, stamped, 8), is_trimmable(&p, stamped, 8)), (header, !header));
        }
    }

    #[test]
    fn headers_leave_ten_to_one_while_data_waits() {
        let mut q = queue(12_144, 10);
        for _ in 0..25 {
            q.push(64);
        }
        let mut order = String::new();
        let mut data = 4;
        while !q.is_empty() || data > 0 {
            if q.is_next(data > 0) {
                q.sent(64, data > 0);
                order.push('h');
            } else {
                q.turn_over();
                data -= 1;
                order.push('D');
            }
        }
        assert_eq!(order, "hhhhhhhhhhDhhhhhhhhhhDhhhhhDD");
        assert_eq!((q.peak(), q.bytes()), (Bytes(25 * 64), Bytes(0)));
    }

    #[test]
    fn headers_that_leave_while_no_data_waits_do_not_count() {
        let mut q = queue(12_144, 2);
        (0..5).for_each(|_| q.push(64));
        for _ in 0..3 {
            assert!(q.is_next(false));
            q.sent(64, false);
        }
        assert!(q.is_next(true));
        q.sent(64, true);
        assert!(q.is_next(true));
        q.sent(64, true);
        assert!(!q.is_next(true) && !q.is_next(false));
    }

    proptest! {
        /// Neither starves: between two headers at most one data packet leaves while headers wait, and between two data packets
        /// at most `ratio` headers while data waits. Never more than the bound waits.
        #[test]
        fn neither_starves(ratio in 1u32..12, most in 128u64..1000, ops in prop::collection::vec((0u8..3, 64u16..98), 1..300)) {
            let mut q = queue(most, ratio);
            let (mut waiting, mut data) = (std::collections::VecDeque::new(), 0u32);
            let (mut headers_in_turn, mut data_in_turn) = (0, 0);
            for (op, frame) in ops {
                match op {
                    0 if q.fits(frame) => {
                        q.push(frame);
                        waiting.push_back(frame);
                    }
                    0 => {}
                    1 => data += 1,
                    _ if q.is_next(data > 0) => {
                        q.sent(waiting.pop_front().unwrap(), data > 0);
                        headers_in_turn = if data > 0 { headers_in_turn + 1 } else { headers_in_turn };
                        data_in_turn = 0;
                    }
                    _ if data > 0 => {
                        q.turn_over();
                        data -= 1;
                        headers_in_turn = 0;
                        data_in_turn = if q.is_empty() { 0 } else { data_in_turn + 1 };
                    }
                    _ => prop_assert!(q.is_empty()),
                }
                prop_assert!(headers_in_turn <= ratio && data_in_turn <= 1);
                let bytes = waiting.iter().map(|f| u64::from(*f)).sum::<u64>();
                prop_assert_eq!((q.bytes(), u64::from(q.len())), (Bytes(bytes), waiting.len() as u64));
                prop_assert!(bytes <= most && q.peak() >= q.bytes());
            }
        }
    }
}
