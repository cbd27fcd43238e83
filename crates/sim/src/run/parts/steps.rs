//! The next step of all parts, which each decides from the same states.

use crate::world::part::Status;
use fanin_telemetry::HELD;
use fanin_units::{Span, Time};

/// One step of all parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// All events from this time up to and at that, but samples, where all parts have reached a time before.
    Run { start: Time, end: Time, reached: Time },
    /// Samples at this time.
    Sample(Time),
    /// The run has ended at this time, or with its last event; `barrier`: the time of what will not happen any more.
    End { at: Option<Time>, barrier: Time, interrupted: bool },
    /// The run has to be done by one world.
    GiveUp(&'static str),
}

impl Step {
    /// True where nothing comes after it.
    pub fn is_last(self) -> bool {
        matches!(self, Step::End { .. } | Step::GiveUp(_))
    }
}

/// The next step from the states of all parts. `window`: what the cut links allow; `stop`: when the run stops at the latest.
pub fn next(all: &[Status], window: Span, stop: Time) -> Step {
    let least = |of: fn(&Status) -> Time| all.iter().map(of).min().unwrap_or(Time::MAX);
    let (next, sample) = (least(|s| s.next), least(|s| s.sample));
    if all.iter().any(|s| s.stuck) {
        return Step::GiveUp("it cannot go on");
    }
    if all.iter().map(|s| s.open_records as usize).sum::<usize>() >= HELD {
        return Step::GiveUp("more records wait than one world keeps in their order");
    }
    if all.iter().any(|s| s.interrupted) {
        let now = all.iter().map(|s| s.now).max();
        return Step::End { at: now, barrier: Time::ZERO, interrupted: true };
    }
    let over = stop == Time::MAX && all.iter().all(|s| !s.active && !s.starts);
    let mut until = stop;
    if over {
        let sinks = all.iter().any(|s| s.sinks);
        let busy = all.iter().any(|s| s.busy);
        let timer = least(|s| s.timer);
        let barrier = timer.min(sample);
        // With nothing but sinks left it ends when nothing is under way any more, and else when the last end is gone. Timers before that,
        // which parts without flows have left, come first.
        let last = match sinks {
            true => all.iter().map(|s| s.now).max(),
            false => all.iter().map(|s| s.last_gone).max(),
        };
        let last = last.unwrap_or(Time::ZERO);
        if timer < last {
            // The next window has it.
        } else if !sinks {
            // One world stops at the first timer or sample after this; packets under way go on until then.
            if all.iter().any(|s| s.idle_timer >= last && s.idle_timer > Time::ZERO) {
                return Step::GiveUp("a timer at the end of the last flow");
            }
            if next >= barrier || !busy {
                return Step::End { at: None, barrier, interrupted: false };
            }
            until = Time::from_ps(barrier.ps() - 1);
        } else if !busy {
            return Step::End { at: None, barrier, interrupted: false };
        }
    }
    if next > stop && sample > stop {
        return Step::End { at: Some(stop), barrier: stop, interrupted: false };
    }
    // Samples alone go on for ever.
    if next == Time::MAX && (sample == Time::MAX || stop == Time::MAX) {
        return Step::GiveUp("nothing is left to happen");
    }
    if next > sample {
        return Step::Sample(sample);
    }
    // All of an instant at which samples are taken happens before these.
    let end = match next == sample {
        true => next,
        false => Time::from_ps(next.ps().saturating_add(window.ps() - 1)).min(Time::from_ps(sample.ps() - 1)),
    };
    Step::Run { start: next, end: end.min(until), reached: least(|s| s.reached) }
}
