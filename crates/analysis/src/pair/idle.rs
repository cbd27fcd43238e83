//! Packets that found an idle port, by parts of the time: none of them waits, so as long as they stand, stamps and clocks are off.
//!
//! That the port was idle is seen by departures alone: before the packet it had sent all that had left so far. What the clocks are apart does
//! not change that, nor do stamps that are given to groups: a group lasts for as long as it takes on the wire.

use super::reader::Left;
use super::waits::Histogram;
use crate::display::{size, span};

/// Number of parts of the time.
const PARTS: i128 = 32;
/// Packets of a part by which it is judged, and waits of them that are kept.
const ENOUGH: u64 = 8;
const KEPT: usize = 256;
/// Time for which a packet stands before an idle port at least, as that of bytes at the port's speed: two full frames, beyond steps of stamps.
const LEAST: f64 = 2.0 * 1538.0;
/// Speed of the port, as a share of the one that is known, by which it has sent what came before.
pub const SLOWER: f64 = 0.98;
/// Share of a part's packets that stand, and the spread of the lower half of their waits, as a share of the least, where clocks are apart.
const ALL: f64 = 0.9;
const FLAT: f64 = 0.25;
/// Share of packets before an idle port whose stamps are off by less, and the share of the largest queue that matters.
const NEARLY_ALL: f64 = 0.9;
/// Share of packets at the moment of the one before them from which stamps are given to groups.
const GROUPED: f64 = 0.25;
const MATTERS: f64 = 0.05;

/// Packets of a part of the time that left when the port had been idle.
#[derive(Clone, Debug, Default)]
struct Part {
    packets: u64,
    /// Packets that stood before it all the same, and their first waits [ps].
    stood: u64,
    waits: Vec<u64>,
}

impl Part {
    /// The least wait, where all packets stood and for as long.
    fn apart(&self) -> Option<u64> {
        let mut waits = self.waits.clone();
        waits.sort_unstable();
        let (least, middle) = (*waits.first()?, waits[waits.len() / 2]);
        let flat = (middle - least) as f64 <= FLAT * least as f64;
        (self.stood as f64 >= ALL * self.packets as f64 && flat).then_some(least)
    }

    fn join(&mut self, later: Part) {
        (self.packets, self.stood) = (self.packets + later.packets, self.stood + later.stood);
        self.waits.extend(later.waits);
    }
}

/// Packets that left when the port had been idle.
#[derive(Clone, Debug)]
pub struct Idle {
    from: i128,
    width: i128,
    /// Time that a byte takes, and that it takes at most [ps]; bytes of a packet on the wire beyond the frame.
    byte: f64,
    slow: f64,
    overhead: u32,
    /// Step of the stamps, and the time for which a packet stands before an idle port, at least [ps].
    tick: i128,
    least: i128,
    /// Time until which the port sends what has left so far, and a step of the stamps [ps].
    busy: i128,
    /// Arrival and departure of the last packet [ps], packets, and those that arrived or left at the moment of the one before them.
    last: (i128, i128),
    packets: u64,
    together: u64,
    parts: Vec<Part>,
    waits: Histogram,
}

/// Parts of the time in which the clocks are further apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Apart {
    pub parts: usize,
    /// Parts with packets enough to tell.
    pub of: usize,
    /// The longest by which they are apart, at least [ps].
    pub most: u64,
}

impl Apart {
    /// Description of the parts.
    pub fn words(&self) -> String {
        format!(
            "in {} of {} parts of the time every packet that left after the port had been idle stood before it, as if for {} and more: the \
             clocks are further apart there, and waits are too long by as much",
            self.parts,
            self.of,
            span(self.most)
        )
    }
}

/// Times by which packets before an idle port seem to wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stood {
    /// Packets that found the port idle.
    pub packets: u64,
    /// The wait that one in ten of them exceeds [ps], and the bytes that the port sends meanwhile.
    pub wait: u64,
    pub bytes: f64,
}

impl Stood {
    /// Description of what follows for the queue.
    pub fn words(&self) -> String {
        format!(
            "one in ten of the {} packets that found the port idle seems to have stood before it for {} and more, so the queue is uncertain \
             by {}",
            self.packets,
            span(self.wait),
            size(self.bytes)
        )
    }
}

impl Idle {
    /// Nothing of a stretch of time [ps] yet. Stamps have steps of a `tick` [ps], and a byte takes so long [ps]; packets have `overhead` bytes
    /// on the wire.
    pub fn new((from, to): (i128, i128), tick: Option<u64>, byte: f64, overhead: u64) -> Idle {
        let tick = i128::from(tick.unwrap_or(0));
        Idle {
            from,
            width: ((to - from) / PARTS).max(1),
            byte,
            slow: byte / SLOWER,
            overhead: u32::try_from(overhead).unwrap_or(0),
            tick,
            least: (LEAST * byte) as i128 + 2 * tick,
            busy: i128::MIN,
            last: (i128::MIN, i128::MIN),
            packets: 0,
            together: 0,
            parts: vec![Part::default(); PARTS as usize],
            waits: Histogram::default(),
        }
    }

    /// Takes a packet, in order of departure.
    #[inline]
    pub fn leaves(&mut self, left: Left) {
        self.packets += 1;
        self.together += u64::from(left.arrived == self.last.0 || left.left == self.last.1);
        self.last = (left.arrived, left.left);
        if left.left > self.busy && self.busy > i128::MIN {
            self.idle(left);
        }
        self.stranger(left);
    }

    /// Takes a packet that was captured behind only, so that its wait is a guess.
    #[inline]
    pub fn stranger(&mut self, left: Left) {
        let takes = (f64::from(left.bytes + self.overhead) * self.slow) as i64;
        self.busy = self.busy.max(left.left + self.tick) + i128::from(takes);
    }

    /// Takes a packet that found the port idle.
    fn idle(&mut self, left: Left) {
        if self.byte <= 0.0 {
            return;
        }
        let index = ((left.left - self.from) / self.width).clamp(0, PARTS - 1);
        let Some(part) = self.parts.get_mut(index as usize) else { return };
        part.packets += 1;
        // Times behind may be those of frames' ends.
        let own = (f64::from(left.bytes) * self.byte) as i128;
        let wait = left.left - left.arrived;
        let beyond = u64::try_from((wait - own).max(0)).unwrap_or(u64::MAX);
        self.waits.add(beyond);
        if i128::from(beyond) >= self.least {
            part.stood += 1;
            if part.waits.len() < KEPT {
                part.waits.push(beyond.saturating_add(own as u64));
            }
        }
    }

    /// Parts in which the clocks are further apart than in others; none: there are not two.
    pub fn apart(&self) -> Option<Apart> {
        // Parts with few packets are judged with those after them.
        let mut parts: Vec<Part> = Vec::new();
        for part in &self.parts {
            match parts.last_mut().filter(|last| last.packets < ENOUGH) {
                Some(last) => last.join(part.clone()),
                None => parts.push(part.clone()),
            }
        }
        let told: Vec<Option<u64>> = parts.iter().filter(|part| part.packets >= ENOUGH).map(Part::apart).collect();
        let most = told.iter().copied().flatten().max()?;
        let parts = told.iter().flatten().count();
        (parts > 1).then_some(Apart { parts, of: told.len(), most })
    }

    /// True if so many bytes matter for queues of up to `peak`.
    pub fn matters(&self, bytes: f64, peak: u64) -> bool {
        bytes > LEAST.max(MATTERS * peak as f64)
    }

    /// True if packets found the port idle in most parts of the time.
    pub fn covers(&self) -> bool {
        2 * self.parts.iter().filter(|part| part.packets >= ENOUGH).count() as i128 > PARTS
    }

    /// Time for which packets seem to stand before an idle port, if it matters for queues of up to `peak` bytes. `slower`: the port sends
    /// slower than it is known to while packets wait, so that a gap does not show that it was idle, unless stamps are given to groups.
    pub fn stood(&self, peak: u64, slower: bool) -> Option<Stood> {
        if slower && (self.together as f64) < GROUPED * self.packets as f64 {
            return None;
        }
        let packets = self.waits.count();
        let wait = self.waits.at(NEARLY_ALL);
        let bytes = if self.byte > 0.0 { wait as f64 / self.byte } else { 0.0 };
        (packets >= ENOUGH && i128::from(wait) >= self.least && self.matters(bytes, peak)).then_some(Stood {
            packets,
            wait,
            bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: i128 = 1_000_000;

    /// A packet every 100 us; `wait` gives how long each takes [us].
    fn idle(wait: impl Fn(i128) -> i128) -> Option<Apart> {
        let mut idle = Idle::new((0, 3_200 * 100 * US), None, 800.0, 20);
        let left = |i: i128| Left { arrived: i * 100 * US, left: (i * 100 + wait(i)) * US, bytes: 1_500 };
        (0..3_200).for_each(|i| idle.leaves(left(i)));
        idle.apart()
    }

    #[test]
    fn parts_in_which_all_packets_stand_before_an_idle_port_are_apart() {
        assert_eq!(idle(|_| 0), None);
        // A clock that was set by 60 us in the middle, and one that goes slowly astray.
        assert_eq!(idle(|i| if i < 1_600 { 0 } else { 60 }), Some(Apart { parts: 16, of: 32, most: 60_000_000 }));
        let astray = idle(|i| i / 40).unwrap();
        assert!((28..=31).contains(&astray.parts) && astray.most >= 77_000_000, "{astray:?}");
    }

    #[test]
    fn pauses_and_jitter_are_not() {
        // Each second packet was paused; pauses of any length; stamps in steps of 50 us.
        assert_eq!(idle(|i| 60 * (i % 2)), None);
        assert_eq!(idle(|i| 45 + i * 7_919 % 40), None);
        assert_eq!(idle(|i| i * 7_919 % 50), None);
    }
}
