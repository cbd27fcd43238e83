//! PDN's decisions at a switch: which drops are notified, what a queue takes, and how a notification leaves. Source: PDN §IV.

/// Drop notifications of IPv4 and of IPv6, the first byte behind the length. Source: PDN fig. 3, which gives no values.
pub const DROP_IPV4: u8 = 1;
pub const DROP_IPV6: u8 = 2;

/// Operations: one byte on the wire. The paper names the field and one action and leaves values open; zero stays unused, so that
/// an empty byte is no order.
pub const RETRANSMIT_AND_HALVE: u8 = 1;
pub const RETRANSMIT: u8 = 2;
/// For an acknowledgment without data: acknowledge again. Deviation: the paper has the sender retransmit "from the TCP
/// transmitting buffer", where no acknowledgment is.
pub const ACKNOWLEDGE: u8 = 3;

/// EtherTypes of frames with a notification, of IPv4 and of IPv6; the paper has only the first, and neither is registered.
/// Source: PDN §IV (0xA800).
pub const IPV4_WITH_NOTICE: u16 = 0xA800;
pub const IPV6_WITH_NOTICE: u16 = 0xA6DD;

/// Bytes behind addresses and ports: sequence number 4, length 2, type 1, operation 1. Source: PDN fig. 3.
pub const FIELDS: usize = 8;

/// Part of a packet that its sender would have to repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Bytes of data, or SYN or FIN.
    Data,
    /// An acknowledgment alone.
    Acknowledgment,
}

/// Policy of a switch on the drops that it notifies senders of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raising {
    /// True: notify of acknowledgments without data as well.
    pub acks: bool,
    /// True: ask for a smaller window; false: for the packet alone.
    pub halve: bool,
}

impl Raising {
    /// Operation that the notification of a drop asks for; none: the drop is not notified. `congestion`: the packet found no room,
    /// rather than no way. `lost`: none for packets that nobody repeats.
    pub fn operation(&self, congestion: bool, lost: Option<Lost>) -> Option<u8> {
        match lost.filter(|_| congestion)? {
            Lost::Acknowledgment => self.acks.then_some(ACKNOWLEDGE),
            Lost::Data if self.halve => Some(RETRANSMIT_AND_HALVE),
            Lost::Data => Some(RETRANSMIT),
        }
    }
}

/// Hops that a notification has left behind the switch that took it off a frame; none: it has expired.
pub fn hops_left(ttl: u8) -> Option<u8> {
    ttl.checked_sub(1).filter(|left| *left > 0)
}

/// Bounds of a port's notification queue and of the frames that carry notifications.
///
/// | register | width | unit |
/// |---|---|---|
/// | room | 32 | B |
/// | each | 8 | B |
/// | largest | 16 | B |
/// | waiting | 16 | notifications |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Memory of the queue [B].
    pub room: u32,
    /// A notification [B]: 20, or 44 with IPv6.
    pub each: u8,
    /// Largest frame, its notification included [B].
    pub largest: u16,
}

impl Bounds {
    /// True if one more notification has room in a queue of `waiting`.
    pub fn takes(&self, waiting: u32) -> bool {
        (u64::from(waiting) + 1) * u64::from(self.each) <= u64::from(self.room)
    }

    /// True if the first notification of a queue of `waiting` goes at the end of a frame of `frame` bytes that leaves now.
    #[inline]
    pub fn attaches(&self, waiting: u32, frame: u16) -> bool {
        waiting > 0 && u32::from(frame) + u32::from(self.each) <= u32::from(self.largest)
    }

    /// True if the first notification of a queue of `waiting` leaves in an empty frame, now that the wire is free. `data`: a packet
    /// may be sent, which goes first and takes the notification with it.
    #[inline]
    pub fn goes_alone(&self, waiting: u32, data: bool) -> bool {
        waiting > 0 && !data
    }
}

/// Writes what a notification has behind addresses and ports: sequence number, length, type, operation.
pub fn fields(number: u32, length: u16, kind: u8, operation: u8) -> [u8; FIELDS] {
    let ([a, b, c, d], [high, low]) = (number.to_be_bytes(), length.to_be_bytes());
    [a, b, c, d, high, low, kind, operation]
}

/// Contents of a notification, for the host that it goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    pub number: u32,
    pub length: u16,
    pub lost: Lost,
    /// True if the window is to be reduced.
    pub reduce: bool,
}

/// Reads a notification; none if it is too short or asks for an operation that is not defined.
pub fn read(notification: &[u8]) -> Option<Contents> {
    let [.., a, b, c, d, high, low, _, operation] = *notification else { return None };
    let (lost, reduce) = match operation {
        RETRANSMIT_AND_HALVE => (Lost::Data, true),
        RETRANSMIT => (Lost::Data, false),
        ACKNOWLEDGE => (Lost::Acknowledgment, false),
        _ => return None,
    };
    Some(Contents { number: u32::from_be_bytes([a, b, c, d]), length: u16::from_be_bytes([high, low]), lost, reduce })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { room: 79, each: 20, largest: 1_518 };

    #[test]
    fn a_queue_of_79_bytes_takes_three() {
        assert_eq!([0, 1, 2, 3, u32::MAX].map(|waiting| BOUNDS.takes(waiting)), [true, true, true, false, false]);
        assert!(Bounds { room: 80, ..BOUNDS }.takes(3), "the fourth fits exactly");
    }

    #[test]
    fn a_frame_carries_one_where_it_has_room() {
        assert_eq!([1_498, 1_499, u16::MAX].map(|frame| BOUNDS.attaches(1, frame)), [true, false, false]);
        assert!(!BOUNDS.attaches(0, 64));
        assert!(BOUNDS.goes_alone(1, false) && !BOUNDS.goes_alone(1, true) && !BOUNDS.goes_alone(0, false));
    }

    #[test]
    fn congestion_alone_is_notified() {
        let raising = |acks, halve| Raising { acks, halve };
        for (raising, data, ack) in [
            (raising(true, true), Some(1), Some(3)),
            (raising(true, false), Some(2), Some(3)),
            (raising(false, true), Some(1), None),
            (raising(false, false), Some(2), None),
        ] {
            assert_eq!(raising.operation(true, Some(Lost::Data)), data);
            assert_eq!(raising.operation(true, Some(Lost::Acknowledgment)), ack);
            assert_eq!([Some(Lost::Data), Some(Lost::Acknowledgment)].map(|lost| raising.operation(false, lost)), [None; 2]);
            assert_eq!(raising.operation(true, None), None);
        }
    }

    #[test]
    fn the_last_hop_is_the_last() {
        assert_eq!([0, 1, 2, 64, 255].map(hops_left), [None, None, Some(1), Some(63), Some(254)]);
    }

    #[test]
    fn fields_are_read_as_they_were_written() {
        let bytes = fields(0x0102_0304, 1_000, DROP_IPV4, RETRANSMIT);
        assert_eq!(bytes, [1, 2, 3, 4, 0x03, 0xE8, 1, 2]);
        assert_eq!(read(&bytes), Some(Contents { number: 0x0102_0304, length: 1_000, lost: Lost::Data, reduce: false }));
        let told = |operation| read(&fields(1, 0, DROP_IPV6, operation)).map(|told| (told.lost, told.reduce));
        assert_eq!([0, 1, 3, 4].map(told), [None, Some((Lost::Data, true)), Some((Lost::Acknowledgment, false)), None]);
        assert_eq!(read(&bytes[1..]), None);
    }
}
