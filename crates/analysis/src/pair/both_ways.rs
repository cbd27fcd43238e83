//! The packets of one TCP connection in both captures of a pair, of both directions, each with its times at both places.

use super::flight::Flight;
use super::identity::{Match, Seen};
use super::{Pair, Tick};
use crate::capture::links::number_of;
use crate::capture::{unreadable, FlowKey};
use crate::input::problem::{Failure, Problem};
use fanin_wire::{Capture, Frame, Headers, Tcp, Trouble};
use std::collections::{BTreeMap, BTreeSet};

/// Packets of a connection that are held.
const MOST: usize = 1 << 22;
/// Copies of a packet are captured within this [ps].
const SOON: i128 = 1_000_000_000_000;
/// Time by which a packet may come out before it went in, by clocks [ps].
const SLACK: i64 = super::matching::SLACK as i64;

/// A packet of the connection. Times: on the clock before the port [ps after the capture's first frame].
#[derive(Clone, Copy, Debug)]
pub struct Passing {
    /// Goes the way of the flow that was asked for.
    pub forward: bool,
    pub tcp: Tcp,
    pub payload: u32,
    pub bytes: u32,
    /// Bits by which the sender of a SYN shifts windows.
    pub scale: Option<u8>,
    pub before: Option<i64>,
    pub behind: Option<i64>,
}

impl Passing {
    /// First time at either place.
    pub fn first(&self) -> i64 {
        self.before.unwrap_or(i64::MAX).min(self.behind.unwrap_or(i64::MAX))
    }
}

/// A connection in both captures.
#[derive(Clone, Debug, Default)]
pub struct BothWays {
    /// Packets in order of their first times.
    pub packets: Vec<Passing>,
    /// The flow that was asked for goes from before the port to behind it; else the other way.
    pub through: bool,
    /// First and last time of the capture behind.
    pub behind: (i64, i64),
}

/// A packet at one place.
struct Found {
    time: i64,
    seen: Seen,
    passing: Passing,
}

/// True if a packet is of the flow, false if of its other direction; none: neither. Answers may come in another tunnel.
fn way(headers: &Headers, flow: &FlowKey, tenants: bool) -> Option<bool> {
    let (src, dst, protocol, ports, tenant) = *flow;
    let same = headers.wrap.and_then(|wrap| wrap.tenant) == tenant || !tenants;
    if headers.protocol == protocol && (headers.src, headers.dst, headers.ports) == (src, dst, ports) && same {
        return Some(true);
    }
    let back = (headers.src, headers.dst, headers.ports) == (dst, src, ports.map(|(from, to)| (to, from)));
    (headers.protocol == protocol && back).then_some(false)
}

impl Pair {
    /// All packets of a connection, by one of its flows as the capture before the port has it.
    ///
    /// # Errors
    /// A capture cannot be read, or the connection has too many packets.
    pub fn connection(&self, flow: &FlowKey, tick: Tick<'_>) -> Result<BothWays, Failure> {
        let matching = self.coarse.matching;
        let before = self.place(0, tick, &mut |headers, _| way(headers, flow, true))?;
        let mut found = if matching <= Match::InnerFlow {
            self.place(1, tick, &mut |headers, _| way(headers, flow, matching == Match::Flow))?
        } else {
            // Its name is another one behind: its packets are those that were captured before.
            let keys: [BTreeSet<u64>; 2] =
                [true, false].map(|forward| before.iter().filter(|f| f.passing.forward == forward).map(|f| f.seen.key).collect());
            self.place(1, tick, &mut |_, seen| {
                keys[0].contains(&seen.key).then_some(true).or_else(|| keys[1].contains(&seen.key).then_some(false))
            })?
        };
        found.sort_by_key(|f| f.time);
        let there = |of: &[Found], forward: bool| {
            of.iter().find(|f| f.passing.forward == forward && f.passing.payload > 0).map(|f| f.time)
        };
        let through = match (there(&before, true), there(&found, true)) {
            (Some(before), Some(behind)) => before <= behind + SLACK && self.goes_through(flow),
            _ => self.goes_through(flow),
        };
        let start = self.start();
        let on = |time: i128| i64::try_from(time - start).unwrap_or(i64::MAX / 4);
        let mut packets = Vec::new();
        for forward in [true, false] {
            let of = |of: &[Found]| {
                of.iter().filter(|f| f.passing.forward == forward).map(|f| (f.time, f.seen, f.passing)).collect::<Vec<_>>()
            };
            let (before, behind) = (of(&before), of(&found));
            if forward == through {
                joined(before, behind, &mut packets, |passing, near, far| (passing.before, passing.behind) = (near, far));
            } else {
                joined(behind, before, &mut packets, |passing, near, far| (passing.before, passing.behind) = (far, near));
            }
        }
        packets.sort_by_key(Passing::first);
        Ok(BothWays { packets, through, behind: (on(self.alignment.behind.0), on(self.alignment.behind.1)) })
    }

    /// True if a flow's packets go from before the port to behind it.
    fn goes_through(&self, flow: &FlowKey) -> bool {
        let there = &self.coarse.hosts[0];
        let host = super::identity::host(flow.0);
        !there.contains(&host)
    }

    /// Packets of the connection at one place, in order of time.
    fn place(
        &self,
        side: usize,
        tick: Tick<'_>,
        wanted: &mut dyn FnMut(&Headers, &Seen) -> Option<bool>,
    ) -> Result<Vec<Found>, Failure> {
        let files = if side == 0 { &self.files.before } else { &self.files.behind };
        let place = &self.files.places[side];
        let (start, mut found, mut names, mut frames) = (self.start(), Vec::new(), BTreeMap::new(), 0_u64);
        for capture in files.iter() {
            let path = &capture.file.path;
            let unreadable = |error| unreadable(path, &error);
            let mut reading = Capture::new(capture.file.open()?.0).map_err(unreadable)?;
            loop {
                let frame = match reading.next_frame() {
                    Ok(Some(frame)) => frame,
                    Ok(None) => break,
                    Err(error) if error.trouble == Trouble::Truncated => break,
                    Err(error) => return Err(unreadable(error).into()),
                };
                frames += 1;
                if frames % 8_192 == 0 && !tick(0.5) {
                    return Err(Failure::Stopped);
                }
                let Some((interface, number, headers, seen, passing)) = self.looked_at(&frame, wanted) else { continue };
                let here = |place: &super::side::Place| place.has(interface, &reading.interfaces()[interface].name, number);
                if !place.as_ref().is_none_or(here) {
                    continue;
                }
                let copy = names.insert(seen.name(), seen.time).is_some_and(|time: i128| seen.time - time < SOON);
                if copy && headers.id != 0 {
                    continue;
                }
                let time = if side == 0 { seen.time } else { self.alignment.left(seen.time, seen.bytes) };
                let time = i64::try_from(time - start).unwrap_or(i64::MAX / 4);
                found.push(Found { time, seen, passing });
                if found.len() > MOST {
                    let problem = Problem::new(format!("has more than {MOST} packets of this connection")).file(path);
                    return Err(problem.accepted("a part of it: --start, --stop").into());
                }
            }
        }
        found.sort_by_key(|f| f.time);
        Ok(found)
    }

    #[allow(clippy::type_complexity)]
    fn looked_at(
        &self,
        frame: &Frame<'_>,
        wanted: &mut dyn FnMut(&Headers, &Seen) -> Option<bool>,
    ) -> Option<(usize, Option<u32>, Headers, Seen, Passing)> {
        let headers = frame.headers().filter(|_| !frame.is_notice_only())?;
        let tcp = headers.tcp?;
        let number = number_of(frame, headers.wrap.as_ref().and_then(|wrap| wrap.mirror.as_ref()));
        let seen = Seen::of(frame, &headers, number, self.coarse.matching, self.files.without_fcs);
        let forward = wanted(&headers, &seen)?;
        let scale = (tcp.flags & crate::capture::SYN != 0).then(|| headers.tcp_options(frame.data).scale).flatten();
        let passing = Passing { forward, tcp, payload: headers.payload, bytes: seen.bytes, scale, before: None, behind: None };
        Some((frame.interface, number, headers, seen, passing))
    }
}

/// Finds the packets of one direction at their second place: `put` notes the times at the nearer and the farther one.
fn joined(
    near: Vec<(i64, Seen, Passing)>,
    far: Vec<(i64, Seen, Passing)>,
    packets: &mut Vec<Passing>,
    put: impl Fn(&mut Passing, Option<i64>, Option<i64>),
) {
    let mut flight: Flight<usize> = Flight::default();
    let first = packets.len();
    let mut times = Vec::with_capacity(near.len());
    for (time, _, passing) in &near {
        let mut passing = *passing;
        put(&mut passing, Some(*time), None);
        packets.push(passing);
        times.push(*time);
    }
    let mut pushed = 0;
    for (time, seen, mut passing) in far {
        while let Some((arrived, there, _)) = near.get(pushed).filter(|(arrived, ..)| *arrived <= time + SLACK) {
            flight.push(i128::from(*arrived), (there.key, there.tag), pushed);
            pushed += 1;
        }
        match flight.leave(seen.key, seen.tag, i128::from(time + SLACK)).map(|found| found.what) {
            Some(index) => put(&mut packets[first + index], Some(times[index]), Some(time)),
            None => {
                put(&mut passing, None, Some(time));
                packets.push(passing);
            }
        }
    }
}
