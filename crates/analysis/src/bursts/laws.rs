//! Choice of the law of a burst's slope that applies, and the test that it held.
//!
//! Source: S-ECN §III-C. Rates here are of frame bytes: R' = R·frame/(frame + overhead), with the burst's mean frame.

use crate::bursts::burst::Evidence;
use crate::bursts::growth::{together, Growth, Limits, BATCH};
use crate::bursts::verdict;
use crate::display::{count, rate, size, span};
use crate::{Background, Burst, Law, Phase, Proof};
use fanin_units::BPS;

/// Law 1 says "equal": within this part of R', the interval decides.
pub const EQUAL: f64 = 0.05;
/// Part of R from which a background builds queues elsewhere, if it goes on so in phase 2, or if it is several flows of different
/// hosts and no queue stood here.
pub const BACK_TO_BACK: f64 = 0.8;
/// Frames that may stand in the queue before a burst without being called a standing queue.
pub const STANDING: f64 = 4.0;

/// The speed of the port as the laws need it.
#[derive(Clone, Copy, Debug)]
pub struct Speed {
    /// Bit/s on the wire.
    pub wire: f64,
    pub overhead: f64,
    /// True if the speed is only estimated from the records.
    pub estimated: bool,
}

impl Speed {
    /// The speed in frame bytes, for frames of this size.
    fn of_frames(&self, frame: f64) -> f64 {
        if frame > 0.0 {
            self.wire * frame / (frame + self.overhead)
        } else {
            self.wire
        }
    }
}

/// Fills in the law, or the words that say why there is none. `drops`: the trace would show them.
pub fn judge(burst: &mut Burst, e: &Evidence, speed: Option<Speed>, drops: bool) {
    let Some(growth) = &e.growth else {
        burst.words = Some(verdict::no_growth(burst, e, speed.map(|speed| (speed.of_frames(e.frame), speed.estimated))));
        return;
    };
    let p = together(&burst.phases[growth.judged.clone()]);
    let Some(speed) = speed else {
        let grew = verdict::grew(burst, e, (growth, &p), None);
        burst.words = Some(format!("{grew} No law can be judged: the port's speed is unknown (--rate gives it)."));
        return;
    };
    let r = speed.of_frames(e.frame);
    let mut sentences = vec![verdict::grew(burst, e, (growth, &p), Some((r, speed.estimated)))];
    sentences.extend(verdict::early(burst, growth, r));
    let judged = applicable(burst, e, growth, (&p, r)).and_then(|()| {
        let proofs = proofs(e);
        if proofs.is_empty() {
            return Err(verdict::unproved(e));
        }
        Ok(Law { evidence: proofs, ..law(burst, e, growth, (&p, r, speed.wire))? })
    });
    match judged {
        Ok(mut law) => {
            sentences.extend(verdict::of(&law, e, r));
            sentences.extend(verdict::after(burst, e, growth, (drops, true)));
            if !verdict::ended_by_itself(burst, e, growth) {
                sentences.extend(verdict::advice(&law));
            }
            law.words = sentences.join(" ");
            burst.law = Some(law);
        }
        Err(why) => {
            sentences.push(why);
            sentences.extend(verdict::after(burst, e, growth, (drops, !proofs(e).is_empty())));
            burst.words = Some(sentences.join(" "));
        }
    }
}

/// Proofs that most new flows are in slow start; none where their senders are known to begin otherwise.
fn proofs(e: &Evidence) -> Vec<Proof> {
    let (s, most) = (&e.senders, |flows: u64| flows * 2 >= e.fan_in.max(1));
    if most(s.other) {
        return Vec::new();
    }
    let shown =
        [(Proof::Transport, most(s.slow_start)), (Proof::Acks, most(s.by_acks)), (Proof::Rounds, s.by_rounds.shows(e.fan_in))];
    shown.into_iter().filter(|(_, shown)| *shown).map(|(proof, _)| proof).collect()
}

/// Checks that a law says something about this growth. The error says why none does.
fn applicable(burst: &Burst, e: &Evidence, growth: &Growth, (p, r): (&Phase, f64)) -> Result<(), String> {
    if e.unnamed || burst.flows == 0 {
        return Err("No law can be judged: there are packets without a flow, so background flows cannot be identified.".into());
    }
    // Without round trips, what counts as background is a guess.
    let guess = match e.rtt {
        Some(_) => String::new(),
        None => format!(
            " Round trips are unknown (--rtt gives them), so a flow counts as background after {} of activity.",
            span(e.assumed)
        ),
    };
    // Where no law is of these senders, it does not help to know what they did before.
    if e.senders.other > 0 && e.senders.other * 2 >= e.fan_in {
        return Err(verdict::unproved(e));
    }
    if e.unsure > 0 {
        let many = if e.unsure == 1 { "1 flow".into() } else { format!("{} of {} flows", e.unsure, e.fan_in) };
        return Err(format!(
            "No law can be judged: the trace begins {} before the burst, too late to see whether {many} had been sending before \
             (background). If the port was idle until then, say so with --idle-before.{guess}",
            span(e.shown)
        ));
    }
    if e.fan_in < 2 {
        let new = if e.fan_in == 0 { "no flow of it is new" } else { "only one flow of it is new" };
        return Err(format!(
            "No law applies: there is no fan-in, as {new}; the laws speak of several flows that start together.{guess}"
        ));
    }
    let round = Limits { r_bps: r, rtt: e.rtt.unwrap_or(0) }.round(p);
    let end = burst.phases[growth.slower.end.max(growth.judged.end) - 1].end_ps;
    if ((end - p.start_ps) as f64) < BATCH * round {
        return Err(format!(
            "No law applies: this growth lasted {}, a small part of a round trip ({} with this queue). It is one batch of packets, as \
             delayed ACKs, TSO or GRO make them; the laws speak of growth over whole round trips.",
            span(end - p.start_ps),
            span(round as u64)
        ));
    }
    Ok(())
}

/// `after`: rate of the background flows in the first phase that is judged, [bit/s] of frame bytes.
fn background(e: &Evidence, after: f64, r: f64, wire: f64) -> Result<Background, String> {
    if e.background == 0 {
        return Ok(Background::None);
    }
    let stood = e.before.and_then(|b| b.queue).unwrap_or(0.0).max(e.start_queue as f64);
    // Flows that acknowledgements clock fall to their share of the port. Those that do not are served by a queue elsewhere, be it in a
    // switch or in their own host: also one flow alone, where others of the same queue are locked out.
    let hidden = stood <= STANDING * e.frame && after >= BACK_TO_BACK * r;
    if e.background == 1 {
        return Ok(if hidden { Background::PreviousHop } else { Background::OneFlow });
    }
    if stood > STANDING * e.frame {
        return Ok(Background::SameHop);
    }
    if hidden {
        return Ok(Background::PreviousHop);
    }
    let Some(before) = e.before else {
        return Err(format!(
            "No law can be judged: {} background flows, but the trace shows too little of the time before to know where they queue.",
            e.background
        ));
    };
    match e.sources {
        Some(1) => Ok(Background::SameHop),
        _ if before.rate_bps < BACK_TO_BACK * wire => Ok(Background::SameHop),
        Some(_) => Ok(Background::PreviousHop),
        None => Err(format!(
            "No law can be judged: {} background flows came at {} while no queue stood here, from one host or queued at the previous \
             hop; their senders are unknown.",
            e.background,
            rate(before.rate_bps)
        )),
    }
}

/// `p`: all that is judged.
fn law(burst: &Burst, e: &Evidence, growth: &Growth, (p, r, wire): (&Phase, f64, f64)) -> Result<Law, String> {
    let range = growth.judged.clone();
    let first = &burst.phases[range.start];
    let bytes = e.background_bytes.get(range.start).copied().unwrap_or(0) as f64;
    let after = bytes * BPS / (first.end_ps - first.start_ps).max(1) as f64;
    let background = background(e, after, r, wire)?;
    let a = e.fan_in_rate.map(|rate| rate * BPS);
    let (low, high) = (p.low_bps, p.high_bps);
    let (number, bound, holds) = match background {
        Background::None => {
            let (from, to) = (r * (1.0 - EQUAL), r * (1.0 + EQUAL));
            let holds = if low >= from && high <= to { Some(true) } else { (high < from || low > to).then_some(false) };
            (1, r, holds)
        }
        Background::OneFlow | Background::SameHop => (2, r, less(low, high, r)),
        Background::PreviousHop => {
            let a = a.ok_or_else(|| {
                format!(
                    "Law 3 would apply: {} came back to back while no queue stood here (hidden buffer). Its bound needs the rate of the \
                     first round, which needs round trips: --rtt gives them. {} of background arrived in this growth.",
                    count(e.background, "background flow"),
                    size(bytes)
                )
            })?;
            let bound = 2.0 * a * r / (a + r);
            (3, bound, less(low, high, bound))
        }
    };
    Ok(Law {
        law: number,
        background,
        background_flows: e.background,
        first_round_bps: a,
        bound_bps: bound,
        slope_bps: p.slope_bps,
        low_bps: low,
        high_bps: high,
        phase: range.start,
        last_phase: range.end - 1,
        holds,
        evidence: Vec::new(),
        words: String::new(),
    })
}

fn less(low: f64, high: f64, bound: f64) -> Option<bool> {
    if high <= bound {
        Some(true)
    } else {
        (low > bound).then_some(false)
    }
}
