//! The watch that a storm watchdog keeps over one transmitter, a switch's port or a NIC: pauses that do not end. Source: PFC-watchdog.

use crate::PRIORITIES;
use fanin_units::{Span, Time};

/// Packets that wait at a port, by class.
pub type Waiting = [u32; PRIORITIES];

/// Durations after which a pause has lasted too long, and is over for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchdogTimes {
    /// Time for which a class must be paused without a break while packets wait, to be in a storm.
    pub detection: Span,
    /// Time without a pause after which the storm of a class is over.
    pub restoration: Span,
}

/// State of the watchdog at one port.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// Time since which packets wait at a paused class; `Time::MAX` where none do.
    stuck: [Time; PRIORITIES],
    /// Time since which a class in a storm has not been paused; `Time::MAX` where it is.
    quiet: [Time; PRIORITIES],
    /// Classes in a storm, and classes that the neighbour pauses, a bit for each.
    storm: u8,
    paused: u8,
}

/// Findings of a look at a port, a bit for each class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub begun: u8,
    pub over: u8,
}

impl Default for Watch {
    fn default() -> Self {
        Watch { stuck: [Time::MAX; PRIORITIES], quiet: [Time::MAX; PRIORITIES], storm: 0, paused: 0 }
    }
}

impl Watch {
    /// Classes in a storm, a bit for each.
    pub fn storm(&self) -> u8 {
        self.storm
    }

    /// Notes the classes that the neighbour pauses.
    pub fn paused(&mut self, paused: u8) {
        self.paused = paused;
    }

    /// Notes that pauses have changed, or the packets that wait, by class; gives the time of the next look.
    pub fn update(&mut self, times: WatchdogTimes, now: Time, waiting: &Waiting) -> Option<Time> {
        let mut next = None;
        let mut look = |at: Time| next = Some(next.map_or(at, |next: Time| next.min(at)));
        for (class, waiting) in waiting.iter().enumerate() {
            let (paused, storm) = (self.paused >> class & 1 != 0, self.storm >> class & 1 != 0);
            if !paused || storm || *waiting == 0 {
                self.stuck[class] = Time::MAX;
            } else if self.stuck[class] == Time::MAX {
                self.stuck[class] = now;
                look(now + times.detection);
            }
            if !storm || paused {
                self.quiet[class] = Time::MAX;
            } else if self.quiet[class] == Time::MAX {
                self.quiet[class] = now;
                look(now + times.restoration);
            }
        }
        next
    }

    /// Looks for storms that have begun or are over; gives also the time of the next look.
    pub fn look(&mut self, times: WatchdogTimes, now: Time, waiting: &Waiting) -> (Found, Option<Time>) {
        let mut found = Found::default();
        for class in 0..PRIORITIES {
            let since = |at: Time, span: Span| at != Time::MAX && at + span <= now;
            found.begun |= u8::from(since(self.stuck[class], times.detection)) << class;
            found.over |= u8::from(since(self.quiet[class], times.restoration)) << class;
        }
        self.storm = (self.storm | found.begun) & !found.over;
        (found, self.update(times, now, waiting))
    }
}
