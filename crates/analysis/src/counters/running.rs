//! Running totals: from one value to the next, with wraps told apart from resets.

/// Change of a running total between two looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing to compare with.
    First,
    /// Rise of the count.
    By(u64),
    /// The counter began anew: what was counted is unknown.
    Reset,
    /// The counter may have wrapped more than once: what was counted is unknown.
    Rollover,
    /// A counter of 64 bits fell as one of 32 bits wraps: what was counted is unknown.
    Narrow,
}

/// A running total of up to 64 bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Running {
    last: Option<u64>,
}

/// Numbers that a counter of 32 bits has.
const OF_32: u64 = 1 << 32;

impl Running {
    /// True once a value was seen.
    pub fn has_begun(&self) -> bool {
        self.last.is_some()
    }

    /// Takes the next value. `bits`: width of the counter, where it is known; `most`: what can have been counted since the value before,
    /// where the port's speed is known.
    ///
    /// A value below the one before is a wrap where the counter's width allows it and no more was counted than can have been; where nothing
    /// limits that, if the values lie in the last and in the first quarter of its range. Else the counter began anew.
    pub fn step(&mut self, value: u64, bits: Option<u8>, most: Option<u64>) -> Step {
        let Some(last) = self.last.replace(value) else { return Step::First };
        let known = bits.is_some();
        let bits = bits.unwrap_or(if last < OF_32 && value < OF_32 { 32 } else { 64 });
        // Numbers that the counter has, less one.
        let range = u64::MAX >> (64 - u32::from(bits.clamp(1, 64)));
        if known && most.is_some_and(|most| most > range) {
            return Step::Rollover;
        }
        if value >= last {
            return Step::By(value - last);
        }
        let by = value.wrapping_sub(last) & range;
        let wraps = match most {
            Some(most) => by <= most,
            None => last > range / 4 * 3 && value <= range / 4,
        };
        if wraps {
            Step::By(by)
        } else if bits == 64 && is_narrow(last, value, most) {
            Step::Narrow
        } else {
            Step::Reset
        }
    }
}

/// True if a fall is that of a counter of 32 bits near the end of its range, by no more than can have been counted.
#[cold]
fn is_narrow(last: u64, value: u64, most: Option<u64>) -> bool {
    let near = last < OF_32 && last > OF_32 / 4 * 3 && value <= OF_32 / 4;
    near && most.is_none_or(|most| value + OF_32 - last <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(values: &[u64], bits: Option<u8>, most: Option<u64>) -> Vec<Step> {
        let mut running = Running::default();
        values.iter().map(|value| running.step(*value, bits, most)).collect()
    }

    #[test]
    fn a_total_rises_wraps_or_begins_anew() {
        assert_eq!(after(&[5, 9, 9], None, None), [Step::First, Step::By(4), Step::By(0)]);
        // Near the end of 32 bits, and near their begin.
        assert_eq!(after(&[OF_32 - 10, 20], None, None)[1], Step::By(30));
        assert_eq!(after(&[u64::MAX - 9, 20], Some(64), None)[1], Step::By(30));
        // From the middle of the range nothing wraps.
        assert_eq!(after(&[OF_32 / 2, 20], None, None)[1], Step::Reset);
        assert_eq!(after(&[OF_32 * 5, 20], None, None)[1], Step::Reset, "a counter of 64 bits");
        assert_eq!(after(&[OF_32 - 10, 20], Some(64), None)[1], Step::Narrow, "64 bits do not wrap there");
        assert_eq!(after(&[OF_32 - 10, 20], Some(64), Some(29))[1], Step::Reset, "more than can have been");
        assert_eq!(after(&[OF_32 + 10, 20], Some(64), None)[1], Step::Reset);
        assert_eq!(after(&[65_535, 2], Some(16), None)[1], Step::By(3));
    }

    #[test]
    fn the_speed_tells_a_wrap_from_a_reset() {
        assert_eq!(after(&[OF_32 - 1_000, 500], Some(32), Some(2_000))[1], Step::By(1_500));
        assert_eq!(after(&[OF_32 - 1_000, 500], Some(32), Some(1_499))[1], Step::Reset);
        assert_eq!(after(&[OF_32 / 2, 0], Some(32), Some(OF_32 - 1))[1], Step::By(OF_32 / 2));
        // 10 Gb/s fill 32 bits in 3.4 s: a look each minute shows nothing.
        assert_eq!(after(&[1, 2], Some(32), Some(OF_32))[1], Step::Rollover);
        assert_eq!(after(&[1, 2], Some(32), Some(75_000_000_000)), [Step::First, Step::Rollover]);
        assert_eq!(after(&[1, 2], Some(64), Some(75_000_000_000))[1], Step::By(1));
    }
}
