//! Borders between parts: mail and states of two windows, by turns.

use super::barrier::Apart;
use super::sync::{AtomicU64, Mutex, MutexGuard, Ordering, PoisonError};

/// A part's state of `W` words after a window, and for which parts it has mail, as a bit for each.
struct Board<const W: usize>([AtomicU64; W], AtomicU64);

impl<const W: usize> Default for Board<W> {
    fn default() -> Board<W> {
        Board(std::array::from_fn(|_| AtomicU64::default()), AtomicU64::default())
    }
}

/// Mail between all parts and their states, of two windows by turns: what is read after one is written again after the next but one, when all
/// have read it.
pub struct Border<M, const W: usize> {
    parts: usize,
    mail: [Vec<Apart<Mutex<M>>>; 2],
    /// Written by their part before a barrier, and read by all behind it.
    boards: [Vec<Apart<Board<W>>>; 2],
}

impl<M: Default, const W: usize> Border<M, W> {
    pub fn new(parts: usize) -> Border<M, W> {
        let mail = || (0..parts * parts).map(|_| Apart::default()).collect();
        let boards = || (0..parts).map(|_| Apart::default()).collect();
        Border { parts, mail: [mail(), mail()], boards: [boards(), boards()] }
    }

    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Mail of one part for another, which nobody else has in hand.
    pub fn mail(&self, turn: usize, from: usize, to: usize) -> MutexGuard<'_, M> {
        self.mail[turn][from * self.parts + to].0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the state of a part, and for which parts it has mail.
    pub fn write(&self, turn: usize, from: usize, words: [u64; W], mail: u64) {
        let Board(cells, bits) = &self.boards[turn][from].0;
        for (i, word) in words.iter().enumerate() {
            cells[i].store(*word, Ordering::Relaxed);
        }
        bits.store(mail, Ordering::Relaxed);
    }

    /// True where one part has mail for another.
    pub fn has_mail(&self, turn: usize, from: usize, to: usize) -> bool {
        self.boards[turn][from].0 .1.load(Ordering::Relaxed) >> to & 1 != 0
    }

    /// The states of all parts.
    pub fn read(&self, turn: usize) -> impl Iterator<Item = [u64; W]> + '_ {
        self.boards[turn].iter().map(|Apart(Board(cells, _))| {
            let mut words = [0; W];
            for (i, cell) in cells.iter().enumerate() {
                words[i] = cell.load(Ordering::Relaxed);
            }
            words
        })
    }
}
