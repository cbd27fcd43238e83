//! Packets of one side that have been read, kept for the second reading: frames cost more to parse than rows.
//!
//! Rows stand in memory up to a bound, further ones in a file without a name. A row names its flow by a place in a small table; where
//! the table has another flow there, the new one follows the row, so that the memory does not grow with the flows.

use super::flight::Found;
use super::identity::{host, spread, Seen};
use super::matching::{Matching, Partner, Take};
use super::side::Passed;
use crate::capture::FlowKey;
use crate::input::problem::{Problem, Problems};
use crate::input::spill::Spill;
use std::collections::VecDeque;
use std::io::Error;
use std::net::IpAddr;
use std::sync::Arc;

/// Bytes of a block of rows, about, and number of blocks of a side that stay in memory: 2^20 packets. Tests have few packets, and some of
/// their rows in a file.
const BLOCK: usize = if cfg!(test) { 1 << 12 } else { 1 << 18 };
const IN_MEMORY: usize = if cfg!(test) { 3 } else { 64 };
/// Flows that rows name by their place.
const FLOWS: usize = 1 << 12;
/// Bytes of a row, of a time that is far from the last one, of a flow, and of a packet's number.
const ROW: usize = 16;
const FAR_TIME: usize = 16;
const FLOW: usize = 42;
const NUMBER: usize = 8;
/// Bytes of a row with all that may follow it.
const MOST: usize = ROW + FAR_TIME + FLOW + 2 * NUMBER;

/// Bits of a row: facts about the packet, and what follows: a flow, a time that is too far from the one before, the number of its partner that
/// is not the next one, and that of the partner's rival.
const MARKED: u8 = 1;
const HAS_DATA: u8 = 2;
const NEW_FLOW: u8 = 4;
const FAR: u8 = 8;
const PARTNER: u8 = 16;
const AWAY: u8 = 32;
const RIVAL: u8 = 64;
/// Bits of a flow.
const V6: u8 = 1;
const PORTS: u8 = 2;
const TENANT: u8 = 4;

/// A flow, with its hosts as numbers.
type Flow = (FlowKey, (u64, u64));

/// Rows of a side, and the frames that were passed over when it was read.
#[derive(Debug)]
pub struct Rows {
    blocks: Vec<Vec<u8>>,
    /// Ends of the blocks in the file [bytes].
    ends: Vec<u64>,
    file: Option<Spill>,
    packets: u64,
    passed: Passed,
}

/// Takes the packets of a side, in order of time.
#[derive(Debug)]
pub struct Keeper {
    blocks: Vec<Vec<u8>>,
    ends: Vec<u64>,
    file: Option<Spill>,
    block: Vec<u8>,
    flows: Vec<Option<FlowKey>>,
    latest: i128,
    /// Number of the partner that is next in order.
    partner: u64,
    packets: u64,
    /// There was no room for all.
    failed: bool,
}

impl Default for Keeper {
    fn default() -> Self {
        Keeper {
            blocks: Vec::new(),
            ends: Vec::new(),
            file: None,
            block: Vec::with_capacity(BLOCK),
            flows: vec![None; FLOWS],
            latest: 0,
            partner: 0,
            packets: 0,
            failed: false,
        }
    }
}

impl Keeper {
    /// Takes a packet, and behind the port its partner before it.
    #[inline]
    pub fn push(&mut self, seen: &Seen, partner: Option<Partner>) {
        if self.failed {
            return;
        }
        self.packets += 1;
        let place = spread(seen.hosts, seen.flow.3) as usize % FLOWS;
        let since = i64::try_from(seen.time - self.latest).ok();
        self.latest = seen.time;
        let known = self.flows[place] == Some(seen.flow);
        let away = partner.map(|partner| partner.number).filter(|number| *number != self.partner);
        let rival = partner.and_then(|partner| partner.rival);
        let flag = |is: bool, bit: u8| if is { bit } else { 0 };
        let flags = flag(seen.marked, MARKED)
            | flag(seen.has_data, HAS_DATA)
            | flag(!known, NEW_FLOW)
            | flag(since.is_none(), FAR)
            | flag(partner.is_some(), PARTNER)
            | flag(away.is_some(), AWAY)
            | flag(rival.is_some(), RIVAL);
        let facts = u64::from(seen.bytes) | (place as u64) << 32 | u64::from(flags) << 48 | u64::from(seen.ttl) << 56;
        let row = u128::from(since.unwrap_or(0) as u64) | u128::from(facts) << 64;
        self.block.extend_from_slice(&row.to_le_bytes());
        if since.is_none() {
            self.block.extend_from_slice(&seen.time.to_le_bytes());
        }
        if !known {
            self.flows[place] = Some(seen.flow);
            write_flow(&seen.flow, &mut self.block);
        }
        for number in [away, rival].into_iter().flatten() {
            self.block.extend_from_slice(&number.to_le_bytes());
        }
        if let Some(partner) = partner {
            self.partner = partner.number + 1;
        }
        if self.block.len() + MOST > BLOCK {
            self.next_block();
        }
    }

    fn next_block(&mut self) {
        if self.blocks.len() < IN_MEMORY {
            self.blocks.push(std::mem::replace(&mut self.block, Vec::with_capacity(BLOCK)));
        } else {
            // Without room the captures are read again.
            self.failed = self.spill().is_err();
            self.block.clear();
        }
    }

    fn spill(&mut self) -> Result<(), Error> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(Spill::new()?),
        };
        file.write(&self.block)?;
        self.ends.push(self.ends.last().copied().unwrap_or(0) + self.block.len() as u64);
        Ok(())
    }

    /// The rows of a side that passed over these frames; `None` where there was no room for them.
    pub fn finish(mut self, passed: Passed) -> Option<Arc<Rows>> {
        if !self.block.is_empty() {
            self.next_block();
        }
        let Keeper { blocks, ends, file, packets, failed, .. } = self;
        (!failed).then(|| Arc::new(Rows { blocks, ends, file, packets, passed }))
    }
}

fn write_flow((src, dst, protocol, ports, tenant): &FlowKey, bytes: &mut Vec<u8>) {
    let flag = |is: bool, bit: u8| if is { bit } else { 0 };
    let flags = flag(src.is_ipv6(), V6) | flag(ports.is_some(), PORTS) | flag(tenant.is_some(), TENANT);
    let (from, to) = ports.unwrap_or_default();
    for address in [src, dst] {
        bytes.extend_from_slice(&match address {
            IpAddr::V4(v4) => u128::from(v4.to_bits()).to_le_bytes(),
            IpAddr::V6(v6) => v6.to_bits().to_le_bytes(),
        });
    }
    bytes.extend_from_slice(&(u32::from(from) << 16 | u32::from(to)).to_le_bytes());
    bytes.extend_from_slice(&tenant.unwrap_or_default().to_le_bytes());
    bytes.extend_from_slice(&[*protocol, flags][..]);
}

fn long(bytes: &[u8], at: usize) -> u128 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u128::from_le_bytes(*b))
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u64::from_le_bytes(*b))
}

fn half(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u32::from_le_bytes(*b))
}

fn read_flow(bytes: &[u8]) -> Flow {
    let flags = bytes.get(41).copied().unwrap_or(0);
    let address = |at: usize| match long(bytes, at) {
        bits if flags & V6 > 0 => IpAddr::V6(bits.into()),
        bits => IpAddr::V4((bits as u32).into()),
    };
    let (src, dst) = (address(0), address(16));
    let (ports, tenant) = (half(bytes, 32), half(bytes, 36));
    let ports = (flags & PORTS > 0).then_some(((ports >> 16) as u16, ports as u16));
    let key = (src, dst, bytes.get(40).copied().unwrap_or(0), ports, (flags & TENANT > 0).then_some(tenant));
    (key, (host(src), host(dst)))
}

/// A packet, and behind the port its partner before it.
#[derive(Clone, Copy, Debug)]
pub struct Paired {
    pub seen: Seen,
    pub partner: Option<Partner>,
}

/// The packets of a side in order of time, read from rows.
pub struct Again {
    rows: Arc<Rows>,
    /// The block that is read next, and the place in the one before.
    block: usize,
    at: usize,
    /// The present block, if it is one of the file.
    buffer: Vec<u8>,
    flows: Vec<Option<Flow>>,
    latest: i128,
    /// Number of the partner that is next in order.
    partner: u64,
    given: u64,
    /// The packet that was read last, and true if it is the next one: it is written where it stays.
    next: Paired,
    ready: bool,
}

impl Again {
    fn new(rows: Arc<Rows>) -> Again {
        let flows = vec![None; FLOWS];
        let next = Paired { seen: Seen::NONE, partner: None };
        Again { rows, block: 0, at: 0, buffer: Vec::new(), flows, latest: 0, partner: 0, given: 0, next, ready: false }
    }

    /// Bytes that are left of the present block, or of the next one; empty at the end.
    fn rest(&mut self) -> Result<&[u8], Error> {
        let Rows { blocks, ends, file, .. } = &*self.rows;
        let length = match self.block.checked_sub(1) {
            None => 0,
            Some(present) => blocks.get(present).map_or(self.buffer.len(), Vec::len),
        };
        if self.at >= length {
            let in_file = self.block.checked_sub(blocks.len()).and_then(|index| Some((index, ends.get(index)?)));
            if let (Some((index, end)), Some(file)) = (in_file, file) {
                let from = index.checked_sub(1).map_or(0, |before| ends[before]);
                self.buffer.resize((end - from) as usize, 0);
                file.read(&mut self.buffer, from)?;
            } else if self.block >= blocks.len() {
                return Ok(&[]);
            }
            (self.block, self.at) = (self.block + 1, 0);
        }
        Ok(&blocks.get(self.block - 1).unwrap_or(&self.buffer)[self.at..])
    }

    /// Reads the next packet; false at the end.
    #[inline]
    fn read(&mut self) -> Result<bool, Error> {
        let (latest, mut number) = (self.latest, self.partner);
        let rest = self.rest()?;
        let Some(row) = rest.first_chunk::<ROW>().map(|row| u128::from_le_bytes(*row)) else { return Ok(false) };
        let (since, facts) = (row as i64, (row >> 64) as u64);
        let (place, flags, ttl) = ((facts >> 32) as usize % FLOWS, (facts >> 48) as u8, (facts >> 56) as u8);
        let mut size = ROW;
        let mut next = |bytes: usize| {
            size += bytes;
            size - bytes
        };
        let time = if flags & FAR > 0 { long(rest, next(FAR_TIME)) as i128 } else { latest + i128::from(since) };
        let flow = (flags & NEW_FLOW > 0).then(|| read_flow(&rest[next(FLOW)..]));
        if flags & AWAY > 0 {
            number = word(rest, next(NUMBER));
        }
        let rival = (flags & RIVAL > 0).then(|| word(rest, next(NUMBER)));
        let partner = (flags & PARTNER > 0).then_some(Partner { number, rival });
        self.at += size;
        self.latest = time;
        self.partner = number + u64::from(partner.is_some());
        if let Some(flow) = flow {
            self.flows[place] = Some(flow);
        }
        self.next.partner = partner;
        let next = &mut self.next.seen;
        if let Some((flow, hosts)) = &self.flows[place] {
            (next.flow, next.hosts) = (*flow, *hosts);
        }
        (next.time, next.bytes, next.ttl) = (time, facts as u32, ttl);
        (next.marked, next.has_data) = (flags & MARKED > 0, flags & HAS_DATA > 0);
        Ok(true)
    }

    #[inline]
    fn first(&mut self) -> Result<Option<&Paired>, Error> {
        if !self.ready {
            self.ready = self.read()?;
        }
        Ok(Some(&self.next).filter(|_| self.ready))
    }
}

/// Captures that are matched once more, as there was no room for their rows.
pub struct Live {
    matching: Matching,
    ahead: Ahead,
    ended: bool,
}

/// Packets of both sides that have been read and not handed over.
#[derive(Default)]
struct Ahead([VecDeque<Paired>; 2]);

impl Take for Ahead {
    fn before(&mut self, seen: &Seen) {
        self.0[0].push_back(Paired { seen: *seen, partner: None });
    }

    fn behind(&mut self, seen: &Seen, found: Option<&Found<u32>>) {
        self.0[1].push_back(Paired { seen: *seen, partner: found.map(Found::partner) });
    }
}

impl Live {
    fn first(&mut self, side: usize) -> Result<Option<&Paired>, Problems> {
        while self.ahead.0[side].is_empty() && !self.ended {
            self.ended = !self.matching.step(&mut self.ahead)?;
        }
        Ok(self.ahead.0[side].front())
    }
}

/// The packets of both sides, for the second reading: from rows, or once more from captures.
pub enum Packets {
    Rows(Box<[Again; 2]>),
    Captures(Box<Live>),
}

impl Packets {
    /// The packets of rows; where there are none, of captures.
    pub fn new(rows: Option<[Arc<Rows>; 2]>, matching: impl FnOnce() -> Matching) -> Packets {
        match rows {
            Some(rows) => Packets::Rows(Box::new(rows.map(Again::new))),
            None => Packets::Captures(Box::new(Live { matching: matching(), ahead: Ahead::default(), ended: false })),
        }
    }

    /// A reference to the next packet before (0) or behind (1), which stays the next one.
    ///
    /// # Errors
    /// The file cannot be read.
    #[inline]
    pub fn first(&mut self, side: usize) -> Result<Option<&Paired>, Problems> {
        match self {
            Packets::Rows(again) => again[side].first().map_err(|error| unkept(&error).into()),
            Packets::Captures(live) => live.first(side),
        }
    }

    /// Goes on to the packet after the next one.
    #[inline]
    pub fn skip(&mut self, side: usize) {
        match self {
            Packets::Rows(again) => again[side].given += u64::from(std::mem::take(&mut again[side].ready)),
            Packets::Captures(live) => drop(live.ahead.0[side].pop_front()),
        }
    }

    /// Frames that were passed over.
    pub fn passed(&self) -> [&Passed; 2] {
        match self {
            Packets::Rows(again) => again.each_ref().map(|again| &again.rows.passed),
            Packets::Captures(live) => [&live.matching.before.passed, &live.matching.behind.passed],
        }
    }

    /// Share of the packets that have been read, 0 … 1.
    pub fn progress(&self) -> f64 {
        match self {
            Packets::Rows(again) => {
                again.iter().map(|again| again.given as f64 / again.rows.packets.max(1) as f64).sum::<f64>() / 2.0
            }
            Packets::Captures(live) => live.matching.progress(),
        }
    }
}

/// Problem of rows that cannot be read again.
fn unkept(error: &Error) -> Problem {
    let [why, suggestion] = Spill::said(error);
    Problem::new(format!("cannot be read a second time, {why}")).column("behind").suggestion(suggestion)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    /// Packets of many flows, whose rows do not fit into memory.
    fn packets(count: u64) -> Vec<Seen> {
        let mut state = 1_u64;
        let mut below = move |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let mut time = 1_795_219_200_000_000_000_000_i128;
        let mut made = Vec::new();
        for _ in 0..count {
            // Now and then a time that is far from the one before.
            time += if below(50) == 0 { i128::from(u64::MAX) * 3 } else { i128::from(below(2_000_000)) };
            let number = below(300) as u32;
            let address = |from: u32| -> IpAddr {
                let v6 = std::net::Ipv6Addr::from_bits(0xfd << 120 | u128::from(from + number));
                if number % 3 == 0 {
                    v6.into()
                } else {
                    Ipv4Addr::from_bits(0x0a00_0000 + from + number).into()
                }
            };
            let (src, dst) = (address(0), address(1 << 12));
            let ports = (number % 5 > 0).then_some((number as u16, 65_535));
            let tenant = (number % 7 == 0).then_some(u32::MAX - number);
            made.push(Seen {
                time,
                key: u64::MAX - below(1 << 30),
                tag: below(3),
                bytes: 64 + below(70_000) as u32,
                marked: below(2) > 0,
                ttl: below(256) as u8,
                has_data: below(2) > 0,
                flow: (src, dst, 6 + (number % 11) as u8, ports, tenant),
                hosts: (host(src), host(dst)),
                ..Seen::NONE
            });
        }
        made
    }

    /// Partners, mostly the next in order, some with rivals, some none.
    fn partner(i: usize) -> Option<Partner> {
        let i = i as u64;
        let number = if i % 7 == 0 { (i * 7_919) << 20 } else { i };
        (i % 11 > 0).then_some(Partner { number, rival: (i % 5 == 0).then_some(u64::MAX - i) })
    }

    #[test]
    fn what_is_kept_is_read_again_from_memory_and_from_a_file() {
        for (count, blocks) in [(0, 0..=0), (1, 1..=1), (100, 1..=IN_MEMORY), (5_000, IN_MEMORY + 20..=200)] {
            let mut keepers = [Keeper::default(), Keeper::default()];
            let expected = packets(count);
            for (i, seen) in expected.iter().enumerate() {
                keepers[0].push(seen, None);
                keepers[1].push(seen, partner(i));
            }
            let rows = keepers.map(|keeper| keeper.finish(Passed { frames: count + 3, ..Passed::default() }).unwrap());
            for rows in &rows {
                assert!(rows.blocks.len() <= IN_MEMORY && rows.file.is_some() == (blocks.start() > &IN_MEMORY));
                assert!(blocks.contains(&(rows.blocks.len() + rows.ends.len())), "{}", rows.ends.len());
            }
            // Twice, for a trace may be read twice.
            for _ in 0..2 {
                let mut again = Packets::new(Some(rows.clone()), || unreachable!());
                for (i, seen) in expected.iter().enumerate() {
                    assert!((again.progress() - i as f64 / count as f64).abs() < 1e-9);
                    for (side, partner) in [None, partner(i)].into_iter().enumerate() {
                        let expected = Paired { seen: Seen { key: 0, tag: 0, ..*seen }, partner };
                        assert_eq!(format!("{:?}", again.first(side).unwrap().unwrap()), format!("{expected:?}"), "{i}");
                        again.skip(side);
                    }
                }
                for side in [0, 1] {
                    assert!(again.first(side).unwrap().is_none());
                    again.skip(side);
                    assert_eq!(again.passed()[side].frames, count + 3);
                }
            }
        }
    }

    #[test]
    fn rows_without_room_are_none() {
        let mut keeper = Keeper::default();
        packets(100).iter().for_each(|seen| keeper.push(seen, None));
        keeper.failed = true;
        packets(100).iter().for_each(|seen| keeper.push(seen, None));
        assert!(keeper.finish(Passed::default()).is_none());
    }
}
