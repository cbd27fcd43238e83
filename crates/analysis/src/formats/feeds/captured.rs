//! Captures of datagrams that carry telemetry: the frames of a pcap or a pcapng as they come, and what is done with wrong ones.
//!
//! Source: pcap (header, records), pcapng (section headers, interfaces with `if_tsresol`, enhanced packet blocks).

use super::Feed;
use crate::display::{count, was};
use crate::input::problem::Problem;
use fanin_wire::{Headers, LinkType};

/// Picoseconds in a second.
const S: u128 = 1_000_000_000_000;
/// Interfaces of a section of pcapng, at most.
const INTERFACES: usize = 1 << 12;

/// A captured packet.
pub struct Packet<'a> {
    pub time: u128,
    pub link: LinkType,
    pub data: &'a [u8],
}

/// A capture's byte order, and the kinds of its interfaces, each with the ticks of its clock in a second.
#[derive(Clone, Debug)]
struct Capture {
    big_endian: bool,
    /// True of pcapng, whose interfaces come among the packets.
    blocks: bool,
    interfaces: Vec<(LinkType, u128)>,
    /// Ticks in a second of the finest clock.
    finest: u128,
    /// Time of the latest packet [ps].
    last: u128,
}

impl Capture {
    fn new(big_endian: bool, blocks: bool) -> Capture {
        Capture { big_endian, blocks, interfaces: Vec::new(), finest: 0, last: 0 }
    }

    fn add(&mut self, link: LinkType, ticks: u128) {
        self.interfaces.push((link, ticks));
        self.finest = self.finest.max(ticks);
    }

    /// The time of a packet that an interface read at so many ticks of its clock [ps].
    ///
    /// A clock of larger ticks shows the begin of one: in a capture that has a finer clock, too, the packet is as late in it as the order of
    /// packets says.
    fn time(&mut self, at: u128, ticks: u128) -> u128 {
        let (mut time, next) = (at * S / ticks, (at + 1) * S / ticks);
        let is_behind = time <= self.last && self.last < next;
        if is_behind && self.finest > ticks {
            time = (self.last + 1).min(next - 1);
        }
        self.last = self.last.max(time);
        time
    }

    /// Reads the header at the start of a file, and gives its length.
    fn of(start: &[u8]) -> Option<(Capture, usize)> {
        let magic: [u8; 4] = *start.first_chunk()?;
        let (big_endian, ticks) = match magic {
            [0xd4, 0xc3, 0xb2, 0xa1] => (false, 1_000_000),
            [0x4d, 0x3c, 0xb2, 0xa1] => (false, 1_000_000_000),
            [0xa1, 0xb2, 0xc3, 0xd4] => (true, 1_000_000),
            [0xa1, 0xb2, 0x3c, 0x4d] => (true, 1_000_000_000),
            [0x0a, 0x0d, 0x0d, 0x0a] => return Some((Capture::new(false, true), 0)),
            _ => return None,
        };
        let mut capture = Capture::new(big_endian, false);
        let link = capture.word(start, 20)?;
        capture.add(LinkType::of(link & 0xffff), ticks);
        Some((capture, 24))
    }

    fn word(&self, bytes: &[u8], at: usize) -> Option<u32> {
        let word = *bytes.get(at..)?.first_chunk()?;
        Some(if self.big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) })
    }

    fn half(&self, bytes: &[u8], at: usize) -> Option<u16> {
        let half = *bytes.get(at..)?.first_chunk()?;
        Some(if self.big_endian { u16::from_be_bytes(half) } else { u16::from_le_bytes(half) })
    }

    /// The record at the front of bytes, as far as it has come: its length, and the packet in it.
    fn record<'a>(&mut self, bytes: &'a [u8]) -> Option<(usize, Option<Packet<'a>>)> {
        if self.blocks {
            return self.block(bytes);
        }
        let word = |at: usize| self.word(bytes, at);
        let (seconds, fraction, length) = (word(0)?, word(4)?, word(8)? as usize);
        let data = bytes.get(16..)?;
        let data = &data[..length.min(data.len())];
        let (link, ticks) = *self.interfaces.first()?;
        let time = u128::from(seconds) * S + u128::from(fraction) * (S / ticks);
        Some((16 + length, Some(Packet { time, link, data })))
    }

    fn block<'a>(&mut self, bytes: &'a [u8]) -> Option<(usize, Option<Packet<'a>>)> {
        if bytes.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) {
            // A section says its own order of bytes, and its interfaces anew.
            self.big_endian = bytes.get(8..12)? == [0x1a, 0x2b, 0x3c, 0x4d];
            self.interfaces.clear();
        }
        let (kind, length) = (self.word(bytes, 0)?, self.word(bytes, 4)? as usize);
        // A block of less than its own frame is none: nothing behind it can be found.
        let length = length.max(12).next_multiple_of(4);
        let body = bytes.get(8..)?;
        let body = &body[..body.len().min(length - 12)];
        let packet = match kind {
            1 if self.interfaces.len() < INTERFACES => {
                let link = LinkType::of(u32::from(self.half(body, 0)?));
                let ticks = self.ticks(body.get(8..).unwrap_or_default());
                self.add(link, ticks);
                None
            }
            6 => {
                let word = |at: usize| self.word(body, at);
                let (interface, high, low) = (word(0)? as usize, word(4)?, word(8)?);
                let captured = word(12)? as usize;
                let data = body.get(20..)?;
                let (link, ticks) = *self.interfaces.get(interface)?;
                let time = self.time(u128::from(high) << 32 | u128::from(low), ticks);
                Some(Packet { time, link, data: &data[..captured.min(data.len())] })
            }
            _ => None,
        };
        Some((length, packet))
    }

    /// Ticks in a second of an interface with these options: 10^6, unless `if_tsresol` (9) says otherwise.
    fn ticks(&self, mut options: &[u8]) -> u128 {
        while let (Some(code @ 1..), Some(length)) = (self.half(options, 0), self.half(options, 2)) {
            match (code, options.get(4)) {
                (9, Some(of_two @ 0x80..)) => return 1 << (of_two & 0x7f).min(63),
                (9, Some(of_ten)) => return 10_u128.pow(u32::from(*of_ten).min(18)),
                _ => {}
            }
            options = options.get(4 + usize::from(length).next_multiple_of(4)..).unwrap_or_default();
        }
        1_000_000
    }
}

/// Header of a capture in which datagrams are put that a socket received.
pub const RECEIVED: [u8; 24] = [0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 101, 0, 0, 0];

/// A datagram that a socket received at a UDP port at a time [ns since 1970], as a record of such a capture.
pub fn received(datagram: &[u8], port: u16, ns: u64) -> Vec<u8> {
    let length = datagram.len() + 8 + 20;
    let mut record = Vec::with_capacity(16 + length);
    let (seconds, fraction) = ((ns / 1_000_000_000) as u32, (ns % 1_000_000_000) as u32);
    record.extend([seconds, fraction, length as u32, length as u32].into_iter().flat_map(u32::to_le_bytes));
    // IPv4, then UDP: what the socket took off.
    record.extend([0x45, 0]);
    record.extend((length as u16).to_be_bytes());
    record.extend([0, 0, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
    record.extend([port, port, (datagram.len() + 8) as u16, 0].into_iter().flat_map(u16::to_be_bytes));
    record.extend(datagram);
    record
}

/// The first packet at the start of a file, as far as the start goes.
pub fn first_packet(start: &[u8]) -> Option<Packet<'_>> {
    let (mut capture, mut at) = Capture::of(start)?;
    loop {
        let (length, packet) = capture.record(start.get(at..)?)?;
        if packet.is_some() {
            return packet;
        }
        at += length;
    }
}

/// The UDP datagram in a packet.
pub fn datagram<'a>(packet: &Packet<'a>) -> Option<(Headers, &'a [u8])> {
    let headers = Headers::parse(packet.link, packet.data)?;
    datagram_in(&headers, packet.data).map(|datagram| (headers, datagram))
}

/// The UDP datagram in a frame with these headers.
pub fn datagram_in<'a>(headers: &Headers, frame: &'a [u8]) -> Option<&'a [u8]> {
    let is_udp = headers.protocol == 17 && !headers.fragment;
    is_udp.then(|| frame.get(headers.transport_at + 8..headers.end.min(frame.len()))).flatten()
}

/// Datagrams that were read, and those that are wrong: these are counted, and the first is named.
#[derive(Debug, Default)]
pub struct Wrong {
    read: u64,
    wrong: u64,
    first: Option<Problem>,
}

impl Wrong {
    /// Takes what came of a datagram: true if it was read, false if it was of something else.
    ///
    /// # Errors
    /// It is wrong, and the stream is live, where others count; or the user is asked for something.
    pub fn take(&mut self, read: Result<bool, Problem>, feed: &Feed<'_>) -> Result<bool, Problem> {
        match read {
            Ok(read) => {
                self.read += u64::from(read);
                Ok(read)
            }
            // What comes with a suggestion is asked of the user.
            Err(problem) if problem.suggestion.is_some() => Err(problem),
            Err(problem) => {
                self.wrong += 1;
                self.first.get_or_insert_with(|| problem.clone());
                if feed.context.is_live() {
                    Err(problem)
                } else {
                    Ok(true)
                }
            }
        }
    }

    /// Refuses a stream most of whose datagrams are wrong.
    ///
    /// # Errors
    /// The first that is, with the number of all.
    pub fn end(&self) -> Result<(), Problem> {
        let (Some(first), true) = (&self.first, self.wrong >= self.read) else { return Ok(()) };
        let all = self.wrong + self.read;
        let what =
            format!("{} of {all} datagrams are wrong, this one first: a capture needs whole packets (tcpdump -s 0)", self.wrong);
        Err(first.clone().suggestion(what))
    }

    /// Adds the note on datagrams that are wrong.
    pub fn note(&self, notes: &mut Vec<String>) {
        let Some(first) = &self.first else { return };
        let datagrams = if self.wrong == 1 { "datagram is" } else { "datagrams are" };
        notes.push(format!("{} {datagrams} wrong, and not read from that place on; the first: {first}", self.wrong));
    }
}

/// Packets of a stream that is a capture, or none where it is messages one behind another.
#[derive(Debug, Default)]
pub struct Packets {
    begun: bool,
    capture: Option<Capture>,
    /// Packets so far.
    count: u64,
    /// Packets of something else.
    others: u64,
    pub wrong: Wrong,
}

impl Packets {
    /// Hands each packet over that has come whole; gives the number of bytes done with, or none where the stream is no capture. `end`: no more
    /// comes; `what`: the name of what is sought; `each` tells whether it read the packet.
    ///
    /// # Errors
    /// See [`Wrong::take`] and [`Wrong::end`].
    pub fn read<'a>(
        &mut self,
        bytes: &[u8],
        (end, what): (bool, &str),
        feed: &mut Feed<'a>,
        mut each: impl FnMut(&Packet<'_>, &mut Feed<'a>) -> Result<bool, Problem>,
    ) -> Result<Option<usize>, Problem> {
        let mut at = 0;
        if !self.begun {
            if bytes.len() < 24 && !end {
                return Ok(Some(0));
            }
            self.begun = true;
            if let Some((capture, header)) = Capture::of(bytes) {
                (self.capture, at) = (Some(capture), header);
            }
        }
        let Some(capture) = &mut self.capture else { return Ok(None) };
        while let Some((length, packet)) = capture.whole(&bytes[at..]) {
            at += length;
            feed.pass(at);
            let Some(packet) = packet else { continue };
            self.count += 1;
            let read = each(&packet, feed).map_err(|problem| problem.place(format!("packet {}", self.count)));
            if !self.wrong.take(read, feed)? && !feed.notice(&packet) {
                self.others += 1;
            }
        }
        if end {
            self.wrong.end()?;
            if self.count > 0 && self.others == self.count {
                let problem = Problem::new(format!("is no {what}: none of its packets is, {} in all", self.count));
                return Err(problem.accepted("captures of datagrams to the ports that the format's page names"));
            }
        }
        Ok(Some(at))
    }

    /// Adds notes on packets that are wrong, and on those of something else than `what`.
    pub fn notes(&self, what: &str, notes: &mut Vec<String>) {
        self.wrong.note(notes);
        let others = self.others;
        notes.extend((others > 0).then(|| {
            let (packets, were) = (count(others, "packet"), was(others));
            format!("{packets} of the capture {were} no {what}, and {were} passed over")
        }));
    }
}

impl Capture {
    /// The record at the front of bytes, if it has come whole.
    fn whole<'a>(&mut self, bytes: &'a [u8]) -> Option<(usize, Option<Packet<'a>>)> {
        let length = if self.blocks {
            // The order of bytes of a section stands within it.
            let big_endian = if bytes.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) {
                bytes.get(8..12)? == [0x1a, 0x2b, 0x3c, 0x4d]
            } else {
                self.big_endian
            };
            let probe = Capture::new(big_endian, true);
            (probe.word(bytes, 4)? as usize).max(12).next_multiple_of(4)
        } else {
            16_usize.checked_add(self.word(bytes, 8)? as usize)?
        };
        let whole = bytes.get(..length)?;
        Some(self.record(whole).unwrap_or((length, None)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of pcapng.
    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let length = (12 + body.len().next_multiple_of(4)) as u32;
        let pad = vec![0; body.len().next_multiple_of(4) - body.len()];
        [&kind.to_le_bytes()[..], &length.to_le_bytes(), body, &pad, &length.to_le_bytes()].concat()
    }

    fn interface(digits: u8) -> Vec<u8> {
        block(1, &[1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, digits, 0, 0, 0, 0, 0, 0, 0])
    }

    fn packet(interface: u32, at: u64) -> Vec<u8> {
        let words = [interface, (at >> 32) as u32, at as u32, 4, 4, 7];
        block(6, &words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>())
    }

    fn times(digits: [u8; 2], packets: &[(u32, u64)]) -> Vec<u128> {
        let section = block(0x0a0d_0d0a, &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
        let packets: Vec<u8> = packets.iter().flat_map(|(interface, at)| packet(*interface, *at)).collect();
        let bytes = [section, interface(digits[0]), interface(digits[1]), packets].concat();
        let (mut capture, mut at) = Capture::of(&bytes).unwrap();
        let mut times = Vec::new();
        while let Some((length, packet)) = capture.whole(&bytes[at..]) {
            at += length;
            times.extend(packet.map(|packet| packet.time));
        }
        times
    }

    #[test]
    fn a_clock_of_microseconds_beside_one_of_nanoseconds_goes_not_back() {
        // 5,700 ns, then 5 us by the other: it was within that microsecond, and behind the packet before.
        let told = times([9, 6], &[(0, 5_700), (1, 5), (0, 5_900), (1, 5), (1, 6), (0, 6_100)]);
        assert_eq!(told, [5_700_000, 5_700_001, 5_900_000, 5_900_001, 6_000_000, 6_100_000]);
        // A microsecond or more is no rounding, nor is anything in one clock alone, or in the finer one.
        assert_eq!(times([9, 6], &[(0, 7_000), (1, 6)]), [7_000_000, 6_000_000]);
        assert_eq!(times([6, 6], &[(0, 7), (1, 7), (0, 6)]), [7_000_000, 7_000_000, 6_000_000]);
        assert_eq!(times([9, 6], &[(1, 7), (0, 6_999)]), [7_000_000, 6_999_000]);
    }
}
