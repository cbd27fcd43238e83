//! Counts over edges of equal ratio.

use crate::HistogramReport;

/// Number of classes to each power of two.
const STEPS: u32 = 4;
const BITS: u32 = 2;

/// Histogram with eight classes below 8, then four to each power of two.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
}

fn class(value: u64) -> usize {
    if value < 8 {
        return value as usize;
    }
    let log = 63 - value.leading_zeros();
    let step = (value >> (log - BITS)) & u64::from(STEPS - 1);
    8 + ((log - 3) * STEPS) as usize + step as usize
}

/// Lower edge of a class; the largest number beyond the last.
fn edge(class: usize) -> u64 {
    if class < 8 {
        return class as u64;
    }
    let (log, step) = ((class - 8) as u32 / STEPS + 3, (class - 8) as u64 % u64::from(STEPS));
    if log > 63 {
        return u64::MAX;
    }
    (1u64 << log) + step * (1u64 << (log - BITS))
}

impl Histogram {
    pub fn new() -> Self {
        Histogram { counts: vec![0; class(u64::MAX) + 1] }
    }

    pub fn add(&mut self, value: u64) {
        self.counts[class(value)] += 1;
    }

    /// Takes back a value that was added.
    pub fn remove(&mut self, value: u64) {
        let count = &mut self.counts[class(value)];
        *count = count.saturating_sub(1);
    }

    pub fn report(&self) -> HistogramReport {
        let Some(first) = self.counts.iter().position(|&n| n > 0) else { return HistogramReport::default() };
        let last = self.counts.iter().rposition(|&n| n > 0).unwrap_or(first);
        HistogramReport { edges: (first..=last + 1).map(edge).collect(), counts: self.counts[first..=last].to_vec() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_between_the_edges_of_its_class() {
        for shift in 0..64 {
            for offset in [-1i128, 0, 1] {
                let Ok(value) = u64::try_from((1i128 << shift) + offset) else { continue };
                let c = class(value);
                assert!(edge(c) <= value, "{value}");
                assert!(value < edge(c + 1) || edge(c + 1) == u64::MAX, "{value}");
            }
        }
    }

    #[test]
    fn only_the_range_with_counts_is_reported() {
        let mut h = Histogram::new();
        assert_eq!(h.report(), HistogramReport::default());
        for value in [100, 100, 130] {
            h.add(value);
        }
        assert_eq!(h.report(), HistogramReport { edges: vec![96, 112, 128, 160], counts: vec![2, 0, 1] });
    }
}
