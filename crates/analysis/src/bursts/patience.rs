//! Time between two looks at a queue that is so much longer than usual that looks are missing.

/// Steps between looks after which the usual one is known.
const LEARNT: u64 = 16;
/// Usual steps between two looks from which the time between them is unknown.
const MISSED: u64 = 10;

/// Usual step between looks at a queue: a mean, of the latest ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patience {
    /// Mean step [ps], and the number of steps up to now.
    step: u64,
    steps: u64,
}

impl Patience {
    /// True if looks are missing by now, so long after the last one [ps].
    pub fn is_over(&self, since: u64) -> bool {
        self.steps >= LEARNT && since > self.step.saturating_mul(MISSED).max(1)
    }

    /// Takes the step to the next look [ps]; true if looks between the two are missing.
    ///
    /// Looks that come less often from now on are missing a few times and no more: each hole doubles what is usual.
    #[inline]
    pub fn misses(&mut self, step: u64) -> bool {
        if self.is_over(step) {
            self.step = self.step.saturating_mul(2).max(1);
            return true;
        }
        self.steps = (self.steps + 1).min(4 * LEARNT);
        self.step = if step >= self.step {
            self.step + (step - self.step) / self.steps
        } else {
            self.step - (self.step - step) / self.steps
        };
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_more_than_ten_usual_ones_is_a_hole_and_slower_looks_are_soon_usual() {
        let mut patience = Patience::default();
        assert!((0..16).all(|_| !patience.misses(100)));
        assert!(!patience.misses(1_000) && patience.misses(1_000_000));
        let holes = (0..100).filter(|_| patience.misses(20_000)).count();
        assert!((3..=5).contains(&holes), "{holes}");
    }
}
