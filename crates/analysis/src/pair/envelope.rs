//! Least delays over time: their lower convex hull, exact, in bounded memory.
//!
//! Delays are time in the port and on the way, which is never less than the least, and what the clocks are apart. A line under all of
//! them that is as near to them as can be is what the clocks are apart and how they drift.
//!
//! Source: Moon, Skelly, Towsley, INFOCOM 1999 (a line under all delays, by linear programming); the hull gives the same line.

/// Number of parts of the time, each with a hull of its own; and of points of a hull, which on real delays has a few dozen.
const PARTS: usize = 32;
const POINTS: usize = 4_096;
/// Number of packets of a part by which it is judged.
const ENOUGH: u64 = 8;
/// Shortest part at first [ps].
const PART: i64 = 1_000_000_000;

/// A delay: its time [ps], its length [ps], and the bytes of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    pub time: i64,
    pub delay: i64,
    pub bytes: u32,
}

/// Adds a point to a lower hull.
fn push(hull: &mut Vec<Delay>, point: Delay) {
    if let Some(last) = hull.last() {
        if last.time >= point.time && last.delay <= point.delay {
            return;
        }
        if last.time >= point.time {
            hull.pop();
        }
    }
    while let [.., a, b] = hull[..] {
        let less = |x: i64, y: i64| i128::from(x) - i128::from(y);
        let rise = |p: Delay, q: Delay| (less(q.time, p.time), less(q.delay, p.delay));
        let ((x1, y1), (x2, y2)) = (rise(a, b), rise(b, point));
        if y1 * x2 >= y2 * x1 {
            hull.pop();
        } else {
            break;
        }
    }
    hull.push(point);
    if hull.len() > POINTS {
        // A little above the least, for delays that no port has.
        let mut odd = false;
        hull.retain(|_| {
            odd = !odd;
            odd
        });
    }
}

#[derive(Clone, Debug, Default)]
struct Part {
    hull: Vec<Delay>,
    most: i64,
    points: u64,
    sum: i128,
}

impl Part {
    fn merge(&mut self, later: Part) {
        later.hull.into_iter().for_each(|p| push(&mut self.hull, p));
        self.most = if self.points == 0 {
            later.most
        } else if later.points == 0 {
            self.most
        } else {
            self.most.max(later.most)
        };
        self.points += later.points;
        self.sum += later.sum;
    }

    /// The least delay over a line of that slope from zero on.
    fn least(&self, drift: f64) -> Option<(f64, u32)> {
        let over = |p: &Delay| (p.delay as f64 - drift * p.time as f64, p.bytes);
        self.hull.iter().map(over).min_by(|a, b| a.0.total_cmp(&b.0))
    }
}

/// The least delays of packets of one size.
#[derive(Clone, Debug)]
pub struct Envelope {
    parts: Vec<Part>,
    width: i64,
    /// The part of the last delay, and the times that belong to it.
    present: (usize, std::ops::Range<i64>),
}

impl Default for Envelope {
    fn default() -> Self {
        Envelope { parts: Vec::new(), width: PART, present: (0, 0..0) }
    }
}

impl Envelope {
    /// Adds a delay; in order of time.
    #[inline]
    pub fn add(&mut self, point: Delay) {
        if !self.present.1.contains(&point.time) {
            self.go_on(point.time);
        }
        let part = &mut self.parts[self.present.0];
        push(&mut part.hull, point);
        part.most = if part.points == 0 { point.delay } else { part.most.max(point.delay) };
        part.points += 1;
        part.sum += i128::from(point.time);
    }

    /// Goes on to the part of a time.
    fn go_on(&mut self, time: i64) {
        while time / self.width >= PARTS as i64 {
            self.width = self.width.saturating_mul(2);
            let mut parts = std::mem::take(&mut self.parts).into_iter();
            while let Some(mut part) = parts.next() {
                if let Some(later) = parts.next() {
                    part.merge(later);
                }
                self.parts.push(part);
            }
        }
        let index = (time / self.width).max(0);
        let place = index as usize;
        if self.parts.len() <= place {
            self.parts.resize(place + 1, Part::default());
        }
        self.present = (place, index * self.width..(index + 1).saturating_mul(self.width));
    }

    pub fn points(&self) -> u64 {
        self.parts.iter().map(|part| part.points).sum()
    }

    /// Time between the first and the last of the hull [ps].
    pub fn span(&self) -> i64 {
        let times = || self.parts.iter().flat_map(|part| &part.hull).map(|p| p.time);
        times().max().unwrap_or(0) - times().min().unwrap_or(0)
    }

    /// The latest time of the hull [ps].
    pub fn until(&self) -> i64 {
        self.parts.iter().flat_map(|part| &part.hull).map(|p| p.time).max().unwrap_or(0)
    }

    /// Least delay of each part of the time with enough packets, with its time.
    fn lowest(&self) -> Vec<Delay> {
        let enough = |part: &&Part| part.points >= ENOUGH;
        self.parts.iter().filter(enough).filter_map(|part| part.hull.iter().min_by_key(|p| p.delay)).copied().collect()
    }

    /// True if parts with enough packets lie in the first and in the last third of the time.
    pub fn reaches(&self) -> bool {
        let lowest = self.lowest();
        let Some((first, last)) = lowest.first().zip(lowest.last()) else { return false };
        3 * (last.time - first.time) >= self.span()
    }

    /// The median slope between the least delays of parts of the time, which no single packet moves (the Theil-Sen estimator).
    pub fn slope_of_parts(&self) -> Option<f64> {
        let lowest = self.lowest();
        let mut slopes = Vec::new();
        for (i, a) in lowest.iter().enumerate() {
            let later = lowest[i + 1..].iter().filter(|b| b.time > a.time);
            slopes.extend(later.map(|b| (b.delay - a.delay) as f64 / (b.time - a.time) as f64));
        }
        slopes.sort_by(f64::total_cmp);
        slopes.get(slopes.len() / 2).copied()
    }

    /// Least delay over a line of that slope, and its bytes.
    pub fn least(&self, drift: f64) -> Option<(f64, u32)> {
        self.parts.iter().filter_map(|part| part.least(drift)).min_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// Least delays over a line of that slope, by part of the time, of parts with enough packets.
    pub fn by_part(&self, drift: f64) -> Vec<f64> {
        let enough = |part: &&Part| part.points >= ENOUGH;
        self.parts.iter().filter(enough).filter_map(|part| part.least(drift)).map(|(delay, _)| delay).collect()
    }

    /// Largest delay of all.
    pub fn most(&self) -> Option<i64> {
        self.parts.iter().filter(|part| part.points > 0).map(|part| part.most).max()
    }

    /// The slope of the line under all delays that is nearest to them.
    pub fn slope(&self) -> Option<f64> {
        let mut all = Part::default();
        self.parts.iter().for_each(|part| all.merge(part.clone()));
        let middle = i64::try_from(all.sum / i128::from(all.points.max(1))).ok()?;
        let at = all.hull.windows(2).find(|w| w[0].time <= middle && middle <= w[1].time)?;
        (at[1].time > at[0].time).then(|| (at[1].delay - at[0].delay) as f64 / (at[1].time - at[0].time) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn least_delays_are_exact_over_any_line(
            steps in prop::collection::vec((0..3_000_000_000_i64, -1_000..1_000_000_i64), 1..400),
            drift in -1e-4..1e-4,
        ) {
            let (mut envelope, mut time, mut all) = (Envelope::default(), 0, Vec::new());
            for (step, delay) in steps {
                time += step;
                let point = Delay { time, delay, bytes: 1 };
                envelope.add(point);
                all.push(point);
            }
            let expected = all.iter().map(|p| p.delay as f64 - drift * p.time as f64).fold(f64::MAX, f64::min);
            prop_assert_eq!(envelope.least(drift).unwrap().0, expected);
            prop_assert_eq!(envelope.most(), all.iter().map(|p| p.delay).max());
            prop_assert_eq!(envelope.points(), all.len() as u64);
            prop_assert!(envelope.parts.len() <= PARTS);
            // No delay is below the line.
            if let Some(slope) = envelope.slope() {
                let least = envelope.least(slope).unwrap().0;
                prop_assert!(all.iter().all(|p| p.delay as f64 - slope * p.time as f64 >= least));
            }
        }
    }

    #[test]
    fn the_slope_is_that_of_the_clocks_whatever_waits() {
        let mut envelope = Envelope::default();
        for i in 0..10_000_i64 {
            let wait = if i % 50 == 0 { 0 } else { i * 7_919 % 5_000_000 };
            envelope.add(Delay { time: i * 1_000_000_000, delay: 5_000_000 + i * 20_000 + wait, bytes: 1_518 });
        }
        assert!((envelope.slope().unwrap() - 2e-5).abs() < 1e-9, "20 ppm: {:?}", envelope.slope());
        assert!((envelope.least(2e-5).unwrap().0 - 5_000_000.0).abs() < 1e-3);
        assert!(envelope.by_part(2e-5).iter().all(|least| *least < 5_000_001.0));
    }
}
