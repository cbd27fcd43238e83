//! TCP connections in a capture: their opening, their round trip on the idle network, and the bytes that the capture has missed.
//! Source: RFC 9293 §3.5 (handshake), RFC 6298 §3 (Karn's algorithm), RFC 7323 §3 (timestamps).

use crate::capture::acks::{Acks, Late};
use crate::capture::frame_checks::Sample;
use crate::capture::links::{Link, NONE};
use crate::capture::sequence::{after, ACK, FIN, SAME_SYN, SYN};
use fanin_wire::Tcp;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Longest plausible round trip [ps]: whoever waits longer sends its SYN again (RFC 6298 §2.1).
const LONGEST: i64 = 1_000_000_000_000;
/// Slowest clock of TCP timestamps that is expected [ps per tick].
const SLOWEST_TICK: i64 = 10_000_000_000;
/// Gaps of a flow that are held, and flows with gaps.
const MOST_GAPS: usize = 4;
const MOST_WITH_GAPS: usize = 1 << 16;

/// State of a handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Handshake {
    #[default]
    None,
    /// The SYN was captured.
    Syn,
    /// The SYN/ACK was captured: how long its answer takes depends on where it was captured.
    Answer,
    /// The SYN/ACK was captured twice: an answer may be to either.
    Repeated,
    Done,
}

/// One direction of a connection at one place. Times: ps after the capture's first frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct Talk {
    /// Time of the first frame.
    pub first: i64,
    handshake: Handshake,
    syn_at: i64,
    syn_seq: u32,
    /// The SYN's answer was another SYN's, perhaps.
    rtt: i64,
    /// Sequence number after the highest byte that was sent, once there was one.
    next: Option<u32>,
    /// Latest timestamp of the sender, and the time at which it passed.
    clock: Option<u32>,
    clock_at: i64,
    /// Largest payload that the sender accepts, by its SYN; 0: unknown.
    pub mss: u16,
    /// The first frame, by place in the file or by time, was the SYN or SYN/ACK.
    pub from_start: bool,
    pub has_data: bool,
    pub tcp: bool,
    pub acks: Acks,
    /// Receiver of the tunnel in which the first frame was.
    pub outer: Option<(IpAddr, Option<u16>)>,
    /// Packets by which the flow is found again at other places.
    pub sample: Sample,
}

/// Bytes that were acknowledged, and never captured.
#[derive(Clone, Debug, Default)]
pub struct Missed {
    pub bytes: u64,
    /// Number of occurrences.
    pub times: u64,
    gaps: BTreeMap<u32, Vec<Gap>>,
}

/// Bytes of a flow that a later segment went past: to be sent again, overtaken, or missed by the capture.
#[derive(Clone, Copy, Debug)]
struct Gap {
    from: u32,
    to: u32,
    /// Time of the later segment, and its sender's timestamp.
    at: i64,
    clock: Option<u32>,
}

impl Talk {
    /// Bytes of the flow that were sent and not acknowledged; `None` where no acknowledgment was captured.
    pub fn outstanding(&self) -> Option<u32> {
        self.acks.outstanding(self.next)
    }

    /// Time at which the first SYN or SYN/ACK passed; `None`: the flow was there before.
    pub fn opened(&self) -> Option<i64> {
        self.from_start.then_some(self.first)
    }

    /// Time from the SYN to the acknowledgment of its answer.
    pub fn rtt(&self) -> Option<i64> {
        (self.rtt > 0).then_some(self.rtt)
    }

    /// Takes a frame of a handshake; true: a connection begins.
    fn shake(&mut self, at: i64, first: bool, tcp: &Tcp, payload: u32) -> bool {
        if tcp.flags & SYN != 0 {
            // A file that is not in order of time may have later segments before its SYN.
            self.from_start |= first || at <= self.first;
            let again = matches!(self.handshake, Handshake::Syn | Handshake::Repeated) && self.syn_seq == tcp.seq;
            if tcp.flags & ACK != 0 {
                self.handshake = Handshake::Answer;
            } else if !again {
                (self.handshake, self.syn_at, self.syn_seq) = (Handshake::Syn, at, tcp.seq);
                return true;
            } else if at - self.syn_at > SAME_SYN {
                self.handshake = Handshake::Repeated;
            }
        } else if tcp.flags & ACK != 0
            && tcp.seq == self.syn_seq.wrapping_add(1)
            && payload == 0
            && self.handshake == Handshake::Syn
        {
            self.handshake = Handshake::Done;
            if at > self.syn_at && at - self.syn_at < LONGEST && self.rtt == 0 {
                self.rtt = at - self.syn_at;
            }
        }
        false
    }

    /// Time [ps] by which the capture's clock runs ahead since this flow's last frame than the sender's clock does, if that is
    /// more than half.
    pub fn jumped(&self, at: i64, clock: Option<u32>) -> Option<i64> {
        let passed = i64::from(clock?.wrapping_sub(self.clock?) as i32);
        let here = at - self.clock_at;
        (passed >= 0 && passed.saturating_mul(SLOWEST_TICK) < here / 2).then_some(here)
    }

    pub fn note_clock(&mut self, at: i64, clock: Option<u32>) {
        if clock.is_some() {
            (self.clock, self.clock_at) = (clock, at);
        }
    }
}

/// Takes a TCP frame of `links[entry]`; `first`: it is its first; `clock`: the sender's timestamp, where it is read.
pub fn see(
    links: &mut [Link<Talk>],
    entry: u32,
    (at, first): (i64, bool),
    (tcp, payload, clock): (&Tcp, u32, Option<u32>),
    missed: &mut Missed,
) {
    // What was captured of a flow's bytes at any place was captured: packets may take one of several ways.
    let all = links[entry as usize].first;
    let reverse = links[all as usize].reverse;
    let talk = &mut links[entry as usize].more;
    if first {
        (talk.first, talk.tcp) = (at, true);
    }
    talk.first = talk.first.min(at);
    talk.has_data |= payload > 0;
    let shakes = tcp.flags & SYN != 0 || talk.handshake == Handshake::Syn;
    if shakes && talk.shake(at, first, tcp, payload) {
        let talk = &mut links[all as usize].more;
        talk.next = None;
        talk.acks.begin();
    }
    let control = u32::from(tcp.flags & SYN != 0) + u32::from(tcp.flags & FIN != 0);
    let end = tcp.seq.wrapping_add(payload).wrapping_add(control);
    let rtt = links[all as usize].more.rtt().or_else(|| (reverse != NONE).then(|| links[reverse as usize].more.rtt()).flatten());
    let talk = &mut links[all as usize].more;
    if entry == all {
        let data = (tcp.seq, tcp.seq.wrapping_add(payload));
        match missed.reason(all, data, (at, clock), rtt) {
            Some(late) if payload > 0 && talk.next.is_some_and(|next| !after(data.1, next)) => {
                talk.acks.again_bytes += u64::from(payload);
                talk.acks.late(late);
            }
            _ => talk.acks.sent(at, (tcp.seq, payload), talk.next),
        }
    }
    match talk.next {
        // A bare acknowledgment shows what was sent before, not that it was captured.
        None if end != tcp.seq => talk.next = Some(end),
        Some(next) if after(end, next) => {
            if after(tcp.seq, next) {
                missed.open(all, Gap { from: next, to: tcp.seq, at, clock });
            }
            talk.next = Some(end);
        }
        Some(_) if end != tcp.seq && !missed.gaps.is_empty() => missed.fill(all, (tcp.seq, end)),
        _ => {}
    }
    if tcp.flags & ACK == 0 || reverse == NONE {
        return;
    }
    let other = &mut links[reverse as usize].more;
    let Some(next) = other.next else { return };
    other.acks.acknowledged(tcp.ack, Some(next));
    if after(tcp.ack, next) {
        missed.add(tcp.ack.wrapping_sub(next));
        other.next = Some(tcp.ack);
    }
    if !missed.gaps.is_empty() {
        missed.acknowledge(reverse, tcp.ack);
    }
}

impl Missed {
    fn add(&mut self, bytes: u32) {
        self.bytes += u64::from(bytes);
        self.times += 1;
    }

    /// Notes a gap in the captured bytes of a flow: it may yet be filled.
    fn open(&mut self, flow: u32, gap: Gap) {
        if self.gaps.len() >= MOST_WITH_GAPS && !self.gaps.contains_key(&flow) {
            return;
        }
        let gaps = self.gaps.entry(flow).or_default();
        if gaps.len() == MOST_GAPS {
            gaps.remove(0);
        }
        gaps.push(gap);
    }

    /// Reason for which a segment comes that fills a gap; none where it fills none.
    ///
    /// A sender that learns of a gap sends again after a round trip, and with a later timestamp than what opened the gap; what was
    /// only overtaken was sent before that, with an earlier one.
    fn reason(&self, flow: u32, (from, to): (u32, u32), (at, clock): (i64, Option<u32>), rtt: Option<i64>) -> Option<Late> {
        if self.gaps.is_empty() {
            return None;
        }
        let gap = self.gaps.get(&flow)?.iter().find(|gap| after(gap.to, from) && after(to, gap.from))?;
        let older = clock.zip(gap.clock).map_or(0, |(clock, of_gap)| clock.wrapping_sub(of_gap) as i32);
        let since = at - gap.at;
        Some(match (older, rtt) {
            (1.., _) => Late::Again,
            (..0, _) => Late::Overtaken,
            // Stamped before what overtook it: the capture's order is not that of time.
            _ if since < 0 => Late::Overtaken,
            (0, Some(rtt)) if since < rtt => Late::Overtaken,
            (0, Some(_)) => Late::Again,
            (0, None) => Late::Unclear,
        })
    }

    fn fill(&mut self, flow: u32, (from, to): (u32, u32)) {
        let Some(gaps) = self.gaps.get_mut(&flow) else { return };
        let mut left = Vec::new();
        for gap in gaps.drain(..) {
            // What is before, and what is behind.
            if after(from, gap.from) {
                left.push(Gap { to: if after(gap.to, from) { from } else { gap.to }, ..gap });
            }
            if after(gap.to, to) {
                left.push(Gap { from: if after(to, gap.from) { to } else { gap.from }, ..gap });
            }
        }
        left.truncate(MOST_GAPS);
        if left.is_empty() {
            self.gaps.remove(&flow);
        } else {
            *gaps = left;
        }
    }

    /// Notes acknowledged bytes, which were received: a gap in them is the capture's.
    fn acknowledge(&mut self, flow: u32, ack: u32) {
        let Some(gaps) = self.gaps.get_mut(&flow) else { return };
        let mut lost = Vec::new();
        gaps.retain(|gap| {
            let there = after(gap.to, ack);
            if !there {
                lost.push(gap.to.wrapping_sub(gap.from));
            }
            there
        });
        if gaps.is_empty() {
            self.gaps.remove(&flow);
        }
        lost.into_iter().for_each(|bytes| self.add(bytes));
    }
}

/// Idle round trips of pairs of hosts: the shortest handshake of any connection between them.
#[derive(Clone, Debug, Default)]
pub struct RoundTrips(BTreeMap<(IpAddr, IpAddr), i64>);

fn pair((a, b): (IpAddr, IpAddr)) -> (IpAddr, IpAddr) {
    (a.min(b), a.max(b))
}

impl RoundTrips {
    pub fn of(links: &[Link<Talk>]) -> Self {
        let mut shortest = BTreeMap::new();
        for link in links {
            if let Some(rtt) = link.more.rtt() {
                let known = shortest.entry(pair(link.key.addresses())).or_insert(rtt);
                *known = rtt.min(*known);
            }
        }
        RoundTrips(shortest)
    }

    /// Adds the round trips of another capture.
    pub fn join(&mut self, other: &RoundTrips) {
        for (hosts, rtt) in &other.0 {
            let known = self.0.entry(*hosts).or_insert(*rtt);
            *known = (*rtt).min(*known);
        }
    }

    /// Round trip between two hosts [ps].
    pub fn between(&self, hosts: (IpAddr, IpAddr)) -> Option<u64> {
        self.0.get(&pair(hosts)).and_then(|rtt| u64::try_from(*rtt).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_that_was_overtaken_was_not_sent_again() {
        const RTT: Option<i64> = Some(100);
        let mut missed = Missed::default();
        let gap = |at, clock| Gap { from: u32::MAX - 999, to: 448, at, clock };
        missed.open(1, gap(1_000, Some(50)));
        missed.open(2, gap(1_000, None));
        let reason = |flow, at, clock, rtt| missed.reason(flow, (u32::MAX - 999, 448), (at, clock), rtt);
        // Timestamps decide, whatever the time says.
        for (at, clock, late) in [(5_000, 49, Late::Overtaken), (1_010, 51, Late::Again)] {
            for rtt in [None, RTT] {
                assert_eq!(reason(1, at, Some(clock), rtt), Some(late), "{at} {clock} {rtt:?}");
            }
        }
        // Where they are equal, or absent, it is the round trip.
        for (flow, clock) in [(1, Some(50)), (2, None), (2, Some(60))] {
            let found = |at, rtt| reason(flow, at, clock, rtt);
            assert_eq!((found(1_099, RTT), found(1_100, RTT)), (Some(Late::Overtaken), Some(Late::Again)));
            assert_eq!((found(999, None), found(1_000, None)), (Some(Late::Overtaken), Some(Late::Unclear)));
        }
        // What fills no gap says nothing.
        assert_eq!(missed.reason(1, (448, 1_896), (1_010, Some(50)), RTT), None);
        assert_eq!(missed.reason(3, (0, 448), (1_010, Some(50)), RTT), None);
    }
}
