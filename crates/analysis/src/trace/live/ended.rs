//! All that has ended in some time, for those who watch a stream.

use crate::input::context::SECOND;
use crate::Burst;
use serde::Serialize;
use serde_json::Value;

/// A burst that has ended, with its port and the second from which its times count.
#[derive(Debug, Serialize)]
pub(super) struct EndedBurst {
    pub port: String,
    pub origin_s: u64,
    pub burst: Burst,
}

/// All that has ended in some time: bursts by their ends, gaps, cells of the strip.
#[derive(Debug, Default, Serialize)]
pub struct Ended {
    bursts: Vec<EndedBurst>,
    gaps: Vec<Value>,
    cells: Vec<Value>,
    cells_lost: u64,
}

impl Ended {
    pub(super) fn new(mut bursts: Vec<EndedBurst>, gaps: Vec<Value>, cells: Vec<Value>, cells_lost: u64) -> Self {
        let end = |one: &EndedBurst| u128::from(one.origin_s) * SECOND + u128::from(one.burst.end_ps);
        bursts.sort_by(|a, b| (end(a), &a.port).cmp(&(end(b), &b.port)));
        Ended { bursts, gaps, cells, cells_lost }
    }

    /// Splits it into parts of `most` bursts at most, one at least, so that whoever tells of them holds few at a time.
    pub fn parts(mut self, most: usize) -> impl Iterator<Item = Ended> {
        let mut bursts = std::mem::take(&mut self.bursts).into_iter();
        let mut first = Some(self);
        std::iter::from_fn(move || {
            let some: Vec<EndedBurst> = bursts.by_ref().take(most.max(1)).collect();
            let part = first.take().or_else(|| (!some.is_empty()).then(Ended::default))?;
            Some(Ended { bursts: some, ..part })
        })
    }
}
