//! Clock of a stream: how far its times may leap before more than one record must say so.
//!
//! A wrong record far ahead would make all records after it late. What leaps ahead therefore waits until some more, of any port, are
//! there as well; if its port goes on as before, it was wrong, and is left out. A clock that was set back is believed after some records.

use super::{analyzer_of, Known, Live, Pipe, Slot};
use crate::counters::{Interval, Reading, State};
use crate::input::context::SECOND;
use crate::Record;

/// Step of time that is no leap in any stream [ps]: a minute.
const LEAP: u64 = 60 * SECOND as u64;
/// Usual steps of a stream's time that are no leap.
const STEPS: u64 = 4;
/// Usual steps of a stream's time after which it is odd that nothing came.
const DENSE: u64 = 1_000;
/// Records behind a leap from which it is believed.
const CONFIRMED: usize = 3;
/// Records of a port that wait behind leaps at most.
const WAITING: usize = 8;
/// Records of a port before the last one, each by a leap, from which its clock was set back.
pub const SET_BACK: u32 = 16;

/// Wrong rows one after another, outside the times that a trace can have, from which the time of its first row was wrong.
pub const UNPLACED: u64 = 64;

/// One thing that a reader tells of a port.
#[derive(Clone, Copy, Debug)]
pub enum Told {
    Record(Record),
    Reading(Reading),
}

impl Told {
    /// Time [ps].
    pub fn ps(&self) -> u64 {
        match self {
            Told::Record(record) => record.time.ps(),
            Told::Reading(reading) => reading.time().ps(),
        }
    }

    /// False for what says only that the source contradicts itself: no evidence of its time.
    pub fn shows_time(&self) -> bool {
        let Told::Reading(Reading::Interval(Interval { state, .. })) = self else { return true };
        !matches!(state, State::Contradicting | State::Repeated | State::Gap)
    }
}

/// Latest time of a stream, and how far ahead a record may be.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Latest time of a record [ps].
    pub latest: u64,
    /// Time after which a record leaps [ps].
    pub horizon: u64,
    /// Usual step of time [ps].
    usual: u64,
}

impl Default for Clock {
    fn default() -> Self {
        // The first record may have any time.
        Clock { latest: 0, horizon: u64::MAX, usual: 0 }
    }
}

impl Clock {
    /// Step that is no leap [ps].
    pub fn leap(&self) -> u64 {
        self.usual.saturating_mul(STEPS).max(LEAP)
    }

    /// True if a stream has so many records that it is odd to find none up to a time [ps].
    pub fn is_dense(&self, now: u64) -> bool {
        self.usual > 0 && now.saturating_sub(self.latest) > self.usual.saturating_mul(DENSE)
    }

    /// Takes the time of a record that is believed.
    #[inline]
    pub fn see(&mut self, now: u64) {
        if now > self.latest {
            if self.horizon < u64::MAX {
                let step = now - self.latest;
                self.usual = self.usual - self.usual / 8 + step / 8;
            }
            self.set(now);
        }
    }

    /// Sets the latest time [ps].
    pub fn set(&mut self, now: u64) {
        self.latest = now;
        self.horizon = now.saturating_add(self.leap());
    }
}

impl Live {
    /// True where a record of a port may be far ahead, or others of it wait.
    #[inline]
    pub(super) fn leaps(&self, place: u32, now: u64) -> bool {
        now > self.clock.horizon || matches!(&self.ports[place as usize], Slot::Watched(port) if !port.ahead.is_empty())
    }

    /// Takes a record that may be far ahead; false where it is to be taken as others are. It waits until there are more, of any port; where
    /// its port goes on as before, what waited of it is left out.
    #[cold]
    pub(super) fn waits(&mut self, place: u32, told: Told, known: &Known) -> bool {
        self.wake(place, known);
        let (now, leap, horizon) = (told.ps(), self.clock.leap(), self.clock.horizon);
        let Slot::Watched(port) = &mut self.ports[place as usize] else { return false };
        if now <= horizon || now <= port.last.saturating_add(leap) {
            port.leave_out();
            return false;
        }
        if port.ahead.len() == WAITING || port.ahead.last().is_some_and(|before| before.ps() > now.saturating_add(leap)) {
            port.leave_out();
        }
        port.ahead.push(told);
        let near = |told: &&Told| told.shows_time() && told.ps().abs_diff(now) <= leap;
        let watched = self.ports.iter().filter_map(|slot| if let Slot::Watched(port) = slot { Some(port) } else { None });
        if watched.flat_map(|port| port.ahead.iter().filter(near)).take(CONFIRMED).count() == CONFIRMED {
            self.leaps += u64::from(self.clock.is_dense(now));
            self.believe(known);
        } else {
            self.since_leap = 0;
        }
        true
    }

    /// Takes all that leapt ahead.
    fn believe(&mut self, known: &Known) {
        for place in 0..self.ports.len() as u32 {
            let Slot::Watched(port) = &mut self.ports[place as usize] else { continue };
            for told in std::mem::take(&mut port.ahead) {
                let Some(port) = self.port_at(place, told.ps(), known) else { continue };
                match told {
                    Told::Record(record) => port.take(&record),
                    Told::Reading(reading) => port.take_reading(&reading),
                }
            }
        }
    }

    /// Ends the waiting of what leapt ahead: it is believed if nothing else came after it.
    pub(super) fn end_ahead(&mut self) {
        match self.known.clone().filter(|_| self.since_leap == 0) {
            Some(known) => self.believe(&known),
            None => self.ports.iter_mut().for_each(|slot| {
                if let Slot::Watched(port) = slot {
                    port.leave_out();
                }
            }),
        }
    }

    /// Takes note of a record before the last one of its port, whose clock may have been set back.
    #[cold]
    pub(super) fn turn_back(&mut self, place: u32, now: u64, known: &Known) {
        let Slot::Watched(port) = &mut self.ports[place as usize] else { return };
        if !port.is_set_back(now, &self.clock) {
            return;
        }
        port.analyzer.interrupt();
        self.collect(place as usize);
        self.close(place as usize);
        let name = &self.context.ports.names()[place as usize];
        let analyzer = analyzer_of(name, known, &self.options, &self.context);
        if let Slot::Watched(port) = &mut self.ports[place as usize] {
            port.set_back(analyzer, now);
        }
        self.clock.set(now);
    }

    /// Inspects the rest of the stream as another one: the time of the first record was wrong, and with it the origin of all times.
    pub(super) fn begin_anew(&mut self) {
        self.unplaced = 0;
        if let Some(mut reader) = self.reader.take() {
            reader.finish(&mut self.context);
        }
        self.stop();
        self.gather();
        for place in 0..self.ports.len() {
            self.close(place);
            let (latest, cell) = (self.clock.latest, self.watching.cell.ps());
            if let (Slot::Watched(port), Some(known)) = (&mut self.ports[place], &self.known) {
                port.counts = std::mem::take(&mut port.counts).with(port.lost(latest, cell));
                let name = &self.context.ports.names()[place];
                port.set_back(analyzer_of(name, known, &self.options, &self.context), 0);
            } else if let Slot::Retired(away) = &mut self.ports[place] {
                away.settle(latest);
            }
        }
        (self.clock, self.wants_origin) = (Clock::default(), true);
        self.base += self.pipe.read().saturating_sub(self.added);
        let rest = self.pipe.start(usize::MAX);
        (self.pipe, self.added, self.askings, self.asked_with) = (Pipe::new(), 0, 0, 0);
        self.pipe.push(&rest);
    }
}
