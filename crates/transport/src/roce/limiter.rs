//! Rate limiter of a queue pair: packets leave in bursts, whose beginnings are as far apart as their bytes take at the rate.

use fanin_units::{BitRate, Bytes, Time};

/// Rate limiter with bursts.
#[derive(Clone, Debug)]
pub struct Limiter {
    /// Payload bytes per burst.
    burst: u32,
    /// Beginning of the present burst, its bytes on the wire so far, and its remaining payload bytes.
    begun: Time,
    wire: u64,
    left: u32,
    /// Earliest beginning of the next burst.
    next: Time,
}

impl Limiter {
    /// A limiter with bursts of `burst` payload bytes, a packet at least.
    pub fn new(burst: u32) -> Self {
        Limiter { burst, begun: Time::ZERO, wire: 0, left: 0, next: Time::ZERO }
    }

    /// Earliest time at which a packet may leave; a past time means now.
    #[inline]
    pub fn next(&self) -> Time {
        if self.left > 0 {
            Time::ZERO
        } else {
            self.next
        }
    }

    /// Accounts for a packet sent at a rate below the line's.
    #[inline]
    pub fn sent(&mut self, now: Time, payload: u32, wire: u32, rate: BitRate) {
        if self.left == 0 || now >= self.next {
            (self.begun, self.wire, self.left) = (now, 0, self.burst);
        }
        self.wire += u64::from(wire);
        self.left = self.left.saturating_sub(payload);
        self.retime(rate);
    }

    /// Lifts the limit: packets leave at the line rate.
    #[inline]
    pub fn open(&mut self) {
        (self.left, self.next) = (0, Time::ZERO);
    }

    /// Changes the rate from now on.
    pub fn retime(&mut self, rate: BitRate) {
        self.next = self.begun.saturating_add(rate.time_to_send(Bytes(self.wire)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_units::Span;

    #[test]
    fn bursts_keep_the_rate_and_follow_it_when_it_changes() {
        let (mut one, mut four) = (Limiter::new(1_024), Limiter::new(4_096));
        let rate = BitRate::from_gbps(10);
        let at = |ns| Time::ZERO + Span::from_ns(ns);
        one.sent(at(100), 1_024, 1_100, rate);
        assert_eq!(one.next(), at(980));
        one.retime(BitRate::from_gbps(5));
        assert_eq!(one.next(), at(1_860));
        for i in 0..4 {
            assert!(four.next() <= at(100));
            four.sent(at(100 + i), 1_024, 1_100, rate);
        }
        assert_eq!(four.next(), at(100 + 4 * 880));
        // A burst that was not finished in its time is over.
        four.sent(at(3_620), 1_024, 1_100, rate);
        four.sent(at(9_000), 1_024, 1_100, rate);
        assert_eq!(four.begun, at(9_000));
        four.open();
        assert_eq!(four.next(), Time::ZERO);
    }
}
