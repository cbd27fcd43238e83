//! Walk back along a flow's critical path.

use super::{Explanation, Hop, Kind, Part, Records, Segment, Step, Waited};
use fanin_telemetry::{Cause, Limit};
use std::collections::BTreeMap;

/// Records of a flow, indexed for the walk.
struct Found<'a> {
    src: &'a str,
    packets: BTreeMap<u64, &'a Segment>,
    /// The links that a packet has crossed, in order.
    ways: BTreeMap<u64, Vec<&'a Hop>>,
    /// Hops by port and by the time when their first bit left, each with its number on the packet's way.
    left: BTreeMap<(&'a str, u64), (&'a Hop, usize)>,
    /// Packets sent, by host, place in the stream and number.
    sent: BTreeMap<(&'a str, u64, u64), &'a Segment>,
    /// Pauses of each port: begin and end.
    pauses: BTreeMap<&'a str, Vec<(u64, u64)>>,
    /// Highest place in the stream so far, by host and packet.
    highest: BTreeMap<(&'a str, u64), u64>,
}

impl<'a> Found<'a> {
    fn of(records: &Records<'a>) -> Self {
        let packets: BTreeMap<u64, &Segment> = records.segments.iter().map(|segment| (segment.packet, segment)).collect();
        let (mut sent, mut highest, mut so_far) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::<&str, u64>::new());
        for (packet, segment) in &packets {
            let host = segment.host.as_str();
            let most = so_far.entry(host).or_default();
            *most = segment.seq_bytes.max(*most);
            highest.insert((host, *packet), *most);
            sent.insert((host, segment.seq_bytes, *packet), *segment);
        }
        let mut ways: BTreeMap<u64, Vec<&Hop>> = BTreeMap::new();
        records.hops.iter().for_each(|hop| ways.entry(hop.packet).or_default().push(hop));
        let mut left = BTreeMap::new();
        for way in ways.values_mut() {
            way.sort_by_key(|hop| hop.reached_ps);
            left.extend(way.iter().enumerate().map(|(i, hop)| ((hop.port.as_str(), hop.sent_ps), (*hop, i))));
        }
        let mut pauses: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
        for pause in records.pauses {
            pauses.entry(&pause.port).or_default().push((pause.start_ps, pause.end_ps.unwrap_or(u64::MAX)));
        }
        pauses.values_mut().for_each(|of_port| of_port.sort_unstable());
        Found { src: records.src, packets, ways, left, sent, highest, pauses }
    }

    fn way(&self, packet: u64) -> &[&'a Hop] {
        self.ways.get(&packet).map_or(&[], Vec::as_slice)
    }

    /// The pauses of a port between two moments, the last first.
    fn pauses(&self, port: &str, from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let all = self.pauses.get(port).map_or(&[][..], Vec::as_slice);
        let before = all.partition_point(|(start, _)| *start < to);
        all[..before].iter().rev().copied().take_while(move |(_, end)| *end > from)
    }

    /// The flow's packet that left a port next before `time`.
    fn before(&self, port: &'a str, time: u64) -> Option<(&'a Hop, usize)> {
        self.left.range((port, 0)..(port, time)).next_back().map(|(_, found)| *found)
    }
}

/// Position of the walk: a packet, and the point of its way.
#[derive(Clone, Copy, Debug)]
enum Here {
    /// The packet has come to the far end of so many links.
    Reached(u64, usize),
    /// The packet's first bit leaves the port of that number on its way.
    Leaves(u64, usize),
    /// The packet could be sent.
    Caused(u64),
    /// The records do not tell what came before.
    Lost,
}

/// The steps so far, from the end on.
struct Walk {
    start: u64,
    now: u64,
    steps: Vec<Step>,
    rounds: BTreeMap<Kind, u64>,
    waited: Vec<Waited>,
    /// Kind to which the time of crossing the network counts at this point.
    crossing: Kind,
    /// Kind of wait of the data whose acknowledgment the walk is behind.
    ahead: Option<Kind>,
}

impl Walk {
    /// Adds a step from `from` until now, and walks back to `from`.
    fn back_to(&mut self, from: u64, kind: Kind, place: &str, packet: Option<u64>) {
        self.back_by(from, (kind, ""), place, packet);
    }

    /// Adds a step from `from` until now, in which a mechanism did something, and walks back to `from`.
    fn back_by(&mut self, from: u64, (kind, by): (Kind, &str), place: &str, packet: Option<u64>) {
        let from = from.clamp(self.start, self.now);
        if from == self.now {
            return;
        }
        match self.steps.last_mut() {
            Some(step) if (step.kind, step.place.as_str(), step.by.as_str(), step.packet) == (kind, place, by, packet) => {
                step.from_ps = from;
            }
            _ => {
                let (place, by) = (place.to_string(), by.to_string());
                self.steps.push(Step { from_ps: from, to_ps: self.now, kind, place, by, packet });
            }
        }
        self.now = from;
    }

    /// Adds the wait of a packet at a port from `from` until now: as a pause while the port was paused, as a hold while a
    /// mechanism held it, else as `kind`.
    fn waited_at(&mut self, found: &Found<'_>, hop: &Hop, from: u64, (kind, place): (Kind, &str)) {
        for (start, end) in found.pauses(&hop.port, from, self.now) {
            self.waited_or_held(hop, end.max(from), kind, place);
            self.back_to(start.max(from), Kind::Pause, &hop.port, Some(hop.packet));
        }
        self.waited_or_held(hop, from, kind, place);
    }

    /// Adds the wait of a packet at a port from `from` until now, in which the port was not paused.
    fn waited_or_held(&mut self, hop: &Hop, from: u64, kind: Kind, place: &str) {
        if let (Some(by), Some(since), Some(until)) = (&hop.held_by, hop.held_from_ps, hop.held_until_ps) {
            self.back_to(until.max(from), kind, place, Some(hop.packet));
            self.back_by(since.max(from), (Kind::Held, by), &hop.port, Some(hop.packet));
        }
        self.back_to(from, kind, place, Some(hop.packet));
    }

    /// Counts crossings of the network, from here on backwards, as round trips of this kind; what precedes the first data stays a
    /// handshake.
    fn enter(&mut self, kind: Kind) {
        if self.crossing != Kind::Handshake {
            self.crossing = kind;
            *self.rounds.entry(kind).or_default() += 1;
        }
    }
}

/// The kind of a timer.
fn timer(cause: Cause) -> Option<Kind> {
    Some(match cause {
        Cause::Rto => Kind::Rto,
        Cause::Tlp => Kind::Tlp,
        Cause::Reordering => Kind::Reordering,
        Cause::DelayedAck => Kind::DelayedAck,
        Cause::Pacing => Kind::Pacing,
        Cause::WindowProbe => Kind::WindowProbe,
        Cause::Application | Cause::Packet | Cause::Notification | Cause::Turn => return None,
    })
}

/// Kind of round trip that a segment has waited for, by its limit.
fn rounds(limit: &str) -> Kind {
    match Limit::of(limit) {
        Some(Limit::CongestionWindow) => Kind::CongestionWindow,
        Some(Limit::ReceiveWindow) => Kind::ReceiveWindow,
        Some(Limit::Recovery) => Kind::Recovery,
        Some(Limit::Loss) => Kind::Loss,
        // It had nothing to send: what asked for it was on its way.
        Some(Limit::Application | Limit::Handshake) | None => Kind::Handshake,
    }
}

/// Explains the completion time of a flow.
pub fn explain(records: &Records<'_>) -> Explanation {
    let found = Found::of(records);
    let is_data = |s: &&Segment| s.host == records.src && s.payload_bytes > 0 && !s.trimmed && s.received_ps.is_some();
    let data = || records.segments.iter().filter(is_data);
    let end = records.finish_ps.or_else(|| data().filter_map(|s| s.received_ps).max()).unwrap_or(records.start_ps);
    // Of several that arrived in that instant, the one that filled the first hole.
    let last = data().filter(|s| s.received_ps == Some(end)).min_by_key(|s| (s.seq_bytes, s.packet));
    let mut walk = Walk {
        start: records.start_ps,
        now: end.max(records.start_ps),
        steps: Vec::new(),
        rounds: BTreeMap::new(),
        waited: Vec::new(),
        crossing: Kind::Path,
        ahead: None,
    };
    let end_ps = walk.now;
    let mut here = last.map_or(Here::Lost, |s| Here::Reached(s.packet, found.way(s.packet).len()));
    // Each round goes back in time, or to a packet or port before; records that contradict one another must not hold it up.
    let most = 4 * (records.segments.len() + records.hops.len()) + 16;
    for _ in 0..most {
        if walk.now == walk.start {
            break;
        }
        here = match here {
            Here::Reached(packet, links) => reached(&found, &mut walk, packet, links),
            Here::Leaves(packet, i) => leaves(&found, &mut walk, packet, i),
            Here::Caused(packet) => match found.packets.get(&packet) {
                Some(segment) => caused(&found, &mut walk, segment),
                None => Here::Lost,
            },
            Here::Lost => break,
        };
    }
    walk.back_to(walk.start, Kind::Unknown, "", None);
    walk.steps.reverse();
    walk.waited.reverse();
    let parts = parts(&walk);
    Explanation { start_ps: records.start_ps, end_ps, parts, steps: walk.steps, waited: walk.waited }
}

/// Walks back over the packet's `links`-th link, which it crossed.
fn reached(found: &Found<'_>, walk: &mut Walk, packet: u64, links: usize) -> Here {
    let Some(i) = links.checked_sub(1) else { return Here::Caused(packet) };
    let Some(hop) = found.way(packet).get(i) else { return Here::Lost };
    if links == found.way(packet).len() {
        walk.back_to(hop.reached_ps, Kind::HostReceive, "", Some(packet));
    }
    walk.back_to(hop.sent_ps, walk.crossing, "", Some(packet));
    Here::Leaves(packet, i)
}

/// Walks back from a packet's departure over its wait at the port, behind the flow's own packets or others'.
fn leaves(found: &Found<'_>, walk: &mut Walk, packet: u64, i: usize) -> Here {
    let (Some(segment), Some(hop)) = (found.packets.get(&packet), found.way(packet).get(i)) else { return Here::Lost };
    let (came, kind, place) = match i {
        0 => (segment.cause_ps, Kind::Nic, segment.host.as_str()),
        _ => (hop.arrived_ps, Kind::Queue, hop.port.as_str()),
    };
    if let Some((own, j)) = found.before(&hop.port, hop.sent_ps).filter(|(own, _)| own.left_ps > came) {
        walk.waited_at(found, hop, own.left_ps, (kind, place));
        // What data has waited for stands with it, and not with an acknowledgment that went ahead of it.
        if found.packets.get(&own.packet).is_some_and(|own| own.payload_bytes > 0) {
            walk.ahead = None;
        } else if segment.host == found.src && segment.payload_bytes > 0 && Cause::of(&segment.cause) == Some(Cause::Packet) {
            walk.ahead = Some(rounds(&segment.limit));
        }
        let serialisation = if walk.crossing == Kind::Handshake { Kind::Handshake } else { Kind::Serialisation };
        walk.back_to(own.sent_ps, serialisation, "", None);
        return Here::Leaves(own.packet, j);
    }
    walk.waited_at(found, hop, came, (kind, place));
    match i {
        0 => Here::Caused(packet),
        _ => Here::Reached(packet, i),
    }
}

/// Walks back to the event at its host for which a packet could be sent.
fn caused(found: &Found<'_>, walk: &mut Walk, segment: &Segment) -> Here {
    let arrived = |packet: Option<u64>| packet.map_or(Here::Lost, |packet| Here::Reached(packet, found.way(packet).len()));
    match Cause::of(&segment.cause) {
        None => Here::Lost,
        Some(Cause::Application) => {
            walk.back_to(walk.start, Kind::Application, "", None);
            Here::Lost
        }
        Some(Cause::Packet) => {
            if segment.host == found.src {
                let data = (segment.payload_bytes > 0).then(|| rounds(&segment.limit));
                if let Some(kind) = data.or(walk.ahead.take()) {
                    walk.enter(kind);
                }
            }
            arrived(segment.cause_packet)
        }
        Some(Cause::Notification) => {
            let Some(dropped) = segment.cause_packet.and_then(|packet| found.packets.get(&packet)) else { return Here::Lost };
            let Some(at) = dropped.dropped_ps else { return Here::Lost };
            walk.back_to(at, Kind::Notification, "", Some(dropped.packet));
            walk.enter(Kind::Recovery);
            // It may have been in the queue before it was dropped.
            let came = found.way(dropped.packet).last().map_or(at, |hop| hop.reached_ps);
            let port = dropped.dropped_at.as_deref().unwrap_or_default();
            let here = Hop { packet: dropped.packet, port: port.to_string(), ..Hop::default() };
            walk.waited_at(found, &here, came, (Kind::Queue, port));
            arrived(Some(dropped.packet))
        }
        Some(cause) => {
            let (Some(kind), Some(armed)) = (timer(cause), segment.armed_ps) else { return Here::Lost };
            if matches!(kind, Kind::Rto | Kind::Tlp | Kind::Reordering) {
                let lost = lost(found, segment);
                let first = lost.first();
                walk.waited.push(Waited {
                    kind,
                    from_ps: armed,
                    to_ps: segment.cause_ps,
                    seq_bytes: first.map_or(segment.seq_bytes, |s| s.seq_bytes),
                    lost_packets: lost.len() as u64,
                    sent_again: first.is_some_and(|first| {
                        let at = |packet| (first.host.as_str(), first.seq_bytes, packet);
                        found.sent.range(at(0)..at(first.packet)).any(|(_, s)| s.payload_bytes > 0)
                    }),
                    dropped_at: first.and_then(|s| s.dropped_at.clone()),
                    dropped_ps: first.and_then(|s| s.dropped_ps),
                });
                walk.back_to(armed, kind, "", Some(segment.packet));
                walk.enter(Kind::Recovery);
            } else {
                walk.back_to(armed, kind, "", Some(segment.packet));
            }
            let armed_by = segment.armed_packet.and_then(|packet| found.packets.get(&packet));
            // Its own packet: what had let it send that one.
            if let Some(sent) = armed_by.filter(|sent| sent.host == segment.host) {
                return Here::Leaves(sent.packet, 0);
            }
            // The control had set it anew, at another rate: it has run since the packet before.
            let nic = found.way(segment.packet).first().filter(|_| kind == Kind::Pacing);
            if let Some((own, i)) = nic.and_then(|hop| found.before(&hop.port, armed)) {
                walk.back_to(own.sent_ps, kind, "", Some(segment.packet));
                return Here::Leaves(own.packet, i);
            }
            if let Some(came) = armed_by {
                return arrived(Some(came.packet));
            }
            // The application had started it, with the flow or with a message.
            if kind != Kind::Pacing {
                walk.back_to(walk.start, Kind::Application, "", None);
            }
            Here::Lost
        }
    }
}

/// Packets whose loss made the sender send `segment` again, at its bytes or beyond: no copy of these had arrived. In order of
/// place, the last loss of each.
fn lost<'a>(found: &Found<'a>, segment: &Segment) -> Vec<&'a Segment> {
    let before = |time: Option<u64>| time.is_some_and(|time| time <= segment.cause_ps);
    let host = segment.host.as_str();
    let highest = found.highest.range((host, 0)..(host, segment.packet)).next_back().map_or(0, |(_, place)| *place);
    let mut copies: BTreeMap<u64, Option<&Segment>> = BTreeMap::new();
    let outstanding = (host, segment.seq_bytes, 0)..=(host, highest.max(segment.seq_bytes), u64::MAX);
    for copy in found.sent.range(outstanding).map(|(_, copy)| *copy).filter(|copy| copy.packet < segment.packet) {
        let known = copies.entry(copy.seq_bytes).or_insert(Some(copy));
        if before(copy.received_ps) && !copy.trimmed {
            *known = None;
        } else if known.is_some_and(|known| copy.dropped_ps > known.dropped_ps) {
            *known = Some(copy);
        }
    }
    copies.into_values().flatten().filter(|copy| before(copy.dropped_ps)).collect()
}

/// Sums of the steps, the longest first.
fn parts(walk: &Walk) -> Vec<Part> {
    let mut sums: BTreeMap<(Kind, &str, &str), (u64, u64)> = BTreeMap::new();
    for step in &walk.steps {
        let (time, times) = sums.entry((step.kind, &step.place, &step.by)).or_default();
        *time += step.to_ps - step.from_ps;
        *times += 1;
    }
    let of = |((kind, place, by), (time_ps, times)): ((Kind, &str, &str), (u64, u64))| {
        let times = match kind {
            Kind::Path | Kind::Handshake | Kind::Serialisation | Kind::Application | Kind::Unknown => 1,
            _ => walk.rounds.get(&kind).copied().unwrap_or(times),
        };
        Part { kind, place: place.to_string(), by: by.to_string(), time_ps, times }
    };
    let mut parts: Vec<Part> = sums.into_iter().map(of).collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.time_ps));
    parts
}
