//! Exchange between the parts of a network after each window: packets, timers, ends that are gone, and states.

use super::border::Border;
use crate::core::part::Mail;
use crate::hosts::ends::EndGone;
use crate::ledger::{HeldRows, Totals};
use crate::world::part::{Status, WORDS};
use crate::world::World;
use fanin_traffic::Completion;
use fanin_units::Time;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Parts of a division at most: each has a bit of a word.
pub const MOST_PARTS: usize = 64;

/// Mail of one part for another.
#[derive(Default)]
struct Post {
    mail: Mail,
    gone: Vec<EndGone>,
    news: Vec<Completion>,
}

/// Exchange between all parts of a run.
pub struct Exchange {
    border: Border<Post, WORDS>,
    /// By part, rows that are complete, and its counts, from time to time.
    seen: Vec<Mutex<(HeldRows, Totals)>>,
    /// The run shall end, as its observer wishes or a table cannot be written. The first part says so with its state.
    pub end: AtomicBool,
}

impl Exchange {
    pub fn new(parts: usize) -> Exchange {
        debug_assert!(parts <= MOST_PARTS, "{parts} parts");
        Exchange { border: Border::new(parts), seen: (0..parts).map(|_| Mutex::default()).collect(), end: AtomicBool::new(false) }
    }

    /// Hands over what a part has for others, and its state.
    pub fn publish(&self, turn: usize, number: usize, world: &mut World) {
        // One part alone says it, or some would know before others.
        let interrupted = number == 0 && self.end.load(Ordering::Relaxed);
        let status = Status { interrupted, ..world.status() };
        let mut mail = 0u64;
        // Most windows have neither.
        let news = world.take_news();
        if !news.is_empty() {
            for to in (0..self.border.parts()).filter(|to| *to != number) {
                self.border.mail(turn, number, to).news.extend(&news);
                mail |= 1 << to;
            }
        }
        if !world.hosts.gone.is_empty() {
            for (to, end) in world.take_gone() {
                self.border.mail(turn, number, to as usize).gone.push(end);
                mail |= 1 << to;
            }
        }
        if let Some(part) = world.core.part.as_deref_mut() {
            part.earliest = Time::MAX;
            for (to, out) in part.out.iter_mut().enumerate().filter(|(_, out)| !out.is_empty()) {
                // What comes back is empty, and its room is used again.
                std::mem::swap(&mut self.border.mail(turn, number, to).mail, out);
                mail |= 1 << to;
            }
        }
        self.border.write(turn, number, status.to_words(), mail);
    }

    /// Says that a part cannot go on.
    pub fn give_up(&self, turn: usize, number: usize) {
        self.border.write(turn, number, Status { stuck: true, ..Status::default() }.to_words(), 0);
    }

    /// Takes what others have for a part.
    pub fn collect(&self, turn: usize, number: usize, world: &mut World) {
        for from in 0..self.border.parts() {
            if !self.border.has_mail(turn, from, number) {
                continue;
            }
            let mut post = self.border.mail(turn, from, number);
            world.receive(&mut post.mail);
            if !post.gone.is_empty() {
                world.receive_ends(std::mem::take(&mut post.gone), true);
            }
            if !post.news.is_empty() {
                world.receive_news(std::mem::take(&mut post.news));
            }
        }
    }

    /// Reads the state of all parts together.
    pub fn read(&self, turn: usize) -> Status {
        self.border.read(turn).map(Status::from_words).reduce(Status::and).unwrap_or_default()
    }

    /// Hands over the counts of a part, and its rows that are complete, as are those of all others: of events before what all had reached one
    /// window ago, as ends that are gone elsewhere are reported one window later, and before the first record that is open.
    pub fn hand_over(&self, number: usize, world: &mut World, all: &Status) {
        let until = Time::from_ps(all.reached.min(all.first_open).ps().saturating_sub(1));
        let mut seen = lock(&self.seen[number]);
        seen.0.append(world.take_rows(until));
        seen.1 = world.totals();
    }

    /// Takes the rows that parts have handed over, and the sum of their counts.
    pub fn take(&self) -> (HeldRows, Totals) {
        let (mut rows, mut totals) = (HeldRows::default(), Totals::default());
        for part in &self.seen {
            let mut seen = lock(part);
            rows.append(std::mem::take(&mut seen.0));
            totals.add(&seen.1);
        }
        (rows, totals)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
