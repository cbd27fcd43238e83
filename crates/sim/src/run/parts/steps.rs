//! The next step of all parts, which each decides from the same states.

use crate::world::part::Status;
use fanin_telemetry::HELD;
use fanin_units::{Span, Time};

/// One step of all parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// All events up to and at `end`, of which those before `start` are samples, where all parts have reached a time before.
    Run { start: Time, end: Time, reached: Time },
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

/// The next step from the state of all parts. `window`: what the cut links allow; `longest`: time between two meetings at most; `stop`: when
/// the run stops at the latest.
pub fn next(all: &Status, (window, longest): (Span, Span), stop: Time) -> Step {
    let Status { mut next, sample, reached, .. } = *all;
    if all.stuck {
        return Step::GiveUp("it cannot go on");
    }
    if all.open_records as usize >= HELD {
        return Step::GiveUp("more records wait than one world keeps in their order");
    }
    if all.interrupted {
        return Step::End { at: Some(all.now), barrier: Time::ZERO, interrupted: true };
    }
    let over = stop == Time::MAX && !all.active && !all.starts;
    let mut until = stop;
    if over {
        let barrier = all.timer.min(sample);
        // With nothing but sinks left it ends when nothing is under way any more, and else when the last end is gone. Timers and samples before
        // that, which parts without flows have left, come first.
        let last = if all.sinks { all.now } else { all.last_gone };
        if barrier < last {
            next = next.min(barrier);
        } else if !all.sinks || !all.busy {
            // One world stops at the first timer or sample after this; packets under way go on until then.
            if all.idle_timer >= last && all.idle_timer > Time::ZERO {
                return Step::GiveUp("a timer or a sample at the end of the last flow");
            }
            if all.sinks || next >= barrier || !all.busy {
                return Step::End { at: None, barrier, interrupted: false };
            }
            until = Time::from_ps(barrier.ps() - 1);
        }
    }
    if next > stop && sample > stop {
        return Step::End { at: Some(stop), barrier: stop, interrupted: false };
    }
    // Samples alone go on for ever.
    if next == Time::MAX && stop == Time::MAX {
        return Step::GiveUp("nothing is left to happen");
    }
    let start = next.min(stop);
    let end = start.saturating_add(Span::from_ps(window.ps() - 1)).min(reached.saturating_add(longest));
    Step::Run { start, end: end.min(until), reached }
}
