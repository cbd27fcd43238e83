//! The storm watchdog: a class that is paused for too long is served, or dropped, all the same, until its pauses have been over for a
//! while. Source: PFC-watchdog.

use crate::PRIORITIES;
use fanin_params::{names, params};
use fanin_units::{Span, Time};

names! {
    /// What a switch does with a class whose pause does not end.
    pub enum StormAction {
        /// What waits is dropped, and what comes.
        "drop" => Drop,
        /// Its pauses are ignored.
        "forward" => Forward,
    }
}

params! {
    /// The storm watchdog of a switch's ports. Source: PFC-watchdog.
    pub struct Watchdog {
        /// A class that is paused without a break while packets wait, for so long, is in a storm. Source: PFC-watchdog (200 ms).
        pub detection: Span = Span::from_ms(200), in Span::from_us(1)..=Span::from_s(100);
        /// A storm is over when the class has not been paused for so long. Source: PFC-watchdog (200 ms).
        pub restoration: Span = Span::from_ms(200), in Span::from_us(1)..=Span::from_s(100);
        /// What is done with the class meanwhile. Source: PFC-watchdog.
        pub action: StormAction = StormAction::Drop;
    }
}

/// Packets that wait at a port, by class.
pub(super) type Waiting = [u32; PRIORITIES];

/// What the watchdog knows of one port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    /// Since when packets wait at a paused class; never where none do.
    stuck: [Time; PRIORITIES],
    /// Since when a class in a storm has not been paused; never where it is.
    quiet: [Time; PRIORITIES],
    /// Classes in a storm, and classes that the neighbour pauses, a bit for each.
    storm: u8,
    paused: u8,
}

/// What a look at a port has found, a bit for each class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
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
    pub(super) fn storm(&self) -> u8 {
        self.storm
    }

    /// The neighbour pauses these classes.
    pub(super) fn paused(&mut self, paused: u8) {
        self.paused = paused;
    }

    /// Pauses have changed, or the packets that wait, by class; gives when to look again.
    pub(super) fn update(&mut self, params: &Watchdog, now: Time, waiting: &Waiting) -> Option<Time> {
        let mut next = None;
        let mut look = |at: Time| next = Some(next.map_or(at, |next: Time| next.min(at)));
        for (class, waiting) in waiting.iter().enumerate() {
            let (paused, storm) = (self.paused >> class & 1 != 0, self.storm >> class & 1 != 0);
            if !paused || storm || *waiting == 0 {
                self.stuck[class] = Time::MAX;
            } else if self.stuck[class] == Time::MAX {
                self.stuck[class] = now;
                look(now + params.detection);
            }
            if !storm || paused {
                self.quiet[class] = Time::MAX;
            } else if self.quiet[class] == Time::MAX {
                self.quiet[class] = now;
                look(now + params.restoration);
            }
        }
        next
    }

    /// Looks whether storms have begun or are over; gives when to look again, too.
    pub(super) fn look(&mut self, params: &Watchdog, now: Time, waiting: &Waiting) -> (Found, Option<Time>) {
        let mut found = Found::default();
        for class in 0..PRIORITIES {
            let since = |at: Time, span: Span| at != Time::MAX && at + span <= now;
            found.begun |= u8::from(since(self.stuck[class], params.detection)) << class;
            found.over |= u8::from(since(self.quiet[class], params.restoration)) << class;
        }
        self.storm = (self.storm | found.begun) & !found.over;
        (found, self.update(params, now, waiting))
    }
}
