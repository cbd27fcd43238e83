//! Records in stretches of time, for figures: all of them, or the outline where there are too many.

use crate::trace::order::Sink;
use crate::Record;
use fanin_units::Time;

/// Records that were found.
#[derive(Clone, Debug, PartialEq)]
pub struct Records {
    /// Records in order of time.
    pub records: Vec<Record>,
    /// Number of records in all.
    pub count: u64,
    /// True if only the smallest and the largest queue of each part of the time are left.
    pub reduced: bool,
}

/// Collects the records of several stretches, which may overlap.
pub struct Windows(Vec<Window>);

impl Windows {
    /// A collector of stretches by their two ends, both included; of each, `most` records are kept.
    pub fn new(stretches: &[(Time, Time)], most: usize) -> Self {
        Windows(stretches.iter().map(|&(from, to)| Window::new(from, to, most)).collect())
    }

    pub fn finish(self) -> Vec<Records> {
        self.0.into_iter().map(Window::finish).collect()
    }
}

impl Sink for Windows {
    #[inline]
    fn take(&mut self, record: &Record) {
        for window in &mut self.0 {
            window.take(record);
        }
    }
}

/// Records of one stretch, collected in bounded memory.
struct Window {
    from: Time,
    to: Time,
    most: usize,
    found: Records,
}

impl Window {
    fn new(from: Time, to: Time, most: usize) -> Self {
        Window { from, to, most: most.max(2), found: Records { records: Vec::new(), count: 0, reduced: false } }
    }

    /// Keeps the smallest and the largest queue of each of `most` / 2 equal parts of the time; the first of equal ones.
    fn reduce(&mut self) {
        let parts = (self.most / 2).max(1) as u128;
        let span = u128::from(self.to.since(self.from).ps()) + 1;
        let part = |r: &Record| u128::from(r.time.since(self.from).ps()) * parts / span;
        let records = &self.found.records;
        let mut kept: Vec<Record> = Vec::with_capacity(self.most);
        let mut start = 0;
        while start < records.len() {
            let here = part(&records[start]);
            let end = start + records[start..].iter().take_while(|r| part(r) == here).count();
            let group = &records[start..end];
            // Of equal ones min_by_key gives the first and max_by_key the last.
            let low = (0..group.len()).min_by_key(|i| group[*i].queue).unwrap_or(0);
            let high = (0..group.len()).rev().max_by_key(|i| group[*i].queue).unwrap_or(0);
            kept.push(group[low.min(high)]);
            if low != high {
                kept.push(group[low.max(high)]);
            }
            start = end;
        }
        self.found.records = kept;
        self.found.reduced = true;
    }

    fn finish(mut self) -> Records {
        if self.found.records.len() > self.most {
            self.reduce();
        }
        self.found
    }
}

impl Window {
    #[inline]
    fn take(&mut self, record: &Record) {
        if record.time < self.from || record.time > self.to {
            return;
        }
        self.found.count += 1;
        self.found.records.push(*record);
        if self.found.records.len() >= 4 * self.most {
            self.reduce();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ps: u64, queue: u64) -> Record {
        Record { time: Time::from_ps(ps), queue, frame: 0, flow: 0, flags: 0 }
    }

    #[test]
    fn few_records_are_all_kept_and_the_outline_of_many_is_exact() {
        let mut window = Window::new(Time::from_ps(10), Time::from_ps(99), 100);
        (0..200).for_each(|t| window.take(&at(t, t)));
        let found = window.finish();
        assert_eq!((found.records.len(), found.count, found.reduced), (90, 90, false));
        let mut window = Window::new(Time::from_ps(0), Time::from_ps(999_999), 20);
        (0..1_000_000).for_each(|t| window.take(&at(t, if t == 123_456 { 1 << 40 } else { 5 + t % 7 })));
        let found = window.finish();
        assert!(found.reduced && found.records.len() <= 20, "{}", found.records.len());
        assert_eq!(found.count, 1_000_000);
        assert!(found.records.contains(&at(123_456, 1 << 40)));
        assert!(found.records.windows(2).all(|w| w[0].time < w[1].time));
    }

    #[test]
    fn stretches_that_overlap_have_their_records_each() {
        let stretch = |from, to| (Time::from_ps(from), Time::from_ps(to));
        let mut windows = Windows::new(&[stretch(50, 59), stretch(10, 54), stretch(90, 200)], 30);
        (0..100).for_each(|t| windows.take(&at(t, t)));
        let found = windows.finish();
        let facts: Vec<_> = found.iter().map(|r| (r.count, r.reduced, r.records[0].time.ps())).collect();
        assert_eq!(facts, [(10, false, 50), (45, true, 10), (10, false, 90)]);
    }
}
