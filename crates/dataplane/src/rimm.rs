//! RIMM's registers: detector at egress, alert at ingress, choice of the neighbour, sequence numbers. Source: RIMM §III.
//!
//! Clocks are 32-bit counters that wrap around, of any unit; differences of up to 2³² of it count.

/// Detector at the egress of a port: compares the queue depth with the threshold α. Source: RIMM §III-A.1.
///
/// | register | width | unit |
/// |---|---|---|
/// | above | 1 | |
/// | full: it was above since it was last empty | 1 | |
/// | crossings | 16, wraps around | |
/// | said | 32 | clocks |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detector {
    above: bool,
    full: bool,
    crossings: u16,
    said: u32,
}

impl Detector {
    /// Updates the detector when a packet leaves `depth` behind; returns the number of the crossing that a message is due for: when
    /// α is crossed, in either direction, and again after each `repeat` clocks above it; after that when the queue is empty for the first
    /// time, which counts as a crossing, too.
    /// Deviation: the paper's messages are not repeated, so that a lost one takes the detours of a whole burst with it, and do not tell of
    /// an idle port, so that detours beside one may go on for good.
    #[inline]
    pub fn on_egress(&mut self, depth: u32, alpha: u32, now: u32, repeat: u32) -> Option<u16> {
        let above = depth >= alpha;
        let drained = self.full && depth == 0;
        if above != self.above || drained {
            (self.above, self.full) = (above, !drained && (self.full || above));
            self.crossings = self.crossings.wrapping_add(1);
        } else if !above || now.wrapping_sub(self.said) < repeat {
            return None;
        }
        self.said = now;
        Some(self.crossings)
    }

    /// True if the depth was at α or above at the last update.
    pub fn is_above(&self) -> bool {
        self.above
    }

    /// Number of crossings so far, modulo 2¹⁶.
    pub fn crossings(&self) -> u16 {
        self.crossings
    }
}

/// News that a returned message brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A crossing later than all before, with the number of crossings between that did not come.
    News(u16),
    /// The crossing that is known already: a repetition.
    Known,
    /// An earlier crossing: the message was overtaken.
    Old,
}

/// Alert state of an output port, as its switch's ingress pipelines know it. Source: RIMM §III-A.1.
///
/// | register | width | unit |
/// |---|---|---|
/// | on, over | 1 each | |
/// | busy: the queue has not been empty since the last alert | 1 | |
/// | crossing | 16 | |
/// | since | 32 | clocks |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alert {
    on: bool,
    over: bool,
    busy: bool,
    crossing: u16,
    since: u32,
}

impl Alert {
    /// Handles a returned message about crossing number `crossing`. One of an earlier crossing is ignored. Numbers that are left out
    /// are messages that were lost: the queue was on the other side of α meanwhile, so an alert that goes on by this message has
    /// begun anew.
    /// Deviation: the paper's messages have no number, so that one that is overtaken or lost would leave the wrong state.
    pub fn on_message(&mut self, crossing: u16, depth: u32, alpha: u32, now: u32) -> Heard {
        let ahead = crossing.wrapping_sub(self.crossing);
        if ahead == 0 {
            return Heard::Known;
        }
        if (ahead as i16) < 0 {
            return Heard::Old;
        }
        self.crossing = crossing;
        if ahead > 1 {
            self.on = false;
        }
        self.set(depth, alpha, now);
        Heard::News(ahead - 1)
    }

    /// Switches the alert on or off by a depth.
    #[inline]
    pub fn set(&mut self, depth: u32, alpha: u32, now: u32) {
        let on = depth >= alpha;
        if on && !self.on {
            (self.since, self.over) = (now, false);
        }
        self.on = on;
        self.busy = on || (self.busy && depth > 0);
    }

    /// True from an alert until the queue is known to have been empty.
    pub fn is_busy(&self) -> bool {
        self.busy
    }

    /// True if the alert is on.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// True if the alert was found to have lasted for too long.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// True if packets for the port take a detour now. An alert that lasts for `give_up` clocks is congestion and no burst:
    /// from then on there are no detours until the next alert. Source: RIMM §V ("Possibility of Microburst Diffusion").
    #[inline]
    pub fn detours(&mut self, now: u32, give_up: u32) -> bool {
        self.over |= self.on && now.wrapping_sub(self.since) >= give_up;
        self.on && !self.over
    }
}

/// The usable port with the least depth; the first of equal ones, never one of unknown depth (NULL, `None`).
/// Source: RIMM §III-A.2; ties are open there.
#[inline]
pub fn least(depths: &[Option<u16>], mut usable: impl FnMut(usize, u16) -> bool) -> Option<usize> {
    let mut best: Option<(u16, usize)> = None;
    for (port, depth) in depths.iter().enumerate() {
        let Some(depth) = *depth else { continue };
        if best.is_none_or(|(least, _)| depth < least) && usable(port, depth) {
            best = Some((depth, port));
        }
    }
    best.map(|(_, port)| port)
}

/// Index of a flow's pair of sequence numbers: the upper `bits` of the hash of its 5-tuple. Source: RIMM §III-B (12 bits).
#[inline]
pub fn index(hash: u32, bits: u32) -> usize {
    hash.checked_shr(32 - bits).unwrap_or(0) as usize
}

/// Condition that ends a flow's detour once the alert is off. Source: RIMM §III-C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The detour ends as soon as Sa = Sf, when no packet is out. Source: RIMM §V ("Length of Flowlet Interval").
    Drained,
    /// The detour ends with the first new packet that arrives χ clocks or more after the previous one.
    Flowlet(u32),
}

/// Bounds of a pair's detour [clocks]. Source: RIMM §III-B and §V have one of them, a "user-defined period of time".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bound of the detour as a whole: since Sa left Sf.
    pub whole: u32,
    /// Bound of a wait without a release and, with [`Until::Drained`], of what goes on after the port has run empty.
    pub wait: Option<u32>,
}

/// Bound that has ended a pair's detour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The alert of the packet's port has become congestion.
    Congested,
    /// The detour has lasted for [`Bounds::whole`].
    Overlong,
    /// No packet was released for [`Bounds::wait`]: a hole.
    Stalled,
    /// The detour has gone on for [`Bounds::wait`] after the port has run empty: it outlives the burst.
    Outlived,
}

/// Decision about a packet that is back from its detour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Back {
    /// The packet is next in order: it goes on, without its number.
    Release,
    /// The packet's number is no longer awaited, as its pair was given up meanwhile: it goes on as it is.
    Late,
    /// The packet takes another round, with its number.
    Again,
}

/// Port value of a pair whose packets on a detour are for more than one port.
pub const SEVERAL: u16 = u16::MAX;

/// A pair of sequence numbers, shared by all flows whose hashes collide. Source: RIMM §III-B.
///
/// | register | width | unit |
/// |---|---|---|
/// | Sa, next attached | 32, wraps around | |
/// | Sf, next freed ("last freed" in the paper) | 32, wraps around | |
/// | began: when Sa left Sf | 32 | clocks |
/// | moved: when Sa left Sf, or Sf last moved | 32 | clocks |
/// | needed: when a packet last met a busy port | 32 | clocks |
/// | port that packets out are for; [`SEVERAL`] | 16 | |
/// | over: it lasted too long, and the alert goes on | 1 | |
/// | last: the last new packet (flowlet only) | 32 | clocks |
/// | active (flowlet only) | 1 | |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pair {
    attached: u32,
    freed: u32,
    began: u32,
    moved: u32,
    needed: u32,
    port: u16,
    over: bool,
    last: u32,
    active: bool,
}

impl Pair {
    /// A pair whose two numbers are both `number`: no packet is out.
    pub fn at(number: u32) -> Pair {
        Pair { attached: number, freed: number, ..Pair::default() }
    }

    /// Sa, the next number to attach.
    pub fn attached(&self) -> u32 {
        self.attached
    }

    /// Sf, the next number to free.
    pub fn freed(&self) -> u32 {
        self.freed
    }

    /// Number of packets on a detour: Sa − Sf.
    #[inline]
    pub fn out(&self) -> u32 {
        self.attached.wrapping_sub(self.freed)
    }

    /// Time for which the pair's detour has gone on after its port has run empty [clocks]; zero while none goes on.
    #[inline]
    pub fn idle(&self, now: u32) -> u32 {
        if self.out() > 0 {
            now.wrapping_sub(self.needed)
        } else {
            0
        }
    }

    /// Gives up the pair where its detour has come to a bound, or `congested`: where that has happened to the alert of the port of the
    /// packet that has come. Packets that are still out come back late.
    /// Deviation: the paper has one bound, of which it does not say when it begins, and nothing to end a wait for a packet that was
    /// lost.
    #[inline]
    pub fn expire(&mut self, now: u32, congested: bool, bounds: Bounds, until: Until) -> Option<Ended> {
        if let Until::Flowlet(chi) = until {
            self.active &= self.out() > 0 || now.wrapping_sub(self.last) < chi;
        }
        let is_out = self.out() > 0;
        if !is_out && !self.active {
            return None;
        }
        let waits = |since: u32| is_out && bounds.wait.is_some_and(|wait| now.wrapping_sub(since) >= wait);
        let ended = if is_out && congested {
            Ended::Congested
        } else if now.wrapping_sub(self.began) >= bounds.whole {
            Ended::Overlong
        } else if waits(self.moved) {
            Ended::Stalled
        } else if until == Until::Drained && waits(self.needed) {
            Ended::Outlived
        } else {
            return None;
        };
        self.over = ended == Ended::Overlong;
        self.give_up();
        Some(ended)
    }

    /// Gives up the pair: no returning packet is awaited any more.
    pub fn give_up(&mut self) {
        self.freed = self.attached;
        self.active = false;
    }

    /// True if a new packet takes a detour: while the alert is on, and after that behind the pair's packets that are out,
    /// until the detour ends. A packet for another `port` than those belongs to another flow and need not wait. A pair that was given
    /// up for its length has no detours until the alert is off. `busy`: the port has not run empty since its alert. Deviation: the paper's pair has no port, so that a flow whose detours
    /// do not come back, as acknowledgments on their way up, would leave holes in the numbers of one that shares its pair.
    #[inline]
    pub fn on_new(&mut self, port: u16, (alert, busy): (bool, bool), now: u32, until: Until) -> bool {
        if !alert && self.port != port && self.port != SEVERAL {
            return false;
        }
        let gap = now.wrapping_sub(self.last);
        self.last = now;
        if busy {
            self.needed = now;
        }
        if alert {
            return !self.over;
        }
        self.over = false;
        match until {
            Until::Drained => self.out() > 0,
            Until::Flowlet(chi) => {
                self.active &= gap < chi;
                self.active
            }
        }
    }

    /// Attaches a number to a packet for `port` that starts a detour: Sa, which goes up by one.
    #[inline]
    pub fn attach(&mut self, port: u16, now: u32, until: Until) -> u32 {
        if self.out() == 0 {
            if !self.active {
                self.began = now;
            }
            (self.moved, self.port) = (now, port);
        } else if self.port != port {
            self.port = SEVERAL;
        }
        let number = self.attached;
        self.attached = number.wrapping_add(1);
        self.active = until != Until::Drained;
        number
    }

    /// Decides about a packet that is back with its number. One that is no longer awaited goes on once the alert is off, so that what
    /// was out when the pair was given up does not meet the full queue all at once; with one bound of the whole alone it goes on at
    /// once, as the paper has it.
    #[inline]
    pub fn on_return(&mut self, number: u32, (alert, busy): (bool, bool), now: u32, bounds: Bounds) -> Back {
        if busy {
            self.needed = now;
        }
        self.over &= alert;
        if !self.awaits(number) {
            return if alert && !self.over && bounds.wait.is_some() { Back::Again } else { Back::Late };
        }
        if alert || number != self.freed {
            return Back::Again;
        }
        self.free(now);
        Back::Release
    }

    /// True if a packet with this number is out, and the pair was not given up since.
    #[inline]
    pub fn awaits(&self, number: u32) -> bool {
        number.wrapping_sub(self.freed) < self.out()
    }

    /// Releases a packet that should take another round but has no way to do so; true if its number was awaited. If it is not next in
    /// order, nothing behind it is released until the pair is given up.
    pub fn let_go(&mut self, number: u32, now: u32) -> bool {
        let awaited = self.awaits(number);
        if awaited && number == self.freed {
            self.free(now);
        }
        awaited
    }

    fn free(&mut self, now: u32) {
        self.freed = self.freed.wrapping_add(1);
        self.moved = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_crossings_are_reported_and_alpha_itself_is_above() {
        let mut d = Detector::default();
        let said = [19_999, 20_000, 20_001, 20_000, 19_999, 0, 24_000].map(|depth| d.on_egress(depth, 20_000, 0, 100));
        assert_eq!(said, [None, Some(1), None, None, Some(2), Some(3), Some(4)]);
        assert!(d.is_above() && d.crossings() == 4);
        let drained = [0, 0, 5, 0].map(|depth| d.on_egress(depth, 20_000, 0, 100));
        assert_eq!(drained, [Some(5), None, None, None], "below and empty at once");
    }

    /// The getters show the registers: below α after a crossing down, and a number that wraps around.
    #[test]
    fn a_detector_shows_its_registers() {
        let mut d = Detector { crossings: u16::MAX, ..Detector::default() };
        assert_eq!((d.is_above(), d.crossings()), (false, u16::MAX));
        assert_eq!(d.on_egress(20, 20, 5, 100), Some(0));
        assert_eq!((d.is_above(), d.crossings()), (true, 0));
        assert_eq!(d.on_egress(19, 20, 6, 100), Some(1));
        assert_eq!((d.is_above(), d.crossings()), (false, 1));
    }

    /// Above α the message is repeated, a whole interval after the last one; below it is not.
    #[test]
    fn a_message_about_a_queue_that_stays_above_is_repeated() {
        let mut d = Detector::default();
        let said = [(10, 30), (109, 30), (110, 30), (111, 30), (210, 30), (211, 5), (900, 5), (950, 20), (1_050, 20)]
            .map(|(now, depth)| d.on_egress(depth, 20, now, 100));
        assert_eq!(said, [Some(1), None, Some(1), None, Some(1), Some(2), None, Some(3), Some(3)]);
    }

    #[test]
    fn a_message_that_was_overtaken_is_ignored_also_where_numbers_wrap_around() {
        let mut a = Alert::default();
        assert!(a.on_message(2, 5, 20, 100) == Heard::News(1) && !a.is_on());
        assert!(a.on_message(1, 25, 20, 110) == Heard::Old && !a.is_on());
        a.crossing = u16::MAX;
        assert!(a.on_message(0, 25, 20, 120) == Heard::News(0) && a.is_on());
        assert!(a.on_message(0, 5, 20, 130) == Heard::Known && a.is_on(), "one that came twice");
    }

    /// The "below" of crossing 2 is lost: the "above" of crossing 3 is another alert, with its own time, although the first one was never
    /// seen to end. A lost "above" leaves nothing to mend.
    #[test]
    fn a_lost_message_is_seen_by_the_next_ones_number() {
        let mut a = Alert::default();
        assert_eq!(a.on_message(1, 25, 20, 0), Heard::News(0));
        assert!(!a.detours(100, 100) && a.is_over());
        assert_eq!(a.on_message(3, 25, 20, 500), Heard::News(1));
        assert_eq!([599, 600].map(|now| a.detours(now, 100)), [true, false]);
        assert!(a.on_message(6, 5, 20, 700) == Heard::News(2) && !a.is_on());
        assert!(a.on_message(8, 5, 20, 700) == Heard::News(1) && !a.is_on());
        // None is missing: it is one alert that goes on.
        let mut a = Alert::default();
        assert_eq!([(1, 0), (2, 50)].map(|(crossing, now)| a.on_message(crossing, 25, 20, now)), [Heard::News(0); 2]);
        assert_eq!([99, 100].map(|now| a.detours(now, 100)), [true, false]);
    }

    #[test]
    fn an_alert_that_lasts_is_congestion_until_the_next() {
        let mut a = Alert::default();
        assert!(!a.is_on() && !a.is_over() && !a.detours(1_000, 0), "none yet, and none to be over");
        a.set(30, 20, u32::MAX - 10);
        assert!(a.is_on() && a.detours(89 - 1, 100) && !a.is_over());
        assert_eq!([u32::MAX, 0, 88, 89].map(|now| a.detours(now, 100)), [true, true, true, false]);
        a.set(30, 20, 200);
        assert!(!a.detours(200, 100) && !a.detours(201, 1_000), "the same alert");
        a.set(19, 20, 210);
        a.set(20, 20, 220);
        assert!(a.detours(319, 100) && !a.detours(320, 100));
    }

    /// A port is busy from its alert until it has run empty, also where it crosses α in between.
    #[test]
    fn a_port_is_busy_until_it_is_empty() {
        let mut a = Alert::default();
        let busy = [5, 25, 5, 25, 0, 5].map(|depth| {
            a.set(depth, 20, 0);
            a.is_busy()
        });
        assert_eq!(busy, [false, true, true, true, false, false]);
    }

    #[test]
    fn the_least_depth_wins_and_of_equal_ones_the_first() {
        let depths = [None, Some(7), Some(3), Some(3), Some(0)];
        assert_eq!(least(&depths, |_, _| true), Some(4));
        assert_eq!(least(&depths, |port, _| port != 4), Some(2));
        assert_eq!(least(&depths, |_, depth| depth > 3), Some(1));
        assert_eq!(least(&[None, None], |_, _| true), None);
    }

    #[test]
    fn the_index_is_the_upper_bits() {
        assert_eq!((index(0xABC0_0000, 12), index(u32::MAX, 12), index(u32::MAX, 0), index(7, 32)), (0xABC, 4095, 0, 7));
    }

    const BOUNDS: Bounds = Bounds { whole: 10_000, wait: Some(1_000) };
    const DRAINED: Until = Until::Drained;

    fn expire(pair: &mut Pair, now: u32) -> Option<Ended> {
        pair.expire(now, false, BOUNDS, DRAINED)
    }

    #[test]
    fn a_pair_shows_its_numbers() {
        let mut pair = Pair::at(41);
        assert_eq!((pair.attached(), pair.freed(), pair.out()), (41, 41, 0));
        assert_eq!((pair.attach(7, 0, DRAINED), pair.attach(7, 0, DRAINED)), (41, 42));
        assert_eq!((pair.attached(), pair.freed(), pair.out()), (43, 41, 2));
        assert!(pair.let_go(41, 0));
        assert_eq!((pair.attached(), pair.freed(), pair.out()), (43, 42, 1));
        assert_eq!((pair.idle(300), Pair::at(41).idle(300)), (300, 0), "since a packet last met a busy port");
    }

    /// Packets 0 to 4 go out; back come 2, 0, 1, 3 …: each waits for its turn, also where numbers wrap around.
    #[test]
    fn packets_are_released_in_the_order_of_their_numbers() {
        for start in [0, u32::MAX - 2] {
            let mut pair = Pair::at(start);
            let numbers = [(); 5].map(|()| pair.attach(7, 10, DRAINED));
            assert!(pair.on_new(7, (false, false), 10, DRAINED) && pair.out() == 5);
            assert_eq!(pair.on_return(numbers[0], (true, true), 10, BOUNDS), Back::Again, "the alert is on");
            let back = [2, 0, 1, 3, 4, 2].map(|i| pair.on_return(numbers[i], (false, false), 10, BOUNDS));
            use Back::{Again, Release};
            assert_eq!(back, [Again, Release, Release, Again, Again, Release]);
            assert_eq!([3, 4].map(|i| pair.on_return(numbers[i], (false, false), 10, BOUNDS)), [Release, Release]);
            assert!(!pair.on_new(7, (false, false), 11, DRAINED));
        }
    }

    /// Each release starts the wait anew: a pair that moves has not stalled, however long packets are out.
    #[test]
    fn a_pair_has_stalled_where_none_is_released() {
        let mut pair = Pair::default();
        let start = u32::MAX - 100;
        let numbers = [(); 3].map(|()| pair.attach(7, start, DRAINED));
        for (now, number) in [(800, numbers[0]), (1_700, numbers[1])] {
            assert!(pair.on_new(7, (true, true), now, DRAINED), "the alert goes on");
            assert_eq!(expire(&mut pair, now), None);
            assert_eq!(pair.on_return(number, (false, false), now, BOUNDS), Back::Release);
        }
        pair.on_new(7, (true, true), 2_500, DRAINED);
        assert_eq!((expire(&mut pair, 2_699), expire(&mut pair, 2_700)), (None, Some(Ended::Stalled)));
    }

    /// Releases go on, and new packets join behind: without the alert the detour ends after `wait`, with it after `whole`, and then
    /// there is none until the alert is off.
    #[test]
    fn a_detour_ends_although_it_moves() {
        for (alert_until, ends, how) in [(2_000, 2_800, Ended::Outlived), (u32::MAX, 10_000, Ended::Overlong)] {
            let mut pair = Pair::default();
            let (mut next, mut ended) = (0, None);
            for now in (0..11_000).step_by(100) {
                let alert = now < alert_until && now % 300 == 0;
                ended = expire(&mut pair, now).map(|how| (now, how)).or(ended);
                if ended.is_some() {
                    break;
                }
                if pair.on_new(7, (alert, alert), now, DRAINED) || pair.out() == 0 {
                    pair.attach(7, now, DRAINED);
                }
                if pair.out() > 3 && !alert {
                    assert_eq!(pair.on_return(next, (false, false), now, BOUNDS), Back::Release);
                    next += 1;
                }
            }
            assert_eq!(ended, Some((ends, how)), "the last busy port that a packet met was at 1800");
            assert_eq!(pair.idle(ends), 0);
            let expected = if how == Ended::Overlong { (Back::Late, false) } else { (Back::Again, true) };
            assert_eq!((pair.on_return(next, (true, true), ends, BOUNDS), pair.on_new(7, (true, true), ends, DRAINED)), expected);
            assert_eq!(pair.on_return(next, (false, false), ends, BOUNDS), Back::Late);
            assert!(pair.on_new(7, (true, true), ends, DRAINED), "another alert");
        }
    }

    /// With one bound alone, of the detour, nothing else ends it.
    #[test]
    fn without_a_wait_only_the_whole_counts() {
        let mut pair = Pair::default();
        pair.attach(7, 0, DRAINED);
        let bounds = Bounds { whole: 5_000, wait: None };
        assert_eq!([4_999, 5_000].map(|now| pair.expire(now, false, bounds, DRAINED)), [None, Some(Ended::Overlong)]);
        pair.attach(7, 6_000, DRAINED);
        assert_eq!(pair.expire(6_000, true, bounds, DRAINED), Some(Ended::Congested));
    }

    /// A number that is missing holds all behind it back until the pair is given up; then they are late, and new ones start anew.
    #[test]
    fn a_hole_lasts_until_the_pair_is_given_up() {
        let mut pair = Pair::default();
        let [_, second] = [pair.attach(7, 1_000, DRAINED), pair.attach(7, 1_500, DRAINED)];
        assert_eq!(pair.on_return(second, (true, true), 1_900, BOUNDS), Back::Again);
        assert_eq!(expire(&mut pair, 1_999), None);
        assert_eq!(pair.on_return(second, (false, false), 1_999, BOUNDS), Back::Again);
        assert_eq!((expire(&mut pair, 2_000), pair.out(), expire(&mut pair, 9_000)), (Some(Ended::Stalled), 0, None));
        assert_eq!([true, false].map(|alert| pair.on_return(second, (alert, alert), 2_000, BOUNDS)), [Back::Again, Back::Late]);
        let next = pair.attach(7, 3_000, DRAINED);
        assert!(next == 2 && !pair.let_go(second, 3_000) && pair.awaits(next));
        assert_eq!(
            [second, next].map(|number| pair.on_return(number, (false, false), 3_000, BOUNDS)),
            [Back::Late, Back::Release]
        );
        assert_eq!(expire(&mut pair, 4_000), None);
    }

    /// Two flows share a pair. Only while packets of both are out does each of them wait for those of the other.
    #[test]
    fn a_packet_for_another_port_does_not_wait() {
        let mut pair = Pair::default();
        pair.attach(7, 0, DRAINED);
        assert_eq!([7, 3].map(|port| pair.on_new(port, (false, false), 1, DRAINED)), [true, false]);
        assert!(pair.on_new(3, (true, true), 2, DRAINED), "its own alert");
        pair.attach(3, 2, DRAINED);
        assert_eq!([7, 3, 5].map(|port| pair.on_new(port, (false, false), 3, DRAINED)), [true; 3]);
        assert_eq!([0, 1].map(|number| pair.on_return(number, (false, false), 3, BOUNDS)), [Back::Release; 2]);
        pair.attach(3, 4, DRAINED);
        assert_eq!([7, 3].map(|port| pair.on_new(port, (false, false), 5, DRAINED)), [false, true]);
    }

    #[test]
    fn a_flowlet_gap_ends_the_detour() {
        let until = Until::Flowlet(500);
        let mut pair = Pair::default();
        assert!(!pair.on_new(7, (false, false), 10, until), "no detour has begun");
        assert!(pair.on_new(7, (true, true), 20, until));
        let number = pair.attach(7, 20, until);
        assert_eq!(pair.on_return(number, (false, false), 30, BOUNDS), Back::Release);
        assert!(pair.on_new(7, (false, false), 519, until), "Sa = Sf, and the flowlet goes on");
        pair.attach(7, 519, until);
        assert!(!pair.on_new(7, (false, false), 1_019, until) && pair.out() == 1, "the gap is there, and one packet is out");
        assert!(!pair.on_new(7, (false, false), 1_020, until), "it has ended");
    }

    /// A flow without gaps: the detour goes on although none is out between two packets, after the alert too, and ends by its whole
    /// length. One that had ended by a gap begins anew.
    #[test]
    fn a_flowlet_detour_ends_by_its_length_at_last() {
        let until = Until::Flowlet(500);
        let mut pair = Pair::default();
        let mut step = |now: u32, alert| {
            let ended = pair.expire(now, false, BOUNDS, until);
            let detours = pair.on_new(7, (alert, alert), now, until);
            if detours {
                let number = pair.attach(7, now, until);
                pair.on_return(number, (false, false), now, BOUNDS);
            }
            (ended, detours)
        };
        assert_eq!(step(0, true), (None, true));
        assert!((1..25).all(|i| step(400 * i, false) == (None, true)), "in order, and longer than a wait");
        assert_eq!(step(10_000, false), (Some(Ended::Overlong), false));
        assert_eq!([step(10_100, true), step(10_700, true)], [(None, true); 2]);
        assert!((0..49).all(|i| step(10_900 + 200 * i, false) == (None, true)));
        assert_eq!([step(20_699, false), step(20_700, false)], [(None, true), (Some(Ended::Overlong), false)]);
    }

    /// While a packet is out, a gap does not end the detour, whose length counts on; without one out a gap of χ does, and its length with it.
    #[test]
    fn a_gap_counts_where_no_packet_is_out() {
        let until = Until::Flowlet(500);
        let expire = |pair: &mut Pair, now| pair.expire(now, false, BOUNDS, until);
        let begun = || {
            let mut pair = Pair::default();
            assert!(pair.on_new(7, (true, true), 0, until));
            (pair.attach(7, 0, until), pair)
        };
        let (number, mut pair) = begun();
        assert_eq!(expire(&mut pair, 600), None);
        assert!(pair.on_new(7, (true, true), 600, until), "it finds no way, though");
        assert_eq!(pair.on_return(number, (false, false), 650, BOUNDS), Back::Release);
        pair.attach(7, 700, until);
        assert_eq!(expire(&mut pair, 10_000), Some(Ended::Overlong), "since 0: else it had stalled since 700");
        for (gap, ended) in [(499, Some(Ended::Overlong)), (500, None)] {
            let (number, mut pair) = begun();
            assert_eq!(pair.on_return(number, (false, false), 10, BOUNDS), Back::Release);
            for now in (400..9_400).step_by(400).chain([10_000 - gap]) {
                assert!(expire(&mut pair, now).is_none() && pair.on_new(7, (false, false), now, until), "{now}");
            }
            assert_eq!(expire(&mut pair, 10_000), ended, "{gap}");
        }
    }

    #[test]
    fn what_is_let_go_in_its_turn_leaves_no_hole() {
        let mut pair = Pair::default();
        let [first, second, third] = [(); 3].map(|()| pair.attach(7, 0, DRAINED));
        assert!(pair.let_go(first, 0));
        assert_eq!((pair.freed(), pair.on_return(second, (false, false), 0, BOUNDS)), (1, Back::Release));
        pair.attach(7, 0, DRAINED);
        assert!(pair.let_go(3, 0));
        assert_eq!((pair.on_return(third, (false, false), 0, BOUNDS), pair.freed(), pair.out()), (Back::Release, 3, 1));
        assert!(pair.let_go(3, 0) && !pair.let_go(4, 0));
        assert_eq!((pair.freed(), pair.out()), (4, 0));
    }
}
