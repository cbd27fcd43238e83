//! A burst that has ended: what is reported of it, and what its law is judged by.

use crate::before::Before;
use crate::flows::{Flows, Shares};
use crate::laws::{first_phase, judged};
use crate::phases::{self, Stretch};
use crate::port::{Candidate, Counts, End};
use crate::rounds::{rounds, Clock};
use crate::series::Series;
use crate::{Burst, Culprit, FlowLookup, Phase, Settings};
use fanin_units::BPS;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What closing needs of the port.
pub struct Context<'a> {
    pub settings: &'a Settings,
    pub lookup: &'a FlowLookup,
    /// Speed on the wire, as far as known by now.
    pub rate: Option<f64>,
    pub guard: u64,
    pub first: u64,
    pub has_queue: bool,
}

/// What a law is judged by.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Mean frame, bytes.
    pub frame: f64,
    /// Flows that were there before, and their distinct sources, where known.
    pub background: u64,
    pub sources: Option<u64>,
    /// Flows that were not.
    pub fan_in: u64,
    /// Packets without a flow.
    pub unnamed: bool,
    pub before: Option<Before>,
    /// The trace shows too little of the time before the burst to know which flows were there.
    pub blind: bool,
    pub start_queue: u64,
    /// Arrival rate of the flows that were not there before, bytes per ps: over phase 1 where there is one, else over their first
    /// round.
    pub fan_in_rate: Option<f64>,
    /// Bytes of background flows per phase, as far as the beginning of the burst was kept.
    pub background_bytes: Vec<u64>,
}

/// A burst with what its law is judged by.
pub struct Closed {
    pub burst: Burst,
    direct: Shares,
    indirect: Shares,
    /// Absent: too low a burst for phases and laws.
    pub evidence: Option<Evidence>,
}

/// Makes the report of a burst. `(index, gap, open, detailed)`.
pub fn close(
    context: &Context,
    candidate: &mut Candidate,
    end: &End,
    (index, gap, open, detailed): (u64, Option<u64>, bool, bool),
    (series, flows): (&Series, &mut Flows),
) -> Closed {
    let counts = end.counts;
    let start = candidate.start;
    let sized = counts.records - counts.unsized_packets;
    let stretches = if context.has_queue && detailed {
        phases::find(&series.points(end.time), context.settings.confidence)
    } else {
        Vec::new()
    };
    let slope = |from: (u64, u64), to: (u64, u64)| {
        (context.has_queue && to.0 > from.0).then(|| (to.1 as f64 - from.1 as f64) / (to.0 - from.0) as f64 * BPS)
    };
    let peak = (candidate.peak_time, candidate.peak);
    let last = series.last_point(end.time).map_or(0, |p| p.queue);
    let mut evidence = evidence(context, candidate, counts, sized, flows);
    let drain = context.rate.map(|rate| BPS / rate * (1.0 + context.settings.overhead.0 as f64 / evidence.frame.max(1.0)));
    let phases: Vec<Phase> = stretches.iter().map(phase).collect();
    let mut found = Vec::new();
    if let (Some(drain), false) = (drain, !detailed || candidate.unnamed && counts.flows == 0) {
        let background: BTreeSet<u32> = candidate.flows[..counts.flows].iter().filter(|f| f.1).map(|f| f.0).collect();
        let mut clock_of = |slot: u32| {
            let rtt = (context.lookup)(flows.get(slot).flow).base_rtt.or(context.settings.rtt)?;
            Some(Clock { rtt: rtt.ps(), background: background.contains(&slot) })
        };
        let first;
        (found, first) = rounds(&series.head, (end.time, series.complete_head()), drain, &mut clock_of);
        evidence.background_bytes = by_phase(series, &stretches, |slot| background.contains(&slot));
        if let Some(judged) = judged(&phases, &found) {
            // Later arrivals have no part in what is judged.
            let end = phases[judged.end - 1].end_ps;
            let head = series.head.iter().take_while(|e| e.record.time.ps() <= end);
            let slots: BTreeSet<u32> = head.map(|e| e.slot).filter(|slot| *slot != 0 && !background.contains(slot)).collect();
            evidence.fan_in = slots.len() as u64;
        }
        let fan_in = by_phase(series, &stretches, |slot| slot != 0 && !background.contains(&slot));
        evidence.fan_in_rate = first_phase(&phases, &found)
            .filter(|one| series.covers(phases[one.end - 1].end_ps))
            .map(|one| {
                let time = phases[one.end - 1].end_ps - phases[one.start].start_ps;
                fan_in[one].iter().sum::<u64>() as f64 / time.max(1) as f64
            })
            .or_else(|| first.rate());
    }
    let burst = Burst {
        index,
        start_ps: start,
        end_ps: end.time,
        duration_ps: end.time - start,
        peak_ps: candidate.peak_time,
        peak_bytes: context.has_queue.then_some(candidate.peak),
        start_bytes: context.has_queue.then_some(candidate.start_queue),
        records: counts.records,
        arrived_bytes: (sized > 0).then_some(counts.bytes),
        dropped_packets: counts.dropped_packets,
        dropped_bytes: counts.dropped_bytes,
        marked_packets: counts.marked,
        rise_bps: slope((start, candidate.start_queue), peak),
        fall_bps: slope(peak, (end.time, last)),
        gap_ps: gap,
        open,
        cut: candidate.cut,
        flows: counts.flows as u64,
        notifications: None,
        direct: Vec::new(),
        direct_unattributed_bytes: candidate.direct.unattributed,
        indirect: Vec::new(),
        indirect_unattributed_bytes: candidate.indirect.unattributed,
        phases,
        rounds: found,
        law: None,
        words: None,
    };
    let evidence = detailed.then_some(evidence);
    Closed { burst, direct: std::mem::take(&mut candidate.direct), indirect: std::mem::take(&mut candidate.indirect), evidence }
}

fn phase(s: &Stretch) -> Phase {
    Phase {
        start_ps: s.start,
        end_ps: s.end,
        slope_bps: s.slope * BPS,
        low_bps: s.low * BPS,
        high_bps: s.high * BPS,
        records: s.points as u64,
        start_bytes: s.start_queue,
        end_bytes: s.end_queue,
    }
}

/// Who was there before, and what the port carried.
fn evidence(context: &Context, candidate: &mut Candidate, counts: Counts, sized: u64, flows: &mut Flows) -> Evidence {
    let start = candidate.start;
    // Where the trace shows little of the time before, the flows' own start times decide.
    let blind = context.first.saturating_add(context.guard) > start;
    let mut sources: BTreeSet<Arc<str>> = BTreeSet::new();
    let (mut background, mut unknown, mut started) = (0u64, false, true);
    for (slot, was_there) in &mut candidate.flows[..counts.flows] {
        let flow = flows.get(*slot).flow;
        if blind {
            match (context.lookup)(flow).start {
                Some(at) => *was_there |= at.ps().saturating_add(context.guard) <= start,
                None => started = false,
            }
        }
        if *was_there {
            background += 1;
            match (context.lookup)(flow).src {
                Some(src) => {
                    sources.insert(src);
                }
                None => unknown = true,
            }
        }
    }
    Evidence {
        frame: if sized > 0 { counts.bytes as f64 / sized as f64 } else { 0.0 },
        background,
        sources: (!unknown && background > 0).then_some(sources.len() as u64),
        fan_in: counts.flows as u64 - background,
        unnamed: candidate.unnamed,
        before: candidate.before,
        blind: blind && !started,
        start_queue: candidate.start_queue,
        fan_in_rate: None,
        background_bytes: Vec::new(),
    }
}

/// Bytes of the flows `of` in each phase, as far as the beginning of the burst was kept.
fn by_phase(series: &Series, stretches: &[Stretch], of: impl Fn(u32) -> bool) -> Vec<u64> {
    let mut bytes = vec![0u64; stretches.len()];
    let mut phase = 0;
    for entry in series.head.iter().filter(|e| of(e.slot) && !e.record.loses()) {
        let now = entry.record.time.ps();
        while phase + 1 < stretches.len() && now >= stretches[phase].end {
            phase += 1;
        }
        if let Some(sum) = bytes.get_mut(phase) {
            *sum += u64::from(entry.record.frame);
        }
    }
    bytes
}

impl Closed {
    /// Higher bursts have come: phases, rounds and law are no longer of interest.
    pub fn forget_detail(&mut self) {
        self.burst.phases = Vec::new();
        self.burst.rounds = Vec::new();
        self.evidence = None;
    }

    /// The burst with its culprits by name.
    pub fn named(self, lookup: &FlowLookup) -> Burst {
        let culprits = |shares: Shares| -> Vec<Culprit> {
            let all = (shares.attributed + shares.unattributed).max(1) as f64;
            let culprit = |(flow, bytes): (u32, u64)| {
                let name = lookup(flow).name;
                let name = if name.is_empty() { flow.to_string() } else { name.to_string() };
                Culprit { flow, name, bytes, share: bytes as f64 / all }
            };
            shares.list.into_iter().map(culprit).collect()
        };
        Burst { direct: culprits(self.direct), indirect: culprits(self.indirect), ..self.burst }
    }
}
