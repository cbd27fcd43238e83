//! Verdict on a burst, in sentences.

use crate::bursts::burst::Evidence;
use crate::bursts::growth::{together, Growth};
use crate::display::{count, rate, size, span};
use crate::{Background, Burst, Law, Phase, Proof};
use std::ops::RangeInclusive;

/// Part of the flows of a growth that must still send for a slower growth to be theirs.
const STILL: f64 = 0.5;
/// A slope below this part of the growth before is none.
const FLAT: f64 = 0.1;

/// Sentences on a burst of which nothing can be judged by a law: what was measured, and why there is none. `speed`: as for [`grew`].
pub fn no_growth(burst: &Burst, e: &Evidence, speed: Option<(f64, bool)>) -> String {
    let Some(first) = burst.phases.iter().position(|p| p.low_bps > 0.0) else {
        return if burst.peak_bytes.is_none() {
            "No law applies: the laws are of the queue's slope, and this trace has no queue. A second capture behind the port measures it \
             (--behind), and the port's buffer lets it be estimated (--buffer)."
                .into()
        } else if burst.phases.is_empty() {
            format!("No law applies: {} are too few for a slope.", count(burst.records, "record"))
        } else {
            rose(burst, e)
        };
    };
    let after = |at: u64| span(at.saturating_sub(burst.start_ps));
    let more = burst.phases[first..].iter().take_while(|p| p.low_bps > 0.0).count();
    let p = together(&burst.phases[first..first + more]);
    let (from, to) = (size(p.start_bytes), size(burst.phases[first + more - 1].end_bytes));
    let grown = slope(burst, (first + 1..=first + more, ""), &p, speed);
    let mut words = vec![format!("{grown} It rose from {from} to {to}, {}.", senders(e))];
    let (tcp, other) = (e.senders.tcp + e.senders.slow_start, e.senders.other);
    let most = |flows: u64| flows > 0 && flows * 2 >= e.fan_in;
    words.push(match e.first_round {
        _ if most(other) => return format!("{} {}", words.join(" "), not_in_slow_start(e)),
        Some(round) if most(tcp) => format!(
            "No law applies: most of that is the first windows (until {}), and the laws speak of what acknowledgements release after them.",
            after(round)
        ),
        None if most(tcp) => "No law is stated: the laws speak of what acknowledgements release after the first windows, and without round \
                              trips (--rtt gives them) nothing tells those from the rest."
            .into(),
        _ => "No law is stated: the laws are of senders in slow start, and nothing here shows it. Senders at a steady rate, a batch and \
              first windows all look so."
            .into(),
    });
    for (what, when, why) in [
        ("drop", e.first_loss, "senders that recover losses are not in slow start"),
        ("mark", e.first_mark, "senders that obey marks have left slow start"),
    ] {
        if let Some((at, _)) = when {
            words.push(format!("Growth after the first {what} ({} after the start) is not judged: {why}.", after(at)));
            break;
        }
    }
    words.join(" ")
}

/// Names who sent in a burst of which no growth is judged.
fn senders(e: &Evidence) -> String {
    let hosts = e.senders.hosts.map_or(String::new(), |hosts| format!(" of {}", count(hosts, "host")));
    match (e.fan_in, e.background) {
        _ if e.unnamed => "and not every packet has a flow: who sent it is unknown".into(),
        (0, 0) => "and the trace has no flows: who sent it is unknown".into(),
        (0, there) => format!("with {} and no new one", count(there, "background flow")),
        (new, 0) => format!("with {}{hosts}", count(new, "new flow")),
        (new, there) => format!("with {}{hosts} beside {}", count(new, "new flow"), count(there, "background flow")),
    }
}

/// Sentence of why no law is stated of senders that are known to begin otherwise.
fn not_in_slow_start(e: &Evidence) -> String {
    let name = e.senders.name.as_deref().unwrap_or_default();
    format!("No law is stated: the laws are of senders in slow start, and {} of these are {name}.", e.senders.other)
}

/// Sentence that says why no law applies where no slope is significant, and how the queue rose all the same.
fn rose(burst: &Burst, e: &Evidence) -> String {
    let (Some((at, queue)), Some(start)) = (e.filled, burst.start_bytes) else {
        return "No law applies: no slope of the queue is significantly above zero.".into();
    };
    format!(
        "No law applies: the queue rose from {} to {} within {} of the burst's start, too unevenly for a slope: batches, or too few \
         packets. Later no slope is significantly above zero.",
        size(start as f64),
        size(queue as f64),
        span(at - burst.start_ps)
    )
}

/// Sentence on the growth that is judged: phases of the burst, together `p`. And the port's speed in frame bytes if known, estimated or not.
pub fn grew(burst: &Burst, e: &Evidence, (growth, p): (&Growth, &Phase), speed: Option<(f64, bool)>) -> String {
    let windows = match e.first_round {
        Some(over) if over <= p.start_ps => {
            format!("; the first windows had come by {}", span(over.saturating_sub(burst.start_ps)))
        }
        _ => String::new(),
    };
    slope(burst, (growth.judged.start + 1..=growth.judged.end, &windows), p, speed)
}

/// Sentence on the slope of phases, together `p`; `phases`: the number of the first, of the last, and words behind them.
fn slope(burst: &Burst, (phases, more): (RangeInclusive<usize>, &str), p: &Phase, speed: Option<(f64, bool)>) -> String {
    let after = |at: u64| span(at.saturating_sub(burst.start_ps));
    let (first, last) = phases.into_inner();
    let phases = if first == last { format!("phase {first}") } else { format!("phases {first} to {last}") };
    let grew = format!(
        "From {} to {} after the burst's start ({phases}{more}), the queue grew by {} ({} to {})",
        after(p.start_ps),
        after(p.end_ps),
        rate(p.slope_bps),
        rate(p.low_bps),
        rate(p.high_bps)
    );
    match speed {
        None => format!("{grew}."),
        Some((r, estimated)) => {
            let estimated = if estimated { ", estimated" } else { "" };
            format!("{grew}: {:.2} times the port's speed in frame bytes ({}{estimated}).", p.slope_bps / r, rate(r))
        }
    }
}

/// Sentence on the rise before the judged growth. `r`: the port's speed in frame bytes.
pub fn early(burst: &Burst, growth: &Growth, r: f64) -> Option<String> {
    let rising: Vec<usize> = growth.early.clone().filter(|k| burst.phases[*k].low_bps > 0.0).collect();
    let (first, last) = (*rising.first()?, *rising.last()?);
    let steepest = rising.iter().map(|k| burst.phases[*k].slope_bps).fold(0.0, f64::max);
    let after = |at: u64| span(at.saturating_sub(burst.start_ps));
    let phases = if first == last { format!("phase {}", first + 1) } else { format!("phases {} to {}", first + 1, last + 1) };
    let why = if steepest > r {
        "more than acknowledgements release: the windows of flows that started then, or a batch"
    } else {
        "for a small part of a round trip: a batch"
    };
    Some(format!(
        "What it grew before ({phases}, from {} to {} after the start, by up to {}) is not judged: that is {why}.",
        after(burst.phases[first].start_ps),
        after(burst.phases[last].end_ps),
        rate(steepest)
    ))
}

/// Sentences about the law: the reason for it, if it held, and why no other applies.
pub fn of(law: &Law, e: &Evidence, r: f64) -> Vec<String> {
    let new = format!("{} new flows", e.fan_in);
    let flows = |what: &str| format!("{what} {}", if law.background_flows == 1 { "flow" } else { "flows" });
    let there = format!("{} {}", law.background_flows, flows("background"));
    let (name, why) = match law.background {
        Background::None => ("Law 1 (slope = port speed)".to_string(), "no flow had been sending here before".to_string()),
        Background::OneFlow => ("Law 2 (slope < port speed)".into(), "one background flow had this port to itself before".into()),
        Background::SameHop => ("Law 2 (slope < port speed)".into(), format!("{there} shared this port before")),
        Background::PreviousHop => (
            format!("Law 3 (slope at most {} = 2aR/(a+R), a = {})", rate(law.bound_bps), rate(law.first_round_bps.unwrap_or(0.0))),
            format!("{there} came back to back while no queue stood here, queued at the previous hop or in the sender's NIC (hidden buffer)"),
        ),
    };
    let held = match law.holds {
        Some(true) => format!("{name} holds: {why}."),
        Some(false) => format!("{name} applies, as {why}, but does not hold."),
        None if law.law == 1 && law.low_bps <= r && r <= law.high_bps => {
            format!("{name} applies, as {why}; the port's speed lies in the interval, which is wider than the 5 % that a verdict needs.")
        }
        None => format!(
            "{name} applies, as {why}; the interval reaches across the bound, so it can be neither confirmed nor refuted."
        ),
    };
    let mut said = vec![held];
    said.push(match law.law {
        1 => "Laws 2 and 3 need background flows.".into(),
        2 => "Law 1 needs a port without background, law 3 background that queues elsewhere.".into(),
        _ => "Law 1 needs a port without background, law 2 background that queues here.".into(),
    });
    let ratio = law.slope_bps / r;
    said.push(match (law.law, law.holds) {
        (1, Some(false)) if ratio < 1.0 => format!(
            "So not all of the {new} release two packets per acknowledged one: ACKs are delayed, windows are limited, packets were \
             lost, or slow start was over."
        ),
        (1, Some(false)) => {
            format!("So more arrived than acknowledgements of the {new} release: a queue elsewhere, more new flows, or batches.")
        }
        (_, Some(false)) => "So more arrived than acknowledgements release: new flows during this growth, or a queue elsewhere.".into(),
        (1, Some(true)) => format!("{new} are in slow start: each acknowledgement releases two packets{}.", shown(law, e)),
        (1, None) => format!("{new} are in slow start{}.", shown(law, e)),
        (2, _) => format!("{new} in slow start grow on top of the background{}.", shown(law, e)),
        _ => {
            let hidden = e.background_bytes.get(law.phase..=law.last_phase).map_or(0, |b| b.iter().sum::<u64>());
            format!("{} came from the hidden buffer in that time.", size(hidden as f64))
        }
    });
    said.retain(|sentence| !sentence.is_empty());
    said
}

/// Words in brackets that say how the new flows are known to be in slow start.
fn shown(law: &Law, e: &Evidence) -> String {
    let shown: Vec<String> = law
        .evidence
        .iter()
        .map(|proof| match proof {
            Proof::Transport => format!("the result names the transport of {}", e.senders.slow_start),
            Proof::Acks => format!("{} of them sent twice what was acknowledged", e.senders.by_acks),
            Proof::Rounds => {
                let rounds = e.senders.by_rounds;
                format!("the second round was twice the first window in {} of {}", rounds.doubled, rounds.looked)
            }
        })
        .collect();
    format!(" ({})", shown.join("; "))
}

/// Sentence of why no law is stated of growth that one might apply to: nothing shows slow start, which the laws are of.
pub fn unproved(e: &Evidence) -> String {
    let s = &e.senders;
    let from = s.hosts.map_or(String::new(), |hosts| format!(" of {}", count(hosts, "host")));
    let new = format!("{}{from} began to send here", count(e.fan_in, "new flow"));
    if s.other * 2 >= e.fan_in {
        return format!("{new}. {}", not_in_slow_start(e));
    }
    let rounds = match (s.by_rounds.looked, s.by_rounds.doubled) {
        (0, _) => "no flow shows a first window and a second one of twice its size".into(),
        (looked, 0) => format!("the second round was twice the first window in none of {}", count(looked, "flow")),
        (looked, doubled) => {
            format!("the second round was twice the first window in only {doubled} of {}", count(looked, "flow"))
        }
    };
    format!(
        "{new}. No law is stated: the laws are of senders in slow start, and nothing here shows it: {rounds}, and no capture shows them \
         sending twice what was acknowledged. Senders at a steady rate would look the same. What would show it: both directions, captured \
         before the port and from before the burst on."
    )
}

/// Sentence on the end of the growth: slow start left, windows full, drops, marks. `drops`: the trace would show them; `slow_start`: it is
/// shown that the new flows began so.
pub fn after(burst: &Burst, e: &Evidence, growth: &Growth, (drops, slow_start): (bool, bool)) -> Vec<String> {
    let mut said: Vec<String> = growth_ends(burst, e, growth, (drops, slow_start)).into_iter().collect();
    // Records without a frame are looks at the queue: of how many packets the drops are part is unknown.
    let part = |n: u64| match burst.arrived_bytes {
        Some(_) => format!("{n} of {}", count(burst.records, "packet")),
        None => count(n, "packet"),
    };
    let when = |first: Option<(u64, u64)>| {
        first.map_or(String::new(), |(at, _)| format!(", the first {} after the start", span(at - burst.start_ps)))
    };
    if let Some(dropped) = burst.dropped_packets.filter(|n| *n > 0) {
        said.push(format!("{} were dropped{}.", part(dropped), when(e.first_loss)));
    }
    if let Some(marked) = burst.marked_packets.filter(|n| *n > 0) {
        said.push(format!("{} were marked{}.", part(marked), when(e.first_mark)));
    }
    said
}

/// True if neither a drop nor a mark ended the growth.
pub fn ended_by_itself(burst: &Burst, e: &Evidence, growth: &Growth) -> bool {
    growth_ends(burst, e, growth, (true, true)).is_some()
}

/// Sentence that says why the growth ended, where neither a drop nor a mark ended it. With background it may come in steps.
fn growth_ends(burst: &Burst, e: &Evidence, growth: &Growth, (drops, slow_start): (bool, bool)) -> Option<String> {
    let grown = &burst.phases[growth.judged.end - 1];
    let next = burst.phases.get(growth.judged.end)?;
    let unsignalled = |p: &Phase| {
        let middle = p.start_ps + (p.end_ps - p.start_ps) / 2;
        [e.first_loss, e.first_mark].into_iter().flatten().all(|(at, _)| at > middle)
    };
    if e.background > 0 || !unsignalled(next) {
        return None;
    }
    let at = span(grown.end_ps - burst.start_ps);
    if (e.sent_on as f64) < STILL * e.fan_in as f64 {
        let over = e.fan_in - e.sent_on;
        return Some(format!("The growth ended {at} after the start: {over} of {} sent no more.", count(e.fan_in, "flow")));
    }
    let slope = together(&burst.phases[growth.judged.clone()]).slope_bps;
    let enough = (grown.end_ps - grown.start_ps) / 2;
    let stays = burst
        .phases
        .get(growth.slower.end)
        .filter(|p| p.slope_bps.abs() < FLAT * slope && p.end_ps - p.start_ps > enough && unsignalled(p));
    // A queue that grows again has been waiting for acknowledgements, or for flows that started later.
    let again = burst.phases.iter().skip(growth.slower.end).find(|p| p.low_bps > FLAT * slope && unsignalled(p));
    let slopes: Vec<String> = burst.phases[growth.slower.clone()].iter().take(3).map(|p| rate(p.slope_bps)).collect();
    let slower = format!("it grew by {} only", slopes.join(", then "));
    match (stays.filter(|_| again.is_none()), growth.slower.is_empty()) {
        (_, true) if stays.is_some() && again.is_some() => again.map(|p| {
            format!(
                "The growth paused {at} after the start; from {} on the queue grew again, by {}.",
                span(p.start_ps - burst.start_ps),
                rate(p.slope_bps)
            )
        }),
        (Some(p), still) => Some(format!(
            "From {at} after the start on {}the queue stayed at {}, though no drop or mark is recorded: {}{} their applications send no \
             faster.",
            if still { String::new() } else { format!("{slower}, and then ") },
            size(p.start_bytes),
            if drops { "" } else { "the buffer is full (this trace shows no drops at all), " },
            if slow_start { "the senders' windows are full (receive window, send buffer), or" } else { "the senders are limited, or" }
        )),
        (None, false) => Some(format!(
            "From {at} after the start on {slower}, though no drop or mark is recorded until then{}.",
            if slow_start {
                ": slow start was left by HyStart (delay rose, or the ACK train got long), not by a loss"
            } else {
                ""
            }
        )),
        (None, true) => None,
    }
}

/// Advice against a burst that a law explains.
pub fn advice(law: &Law) -> Option<String> {
    if law.holds != Some(true) {
        return None;
    }
    Some(match law.law {
        1 => "To stop it, senders must slow down within one round trip: mark at the slope (S-ECN) or at a lower threshold; pacing does not help.",
        2 => "Marking at the slope (S-ECN) or at a lower threshold reaches them within one round trip; a larger buffer only delays the loss.",
        _ => "Look for the queue at the previous hop or in the sender's NIC.",
    }.into())
}
