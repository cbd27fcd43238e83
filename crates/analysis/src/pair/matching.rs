//! Both captures together, packet by packet: for each packet behind the port the one before it that it is.

use super::coarse::LONGEST;
use super::flight::{Flight, Found};
use super::identity::Seen;
use super::side::{Side, SOONER};
use super::MOST_HELD;
use crate::input::problem::Problems;

/// Lead with which the capture before is read, so that each packet behind is known when it leaves [ps].
const LEAD: i128 = 20_000_000_000;
/// Packets after which the least delay begins anew, since clocks drift.
const ANEW: u64 = 256;
/// Lead by which a packet comes out before it went in, by clocks and stamps, rather than being another of its identity [ps].
pub const SLACK: i128 = 1_000_000_000;

/// Packet before the port that a packet behind it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partner {
    /// Number among the packets before.
    pub number: u64,
    /// Number of a packet of the same identity that it may have been instead.
    pub rival: Option<u64>,
}

/// Receiver of the packets of both captures.
pub trait Take {
    /// Takes a packet that was captured before the port.
    fn before(&mut self, seen: &Seen);
    /// Takes a packet that was captured behind the port, with what it was before: its time there and its bytes.
    fn behind(&mut self, seen: &Seen, found: Option<&Found<u32>>);
}

/// Both captures, being read.
pub struct Matching {
    pub before: Side,
    pub behind: Side,
    flight: Flight<u32>,
    shift: i128,
    /// Least delay lately, in the packets before, and of all, each beyond the shift [ps].
    least: [i128; 3],
    matched: u64,
}

impl Matching {
    pub fn new(before: Side, behind: Side, shift: i128) -> Matching {
        Matching { before, behind, flight: Flight::default(), shift, least: [i128::MAX; 3], matched: 0 }
    }

    /// Largest number of places by which a packet left later than those that arrived behind it.
    pub fn late(&self) -> u64 {
        self.flight.late
    }

    /// Share of both captures that has been read, 0 … 1.
    pub fn progress(&self) -> f64 {
        (self.before.progress() + self.behind.progress()) / 2.0
    }

    /// Hands over the next packet; false at the end.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn step(&mut self, take: &mut impl Take) -> Result<bool, Problems> {
        let Some(leaves) = self.behind.peek()? else {
            let Some(seen) = self.before.first()? else { return Ok(false) };
            take.before(seen);
            self.before.skip();
            return Ok(true);
        };
        let until = leaves - self.ahead();
        if let Some(seen) = self.before.first()?.filter(|seen| seen.time <= until) {
            self.flight.expire(seen.time - LONGEST, MOST_HELD - 1);
            self.flight.push(seen.time, (seen.key, seen.tag), seen.bytes);
            take.before(seen);
            self.before.skip();
            let ahead = |by| self.before.ahead(by).map(|seen| (seen.key, seen.tag));
            self.flight.soon([ahead(SOONER), ahead(2 * SOONER)]);
        } else if let Some(seen) = self.behind.first()? {
            let at = seen.time - self.shift;
            let [.., least] = self.least;
            let found = self.flight.leave(seen.key, seen.tag, at - if least == i128::MAX { 0 } else { least } + SLACK);
            take.behind(seen, found.as_ref());
            if let Some(found) = found {
                self.passed(at - found.time);
            }
            self.behind.skip();
            let ahead = |by| self.behind.ahead(by).map(|seen| (seen.key, seen.tag));
            self.flight.soon([ahead(2 * SOONER), ahead(3 * SOONER)]);
            self.flight.leaving(ahead(SOONER));
        }
        Ok(true)
    }

    fn passed(&mut self, delay: i128) {
        let [lately, _, least] = &mut self.least;
        (*lately, *least) = ((*lately).min(delay), (*least).min(delay));
        self.matched += 1;
        if self.matched % ANEW == 0 {
            self.least = [i128::MAX, self.least[0], self.least[2]];
        }
    }

    /// Remaining lead of the packets before over those behind, approximately.
    fn ahead(&self) -> i128 {
        let least = self.least[0].min(self.least[1]);
        self.shift + if least == i128::MAX { 0 } else { least } - LEAD
    }
}
