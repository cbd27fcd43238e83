//! Steady load of a port: many intervals in a row that are alike are no burst, however high.

use crate::bursts::ALIKE;

/// Number of alike intervals in a row that make a steady load, as for windows of arrivals.
const STEADY: u32 = 64;
/// Part of its speed from which a port counts as congested, however steady the load.
const SATURATED: f32 = 0.95;

/// The latest intervals, as many as are alike, and the last steady load. Loads are parts of the port's speed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alike {
    count: u32,
    mean: f32,
    /// The last steady load, and the intervals since one that had as much.
    level: Option<(f32, u32)>,
}

/// Answer to the next load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Is {
    /// An interval unlike those before: the first of a stretch.
    New,
    Alike,
    /// The stretch is a steady load.
    Steady,
}

impl Alike {
    /// Load above which an interval is hot: the share, but more than a steady load has.
    pub fn threshold(&self, share: f32) -> f32 {
        match self.level {
            Some((level, _)) if level > share => f32::midpoint(level, 1.0),
            Some((level, _)) => share.max(level + ALIKE as f32),
            None => share,
        }
    }

    /// Takes the load of the next interval.
    #[inline]
    pub fn see(&mut self, load: f32) -> Is {
        let near = |other: f32| (load - other).abs() <= ALIKE as f32;
        let alike = self.count > 0 && near(self.mean);
        if alike {
            self.count = self.count.saturating_add(1);
            self.mean += (load - self.mean) / self.count.min(STEADY) as f32;
        } else {
            (self.count, self.mean) = (1, load);
        }
        match &mut self.level {
            Some((level, since)) if near(*level) => *since = 0,
            Some((_, since)) if *since >= STEADY => self.level = None,
            Some((_, since)) => *since += 1,
            None => {}
        }
        if self.count >= STEADY && self.mean < SATURATED {
            self.level = Some((self.mean, 0));
            return Is::Steady;
        }
        if alike {
            Is::Alike
        } else {
            Is::New
        }
    }

    /// The last steady load, if it still is.
    pub fn level(&self) -> Option<f32> {
        self.level.map(|(level, _)| level)
    }

    /// Forgets the stretch: what follows an unknown interval is not alike to what was before.
    pub fn cut(&mut self) {
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_four_alike_loads_are_steady_and_raise_the_bar() {
        let mut alike = Alike::default();
        assert_eq!(alike.see(0.6), Is::New);
        let all: Vec<Is> = (1..64).map(|i| alike.see(0.6 + (i % 3) as f32 * 0.05)).collect();
        assert!(all[..62].iter().all(|is| *is == Is::Alike) && all[62] == Is::Steady);
        let threshold = alike.threshold(0.5);
        assert!((threshold - 0.8).abs() < 0.05, "half of the rest: {threshold}");
        assert_eq!(alike.see(1.0), Is::New);
        // Long after it the share is in force again.
        (0..66).for_each(|i| _ = alike.see(if i % 2 == 0 { 0.0 } else { 0.4 }));
        assert_eq!(alike.threshold(0.5), 0.5);
    }

    #[test]
    fn a_port_that_is_full_is_congested_however_steadily() {
        let mut alike = Alike::default();
        assert!((0..200).all(|_| alike.see(0.99) != Is::Steady));
    }
}
