//! CFR: which flows are harmful. Source: RCM §3.3.

use crate::mechanism::PortNo;
use fanin_packet::{Envelope, Side};
use fanin_units::{FlowId, HostId, Time};

/// A flow in one direction, identified by the fields that stand for its 5-tuple.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tuple {
    pub src: HostId,
    pub dst: HostId,
    pub flow: FlowId,
    pub to: Side,
}

impl Tuple {
    pub(super) fn of(p: &Envelope) -> Tuple {
        Tuple { src: p.src, dst: p.dst, flow: p.flow, to: p.to }
    }
}

/// A harmful flow, and the port by which it was last seen to come in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Harmful {
    pub tuple: Tuple,
    pub from: Option<PortNo>,
}

/// The CAM of an output port: the flow of the packet with which another `period` bytes have passed is written into the next place,
/// cyclically. So a flow is in it by its share of the bytes. Source: RCM §3.3.
#[derive(Clone, Debug)]
pub(super) struct Cam {
    entries: Vec<Harmful>,
    depth: usize,
    next: usize,
    /// Places that a flow has to have to be harmful.
    hits: usize,
    period: u32,
    /// Bytes until the next write.
    left: i64,
}

impl Cam {
    pub(super) fn new(depth: u32, hits: u32, period: u32) -> Cam {
        Cam { entries: Vec::new(), depth: depth as usize, next: 0, hits: hits as usize, period, left: i64::from(period) }
    }

    /// Counts a packet that passes the port. True where its flow is written.
    pub(super) fn pass(&mut self, p: &Envelope, from: PortNo) -> bool {
        self.left -= i64::from(p.frame);
        if self.left > 0 {
            return false;
        }
        self.left = (self.left + i64::from(self.period)).max(1);
        let entry = Harmful { tuple: Tuple::of(p), from: Some(from) };
        match self.entries.get_mut(self.next) {
            Some(place) => *place = entry,
            None => self.entries.push(entry),
        }
        self.next = (self.next + 1) % self.depth;
        true
    }

    pub(super) fn has(&self, tuple: &Tuple) -> bool {
        self.entries.iter().filter(|entry| entry.tuple == *tuple).nth(self.hits - 1).is_some()
    }

    /// Harmful flows in the CAM, each once, with the input port of its latest entry.
    pub(super) fn flows(&self) -> Vec<Harmful> {
        let mut found: Vec<Harmful> = Vec::new();
        let n = self.entries.len();
        for i in 0..n {
            let entry = self.entries[(self.next + i) % n]; // the oldest first, once it is full
            match found.iter_mut().find(|other| other.tuple == entry.tuple) {
                Some(other) => other.from = entry.from,
                None if self.has(&entry.tuple) => found.push(entry),
                None => {}
            }
        }
        found
    }
}

/// Harmful flows that a neighbour downstream has named. They take the place of those that the port itself has recognised.
/// Source: RCM §3.2.
#[derive(Clone, Debug)]
pub(super) struct Named {
    /// Harmful flows, each with the time until which it counts.
    entries: Vec<(Harmful, Time)>,
    most: usize,
}

impl Named {
    pub(super) fn new(most: u32) -> Named {
        Named { entries: Vec::new(), most: most as usize }
    }

    /// Names a flow harmful until a time. With no room the one whose time ends first makes place.
    pub(super) fn name(&mut self, tuple: Tuple, until: Time) {
        if let Some((_, end)) = self.entries.iter_mut().find(|(entry, _)| entry.tuple == tuple) {
            *end = until;
            return;
        }
        if self.entries.len() >= self.most {
            let first = self.entries.iter().enumerate().min_by_key(|(i, (_, end))| (*end, *i)).map(|(i, _)| i);
            if let Some(first) = first {
                self.entries.remove(first);
            }
        }
        self.entries.push((Harmful { tuple, from: None }, until));
    }

    /// Removes harmful flows whose time is over.
    pub(super) fn expire(&mut self, now: Time) {
        self.entries.retain(|(_, end)| *end > now);
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    pub(super) fn has(&self, tuple: &Tuple) -> bool {
        self.entries.iter().any(|(entry, _)| entry.tuple == *tuple)
    }

    /// Notes the input port of a packet, if its flow is named harmful.
    pub(super) fn seen(&mut self, tuple: &Tuple, from: PortNo) {
        if let Some((entry, _)) = self.entries.iter_mut().find(|(entry, _)| entry.tuple == *tuple) {
            entry.from = Some(from);
        }
    }

    pub(super) fn flows(&self) -> Vec<Harmful> {
        self.entries.iter().map(|(entry, _)| *entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(flow: u32, frame: u16) -> Envelope {
        Envelope { flow: FlowId(flow), frame, ..Envelope::default() }
    }

    fn tuple(flow: u32) -> Tuple {
        Tuple::of(&packet(flow, 0))
    }

    #[test]
    fn the_cam_is_written_by_bytes_and_cyclically() {
        let mut cam = Cam::new(2, 1, 3_000);
        let written: Vec<bool> = (1..=7).map(|i| cam.pass(&packet(i, 1_500), PortNo(0))).collect();
        assert_eq!(written, [false, true, false, true, false, true, false]);
        assert_eq!([2, 4, 6].map(|flow| cam.has(&tuple(flow))), [false, true, true]);
        assert!(cam.pass(&packet(8, 1_500), PortNo(0)) && !cam.has(&tuple(4)));
    }

    /// Small packets are written as rarely as their bytes are few.
    #[test]
    fn a_flow_is_written_by_its_share_of_the_bytes() {
        let mut cam = Cam::new(1, 1, 10_000);
        let mut written = [0, 0];
        for i in 0..20_000_u32 {
            let small = i % 2 == 0;
            let p = packet(u32::from(small), if small { 64 } else { 1_500 });
            written[usize::from(small)] += u32::from(cam.pass(&p, PortNo(0)));
        }
        let share = f64::from(written[1]) / f64::from(written[0] + written[1]);
        assert!((share - 64.0 / 1_564.0).abs() < 0.02, "{written:?}");
    }

    #[test]
    fn a_flow_counts_once_where_it_came_in_last() {
        let mut cam = Cam::new(4, 1, 1);
        for (flow, from) in [(1, 7), (2, 7), (1, 8), (3, 9), (2, 6)] {
            cam.pass(&packet(flow, 100), PortNo(from));
        }
        let flows: Vec<_> = cam.flows().iter().map(|f| (f.tuple.flow.0, f.from)).collect();
        assert_eq!(flows, [(2, Some(PortNo(6))), (1, Some(PortNo(8))), (3, Some(PortNo(9)))]);
    }

    #[test]
    fn what_a_neighbour_has_named_ends_by_time_or_makes_room() {
        let at = Time::from_ps;
        let mut named = Named::new(2);
        named.name(tuple(1), at(10));
        named.name(tuple(2), at(20));
        named.name(tuple(1), at(30));
        named.name(tuple(3), at(40));
        assert_eq!([1, 2, 3].map(|flow| named.has(&tuple(flow))), [true, false, true]);
        named.seen(&tuple(3), PortNo(5));
        named.expire(at(30));
        assert_eq!(named.flows(), [Harmful { tuple: tuple(3), from: Some(PortNo(5)) }]);
    }
}
