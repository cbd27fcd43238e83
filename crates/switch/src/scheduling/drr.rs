//! Deficit round robin. Source: DRR.

use super::{check_classes, Discipline, MAX_CLASSES};
use fanin_params::{params, Cx};
use fanin_units::{Bytes, QueueClass};
use std::collections::VecDeque;

params! {
    /// Deficit round robin: classes with packets are visited in turn, and may send their quantum per visit; unused credit is
    /// kept.
    pub struct DrrParams {
        /// Quantum of each class; rates are in the ratio of quanta. With at least a full frame, every visit sends something.
        /// Source: DRR.
        pub quanta: Vec<Bytes> = vec![Bytes(1518), Bytes(1518)], in Bytes(1)..=Bytes(1_000_000_000);
    }
}

/// State of deficit round robin: the active list, the deficit counters and the sizes of waiting packets.
///
/// Source: DRR: a class that gets its first packet joins the end of the active list with no deficit; a
/// visit to the head of the list adds its quantum and sends while the deficit covers the first packet; then the class moves
/// to the end, or leaves the list and forgets its deficit when it is empty. Deviation: none. Visits that send nothing are
/// not walked but counted, so that a quantum of one byte costs no more than one of a megabyte.
#[derive(Clone, Debug)]
pub struct Drr {
    quanta: Vec<u64>,
    deficit: [u64; MAX_CLASSES],
    queues: Vec<VecDeque<u16>>,
    active: VecDeque<QueueClass>,
    /// True if the head of the active list has had this visit's quantum.
    visiting: bool,
    /// Closed classes, a bit for each: they send nothing and are not in the active list.
    closed: u8,
}

/// Result of the scan of the active list.
#[derive(Clone, Copy)]
struct Turn {
    /// Position in the active list.
    at: usize,
    /// Rounds of visits up to and including the visit that sends; 0 when the present visit goes on.
    rounds: u64,
}

impl Drr {
    /// A port with these quanta and no packets.
    pub(super) fn with_quanta(quanta: &[Bytes]) -> Self {
        let count = quanta.len().min(MAX_CLASSES);
        Drr {
            quanta: quanta[..count].iter().map(|q| q.0.max(1)).collect(),
            deficit: [0; MAX_CLASSES],
            queues: vec![VecDeque::new(); count],
            active: VecDeque::with_capacity(MAX_CLASSES),
            visiting: false,
            closed: 0,
        }
    }

    fn first(&self, class: QueueClass) -> u64 {
        self.queues[class].front().map_or(0, |frame| u64::from(*frame))
    }

    /// Visits that `class` needs until its deficit covers its first packet.
    fn visits(&self, class: QueueClass) -> u64 {
        self.first(class).saturating_sub(self.deficit[class]).div_ceil(self.quanta[class]).max(1)
    }

    /// A class has nothing to send any more.
    fn deactivate(&mut self, class: QueueClass) {
        if let Some(at) = self.active.iter().position(|c| *c == class) {
            self.active.remove(at);
            self.deficit[class] = 0;
            self.visiting &= at > 0;
        }
    }

    /// Class that sends next, and the rounds of visits until then; `None`: no class has packets to send.
    fn turn(&self) -> Option<Turn> {
        let head = *self.active.front()?;
        if self.visiting && self.first(head) <= self.deficit[head] {
            return Some(Turn { at: 0, rounds: 0 });
        }
        // Whoever needs the fewest rounds sends first; of several, the one that is visited first. A head whose visit is over
        // stands at the end.
        let n = self.active.len();
        let skip = usize::from(self.visiting);
        (0..n).map(|i| (i + skip) % n).map(|at| Turn { at, rounds: self.visits(self.active[at]) }).min_by_key(|turn| turn.rounds)
    }
}

impl Drr {
    /// Removes the first packet of `class`, which is next; `charge`: bytes that its deficit pays.
    #[inline]
    fn leaves(&mut self, class: QueueClass, charge: u16) {
        let Some(Turn { at, rounds }) = self.turn() else { return };
        debug_assert_eq!(self.active[at], class, "not the class that `next` said");
        if rounds > 0 {
            if self.visiting {
                self.active.rotate_left(1);
            }
            let n = self.active.len();
            let at = if self.visiting { (at + n - 1) % n } else { at };
            for (i, c) in self.active.iter().enumerate() {
                self.deficit[*c] += self.quanta[*c] * if i <= at { rounds } else { rounds - 1 };
            }
            self.active.rotate_left(at);
            self.visiting = true;
        }
        self.queues[class].pop_front();
        self.deficit[class] -= u64::from(charge);
        if self.queues[class].is_empty() {
            self.deficit[class] = 0;
            self.active.pop_front();
            self.visiting = false;
        }
    }
}

impl Discipline for Drr {
    type Params = DrrParams;

    fn new(params: &DrrParams) -> Self {
        Self::with_quanta(&params.quanta)
    }

    fn check(params: &DrrParams, cx: &mut Cx) {
        check_classes(params.quanta.len(), "quanta", cx);
    }

    fn classes(params: &DrrParams) -> usize {
        params.quanta.len()
    }

    fn queues(&self) -> usize {
        self.queues.len()
    }

    fn enqueue(&mut self, class: QueueClass, frame: u16) {
        if self.queues[class].is_empty() && !class.is_in(self.closed) {
            self.active.push_back(class);
        }
        self.queues[class].push_back(frame);
    }

    fn moved(&mut self, class: QueueClass, place: usize) {
        if let Some(frame) = self.queues[class].pop_back() {
            self.queues[class].insert(place, frame);
        }
    }

    fn removed(&mut self, class: QueueClass, place: usize, _frame: u16) {
        self.queues[class].remove(place);
        if self.queues[class].is_empty() {
            self.deactivate(class);
        }
    }

    /// Closes and opens classes: one that closes leaves the active list and forgets its deficit, as an empty one does; one that
    /// opens joins the end.
    fn gate(&mut self, closed: u8) {
        let changed = std::mem::replace(&mut self.closed, closed) ^ closed;
        for class in QueueClass::all(self.queues.len()) {
            if !class.is_in(changed) || self.queues[class].is_empty() {
                continue;
            }
            if !class.is_in(closed) {
                self.active.push_back(class);
            } else {
                self.deactivate(class);
            }
        }
    }

    fn next(&self) -> Option<QueueClass> {
        self.turn().map(|turn| self.active[turn.at])
    }

    /// A closed class is not in the active list, and has no deficit.
    fn flush(&mut self, class: QueueClass) {
        debug_assert!(class.is_in(self.closed), "class {class} may send");
        self.queues[class].clear();
    }

    fn dequeued(&mut self, class: QueueClass, frame: u16) {
        self.leaves(class, frame);
    }

    fn dropped(&mut self, class: QueueClass, _frame: u16) {
        self.leaves(class, 0);
    }

    /// Sets the state of a class that has sent alone: it was visited as often as its bytes need, ⌈`sent`/quantum⌉ times, and the
    /// last visit goes on.
    fn resume(&mut self, class: QueueClass, sent: u64, frames: &[u16]) {
        frames.iter().for_each(|frame| self.enqueue(class, *frame));
        if sent > 0 {
            self.deficit[class] = sent.div_ceil(self.quanta[class]) * self.quanta[class] - sent;
            self.visiting = true;
        }
    }
}
