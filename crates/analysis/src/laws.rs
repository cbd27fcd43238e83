//! Which law of a burst's slope applies, and whether it held.
//!
//! Source: S-ECN §III-C. Rates here are of frame bytes: R' = R·frame/(frame + overhead), with the burst's mean frame.

use crate::burst::Evidence;
use crate::{Background, Burst, Law, Phase, Round};
use fanin_units::BPS;
use std::ops::Range;

/// Law 1 says "equal": within this part of R', the interval decides.
pub const EQUAL: f64 = 0.05;
/// Background that brings this part of R queues elsewhere, if it goes on doing so in phase 2, or if it is several flows of different
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
    /// Only estimated from the records.
    pub estimated: bool,
}

impl Speed {
    /// In frame bytes, for frames of this size.
    fn of_frames(&self, frame: f64) -> f64 {
        if frame > 0.0 {
            self.wire * frame / (frame + self.overhead)
        } else {
            self.wire
        }
    }
}

fn rate(bps: f64) -> String {
    let a = bps.abs();
    match a {
        _ if a >= 1e9 => format!("{:.3} Gb/s", bps / 1e9),
        _ if a >= 1e6 => format!("{:.1} Mb/s", bps / 1e6),
        _ => format!("{:.1} kb/s", bps / 1e3),
    }
}

fn size(bytes: f64) -> String {
    if bytes >= 1e6 {
        format!("{:.2} MB", bytes / 1e6)
    } else {
        format!("{:.1} KB", bytes / 1e3)
    }
}

fn ms(ps: u64) -> String {
    let us = ps as f64 / 1e6;
    if us >= 1e4 {
        format!("{:.3} ms", us / 1e3)
    } else {
        format!("{us:.1} us")
    }
}

/// The phases that acknowledgements clock, together the paper's phase 2: from the first rising one that lies mostly after the first
/// round (without rounds, the rising one after the first rising one) up to the first that does not rise.
pub fn judged(phases: &[Phase], rounds: &[Round]) -> Option<Range<usize>> {
    let rising = |p: &Phase| p.low_bps > 0.0;
    let steep = phases.iter().position(rising)?;
    let start = match rounds.first() {
        Some(first) => {
            let clocked = |p: &Phase| p.end_ps.saturating_sub(first.end_ps.max(p.start_ps)) * 2 > p.end_ps - p.start_ps;
            phases.iter().position(|p| rising(p) && clocked(p))?
        }
        None => steep + 1,
    };
    let length = phases.get(start..)?.iter().take_while(|p| rising(p)).count();
    (length > 0).then_some(start..start + length)
}

/// Phase 1: from the first rising phase up to the one that is judged.
pub fn first_phase(phases: &[Phase], rounds: &[Round]) -> Option<Range<usize>> {
    let steep = phases.iter().position(|p| p.low_bps > 0.0)?;
    judged(phases, rounds).map(|judged| steep..judged.start).filter(|one| !one.is_empty())
}

/// The mean slope of phases and its interval: their lengths weigh, their errors are taken as independent.
fn together(phases: &[Phase]) -> Phase {
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

/// Fills in the law, or the words that say why there is none.
pub fn judge(burst: &mut Burst, e: &Evidence, speed: Option<Speed>) {
    let Some(range) = judged(&burst.phases, &burst.rounds) else {
        burst.words = Some(no_phase(burst));
        return;
    };
    let p = &together(&burst.phases[range.clone()]);
    let Some(speed) = speed else {
        burst.words = Some(format!(
            "the queue grew by {} from {} to {} after the burst's start; no law can be judged: the port's speed is unknown (give it, or records with frame sizes)",
            rate(p.slope_bps),
            ms(p.start_ps - burst.start_ps),
            ms(p.end_ps - burst.start_ps)
        ));
        return;
    };
    let r = speed.of_frames(e.frame);
    let compared = format!(
        "from {} to {} after the burst's start, the queue grew by {} ({} to {}), {:.2} of the port's speed in frame bytes ({}{})",
        ms(p.start_ps - burst.start_ps),
        ms(p.end_ps - burst.start_ps),
        rate(p.slope_bps),
        rate(p.low_bps),
        rate(p.high_bps),
        p.slope_bps / r,
        rate(r),
        if speed.estimated { ", estimated" } else { "" }
    );
    if e.unnamed || burst.flows == 0 {
        burst.words = Some(format!("{compared}; background flows cannot be identified: there are packets without a flow"));
        return;
    }
    if e.blind {
        burst.words = Some(format!(
            "{compared}; background flows cannot be identified: the trace begins too shortly before the burst and does not know when flows started"
        ));
        return;
    }
    if e.fan_in < 2 {
        burst.words = Some(format!("{compared}; no fan-in: {} new flow(s), so no law of fan-in applies", e.fan_in));
        return;
    }
    match law((p, &burst.phases[range.start]), e, r, speed.wire, range) {
        Ok(mut law) => {
            law.words = format!("{compared}; {}", advice(&law, burst, e, r));
            burst.law = Some(law);
        }
        Err(why) => burst.words = Some(format!("{compared}; {why}")),
    }
}

fn no_phase(burst: &Burst) -> String {
    if burst.phases.is_empty() {
        "too few records for a slope".into()
    } else if burst.phases.iter().all(|p| p.low_bps <= 0.0) {
        "no slope of the queue is significantly above zero".into()
    } else {
        "one rising phase only: nothing follows the first round whose slope a law could speak of".into()
    }
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
            "{} background flows, but the trace shows too little of the time before to know where they queue",
            e.background
        ));
    };
    match e.sources {
        Some(1) => Ok(Background::SameHop),
        _ if before.rate_bps < BACK_TO_BACK * wire => Ok(Background::SameHop),
        Some(_) => Ok(Background::PreviousHop),
        None => Err(format!(
            "{} background flows came at {} while no queue stood here: from one host, or queued at the previous hop; their sources are unknown",
            e.background,
            rate(before.rate_bps)
        )),
    }
}

/// `p`: all that is judged; `first`: its first phase.
fn law((p, first): (&Phase, &Phase), e: &Evidence, r: f64, wire: f64, range: Range<usize>) -> Result<Law, String> {
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
                "a hidden buffer at the previous hop, but the first round's rate is unknown (no round trips), and with it the bound".to_string()
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

fn advice(law: &Law, burst: &Burst, e: &Evidence, r: f64) -> String {
    let held = match law.holds {
        Some(true) => "holds",
        Some(false) => "does not hold",
        None => "can be neither confirmed nor refuted at this confidence",
    };
    let flows = format!("{} new flows", e.fan_in);
    let mut words = match law.law {
        1 => format!(
            "no background flow: law 1 (slope = port speed) {held}. {flows} are in slow start, and every acknowledgement releases two \
             packets; they must slow down within one round trip: mark at the slope (S-ECN) or at a lower threshold. Pacing will not help"
        ),
        2 => format!(
            "{} background flow(s) shared this queue's port: law 2 (slope < port speed) {held}. {flows} grow on top of them; marking at the \
             slope (S-ECN) or a lower threshold reaches them within one round trip, a larger buffer only delays the loss",
            e.background
        ),
        _ => {
            let hidden = e.background_bytes.get(law.phase..=law.last_phase).map_or(0, |b| b.iter().sum::<u64>()) as f64;
            format!(
                "{} background flow(s) came back to back while no queue stood here: look at the previous hop, or the sender's NIC, where \
                 they queue (hidden buffer). Law 3 (slope at most {} = 2aR/(a+R), a = {}) {held}. {} came from them in that time",
                e.background,
                rate(law.bound_bps),
                rate(law.first_round_bps.unwrap_or(0.0)),
                size(hidden)
            )
        }
    };
    if law.holds == Some(false) {
        let ratio = law.slope_bps / r;
        words.push_str(match law.law {
            1 if ratio < 1.0 => ". A smaller slope means that not all flows are in slow start, are limited, or lose packets",
            1 => ". A larger slope means arrivals that no acknowledgement clocked: a queue elsewhere, new flows, or batches",
            _ => ". Arrivals exceed what acknowledgements release: look for new flows during this phase or a queue elsewhere",
        });
    }
    if burst.dropped_packets > 0 {
        words.push_str(&format!(". {} packets were dropped", burst.dropped_packets));
    }
    words
}
