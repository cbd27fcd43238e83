use super::*;
use crate::tests::{packet, view};
use crate::PortView;
use fanin_units::QueueClass;
use proptest::prelude::*;
use std::collections::VecDeque;

const MS: u64 = 1_000_000_000;

fn params() -> CodelParams {
    CodelParams { target: Span::from_ms(5), interval: Span::from_ms(100), mtu: Bytes(1518), ecn: false, ce_threshold: None }
}

fn at(ps: u64) -> Time {
    Time::from_ps(ps)
}

/// A packet's turn in class `class` at `now`, after waiting for `waited`, with `behind` bytes behind it.
fn turn(codel: &mut Codel, class: u8, now: u64, waited: Span, behind: u64, ecn: Ecn) -> MarkVerdict {
    let port = PortView { now: at(now), free_at: at(now), ..view(50) };
    codel.on_head(&Head { port, class: QueueClass(class), class_bytes: behind + 1518, waited }, &packet(1518, ecn))
}

/// The turns from `from` on, one each `step`, at which a long queue loses a packet or has it marked, until `until` \[ps\].
fn acts(codel: &mut Codel, (from, until, step): (u64, u64, u64), waited: Span, ecn: Ecn) -> Vec<u64> {
    let mut acts = Vec::new();
    let mut now = from;
    while now < until {
        match turn(codel, 0, now, waited, 100_000, ecn) {
            MarkVerdict::Pass => now += step,
            MarkVerdict::Drop(_) => acts.push(now), // the next one's turn is at once
            MarkVerdict::Mark(_) => {
                acts.push(now);
                now += step;
            }
            MarkVerdict::Undecided => unreachable!("CoDel asks nobody"),
        }
    }
    acts
}

/// The first packet goes an interval after the wait has passed the target, the n-th of the series interval/√(n−1) after the
/// time of the one before. Source: RFC 8289 §5.5, §5.6. Turns are a microsecond apart, and each drop is the first turn at or
/// after its time.
#[test]
fn drops_follow_the_control_law() {
    let step = MS / 1_000;
    let mut codel = Codel::new(&params());
    let drops = acts(&mut codel, (7 * MS, 2_000 * MS, step), Span::from_ms(6), Ecn::NotEct);
    // "After" an interval: the first turn later than 107 ms.
    let first = 107 * MS + step;
    assert_eq!(drops[0], first);
    let mut law = first;
    for (n, drop) in (1u32..).zip(&drops[1..]) {
        law += (1e11 / f64::from(n).sqrt()) as u64;
        assert_eq!(*drop, (law - 7 * MS).div_ceil(step) * step + 7 * MS, "drop {n}");
    }
    // Σ 1/√i up to n grows as 2√n − 1.46: 1.893 s are 18.93 intervals.
    assert_eq!(drops.len(), 104);
    println!("CoDel: {} drops in {} intervals", drops.len(), (2_000 * MS - first) as f64 / 1e11);
}

/// ECN-capable packets are marked at the same times at which others are dropped, and not dropped.
#[test]
fn with_ecn_the_same_turns_are_marked() {
    let range = (7 * MS, 2_000 * MS, MS / 1_000);
    let drops = acts(&mut Codel::new(&params()), range, Span::from_ms(6), Ecn::Ect0);
    let mut marking = Codel::new(&CodelParams { ecn: true, ..params() });
    assert_eq!(acts(&mut marking, range, Span::from_ms(6), Ecn::Ect0), drops);
    assert_eq!(marking.classes[0].count, 104);
    let mut other = Codel::new(&CodelParams { ecn: true, ..params() });
    assert_eq!(acts(&mut other, range, Span::from_ms(6), Ecn::NotEct), drops);
    assert_eq!(turn(&mut other, 0, 2_100 * MS, Span::from_ms(6), 9_000, Ecn::NotEct), MarkVerdict::Drop(DROP));
    assert_eq!(turn(&mut marking, 0, 2_100 * MS, Span::from_ms(6), 9_000, Ecn::Ce), MarkVerdict::Mark(MARK));
}

/// Below the target, or with a packet or less behind it, nothing is dropped and the interval begins anew.
#[test]
fn a_short_wait_or_a_short_queue_ends_it() {
    for (waited, behind, goes_on) in
        [(5 * MS, 1519, true), (5 * MS - 1, 100_000, false), (9 * MS, 1518, false), (9 * MS, 0, false)]
    {
        let mut codel = Codel::new(&params());
        assert_eq!(turn(&mut codel, 0, 0, Span::from_ms(6), 100_000, Ecn::NotEct), MarkVerdict::Pass);
        assert_eq!(turn(&mut codel, 0, 100 * MS, Span::from_ps(waited), behind, Ecn::NotEct), MarkVerdict::Pass);
        let verdict = turn(&mut codel, 0, 100 * MS + 1, Span::from_ms(6), 100_000, Ecn::NotEct);
        assert_eq!(verdict == MarkVerdict::Drop(DROP), goes_on, "{waited} {behind}");
    }
}

/// A series that begins soon after another goes on with the number that the other had gained; later it begins with one.
/// Source: RFC 8289 §5.5; Linux codel_dequeue (count − lastcount, 16 intervals).
#[test]
fn a_new_series_begins_where_the_last_one_was() {
    for (pause, count) in [(1, 6), (15, 6), (17, 1)] {
        let mut codel = Codel::new(&params());
        let drops = acts(&mut codel, (0, 480 * MS, MS), Span::from_ms(6), Ecn::NotEct);
        let state = codel.classes[0];
        assert_eq!((drops.len(), state.count, state.lastcount), (7, 7, 1));
        let (drop_next, now) = (state.drop_next.ps(), 480 * MS);
        assert_eq!(turn(&mut codel, 0, now, Span::from_ms(4), 9_000, Ecn::NotEct), MarkVerdict::Pass);
        assert!(!codel.classes[0].dropping);
        // It passes the target again such that the next drop is `pause` intervals after the one that was due.
        let again = drop_next + pause * 100 * MS;
        assert_eq!(turn(&mut codel, 0, again - 100 * MS - 1, Span::from_ms(6), 9_000, Ecn::NotEct), MarkVerdict::Pass);
        assert_eq!(turn(&mut codel, 0, again, Span::from_ms(6), 9_000, Ecn::NotEct), MarkVerdict::Drop(DROP));
        let state = codel.classes[0];
        assert_eq!((state.count, state.lastcount), (count, count), "{pause}");
        assert_eq!(state.drop_next, at(again + (1e11 / f64::from(count).sqrt()) as u64));
        // The packet behind it is sent.
        assert_eq!(turn(&mut codel, 0, again, Span::from_ms(6), 9_000, Ecn::NotEct), MarkVerdict::Pass);
    }
}

/// `ce_threshold` marks by the wait alone, strictly above, with and without `ecn`, whatever waits behind.
#[test]
fn the_threshold_marks_by_the_wait_alone() {
    for ecn in [false, true] {
        let ce_threshold = Some(Span::from_ms(1));
        let mut codel = Codel::new(&CodelParams { ecn, ce_threshold, ..params() });
        let mut verdict = |waited, ect| turn(&mut codel, 0, 0, Span::from_ps(waited), 0, ect);
        assert_eq!(verdict(MS, Ecn::Ect0), MarkVerdict::Pass);
        assert_eq!(verdict(MS + 1, Ecn::Ect0), MarkVerdict::Mark(MARK_BY_WAIT));
        assert_eq!(verdict(MS + 1, Ecn::Ect1), MarkVerdict::Mark(MARK_BY_WAIT));
        assert_eq!(verdict(MS + 1, Ecn::NotEct), MarkVerdict::Pass);
    }
    let with = |params: CodelParams| Codel::new(&params).params;
    assert!(Codel::marks(&with(CodelParams { ce_threshold: Some(Span::ZERO), ..params() })) && !Codel::marks(&params()));
}

/// Classes have their own intervals and series. Source: RFC 8289 §4.4.
#[test]
fn classes_know_nothing_of_each_other() {
    let mut codel = Codel::new(&params());
    let long = Span::from_ms(6);
    assert_eq!(turn(&mut codel, 1, 0, long, 9_000, Ecn::NotEct), MarkVerdict::Pass);
    assert_eq!(turn(&mut codel, 0, 101 * MS, long, 9_000, Ecn::NotEct), MarkVerdict::Pass);
    assert_eq!(turn(&mut codel, 1, 101 * MS, long, 9_000, Ecn::NotEct), MarkVerdict::Drop(DROP));
    assert_eq!(turn(&mut codel, 0, 102 * MS, Span::ZERO, 9_000, Ecn::NotEct), MarkVerdict::Pass);
    assert!(codel.classes[1].dropping && !codel.classes[0].dropping);
}

#[test]
fn a_target_that_is_no_part_of_the_interval_is_warned_of() {
    for (ms, warned) in [(99, false), (100, true)] {
        let mut cx = Cx::new();
        Codel::check(&CodelParams { target: Span::from_ms(ms), ..params() }, &mut cx);
        assert_eq!(cx.into_problems().len(), usize::from(warned));
    }
}

/// CoDel as a loop over its own queue, as the kernel and the RFC have it: one call sends one packet. With an exact root.
/// Source: Linux codel_dequeue, codel_should_drop.
struct Reference {
    params: CodelParams,
    queue: VecDeque<(u64, u16, Ecn)>,
    first_above_time: u64,
    drop_next: u64,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

impl Reference {
    fn backlog(&self) -> u64 {
        self.queue.iter().map(|(_, frame, _)| u64::from(*frame)).sum()
    }

    fn should_drop(&mut self, now: u64, packet: Option<&(u64, u16, Ecn)>) -> bool {
        let Some((joined, ..)) = packet else {
            self.first_above_time = 0;
            return false;
        };
        if now - joined < self.params.target.ps() || self.backlog() <= self.params.mtu.0 {
            self.first_above_time = 0;
            return false;
        }
        if self.first_above_time == 0 {
            self.first_above_time = now + self.params.interval.ps();
            return false;
        }
        now > self.first_above_time
    }

    fn law(&self, from: u64) -> u64 {
        from + (self.params.interval.ps() as f64 / f64::from(self.count).sqrt()) as u64
    }

    fn markable(&self, packet: &(u64, u16, Ecn)) -> bool {
        self.params.ecn && packet.2 != Ecn::NotEct
    }

    /// What became of the packets whose turn it was: joined, dropped, marked.
    fn dequeue(&mut self, now: u64) -> Vec<(u64, bool, bool)> {
        let mut gone = Vec::new();
        let mut marked = false;
        let mut packet = self.queue.pop_front();
        let Some(first) = packet else {
            self.dropping = false;
            return gone;
        };
        let drop = self.should_drop(now, Some(&first));
        if self.dropping {
            if !drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                let head = packet.expect("a dropping queue is not empty");
                if self.markable(&head) {
                    marked = true;
                    self.drop_next = self.law(self.drop_next);
                    break;
                }
                gone.push((head.0, true, false));
                packet = self.queue.pop_front();
                if self.should_drop(now, packet.as_ref()) {
                    self.drop_next = self.law(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if drop {
            if self.markable(&first) {
                marked = true;
            } else {
                gone.push((first.0, true, false));
                packet = self.queue.pop_front();
                self.should_drop(now, packet.as_ref());
            }
            self.dropping = true;
            let delta = self.count - self.lastcount;
            let recent = (now as i64) - (self.drop_next as i64) < 16 * self.params.interval.ps() as i64;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.lastcount = self.count;
            self.drop_next = self.law(now);
        }
        if let Some((joined, _, ecn)) = packet {
            let late = self.params.ce_threshold.is_some_and(|threshold| now - joined > threshold.ps());
            gone.push((joined, false, marked || (late && ecn != Ecn::NotEct)));
        }
        gone
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    /// Asked packet by packet, the policy does what the loop does, with bursts, idle times, and every mixture of packets.
    #[test]
    fn packet_by_packet_it_is_the_loop_of_the_kernel(
        ops in prop::collection::vec((0..30u32, 64..1519u16, 0..3u8, 1..400_000u64), 50..600),
        ecn in any::<bool>(),
        threshold in prop::option::of(0..30_000u64),
        target in 1..5_000u64,
        mtu in prop::sample::select(vec![64u64, 1518, 4000]),
    ) {
        let params = CodelParams {
            target: Span::from_ns(target),
            interval: Span::from_us(20),
            mtu: Bytes(mtu),
            ecn,
            ce_threshold: threshold.map(Span::from_ns),
        };
        let mut codel = Codel::new(&params);
        let mut reference = Reference {
            params: params.clone(), queue: VecDeque::new(), first_above_time: 0, drop_next: 0, count: 0, lastcount: 0, dropping: false,
        };
        let mut queue = VecDeque::new();
        let (mut now, mut acted) = (1u64, 0);
        for (burst, frame, ecn, pause) in ops {
            let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ce][usize::from(ecn)];
            // A few packets, now and then many.
            for i in 0..(if burst > 26 { 40 } else { burst % 3 }) {
                reference.queue.push_back((now, frame, ecn));
                queue.push_back((now, frame, if i % 2 == 0 { ecn } else { Ecn::NotEct }));
                reference.queue.back_mut().expect("it was just put there").2 = queue[queue.len() - 1].2;
            }
            now += pause * 7;
            let expected = reference.dequeue(now);
            let mut gone = Vec::new();
            while let Some((joined, frame, ecn)) = queue.pop_front() {
                let behind: u64 = queue.iter().map(|(_, frame, _): &(u64, u16, Ecn)| u64::from(*frame)).sum();
                let port = PortView { now: at(now), free_at: at(now), ..view(1) };
                let head = Head { port, class: QueueClass::FIRST, class_bytes: behind + u64::from(frame), waited: Span::from_ps(now - joined) };
                let verdict = codel.on_head(&head, &packet(frame, ecn));
                let (dropped, marked) = (matches!(verdict, MarkVerdict::Drop(_)), matches!(verdict, MarkVerdict::Mark(_)));
                prop_assert!(!(marked && ecn == Ecn::NotEct));
                gone.push((joined, dropped, marked));
                if !dropped {
                    break;
                }
            }
            acted += gone.iter().filter(|(_, dropped, marked)| *dropped || *marked).count();
            prop_assert_eq!(&gone, &expected);
            prop_assert_eq!(queue.len(), reference.queue.len());
        }
        // Most cases drop or mark; that all do would be asking for a particular sequence.
        prop_assume!(acted > 0);
    }
}
