//! Written data as messages and packets. Packets are numbered from 0; a message consists of consecutive packets, and so does
//! a write.

use std::collections::VecDeque;

/// One write call of the application.
#[derive(Clone, Copy, Debug)]
struct Write {
    /// First packet of the write, and offset of its first byte in the stream.
    packet: u64,
    offset: u64,
    bytes: u64,
}

/// Part of the stream that a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub offset: u64,
    pub length: u16,
    /// True if the packet is the first, or the last, of its message.
    pub first: bool,
    pub last: bool,
    /// Size of the message.
    pub message: u32,
}

/// All data written and not yet acknowledged.
#[derive(Clone, Debug)]
pub struct Messages {
    mtu: u64,
    /// Number of packets of a full message.
    per_message: u64,
    writes: VecDeque<Write>,
    /// Total number of packets and bytes written.
    packets: u64,
    bytes: u64,
}

impl Messages {
    pub fn new(mtu: u16, per_message: u64) -> Self {
        Messages { mtu: u64::from(mtu), per_message, writes: VecDeque::new(), packets: 0, bytes: 0 }
    }

    /// Appends a write of the application.
    pub fn write(&mut self, bytes: u64) {
        if bytes > 0 {
            self.writes.push_back(Write { packet: self.packets, offset: self.bytes, bytes });
            self.packets += bytes.div_ceil(self.mtu);
            self.bytes += bytes;
        }
    }

    /// Fetches the memory of the first write.
    #[inline(always)]
    pub fn apart(&self, fetch: &impl Fn(*const u8)) {
        fetch(self.writes.as_slices().0.as_ptr().cast());
    }

    /// Total number of packets written.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Total number of bytes written.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The write that a packet is of: nearly always the last one.
    #[inline]
    fn find(&self, packet: u64) -> Option<&Write> {
        match self.writes.back() {
            Some(last) if last.packet <= packet => Some(last),
            _ => self.find_earlier(packet),
        }
    }

    #[inline(never)]
    fn find_earlier(&self, packet: u64) -> Option<&Write> {
        self.writes.iter().rev().find(|write| write.packet <= packet)
    }

    /// Offset of a packet's first byte; for the one behind the last, the end of the data.
    #[inline]
    pub fn offset(&self, packet: u64) -> u64 {
        match self.find(packet) {
            Some(write) if packet < self.packets => write.offset + (packet - write.packet) * self.mtu,
            _ => self.bytes,
        }
    }

    /// Part of the stream that a written packet carries.
    #[inline]
    pub fn piece(&self, packet: u64) -> Piece {
        let Some(write) = self.find(packet) else { return Piece { offset: 0, length: 0, first: true, last: true, message: 0 } };
        let nth = packet - write.packet;
        let at = nth * self.mtu;
        let length = self.mtu.min(write.bytes - at);
        let place = if nth < self.per_message { nth } else { nth % self.per_message };
        let begun = at - place * self.mtu;
        let ends = at + length == write.bytes;
        Piece {
            offset: write.offset + at,
            length: length as u16,
            first: place == 0,
            last: ends || place + 1 == self.per_message,
            message: (write.bytes - begun).min(self.per_message * self.mtu) as u32,
        }
    }

    /// Drops writes all of whose packets are before `before`, which are acknowledged.
    pub fn forget(&mut self, before: u64) {
        while self.writes.get(1).is_some_and(|next| next.packet <= before) {
            self.writes.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_cut_into_messages_and_packets() {
        let mut m = Messages::new(1_024, 2);
        m.write(5_000);
        m.write(0);
        m.write(100);
        assert_eq!((m.packets(), m.bytes()), (6, 5_100));
        let seen: Vec<_> = (0..6).map(|i| m.piece(i)).map(|p| (p.offset, p.length, p.first, p.last, p.message)).collect();
        let expected = [
            (0, 1_024, true, false, 2_048),
            (1_024, 1_024, false, true, 2_048),
            (2_048, 1_024, true, false, 2_048),
            (3_072, 1_024, false, true, 2_048),
            (4_096, 904, true, true, 904),
            (5_000, 100, true, true, 100),
        ];
        assert_eq!(seen, expected);
        assert_eq!([0, 4, 5, 6].map(|i| m.offset(i)), [0, 4_096, 5_000, 5_100]);
        m.forget(5);
        assert_eq!((m.writes.len(), m.piece(5).offset), (1, 5_000));
        m.write(1);
        assert_eq!((m.piece(6).offset, m.offset(6), m.offset(7)), (5_100, 5_100, 5_101));
    }
}
