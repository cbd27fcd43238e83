//! A world that simulates a part of the network, in windows of time between which the parts exchange what crosses their borders.

use super::{World, DEADLOCK_PERIOD};
use crate::core::link::FarEnd;
use crate::core::part::{Mail, Part};
use crate::core::port::Owner;
use crate::hosts::ends::EndGone;
use crate::ledger::{kind, HeldRows};
use fanin_telemetry::Moment;
use fanin_traffic::Completion;
use fanin_units::{LinkId, NodeId, Span, SwitchId, Time};

/// A part's state between two windows, or that of several together, by which all parts decide what comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Status {
    /// Time of its next event but samples, or of something that it has sent to another part.
    pub next: Time,
    /// Time of its next timer; stale ones count.
    pub timer: Time,
    /// Time of its next sample.
    pub sample: Time,
    /// Time of its last event, and up to and at which all has happened there but starts of flows, and samples of that time.
    pub now: Time,
    pub reached: Time,
    /// Time at which its last end was gone, and of the last timer or sample for which it had none any more.
    pub last_gone: Time,
    pub idle_timer: Time,
    /// Records that wait for what becomes of them, and the time of the first.
    pub open_records: u32,
    pub first_open: Time,
    /// Flows are still to start.
    pub starts: bool,
    /// There are ends to which something may still happen, and some that only count datagrams.
    pub active: bool,
    pub sinks: bool,
    /// Packets are on the way here.
    pub busy: bool,
    /// The part cannot go on.
    pub stuck: bool,
    /// The run shall end.
    pub interrupted: bool,
}

/// Words of a [`Status`].
pub(crate) const WORDS: usize = 9;

impl Status {
    /// The state as words, for other threads to read.
    pub fn to_words(self) -> [u64; WORDS] {
        let flags = [self.starts, self.active, self.sinks, self.busy, self.stuck, self.interrupted];
        let flags = flags.iter().fold(0, |word, flag| word << 1 | u64::from(*flag));
        // One by one: a map over an array is a call for each.
        [
            self.next.ps(),
            self.timer.ps(),
            self.sample.ps(),
            self.now.ps(),
            self.reached.ps(),
            self.last_gone.ps(),
            self.idle_timer.ps(),
            self.first_open.ps(),
            u64::from(self.open_records) << 8 | flags,
        ]
    }

    /// The state of several parts together: what comes first in any of them, or has come last.
    pub fn and(self, other: Status) -> Status {
        Status {
            next: self.next.min(other.next),
            timer: self.timer.min(other.timer),
            sample: self.sample.min(other.sample),
            now: self.now.max(other.now),
            reached: self.reached.min(other.reached),
            last_gone: self.last_gone.max(other.last_gone),
            idle_timer: self.idle_timer.max(other.idle_timer),
            open_records: self.open_records.saturating_add(other.open_records),
            first_open: self.first_open.min(other.first_open),
            starts: self.starts | other.starts,
            active: self.active | other.active,
            sinks: self.sinks | other.sinks,
            busy: self.busy | other.busy,
            stuck: self.stuck | other.stuck,
            interrupted: self.interrupted | other.interrupted,
        }
    }

    /// The state that these words say.
    pub fn from_words([next, timer, sample, now, reached, last_gone, idle_timer, first_open, rest]: [u64; WORDS]) -> Status {
        let flag = |i: u32| rest >> i & 1 != 0;
        Status {
            next: Time::from_ps(next),
            timer: Time::from_ps(timer),
            sample: Time::from_ps(sample),
            now: Time::from_ps(now),
            reached: Time::from_ps(reached),
            last_gone: Time::from_ps(last_gone),
            idle_timer: Time::from_ps(idle_timer),
            open_records: (rest >> 8) as u32,
            first_open: Time::from_ps(first_open),
            starts: flag(5),
            active: flag(4),
            sinks: flag(3),
            busy: flag(2),
            stuck: flag(1),
            interrupted: flag(0),
        }
    }
}

impl World {
    /// Becomes part `number` of a division of hosts and switches. Nothing has happened yet.
    pub(crate) fn become_part(&mut self, hosts: &[u32], switches: &[u32], number: u32, parts: usize) {
        if self.traffic.follows_completions() {
            self.news = Some(Vec::new());
        }
        self.traffic.keep_ranks(|host| hosts[host.index()] == number);
        let (core, samples) = (&mut self.core, &mut self.samples);
        core.part = Some(Box::new(Part::new(hosts.to_vec(), switches.to_vec(), number, parts)));
        let here = |node: NodeId| match node.0.checked_sub(hosts.len() as u32) {
            None => hosts[node.index()],
            Some(switch) => switches[switch as usize],
        };
        let timers = std::mem::take(&mut core.timers);
        core.timers.extend(timers.into_entries().filter(|(_, (node, _))| here(*node) == number));
        for l in (0..core.links.len() as u32).map(LinkId) {
            let to = match core.links[l].far_end() {
                FarEnd::Host(host) => hosts[host.index()],
                FarEnd::Switch(SwitchId(s)) => switches[s as usize],
            };
            let from = match core.ports[l].owner {
                Owner::Host(host) => hosts[host.index()],
                Owner::Switch(SwitchId(s), _) => switches[s as usize],
            };
            if from == number && to != number {
                core.cut(l, to);
            }
        }
        samples.keep_ports(|l| core.has_port(l));
    }

    /// Handles all events up to and at `end`, then exports what crosses the border. No other part has anything for this time that is not here,
    /// nor anything to do before `start` but samples. Ends early when it cannot go on.
    ///
    /// A part without flows leaves its timers and samples behind `start` to the next window, as the run may be over before them. Where flows
    /// follow completions, a flow starts only if all parts are known to have reached its time, so that all know which flows have started
    /// before it, and which number it has: until then, events up to that time are all that happens, but for samples at that time, which come
    /// after it.
    pub(crate) fn run_window(&mut self, start: Time, end: Time, known: Time) {
        if self.news.is_some() {
            self.starts_until = known;
        }
        let (reached, exported) = loop {
            self.find_barrier();
            let waits = Some(self.starts_at()).filter(|starts| *starts > self.starts_until);
            let end = waits.map_or(end, |starts| end.min(starts.max(self.core.now)));
            let sample = if waits.is_some_and(|starts| starts <= self.samples.next) { Time::MAX } else { self.samples.next };
            let found = self.core.timers.next().min(self.next_app).min(sample).min(end);
            self.core.barrier = found;
            super::fanin_run_loop(self, self.stall_events.saturating_add(1));
            if self.stands_still() {
                self.core.stuck = Some("simulated time stands still".to_string());
            }
            if self.core.failure.is_some() || self.core.stuck.is_some() {
                return;
            }
            if self.left == 0 {
                continue; // the wheel has more for this window
            }
            if self.core.barrier != found || self.applications_are_next() {
                self.find_barrier();
            }
            let (timers, applications) = (self.core.timers.next(), self.next_app);
            let next = timers.min(applications).min(sample);
            if next > end {
                break (end, end);
            }
            let idle = self.stop == Time::MAX && applications.min(self.starts_at()) == Time::MAX && self.hosts.ends.active() == 0;
            if idle && next > start {
                break (Time::from_ps(next.ps() - 1), next);
            }
            self.core.now = self.core.now.max(next);
            self.core.ledger.totals.events += 1;
            self.idle_timer = if idle { next } else { self.idle_timer };
            if timers == next {
                self.timeout();
            } else if applications == next {
                self.applications();
            } else {
                self.sample();
            }
        };
        self.reached = reached;
        self.export(exported);
    }

    /// Exports what has begun serialisation by `end` on links that are cut.
    fn export(&mut self, end: Time) {
        let now = std::mem::replace(&mut self.core.now, end);
        self.core.begin_export();
        let mut i = 0;
        while let Some(l) = self.core.cut_link(&mut i) {
            self.core.catch_up(l);
            self.fabric.notify(&mut self.core);
            self.core.note_leaving(i);
            i += 1;
        }
        self.core.now = now;
        self.core.export();
    }

    /// Takes what another part has sent.
    pub(crate) fn receive(&mut self, mail: &mut Mail) {
        self.core.import_all(&mut mail.packets);
        if !mail.timers.is_empty() {
            self.core.timers.extend(mail.timers.drain(..));
        }
    }

    /// Completions here of which other parts are to be notified.
    pub(crate) fn take_news(&mut self) -> Vec<Completion> {
        self.news.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Takes completions in another part.
    pub(crate) fn receive_news(&mut self, news: Vec<Completion>) {
        news.into_iter().for_each(|completion| self.traffic.on_complete(completion));
    }

    /// Takes ends that are gone elsewhere of flows whose rows are written here.
    pub(crate) fn receive_ends(&mut self, ends: Vec<EndGone>, by_themselves: bool) {
        ends.into_iter().for_each(|end| self.hosts.ended_elsewhere(&mut self.core, end, by_themselves));
    }

    /// Ends that are gone here, each with the part that writes the row of its flow.
    pub(crate) fn take_gone(&mut self) -> Vec<(u32, EndGone)> {
        let gone = std::mem::take(&mut self.hosts.gone);
        let part = self.core.part.as_deref();
        gone.into_iter().map(|(host, end)| (part.map_or(0, |part| part.of_host(host)), end)).collect()
    }

    /// The state that decides what comes next, with what it has for others.
    pub(crate) fn status(&mut self) -> Status {
        self.find_barrier();
        let wheel = self.core.wheel.next();
        let (earliest, lazy) = self.core.part.as_deref().map_or((Time::MAX, Time::MAX), |part| (part.earliest, part.lazy));
        let (open_records, first_open) = self.core.ledger.tables.open_records(self.reached);
        let news = self.news.as_ref().is_some_and(|news| !news.is_empty());
        // What follows completions here may start as soon as all know of them.
        let starts = if news { self.starts_at().min(self.reached + Span::from_ps(1)) } else { self.starts_at() };
        Status {
            next: wheel.min(self.core.timers.next()).min(self.next_app).min(starts).min(earliest).min(lazy),
            timer: self.core.timers.next(),
            sample: self.samples.next,
            starts: self.next_app.min(starts) < Time::MAX,
            active: self.hosts.ends.active() > 0,
            sinks: self.hosts.ends.sinks() > 0,
            busy: wheel < Time::MAX || earliest < Time::MAX || lazy < Time::MAX || self.hosts.holds_packets(),
            last_gone: self.hosts.ends.last_gone(),
            idle_timer: self.idle_timer,
            stuck: self.core.stuck.is_some() || self.core.failure.is_some() || self.may_be_deadlocked(),
            open_records: u32::try_from(open_records).unwrap_or(u32::MAX),
            first_open,
            interrupted: false,
            now: self.core.now,
            reached: self.reached,
        }
    }

    /// Takes the rows that are complete: of events up to `until`.
    pub(crate) fn take_rows(&mut self, until: Time) -> HeldRows {
        let decided = self.core.ledger.tables.write_decided(self.reached);
        self.core.check(decided);
        let (wheel, arrivals) = (&self.core.wheel, self.core.arrivals as u64);
        HeldRows::take(&mut self.core.ledger.tables, until.ps(), |moment| match moment {
            Moment { time, kind: kind::SLOT, place: [slot, _] } if slot >= arrivals => {
                let place = wheel.place(Time::from_ps(time), slot as u32);
                Moment { time, kind: kind::ARRIVAL, place: [place, slot] }
            }
            other => other,
        })
    }

    /// Looks at pauses at fixed times; true where one has lasted since the time before, as in a deadlock: one world looks closer.
    fn may_be_deadlocked(&mut self) -> bool {
        let mut lasts = false;
        while self.next_look <= self.core.now {
            let before = std::mem::replace(&mut self.looked, self.next_look);
            self.next_look = self.next_look.saturating_add(DEADLOCK_PERIOD);
            lasts |= self.pauses_last(before);
        }
        lasts
    }

    /// The run has ended at `now`, where `barrier` is the time of what will not happen any more.
    pub(crate) fn end_part(&mut self, barrier: Time) -> Time {
        self.hosts.finish_turns(&mut self.core, barrier);
        self.core.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_of_two_is_what_comes_first_or_was_last() {
        let at = Time::from_ps;
        let state = |[next, timer, sample, now, reached, last_gone, idle_timer, first_open]: [u64; 8],
                     open_records,
                     is: [bool; 6]| Status {
            next: at(next),
            timer: at(timer),
            sample: at(sample),
            now: at(now),
            reached: at(reached),
            last_gone: at(last_gone),
            idle_timer: at(idle_timer),
            open_records,
            first_open: at(first_open),
            starts: is[0],
            active: is[1],
            sinks: is[2],
            busy: is[3],
            stuck: is[4],
            interrupted: is[5],
        };
        let one = state([3, 14, 5, 16, 7, 18, 19, 1], 4, [true, false, true, false, true, false]);
        let other = state([13, 4, 15, 6, 17, 8, 9, 2], 3, [false, true, false, true, false, true]);
        let both = state([3, 4, 5, 16, 7, 18, 19, 1], 7, [true; 6]);
        assert_eq!(one.and(one), Status { open_records: 8, ..one });
        assert_eq!((one.and(other), other.and(one)), (both, both));
    }

    #[test]
    fn a_state_is_what_its_words_say() {
        let at = Time::from_ps;
        let status = Status {
            next: at(1),
            timer: at(2),
            sample: Time::MAX,
            now: at(4),
            reached: at(8),
            last_gone: at(5),
            idle_timer: at(6),
            ..Status::default()
        };
        for i in 0..64u32 {
            let flag = |bit: u32| i >> bit & 1 != 0;
            let status = Status {
                open_records: u32::MAX - i,
                first_open: at(7),
                starts: flag(0),
                active: flag(1),
                sinks: flag(2),
                busy: flag(3),
                stuck: flag(4),
                interrupted: flag(5),
                ..status
            };
            assert_eq!(Status::from_words(status.to_words()), status);
        }
    }
}
