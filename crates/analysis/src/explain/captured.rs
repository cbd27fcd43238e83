//! Explanation of the time of a TCP transfer, by two captures of it: at the sender and the receiver, or before and behind a port.
//!
//! The walk is that of a simulated flow, back from the acknowledgment of all, by what packets show: each acknowledgment was sent
//! because data came, each data packet because an acknowledgment came, or because a timer expired. What a packet takes from one capture
//! to the other beyond the least time is a queue; beyond the captures there is one time for the way to the host and back, and what goes
//! beyond its least is the host's or that of a queue there. What no packet shows is unknown.
//!
//! Source: RFC 9293 §3.8 (acknowledgments), RFC 6298 §5 (when the timer is started), RFC 5681 §4.2 (which data an acknowledgment answers).

use super::walk::Walk;
use super::{Explanation, Kind, Waited};
use std::collections::BTreeMap;

/// Reason for which a data packet was sent, by the packets before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sent {
    #[default]
    First,
    /// Again, with packets of the connection around it.
    Again,
    /// Again by the retransmission timer, after a silence.
    Timeout,
    /// Again by the timer of a tail loss probe.
    Probe,
}

/// A packet of the connection. Times [ps] are on one clock; none: it was not captured there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passage {
    /// True of packets of the transfer's sender.
    pub data: bool,
    pub seq: u32,
    /// Acknowledgment number, of a packet that has one.
    pub ack: Option<u32>,
    /// SYN and FIN take a number each.
    pub syn: bool,
    pub fin: bool,
    pub payload: u32,
    pub bytes: u32,
    /// Bytes that its sender offers to take; none where the SYN that says by how much it is shifted was not captured.
    pub window: Option<u64>,
    /// Times at the capture nearer to the sender of the transfer, and at the other one.
    pub near: Option<u64>,
    pub far: Option<u64>,
    /// The least time from one to the other, of a data packet.
    pub least: u64,
    pub sent: Sent,
}

/// A transfer in two captures.
#[derive(Clone, Debug, Default)]
pub struct Talk<'a> {
    /// Packets of the whole connection, in order of their times.
    pub packets: &'a [Passage],
    /// First SYN or first data at the near capture, and the acknowledgment of all, or the last packet.
    pub start: u64,
    pub end: u64,
    /// Names of the ways between the captures, of data and of acknowledgments.
    pub places: [String; 2],
    /// Time of a byte on the slowest link, as far as known [ps].
    pub per_byte: f64,
    /// First and last time of the far capture.
    pub far: (u64, u64),
}

/// A sequence number without its turns, near to the last.
fn unrolled(last: &mut u64, number: u32) -> u64 {
    let more = i64::from(number.wrapping_sub(*last as u32) as i32);
    let found = last.saturating_add_signed(more);
    *last = found.max(*last);
    found
}

/// State of the transfer when a data packet passes the near capture.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    /// Kind of recovery that is going on: since a timer, or since a fast retransmission.
    phase: Option<Kind>,
    /// Packet that had started the timer, and its time.
    armed: Option<(usize, u64)>,
    /// Latest packet, and its time.
    last: Option<(usize, u64)>,
    /// Bytes under way with this packet, and the window that the receiver offered.
    flight: u64,
    window: Option<u64>,
    /// True if nothing was outstanding.
    idle: bool,
}

struct Found<'a> {
    talk: &'a Talk<'a>,
    /// Begin and end of each data packet in the stream, acknowledgment numbers likewise.
    places: Vec<(u64, u64)>,
    before: Vec<Before>,
    /// All packets in order of time at the near capture, and where each stands.
    near: Vec<usize>,
    at: Vec<Option<usize>>,
    /// Data in order of time at the far capture, and where each stands.
    far: Vec<usize>,
    at_far: Vec<Option<usize>>,
    /// The data whose arrival an acknowledgment answers.
    answers: Vec<Option<usize>>,
    /// Least times: of acknowledgments from the far to the near capture; from data at the far one to their acknowledgment there, or at
    /// the near one where it was captured there only; from an acknowledgment at the near one to data.
    back: u64,
    receiver: [u64; 2],
    sender: u64,
    /// Fastest pace of data at the near capture [ps per byte].
    pace: f64,
    /// Place of the first data in the stream.
    first: u64,
}

impl<'a> Found<'a> {
    fn of(talk: &'a Talk<'a>) -> Found<'a> {
        let packets = talk.packets;
        let order = |time: &dyn Fn(&Passage) -> Option<u64>| {
            let mut order: Vec<(u64, usize)> = packets.iter().enumerate().filter_map(|(i, p)| Some((time(p)?, i))).collect();
            order.sort_unstable();
            let mut at = vec![None; packets.len()];
            order.iter().enumerate().for_each(|(place, (_, i))| at[*i] = Some(place));
            (order.into_iter().map(|(_, i)| i).collect::<Vec<usize>>(), at)
        };
        let (near, at) = order(&|p| p.near);
        let (far, at_far) = order(&|p| p.far.filter(|_| p.data));
        let mut found = Found {
            talk,
            places: vec![(0, 0); packets.len()],
            before: vec![Before::default(); packets.len()],
            near,
            at,
            far,
            at_far,
            answers: vec![None; packets.len()],
            back: u64::MAX,
            receiver: [u64::MAX; 2],
            sender: 0,
            pace: f64::INFINITY,
            first: 0,
        };
        found.number();
        found.answer();
        found.measure();
        found.follow();
        found
    }

    /// Places in the stream.
    fn number(&mut self) {
        let first = self.talk.packets.iter().find(|p| p.data).map_or(0, |p| p.seq);
        let mut last = (1 << 32) | u64::from(first);
        for (place, p) in self.places.iter_mut().zip(self.talk.packets) {
            *place = if p.data {
                let begin = unrolled(&mut last, p.seq);
                (begin, begin + u64::from(p.payload) + u64::from(p.syn) + u64::from(p.fin))
            } else {
                let ack = p.ack.map_or(0, |ack| unrolled(&mut last, ack));
                (ack, ack)
            };
        }
        let data = self.places.iter().zip(self.talk.packets).filter(|(_, p)| p.data && p.payload > 0);
        self.first = data.map(|((begin, _), _)| *begin).min().unwrap_or(0);
    }

    /// Finds the data that each acknowledgment answers: that with which all before it had come to the far capture; and one that repeats another,
    /// the next data since that left a hole.
    fn answer(&mut self) {
        let packets = self.talk.packets;
        let mut next = self.far.iter().map(|i| self.places[*i].0).min().unwrap_or(0);
        let mut beyond: BTreeMap<u64, u64> = BTreeMap::new();
        let mut reached: Vec<(u64, usize)> = Vec::new();
        let mut holes: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for i in &self.far {
            let (begin, end) = self.places[*i];
            if end == begin {
                continue;
            }
            if begin > next {
                let until = beyond.entry(begin).or_default();
                *until = end.max(*until);
            } else {
                next = next.max(end);
                while let Some(entry) = beyond.first_entry().filter(|entry| *entry.key() <= next) {
                    next = next.max(entry.remove());
                }
            }
            if reached.last().is_none_or(|(most, _)| next > *most) {
                reached.push((next, *i));
            } else {
                holes.entry(next).or_default().push(*i);
            }
        }
        let (mut highest, mut repeats) = (0, BTreeMap::<u64, usize>::new());
        let mut acks: Vec<usize> = (0..packets.len()).filter(|i| !packets[*i].data && packets[*i].ack.is_some()).collect();
        acks.sort_by_key(|i| (packets[*i].far.or(packets[*i].near), *i));
        for i in acks {
            let (ack, _) = self.places[i];
            if ack > highest {
                highest = ack;
                let at = reached.partition_point(|(most, _)| *most < ack);
                self.answers[i] = reached.get(at).map(|(_, data)| *data);
            } else if ack == highest && packets[i].payload == 0 {
                let nth = repeats.entry(ack).or_default();
                self.answers[i] = holes.get(&ack).and_then(|holes| holes.get(*nth)).copied();
                *nth += 1;
            }
            // Clocks must not let an answer come before what it answers.
            let late = |data: &usize| packets[*data].far <= packets[i].far.or(packets[i].near);
            self.answers[i] = self.answers[i].filter(late);
        }
    }

    /// Least times.
    fn measure(&mut self) {
        let packets = self.talk.packets;
        for (i, p) in packets.iter().enumerate().filter(|(_, p)| !p.data) {
            if let (Some(near), Some(far)) = (p.near, p.far) {
                self.back = self.back.min(near.saturating_sub(far));
            }
            let Some(came) = self.answers[i].and_then(|data| packets[data].far) else { continue };
            match (p.far, p.near) {
                (Some(far), _) => self.receiver[0] = self.receiver[0].min(far - came),
                (None, Some(near)) => self.receiver[1] = self.receiver[1].min(near.saturating_sub(came)),
                (None, None) => {}
            }
        }
        self.at_once();
        // From the near capture to the sender and back: what the handshake shows.
        let answer = |p: &Passage| !p.data && p.syn;
        let shaken = |way: bool| {
            let came =
                self.near.iter().position(|i| if way { answer(&packets[*i]) } else { packets[*i].syn && !packets[*i].data })?;
            let went = self.near[came..].iter().find(|i| packets[**i].data && packets[**i].ack.is_some())?;
            Some(packets[*went].near? - packets[self.near[came]].near?)
        };
        self.sender = shaken(true).or_else(|| shaken(false)).unwrap_or(0);
        let data = self.near.iter().filter(|i| packets[**i].data && packets[**i].payload > 0);
        let times: Vec<(u64, u32)> = data.filter_map(|i| Some((packets[*i].near?, packets[*i].bytes))).collect();
        for pair in times.windows(2).filter(|pair| pair[1].0 > pair[0].0) {
            self.pace = self.pace.min((pair[1].0 - pair[0].0) as f64 / f64::from(pair[0].1.max(1)));
        }
        // Packets that never follow each other show nothing of the sender's own link.
        let (known, most) = (self.talk.per_byte, SLOWER * self.talk.per_byte);
        if known > 0.0 && self.pace > most {
            self.pace = known;
        }
    }

    /// An acknowledgment that leaves at once when data comes answers that, though it may be the answer to earlier data that was held back.
    fn at_once(&mut self) {
        let (packets, least) = (self.talk.packets, self.receiver[0]);
        if least == u64::MAX {
            return;
        }
        let margin = (least / 10).max(SOON);
        for (i, p) in packets.iter().enumerate().filter(|(_, p)| !p.data && p.ack.is_some()) {
            let Some(went) = p.far else { continue };
            let until = went.saturating_sub(least.saturating_sub(margin));
            let came = |i: &usize| packets[*i].far.unwrap_or(0);
            let after = self.far.partition_point(|i| came(i) <= until.min(went));
            let Some(data) = after.checked_sub(1).map(|place| self.far[place]) else { continue };
            let later = self.answers[i].is_none_or(|known| came(&data) > came(&known));
            if later && went - came(&data) <= least + margin {
                self.answers[i] = Some(data);
            }
        }
    }

    /// Follows the state of the transfer at the near capture.
    fn follow(&mut self) {
        let packets = self.talk.packets;
        let first = packets.iter().position(|p| p.data).map_or(0, |i| self.places[i].0);
        let (mut highest, mut acked, mut window): (u64, u64, Option<u64>) = (first, first, None);
        let (mut phase, mut until): (Option<Kind>, u64) = (None, 0);
        let (mut armed, mut last) = (None, None);
        for i in self.near.clone() {
            let (p, (begin, end)) = (&packets[i], self.places[i]);
            let here = p.near.map(|near| (i, near));
            if !p.data {
                if p.ack.is_some() && begin > acked {
                    acked = begin;
                    armed = here;
                    if acked >= until {
                        phase = None;
                    }
                }
                window = p.window.or(window);
                last = here;
                continue;
            }
            if end == begin {
                continue; // An acknowledgment of what comes the other way.
            }
            if p.sent != Sent::First {
                let kind = if p.sent == Sent::Timeout { Kind::Loss } else { Kind::Recovery };
                if phase.is_none() || kind == Kind::Loss {
                    (phase, until) = (Some(kind), highest);
                }
            }
            let idle = highest <= acked;
            let flight = end.max(highest).saturating_sub(acked);
            self.before[i] = Before { phase, armed, last, flight, window, idle };
            if idle || matches!(p.sent, Sent::Timeout | Sent::Probe) {
                armed = here;
            }
            highest = highest.max(end);
            last = here;
        }
    }

    /// Time at which a packet left the queue between the captures: it was on links for the least time then.
    fn left(&self, data: usize) -> Option<u64> {
        let p = &self.talk.packets[data];
        Some(p.far?.saturating_sub(p.least).max(p.near.unwrap_or(0)))
    }

    /// The data that came to the far capture next before.
    fn ahead(&self, data: usize) -> Option<usize> {
        self.at_far[data]?.checked_sub(1).map(|place| self.far[place])
    }

    /// The latest packet of a kind that passed the near capture before another and not after `until`.
    fn latest(&self, before: usize, until: u64, is: impl Fn(usize, &Passage) -> bool) -> Option<usize> {
        let earlier = self.near[..self.at[before]?].iter().rev();
        earlier.copied().find(|i| self.talk.packets[*i].near.is_some_and(|near| near <= until) && is(*i, &self.talk.packets[*i]))
    }
}

/// Largest ratio of the slowest link between the captures to the sender's own that is believed.
const SLOWER: f64 = 4.0;
/// Least variation of the time of a host that answers at once [ps].
const SOON: u64 = 2_000_000;
/// Longest time in which a host that may send does [ps].
const AT_ONCE: u64 = 100_000_000;

/// Place of the walk.
#[derive(Clone, Copy, Debug)]
enum Here {
    /// The acknowledgment passes the near capture.
    Answered(usize),
    /// The data has come to the far capture.
    Arrived(usize),
    /// The data has left the queue between the captures.
    Left(usize),
    /// The data passes the near capture.
    Sent(usize),
    Lost,
}

/// Explains the time of a transfer: see the module.
pub fn explain(talk: &Talk<'_>) -> Explanation {
    let found = Found::of(talk);
    let mut walk = Walk::new(talk.start, talk.end);
    let end = walk.now;
    let mut here = match found.near.iter().rev().find(|i| talk.packets[**i].near.is_some_and(|near| near <= end)) {
        Some(i) if talk.packets[*i].data => Here::Sent(*i),
        Some(i) => Here::Answered(*i),
        None => Here::Lost,
    };
    // Each step goes back in time, or to a packet before; captures that contradict one another must not hold it up.
    for _ in 0..4 * talk.packets.len() + 16 {
        if walk.is_over() {
            break;
        }
        here = match here {
            Here::Answered(ack) => answered(&found, &mut walk, ack),
            Here::Arrived(data) => {
                let left = found.left(data);
                match left {
                    Some(left) => {
                        walk.back_to(left, walk.crossing, "", None);
                        Here::Left(data)
                    }
                    None => Here::Lost,
                }
            }
            Here::Left(data) => left(&found, &mut walk, data),
            Here::Sent(data) => sent(&found, &mut walk, data),
            Here::Lost => break,
        };
    }
    walk.finish(end)
}

/// An acknowledgment passes the near capture: it came from the far one, and was sent because data had arrived.
fn answered(found: &Found<'_>, walk: &mut Walk, ack: usize) -> Here {
    let packets = found.talk.packets;
    let p = &packets[ack];
    if let (Some(near), Some(far)) = (p.near, p.far) {
        walk.back_to(near.saturating_sub(found.back).max(far), walk.crossing, "", None);
        walk.back_to(far, Kind::Queue, &found.talk.places[1], None);
    }
    let Some(data) = found.answers[ack] else {
        // Not captured there: what it acknowledges was sent before it.
        let end = found.places[ack].0;
        let sent = found.latest(ack, walk.now, |i, p| p.data && found.places[i].1 == end && end > found.places[i].0);
        let Some(sent) = sent else { return Here::Lost };
        walk.back_to(packets[sent].near.unwrap_or(0), Kind::Unknown, "", None);
        return Here::Sent(sent);
    };
    let came = packets[data].far.unwrap_or(walk.now);
    let least = found.receiver[usize::from(p.far.is_none())];
    walk.back_to(came.saturating_add(least).min(walk.now), Kind::ReceiverSide, "", None);
    walk.back_to(came, walk.crossing, "", None);
    Here::Arrived(data)
}

/// A data packet has left the queue between the captures: it had waited there, behind the transfer's own packets or others.
fn left(found: &Found<'_>, walk: &mut Walk, data: usize) -> Here {
    let p = &found.talk.packets[data];
    let Some(near) = p.near else { return Here::Lost };
    let ahead = found.ahead(data).and_then(|own| {
        let takes = (found.talk.per_byte * f64::from(found.talk.packets[own].bytes)) as u64;
        let left = found.left(own)?;
        Some((own, left, left.saturating_add(takes)))
    });
    // The transfer's own packet was still there, or on the wire.
    let here = |own: usize, gone: u64| gone > near && found.talk.packets[own].near.is_some_and(|own| own <= near);
    if let Some((own, left, gone)) = ahead.filter(|(own, _, gone)| here(*own, *gone)) {
        walk.back_to(gone.min(walk.now), Kind::Queue, &found.talk.places[0], None);
        let kind = if walk.crossing == Kind::Handshake { Kind::Handshake } else { Kind::Serialisation };
        walk.back_to(left, kind, "", None);
        return Here::Left(own);
    }
    walk.back_to(near, Kind::Queue, &found.talk.places[0], None);
    Here::Sent(data)
}

/// A data packet passes the near capture: something had let its sender send it.
fn sent(found: &Found<'_>, walk: &mut Walk, data: usize) -> Here {
    let packets = found.talk.packets;
    let (p, before) = (&packets[data], found.before[data]);
    let Some(near) = p.near else { return Here::Lost };
    if near <= found.talk.start {
        return Here::Lost;
    }
    if p.syn && p.sent != Sent::First {
        // Of a SYN only its timer sends a copy.
        let first = found.latest(data, near, |_, p| p.data && p.syn);
        let Some(first) = first else { return Here::Lost };
        timer(found, walk, (Kind::Rto, packets[first].near.unwrap_or(0)), data);
        return Here::Sent(first);
    }
    if matches!(p.sent, Sent::Timeout | Sent::Probe) {
        let (kind, since) = if p.sent == Sent::Timeout { (Kind::Rto, before.armed) } else { (Kind::Tlp, before.last) };
        let Some((armed, at)) = since else { return Here::Lost };
        timer(found, walk, (kind, at), data);
        walk.enter(Kind::Recovery);
        return if packets[armed].data { Here::Sent(armed) } else { Here::Answered(armed) };
    }
    // The acknowledgment that could have let it go, and data that left after that.
    let until = near - (found.sender - found.sender / 10).min(near);
    let opens = found.latest(data, until, |_, p| !p.data && p.ack.is_some());
    let opened = opens.and_then(|ack| packets[ack].near);
    let own = found.latest(data, near, |i, p| p.data && found.places[i].1 > found.places[i].0);
    let follows = |own: &usize| packets[*own].near.is_some_and(|at| opened.is_none_or(|opened| at >= opened + found.sender));
    if let Some(own) = own.filter(follows) {
        let went = packets[own].near.unwrap_or(near);
        let takes = if found.pace.is_finite() { (found.pace * f64::from(packets[own].bytes)) as u64 } else { 0 };
        if before.idle {
            walk.back_to(went, Kind::Application, "", None);
            return Here::Sent(own);
        }
        let other = if opened.is_some() { Kind::SenderSide } else { Kind::Unknown };
        walk.back_to(went.saturating_add(takes).min(walk.now), other, "", None);
        let kind = if walk.crossing == Kind::Handshake { Kind::Handshake } else { Kind::Serialisation };
        walk.back_to(went, kind, "", None);
        return Here::Sent(own);
    }
    let Some((ack, opened)) = opens.zip(opened) else { return Here::Lost };
    let is_first = packets[ack].syn || own.is_none_or(|own| packets[own].syn);
    let least = opened.saturating_add(found.sender).min(walk.now);
    // Nothing was under way, and yet it did not send: not the acknowledgment was waited for.
    if let Some(own) = own.filter(|own| before.idle && !packets[*own].syn && walk.now - least > AT_ONCE) {
        walk.back_to(packets[own].near.unwrap_or(least), Kind::Application, "", None);
        return Here::Sent(own);
    }
    walk.back_to(least, if before.idle && walk.now - least > AT_ONCE { Kind::Application } else { Kind::SenderSide }, "", None);
    if is_first {
        walk.crossing = Kind::Handshake;
    } else {
        let full = before.window.is_some_and(|window| before.flight + u64::from(p.payload) > window);
        walk.enter(before.phase.unwrap_or(if full { Kind::ReceiveWindow } else { Kind::CongestionWindow }));
    }
    walk.back_to(opened, walk.crossing, "", None);
    Here::Answered(ack)
}

/// The time until a timer expired, and what of the transfer was lost between the captures by then.
fn timer(found: &Found<'_>, walk: &mut Walk, (kind, since): (Kind, u64), data: usize) {
    let packets = found.talk.packets;
    let (until, (begin, _)) = (walk.now, found.places[data]);
    let before = |time: u64| time < until;
    // Of each place in the stream the latest copy, if none had come to the far capture.
    let mut copies: BTreeMap<u64, Option<usize>> = BTreeMap::new();
    for i in found.near.iter().copied().take(found.at[data].unwrap_or(0)) {
        let (p, (at, end)) = (&packets[i], found.places[i]);
        if p.data && end > at && end > begin {
            let known = copies.entry(at).or_insert(Some(i));
            match p.far.filter(|far| before(*far)) {
                Some(_) => *known = None,
                None if known.is_some() => *known = Some(i),
                None => {}
            }
        }
    }
    let covered = |i: &usize| packets[*i].near.is_some_and(|near| (found.talk.far.0..=found.talk.far.1).contains(&near));
    let lost: Vec<usize> = copies.into_values().flatten().filter(covered).collect();
    let first = lost.first().copied();
    walk.waited.push(Waited {
        kind,
        from_ps: since,
        to_ps: until,
        seq_bytes: first.map_or(begin, |i| found.places[i].0).saturating_sub(found.first),
        lost_packets: lost.len() as u64,
        sent_again: first.is_some_and(|i| packets[i].sent != Sent::First),
        dropped_at: first.map(|_| found.talk.places[0].clone()),
        dropped_ps: first.and_then(|i| packets[i].near),
    });
    walk.back_to(since, kind, "", None);
}

#[cfg(test)]
mod tests;
