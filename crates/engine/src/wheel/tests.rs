use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[test]
fn same_time_events_come_in_slot_order_whatever_the_order_of_insertion() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [1, 0, 2], [0, 2, 1], [2, 0, 1]] {
        let mut wheel = Wheel::new(3, Span::from_us(1), Span::ZERO, Ties::BySlot, Ahead::NOTHING);
        order.iter().for_each(|&slot| wheel.set(slot, Time::from_ps(5_000)));
        let popped: Vec<u32> = std::iter::from_fn(|| wheel.pop_until::<false>(Time::MAX)).map(|(_, due)| due.slot).collect();
        assert_eq!(popped, [0, 1, 2]);
    }
}

#[test]
fn nothing_after_the_limit_is_popped() {
    let mut wheel = Wheel::new(2, Span::from_us(1), Span::ZERO, Ties::BySlot, Ahead::NOTHING);
    wheel.set(0, Time::from_ps(10));
    wheel.set(1, Time::from_ps(11));
    let mut pop = |limit| wheel.pop_until::<false>(Time::from_ps(limit)).map(|(time, due)| (time.ps(), due.slot));
    assert_eq!([pop(10), pop(10), pop(11)], [Some((10, 0)), None, Some((11, 1))]);
    assert!(wheel.is_empty());
}

/// A network that sorts all sequences of zeros and ones sorts all sequences.
#[test]
fn networks_sort() {
    for bits in 0..1u64 << ROOM {
        let keys: [u64; ROOM] = std::array::from_fn(|i| bits >> i & 1);
        let (mut six, mut eight) = (keys, keys);
        exchange(&mut six, SIX);
        exchange(&mut eight, EIGHT);
        assert!(six[..6].is_sorted() && six[6..] == keys[6..] && eight.is_sorted(), "{keys:?}");
    }
}

/// Of n events that fall due at the same times again and again, each is first as often as every other, and the order of
/// any two says nothing about a third.
#[test]
fn drawn_orders_favour_nobody() {
    let (n, rounds) = (6u32, 6_000u64);
    let mut wheel = Wheel::new(10, Span::from_us(1), Span::ZERO, Ties::Drawn { seed: 7, from: 4 }, Ahead::NOTHING);
    let (mut first, mut sorted) = ([0u32; 10], 0);
    for round in 1..=rounds {
        let at = Time::from_ps(round * 1_000_003);
        (0..10).rev().for_each(|slot| wheel.set(slot, at));
        let order: Vec<u32> = std::iter::from_fn(|| wheel.pop_until::<false>(at)).map(|(_, due)| due.slot).collect();
        assert_eq!(order[..4], [0, 1, 2, 3]);
        first[order[4] as usize] += 1;
        sorted += u32::from(order[4..7].is_sorted());
    }
    let expected = rounds as f64 / f64::from(n);
    for slot in 4..10 {
        assert!((f64::from(first[slot]) - expected).abs() < 4.0 * expected.sqrt(), "{first:?}");
    }
    assert!((f64::from(sorted) - 1_000.0).abs() < 4.0 * 30.0, "{sorted} of {rounds} are sorted, one in six is expected");
}

fn pop(wheel: &mut Wheel, ahead: bool, limit: Time) -> Option<(Time, Due)> {
    if ahead {
        wheel.pop_until::<true>(limit)
    } else {
        wheel.pop_until::<false>(limit)
    }
}

/// Many events of one time: more ranges than places, and many events whose places are not drawn.
#[test]
fn many_events_of_one_time_are_in_order() {
    for (slots, from) in [(13, 0), (100, 5), (100, 25), (100, 60), (1 << 14, 3), (40_000, 3), (300, 300)] {
        let ties = Ties::Drawn { seed: 11, from };
        let mut wheel = Wheel::new(slots, Span::from_us(1), Span::from_ns(10), ties, Ahead::NOTHING);
        let order = wheel.order;
        (0..slots as u32).rev().for_each(|slot| wheel.set(slot, Time::from_ps(1_234)));
        let popped: Vec<u32> = std::iter::from_fn(|| wheel.pop_until::<false>(Time::MAX)).map(|(_, due)| due.slot).collect();
        let mut expected: Vec<u32> = (0..slots as u32).collect();
        expected.sort_unstable_by_key(|slot| (order.place(1_234, *slot), *slot));
        assert_eq!(popped, expected, "{slots} slots, drawn from {from} on");
    }
}

proptest! {
    /// Against a sorted set: any mix of near, far, same-bucket and same-time events, any horizon, any limits.
    #[test]
    fn pops_in_total_order(
        horizon in 1u64..1 << 24,
        spacing in 0u64..1 << 16,
        drawn in any::<Option<(u64, u8)>>(),
        (events, span, known) in (0usize..6, 0u64..1 << 20, any::<bool>()),
        steps in prop::collection::vec((0u32..40, 0u64..1 << 26, any::<bool>(), 0u64..1 << 25), 1..400),
    ) {
        let ties = drawn.map_or(Ties::BySlot, |(seed, from)| Ties::Drawn { seed, from: u32::from(from % 40) });
        let mut wheel = Wheel::new(40, Span::from_ps(horizon), Span::from_ps(spacing), ties, Ahead { events, span: Span::from_ps(span) });
        let places = Wheel::new(1, Span::from_us(1), Span::ZERO, ties, Ahead::NOTHING);
        let key = |time: u64, slot: u32| places.order.place(time, slot);
        let mut model: BTreeSet<(u64, u64, u32)> = BTreeSet::new();
        let mut now = 0;
        for (slot, ahead, tiny, reach) in steps {
            if !model.iter().any(|&(_, _, s)| s == slot) {
                let time = now + if tiny { ahead % 7 } else { ahead };
                wheel.set(slot, Time::from_ps(time));
                model.insert((time, key(time, slot), slot));
            }
            // A note stays with its event, whatever is set before it.
            if let Some(due) = wheel.known().get_mut(slot as usize % 4) {
                prop_assert!(due.note == 0 || due.note == due.slot + 1);
                due.note = due.slot + 1;
            }
            prop_assert_eq!(wheel.next(), Time::from_ps(model.first().map_or(u64::MAX, |first| first.0)));
            let limit = now + reach;
            if let Some((time, due)) = pop(&mut wheel, known, Time::from_ps(limit)) {
                prop_assert!(due.note == 0 || due.note == due.slot + 1);
                let slot = due.slot;
                prop_assert_eq!(model.pop_first(), Some((time.ps(), key(time.ps(), slot), slot)));
                prop_assert!(time.ps() <= limit);
                now = time.ps();
            } else {
                prop_assert!(model.first().is_none_or(|&(time, ..)| time > limit));
            }
        }
        while let Some((time, slot)) = pop(&mut wheel, known, Time::MAX).map(|(time, due)| (time, due.slot)) {
            prop_assert_eq!(model.pop_first(), Some((time.ps(), key(time.ps(), slot), slot)));
        }
        prop_assert!(model.is_empty() && wheel.is_empty());
    }

    /// Many events at few times, some of them far ahead, over stretches in which nothing is set.
    #[test]
    fn overflow_buckets_and_long_gaps_keep_the_order(
        horizon in 1u64..1 << 22,
        drawn in any::<Option<u64>>(),
        ahead in any::<bool>(),
        rounds in prop::collection::vec((1u64..1 << 30, prop::collection::vec((0u64..3, 1usize..60), 1..4)), 1..12),
    ) {
        let ties = drawn.map_or(Ties::BySlot, |seed| Ties::Drawn { seed, from: 5 });
        let events = if ahead { 4 } else { 0 };
        let mut wheel = Wheel::new(200, Span::from_ps(horizon), Span::ZERO, ties, Ahead { events, span: Span::from_ps(horizon) });
        let places = Wheel::new(1, Span::from_us(1), Span::ZERO, ties, Ahead::NOTHING);
        let mut now = 0;
        for (silence, bursts) in rounds {
            let mut model = BTreeSet::new();
            let mut slots = 0u32..;
            for (part, size) in bursts {
                let time = now + silence + part * (silence / 3);
                for slot in slots.by_ref().take(size) {
                    wheel.set(slot, Time::from_ps(time));
                    model.insert((time, places.order.place(time, slot), slot));
                }
            }
            // Stops on the way, as timers make them.
            for limit in [now + silence / 2, now + silence, u64::MAX] {
                prop_assert_eq!(wheel.next(), Time::from_ps(model.first().map_or(u64::MAX, |first| first.0)));
                while let Some((time, due)) = pop(&mut wheel, ahead, Time::from_ps(limit.min(now + 2 * silence))) {
                    let first = model.pop_first();
                    prop_assert_eq!(first, Some((time.ps(), places.order.place(time.ps(), due.slot), due.slot)));
                }
                prop_assert!(model.first().is_none_or(|(time, ..)| *time > limit));
            }
            prop_assert!(wheel.is_empty());
            now += 2 * silence;
        }
    }
}
