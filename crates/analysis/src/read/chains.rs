//! The first reading of all captures of a trace. Files that one capture was written to in turn (`tcpdump -C`, `-G`, `dumpcap -b`) are read as
//! one: their ports, flows and handshakes are those of all of them.

use super::aim::Aim;
use super::packets::{Reading, Surveyed};
use super::problem::Problems;
use super::source::Source;
use crate::say::count;
use std::sync::Arc;

/// How much later a file may begin than the one before it ends [ps].
const PAUSE: i128 = 10_000_000_000_000;

/// Captures that follow one another, by their places among the sources.
struct Chain {
    files: Vec<usize>,
    reading: Reading,
}

impl Chain {
    /// Whether a file goes on where this ends: of the same name but for its digits, of the same interfaces, and later.
    fn goes_on(&self, sources: &[Source], next: &Source) -> bool {
        let later = next.first.and_then(|t| i128::try_from(t).ok()).zip(self.reading.last());
        let soon = later.is_some_and(|(next, last)| (0..=PAUSE).contains(&(next - last)));
        soon && self.files.last().is_some_and(|last| sources[*last].is_like(next))
    }
}

/// Reads all captures for the first time; false when `seen`, which is told the share of them that was read, says to stop.
///
/// # Errors
/// One cannot be read, or lacks what is asked for.
pub fn survey(
    sources: &mut [Source],
    (aim, without_fcs): (&Aim, bool),
    seen: &mut dyn FnMut(f64) -> bool,
) -> Result<bool, Problems> {
    let mut order: Vec<usize> = (0..sources.len()).filter(|i| sources[*i].is_surveyed()).collect();
    let all = order.len() as f64;
    order.sort_by_key(|i| sources[*i].first);
    let mut problems = Problems::new();
    let mut chains: Vec<Chain> = Vec::new();
    for (done, index) in order.into_iter().enumerate() {
        let source = &sources[index];
        let at = chains.iter().position(|chain| chain.goes_on(sources, source));
        let mut chain = match at {
            Some(at) => chains.swap_remove(at),
            None => Chain { files: Vec::new(), reading: Reading::new(without_fcs) },
        };
        let mut seen = |share: f64| seen((done as f64 + share) / all);
        match source.opened().and_then(|input| chain.reading.read(&source.path, (Box::new(input.0), source.size()), &mut seen)) {
            Ok(true) => chain.files.push(index),
            Ok(false) => return Ok(false),
            Err(problem) => problems.push(problem),
        }
        chains.push(chain);
    }
    chains.sort_by_key(|chain| chain.files.first().copied());
    for Chain { files, reading } in chains {
        let Some(first) = files.first().copied() else { continue };
        let source = &sources[first];
        match Surveyed::of(reading, &source.path, (source.is_stamped(), &source.port_name()), aim) {
            Ok(mut found) => {
                if files.len() > 1 {
                    found.note(format!(
                        "{} follow one another and are one capture: {} to {}",
                        count(files.len() as u64, "file"),
                        source.path.display(),
                        sources[files[files.len() - 1]].path.display()
                    ));
                }
                let found = Arc::new(found);
                for (place, index) in files.into_iter().enumerate() {
                    sources[index].know(found.clone(), place > 0);
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
