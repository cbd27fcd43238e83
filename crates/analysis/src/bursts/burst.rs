//! A burst that has ended: its report, and the evidence by which its law is judged.

use crate::bursts::background::{past, Past, BACKGROUND_RTTS};
use crate::bursts::doubling::Doubling;
use crate::bursts::flows::{Flows, Shares};
use crate::bursts::growth::{Growth, Limits};
use crate::bursts::history::Before;
use crate::bursts::phases::{self, Stretch};
use crate::bursts::port::{Candidate, End, HEADERS};
use crate::bursts::rounds::{rounds, Clock};
use crate::bursts::series::{Entry, Series};
use crate::{Burst, Culprit, FlowLookup, Phase, Sawtooth, Sender, Settings};
use fanin_units::BPS;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Context of the port that closing a burst needs.
pub struct Context<'a> {
    pub settings: &'a Settings,
    pub lookup: &'a FlowLookup,
    /// Speed on the wire, as far as known by now.
    pub rate: Option<f64>,
    /// Begin of the trace.
    pub first: u64,
    /// Largest frame so far.
    pub largest: u64,
    pub has_queue: bool,
    /// Window of detection by rate.
    pub window: Option<u64>,
}

/// Evidence that a law is judged by.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Mean frame, bytes.
    pub frame: f64,
    pub growth: Option<Growth>,
    /// Time at which the new flows' first round had arrived, where round trips are known.
    pub first_round: Option<u64>,
    /// Background flows, and their distinct sources, where known.
    pub background: u64,
    pub sources: Option<u64>,
    /// New flows up to the end of the judged growth; and the number of those with payload that sent on afterwards.
    pub fan_in: u64,
    pub sent_on: u64,
    /// New flows that may have been active before the trace shows anything; and the time before the burst at which it begins to.
    pub unsure: u64,
    pub shown: u64,
    /// Packets without a flow.
    pub unnamed: bool,
    pub before: Option<Before>,
    pub start_queue: u64,
    /// Arrival rate of the new flows, bytes per ps: over phase 1 where there is one, else over their first round.
    pub fan_in_rate: Option<f64>,
    /// Bytes of background flows per phase, as far as the beginning of the burst was kept.
    pub background_bytes: Vec<u64>,
    /// Longest round trip of the flows, ps.
    pub rtt: Option<u64>,
    /// Time for which a flow without a round trip must have been active to be background, ps.
    pub assumed: u64,
    /// First lost packet, and first marked one: time, and the queue that it found.
    pub first_loss: Option<(u64, u64)>,
    pub first_mark: Option<(u64, u64)>,
    /// Evidence of how the new flows' senders began.
    pub senders: Senders,
    /// Time at which a packet first found 0.9 of the peak or more, and the queue that it found.
    pub filled: Option<(u64, u64)>,
}

/// Evidence of how the senders of a burst's new flows began.
#[derive(Clone, Debug, Default)]
pub struct Senders {
    /// Flows of TCP, and those whose transport a result names and that begins in slow start.
    pub tcp: u64,
    pub slow_start: u64,
    /// Flows of other transports, and the name that most of them have.
    pub other: u64,
    pub name: Option<Arc<str>>,
    /// Distinct hosts, where all are known.
    pub hosts: Option<u64>,
    /// Flows that sent twice what was acknowledged during the judged growth.
    pub by_acks: u64,
    /// Flows whose second round was twice the first window.
    pub by_rounds: Doubling,
}

impl Senders {
    fn of(lookup: &FlowLookup, flows: impl Iterator<Item = u32>, (from, until): (u64, u64)) -> Senders {
        let mut found = Senders::default();
        let mut names: BTreeMap<Arc<str>, u64> = BTreeMap::new();
        let (mut hosts, mut anonymous) = (BTreeSet::new(), false);
        for flow in flows {
            let info = lookup(flow);
            match info.sender {
                Sender::Unknown => {}
                Sender::Tcp => found.tcp += 1,
                Sender::SlowStart => found.slow_start += 1,
                Sender::Other(name) => {
                    found.other += 1;
                    *names.entry(name).or_default() += 1;
                }
            }
            match info.src {
                Some(host) => {
                    hosts.insert(host);
                }
                None => anonymous = true,
            }
            // From when acknowledgments could first show it until the end of what is judged.
            found.by_acks += u64::from(info.doubled.is_some_and(|(begin, end)| begin.ps() <= until && end.ps() >= from));
        }
        found.hosts = (!anonymous && !hosts.is_empty()).then_some(hosts.len() as u64);
        found.name = names.into_iter().max_by_key(|(_, count)| *count).map(|(name, _)| name);
        found
    }
}

/// A burst with the evidence by which its law is judged.
pub struct Closed {
    pub burst: Burst,
    direct: Shares,
    indirect: Shares,
    /// Absent: too low a burst for phases and laws.
    pub evidence: Option<Box<Evidence>>,
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
    let slope = |from: (u64, u64), to: (u64, u64)| {
        (context.has_queue && to.0 > from.0).then(|| (to.1 as f64 - from.1 as f64) / (to.0 - from.0) as f64 * BPS)
    };
    let peak = (candidate.peak_time, candidate.peak);
    let last = series.last_point(end.time).map_or(0, |p| p.queue);
    let mut burst = Burst {
        index,
        start_ps: start,
        end_ps: end.time,
        duration_ps: end.time - start,
        peak_ps: candidate.peak_time,
        peak_bytes: context.has_queue.then_some(candidate.peak),
        start_bytes: context.has_queue.then_some(candidate.start_queue),
        records: counts.records,
        arrived_bytes: (sized > 0).then_some(counts.bytes),
        dropped_packets: Some(counts.dropped_packets),
        dropped_at_least: counts.dropped_at_least,
        dropped_bytes: Some(counts.dropped_bytes),
        marked_packets: Some(counts.marked),
        busiest_bps: context.window.map(|window| end.busiest as f64 * BPS / window as f64),
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
        phases: Vec::new(),
        rounds: Vec::new(),
        law: None,
        words: None,
        counted: None,
    };
    let evidence = detailed.then(|| {
        let frame = if sized > 0 { counts.bytes as f64 / sized as f64 } else { 0.0 };
        Box::new(detail(context, candidate, (&mut burst, end.drained, counts.flows, frame), series, flows))
    });
    Closed { burst, direct: std::mem::take(&mut candidate.direct), indirect: std::mem::take(&mut candidate.indirect), evidence }
}

/// Phases and rounds of a burst, and the evidence by which its law is judged.
fn detail(
    context: &Context,
    candidate: &Candidate,
    (burst, drained, count, frame): (&mut Burst, Option<(u64, u64)>, usize, f64),
    series: &Series,
    flows: &mut Flows,
) -> Evidence {
    let confidence = context.settings.confidence;
    let points = if context.has_queue { series.points(drained.map_or(burst.end_ps, |(last, _)| last)) } else { Vec::new() };
    let past = past(context, candidate, count, flows);
    let first = |of: u64, first: (u64, u64)| (of > 0 && first.0 <= burst.end_ps).then_some(first);
    let mut evidence = Evidence {
        frame,
        background: past.background.len() as u64,
        sources: past.sources,
        fan_in: past.new.len() as u64,
        unsure: past.unsure,
        shown: burst.start_ps.saturating_sub(context.first),
        unnamed: candidate.unnamed,
        before: candidate.before,
        start_queue: candidate.start_queue,
        rtt: past.rtt,
        assumed: context.settings.background().ps(),
        first_loss: first(burst.dropped_packets.unwrap_or(0), candidate.first_loss),
        first_mark: first(burst.marked_packets.unwrap_or(0), candidate.first_mark),
        ..Evidence::default()
    };
    let drain = context.rate.map(|rate| BPS / rate * (1.0 + context.settings.overhead.0 as f64 / frame.max(1.0)));
    // When the senders could first have learnt of a loss or a mark: the packet, or the one behind it, had to pass the queue and come round.
    let learnt = |(time, queue): (u64, u64)| {
        let wait = if queue == crate::NO_QUEUE { 0.0 } else { queue as f64 * drain.unwrap_or(0.0) };
        time.saturating_add(wait as u64).saturating_add(past.rtt.unwrap_or(0))
    };
    let filled = points.iter().find(|p| p.queue as f64 >= phases::FILLED * candidate.peak as f64).map(|p| (p.time, p.queue));
    evidence.filled = filled.filter(|_| context.has_queue);
    let signal = [evidence.first_loss, evidence.first_mark].into_iter().flatten().map(learnt).min();
    let mut stretches = phases::find(&points, signal, confidence);
    if let Some(last) = drained {
        phases::drain(&mut stretches, last, burst.end_ps);
    }
    burst.phases = stretches.iter().map(phase).collect();
    let Some(drain) = drain.filter(|_| !candidate.unnamed || count > 0) else {
        evidence.growth = Growth::of(&burst.phases, None, false, None);
        return evidence;
    };
    let mut clock_of = |slot: u32| {
        let rtt = (context.lookup)(flows.get(slot).flow).base_rtt.or(context.settings.rtt)?;
        Some(Clock { rtt: rtt.ps(), background: past.background.contains(&slot) })
    };
    let data: Vec<Entry> = series.head.iter().filter(|e| brings_data(e, context.largest)).copied().collect();
    let first;
    (burst.rounds, first) = rounds(&data, (burst.end_ps, series.complete_head()), drain, &mut clock_of);
    // Senders that have learnt of a loss or a mark say nothing about slow start.
    let until = signal.unwrap_or(u64::MAX).min(burst.end_ps);
    let mut rtt_of = |slot: u32| clock_of(slot).map(|clock| clock.rtt);
    let doubling = Doubling::of(&data, &past.new, until, drain, &mut rtt_of);
    let clocked = clocked(context, candidate, &past, flows);
    let limits = past.background.is_empty().then(|| Limits { r_bps: BPS / drain, rtt: past.rtt.unwrap_or(0) });
    let growth = |phases: &[Phase]| {
        let in_slow_start = phases.iter().take_while(|p| signal.is_none_or(|signal| p.start_ps < signal)).count();
        Growth::of(&phases[..in_slow_start], first.over(), clocked, limits)
    };
    evidence.growth = growth(&burst.phases);
    // One slope from the first windows on: the later part of it may be judged.
    if let (None, Some(over)) = (&evidence.growth, first.over()) {
        phases::cut(&mut stretches, &points, over, confidence);
        burst.phases = stretches.iter().map(phase).collect();
        evidence.growth = growth(&burst.phases);
    }
    evidence.first_round = first.over();
    let senders = |slots: &BTreeSet<u32>, during: (u64, u64), flows: &mut Flows| {
        let numbers: Vec<u32> = slots.iter().map(|slot| flows.get(*slot).flow).collect();
        Senders { by_rounds: doubling, ..Senders::of(context.lookup, numbers.into_iter(), during) }
    };
    evidence.background_bytes = by_phase(series, &stretches, |slot| past.background.contains(&slot));
    let Some(growth) = &evidence.growth else {
        evidence.senders = senders(&past.new, (burst.start_ps, burst.end_ps), flows);
        return evidence;
    };
    // Later arrivals have no part in what is judged.
    let (judged, next) = (growth.judged.end - 1, growth.judged.end);
    let upto = data.iter().take_while(|e| e.record.time.ps() <= burst.phases[judged].end_ps);
    let slots: BTreeSet<u32> = upto.map(|e| e.slot).filter(|slot| past.new.contains(slot)).collect();
    evidence.fan_in = slots.len() as u64;
    evidence.senders = senders(&slots, (burst.phases[growth.judged.start].start_ps, burst.phases[judged].end_ps), flows);
    if let Some(next) = burst.phases.get(next) {
        let middle = next.start_ps + (next.end_ps - next.start_ps) / 2;
        evidence.sent_on = slots.iter().filter(|slot| flows.get(**slot).last >= middle).count() as u64;
    }
    let fan_in = by_phase(series, &stretches, |slot| past.new.contains(&slot));
    let one = growth.first.clone();
    let phases = &burst.phases;
    evidence.fan_in_rate = (!one.is_empty() && series.covers(phases[one.end - 1].end_ps))
        .then(|| {
            let time = phases[one.end - 1].end_ps - phases[one.start].start_ps;
            fan_in[one].iter().sum::<u64>() as f64 / time.max(1) as f64
        })
        .or_else(|| first.rate());
    evidence
}

/// True if a packet has payload: where that is not said, small frames among larger ones have none.
fn brings_data(entry: &Entry, largest: u64) -> bool {
    let r = &entry.record;
    r.has_data() && (r.frame == 0 || r.frame > HEADERS || largest <= u64::from(HEADERS))
}

/// True if most new flows had packets on their way half a round trip before the burst began: then acknowledgements clock it from
/// its beginning on.
fn clocked(context: &Context, candidate: &Candidate, past: &Past, flows: &mut Flows) -> bool {
    let rtt = past.rtt.unwrap_or(context.settings.background().ps() / BACKGROUND_RTTS);
    let on_their_way = |slot: &&u32| {
        let since = candidate.resumed.get(slot).copied().unwrap_or(flows.get(**slot).active_since);
        since.saturating_add(rtt / 2) < candidate.start
    };
    let clocked = past.new.iter().filter(on_their_way).count();
    clocked * 2 > past.new.len()
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
        sawtooth: s.teeth.map(|t| Sawtooth { teeth: t.count, low_bytes: t.low, high_bytes: t.high }),
    }
}

/// Bytes of the flows `of` in each phase, as far as the beginning of the burst was kept.
fn by_phase(series: &Series, stretches: &[Stretch], of: impl Fn(u32) -> bool) -> Vec<u64> {
    let mut bytes = vec![0u64; stretches.len()];
    let mut phase = 0;
    for entry in series.head.iter().filter(|e| of(e.slot) && e.record.joins()) {
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

    /// The burst, with names of flows instead of numbers.
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
