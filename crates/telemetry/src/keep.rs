//! Choice of the records of watched ports that are kept, in bounded memory: all, the last of each port, or those around a
//! trigger.

use fanin_units::{Bytes, Span, Time};
use std::collections::{BTreeMap, VecDeque};

/// Largest number of records that wait for earlier ones to be decided upon.
pub const HELD: usize = 1 << 16;

/// Number of waiting records from which it is worth looking for some that need not wait any longer.
const BATCH: usize = 1 << 12;

/// Rule by which records of watched ports are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keep {
    /// All records are kept.
    All,
    /// The last records of each port: a ring buffer.
    Last {
        /// Records that a port's ring holds.
        records: usize,
    },
    /// Records around upward crossings: a packet finds more than `above`, and the one before it at that port did not.
    Around {
        /// Queue that is crossed.
        above: Bytes,
        /// Time before a crossing.
        before: Span,
        /// Time after a crossing.
        after: Span,
        /// Records that a port remembers of the time before, the last ones.
        records: usize,
    },
}

/// Numbers of one port's records that were kept and not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptRows {
    /// Records of the port, kept or not.
    pub seen: u64,
    /// Records kept.
    pub kept: u64,
    /// Upward crossings, with a rule that looks for them.
    pub crossings: u64,
    /// Crossings before which the port's memory was too short for the time that was wanted.
    pub cut_short: u64,
}

/// A record's place in the order of arrival at all ports.
pub type RowNumber = u64;

#[derive(Debug)]
struct Port<R> {
    /// Records that are not kept yet, in order.
    ring: VecDeque<Remembered<R>>,
    rows: KeptRows,
    /// True if the last packet found more than the threshold.
    above: bool,
    /// Time up to which all records are kept.
    until: Option<Time>,
    /// Time of the last record that the ring had no room for.
    forgotten: Option<Time>,
}

#[derive(Debug)]
struct Remembered<R> {
    number: RowNumber,
    at: Time,
    row: R,
    open: bool,
}

#[derive(Debug)]
struct Waiting<R> {
    row: R,
    /// The decision can still change.
    open: bool,
}

/// Records of watched ports on their way to a table.
///
/// They leave in order of arrival. A record may be open: it can change until it is closed, as where a switch marks at dequeue;
/// the kept ones behind it wait. When more than 65 536 wait, an open one is set aside and written later than its turn, and
/// records of different ports may come in another order; those of one port do not.
///
/// Memory: that many records, `records` for each port, and open ones, which are packets that wait in the simulated network.
#[derive(Debug)]
pub struct Keeper<R> {
    keep: Keep,
    held: usize,
    ports: Vec<Port<R>>,
    next: RowNumber,
    /// Kept records that wait for their turn.
    waiting: BTreeMap<RowNumber, Waiting<R>>,
    /// Kept records that were open for too long.
    aside: BTreeMap<RowNumber, R>,
    /// Length of `waiting` at which to look again.
    look_at: usize,
}

impl<R> Keeper<R> {
    /// A keeper for so many ports.
    pub fn new(keep: Keep, ports: usize) -> Self {
        Self::holding(keep, ports, HELD)
    }

    fn holding(keep: Keep, ports: usize, held: usize) -> Self {
        let port = || Port { ring: VecDeque::new(), rows: KeptRows::default(), above: false, until: None, forgotten: None };
        let ports = std::iter::repeat_with(port).take(ports).collect();
        let look_at = BATCH.min(held);
        Keeper { keep, held, ports, next: 0, waiting: BTreeMap::new(), aside: BTreeMap::new(), look_at }
    }

    /// True if a closed record of port number `port` is to be written at once by its maker; then it is counted here, and no
    /// [`Keeper::push`] follows.
    #[inline]
    pub fn lets_pass(&mut self, port: usize) -> bool {
        let pass = matches!(self.keep, Keep::All) && self.waiting.is_empty();
        if pass {
            self.next += 1;
            let rows = &mut self.ports[port].rows;
            rows.seen += 1;
            rows.kept += 1;
        }
        pass
    }

    /// A record: a packet came to port number `port` at `now`, not before the last one, and found `queue`. Gives its number, to
    /// close it by if it is `open`. What is kept goes to `sink`, now or later.
    ///
    /// # Errors
    /// The sink's.
    pub fn push<E>(
        &mut self,
        port: usize,
        (now, queue): (Time, Bytes),
        (row, open): (R, bool),
        sink: &mut impl FnMut(R) -> Result<(), E>,
    ) -> Result<RowNumber, E> {
        let number = self.next;
        self.next += 1;
        let state = &mut self.ports[port];
        state.rows.seen += 1;
        match self.keep {
            Keep::All => {
                state.rows.kept += 1;
                if !open && self.waiting.is_empty() {
                    return sink(row).map(|()| number);
                }
                self.waiting.insert(number, Waiting { row, open });
            }
            Keep::Last { records } => {
                if state.ring.len() < records.max(1) {
                    state.rows.kept += 1;
                } else {
                    state.ring.pop_front();
                }
                state.ring.push_back(Remembered { number, at: now, row, open });
            }
            Keep::Around { above, before, after, records } => {
                state.forget(now, before);
                if queue > above && !state.above {
                    state.rows.crossings += 1;
                    let from = now.ps().saturating_sub(before.ps());
                    state.rows.cut_short += u64::from(state.forgotten.take().is_some_and(|at| at.ps() >= from));
                    state.until = Some(now.saturating_add(after));
                    state.rows.kept += state.ring.len() as u64;
                    let earlier = state.ring.drain(..).map(|r| (r.number, Waiting { row: r.row, open: r.open }));
                    self.waiting.extend(earlier);
                }
                state.above = queue > above;
                if state.until.is_some_and(|until| now <= until) {
                    state.rows.kept += 1;
                    self.waiting.insert(number, Waiting { row, open });
                } else {
                    if state.ring.len() >= records.max(1) {
                        state.forgotten = state.ring.pop_front().map(|r| r.at);
                    }
                    state.ring.push_back(Remembered { number, at: now, row, open });
                }
            }
        }
        if self.waiting.len() >= self.look_at {
            self.release(Some(now), sink)?;
        }
        Ok(number)
    }

    /// Changes an open record, of port number `port`, which stays open; one that is not kept is forgotten already.
    pub fn change(&mut self, port: usize, number: RowNumber, change: impl FnOnce(&mut R)) {
        if let Some(waiting) = self.waiting.get_mut(&number) {
            change(&mut waiting.row);
        } else if let Some(row) = self.aside.get_mut(&number) {
            change(row);
        } else {
            let ring = &mut self.ports[port].ring;
            if let Some(found) = ring.binary_search_by_key(&number, |r| r.number).ok().and_then(|i| ring.get_mut(i)) {
                change(&mut found.row);
            }
        }
    }

    /// Closes the record with this number, of port number `port`, after a last change; one that is not kept is forgotten already.
    ///
    /// # Errors
    /// The sink's.
    pub fn close<E>(
        &mut self,
        port: usize,
        number: RowNumber,
        change: impl FnOnce(&mut R),
        sink: &mut impl FnMut(R) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(waiting) = self.waiting.get_mut(&number) {
            change(&mut waiting.row);
            waiting.open = false;
        } else if let Some(mut row) = self.aside.remove(&number) {
            change(&mut row);
            return sink(row);
        } else {
            let ring = &mut self.ports[port].ring;
            if let Some(found) = ring.binary_search_by_key(&number, |r| r.number).ok().and_then(|i| ring.get_mut(i)) {
                change(&mut found.row);
                found.open = false;
            }
        }
        Ok(())
    }

    /// Gives all kept records to `sink` at the end: open ones stay as they are.
    ///
    /// # Errors
    /// The sink's; what was not given by then stays, for another try.
    pub fn finish<E>(&mut self, sink: &mut impl FnMut(R) -> Result<(), E>) -> Result<(), E> {
        for (number, row) in std::mem::take(&mut self.aside) {
            self.waiting.insert(number, Waiting { row, open: false });
        }
        self.waiting.values_mut().for_each(|waiting| waiting.open = false);
        for port in &mut self.ports {
            let ring = std::mem::take(&mut port.ring);
            if let Keep::Last { .. } = self.keep {
                self.waiting.extend(ring.into_iter().map(|r| (r.number, Waiting { row: r.row, open: false })));
            }
        }
        while let Some((_, waiting)) = self.waiting.pop_first() {
            sink(waiting.row)?;
        }
        Ok(())
    }

    /// Rule by which records are kept.
    pub fn keep(&self) -> Keep {
        self.keep
    }

    /// Numbers of records kept and not so far, for each port.
    pub fn rows(&self) -> impl Iterator<Item = KeptRows> + '_ {
        self.ports.iter().map(|port| port.rows)
    }

    /// Adds the counts of another, each of whose ports is counted there alone.
    pub fn absorb(&mut self, other: &Keeper<R>) {
        for (port, other) in self.ports.iter_mut().zip(&other.ports) {
            port.rows.seen += other.rows.seen;
            port.rows.kept += other.rows.kept;
            port.rows.crossings += other.rows.crossings;
            port.rows.cut_short += other.rows.cut_short;
        }
    }

    /// Kept records that wait for their turn: how many, and the first.
    pub fn waiting(&self) -> (usize, Option<&R>) {
        let first = self.waiting.first_key_value().map(|(_, waiting)| &waiting.row);
        (self.waiting.len() + self.aside.len(), first)
    }

    /// Gives records that need not wait any longer at `now` to `sink`.
    ///
    /// # Errors
    /// The sink's.
    pub fn give<E>(&mut self, now: Time, sink: &mut impl FnMut(R) -> Result<(), E>) -> Result<(), E> {
        match self.waiting.is_empty() {
            true => Ok(()),
            false => self.release(Some(now), sink),
        }
    }

    /// Gives records that need not wait any longer to `sink`, and more if too many wait: then half of the room is left, so that
    /// this is rare.
    fn release<E>(&mut self, now: Option<Time>, sink: &mut impl FnMut(R) -> Result<(), E>) -> Result<(), E> {
        let undecided = self.first_undecided(now);
        let fits = if self.waiting.len() >= self.held { self.held / 2 } else { self.held };
        while let Some(first) = self.waiting.first_entry() {
            let (number, open) = (*first.key(), first.get().open);
            if (open || number > undecided) && self.waiting.len() <= fits {
                break;
            }
            let Some((_, waiting)) = self.waiting.pop_first() else { break };
            if open {
                self.aside.insert(number, waiting.row);
            } else {
                sink(waiting.row)?;
            }
        }
        self.look_at = (2 * self.waiting.len()).max(BATCH).min(self.held);
        Ok(())
    }

    /// The first record that a later crossing may still keep.
    fn first_undecided(&mut self, now: Option<Time>) -> RowNumber {
        let (Keep::Around { before, .. }, Some(now)) = (self.keep, now) else { return RowNumber::MAX };
        self.ports.iter_mut().for_each(|port| port.forget(now, before));
        self.ports.iter().filter_map(|port| Some(port.ring.front()?.number)).min().unwrap_or(RowNumber::MAX)
    }
}

impl<R> Port<R> {
    /// Forgets records too far back for a crossing at `now` or later.
    fn forget(&mut self, now: Time, before: Span) {
        let from = now.ps().saturating_sub(before.ps());
        while self.ring.front().is_some_and(|r| r.at.ps() < from) {
            self.ring.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    impl<R> Keeper<R> {
        /// Records in memory.
        fn held(&self) -> usize {
            self.waiting().0 + self.ports.iter().map(|port| port.ring.len()).sum::<usize>()
        }
    }

    /// Number and port, and whether it was closed.
    type Record = (u64, usize, bool);

    /// Pushes arrivals (port, time, queue) in order; those in `open` are closed `later` records after.
    fn through(
        keeper: &mut Keeper<Record>,
        arrivals: &[(usize, u64, u64)],
        open: impl Fn(u64) -> bool,
        later: usize,
    ) -> Vec<Record> {
        let mut out = Vec::new();
        let mut most = 0;
        let mut opened: VecDeque<(usize, u64)> = VecDeque::new();
        for (i, (port, at, queue)) in arrivals.iter().enumerate() {
            let is_open = open(i as u64);
            let mut sink = |r: Record| -> Result<(), Infallible> {
                out.push(r);
                Ok(())
            };
            let place = (Time::from_ps(*at), Bytes(*queue));
            let number = keeper.push(*port, place, ((i as u64, *port, !is_open), is_open), &mut sink).unwrap();
            assert_eq!(number, i as u64);
            if is_open {
                opened.push_back((*port, number));
            }
            if opened.len() > later {
                let (port, number) = opened.pop_front().unwrap();
                keeper.close(port, number, |r| r.2 = true, &mut sink).unwrap();
            }
            most = most.max(keeper.held());
        }
        let records = match keeper.keep {
            Keep::All => 0,
            Keep::Last { records } | Keep::Around { records, .. } => records,
        };
        let bound = keeper.held + keeper.ports.len() * records + later + 2;
        assert!(most <= bound, "{most} records held, {bound} are the bound");
        keeper
            .finish(&mut |r| -> Result<(), Infallible> {
                out.push(r);
                Ok(())
            })
            .unwrap();
        assert_eq!(keeper.held(), 0);
        out
    }

    fn numbers(out: &[Record]) -> Vec<u64> {
        out.iter().map(|r| r.0).collect()
    }

    #[test]
    fn a_ring_keeps_the_last_of_each_port() {
        let mut keeper = Keeper::new(Keep::Last { records: 2 }, 2);
        let arrivals: Vec<_> = [0, 0, 0, 1, 0, 1, 1].iter().zip(0..).map(|(port, at)| (*port, at, 9)).collect();
        assert_eq!(numbers(&through(&mut keeper, &arrivals, |_| false, 0)), [2, 4, 5, 6]);
        let rows: Vec<KeptRows> = keeper.rows().collect();
        assert_eq!((rows[0].seen, rows[0].kept, rows[1].seen, rows[1].kept), (4, 2, 3, 2));
    }

    /// What a remembered record takes is what `fanin check` reckons with, 72 B.
    #[test]
    fn a_record_in_a_ring_takes_72_bytes() {
        let bytes = std::mem::size_of::<Remembered<crate::QueueRow>>();
        assert_eq!(bytes, 72);
    }

    /// Two crossings whose times overlap, and a third while the queue stays above: no crossing.
    #[test]
    fn a_trigger_keeps_what_lies_around_it_once() {
        let keep = Keep::Around { above: Bytes(10), before: Span::from_ps(2), after: Span::from_ps(3), records: 100 };
        let queues = [0, 0, 0, 11, 12, 10, 11, 11, 11, 11, 30, 5, 0, 0, 0, 11];
        let arrivals: Vec<_> = queues.iter().zip(0..).map(|(queue, at)| (0, at, *queue)).collect();
        let mut keeper = Keeper::new(keep, 1);
        let kept = numbers(&through(&mut keeper, &arrivals, |_| false, 0));
        // Crossings at 3 (1 to 6), 6 (4 to 9), 15 (13 on).
        assert_eq!(kept, [1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 14, 15]);
        assert_eq!(keeper.rows().next(), Some(KeptRows { seen: 16, kept: 12, crossings: 3, cut_short: 0 }));
    }

    #[test]
    fn a_memory_that_is_too_short_is_reported() {
        let keep = Keep::Around { above: Bytes(10), before: Span::from_ps(9), after: Span::ZERO, records: 3 };
        let arrivals: Vec<_> = (0..8).map(|at| (0, at, if at == 7 { 11 } else { 0 })).collect();
        let mut keeper = Keeper::new(keep, 1);
        assert_eq!(numbers(&through(&mut keeper, &arrivals, |_| false, 0)), [4, 5, 6, 7]);
        assert_eq!(keeper.rows().next(), Some(KeptRows { seen: 8, kept: 4, crossings: 1, cut_short: 1 }));
    }

    /// The first record stays open for good; the others do not wait for it for ever.
    #[test]
    fn a_record_that_is_never_closed_does_not_hold_the_rest() {
        let arrivals: Vec<_> = (0..1_000).map(|at| (0, at, 0)).collect();
        let mut keeper = Keeper::holding(Keep::All, 1, 64);
        let out = through(&mut keeper, &arrivals, |i| i == 0, 1);
        assert_eq!(out.len(), 1_000);
        assert_eq!(out[0].0, 1, "the open one is set aside");
        assert_eq!(out.iter().filter(|r| !r.2).count(), 1);
        assert!(out.windows(2).filter(|w| w[0].0 > w[1].0).count() <= 2);
    }

    #[test]
    fn records_pass_where_nothing_waits_and_nothing_is_chosen() {
        let place = |at| (Time::from_ps(at), Bytes(0));
        let mut all = Keeper::new(Keep::All, 2);
        assert!(all.lets_pass(1));
        let mut out = Vec::new();
        let mut sink = |r: u64| -> Result<(), Infallible> {
            out.push(r);
            Ok(())
        };
        let number = all.push(0, place(1), (1, true), &mut sink).unwrap();
        assert_eq!(number, 1, "the one that passed has a number");
        assert!(!all.lets_pass(1), "an open record is before it");
        all.push(1, place(2), (2, false), &mut sink).unwrap();
        all.close(0, number, |_| (), &mut sink).unwrap();
        all.finish(&mut sink).unwrap();
        assert!(all.lets_pass(0));
        assert_eq!(out, [1, 2]);
        assert_eq!(all.rows().map(|rows| (rows.seen, rows.kept)).collect::<Vec<_>>(), [(2, 2), (2, 2)]);
        let around = Keep::Around { above: Bytes(9), before: Span::ZERO, after: Span::ZERO, records: 1 };
        assert!(!Keeper::<u64>::new(around, 1).lets_pass(0));
        assert!(!Keeper::<u64>::new(Keep::Last { records: 1 }, 1).lets_pass(0));
    }

    #[test]
    fn what_the_sink_refuses_is_not_taken_for_given() {
        let mut keeper = Keeper::new(Keep::Last { records: 4 }, 1);
        for i in 0..4 {
            keeper.push(0, (Time::from_ps(i), Bytes(0)), (i, false), &mut |_| Err(())).unwrap();
        }
        let mut left = 2;
        let failed = keeper.finish(&mut |_| {
            if left == 0 {
                Err(())
            } else {
                left -= 1;
                Ok(())
            }
        });
        assert_eq!(failed, Err(()));
        let mut rest = Vec::new();
        keeper
            .finish(&mut |r| -> Result<(), ()> {
                rest.push(r);
                Ok(())
            })
            .unwrap();
        assert_eq!(rest, [3]);
    }

    /// What a rule keeps, by its definition, from the whole series.
    fn by_definition(keep: Keep, ports: usize, arrivals: &[(usize, u64, u64)]) -> Vec<u64> {
        let mut kept = Vec::new();
        for port in 0..ports {
            let own: Vec<(u64, u64, u64)> =
                arrivals.iter().zip(0..).filter(|(a, _)| a.0 == port).map(|(a, i)| (i, a.1, a.2)).collect();
            match keep {
                Keep::All => kept.extend(own.iter().map(|r| r.0)),
                Keep::Last { records } => kept.extend(own.iter().rev().take(records).map(|r| r.0)),
                Keep::Around { above, before, after, .. } => {
                    let crossing = |i: usize| own[i].2 > above.get() && (i == 0 || own[i - 1].2 <= above.get());
                    let at: Vec<u64> = (0..own.len()).filter(|i| crossing(*i)).map(|i| own[i].1).collect();
                    let around = |t: u64| at.iter().any(|c| t + before.ps() >= *c && t <= c + after.ps());
                    // A record of the crossing's very time that came before it counts as before.
                    kept.extend(own.iter().filter(|r| around(r.1)).map(|r| r.0));
                }
            }
        }
        kept.sort_unstable();
        kept
    }

    fn rules() -> impl Strategy<Value = Keep> {
        prop_oneof![
            Just(Keep::All),
            (1_usize..20).prop_map(|records| Keep::Last { records }),
            (0_u64..20, 0_u64..40, 0_u64..40).prop_map(|(above, before, after)| Keep::Around {
                above: Bytes(above),
                before: Span::from_ps(before),
                after: Span::from_ps(after),
                records: 10_000,
            }),
        ]
    }

    proptest! {
        /// Several ports, records open for a while: what is kept is what the rule says, once, in order, closed.
        #[test]
        fn what_is_kept_is_what_the_rule_says(
            keep in rules(),
            steps in prop::collection::vec((0_usize..3, 0_u64..6, 0_u64..25), 1..300),
            every in 1_u64..5,
            later in 0_usize..20,
        ) {
            let mut now = 0;
            let arrivals: Vec<_> = steps.iter().map(|(port, step, queue)| { now += step; (*port, now, *queue) }).collect();
            let mut keeper = Keeper::holding(keep, 3, 400);
            let out = through(&mut keeper, &arrivals, |i| i % every == 0, later);
            prop_assert_eq!(numbers(&out), by_definition(keep, 3, &arrivals));
            prop_assert!(out.iter().filter(|r| !r.2).count() <= later, "closed records were changed");
            prop_assert_eq!(keeper.rows().map(|r| r.kept).sum::<u64>(), out.len() as u64);
            prop_assert_eq!(keeper.rows().map(|r| r.seen).sum::<u64>(), arrivals.len() as u64);
        }

        /// With little room: each record at most once, those of a port in order but for the ones that were open too long, and
        /// never more in memory than promised (`through` checks that).
        #[test]
        fn little_room_loses_order_and_nothing_else(
            keep in rules(),
            steps in prop::collection::vec((0_usize..3, 0_u64..6, 0_u64..25), 1..300),
            later in 0_usize..20,
        ) {
            let mut now = 0;
            let arrivals: Vec<_> = steps.iter().map(|(port, step, queue)| { now += step; (*port, now, *queue) }).collect();
            let keep = match keep {
                Keep::Around { above, before, after, .. } => Keep::Around { above, before, after, records: 7 },
                other => other,
            };
            let mut keeper = Keeper::holding(keep, 3, 16);
            let out = through(&mut keeper, &arrivals, |i| i % 7 == 0, later);
            let mut once = numbers(&out);
            once.sort_unstable();
            once.dedup();
            prop_assert_eq!(once.len(), out.len());
            for port in 0..3 {
                let own: Vec<u64> = out.iter().filter(|r| r.1 == port && r.0 % 7 != 0).map(|r| r.0).collect();
                prop_assert!(own.is_sorted(), "{own:?}");
            }
            let expected = by_definition(keep, 3, &arrivals);
            prop_assert!(once.iter().all(|n| expected.contains(n)));
            if !matches!(keep, Keep::Around { .. }) {
                prop_assert_eq!(once, expected);
            }
        }
    }
}
