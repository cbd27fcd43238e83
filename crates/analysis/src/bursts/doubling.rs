//! Slow start shown by rounds: the first windows of new flows are answered by windows of twice their size, which senders at a steady rate do not do.
//!
//! A flow in slow start sends a first window W at once and waits; when the acknowledgment of its first packet has come, it sends two packets
//! for each that is acknowledged. So its second round has 2·W packets, and they come further apart than those of the first, or after a pause.
//! A sender at a steady rate has neither: its rounds grow as much as the queue does, its packets stay as far apart as they were.
//!
//! Source: RFC 5681 §3.1; rounds as in [`crate::bursts::rounds`].

use crate::bursts::series::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// Smallest number of packets of a first window: with fewer their distance cannot be told.
const WINDOW: usize = 3;
/// Smallest number of packets of a first window where the round trip is not known, and a pause must show it.
const WINDOW_BY_PAUSE: usize = 4;
/// Pause after a first window, in mean gaps within it; and where nothing but the pause shows the round trip. (Gaps of random arrivals are 8
/// times as long as the mean of three before in one case of fifty.)
const PAUSE: f64 = 3.0;
const LONG_PAUSE: f64 = 8.0;
/// Factor by which packets of the second round are further apart, where there was no pause.
const APART: f64 = 2.0;
/// Packets of the second round for each of the first: two; half of the acknowledgments may be delayed, and windows cut by the round's border.
const TWICE: std::ops::RangeInclusive<f64> = 1.4..=2.7;
/// The round trip that a pause shows is the one that is known, to this factor.
const SAME: f64 = 2.0;

/// Number of flows whose first two rounds show that they began in slow start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doubling {
    /// Flows with a first window and a second round that can be told apart.
    pub looked: u64,
    /// Flows among those whose second round is twice the first.
    pub doubled: u64,
}

impl Doubling {
    /// Counts the flows `of` that doubled, by the burst's first `entries` up to `until`. `drain`: ps per byte of queue; `rtt_of`: the idle round trip, where known.
    pub fn of(
        entries: &[Entry],
        of: &BTreeSet<u32>,
        until: u64,
        drain: f64,
        rtt_of: &mut dyn FnMut(u32) -> Option<u64>,
    ) -> Doubling {
        let mut flows: BTreeMap<u32, Vec<(u64, f64)>> = BTreeMap::new();
        let inside = entries.iter().take_while(|entry| entry.record.time.ps() <= until);
        for entry in inside.filter(|entry| of.contains(&entry.slot)) {
            let r = &entry.record;
            let wait = if r.queue == crate::NO_QUEUE { 0.0 } else { r.queue as f64 * drain };
            flows.entry(entry.slot).or_default().push((r.time.ps(), wait));
        }
        let mut found = Doubling::default();
        for (slot, packets) in flows {
            if let Some(doubled) = doubles(&packets, until, rtt_of(slot)) {
                found.looked += 1;
                found.doubled += u64::from(doubled);
            }
        }
        found
    }

    /// True if most flows that could be judged doubled their window, and these are no small part of `all`.
    pub fn shows(&self, all: u64) -> bool {
        self.doubled > 0 && self.doubled * 2 >= self.looked && self.doubled * 4 >= all
    }
}

/// True if the flow with these packets (time, wait) doubled its first window; `None` where that cannot be told.
fn doubles(packets: &[(u64, f64)], until: u64, rtt: Option<u64>) -> Option<bool> {
    let (first, wait) = *packets.first()?;
    let at = |i: usize| (packets[i].0 - first) as f64;
    let gap = |i: usize| at(i) - at(i - 1);
    let mean = |i: usize| at(i - 1) / (i - 1) as f64;
    let known = rtt.map(|rtt| wait + rtt as f64);
    // The first pause, where it is about as long as the round trip says.
    let pause = (WINDOW_BY_PAUSE..packets.len()).find(|i| gap(*i) >= LONG_PAUSE * mean(*i));
    let pause = pause.filter(|i| known.is_none_or(|known| at(*i) <= SAME * known && at(*i) * SAME >= known));
    let second = match (pause, known) {
        (Some(i), _) => i,
        (None, Some(known)) => (1..packets.len()).find(|i| at(*i) >= known)?,
        // It sends on and on.
        (None, None) => return (packets.len() >= 4 * WINDOW_BY_PAUSE).then_some(false),
    };
    if second < WINDOW {
        return None;
    }
    let idle = if pause.is_some() { at(second) - wait } else { rtt? as f64 };
    let length = idle.max(0.0) + packets[second].1;
    let end = at(second) + length;
    if length <= 0.0 || first as f64 + end > until as f64 {
        return None;
    }
    let packets_of_second = (second..packets.len()).take_while(|i| at(*i) < end).count();
    let twice = TWICE.contains(&(packets_of_second as f64 / second as f64));
    let mean = mean(second);
    let slower = gap(second) >= PAUSE * mean || length / packets_of_second as f64 >= APART * mean;
    Some(twice && slower)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;
    use fanin_units::Time;

    /// Packets of 1000 B at [us], each with the queue that it finds; 8000 ps a byte (1 Gb/s).
    fn entries(of: &[(u64, u64, u32)]) -> Vec<Entry> {
        let entry = |&(us, queue, slot): &(u64, u64, u32)| Entry {
            record: Record { time: Time::from_ps(us * 1_000_000), queue, frame: 1000, flow: slot, flags: 0 },
            slot,
        };
        of.iter().map(entry).collect()
    }

    fn found(of: &[(u64, u64, u32)], rtt_us: Option<u64>) -> Doubling {
        let slots = of.iter().map(|p| p.2).collect();
        Doubling::of(&entries(of), &slots, 20_000_000_000, 8_000.0, &mut |_| rtt_us.map(|us| us * 1_000_000))
    }

    /// A port of 1 Gb/s (8 us a packet) and senders whose packets are acknowledged `rtt` us after they left: windows of `window` packets at
    /// first, `gap` us apart, then two for each acknowledgment (`slow_start`) or one every `gap` for ever.
    fn run(flows: u32, window: u64, gap: u64, rtt: u64, slow_start: bool) -> Vec<(u64, u64, u32)> {
        let mut events: std::collections::BTreeSet<(u64, u64, u32)> = std::collections::BTreeSet::new();
        let many = if slow_start { window } else { 400 };
        let mut number = 0;
        for flow in 0..flows {
            for packet in 0..many {
                number += 1;
                events.insert((packet * gap + u64::from(flow), number, flow + 1));
            }
        }
        let (mut free, mut all) = (0, Vec::new());
        while let Some((now, _, flow)) = events.pop_first() {
            if now > 3_000 {
                break;
            }
            free = now.max(free) + 8;
            all.push((now, (free - 8 - now) / 8 * 1000, flow));
            if slow_start {
                for _ in 0..2 {
                    number += 1;
                    events.insert((free + rtt, number, flow));
                }
            }
        }
        all
    }

    #[test]
    fn first_windows_that_are_answered_by_twice_as_much_are_found_with_and_without_the_round_trip() {
        for flows in [2, 6, 18] {
            let all = run(flows, 10, 2, 200, true);
            assert_eq!(found(&all, Some(200)), Doubling { looked: u64::from(flows), doubled: u64::from(flows) }, "{flows}");
        }
        for flows in [2, 6] {
            let all = run(flows, 10, 2, 400, true);
            assert_eq!(found(&all, None), Doubling { looked: u64::from(flows), doubled: u64::from(flows) }, "{flows}");
        }
    }

    #[test]
    fn senders_at_a_steady_rate_double_nothing_though_their_rounds_grow_with_the_queue() {
        // Two at the port's speed, four at half of it, ten at a fifth: the queue grows by the port's speed.
        for (flows, gap) in [(2, 8), (4, 16), (10, 40)] {
            let all = run(flows, 0, gap, 0, false);
            for rtt in [Some(50), Some(200), None] {
                let doubling = found(&all, rtt);
                assert!(doubling.doubled == 0 && !doubling.shows(u64::from(flows)), "{flows} {rtt:?}: {doubling:?}");
            }
        }
        // At random: exponential gaps from a fixed sequence.
        let mut state = 7_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64 + 1.0) / (1u64 << 53) as f64
        };
        let mut arrivals: Vec<(u64, u32)> = Vec::new();
        for flow in 1..=8 {
            let mut at = 0.0;
            while at < 3000.0 {
                at += -32.0 * libm::log(random());
                arrivals.push((at as u64, flow));
            }
        }
        arrivals.sort_unstable();
        let mut free = 0;
        let all: Vec<_> = arrivals
            .into_iter()
            .map(|(now, flow)| {
                free = now.max(free) + 8;
                (now, (free - 8 - now) / 8 * 1000, flow)
            })
            .collect();
        for rtt in [Some(100), Some(300), None] {
            let doubling = found(&all, rtt);
            assert!(!doubling.shows(8), "{rtt:?}: {doubling:?}");
        }
    }

    #[test]
    fn what_ends_too_early_says_nothing() {
        assert_eq!(found(&[(0, 0, 1), (1, 0, 1), (2, 0, 1), (3, 0, 1)], Some(200)), Doubling::default());
        assert_eq!(found(&[], None), Doubling::default());
    }
}
