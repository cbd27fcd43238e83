//! Choice of the phases of a burst by which its law is judged: those in which acknowledgements clock the senders, as long as they
//! are in slow start.

use crate::Phase;
use fanin_units::BPS;
use std::ops::Range;

/// Part of the growth so far below which a flow has left slow start.
const SLOWER: f64 = 2.0 / 3.0;

/// Growth shorter than this part of a round trip is one batch of packets: laws speak of round trips.
pub const BATCH: f64 = 0.25;

/// Fastest growth that acknowledgements can cause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// R', the port's speed in frame bytes [bit/s]: two packets for each that leaves let the queue grow by no more.
    pub r_bps: f64,
    /// Round trip on the idle network; 0: not known.
    pub rtt: u64,
}

impl Limits {
    /// Round trip with the queue that stands at the beginning of `p`, ps.
    pub fn round(&self, p: &Phase) -> f64 {
        self.rtt as f64 + p.start_bytes.max(0.0) / self.r_bps * BPS
    }

    /// True if a phase rises much faster than acknowledgements can make a queue grow.
    fn too_fast(&self, p: &Phase) -> bool {
        p.low_bps * SLOWER > self.r_bps
    }
}

/// Growth of a queue that a law is judged by.
#[derive(Clone, Debug, PartialEq)]
pub struct Growth {
    /// Phases before the growth, from the first that rises: the first windows.
    pub first: Range<usize>,
    /// Phases between the first windows and the judged growth that no acknowledgements made: windows of flows that start late, a
    /// batch.
    pub early: Range<usize>,
    /// Phases of the judged growth.
    pub judged: Range<usize>,
    /// Phases after the judged growth that rise on, but much slower.
    pub slower: Range<usize>,
}

impl Growth {
    /// The growth of a burst; none where nothing rises after the first windows. `first_round`: when the last packet of the new flows'
    /// first round arrived; `clocked`: acknowledgements clock the senders from the burst's beginning on.
    ///
    /// The first windows are over with the first round; where round trips are not known, with the first rising phase. What rises from
    /// there without a pause is one growth. Without background (`alone`) it should be steady, so where it gets much slower for good, slow
    /// start is over. Without background, too, what rises faster than acknowledgements allow, or for less than a round trip's `BATCH`, is
    /// passed over if a longer growth follows.
    pub fn of(phases: &[Phase], first_round: Option<u64>, clocked: bool, alone: Option<Limits>) -> Option<Growth> {
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
        let first = steep.min(start)..start;
        let start = alone.and_then(|limits| later(phases, start, &limits)).unwrap_or(start);
        let early = first.end..start;
        let end = start + phases[start..].iter().take_while(|p| rising(p)).count();
        let slows = |k: usize| {
            let before = together(&phases[start..k]).low_bps;
            phases[k].high_bps < before && together(&phases[k..end]).high_bps < before * SLOWER
        };
        let cut = (start + 1..end).find(|k| alone.is_some() && slows(*k)).unwrap_or(end);
        Some(Growth { first, early, judged: start..cut, slower: cut..end })
    }
}

/// Phase at which growth begins that acknowledgements made, if that is not the one that begins at `start`.
fn later(phases: &[Phase], start: usize, limits: &Limits) -> Option<usize> {
    let rising = |p: &Phase| p.low_bps > 0.0;
    let stretch = |from: usize| from + phases[from..].iter().take_while(|p| rising(p)).count();
    let time = |range: Range<usize>| phases[range].iter().map(|p| p.end_ps - p.start_ps).sum::<u64>();
    let mut at = start;
    loop {
        let fast = phases[at..].iter().take_while(|p| limits.too_fast(p)).count();
        let end = stretch(at);
        let batch = (time(at..end) as f64) < BATCH * limits.round(&phases[at]);
        let gone = if batch { end } else { at + fast };
        if gone == at {
            return (at > start).then_some(at);
        }
        let next = gone + phases[gone..].iter().position(rising)?;
        if time(next..stretch(next)) <= time(at..gone) {
            return (at > start).then_some(at);
        }
        at = next;
    }
}

/// Mean slope of phases and its interval: weighted by their lengths, with errors taken as independent.
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
        sawtooth: None,
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
                Phase {
                    start_ps,
                    end_ps: at,
                    slope_bps,
                    low_bps,
                    high_bps,
                    records: 100,
                    start_bytes: 0.0,
                    end_bytes: 0.0,
                    sawtooth: None,
                }
            })
            .collect()
    }

    fn round(us: u64) -> Option<u64> {
        Some(us * 1_000_000)
    }

    /// A port that is faster than any of these; round trips are not known.
    const FAST: Limits = Limits { r_bps: 1e13, rtt: 0 };

    fn judged(of: &[(u64, f64)], first_round: Option<u64>, clocked: bool) -> Option<(usize, usize, usize)> {
        Growth::of(&phases(of), first_round, clocked, Some(FAST)).map(|g| (g.judged.start, g.judged.end, g.slower.end))
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
        let growth = Growth::of(&phases(&[(9000, 100.0)]), round(9000), true, Some(FAST)).unwrap();
        assert_eq!(growth.first, 0..0);
    }

    #[test]
    fn growth_that_gets_much_slower_for_good_is_cut_off() {
        let hystart = [(500, 1600.0), (1500, -50.0), (9700, 99.9), (20_600, 42.6), (267_000, 4.66), (40_000, 0.0)];
        assert_eq!(judged(&hystart, None, false), Some((2, 3, 5)));
        assert_eq!(Growth::of(&phases(&hystart), None, false, None).unwrap().judged, 2..5, "background may slow it");
        assert_eq!(judged(&[(500, 1600.0), (900, 120.0), (900, 60.0), (900, 130.0)], None, false), Some((1, 4, 4)), "steps");
        assert_eq!(judged(&[(500, 1600.0), (9000, 100.0), (3000, 80.0)], None, false), Some((1, 3, 3)), "nearly as fast");
        // Flow by flow.
        assert_eq!(judged(&[(600, 1763.0), (1100, 980.0), (2200, 628.0), (2000, 271.0)], None, false), Some((1, 2, 4)));
    }

    #[test]
    fn windows_of_late_flows_and_batches_are_passed_over() {
        let at = |of: &[(u64, f64)], rtt_us: u64| {
            let limits = Limits { r_bps: 100e6, rtt: rtt_us * 1_000_000 };
            let growth = Growth::of(&phases(of), None, true, Some(limits)).unwrap();
            (growth.early, growth.judged, growth.slower)
        };
        // Captures of the running kernel whose flows begin one after the other: most have been clocked before the burst began.
        let one = [(1617, 1240.0), (8465, -32.0), (6813, 100.2), (29_620, 38.0), (301_800, 5.0), (15_790, -96.7)];
        assert_eq!(at(&one, 10_000), (0..2, 2..3, 3..5));
        assert_eq!(at(&[(3389, 1239.0), (37_700, 100.8), (251_800, -0.01)], 2_000), (0..1, 1..2, 2..2));
        assert_eq!(at(&[(1500, 60.0), (8465, -32.0), (52_000, 100.0)], 10_000), (0..2, 2..3, 3..3), "a batch, however slow");
        assert_eq!(at(&[(9000, 60.0), (8465, -32.0), (52_000, 100.0)], 10_000), (0..0, 0..1, 1..1), "no batch");
        assert_eq!(at(&[(9000, 170.0), (800, 100.0)], 1_000), (0..0, 0..1, 1..2), "what follows is shorter");
        assert_eq!(at(&[(9000, 130.0), (20_000, 100.0)], 1_000).0, 0..0, "hardly faster than the port");
        assert_eq!(at(&[(1617, 1240.0), (8465, -32.0)], 10_000), (0..0, 0..1, 1..1), "nothing else to judge");
    }
}
