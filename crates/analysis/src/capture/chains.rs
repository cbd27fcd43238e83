//! The first reading of all captures of a trace. Files that one capture was written to in turn (`tcpdump -C`, `-G`, `dumpcap -b`) are read as
//! one: their ports, flows and handshakes are those of all of them.

use super::CaptureFile;
use crate::capture::filter::CaptureFilter;
use crate::capture::packets::{Reading, Surveyed};
use crate::display::count;
use crate::input::problem::Problems;
use std::sync::Arc;

/// Longest time between the end of a file and the begin of the next that continues it [ps].
const PAUSE: i128 = 10_000_000_000_000;

/// Captures that follow one another, by their places among all captures.
struct Chain {
    files: Vec<usize>,
    reading: Reading,
}

impl Chain {
    /// True if a file continues this one: of the same name but for its digits, of the same interfaces, and later.
    fn goes_on(&self, captures: &[&mut CaptureFile], next: &CaptureFile) -> bool {
        let later = next.facts.first.and_then(|t| i128::try_from(t).ok()).zip(self.reading.last());
        let soon = later.is_some_and(|(next, last)| (0..=PAUSE).contains(&(next - last)));
        soon && self.files.last().is_some_and(|last| captures[*last].is_like(next))
    }
}

/// Reads all captures for the first time; false when `seen`, which is told the share of them that was read, says to stop.
///
/// # Errors
/// One cannot be read, or lacks what is asked for.
pub fn survey(
    captures: &mut [&mut CaptureFile],
    (filter, without_fcs, transfers): (&CaptureFilter, bool, bool),
    seen: &mut dyn FnMut(f64) -> bool,
) -> Result<bool, Problems> {
    let mut order: Vec<usize> = (0..captures.len()).collect();
    let all = order.len() as f64;
    order.sort_by_key(|i| captures[*i].facts.first);
    let mut problems = Problems::new();
    let mut chains: Vec<Chain> = Vec::new();
    for (done, index) in order.into_iter().enumerate() {
        let capture = &*captures[index];
        let at = chains.iter().position(|chain| chain.goes_on(captures, capture));
        let mut chain = match at {
            Some(at) => chains.swap_remove(at),
            None => Chain { files: Vec::new(), reading: Reading::new(without_fcs, transfers, capture.telemetry) },
        };
        let mut seen = |share: f64| seen((done as f64 + share) / all);
        let file = &capture.file;
        match file.open().and_then(|input| chain.reading.read(&file.path, (Box::new(input.0), file.size), &mut seen)) {
            Ok(true) => chain.files.push(index),
            Ok(false) => return Ok(false),
            Err(problem) => problems.push(problem),
        }
        chains.push(chain);
    }
    chains.sort_by_key(|chain| chain.files.first().copied());
    for Chain { files, reading } in chains {
        let Some(first) = files.first().copied() else { continue };
        let file = &captures[first].file;
        let looks = reading.looks();
        match Surveyed::of(reading, &file.path, (captures[first].is_stamped(), &file.port_name()), filter) {
            Ok(mut found) => {
                looks.into_iter().for_each(|note| found.note(note));
                if files.len() > 1 {
                    found.note(format!(
                        "{} follow one another and are one capture: {} to {}",
                        count(files.len() as u64, "file"),
                        file.path.display(),
                        captures[files[files.len() - 1]].file.path.display()
                    ));
                }
                let found = Arc::new(found);
                for (place, index) in files.into_iter().enumerate() {
                    captures[index].know(found.clone(), place > 0);
                }
            }
            Err(more) => problems.extend(more),
        }
    }
    if problems.is_empty() {
        Ok(true)
    } else {
        Err(problems)
    }
}
