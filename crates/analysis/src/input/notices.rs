//! Drop notifications in captures: their number, their flows, and those that could not be read. Source: PDN §IV.

use crate::input::context::name_of;
use crate::{NoticeFlow, NoticeReport, NoticeValue, PortReport};
use fanin_units::Time;
use fanin_wire::notification::{operation_name, type_name, Addresses, BadNotice, Notice};
use fanin_wire::Frame;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Protocol number of TCP.
const TCP: u8 = 6;

/// Limits on the notifications of a trace that are held.
#[derive(Clone, Copy, Debug)]
struct Most {
    /// Flows that are distinguished.
    flows: usize,
    /// Dropped segments that are distinguished.
    segments: usize,
    /// Number of times that are kept, for notifications during bursts.
    times: usize,
}

const MOST: Most = Most { flows: 1 << 18, segments: 1 << 20, times: 1 << 20 };

/// A connection, from the sender of the dropped packet.
type Flow = (IpAddr, IpAddr, (u16, u16));

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    count: u64,
    repeated: u64,
    bytes: u64,
    first: Option<Time>,
    last: Option<Time>,
}

impl Tally {
    fn add(&mut self, notice: &Notice, repeated: bool, time: Option<Time>) {
        self.count += 1;
        self.repeated += u64::from(repeated);
        self.bytes += u64::from(notice.length);
        self.first = self.first.into_iter().chain(time).min();
        self.last = self.last.max(time);
    }
}

/// All notifications of a trace.
#[derive(Debug)]
pub struct Notices {
    /// Time from which frames are not read.
    pub until: Time,
    most: Most,
    frames: u64,
    alone: u64,
    cut: u64,
    short: u64,
    types: BTreeMap<u8, u64>,
    operations: BTreeMap<u8, u64>,
    all: Tally,
    flows: BTreeMap<Flow, Tally>,
    /// Notifications about flows beyond those that are distinguished.
    of_other_flows: u64,
    segments: BTreeSet<(Flow, u32, u16, u8)>,
    /// True if repetitions may have gone unseen.
    forgetful: bool,
    times: Vec<Time>,
    /// Notifications whose time is not known on the clock of the trace's queues.
    untimed: u64,
}

impl Default for Notices {
    fn default() -> Self {
        Notices {
            until: Time::MAX,
            most: MOST,
            frames: 0,
            alone: 0,
            cut: 0,
            short: 0,
            types: BTreeMap::new(),
            operations: BTreeMap::new(),
            all: Tally::default(),
            flows: BTreeMap::new(),
            of_other_flows: 0,
            segments: BTreeSet::new(),
            forgetful: false,
            times: Vec::new(),
            untimed: 0,
        }
    }
}

impl Notices {
    /// Takes a frame, if its EtherType says that it carries a notification. `time`: on the clock of the trace's queues, where it
    /// is known.
    pub fn see(&mut self, frame: &Frame<'_>, time: Option<Time>) {
        let Some(read) = frame.notification() else { return };
        if time.is_some_and(|time| time > self.until) {
            return;
        }
        self.frames += 1;
        self.alone += u64::from(frame.is_notice_only());
        match time {
            Some(time) if self.times.len() < self.most.times => self.times.push(time),
            Some(_) => {}
            None => self.untimed += 1,
        }
        match read {
            Ok(notice) => self.read(&notice, time),
            Err(BadNotice::Cut) => self.cut += 1,
            Err(BadNotice::Type(kind)) => *self.types.entry(kind).or_default() += 1,
            Err(_) => self.short += 1,
        }
    }

    fn read(&mut self, notice: &Notice, time: Option<Time>) {
        *self.types.entry(notice.kind()).or_default() += 1;
        *self.operations.entry(notice.operation).or_default() += 1;
        let (src, dst) = match notice.addresses {
            Addresses::V4 { src, dst } => (IpAddr::V4(src), IpAddr::V4(dst)),
            Addresses::V6 { src, dst } => (IpAddr::V6(src), IpAddr::V6(dst)),
        };
        let flow = (src, dst, notice.ports);
        let segment = (flow, notice.seq, notice.length, notice.operation);
        let repeated = if self.segments.len() < self.most.segments {
            !self.segments.insert(segment)
        } else {
            let known = self.segments.contains(&segment);
            self.forgetful |= !known;
            known
        };
        self.all.add(notice, repeated, time);
        if self.flows.len() < self.most.flows || self.flows.contains_key(&flow) {
            self.flows.entry(flow).or_default().add(notice, repeated, time);
        } else {
            self.of_other_flows += 1;
        }
    }

    /// Report of the notifications, if there were any; `top`: flows that are listed. Counts for each burst those that arrived in
    /// its time.
    pub fn finish(mut self, top: usize, ports: &mut [PortReport]) -> Option<NoticeReport> {
        if self.frames == 0 {
            return None;
        }
        let mut notes = Vec::new();
        if self.untimed == 0 && self.times.len() as u64 == self.frames {
            self.times.sort_unstable();
            let before = |ps: u64| self.times.partition_point(|time| time.ps() < ps) as u64;
            for burst in ports.iter_mut().flat_map(|port| &mut port.bursts) {
                burst.notifications = Some(before(burst.end_ps.saturating_add(1)) - before(burst.start_ps));
            }
        } else if self.untimed > 0 {
            notes.push(format!(
                "the time of {} is not known on the clock of the queues: none is attributed to bursts",
                self.untimed
            ));
        } else {
            notes.push(format!("there are more than {}: none is attributed to bursts", self.most.times));
        }
        if self.of_other_flows > 0 {
            notes.push(format!("{} are of flows beyond the first {}", self.of_other_flows, self.most.flows));
        }
        if self.forgetful {
            let most = self.most.segments;
            notes.push(format!(
                "there are notifications of more than {most} segments: repetitions of later ones are not recognised"
            ));
        }
        let mut flows: Vec<_> = self.flows.iter().collect();
        flows.sort_by_key(|(flow, tally)| (std::cmp::Reverse((tally.count, tally.bytes)), **flow));
        let ps = |time: Option<Time>| time.map(Time::ps);
        let named = |counts: BTreeMap<u8, u64>, name: fn(u8) -> Option<&'static str>| -> Vec<NoticeValue> {
            counts.into_iter().map(|(value, count)| NoticeValue { value, name: name(value), count }).collect()
        };
        Some(NoticeReport {
            frames: self.frames,
            alone: self.alone,
            attached: self.frames - self.alone,
            read: self.all.count,
            cut: self.cut,
            short: self.short,
            told_bytes: self.all.bytes,
            repeated: self.all.repeated,
            first_ps: ps(self.all.first),
            last_ps: ps(self.all.last),
            flows: self.flows.len() as u64,
            top: flows
                .iter()
                .take(top)
                .map(|((src, dst, ports), tally)| NoticeFlow {
                    name: name_of((*src, *dst), Some(*ports), TCP, None),
                    count: tally.count,
                    repeated: tally.repeated,
                    bytes: tally.bytes,
                    first_ps: ps(tally.first),
                    last_ps: ps(tally.last),
                })
                .collect(),
            types: named(self.types, type_name),
            operations: named(self.operations, operation_name),
            notes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn notice(flow: u16, seq: u32) -> Notice {
        let addresses = Addresses::V4 { src: Ipv4Addr::new(10, 0, 0, 1), dst: Ipv4Addr::new(10, 0, 0, 2) };
        Notice { addresses, ports: (flow, 80), seq, length: 1_000, operation: 1 }
    }

    /// Beyond what is held everything is still counted, and what can no longer be distinguished is reported.
    #[test]
    fn memory_is_bounded_and_what_that_costs_is_said() {
        let mut notices = Notices { most: Most { flows: 2, segments: 4, times: 5 }, ..Notices::default() };
        let bytes: Vec<Vec<u8>> =
            (0..3_u16).flat_map(|flow| [1, 2, 1].map(|seq| notice(flow, seq).alone([2; 6], [2; 6]))).collect();
        for (i, data) in bytes.iter().enumerate() {
            let frame = Frame {
                offset: 0,
                interface: 0,
                link: fanin_wire::LinkType::Ethernet,
                time_ps: 0,
                length: data.len() as u32,
                data,
                fcs: Some(0),
                direction: None,
            };
            notices.see(&frame, Some(Time::from_ps(i as u64)));
        }
        let report = notices.finish(1, &mut []).unwrap();
        assert_eq!((report.frames, report.alone, report.read, report.told_bytes), (9, 9, 9, 9_000));
        assert_eq!((report.repeated, report.flows, report.top.len()), (2, 2, 1), "the third flow's is not recognised");
        assert_eq!((report.top[0].count, report.top[0].repeated), (3, 1));
        assert_eq!((report.first_ps, report.last_ps), (Some(0), Some(8)));
        let words = report.notes.join("\n");
        for part in ["more than 5: none is attributed", "3 are of flows beyond the first 2", "more than 4 segments"] {
            assert!(words.contains(part), "{part} in {words}");
        }
    }
}
