//! Packets that stand before an idle port, by parts of the time: where all do, and as long, the clocks are further apart than elsewhere.

use super::reader::Left;
use crate::display::span;

/// Number of parts of the time.
const PARTS: i128 = 32;
/// Packets of a part by which it is judged, and waits of them that are kept.
const ENOUGH: u64 = 8;
const KEPT: usize = 256;
/// Time for which a port is idle, and a packet stands before it, at least, beyond steps of stamps [ps]: more than links that wake up take.
const LEAST: i128 = 20_000_000;
/// Share of a part's packets that stand, and the spread of the lower half of their waits [ps], where clocks are apart.
const ALL: f64 = 0.9;
const FLAT: u64 = 5_000_000;

/// Packets of a part of the time that left when the port had been idle.
#[derive(Clone, Debug, Default)]
struct Part {
    packets: u64,
    /// Those that stood before it all the same, and their first waits [ps].
    stood: u64,
    waits: Vec<u64>,
}

impl Part {
    /// The least wait, where all packets stood and for as long.
    fn apart(&self) -> Option<u64> {
        let mut waits = self.waits.clone();
        waits.sort_unstable();
        let (least, middle) = (*waits.first()?, waits[waits.len() / 2]);
        (self.stood as f64 >= ALL * self.packets as f64 && middle - least < FLAT).then_some(least)
    }
}

/// Packets that left when the port had been idle.
#[derive(Clone, Debug)]
pub struct Idle {
    from: i128,
    width: i128,
    /// Time for which a port is idle, and a packet stands before it, at least [ps].
    least: i128,
    parts: Vec<Part>,
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

impl Idle {
    /// Nothing of a stretch of time [ps] yet, in which stamps have steps of a `tick` [ps].
    pub fn new((from, to): (i128, i128), tick: Option<u64>) -> Idle {
        let least = LEAST + 2 * i128::from(tick.unwrap_or(0));
        Idle { from, width: ((to - from) / PARTS).max(1), least, parts: vec![Part::default(); PARTS as usize] }
    }

    /// Takes a packet, and the one that left before it; `byte`: time that one takes [ps].
    #[inline]
    pub fn leaves(&mut self, previous: Left, left: Left, byte: f64) {
        let takes = |packet: Left| (f64::from(packet.bytes) * byte) as i128;
        let since = left.left - previous.left;
        if since < self.least || since < self.least + takes(previous) {
            return;
        }
        let index = ((left.left - self.from) / self.width).clamp(0, PARTS - 1);
        let Some(part) = self.parts.get_mut(index as usize) else { return };
        part.packets += 1;
        // Times behind may be those of frames' ends.
        let wait = left.left - left.arrived;
        if wait >= self.least + 2 * takes(left) {
            part.stood += 1;
            if part.waits.len() < KEPT {
                part.waits.push(u64::try_from(wait).unwrap_or(u64::MAX));
            }
        }
    }

    /// Parts in which the clocks are further apart than in others; none: there are not two.
    pub fn apart(&self) -> Option<Apart> {
        let told: Vec<Option<u64>> = self.parts.iter().filter(|part| part.packets >= ENOUGH).map(Part::apart).collect();
        let most = told.iter().copied().flatten().max()?;
        let parts = told.iter().flatten().count();
        (parts > 1).then_some(Apart { parts, of: told.len(), most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: i128 = 1_000_000;

    /// A packet every 100 us; `wait` gives how long each takes [us].
    fn idle(wait: impl Fn(i128) -> i128) -> Option<Apart> {
        let mut idle = Idle::new((0, 3_200 * 100 * US), None);
        let left = |i: i128| Left { arrived: i * 100 * US, left: (i * 100 + wait(i)) * US, bytes: 1_500 };
        (1..3_200).for_each(|i| idle.leaves(left(i - 1), left(i), 800.0));
        idle.apart()
    }

    #[test]
    fn parts_in_which_all_packets_stand_before_an_idle_port_are_apart() {
        assert_eq!(idle(|_| 0), None);
        // A clock that was set by 60 us in the middle, and one that goes slowly astray.
        assert_eq!(idle(|i| if i < 1_600 { 0 } else { 60 }), Some(Apart { parts: 16, of: 32, most: 60_000_000 }));
        let astray = idle(|i| i / 40).unwrap();
        assert!((16..=22).contains(&astray.parts) && astray.most >= 77_000_000, "{astray:?}");
    }

    #[test]
    fn pauses_and_jitter_are_not() {
        // Each second packet was paused; pauses of any length; stamps in steps of 50 us.
        assert_eq!(idle(|i| 60 * (i % 2)), None);
        assert_eq!(idle(|i| 45 + i * 7_919 % 40), None);
        assert_eq!(idle(|i| i * 7_919 % 50), None);
    }
}
