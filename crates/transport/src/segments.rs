//! Outstanding segments: send time and state of each. Source: RFC 8985 §5.2; Linux tcp_rtx_queue.

use fanin_units::{Span, Time};
use std::collections::VecDeque;

/// The segment was acknowledged selectively.
const SACKED: u8 = 1;
/// The segment is believed lost.
const LOST: u8 = 2;
/// A retransmission of the segment is in flight. Source: Linux TCPCB_SACKED_RETRANS.
const AGAIN: u8 = 4;
/// The segment was retransmitted at some time: its acknowledgment is ambiguous (Karn).
const EVER: u8 = 8;
/// A switch or the receiver has reported the segment as lost.
const NAMED: u8 = 16;
/// The segment was reported as lost, and is retransmitted regardless of the window.
const AT_ONCE: u8 = 32;

/// An outstanding segment; it begins where the previous one ends, the first at SND.UNA.
#[derive(Clone, Copy, Debug)]
struct Seg {
    end: u64,
    /// Time of the last transmission.
    at: Time,
    state: u8,
}

impl Seg {
    fn is(&self, bits: u8) -> bool {
        self.state & bits != 0
    }

    /// True if the segment is lost and was not retransmitted since.
    fn waits(&self) -> bool {
        self.state & (LOST | AGAIN) == LOST
    }
}

/// A transmission of the range [from, to).
#[derive(Clone, Copy, Debug)]
struct Sending {
    at: Time,
    from: u64,
    to: u64,
}

/// State by which an ACK is judged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    pub now: Time,
    /// End of the data outstanding when the present recovery began.
    pub recover: u64,
    /// End of the highest SACKed segment.
    pub highest: u64,
}

/// Data that an ACK newly acknowledges.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrivals {
    /// Send times of the first and the last cumulatively acknowledged segment, among those sent once and not SACKed before.
    acked: Option<(Time, Time)>,
    /// Send times of the first and the last selectively acknowledged segment, among those sent once.
    sacked: Option<(Time, Time)>,
    /// True if a retransmitted segment was acknowledged cumulatively. Source: Linux FLAG_RETRANS_DATA_ACKED.
    pub again_acked: bool,
    /// True if the ACK covers a segment that was outstanding at the start of the recovery and never retransmitted. Source:
    /// Linux FLAG_ORIG_SACK_ACKED.
    pub original: bool,
    /// Lowest segment that was sent once and arrived after a higher one: reordering.
    pub reordered: Option<u64>,
    /// The segment sent last among unambiguously acknowledged ones: its send time and end; and the RTT of the last one
    /// processed.
    pub newest: Option<(Time, u64)>,
    pub rtt: Span,
}

impl Arrivals {
    /// RTT of the first newly acknowledged segment that was sent once. Source: Linux tcp_clean_rtx_queue (seq_rtt_us,
    /// sack_rtt_us).
    pub fn oldest_rtt(&self, now: Time) -> Option<Span> {
        self.acked.filter(|_| !self.again_acked).or(self.sacked).map(|(first, _)| now.since(first))
    }

    /// RTT of the newly acknowledged segment that was sent last.
    pub fn latest_rtt(&self, now: Time) -> Option<Span> {
        let last = |times: Option<(Time, Time)>| times.map(|(_, last)| last);
        last(self.acked).max(last(self.sacked)).map(|at| now.since(at))
    }

    /// RTT from selective acknowledgments alone.
    pub fn sack_rtt(&self, now: Time) -> Option<Span> {
        self.sacked.map(|(first, _)| now.since(first))
    }
}

/// Outstanding segments in stream order, and their transmissions in time order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segments {
    list: VecDeque<Seg>,
    /// SND.UNA, where the first segment begins.
    una: u64,
    /// Transmissions, oldest first; those of segments acknowledged or retransmitted since are stale.
    order: VecDeque<Sending>,
    /// Number of bytes SACKed, lost, retransmitted, and lost but not retransmitted.
    sacked: u64,
    lost: u64,
    again: u64,
    waiting: u64,
    /// Number of lost bytes that no notification has reported.
    found: u64,
    /// Start of the first segment that waits for retransmission, and of the first that does not wait for the window.
    next: u64,
    at_once: u64,
    arrivals: Arrivals,
    /// Minimum RTT, and the time at which it was measured.
    least: Option<(Span, Time)>,
}

/// Time for which the minimum RTT is remembered. Source: Linux tcp_min_rtt_wlen (300 s).
const LEAST_RTT_WINDOW: Span = Span::from_s(300);
const NOWHERE: u64 = u64::MAX;

impl Segments {
    /// State with nothing outstanding.
    pub fn new(una: u64) -> Self {
        Segments { una, next: NOWHERE, at_once: NOWHERE, ..Segments::default() }
    }

    /// Resets the state when the connection opens; the RTT measured by the handshake is kept.
    pub fn restart(&mut self, una: u64) {
        *self = Segments { least: self.least, ..Segments::new(una) };
    }

    /// Minimum RTT: an ACK of a retransmission that arrives faster was caused by the original.
    pub fn least_rtt(&self) -> Option<Span> {
        self.least.map(|(rtt, _)| rtt)
    }

    /// Records a measured RTT. Deviation: the shortest is forgotten as a whole, where Linux has a moving window (minmax).
    pub fn note_rtt(&mut self, now: Time, rtt: Span) {
        if self.least.is_none_or(|(least, at)| rtt <= least || now.since(at) > LEAST_RTT_WINDOW) {
            self.least = Some((rtt, now));
        }
    }

    /// Bytes in flight. Source: RFC 6675 §4 SetPipe; Linux tcp_packets_in_flight.
    pub fn pipe(&self, nxt: u64) -> u64 {
        (nxt - self.una + self.again).saturating_sub(self.sacked + self.lost)
    }

    /// Number of bytes acknowledged selectively.
    pub fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Number of lost bytes that no notification has reported.
    pub fn found_lost(&self) -> u64 {
        self.found
    }

    /// Number of bytes whose retransmission is in flight.
    pub fn again(&self) -> u64 {
        self.again
    }

    /// True if nothing outstanding is SACKed, lost or retransmitted.
    pub fn is_plain(&self) -> bool {
        self.sacked + self.lost + self.again == 0
    }

    /// Time of the first segment's last transmission.
    pub fn head_sent(&self) -> Option<Time> {
        self.list.front().map(|s| s.at)
    }

    /// Range of the first segment.
    pub fn first(&self) -> Option<(u64, u64)> {
        self.list.front().map(|s| (self.una, s.end))
    }

    pub fn last(&self) -> Option<(u64, u64)> {
        let i = self.list.len().checked_sub(1)?;
        Some((self.begin(i), self.list[i].end))
    }

    /// True if exactly one segment is outstanding.
    pub fn is_single(&self) -> bool {
        self.list.len() == 1
    }

    /// First segment that is lost and whose retransmission is not in flight.
    pub fn next_lost(&self) -> Option<(u64, u64)> {
        self.at(self.next)
    }

    /// First segment waiting for retransmission that the window does not limit.
    pub fn next_at_once(&self) -> Option<(u64, u64)> {
        self.at(self.at_once)
    }

    fn at(&self, from: u64) -> Option<(u64, u64)> {
        (from != NOWHERE).then(|| (from, self.list[self.index(from)].end))
    }

    /// Index of the segment that contains the byte at `at`.
    fn index(&self, at: u64) -> usize {
        self.list.partition_point(|s| s.end <= at)
    }

    fn begin(&self, i: usize) -> u64 {
        i.checked_sub(1).map_or(self.una, |i| self.list[i].end)
    }

    /// Splits the segment that contains `at`, so that one begins there. Source: Linux tcp_fragment.
    fn split(&mut self, at: u64) {
        let i = self.index(at);
        if i < self.list.len() && at > self.begin(i) {
            let first = Seg { end: at, ..self.list[i] };
            self.list.insert(i, first);
        }
    }

    /// Largest range of whole segments in [from, to), as SACKs of parts are ignored. Source: Linux tcp_match_skb_to_sack.
    pub fn whole(&self, from: u64, to: u64) -> (u64, u64) {
        let (first, last) = (self.index(from), self.index(to));
        let cut = |i: usize, at: u64| self.begin(i) < at;
        let start = self.list.get(first).filter(|_| cut(first, from)).map_or(from, |s| s.end);
        let end = self.list.get(last).filter(|_| cut(last, to)).map_or(to, |_| self.begin(last));
        (start, end.max(start))
    }

    /// Adds a segment of new data up to `end`.
    pub fn sent(&mut self, now: Time, end: u64) {
        let from = self.list.back().map_or(self.una, |s| s.end);
        self.list.push_back(Seg { end, at: now, state: 0 });
        self.order.push_back(Sending { at: now, from, to: end });
    }

    /// Records a retransmission of [from, to). What is not lost stays in flight once: a tail loss probe. Source: Linux
    /// __tcp_retransmit_skb (TCPCB_EVER_RETRANS), tcp_retransmit_skb (retrans_out).
    pub fn sent_again(&mut self, now: Time, from: u64, to: u64) {
        self.split(from);
        self.split(to);
        let (first, after) = (self.index(from), self.index(to));
        let mut begin = self.begin(first);
        for s in self.list.range_mut(first..after) {
            let len = s.end - begin;
            begin = s.end;
            if s.waits() {
                self.waiting -= len;
                self.again += len;
                s.state |= AGAIN;
            }
            s.state = (s.state | EVER) & !AT_ONCE;
            s.at = now;
        }
        self.order.push_back(Sending { at: now, from, to });
        self.seek();
    }

    /// Marks [from, to) as SACKed; nothing of it was before.
    pub fn arrived(&mut self, known: &Known, from: u64, to: u64) {
        self.split(from);
        self.split(to);
        let (first, after) = (self.index(from), self.index(to));
        let least = self.least_rtt();
        let mut begin = self.begin(first);
        for s in self.list.range_mut(first..after) {
            let len = s.end - begin;
            self.arrivals.advance(known, least, s);
            // A retransmission of what was not lost stays in flight. Source: Linux tcp_sacktag_one.
            if s.is(LOST) {
                self.lost -= len;
                self.waiting -= if s.waits() { len } else { 0 };
                self.found -= if s.is(NAMED) { 0 } else { len };
                self.again -= if s.is(AGAIN) { len } else { 0 };
                s.state &= !(LOST | AGAIN | NAMED | AT_ONCE);
            }
            if !s.is(EVER) {
                if begin < known.highest {
                    self.arrivals.reorder(begin);
                }
                self.arrivals.original |= s.end <= known.recover;
                let times = &mut self.arrivals.sacked;
                *times = Some((times.map_or(s.at, |t| t.0), s.at));
            }
            s.state |= SACKED;
            self.sacked += len;
            begin = s.end;
        }
        self.seek();
    }

    /// Removes all segments below `una`, which are acknowledged.
    pub fn acknowledged(&mut self, known: &Known, una: u64) {
        if una <= self.una {
            return;
        }
        self.split(una);
        let least = self.least_rtt();
        while let Some(s) = self.list.front().filter(|s| s.end <= una) {
            let len = s.end - self.una;
            self.again -= if s.is(AGAIN) { len } else { 0 };
            self.arrivals.again_acked |= s.is(EVER);
            if s.is(SACKED) {
                self.sacked -= len;
            } else {
                if !s.is(EVER) {
                    if self.una < known.highest {
                        self.arrivals.reorder(self.una);
                    }
                    self.arrivals.original |= s.end <= known.recover;
                    let times = &mut self.arrivals.acked;
                    *times = Some((times.map_or(s.at, |t| t.0), s.at));
                }
                self.arrivals.advance(known, least, s);
            }
            if s.is(LOST) {
                self.lost -= len;
                self.waiting -= if s.waits() { len } else { 0 };
                self.found -= if s.is(NAMED) { 0 } else { len };
            }
            self.una = s.end;
            self.list.pop_front();
        }
        while self.order.front().is_some_and(|s| s.to <= una) {
            self.order.pop_front();
        }
        self.seek();
    }

    /// Takes the data newly acknowledged by the present ACK.
    pub fn take_arrivals(&mut self, now: Time) -> Arrivals {
        let arrivals = std::mem::take(&mut self.arrivals);
        if let Some(rtt) = arrivals.latest_rtt(now) {
            self.note_rtt(now, rtt);
        }
        arrivals
    }

    /// Marks segment `i` as lost. Source: Linux tcp_mark_skb_lost.
    fn lose(&mut self, i: usize, named: u8) -> u64 {
        let len = self.list[i].end - self.begin(i);
        let s = &mut self.list[i];
        if s.is(SACKED) || s.waits() {
            return 0;
        }
        if s.is(LOST) {
            self.found -= if s.is(NAMED) { 0 } else { len };
        } else {
            self.lost += len;
        }
        if s.is(AGAIN) {
            self.again -= len;
        }
        s.state = s.state & !(AGAIN | NAMED | AT_ONCE) | LOST | named;
        self.found += if named == 0 { len } else { 0 };
        self.waiting += len;
        let begin = self.begin(i);
        self.next = self.next.min(begin);
        if named & AT_ONCE != 0 {
            self.at_once = self.at_once.min(begin);
        }
        len
    }

    /// Finds losses: segments sent before `newest`, by `settle` at least. Returns the time until further ones count as lost.
    /// Source: RFC 8985 §6.2 step 5; Linux tcp_rack_detect_loss.
    pub fn find_lost(&mut self, now: Time, newest: (Time, u64), settle: Span) -> Option<Span> {
        let before = |s: &Sending| (s.at, s.to) < newest;
        while let Some(s) = self.order.front().copied().filter(before) {
            if self.is_current(&s) {
                if s.at + settle > now {
                    break;
                }
                let (first, after) = (self.index(s.from), self.list.partition_point(|seg| seg.end <= s.to));
                for i in first..after {
                    if self.list[i].at == s.at {
                        self.lose(i, 0);
                    }
                }
            }
            self.order.pop_front();
        }
        let upto = self.order.partition_point(before);
        let last = self.order.range(..upto).rev().find(|s| self.is_current(s))?;
        Some((last.at + settle).since(now))
    }

    /// True if a transmission is the last one of a segment that is neither acknowledged nor waits for retransmission.
    fn is_current(&self, s: &Sending) -> bool {
        s.to > self.una
            && self
                .list
                .range(self.index(s.from)..)
                .take_while(|seg| seg.end <= s.to)
                .any(|seg| seg.at == s.at && !seg.is(SACKED) && !seg.waits())
    }

    /// Marks segments lost after a timeout: the first one, and all whose last transmission is `age` old. Source: RFC 8985
    /// §6.3; Linux tcp_timeout_mark_lost.
    pub fn lose_old(&mut self, now: Time, age: Span) {
        for i in 0..self.list.len() {
            if i == 0 || self.list[i].at + age <= now {
                self.lose(i, 0);
            }
        }
    }

    /// Marks [from, to) as reported lost. Returns the number of bytes that did not wait already, and true if any was
    /// retransmitted; `None`: all of it has arrived.
    pub fn name_lost(&mut self, from: u64, to: u64, at_once: bool) -> Option<(u64, bool)> {
        self.split(from);
        self.split(to);
        let range = self.index(from)..self.index(to);
        let missing = self.list.range(range.clone()).filter(|s| !s.is(SACKED));
        let again = missing.clone().any(|s| s.is(EVER));
        missing.clone().next()?;
        let named = NAMED | if at_once { AT_ONCE } else { 0 };
        Some((range.map(|i| self.lose(i, named)).sum(), again))
    }

    /// Reverts all losses, as nothing was lost. Source: Linux tcp_undo_cwnd_reduction.
    pub fn none_lost(&mut self) {
        for s in &mut self.list {
            s.state &= !(LOST | NAMED | AT_ONCE);
        }
        (self.lost, self.waiting, self.found) = (0, 0, 0);
        (self.next, self.at_once) = (NOWHERE, NOWHERE);
    }

    /// Finds the next segment that waits for retransmission.
    fn seek(&mut self) {
        let seek = |from: u64, any: bool, waits: &dyn Fn(&Seg) -> bool| {
            if !any || from == NOWHERE {
                return NOWHERE;
            }
            let first = self.index(from.max(self.una));
            let found = self.list.range(first..).position(waits);
            found.map_or(NOWHERE, |i| self.begin(first + i))
        };
        let any = self.waiting > 0;
        (self.next, self.at_once) =
            (seek(self.next, any, &|s| s.waits()), seek(self.at_once, any, &|s| s.waits() && s.is(AT_ONCE)));
    }
}

impl Arrivals {
    /// Updates RACK's newest arrival by an acknowledged segment. Source: RFC 8985 §6.2 step 2; Linux tcp_rack_advance.
    fn advance(&mut self, known: &Known, least: Option<Span>, s: &Seg) {
        let rtt = known.now.since(s.at);
        if s.is(EVER) && least.is_some_and(|least| rtt < least) {
            return;
        }
        self.rtt = rtt;
        self.newest = self.newest.max(Some((s.at, s.end)));
    }

    fn reorder(&mut self, begin: u64) {
        self.reordered = Some(self.reordered.map_or(begin, |low| low.min(begin)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn known(us: u64) -> Known {
        Known { now: at(us), ..Known::default() }
    }

    /// Four segments of 1000 bytes, sent in the first four microseconds.
    fn four() -> Segments {
        let mut segments = Segments::new(0);
        (1..=4).for_each(|i| segments.sent(at(i), 1000 * i));
        segments
    }

    fn latest(segments: &mut Segments, us: u64) -> Option<Span> {
        segments.take_arrivals(at(us)).latest_rtt(at(us))
    }

    /// The handshake's RTT is the shortest until a shorter one comes, also where data begins anew at another number.
    #[test]
    fn a_restart_keeps_the_shortest_rtt() {
        let mut segments = Segments::new(0);
        segments.note_rtt(at(50), Span::from_us(50));
        segments.restart(7);
        assert_eq!(segments.least_rtt(), Some(Span::from_us(50)));
    }

    /// The shortest RTT is forgotten when it is older than the window, not as old. Source: Linux tcp_min_rtt_wlen, minmax.
    #[test]
    fn the_shortest_rtt_is_forgotten_after_its_window() {
        let mut segments = Segments::new(0);
        let note = |segments: &mut Segments, s: u64, us: u64| {
            segments.note_rtt(Time::ZERO + Span::from_s(s), Span::from_us(us));
            segments.least_rtt().map(|rtt| rtt.ps() / 1_000_000)
        };
        assert_eq!(
            [note(&mut segments, 1, 50), note(&mut segments, 301, 60), note(&mut segments, 302, 60)],
            [Some(50), Some(50), Some(60)]
        );
        assert_eq!([note(&mut segments, 400, 60), note(&mut segments, 603, 70)], [Some(60), Some(60)], "the same again is new");
    }

    #[test]
    fn the_last_segment_that_an_ack_covers_gives_the_latest_rtt() {
        let mut s = four();
        s.acknowledged(&known(10), 2000);
        let arrivals = s.take_arrivals(at(10));
        assert_eq!((arrivals.oldest_rtt(at(10)), arrivals.latest_rtt(at(10))), (Some(Span::from_us(9)), Some(Span::from_us(8))));
        s.arrived(&known(12), 3000, 4000);
        assert_eq!(latest(&mut s, 12), Some(Span::from_us(8)));
        s.acknowledged(&known(20), 4000);
        assert_eq!(latest(&mut s, 20), Some(Span::from_us(17)));
        assert_eq!(latest(&mut s, 21), None);
    }

    #[test]
    fn what_was_sent_again_gives_no_rtt() {
        let mut s = four();
        s.sent_again(at(5), 0, 1000);
        s.acknowledged(&known(9), 1000);
        assert_eq!(latest(&mut s, 9), None);
        s.sent_again(at(9), 2500, 2600); // a part of a segment: the rest of it was sent once
        s.acknowledged(&known(10), 3000);
        let arrivals = s.take_arrivals(at(10));
        assert_eq!((arrivals.oldest_rtt(at(10)), arrivals.latest_rtt(at(10))), (None, Some(Span::from_us(7))));
    }

    /// RFC 8985 §6.2: the first three left before the fourth, which has arrived; with a settling time two of them are lost.
    #[test]
    fn segments_are_lost_once_what_left_later_has_arrived_and_the_window_has_passed() {
        let mut s = four();
        s.arrived(&known(103), 3000, 4000);
        let (newest, rtt) = (s.take_arrivals(at(103)).newest.unwrap(), Span::from_us(99));
        assert_eq!(newest, (at(4), 4000));
        assert_eq!(s.find_lost(at(103), newest, rtt + Span::from_us(2)), Some(Span::from_us(1)));
        assert_eq!((s.found_lost(), s.next_lost(), s.pipe(4000)), (2000, Some((0, 1000)), 1000));
        assert_eq!(s.find_lost(at(104), newest, rtt + Span::from_us(2)), None);
        assert_eq!((s.found_lost(), s.pipe(4000)), (3000, 0));
        // A lost retransmission: something that left after it has arrived.
        s.sent_again(at(105), 0, 1000);
        s.sent_again(at(106), 1000, 2000);
        assert_eq!((s.next_lost(), s.pipe(4000)), (Some((2000, 3000)), 2000));
        s.arrived(&known(205), 1000, 2000);
        let newest = s.take_arrivals(at(205)).newest.unwrap();
        assert_eq!(s.find_lost(at(205), newest, Span::from_us(99)), None);
        assert_eq!((s.next_lost(), s.pipe(4000)), (Some((0, 1000)), 0));
    }

    /// After an undo nothing is lost, and everything can be lost anew.
    #[test]
    fn what_was_not_lost_can_be_lost_later() {
        let mut s = four();
        assert!(s.is_plain());
        for us in [100, 200] {
            s.lose_old(at(us), Span::from_us(1));
            assert_eq!((s.found_lost(), s.next_lost(), s.pipe(4000), s.is_plain()), (4000, Some((0, 1000)), 0, false));
            s.none_lost();
            assert_eq!((s.found_lost(), s.next_lost(), s.pipe(4000), s.is_plain()), (0, None, 4000, true));
        }
    }

    /// A segment that is sent a third time, as one that a switch has named may be, is in flight once, and gives no RTT.
    #[test]
    fn a_third_transmission_counts_as_the_second() {
        let mut s = four();
        s.lose_old(at(5), Span::from_us(9));
        s.sent_again(at(5), 0, 1000);
        s.sent_again(at(6), 0, 1000);
        assert_eq!((s.again(), s.pipe(4000)), (1000, 4000));
        s.acknowledged(&known(9), 1000);
        assert_eq!((s.again(), s.pipe(4000), latest(&mut s, 9)), (0, 3000, None));
    }

    /// A tail loss probe repeats what is not lost: it adds nothing to what is in flight, gives no RTT, and can be lost itself. Source:
    /// Linux tcp_send_loss_probe, which leaves retrans_out alone.
    #[test]
    fn a_probe_is_not_in_flight_twice() {
        let mut s = four();
        s.sent_again(at(50), 3000, 4000);
        assert_eq!((s.again(), s.pipe(4000), s.is_plain()), (0, 4000, true));
        let mut lost = s.clone();
        lost.lose_old(at(60), Span::from_us(9));
        assert_eq!((lost.again(), lost.pipe(4000), lost.found_lost()), (0, 0, 4000));
        s.arrived(&known(150), 3000, 4000);
        assert_eq!((s.pipe(4000), latest(&mut s, 150)), (3000, None));
    }

    /// An original has arrived if it was outstanding when the recovery began and was never sent again. Source: Linux
    /// FLAG_ORIG_SACK_ACKED.
    #[test]
    fn originals_end_at_the_recovery_point() {
        let known = Known { recover: 2000, ..known(10) };
        let original = |arrive: &dyn Fn(&mut Segments)| {
            let mut s = four();
            s.sent_again(at(5), 0, 1000);
            arrive(&mut s);
            s.take_arrivals(at(10)).original
        };
        assert_eq!([1000, 2000].map(|una| original(&|s| s.acknowledged(&known, una))), [false, true]);
        assert_eq!([0, 1000, 2000].map(|from| original(&|s| s.arrived(&known, from, from + 1000))), [false, true, false]);
    }

    /// A retransmission that is acknowledged faster than the shortest RTT was not what arrived. Source: RFC 8985 §6.2 step 2.
    #[test]
    fn an_ack_of_the_original_is_no_news_of_the_retransmission() {
        let mut s = four();
        s.sent_again(at(100), 0, 1000);
        s.note_rtt(at(99), Span::from_us(50));
        s.acknowledged(&known(110), 1000);
        assert_eq!(s.take_arrivals(at(110)).newest, None);
        s.sent_again(at(120), 1000, 2000);
        s.acknowledged(&known(180), 2000);
        assert_eq!(s.take_arrivals(at(180)).newest, Some((at(120), 2000)));
    }

    /// Segments sent at one time are in the order of their numbers: those before the newest arrival count as sent before it, those behind it
    /// do not. Source: RFC 8985 §6.2 step 2 (RACK_sent_after).
    #[test]
    fn segments_sent_at_one_time_are_in_the_order_of_their_numbers() {
        let mut s = Segments::new(0);
        (1..=4).for_each(|i| s.sent(at(1), 1000 * i));
        s.arrived(&known(101), 2000, 3000);
        let newest = s.take_arrivals(at(101)).newest.expect("an arrival");
        assert_eq!(newest, (at(1), 3000));
        assert_eq!(s.find_lost(at(101), newest, Span::from_us(101)), Some(Span::from_us(1)));
        assert_eq!((s.found_lost(), s.next_lost()), (0, None));
        // A segment is lost when nothing remains of its time, not only afterwards. Source: RFC 8985 §6.2 step 5 (remaining <= 0).
        assert_eq!(s.find_lost(at(102), newest, Span::from_us(101)), None);
        assert_eq!((s.found_lost(), s.next_lost(), s.pipe(4000)), (2000, Some((0, 1000)), 1000));
    }

    /// A retransmission is judged by its own time, not by that of the original. Source: RFC 8985 §5.2 (xmit_ts).
    #[test]
    fn a_retransmission_is_lost_by_its_own_time() {
        let mut s = four();
        s.arrived(&known(103), 3000, 4000);
        let newest = s.take_arrivals(at(103)).newest.expect("an arrival");
        s.sent_again(at(50), 0, 1000); // a probe
        assert_eq!(s.find_lost(at(103), newest, Span::from_us(99)), None);
        assert_eq!((s.found_lost(), s.next_lost()), (2000, Some((1000, 2000))));
        s.sent(at(104), 5000);
        s.arrived(&known(204), 4000, 5000);
        let newest = s.take_arrivals(at(204)).newest.expect("an arrival");
        assert_eq!(s.find_lost(at(204), newest, Span::from_us(155)), Some(Span::from_us(1)));
        assert_eq!((s.found_lost(), s.pipe(5000)), (2000, 1000));
        assert_eq!(s.find_lost(at(205), newest, Span::from_us(155)), None);
        assert_eq!((s.found_lost(), s.next_lost(), s.pipe(5000)), (3000, Some((0, 1000)), 0));
    }

    /// Losses that a switch has named are kept apart from those that were found: the window is reduced for each kind once, as
    /// [`Segments::found_lost`] says.
    #[test]
    fn named_losses_are_no_found_ones() {
        let mut s = four();
        assert_eq!(s.name_lost(0, 1000, false), Some((1000, false)));
        assert_eq!((s.found_lost(), s.next_lost(), s.next_at_once(), s.pipe(4000)), (0, Some((0, 1000)), None, 3000));
        assert_eq!(s.name_lost(0, 1000, true), Some((0, false)), "it waits already");
        assert_eq!(s.name_lost(2000, 3000, true), Some((1000, false)));
        assert_eq!((s.next_lost(), s.next_at_once(), s.pipe(4000)), (Some((0, 1000)), Some((2000, 3000)), 2000));
        s.sent_again(at(5), 2000, 3000);
        assert_eq!((s.next_at_once(), s.pipe(4000), s.again()), (None, 3000, 1000));
        // The retransmission is lost, too, and nobody says so: it is found, as are those that were not named.
        s.lose_old(at(200), Span::from_us(1));
        assert_eq!((s.found_lost(), s.again(), s.pipe(4000)), (3000, 0, 0));
        assert_eq!(s.next_lost(), Some((0, 1000)), "named, and never sent again");
        // Now it is named.
        s.sent_again(at(201), 2000, 3000);
        assert_eq!((s.pipe(4000), s.name_lost(2000, 3000, true)), (1000, Some((1000, true))));
        assert_eq!((s.found_lost(), s.again(), s.next_at_once(), s.pipe(4000)), (2000, 0, Some((2000, 3000)), 0));
        s.arrived(&known(210), 2000, 3000);
        assert_eq!((s.found_lost(), s.next_at_once(), s.pipe(4000)), (2000, None, 0));
        assert_eq!(s.name_lost(2000, 3000, true), None, "it has arrived");
        s.acknowledged(&known(220), 2000);
        assert_eq!((s.found_lost(), s.next_lost(), s.pipe(4000)), (1000, Some((3000, 4000)), 0));
    }

    /// One byte as the RFCs see it.
    #[derive(Clone, Copy, Default)]
    struct Byte {
        sacked: bool,
        lost: bool,
        again: bool,
        at: u64,
    }

    proptest! {
        /// Any sequence of what can happen gives the numbers that a table of bytes gives.
        #[test]
        fn counters_equal_a_table_of_bytes(ops in prop::collection::vec((0u8..9, 0u64..60, 1u64..12), 1..80)) {
            let mut s = Segments::new(0);
            let mut bytes: Vec<Byte> = Vec::new();
            let mut una = 0;
            for (now, (op, place, len)) in (1..).zip(ops) {
                let nxt = bytes.len() as u64;
                let (from, to) = (place.clamp(una, nxt), (place + len).clamp(una, nxt));
                match op {
                    0 | 1 => {
                        bytes.resize((nxt + len) as usize, Byte { at: now, ..Byte::default() });
                        s.sent(at(now), nxt + len);
                    }
                    2 => {
                        if let Some((from, to)) = s.next_lost() {
                            let expected = bytes[una as usize..].iter().position(|b| b.lost && !b.again);
                            prop_assert_eq!(Some(from), expected.map(|i| una + i as u64));
                            s.sent_again(at(now), from, to);
                            for b in &mut bytes[from as usize..to as usize] {
                                *b = Byte { again: true, at: now, ..*b };
                            }
                        } else {
                            prop_assert!(!bytes[una as usize..].iter().any(|b| b.lost && !b.again));
                        }
                    }
                    3 | 4 => {
                        let mut i = from;
                        while i < to {
                            let run = bytes[i as usize..to as usize].iter().take_while(|b| !b.sacked).count() as u64;
                            if run > 0 {
                                s.arrived(&known(now), i, i + run);
                            }
                            i += run.max(1);
                        }
                        for b in &mut bytes[from as usize..to as usize] {
                            if !b.sacked {
                                b.again &= !b.lost;
                                (b.sacked, b.lost) = (true, false);
                            }
                        }
                    }
                    8 => {
                        if let Some((from, to)) = s.last() {
                            s.sent_again(at(now), from, to);
                            for b in &mut bytes[from as usize..to as usize] {
                                *b = Byte { again: b.again || b.lost, at: now, ..*b };
                            }
                        }
                    }
                    5 => {
                        una = to;
                        s.acknowledged(&known(now), una);
                    }
                    6 => {
                        let newest = (at(place % now), NOWHERE);
                        s.find_lost(at(now), newest, Span::from_us(len));
                        for b in &mut bytes[una as usize..] {
                            let old = b.at <= place % now && b.at + len <= now;
                            if old && !b.sacked && (!b.lost || b.again) {
                                (b.lost, b.again) = (true, false);
                            }
                        }
                    }
                    _ => {
                        s.lose_old(at(now), Span::from_us(len));
                        let head = s.first().map_or(una, |first| first.1);
                        for (i, b) in bytes.iter_mut().enumerate().skip(una as usize) {
                            if ((i as u64) < head || b.at + len <= now) && !b.sacked && (!b.lost || b.again) {
                                (b.lost, b.again) = (true, false);
                            }
                        }
                    }
                }
                let open = &bytes[una as usize..];
                let count = |f: &dyn Fn(&Byte) -> bool| open.iter().filter(|b| f(b)).count() as u64;
                prop_assert_eq!((s.sacked, s.lost, s.again), (count(&|b| b.sacked), count(&|b| b.lost), count(&|b| b.again)));
                prop_assert_eq!((s.waiting, s.found), (count(&|b| b.lost && !b.again), s.lost));
                let first = open.iter().position(|b| b.lost && !b.again).map(|i| una + i as u64);
                prop_assert_eq!(s.next_lost().map(|lost| lost.0), first);
            }
        }
    }
}
