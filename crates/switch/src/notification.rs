//! Drop notifications: whether and how the sender of a dropped packet is told. Source: PDN §IV.
//!
//! A notification waits in a queue of its own at the port towards the sender, apart from packets. It leaves at the end of the
//! next frame that has room for it, or in an empty frame when the port is idle; the next switch takes it off and does the same.

use crate::DropReason;
use fanin_packet::{DropNotice, Framing, IpVersion, Notification, Operation, Packet, Protocol, TcpFlags};
use fanin_params::{choice, names, params};
use fanin_units::Bytes;
use std::collections::VecDeque;

names! {
    /// What a notification asks of the sender.
    pub enum Operations {
        /// Send the packet again and reduce the window. Source: PDN §IV.
        "retransmit_and_halve" => RetransmitAndHalve,
        /// Send the packet again; the window stays.
        "retransmit" => Retransmit,
    }
}

params! {
    /// Senders are told nothing.
    pub struct NoNotification { }
}

params! {
    /// Packet drop notification: the sender is told at once what was dropped. Source: PDN §IV.
    pub struct PdnParams {
        /// Room of each port's notification queue, 20 bytes each, or 44 with IPv6; what does not fit is lost and counted.
        /// Source: PDN §V (20 bytes sufficed in its simulations).
        pub queue: Bytes = Bytes(2_000), in Bytes(20)..=Bytes(1_000_000);
        /// What the sender is asked to do.
        pub operation: Operations = Operations::RetransmitAndHalve;
        /// Whether to tell of acknowledgments without data as well: their sender acknowledges again. Without, one that was the
        /// last of a window costs the other end a timeout.
        pub acks: bool = true;
        /// The largest frame: a notification waits while the next one, with it, would be larger. Source: IEEE 802.3 §3.2.7
        /// (1518 bytes).
        pub max_frame: Bytes = Bytes(1_518), in Bytes(84)..=Bytes(65_535);
        /// Switches and hosts that know nothing of notifications, by name, `*` stands for anything: they tell of no drops,
        /// and a notification that would have to cross one is lost and counted.
        pub unaware: Vec<String> = Vec::new();
        /// Probability that a notification is lost on each link that it crosses, whatever the reason; the frame that carries it
        /// arrives.
        pub loss: f64 = 0.0, in 0.0..=1.0;
    }
}

choice! {
    /// Whether senders are told of packets that are dropped for want of room.
    pub enum NotificationConfig {
        /// They are not.
        "none" => None(NoNotification),
        /// By packet drop notifications.
        "pdn" => Pdn(PdnParams),
    }
}

impl PdnParams {
    /// The operation as notifications carry it.
    pub fn operation(&self) -> Operation {
        match self.operation {
            Operations::RetransmitAndHalve => Operation::RETRANSMIT_AND_HALVE,
            Operations::Retransmit => Operation::RETRANSMIT,
        }
    }
}

/// Whether the sender is told of a packet that was dropped for `reason`: of congestion, not of packets that lost their way.
pub fn tells_of(reason: DropReason) -> bool {
    reason != DropReason::TTL && reason != DropReason::NO_ROUTE
}

/// What is told of a dropped packet; none where there is nothing to send again: datagrams, RST, and acknowledgments without
/// data unless `acks`.
///
/// SYN and FIN have a payload length of zero. Deviation: the paper has the sender retransmit "from the TCP transmitting
/// buffer", where no acknowledgment is; one is told of by its acknowledgment number, with an operation of its own.
pub fn notice_of(p: &Packet, operation: Operation, acks: bool) -> Option<DropNotice> {
    if p.protocol() != Protocol::Tcp || p.flags.has(TcpFlags::RST) {
        return None;
    }
    if p.payload > 0 || p.flags.has(TcpFlags::SYN) || p.flags.has(TcpFlags::FIN) {
        return Some(DropNotice { seq: p.seq, length: p.payload, operation });
    }
    acks.then_some(DropNotice { seq: p.ack, length: 0, operation: Operation::ACKNOWLEDGE })
}

/// Frame bytes of a frame with a notification and nothing else.
pub fn empty_frame(framing: &Framing) -> u16 {
    (framing.header + framing.ip.notice()).max(framing.min_frame)
}

/// The notification queue of one port.
#[derive(Clone, Debug)]
pub struct NoticeQueue {
    waiting: VecDeque<Notification>,
    /// Notifications that may wait.
    most: usize,
    /// Bytes of each.
    bytes: u16,
    max_frame: u16,
    peak: usize,
}

impl NoticeQueue {
    /// An empty queue for notifications of packets of `ip`.
    pub fn new(params: &PdnParams, ip: IpVersion) -> Self {
        NoticeQueue {
            waiting: VecDeque::new(),
            most: (params.queue.get() / u64::from(ip.notice())) as usize,
            bytes: ip.notice(),
            max_frame: params.max_frame.get() as u16,
            peak: 0,
        }
    }

    /// A notification joins; false when there is no room for it.
    pub fn push(&mut self, notification: Notification) -> bool {
        let fits = self.waiting.len() < self.most;
        if fits {
            self.waiting.push_back(notification);
            self.peak = self.peak.max(self.waiting.len());
        }
        fits
    }

    /// A frame of `frame` bytes is next on the wire: the notification that goes with it, if one waits and there is room.
    pub fn attach(&mut self, frame: u16) -> Option<Notification> {
        let room = u32::from(frame) + u32::from(self.bytes) <= u32::from(self.max_frame);
        if room {
            self.waiting.pop_front()
        } else {
            None
        }
    }

    /// The port has no frame to send: the notification that leaves in an empty one, if one waits.
    pub fn attach_to_nothing(&mut self) -> Option<Notification> {
        self.waiting.pop_front()
    }

    /// Notifications that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Bytes of the most that ever waited.
    pub fn peak_bytes(&self) -> Bytes {
        Bytes(self.peak as u64 * u64::from(self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_packet::{Side, Timestamps};
    use fanin_units::{FlowId, HostId};

    fn params() -> PdnParams {
        PdnParams {
            queue: Bytes(79),
            operation: Operations::Retransmit,
            acks: true,
            max_frame: Bytes(1_518),
            unaware: Vec::new(),
            loss: 0.0,
        }
    }

    fn notification(seq: u32) -> Notification {
        let notice = DropNotice { seq, length: 1_000, operation: Operation::RETRANSMIT };
        let (sender, receiver) = (HostId(1), HostId(2));
        Notification { flow: FlowId(7), to: Side::Initiator, sender, receiver, hash: 9, notice, ttl: 3 }
    }

    #[test]
    fn the_queue_is_bounded_and_keeps_its_order() {
        let mut queue = NoticeQueue::new(&params(), IpVersion::V4);
        let joined: Vec<bool> = (0..5).map(|seq| queue.push(notification(seq))).collect();
        assert_eq!(joined, [true, true, true, false, false]); // three times 20 of 79 bytes
        assert_eq!((queue.len(), queue.peak_bytes()), (3, Bytes(60)));
        assert_eq!(queue.attach(1_498).unwrap().notice.seq, 0);
        assert!(queue.push(notification(9)));
        let left: Vec<u32> = std::iter::from_fn(|| queue.attach_to_nothing()).map(|n| n.notice.seq).collect();
        assert_eq!(left, [1, 2, 9]);
        assert!(queue.is_empty() && queue.attach(64).is_none());
        assert_eq!(queue.peak_bytes(), Bytes(60));
    }

    #[test]
    fn a_full_frame_carries_none() {
        let mut queue = NoticeQueue::new(&params(), IpVersion::V4);
        queue.push(notification(1));
        assert_eq!(queue.attach(1_499), None);
        assert_eq!(queue.attach(u16::MAX), None);
        assert_eq!(queue.attach(1_498), Some(notification(1)));
    }

    /// Addresses of 16 bytes make a notification 44 bytes long: one of 79, and a frame of 1518 − 44.
    #[test]
    fn notifications_of_ipv6_take_more_room() {
        let mut queue = NoticeQueue::new(&params(), IpVersion::V6);
        assert_eq!([1, 2].map(|seq| queue.push(notification(seq))), [true, false]);
        assert_eq!((queue.len(), queue.peak_bytes()), (1, Bytes(44)));
        assert_eq!(queue.attach(1_475), None);
        assert_eq!(queue.attach(1_474), Some(notification(1)));
    }

    #[test]
    fn what_can_be_sent_again_is_told_of() {
        let told = |flags: TcpFlags, payload| {
            let mut p = Packet::default();
            p.set_tcp(flags, 77, 5, 6, payload);
            p.set_timestamps(Timestamps { value: 1, echo: 2 });
            notice_of(&p, Operation::RETRANSMIT_AND_HALVE, true).map(|n| (n.seq, n.length, n.operation))
        };
        let halve = Operation::RETRANSMIT_AND_HALVE;
        assert_eq!(told(TcpFlags::ACK, 1_000), Some((77, 1_000, halve)));
        assert_eq!(told(TcpFlags::SYN, 0), Some((77, 0, halve)));
        assert_eq!(told(TcpFlags::ACK.with(TcpFlags::FIN), 0), Some((77, 0, halve)));
        assert_eq!(told(TcpFlags::ACK, 0), Some((5, 0, Operation::ACKNOWLEDGE)));
        assert_eq!(told(TcpFlags::ACK.with(TcpFlags::RST), 0), None);
        let mut p = Packet::default();
        p.set_tcp(TcpFlags::ACK, 77, 5, 6, 0);
        assert_eq!(notice_of(&p, halve, false), None);
        p.set_udp(3, 1_000);
        assert_eq!(notice_of(&p, halve, true), None);
    }

    #[test]
    fn congestion_is_told_of_and_a_lost_way_is_not() {
        assert!(tells_of(DropReason::BUFFER_FULL) && tells_of(DropReason("red_early")));
        assert!(!tells_of(DropReason::TTL) && !tells_of(DropReason::NO_ROUTE));
    }

    #[test]
    fn an_empty_frame_is_a_minimum_frame() {
        assert_eq!(empty_frame(&Framing::ETHERNET), 64);
        assert_eq!(empty_frame(&Framing { ip: IpVersion::V6, ..Framing::ETHERNET }), 64);
        assert_eq!(empty_frame(&Framing { header: 22, ip: IpVersion::V6, ..Framing::ETHERNET }), 66);
        assert_eq!(empty_frame(&Framing { header: 18, min_frame: 0, ..Framing::ETHERNET }), 38);
    }
}
