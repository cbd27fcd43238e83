//! Which phases of a burst its law is judged by: those in which acknowledgements clock the senders, as long as they are in slow start.

use crate::Phase;
use std::ops::Range;

/// Growth that falls below this part of what it was has left slow start.
const SLOWER: f64 = 2.0 / 3.0;

/// What is judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Growth {
    /// Phases before it, from the first that rises: the first windows.
    pub first: Range<usize>,
    /// Judged.
    pub judged: Range<usize>,
    /// Rises on, but much slower.
    pub slower: Range<usize>,
}

impl Growth {
    /// The growth of a burst; none where nothing rises after the first windows. `first_round`: when the last packet of the new flows'
    /// first round arrived; `clocked`: acknowledgements clock the senders from the burst's beginning on.
    ///
    /// The first windows are over with the first round; where round trips are not known, with the first rising phase. What rises from
    /// there without a pause is one growth. Without background (`alone`) it should be steady, so where it gets much slower for good, slow
    /// start is over.
    pub fn of(phases: &[Phase], first_round: Option<u64>, clocked: bool, alone: bool) -> Option<Growth> {
        let rising = |p: &Phase| p.low_bps > 0.0;
        let steep = phases.iter().position(rising)?;
        let start = match first_round {
            _ if clocked => steep,
            Some(over) => {
                let after = |p: &Phase| p.end_ps.saturating_sub(over.max(p.start_ps)) * 2 > p.end_ps - p.start_ps;
                phases.iter().position(|p| rising(p) && after(p))?
            }
            None => steep + 1 + phases[steep + 1..].iter().position(rising)?,
        };
        let end = start + phases[start..].iter().take_while(|p| rising(p)).count();
        let slows = |k: usize| {
            let before = together(&phases[start..k]).low_bps;
            phases[k].high_bps < before && together(&phases[k..end]).high_bps < before * SLOWER
        };
        let cut = (start + 1..end).find(|k| alone && slows(*k)).unwrap_or(end);
        Some(Growth { first: steep.min(start)..start, judged: start..cut, slower: cut..end })
    }
}

/// The mean slope of phases and its interval: their lengths weigh, their errors are taken as independent.
pub fn together(phases: &[Phase]) -> Phase {
    let first = &phases[0];
    let last = &phases[phases.len() - 1];
    let whole = (last.end_ps - first.start_ps).max(1) as f64;
    let weigh = |p: &Phase| (p.end_ps - p.start_ps) as f64 / whole;
    let slope_bps: f64 = phases.iter().map(|p| weigh(p) * p.slope_bps).sum();
    let square: f64 = phases.iter().map(|p| weigh(p) * (p.high_bps - p.low_bps) / 2.0).map(|half| half * half).sum();
    let half = libm::sqrt(square);
    Phase {
        start_ps: first.start_ps,
        end_ps: last.end_ps,
        slope_bps,
        low_bps: slope_bps - half,
        high_bps: slope_bps + half,
        records: phases.iter().map(|p| p.records).sum(),
        start_bytes: first.start_bytes,
        end_bytes: last.end_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Phases of these lengths [us] and slopes [Mb/s], each known to 5 %.
    fn phases(of: &[(u64, f64)]) -> Vec<Phase> {
        let mut at = 0;
        of.iter()
            .map(|&(us, slope)| {
                let start_ps = at;
                at += us * 1_000_000;
                let (slope_bps, half) = (slope * 1e6, slope.abs() * 5e4);
                let (low_bps, high_bps) = (slope_bps - half, slope_bps + half);
                Phase { start_ps, end_ps: at, slope_bps, low_bps, high_bps, records: 100, start_bytes: 0.0, end_bytes: 0.0 }
            })
            .collect()
    }

    fn round(us: u64) -> Option<u64> {
        Some(us * 1_000_000)
    }

    fn judged(of: &[(u64, f64)], first_round: Option<u64>, clocked: bool) -> Option<(usize, usize, usize)> {
        Growth::of(&phases(of), first_round, clocked, true).map(|g| (g.judged.start, g.judged.end, g.slower.end))
    }

    #[test]
    fn what_follows_the_first_windows_is_judged() {
        assert_eq!(judged(&[(500, 1600.0), (9000, 100.0), (2000, -1.0)], None, false), Some((1, 2, 2)));
        // Until acknowledgements come, the queue drains.
        assert_eq!(judged(&[(500, 1600.0), (1500, -100.0), (9000, 100.0)], None, false), Some((2, 3, 3)));
        assert_eq!(judged(&[(500, 1600.0), (900, -100.0)], None, false), None);
        assert_eq!(judged(&[(500, -1.0), (900, -100.0)], None, false), None);
        // Mostly after the first round.
        assert_eq!(judged(&[(500, 1600.0), (9000, 100.0)], round(600), false), Some((1, 2, 2)));
        assert_eq!(judged(&[(500, 1600.0), (9000, 100.0)], round(6000), false), None);
        assert_eq!(judged(&[(9000, 100.0)], round(600), false), Some((0, 1, 1)));
    }

    #[test]
    fn senders_that_were_clocked_before_have_no_first_windows() {
        assert_eq!(judged(&[(9000, 100.0), (500, -1.0)], None, true), Some((0, 1, 1)));
        let growth = Growth::of(&phases(&[(9000, 100.0)]), round(9000), true, true).unwrap();
        assert_eq!(growth.first, 0..0);
    }

    #[test]
    fn growth_that_gets_much_slower_for_good_is_cut_off() {
        let hystart = [(500, 1600.0), (1500, -50.0), (9700, 99.9), (20_600, 42.6), (267_000, 4.66), (40_000, 0.0)];
        assert_eq!(judged(&hystart, None, false), Some((2, 3, 5)));
        assert_eq!(Growth::of(&phases(&hystart), None, false, false).unwrap().judged, 2..5, "background may slow it");
        assert_eq!(judged(&[(500, 1600.0), (900, 120.0), (900, 60.0), (900, 130.0)], None, false), Some((1, 4, 4)), "steps");
        assert_eq!(judged(&[(500, 1600.0), (9000, 100.0), (3000, 80.0)], None, false), Some((1, 3, 3)), "nearly as fast");
        // Flow by flow.
        assert_eq!(judged(&[(600, 1763.0), (1100, 980.0), (2200, 628.0), (2000, 271.0)], None, false), Some((1, 2, 4)));
    }
}
