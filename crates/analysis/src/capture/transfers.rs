//! Transfers over TCP in a capture: the time of each, retransmissions, and retransmission timeouts of the sender.
//!
//! A transfer is what one side of a connection sends until the other side has data to send, or until all is acknowledged and a second passes:
//! a request, or a response. A segment that was sent before is *sent again*; one below what was sent before that fills a gap is too (it was lost
//! before it came here), unless it comes sooner than a retransmission can, and was only overtaken. A segment that is sent again although neither
//! data nor acknowledgments of its transfer passed for longer than two round trips was sent by a timer: a *timeout* if it is the first that is
//! not acknowledged, a *probe* if it is the last that was sent. Neither is told where no acknowledgments were captured. Source: RFC 6298 §5 (timer), RFC 8985 §7 (tail loss probe), RFC 6298 §3 (Karn).

use crate::capture::frame_checks::{Copies, COPY_WITHOUT_NUMBER};
use crate::capture::links::{Link, NONE};
use crate::capture::sequence::{after, ACK, RST, SAME_SYN, SYN};
use fanin_wire::{Frame, Headers, Tcp};
use std::collections::BTreeMap;

/// Silence after which more data is a transfer of its own, where nothing is outstanding [ps].
const APART: i64 = 1_000_000_000_000;
/// Shortest silence before a segment that a timer sent [ps], and the same as a multiple of the round trip.
const SHORTEST: i64 = 500_000_000;
const ROUND_TRIPS: i64 = 2;
/// Transfers, flows with gaps, and gaps of a flow that are held.
const MOST: usize = 1 << 20;
const MOST_WITH_GAPS: usize = 1 << 16;
const MOST_GAPS: usize = 64;

/// A transfer in a capture. Times: ps after the capture's first frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transfer {
    /// Flow of the transfer, by its entry in the survey.
    pub entry: u32,
    /// First SYN of the connection, where this side sent it and this is its first transfer.
    pub opened: Option<i64>,
    /// First payload of the other side since this side last sent any: the request that the transfer answers.
    pub asked: Option<i64>,
    /// Time of the first data.
    pub start: i64,
    /// Acknowledgment of the whole transfer; or the last frame, if it was not seen.
    pub end: i64,
    pub complete: bool,
    /// True if acknowledgments of the transfer were captured: without them, a timeout cannot be told from the wait for them.
    pub acks: bool,
    /// The connection was reset before all was acknowledged.
    pub reset: bool,
    /// Payload, each byte once.
    pub bytes: u64,
    /// Segments with data.
    pub segments: u64,
    pub resent: u64,
    pub resent_bytes: u64,
    /// Segments sent again whose first copy never came here.
    pub lost_before: u64,
    pub reordered: u64,
    pub timeouts: u64,
    /// Silences that timeouts ended, together.
    pub timeout_time: i64,
    pub probes: u64,
    /// SYNs after the first.
    pub syn_resent: u64,
    /// Longest silence while data was outstanding.
    pub stall: i64,
    /// Longest silence while all that had passed here was acknowledged.
    pub idle: i64,
}

impl Transfer {
    /// Time from the first SYN of the connection, or from the first data, to its end [ps].
    pub fn took(&self) -> i64 {
        (self.end - self.opened.unwrap_or(self.start)).max(0)
    }
}

/// One direction of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    /// Transfer in progress.
    transfer: Option<usize>,
    /// Sequence number behind all that was sent; latest acknowledgment.
    next: Option<u32>,
    acked: Option<u32>,
    /// Latest data or acknowledgment of the flow.
    last: Option<i64>,
    asked: Option<i64>,
    /// The SYN: its sequence number, its first and its latest time, how often it came again, and if it was the first of the connection.
    syn: Option<(u32, i64, i64, u64, bool)>,
    /// Shortest time from data to its acknowledgment; data whose acknowledgment is waited for.
    rtt: Option<i64>,
    sample: Option<(u32, i64)>,
}

impl Way {
    /// True if all that was sent is acknowledged; none where no acknowledgment was seen.
    fn all_acknowledged(&self) -> Option<bool> {
        Some(!after(self.next?, self.acked?))
    }
}

/// Bytes that were jumped over, and the time.
#[derive(Clone, Copy, Debug)]
struct Gap {
    from: u32,
    to: u32,
    at: i64,
}

/// All transfers of a capture, in order of their starts.
#[derive(Clone, Debug, Default)]
pub struct Transfers {
    ways: Vec<Way>,
    pub list: Vec<Transfer>,
    /// Transfers that began when so many were held.
    pub left_out: u64,
    gaps: BTreeMap<u32, Vec<Gap>>,
    copies: Copies,
}

impl Transfers {
    /// Takes a TCP frame of a flow at the place where it was captured first. `link`: the flow; `rtt`: its round trip by the handshake.
    pub fn see<T>(
        &mut self,
        (entry, link): (u32, &Link<T>),
        (at, rtt): (i64, Option<i64>),
        frame: &Frame<'_>,
        (headers, tcp): (&Headers, &Tcp),
    ) {
        let copy = self.copies.since(frame, headers, (entry, 0), at, false);
        if copy.is_some_and(|since| headers.id != 0 || since <= COPY_WITHOUT_NUMBER) {
            return;
        }
        let reverse = (link.reverse != NONE).then_some(link.reverse);
        self.take((entry, reverse), (at, rtt), tcp, headers.payload);
    }

    fn way(&mut self, entry: u32) -> &mut Way {
        if self.ways.len() <= entry as usize {
            self.ways.resize(entry as usize + 1, Way::default());
        }
        &mut self.ways[entry as usize]
    }

    fn take(&mut self, (entry, reverse): (u32, Option<u32>), (at, rtt): (i64, Option<i64>), tcp: &Tcp, payload: u32) {
        if tcp.flags & SYN != 0 {
            self.open(entry, at, tcp);
        }
        if let (Some(reverse), true) = (reverse, tcp.flags & ACK != 0) {
            self.acknowledge(reverse, at, tcp.ack);
        }
        if payload > 0 && tcp.flags & SYN == 0 {
            self.data(entry, (at, rtt), tcp.seq, payload);
            if let Some(reverse) = reverse {
                self.way(reverse).asked.get_or_insert(at);
            }
        }
        if tcp.flags & RST != 0 {
            for entry in std::iter::once(entry).chain(reverse) {
                if let Some(transfer) = self.way(entry).transfer.take().map(|i| &mut self.list[i]) {
                    transfer.reset = !transfer.complete;
                }
            }
        }
    }

    /// Handles a SYN or its answer: a connection begins, unless it came again.
    fn open(&mut self, entry: u32, at: i64, tcp: &Tcp) {
        let way = self.way(entry);
        match &mut way.syn {
            Some((seq, _, latest, again, _)) if *seq == tcp.seq => {
                *again += u64::from(at - *latest > SAME_SYN);
                *latest = at;
            }
            _ => {
                let first = tcp.flags & ACK == 0;
                let next = Some(tcp.seq.wrapping_add(1));
                *way = Way { syn: Some((tcp.seq, at, at, 0, first)), next, last: Some(at), ..Way::default() };
                self.gaps.remove(&entry);
            }
        }
    }

    /// Takes data of a flow.
    fn data(&mut self, entry: u32, (at, rtt): (i64, Option<i64>), seq: u32, payload: u32) {
        let end = seq.wrapping_add(payload);
        let mut way = *self.way(entry);
        let quiet = way.last.map_or(0, |last| (at - last).max(0));
        let acknowledged = way.all_acknowledged();
        if payload == 1 && acknowledged == Some(true) && way.next == Some(end) {
            return; // a keep-alive
        }
        let new = way.next.is_none_or(|next| after(end, next));
        let apart = way.asked.is_some() || quiet > APART;
        let ends = new && apart && acknowledged.unwrap_or(quiet > APART);
        if way.transfer.is_none() || ends {
            self.begin(entry, &mut way, (at, quiet));
        } else if let Some(transfer) = way.transfer.map(|i| &mut self.list[i]) {
            let longest = if acknowledged == Some(true) { &mut transfer.idle } else { &mut transfer.stall };
            *longest = quiet.max(*longest);
        }
        let gap = (!new).then(|| self.fill(entry, (seq, end))).flatten();
        if let Some(transfer) = way.transfer.map(|i| &mut self.list[i]) {
            (transfer.end, transfer.complete) = (at.max(transfer.end), false);
            transfer.segments += 1;
            if new {
                let from = way.next.filter(|next| after(*next, seq)).unwrap_or(seq);
                transfer.bytes += u64::from(end.wrapping_sub(from));
            } else {
                transfer.bytes += gap.map_or(0, |gap| u64::from(gap.to.wrapping_sub(gap.from)));
                let rtt = rtt.or(way.rtt);
                if gap.zip(rtt).is_some_and(|(gap, rtt)| at - gap.at < rtt) {
                    transfer.reordered += 1;
                } else {
                    transfer.lost_before += u64::from(gap.is_some());
                    let first = way.acked.is_none_or(|acked| !after(seq, acked));
                    let timed = transfer.acks && quiet > SHORTEST.max(ROUND_TRIPS * rtt.unwrap_or(0));
                    transfer.again(payload, timed.then_some(quiet), !first && way.next == Some(end));
                }
            }
        }
        if new {
            if let Some(next) = way.next.filter(|next| after(seq, *next)) {
                self.jump(entry, Gap { from: next, to: seq, at });
            }
            way.next = Some(end);
            way.sample.get_or_insert((end, at));
        } else {
            way.sample = None;
        }
        way.last = Some(at);
        *self.way(entry) = way;
    }

    /// Begins a transfer of a flow, if there is room for one.
    fn begin(&mut self, entry: u32, way: &mut Way, (at, quiet): (i64, i64)) {
        let asked = way.asked.take();
        let syn = way.syn.take_if(|_| way.transfer.is_none());
        way.transfer = None;
        if self.list.len() == MOST {
            self.left_out += 1;
            return;
        }
        let acks = way.acked.is_some();
        let opened = syn.and_then(|(_, opened, _, _, first)| first.then_some(opened));
        let syn_resent = syn.map_or(0, |(_, _, _, again, _)| again);
        // A first window that was lost before it came here is a silence after the handshake.
        let idle = opened.map_or(0, |_| quiet);
        way.transfer = Some(self.list.len());
        self.list.push(Transfer { entry, opened, asked, start: at, end: at, acks, syn_resent, idle, ..Transfer::default() });
    }

    /// Takes an acknowledgment of a flow's data.
    fn acknowledge(&mut self, entry: u32, at: i64, ack: u32) {
        let way = self.way(entry);
        let (before, quiet) = (way.all_acknowledged(), way.last.map_or(0, |last| (at - last).max(0)));
        if way.acked.is_none_or(|acked| after(ack, acked)) {
            way.acked = Some(ack);
            if let Some((_, sent)) = way.sample.take_if(|(end, _)| !after(*end, ack)) {
                let took = (at - sent).max(0);
                way.rtt = Some(way.rtt.map_or(took, |rtt| rtt.min(took)));
            }
        }
        let (done, transfer) = (way.all_acknowledged(), way.transfer);
        if before == Some(true) {
            return; // of what comes the other way
        }
        way.last = Some(at);
        if let Some(transfer) = transfer.map(|i| &mut self.list[i]) {
            transfer.acks = true;
            transfer.stall = quiet.max(transfer.stall);
            (transfer.end, transfer.complete) = (at.max(transfer.end), done == Some(true));
        }
    }

    /// Notes bytes of a flow that were jumped over: they may yet come.
    fn jump(&mut self, entry: u32, gap: Gap) {
        if self.gaps.len() >= MOST_WITH_GAPS && !self.gaps.contains_key(&entry) {
            return;
        }
        let gaps = self.gaps.entry(entry).or_default();
        if gaps.len() == MOST_GAPS {
            gaps.remove(0);
        }
        gaps.push(gap);
    }

    /// Part of a flow's gaps that a segment fills; `None` where it fills none.
    fn fill(&mut self, entry: u32, (from, to): (u32, u32)) -> Option<Gap> {
        let gaps = self.gaps.get_mut(&entry)?;
        let index = gaps.iter().position(|gap| after(to, gap.from) && after(gap.to, from))?;
        let gap = gaps.remove(index);
        let filled = Gap {
            from: if after(from, gap.from) { from } else { gap.from },
            to: if after(gap.to, to) { to } else { gap.to },
            at: gap.at,
        };
        for (from, to) in [(gap.from, filled.from), (filled.to, gap.to)] {
            if after(to, from) && gaps.len() < MOST_GAPS {
                gaps.push(Gap { from, to, at: gap.at });
            }
        }
        if gaps.is_empty() {
            self.gaps.remove(&entry);
        }
        Some(filled)
    }
}

impl Transfer {
    /// Counts a segment that was sent again; `silence`: before it, where a timer sent it; `probe`: not as the first that is missing.
    fn again(&mut self, payload: u32, silence: Option<i64>, probe: bool) {
        self.resent += 1;
        self.resent_bytes += u64::from(payload);
        match silence {
            Some(_) if probe => self.probes += 1,
            Some(silence) => {
                self.timeouts += 1;
                self.timeout_time += silence;
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: i64 = 1_000_000;
    const MS: i64 = 1_000 * US;

    /// A connection from flow 0 to flow 1, whose frames are given one by one.
    #[derive(Default)]
    struct Talk(Transfers);

    impl Talk {
        fn frame(&mut self, entry: u32, at: i64, (seq, payload, ack): (u32, u32, u32), flags: u8) -> &mut Self {
            let tcp = Tcp { seq, ack, flags, window: 1_000 };
            self.0.take((entry, Some(1 - entry)), (at, Some(100 * US)), &tcp, payload);
            self
        }

        /// A handshake at 0; then both sides have sent one sequence number.
        fn open(&mut self) -> &mut Self {
            self.frame(0, 0, (0, 0, 0), SYN).frame(1, 50 * US, (0, 0, 1), SYN | ACK).frame(0, 100 * US, (1, 0, 1), ACK)
        }

        fn data(&mut self, at: i64, seq: u32, payload: u32) -> &mut Self {
            self.frame(0, at, (seq, payload, 1), ACK)
        }

        fn ack(&mut self, at: i64, ack: u32) -> &mut Self {
            self.frame(1, at, (1, 0, ack), ACK)
        }
    }

    #[test]
    fn a_request_and_its_answer_are_transfers_of_their_own() {
        let mut t = Talk::default();
        t.open().data(200 * US, 1, 100).ack(260 * US, 101);
        // The answer: two segments, acknowledged at once; then a second request on the same connection.
        t.frame(1, 500 * US, (1, 1000, 101), ACK).frame(1, 510 * US, (1001, 500, 101), ACK);
        t.frame(0, 600 * US, (101, 0, 1501), ACK).frame(0, 2 * MS, (101, 100, 1501), ACK);
        let found = &t.0.list;
        assert_eq!(found.len(), 3);
        let (first, answer, second) = (found[0], found[1], found[2]);
        assert_eq!((first.opened, first.start, first.end, first.complete), (Some(0), 200 * US, 260 * US, true));
        assert_eq!((first.took(), first.bytes, first.asked), (260 * US, 100, None));
        assert_eq!((answer.entry, answer.asked, answer.start, answer.end), (1, Some(200 * US), 500 * US, 600 * US));
        assert_eq!((answer.took(), answer.bytes, answer.segments, answer.complete), (100 * US, 1500, 2, true));
        assert_eq!((second.opened, second.asked, second.complete), (None, Some(500 * US), false));
    }

    #[test]
    fn a_timeout_is_a_segment_sent_again_after_a_silence_and_what_acknowledgments_release_is_none() {
        let mut t = Talk::default();
        t.open().data(200 * US, 1, 1000).data(201 * US, 1001, 1000).data(202 * US, 2001, 1000).ack(300 * US, 1001);
        // 200 ms later the second comes again, and twice as late once more; then the third, at once.
        t.data(200 * MS, 1001, 1000).data(600 * MS, 1001, 1000).ack(600 * MS + 100 * US, 2001);
        t.data(600 * MS + 150 * US, 2001, 1000).ack(600 * MS + 250 * US, 3001);
        let [found] = t.0.list[..] else { panic!("{:?}", t.0.list) };
        assert_eq!((found.resent, found.resent_bytes, found.timeouts, found.probes), (3, 3000, 2, 0));
        assert_eq!(found.timeout_time, 600 * MS - 300 * US);
        assert_eq!((found.bytes, found.segments, found.stall), (3000, 6, 400 * MS));
        assert_eq!((found.complete, found.took()), (true, 600 * MS + 250 * US));
    }

    #[test]
    fn without_acknowledgments_no_timeout_is_told() {
        let mut t = Talk::default();
        t.data(0, 1, 1000).data(US, 1001, 1000).data(200 * MS, 1, 1000);
        let [found] = t.0.list[..] else { panic!("{:?}", t.0.list) };
        assert_eq!((found.acks, found.resent, found.timeouts, found.probes, found.complete), (false, 1, 0, 0, false));
    }

    #[test]
    fn a_probe_sends_the_last_segment_again_while_earlier_ones_are_missing() {
        let mut t = Talk::default();
        t.open().data(200 * US, 1, 1000).data(201 * US, 1001, 1000).data(202 * US, 2001, 1000).ack(300 * US, 1001);
        t.data(5 * MS, 2001, 1000).ack(5 * MS + 100 * US, 1001).data(5 * MS + 110 * US, 1001, 1000);
        t.ack(5 * MS + 210 * US, 3001);
        let [found] = t.0.list[..] else { panic!("{:?}", t.0.list) };
        assert_eq!((found.resent, found.timeouts, found.probes, found.complete), (2, 0, 1, true));
    }

    #[test]
    fn behind_a_loss_the_segment_that_fills_the_gap_was_sent_again_unless_it_comes_too_soon() {
        let mut t = Talk::default();
        // The capture is at the receiver: the second segment is missing, and comes 300 us later.
        t.open().data(200 * US, 1, 1000).ack(201 * US, 1001).data(202 * US, 2001, 1000).ack(203 * US, 1001);
        t.data(500 * US, 1001, 1000).ack(501 * US, 3001);
        // The fifth overtakes the fourth.
        t.data(600 * US, 4001, 1000).data(605 * US, 3001, 1000).ack(606 * US, 5001);
        let [found] = t.0.list[..] else { panic!("{:?}", t.0.list) };
        assert_eq!((found.resent, found.lost_before, found.reordered, found.timeouts, found.bytes), (1, 1, 1, 0, 5000));
        assert!(t.0.gaps.is_empty());
    }

    #[test]
    fn a_syn_that_came_again_is_part_of_its_first_transfer() {
        let mut t = Talk::default();
        t.frame(0, 0, (0, 0, 0), SYN).frame(0, 10 * US, (0, 0, 0), SYN).frame(0, 1_000 * MS, (0, 0, 0), SYN);
        t.frame(1, 1_000 * MS + 50 * US, (0, 0, 1), SYN | ACK).frame(0, 1_000 * MS + 100 * US, (1, 0, 1), ACK);
        t.data(1_000 * MS + 200 * US, 1, 100).ack(1_000 * MS + 300 * US, 101);
        let [found] = t.0.list[..] else { panic!("{:?}", t.0.list) };
        assert_eq!((found.syn_resent, found.took(), found.resent), (1, 1_000 * MS + 300 * US, 0));
    }

    #[test]
    fn keep_alives_resets_and_pauses() {
        let mut t = Talk::default();
        t.open().data(200 * US, 1, 1000).ack(300 * US, 1001);
        t.frame(0, 75_000 * MS, (1000, 1, 1), ACK).ack(75_000 * MS + 50 * US, 1001);
        assert_eq!((t.0.list[0].end, t.0.list[0].resent), (300 * US, 0));
        // More data after more than a second, and within one.
        t.data(76_000 * MS, 1001, 1000).ack(76_000 * MS + 100 * US, 2001).data(76_500 * MS, 2001, 1000);
        t.frame(1, 76_501 * MS, (1, 0, 0), RST);
        assert_eq!(t.0.list.len(), 2);
        let last = t.0.list[1];
        assert_eq!((last.bytes, last.complete, last.reset, last.idle), (2000, false, true, 500 * MS - 100 * US));
    }

    #[test]
    fn sequence_numbers_wrap_and_gaps_are_bounded() {
        let mut t = Talk::default();
        let start = u32::MAX - 1500;
        t.data(0, start, 1000).data(US, start.wrapping_add(1000), 1000).ack(2 * US, start.wrapping_add(2000));
        assert_eq!((t.0.list[0].bytes, t.0.list[0].complete, t.0.list[0].resent), (2000, true, 0));
        let mut at = start.wrapping_add(2000);
        for i in 0..1_000 {
            at = at.wrapping_add(2000);
            t.data((3 + i) * US, at, 1000);
        }
        assert_eq!(t.0.gaps[&0].len(), MOST_GAPS);
    }
}
