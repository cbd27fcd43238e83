//! RIMM's registers: detector at egress, alert at ingress, choice of the neighbour, sequence numbers. Source: RIMM §III.
//!
//! Clocks are 32-bit counters that wrap around, of any unit; differences of up to 2³² of it count.

/// Detector at the egress of a port: compares the queue depth with the threshold α. Source: RIMM §III-A.1.
///
/// | register | width |
/// |---|---|
/// | above | 1 |
/// | crossings | 16, wraps around |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detector {
    above: bool,
    crossings: u16,
}

impl Detector {
    /// Updates the detector when a packet leaves `depth` behind; returns the crossing's number if α was crossed, in either
    /// direction.
    #[inline]
    pub fn on_egress(&mut self, depth: u32, alpha: u32) -> Option<u16> {
        let above = depth >= alpha;
        if above == self.above {
            return None;
        }
        self.above = above;
        self.crossings = self.crossings.wrapping_add(1);
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

/// Alert state of an output port, as its switch's ingress pipelines know it. Source: RIMM §III-A.1.
///
/// | register | width | unit |
/// |---|---|---|
/// | on, over | 1 each | |
/// | crossing | 16 | |
/// | since | 32 | clocks |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alert {
    on: bool,
    over: bool,
    crossing: u16,
    since: u32,
}

impl Alert {
    /// Handles a returned message about crossing number `crossing`. False if a message of a later crossing was handled
    /// before; this one is then ignored.
    /// Deviation: the paper's messages have no number, so that one that is overtaken would leave the wrong state.
    pub fn on_message(&mut self, crossing: u16, depth: u32, alpha: u32, now: u32) -> bool {
        let newer = (crossing.wrapping_sub(self.crossing) as i16) > 0;
        if newer {
            self.crossing = crossing;
            self.set(depth >= alpha, now);
        }
        newer
    }

    /// Switches the alert on or off; `on`: the depth is at α or above.
    #[inline]
    pub fn set(&mut self, on: bool, now: u32) {
        if on && !self.on {
            (self.since, self.over) = (now, false);
        }
        self.on = on;
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
/// | since: when Sa left Sf, or Sf last moved | 32 | clocks |
/// | port that packets out are for; [`SEVERAL`] | 16 | |
/// | last: the last new packet (flowlet only) | 32 | clocks |
/// | active (flowlet only) | 1 | |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pair {
    attached: u32,
    freed: u32,
    since: u32,
    port: u16,
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

    /// Gives up the pair if packets are out and none was released for `give_up` clocks; true then. Packets that are still out
    /// come back late. Deviation: the paper has nothing to end a wait for a packet that was lost.
    #[inline]
    pub fn expire(&mut self, now: u32, give_up: u32) -> bool {
        let expired = self.out() > 0 && now.wrapping_sub(self.since) >= give_up;
        if expired {
            self.give_up();
        }
        expired
    }

    /// Gives up the pair: no returning packet is awaited any more.
    pub fn give_up(&mut self) {
        self.freed = self.attached;
        self.active = false;
    }

    /// True if a new packet takes a detour: while the alert is on, and after that behind the pair's packets that are out,
    /// until the detour ends. A packet for another `port` than those belongs to another flow and need not wait. Deviation:
    /// the paper's pair has no port, so that a flow whose detours do not come back, as acknowledgments on their way up, would
    /// leave holes in the numbers of one that shares its pair.
    #[inline]
    pub fn on_new(&mut self, port: u16, alert: bool, now: u32, until: Until) -> bool {
        if !alert && self.port != port && self.port != SEVERAL {
            return false;
        }
        let gap = now.wrapping_sub(self.last);
        self.last = now;
        if alert {
            return true;
        }
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
    pub fn attach(&mut self, port: u16, now: u32) -> u32 {
        if self.out() == 0 {
            (self.since, self.port) = (now, port);
        } else if self.port != port {
            self.port = SEVERAL;
        }
        let number = self.attached;
        self.attached = number.wrapping_add(1);
        self.active = true;
        number
    }

    /// Notes that a packet was released, so that the wait for the next one begins.
    #[inline]
    pub fn progressed(&mut self, now: u32) {
        self.since = now;
    }

    /// Decides about a packet that is back with its number.
    #[inline]
    pub fn on_return(&mut self, number: u32, alert: bool) -> Back {
        if number.wrapping_sub(self.freed) >= self.out() {
            return Back::Late;
        }
        if alert || number != self.freed {
            return Back::Again;
        }
        self.freed = self.freed.wrapping_add(1);
        Back::Release
    }

    /// Releases a packet that should take another round but has no way to do so. If it is not next in order, nothing behind
    /// it is released until the pair is given up.
    pub fn let_go(&mut self, number: u32) {
        if number == self.freed && self.out() > 0 {
            self.freed = self.freed.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_crossings_are_reported_and_alpha_itself_is_above() {
        let mut d = Detector::default();
        let said = [19_999, 20_000, 20_001, 20_000, 19_999, 0, 24_000].map(|depth| d.on_egress(depth, 20_000));
        assert_eq!(said, [None, Some(1), None, None, Some(2), None, Some(3)]);
        assert!(d.is_above());
    }

    #[test]
    fn a_message_that_was_overtaken_is_ignored_also_where_numbers_wrap_around() {
        let mut a = Alert::default();
        assert!(a.on_message(2, 5, 20, 100) && !a.is_on());
        assert!(!a.on_message(1, 25, 20, 110) && !a.is_on());
        a.crossing = u16::MAX;
        assert!(a.on_message(0, 25, 20, 120) && a.is_on());
        assert!(!a.on_message(0, 5, 20, 130) && a.is_on(), "one that came twice");
    }

    #[test]
    fn an_alert_that_lasts_is_congestion_until_the_next() {
        let mut a = Alert::default();
        a.set(true, u32::MAX - 10);
        assert_eq!([u32::MAX, 0, 88, 89].map(|now| a.detours(now, 100)), [true, true, true, false]);
        a.set(true, 200);
        assert!(!a.detours(200, 100) && !a.detours(201, 1_000), "the same alert");
        a.set(false, 210);
        a.set(true, 220);
        assert!(a.detours(319, 100) && !a.detours(320, 100));
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

    /// Packets 0 to 4 go out; back come 2, 0, 1, 3 …: each waits for its turn, also where numbers wrap around.
    #[test]
    fn packets_are_released_in_the_order_of_their_numbers() {
        for start in [0, u32::MAX - 2] {
            let mut pair = Pair::at(start);
            let numbers = [(); 5].map(|()| pair.attach(7, 10));
            assert!(pair.on_new(7, false, 10, Until::Drained) && pair.out() == 5);
            assert_eq!(pair.on_return(numbers[0], true), Back::Again, "the alert is on");
            let back = [2, 0, 1, 3, 4, 2].map(|i| pair.on_return(numbers[i], false));
            use Back::{Again, Release};
            assert_eq!(back, [Again, Release, Release, Again, Again, Release]);
            assert_eq!([3, 4].map(|i| pair.on_return(numbers[i], false)), [Release, Release]);
            assert!(!pair.on_new(7, false, 11, Until::Drained));
        }
    }

    /// Each release starts the wait anew: a pair that moves is not given up, however long packets are out.
    #[test]
    fn a_pair_is_given_up_only_where_it_stalls() {
        let mut pair = Pair::default();
        let numbers = [(); 3].map(|()| pair.attach(7, u32::MAX - 100));
        for (now, number) in [(800, numbers[0]), (1_700, numbers[1])] {
            assert!(!pair.expire(now, 1_000));
            assert_eq!(pair.on_return(number, false), Back::Release);
            pair.progressed(now);
        }
        assert!(!pair.expire(2_699, 1_000) && pair.expire(2_700, 1_000));
    }

    /// A number that is missing holds all behind it back until the pair is given up; then they are late, and new ones start anew.
    #[test]
    fn a_hole_lasts_until_the_pair_is_given_up() {
        let mut pair = Pair::default();
        let [_, second] = [pair.attach(7, 1_000), pair.attach(7, 1_500)];
        assert!(!pair.expire(1_999, 1_000));
        assert_eq!(pair.on_return(second, false), Back::Again);
        assert!(pair.expire(2_000, 1_000) && pair.out() == 0 && !pair.expire(9_000, 1_000));
        assert_eq!((pair.on_return(second, false), pair.on_return(second, true)), (Back::Late, Back::Late));
        let next = pair.attach(7, 3_000);
        assert_eq!((next, pair.on_return(second, false), pair.on_return(next, false)), (2, Back::Late, Back::Release));
        assert!(!pair.expire(4_000, 1_000));
    }

    /// Two flows share a pair. Only while packets of both are out does each of them wait for those of the other.
    #[test]
    fn a_packet_for_another_port_does_not_wait() {
        let mut pair = Pair::default();
        let until = Until::Drained;
        pair.attach(7, 0);
        assert_eq!([7, 3].map(|port| pair.on_new(port, false, 1, until)), [true, false]);
        assert!(pair.on_new(3, true, 2, until), "its own alert");
        pair.attach(3, 2);
        assert_eq!([7, 3, 5].map(|port| pair.on_new(port, false, 3, until)), [true; 3]);
        assert_eq!([0, 1].map(|number| pair.on_return(number, false)), [Back::Release; 2]);
        pair.attach(3, 4);
        assert_eq!([7, 3].map(|port| pair.on_new(port, false, 5, until)), [false, true]);
    }

    #[test]
    fn a_flowlet_gap_ends_the_detour_and_nothing_else_does() {
        let until = Until::Flowlet(500);
        let mut pair = Pair::default();
        assert!(!pair.on_new(7, false, 10, until), "no detour has begun");
        assert!(pair.on_new(7, true, 20, until));
        let number = pair.attach(7, 20);
        assert_eq!(pair.on_return(number, false), Back::Release);
        assert!(pair.on_new(7, false, 519, until), "Sa = Sf, and the flowlet goes on");
        pair.attach(7, 519);
        assert!(!pair.on_new(7, false, 1_019, until) && pair.out() == 1, "the gap is there, and one packet is out");
        assert!(!pair.on_new(7, false, 1_020, until), "it has ended");
    }

    #[test]
    fn what_is_let_go_in_its_turn_leaves_no_hole() {
        let mut pair = Pair::default();
        let [first, second, third] = [(); 3].map(|()| pair.attach(7, 0));
        pair.let_go(first);
        assert_eq!((pair.freed(), pair.on_return(second, false)), (1, Back::Release));
        pair.attach(7, 0);
        pair.let_go(3);
        assert_eq!((pair.on_return(third, false), pair.freed(), pair.out()), (Back::Release, 3, 1));
        pair.let_go(3);
        pair.let_go(4);
        assert_eq!((pair.freed(), pair.out()), (4, 0));
    }
}
