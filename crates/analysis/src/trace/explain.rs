//! Explanation of a transfer in two captures: from options to the walk.

use super::inspect::inspected;
use super::transfers::{row, TransferRow};
use super::{Control, Observer, Options, Progress};
use crate::capture::transfers::{Transfer, Transfers};
use crate::capture::{FlowKey, ACK, FIN, SYN};
use crate::display::count;
use crate::explain::{explain_captured, Explanation, Passage, Sent, Talk};
use crate::input::context::{name_of, Origin};
use crate::input::problem::{Failure, Problem};
use crate::pair::{BothWays, Pair, Passing};
use fanin_units::{Time, BPS};
use serde::Serialize;
use std::collections::BTreeMap;

/// Flows that a message lists.
const LISTED: usize = 5;

/// A transfer, explained.
#[derive(Clone, Debug, Serialize)]
pub struct ExplainedTransfer {
    pub flow: String,
    /// Names of both captures' places, that nearer to the sender first.
    pub places: [String; 2],
    /// Row as `--transfers` lists it, at the place nearer to the sender.
    pub transfer: TransferRow,
    /// Data packets that passed the nearer capture, those of them that came to the other one, and those that did not.
    pub packets: u64,
    pub arrived: u64,
    pub lost: u64,
    /// Acknowledgments that were captured at both places.
    pub answers: u64,
    pub explanation: Explanation,
    pub notes: Vec<String>,
}

/// A flow with transfers, the slowest of which took so long [ps].
struct Candidate {
    name: String,
    key: FlowKey,
    took: i64,
}

/// The flow that is meant: the one of that name, or that begins with it, or has it; without a name the one with the slowest transfer.
fn chosen(pair: &Pair, wanted: Option<&str>) -> Result<Candidate, Failure> {
    let mut found: BTreeMap<String, Candidate> = BTreeMap::new();
    for survey in pair.with_transfers() {
        for transfer in survey.transfers.iter().flat_map(|transfers| &transfers.list) {
            let key = &survey.links.links[transfer.entry as usize].key;
            let name = name_of(key.addresses(), key.ports(), key.protocol(), key.tenant());
            let (src, dst) = key.addresses();
            let flow = (src, dst, key.protocol(), key.ports(), key.tenant());
            let candidate = found.entry(name.clone()).or_insert(Candidate { name, key: flow, took: 0 });
            candidate.took = candidate.took.max(transfer.took());
        }
    }
    let mut all: Vec<Candidate> = found.into_values().collect();
    all.sort_by(|a, b| b.took.cmp(&a.took).then_with(|| a.name.cmp(&b.name)));
    let names = |of: &[Candidate]| {
        let shown = of.iter().take(LISTED).map(|c| format!("'{}'", c.name)).collect::<Vec<_>>().join(", ");
        if of.len() > LISTED {
            format!("{shown}, …")
        } else {
            shown
        }
    };
    let file = &pair.before().file.path;
    let Some(wanted) = wanted else {
        let none = || Problem::new("has no transfer over TCP to explain").file(file);
        return all.into_iter().next().ok_or_else(|| none().into());
    };
    let matches: [&dyn Fn(&str) -> bool; 3] =
        [&|name| name == wanted, &|name| name.starts_with(wanted), &|name| name.contains(wanted)];
    for is in matches {
        let mut these: Vec<Candidate> = Vec::new();
        let mut others = Vec::new();
        for candidate in all {
            if is(&candidate.name) {
                these.push(candidate)
            } else {
                others.push(candidate)
            }
        }
        match these.len() {
            0 => all = others,
            1 => return Ok(these.remove(0)),
            n => {
                let problem =
                    Problem::new(format!("{n} flows with transfers have this name, the slowest first: {}", names(&these)));
                return Err(problem
                    .file(file)
                    .column("flow")
                    .value(wanted)
                    .accepted("more of the name, up to one flow's")
                    .into());
            }
        }
    }
    let problem = Problem::new("no flow with a transfer has this name").file(file).column("flow").value(wanted);
    Err(problem.accepted(format!("flows as fanin analyze --transfers lists them: {}", names(&all))).into())
}

/// The flow's packets as its sender's side sees them, and how each data packet came to be sent.
struct Told {
    packets: Vec<Passage>,
    transfers: Vec<Transfer>,
    /// Shortest handshake at the near place [ps].
    shaken: Option<i64>,
}

/// Times of a packet at the place nearer to the sender of the flow that was asked for, and at the other one.
fn times(packet: &Passing, through: bool) -> (Option<i64>, Option<i64>) {
    if through {
        (packet.before, packet.behind)
    } else {
        (packet.behind, packet.before)
    }
}

/// From a SYN to the acknowledgment of its answer, at the near place.
fn handshake(both: &BothWays) -> Option<i64> {
    let near = |p: &Passing| times(p, both.through).0;
    let mut shortest: Option<i64> = None;
    for (i, p) in both.packets.iter().enumerate().filter(|(_, p)| p.tcp.flags & (SYN | ACK) == SYN) {
        let Some(at) = near(p) else { continue };
        let again = |q: &&Passing| q.forward == p.forward && q.tcp.flags & SYN != 0 && q.tcp.seq == p.tcp.seq;
        if both.packets.iter().filter(again).count() > 1 {
            continue;
        }
        let answers = |q: &&Passing| q.forward == p.forward && q.tcp.flags & (SYN | ACK) == ACK && q.payload == 0;
        let answer = both.packets[i..].iter().filter(answers).find(|q| q.tcp.seq == p.tcp.seq.wrapping_add(1));
        let took = answer.and_then(near).map(|done| done - at).filter(|took| *took > 0);
        shortest = shortest.into_iter().chain(took).min();
    }
    shortest
}

fn told(both: &BothWays, pair: &Pair, offset: i64) -> Told {
    let mut transfers = Transfers::default();
    let shaken = handshake(both);
    let mut order: Vec<usize> = (0..both.packets.len()).collect();
    order.sort_by_key(|i| (times(&both.packets[*i], both.through).0.unwrap_or(both.packets[*i].first()), *i));
    // By direction: what its SYN says of windows; unknown where that was not captured, or either side has none.
    let scale = |forward: bool| both.packets.iter().find(|p| p.forward == forward && p.tcp.flags & SYN != 0).map(|p| p.scale);
    let scales = scale(true).zip(scale(false)).map(|(ours, theirs)| match (ours, theirs) {
        (Some(ours), Some(theirs)) => [theirs, ours],
        _ => [0, 0],
    });
    let at = |time: i64| u64::try_from(time.saturating_add(offset)).unwrap_or(0);
    let mut packets = Vec::with_capacity(both.packets.len());
    for i in order {
        let p = &both.packets[i];
        let (near, far) = times(p, both.through);
        let mut sent = Sent::First;
        if let Some(time) = near {
            let sums = |t: &Transfers| {
                let of = t.list.iter().rev().find(|t| t.entry == 0);
                of.map_or((0, 0, 0, 0), |t| (t.resent, t.timeouts, t.probes, t.reordered))
            };
            let (before, count) = (sums(&transfers), transfers.list.len());
            let entry = u32::from(!p.forward);
            transfers.take((entry, Some(1 - entry)), (time, shaken), &p.tcp, p.payload);
            let after = if transfers.list.len() == count { sums(&transfers) } else { before };
            if p.forward {
                sent = match () {
                    () if after.1 > before.1 => Sent::Timeout,
                    () if after.2 > before.2 => Sent::Probe,
                    () if after.0 > before.0 => Sent::Again,
                    () => Sent::First,
                };
            }
        }
        let syn = p.tcp.flags & SYN != 0;
        if p.forward && syn && packets.iter().any(|q: &Passage| q.data && q.syn && q.seq == p.tcp.seq) {
            sent = Sent::Again;
        }
        let shift = scales.map(|scales| if syn { 0 } else { scales[usize::from(p.forward)] });
        packets.push(Passage {
            data: p.forward,
            seq: p.tcp.seq,
            ack: (p.tcp.flags & ACK != 0).then_some(p.tcp.ack),
            syn,
            fin: p.tcp.flags & FIN != 0,
            payload: p.payload,
            bytes: p.bytes,
            window: shift.map(|shift| u64::from(p.tcp.window) << shift),
            near: near.map(at),
            far: far.map(at),
            least: if both.through { pair.least_of(p.bytes) } else { 0 },
            sent,
        });
    }
    if !both.through {
        let least = packets.iter().filter(|p| p.data).filter_map(|p| Some(p.far?.saturating_sub(p.near?))).min().unwrap_or(0);
        packets.iter_mut().for_each(|p| p.least = least);
    }
    Told { packets, transfers: transfers.list.into_iter().filter(|t| t.entry == 0).collect(), shaken }
}

/// Explains where the time of a transfer in two captures went: of the flow of that name, or the slowest of all, its slowest.
///
/// # Errors
/// See [`Failure`]; also where no flow, or more than one, is meant.
pub fn explain(options: &Options, flow: Option<&str>, observer: &mut dyn Observer) -> Result<ExplainedTransfer, Failure> {
    let options = Options { transfers: true, both_ways: true, ..options.dated()?.into_owned() };
    if options.behind.is_empty() {
        let problem = Problem::new("needs a second capture: at the receiver, or behind the port").column("behind");
        return Err(problem.suggestion("fanin analyze --transfers says what one capture shows").into());
    }
    let sources = inspected(&options, observer)?;
    let Some(pair) = sources.first().and_then(|source| source.pair()) else { return Err(Failure::Stopped) };
    let Candidate { name, key, .. } = chosen(pair, flow)?;
    let mut tick = |done| observer.progress(Progress { done, records: 0 }) == Control::Continue;
    let both = pair.connection(&key, &mut tick)?;
    let origin = pair.first().map_or(Origin::default(), Origin::of);
    let first = pair.first().and_then(|first| origin.time(first).ok()).unwrap_or(Time::ZERO);
    let offset = i64::try_from(first.ps()).unwrap_or(0);
    let Told { packets, transfers, shaken } = told(&both, pair, offset);
    let on = |time: i64| u64::try_from(time.saturating_add(offset)).unwrap_or(0);
    let (from, stop) = (options.settings.from.unwrap_or(Time::ZERO).ps(), options.stop.unwrap_or(Time::MAX).ps());
    let asked = transfers.iter().filter(|t| (from..=stop).contains(&on(t.opened.unwrap_or(t.start))));
    let slowest = asked.max_by_key(|t| (t.took(), std::cmp::Reverse(t.start)));
    let Some(transfer) = slowest.copied() else {
        let problem = Problem::new("has no data of this flow where it would come first: at the capture nearer to its sender");
        return Err(problem.file(&pair.before().file.path).column("flow").value(name).into());
    };
    let start = on(transfer.opened.unwrap_or(transfer.start));
    let end = start.saturating_add(transfer.took().unsigned_abs());
    let names = pair.place_names();
    let places = if both.through {
        names
    } else {
        let [before, behind] = names;
        [behind, before]
    };
    let [a, b] = &places;
    let talk = Talk {
        packets: &packets,
        start,
        end,
        places: [format!("{a} to {b}"), format!("{b} to {a}")],
        per_byte: options.settings.rate.map_or_else(|| pair.pace(), |rate| BPS / rate.bps() as f64),
        far: (on(both.behind.0), on(both.behind.1)),
    };
    let explanation = explain_captured(&talk);
    let within = |time: Option<u64>| time.is_some_and(|time| time >= start && time <= end);
    let data: Vec<&Passage> = packets.iter().filter(|p| p.data && p.payload > 0 && within(p.near)).collect();
    let arrived = data.iter().filter(|p| p.far.is_some()).count() as u64;
    let answers = packets.iter().filter(|p| !p.data && within(p.near) && p.far.is_some()).count() as u64;
    let covered = |p: &&&Passage| both.through && p.near.is_some_and(|near| (talk.far.0..=talk.far.1).contains(&near));
    let lost = data.iter().filter(|p| p.far.is_none()).filter(covered).count() as u64;
    let mut notes = Vec::new();
    if !packets.iter().any(|p| !p.data && p.ack.is_some()) {
        notes.push("no acknowledgments were captured: what the sender waited for is not known".to_string());
    } else if answers == 0 {
        notes.push(
            "acknowledgments were captured at one place only: a queue on their way is not told from a wait at the receiver"
                .into(),
        );
    }
    if shaken.is_none() {
        notes.push(format!(
            "no handshake of the connection is at {a}: how far the sender is from there is not known, and taken as nothing"
        ));
    }
    if data.len() as u64 > arrived + lost {
        notes.push(format!("{} passed {a} while {b} was not captured", count(data.len() as u64 - arrived - lost, "data packet")));
    }
    if let Some(step) = pair.tick() {
        notes.push(format!("times are in steps of {}: so far each part may be off", fanin_units::Span::from_ps(step)));
    }
    let row = row(&transfer, name.clone(), (Some(Time::from_ps(start)), None));
    let packets = data.len() as u64;
    Ok(ExplainedTransfer { flow: name, places, transfer: row, packets, arrived, lost, answers, explanation, notes })
}
