//! Report of the transfers over TCP in the captures of a trace: the slow ones, and the reasons.

use super::options::Options;
use super::source::Source;
use crate::capture::survey::Survey;
use crate::capture::transfers::Transfer;
use crate::display::{count, percent, span};
use crate::input::context::{name_of, Origin};
use crate::pair::{FlowWait, Pair};
use fanin_units::Time;
use serde::Serialize;
use std::collections::BTreeMap;

/// Transfers that are listed, the slowest.
const LISTED: usize = 10_000;
/// Share of a transfer's time from which a silence explains it.
const MOST_OF_IT: f64 = 0.5;

/// All transfers of a trace. Sums are of all of them, listed or not.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TransferReport {
    pub transfers: u64,
    /// Transfers of which all was acknowledged in the capture.
    pub complete: u64,
    pub bytes: u64,
    pub segments: u64,
    pub resent: u64,
    /// Segments that were sent again and whose first copy is not in the capture: lost before it.
    pub lost_before: u64,
    pub reordered: u64,
    /// Timeouts of transfers whose acknowledgments were captured; absent where there are none.
    pub timeouts: Option<u64>,
    pub probes: Option<u64>,
    pub syn_resent: u64,
    /// Transfers whose acknowledgments were captured.
    pub with_acks: u64,
    /// Transfers with timeouts, or with a SYN that came again.
    pub with_timeouts: u64,
    /// Completion times of the complete transfers.
    pub took: Option<Took>,
    /// Slowest transfers, the slowest first.
    pub slowest: Vec<TransferRow>,
    pub notes: Vec<String>,
}

/// Quantiles by nearest rank [ps].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Took {
    pub p50_ps: u64,
    pub p95_ps: u64,
    pub p99_ps: u64,
    pub max_ps: u64,
}

/// Row of one transfer in the report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TransferRow {
    pub flow: String,
    /// First SYN of the connection where it counts, else first data; absent where the trace has another clock than the capture.
    pub start_ps: Option<u64>,
    /// Time from the start to the acknowledgment of all, or to the last frame.
    pub took_ps: u64,
    pub complete: bool,
    pub reset: bool,
    pub bytes: u64,
    pub segments: u64,
    pub resent: u64,
    pub resent_bytes: u64,
    pub lost_before: u64,
    pub reordered: u64,
    /// Absent where no acknowledgments were captured.
    pub timeouts: Option<u64>,
    pub timeout_ps: Option<u64>,
    pub probes: Option<u64>,
    pub syn_resent: u64,
    /// Time from the first SYN to the first data, where the SYN counts.
    pub handshake_ps: Option<u64>,
    /// Time from the first data of the request that the transfer answers to its own first data.
    pub answered_after_ps: Option<u64>,
    pub stall_ps: u64,
    pub idle_ps: u64,
    /// Fate of the flow's packets, of all its transfers, at the port between two captures.
    pub at_port: Option<AtPort>,
    pub words: String,
}

/// Packets of a flow at the port between two captures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AtPort {
    pub packets: u64,
    pub dropped: u64,
    pub mean_ps: f64,
    pub max_ps: u64,
}

fn length(ps: i64) -> u64 {
    u64::try_from(ps).unwrap_or(0)
}

/// Reason why a transfer took so long, in a sentence without its end.
fn explained(t: &Transfer, at_port: Option<&AtPort>) -> String {
    let took = length(t.took());
    let part = |time: i64| format!("{} of {}", span(length(time)), span(took));
    let again = || format!("{} of {} sent again", t.resent, count(t.segments, "segment"));
    let most = |time: i64| time as f64 >= MOST_OF_IT * took as f64 && time > 0;
    let mut parts = Vec::new();
    if let Some(opened) = t.opened.filter(|_| t.syn_resent > 0) {
        parts.push(format!("{} again: {} until the first data", count(t.syn_resent, "SYN"), part(t.start - opened)));
    }
    if t.timeouts > 0 {
        let share = percent(t.timeout_time as f64 / took.max(1) as f64);
        parts.push(format!("{}: {} ({share})", count(t.timeouts, "timeout"), part(t.timeout_time)));
    }
    if t.resent > 0 {
        parts.push(again());
    }
    if t.timeouts == 0 && most(t.idle) {
        parts.push(format!("nothing outstanding for {}: nothing to send, or lost before this place", part(t.idle)));
    } else if t.timeouts == 0 && most(t.stall) {
        parts.push(format!("no data and no acknowledgment for {}", part(t.stall)));
    }
    if t.reset {
        parts.push("reset before all was acknowledged".into());
    } else if t.acks && !t.complete {
        parts.push("not all was acknowledged in the capture".into());
    }
    if let Some(port) = at_port {
        let dropped = if port.dropped > 0 { format!("{} dropped and ", count(port.dropped, "packet")) } else { String::new() };
        parts.push(format!("{dropped}a wait of {} at most at this port", span(port.max_ps)));
    }
    if parts.is_empty() {
        parts.push("nothing was sent again".into());
    }
    parts.join("; ")
}

/// One transfer of a capture, on the trace's clock where it has that.
struct Found<'a> {
    survey: &'a Survey,
    transfer: &'a Transfer,
    start: Option<Time>,
    /// Flows at the port between two captures, by name.
    at_port: Option<&'a BTreeMap<String, AtPort>>,
}

impl Found<'_> {
    fn row(&self) -> TransferRow {
        let t = self.transfer;
        let key = &self.survey.links.links[t.entry as usize].key;
        let flow = name_of(key.addresses(), key.ports(), key.protocol(), key.tenant());
        let at_port = self.at_port.and_then(|flows| flows.get(&flow)).copied();
        TransferRow {
            start_ps: self.start.map(Time::ps),
            took_ps: length(t.took()),
            complete: t.complete,
            reset: t.reset,
            bytes: t.bytes,
            segments: t.segments,
            resent: t.resent,
            resent_bytes: t.resent_bytes,
            lost_before: t.lost_before,
            reordered: t.reordered,
            timeouts: t.acks.then_some(t.timeouts),
            timeout_ps: t.acks.then_some(length(t.timeout_time)),
            probes: t.acks.then_some(t.probes),
            syn_resent: t.syn_resent,
            handshake_ps: t.opened.map(|opened| length(t.start - opened)),
            answered_after_ps: t.asked.map(|asked| length(t.start - asked)),
            stall_ps: length(t.stall),
            idle_ps: length(t.idle),
            words: explained(t, at_port.as_ref()),
            at_port,
            flow,
        }
    }
}

/// Transfers of a survey that begin in the time that is analysed.
fn of_survey<'a>(
    (survey, at_port): (&'a Survey, Option<&'a BTreeMap<String, AtPort>>),
    origin: Option<Origin>,
    options: &Options,
) -> Vec<Found<'a>> {
    let (from, stop) = (options.settings.from.unwrap_or(Time::ZERO), options.stop.unwrap_or(Time::MAX));
    let first = survey.first.unwrap_or(0);
    let found = survey.transfers.iter().flat_map(|transfers| &transfers.list).map(|transfer| {
        let at = u128::try_from(first + i128::from(transfer.opened.unwrap_or(transfer.start))).ok();
        let start = origin.zip(at).and_then(|(origin, at)| origin.time(at).ok());
        Found { survey, transfer, start, at_port }
    });
    found.filter(|found| found.start.is_none_or(|start| start >= from && start <= stop)).collect()
}

/// The flows at the port of a pair, by name.
fn at_port(pair: &Pair) -> BTreeMap<String, AtPort> {
    let waiting = pair.report().and_then(|report| report.waiting);
    let flows = waiting.into_iter().flat_map(|waiting| waiting.all);
    let of = |f: FlowWait| (f.name, AtPort { packets: f.packets, dropped: f.dropped, mean_ps: f.mean_ps, max_ps: f.max_ps });
    flows.map(of).collect()
}

/// The report of a trace's transfers.
pub fn report(sources: &[Source], origin: Origin, options: &Options) -> TransferReport {
    let mut report = TransferReport::default();
    let mut all = Vec::new();
    let mut left_out = 0;
    let ports: Vec<Option<BTreeMap<String, AtPort>>> = sources.iter().map(|source| source.pair().map(at_port)).collect();
    for (source, at_port) in sources.iter().zip(&ports) {
        let clock = source.capture().is_none_or(|capture| capture.is_on_the_traces_clock());
        let alone = source.capture().and_then(|capture| capture.survey());
        for survey in alone.into_iter().chain(source.pair().into_iter().flat_map(|pair| pair.with_transfers())) {
            all.extend(of_survey((survey, at_port.as_ref()), clock.then_some(origin), options));
            left_out += survey.transfers.as_ref().map_or(0, |transfers| transfers.left_out);
        }
    }
    for Found { transfer: t, .. } in &all {
        report.transfers += 1;
        report.complete += u64::from(t.complete);
        report.bytes += t.bytes;
        report.segments += t.segments;
        report.resent += t.resent;
        report.lost_before += t.lost_before;
        report.reordered += t.reordered;
        if t.acks {
            report.with_acks += 1;
            *report.timeouts.get_or_insert(0) += t.timeouts;
            *report.probes.get_or_insert(0) += t.probes;
        }
        report.syn_resent += t.syn_resent;
        report.with_timeouts += u64::from(t.timeouts + t.syn_resent > 0);
    }
    let mut times: Vec<u64> = all.iter().filter(|f| f.transfer.complete).map(|f| length(f.transfer.took())).collect();
    times.sort_unstable();
    let rank = |share: f64| times[((share * times.len() as f64).ceil() as usize).clamp(1, times.len()) - 1];
    report.took =
        (!times.is_empty()).then(|| Took { p50_ps: rank(0.5), p95_ps: rank(0.95), p99_ps: rank(0.99), max_ps: rank(1.0) });
    all.sort_by_key(|found| (std::cmp::Reverse(found.transfer.took()), found.start, found.transfer.entry));
    report.slowest = all.iter().take(LISTED).map(Found::row).collect();
    if report.transfers == 0 {
        report.notes.push("no data of TCP was captured".into());
    } else if report.with_acks < report.transfers {
        let of =
            if report.with_acks == 0 { "the transfers".into() } else { count(report.transfers - report.with_acks, "transfer") };
        report.notes.push(format!(
            "acknowledgments of {of} were not captured: how long they took is to their last data, and timeouts are unknown"
        ));
    }
    if report.lost_before > 0 {
        let lost = format!("{} of {} sent again", report.lost_before, count(report.resent, "segment"));
        report.notes.push(format!(
            "{lost} came for the first time: they were lost before this place, where timeouts are seen only in part; a capture at the sender shows all"
        ));
    }
    if all.len() > LISTED {
        report.notes.push(format!("{} are listed, the slowest of {}", LISTED, all.len()));
    }
    if left_out > 0 {
        report.notes.push(format!(
            "{} began when as many were held as are distinguished, and are not counted",
            count(left_out, "transfer")
        ));
    }
    report
}
