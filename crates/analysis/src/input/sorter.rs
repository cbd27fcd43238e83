//! Sorting by time in bounded memory: sorted runs in a file without a name, merged when all items have come.

use super::problem::Problem;
use super::spill::Spill;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Error;

/// Bytes of a run that are read ahead in the merge, about.
const AHEAD: usize = 1 << 15;

/// An item that is sorted.
pub trait Stored: Copy {
    /// Bytes that an item takes in the file.
    const BYTES: usize;

    fn time(&self) -> i128;

    /// Writes exactly [`Self::BYTES`].
    fn write(&self, bytes: &mut Vec<u8>);

    /// Reads back an item that was written.
    fn read(bytes: &[u8]) -> Self;
}

/// Problem of a trace for whose sorting there is no room, or that could not be read again.
pub fn unsorted(error: &Error) -> Problem {
    let [why, suggestion] = Spill::said(error);
    Problem::new(format!("cannot be sorted, {why}")).column("sort").suggestion(suggestion)
}

/// Takes the items that are to be sorted.
#[derive(Debug)]
pub struct Sorter<T> {
    /// Number that is held in memory.
    most: usize,
    held: Vec<T>,
    file: Option<Spill>,
    /// Ends of the runs in the file [bytes].
    ends: Vec<u64>,
}

impl<T: Stored> Sorter<T> {
    pub fn new(most: usize) -> Self {
        Sorter { most: most.max(1), held: Vec::new(), file: None, ends: Vec::new() }
    }

    /// # Errors
    /// There is no room for it.
    pub fn push(&mut self, item: T) -> Result<(), Error> {
        self.held.push(item);
        if self.held.len() == self.most {
            self.spill()?;
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<(), Error> {
        self.held.sort_by_key(Stored::time);
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(Spill::new()?),
        };
        let mut bytes = Vec::with_capacity(AHEAD + T::BYTES);
        for part in self.held.chunks((AHEAD / T::BYTES).max(1)) {
            bytes.clear();
            part.iter().for_each(|item| item.write(&mut bytes));
            file.write(&bytes)?;
        }
        self.ends.push(self.ends.last().copied().unwrap_or(0) + (self.held.len() * T::BYTES) as u64);
        self.held.clear();
        Ok(())
    }

    /// All items in order of time; of equal times the first that came goes first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn finish(mut self) -> Result<Sorted<T>, Error> {
        if self.file.is_some() {
            self.spill()?;
        }
        let mut from = 0;
        let mut runs = Vec::with_capacity(self.ends.len() + 1);
        for end in &self.ends {
            runs.push(Run { at: from, end: *end, items: Vec::new() });
            from = *end;
        }
        // Back to front, as all items of runs.
        self.held.sort_by_key(Stored::time);
        self.held.reverse();
        if !self.held.is_empty() {
            runs.push(Run { at: from, end: from, items: self.held });
        }
        let mut sorted = Sorted { file: self.file, runs, heap: BinaryHeap::new() };
        sorted.begin()?;
        Ok(sorted)
    }
}

#[derive(Debug)]
struct Run<T> {
    /// Place up to which it has been read, and end [bytes].
    at: u64,
    end: u64,
    /// Items that have been read, the last first.
    items: Vec<T>,
}

/// Items in order of time.
#[derive(Debug)]
pub struct Sorted<T> {
    file: Option<Spill>,
    runs: Vec<Run<T>>,
    /// Time of each run's next item.
    heap: BinaryHeap<Reverse<(i128, usize)>>,
}

impl<T: Stored> Sorted<T> {
    fn begin(&mut self) -> Result<(), Error> {
        (0..self.runs.len()).try_for_each(|run| self.advance(run))
    }

    fn advance(&mut self, index: usize) -> Result<(), Error> {
        let run = &mut self.runs[index];
        if let (true, Some(file)) = (run.items.is_empty() && run.at < run.end, &self.file) {
            let most = (AHEAD / T::BYTES).max(1) * T::BYTES;
            let mut bytes = vec![0; most.min((run.end - run.at) as usize)];
            file.read(&mut bytes, run.at)?;
            run.at += bytes.len() as u64;
            run.items.extend(bytes.chunks_exact(T::BYTES).rev().map(T::read));
        }
        if let Some(next) = run.items.last() {
            self.heap.push(Reverse((next.time(), index)));
        }
        Ok(())
    }

    /// The next item.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn next(&mut self) -> Result<Option<T>, Error> {
        let Some(Reverse((_, index))) = self.heap.pop() else { return Ok(None) };
        let item = self.runs[index].items.pop();
        self.advance(index)?;
        Ok(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Stored for (i64, u64) {
        const BYTES: usize = 16;

        fn time(&self) -> i128 {
            self.0.into()
        }

        fn write(&self, bytes: &mut Vec<u8>) {
            bytes.extend(self.0.to_le_bytes());
            bytes.extend(self.1.to_le_bytes());
        }

        fn read(bytes: &[u8]) -> Self {
            let word = |at: usize| bytes[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
            (word(0) as i64, word(8))
        }
    }

    #[test]
    fn runs_are_merged_and_equal_times_stay_as_they_came() {
        for (count, most) in [(0, 5), (3, 5), (5, 5), (100_003, 997), (20_000, 1 << 20)] {
            let mut sorter = Sorter::new(most);
            let mut expected: Vec<(i64, u64)> = (0..count).map(|i| ((i * 7_919 % 1_009) as i64 - 500, i)).collect();
            expected.iter().for_each(|item| sorter.push(*item).unwrap());
            assert!(sorter.held.len() < most.max(1) && sorter.ends.len() as u64 == count / most as u64);
            let mut sorted = sorter.finish().unwrap();
            expected.sort();
            let found: Vec<(i64, u64)> = std::iter::from_fn(|| sorted.next().unwrap()).collect();
            assert!(found == expected, "{count} {most}");
        }
    }
}
