//! Rounds of a burst, for flows whose round trip is known.
//!
//! Round 1 of a flow are its packets that arrive before anything they caused can: before its first packet has left this queue and a
//! round trip of the idle network has passed. Round k + 1 begins with the next packet and lasts likewise. A burst's round k is that of
//! all its flows together (S-ECN fig. 6).
//!
//! What a flow sends at first, it sends at once, or paced over a round trip. So what of its round 1 comes after a pause of half a round trip
//! (and eight frames) is no part of its first window: a probe for losses, a retransmission, or, where the true round trip is shorter than the one that is
//! known, the second window. Such stragglers do not prolong the round.

use crate::bursts::series::Entry;
use crate::Round;
use std::collections::BTreeMap;

/// Largest number of rounds that are listed.
const MOST: usize = 64;

/// Times of a flow by which rounds are told apart.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Round trip of the flow, ps.
    pub rtt: u64,
    /// The flow was there before the burst.
    pub background: bool,
}

/// Part of a round trip for which a flow must pause to have sent its first window.
const PAUSE: u64 = 2;
/// Bytes whose time on the wire the pause must exceed as well: on its way a flow takes turns with others.
const TURNS: f64 = 8.0 * crate::bursts::scale::FULL_FRAME as f64;

/// First windows of the flows that were not there before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct First {
    /// Arrivals of the packets.
    times: Vec<u64>,
    bytes: u64,
    /// Size of the last packet.
    last: u64,
}

impl First {
    /// Arrival rate in bytes per ps, from the first arrival up to the last, without the last packet's bytes.
    pub fn rate(&self) -> Option<f64> {
        let time = self.times.last()?.saturating_sub(self.times[0]);
        (time > 0).then(|| (self.bytes - self.last) as f64 / time as f64)
    }

    /// Time at which 95 % of the first windows had arrived: a flow that comes late is not waited for.
    pub fn over(&self) -> Option<u64> {
        self.times.get((self.times.len() * 19).div_ceil(20).checked_sub(1)?).copied()
    }
}

struct State {
    clock: Clock,
    round: usize,
    until: u64,
    /// Time of the flow's last packet, and true while its first window goes on.
    last: u64,
    first: bool,
}

impl State {
    /// Takes a packet; true if it belongs to the first window.
    fn is_first(&mut self, now: u64, turns: u64) -> bool {
        self.first &= self.round == 1 && now - self.last <= turns.max(self.clock.rtt / PAUSE);
        self.last = now;
        self.first
    }
}

/// Rounds of the entries, which are the burst's first (`all`: and last) up to `end`. `drain`: ps per byte of queue.
pub fn rounds(
    entries: &[Entry],
    (end, all): (u64, bool),
    drain: f64,
    clock_of: &mut dyn FnMut(u32) -> Option<Clock>,
) -> (Vec<Round>, First) {
    let mut flows: BTreeMap<u32, Option<State>> = BTreeMap::new();
    let mut found: Vec<Round> = Vec::new();
    let mut ends: Vec<u64> = Vec::new();
    let mut first = First::default();
    let mut covered = end;
    let turns = (TURNS * drain) as u64;
    for entry in entries {
        let r = &entry.record;
        let now = r.time.ps();
        if now > end {
            break;
        }
        covered = now;
        if entry.slot == 0 {
            continue;
        }
        let state = flows
            .entry(entry.slot)
            .or_insert_with(|| clock_of(entry.slot).map(|clock| State { clock, round: 0, until: 0, last: now, first: true }));
        let Some(state) = state else { continue };
        let fresh = now >= state.until;
        if fresh {
            state.round += 1;
            let wait = if r.queue == crate::NO_QUEUE { 0.0 } else { r.queue as f64 * drain };
            state.until = now.saturating_add(wait as u64).saturating_add(state.clock.rtt);
        }
        let k = state.round;
        if k > MOST {
            continue;
        }
        if found.len() < k {
            found.push(Round { round: k as u32, start_ps: now, end_ps: now, flows: 0, packets: 0, bytes: 0 });
            ends.push(0);
        }
        let round = &mut found[k - 1];
        round.flows += u64::from(fresh);
        round.packets += 1;
        round.bytes += u64::from(r.frame);
        let first_window = state.is_first(now, turns);
        if k > 1 || first_window {
            round.end_ps = now;
        }
        ends[k - 1] = ends[k - 1].max(state.until);
        if first_window && !state.clock.background {
            first.times.push(now);
            first.bytes += u64::from(r.frame);
            first.last = u64::from(r.frame);
        }
    }
    if !all {
        // A round that may go on beyond what was kept is not reported.
        let whole = ends.iter().position(|&until| until > covered).unwrap_or(ends.len());
        found.truncate(whole);
    }
    (found, first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;
    use fanin_units::Time;

    fn entry(us: u64, queue: u64, slot: u32) -> Entry {
        Entry { record: Record { time: Time::from_ps(us * 1_000_000), queue, frame: 1000, flow: slot, flags: 0 }, slot }
    }

    #[test]
    fn a_round_lasts_until_its_first_packet_has_left_and_come_round() {
        // 8000 ps a byte (1 Gb/s), round trip 50 us. The first packet of flow 2 finds 10 kB: it leaves at 80 us, its
        // answer arrives at 131.
        // The packet at 24 us is one of flow 1's first window; that at 130 us is a straggler.
        let log = [(0, 0, 1), (1, 10_000, 2), (24, 0, 1), (50, 0, 1), (51, 0, 1), (130, 0, 2), (131, 0, 2)]
            .map(|(us, queue, flow)| entry(us, queue, flow));
        let mut clock = |_| Some(Clock { rtt: 50_000_000, background: false });
        let (found, first) = rounds(&log, (200_000_000, true), 8_000.0, &mut clock);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].packets, found[0].flows, found[0].end_ps), (4, 2, 24_000_000));
        assert_eq!((found[1].packets, found[1].flows, found[1].start_ps), (3, 2, 50_000_000));
        assert_eq!((first.times.len(), first.over()), (3, Some(24_000_000)));
        assert!((first.rate().unwrap() - 2000.0 / 24e6).abs() < 1e-12);
    }

    /// Nine flows of ten packets each; the tenth of each comes 10 ms later, and the second windows after 2.1 ms where the queue is short.
    #[test]
    fn stragglers_and_second_windows_do_not_prolong_the_first_round() {
        let mut log: Vec<Entry> = (0..81).map(|i| entry(i * 12, i * 1_000, 1 + i as u32 % 9)).collect();
        log.extend((0..40).map(|i| entry(2_100 + i * 80, 100_000, 1 + i as u32 % 9)));
        log.extend((0..9).map(|i| entry(10_000 + i * 12, 100_000, 1 + i as u32)));
        for rtt in [1_000_000_000, 2_000_000_000, 2_200_000_000] {
            let mut clock = |_| Some(Clock { rtt, background: false });
            let (found, first) = rounds(&log, (90_000_000_000, true), 80_000.0, &mut clock);
            assert_eq!((found[0].end_ps, first.times.len(), first.over()), (960_000_000, 81, Some(912_000_000)), "{rtt}");
        }
        // One flow in thirty that comes late is not waited for.
        let log: Vec<Entry> = (0..60).map(|us| entry(us, 0, 1 + us as u32 % 30)).chain([entry(700, 0, 31)]).collect();
        let mut clock = |_| Some(Clock { rtt: 60_000_000, background: false });
        assert_eq!(rounds(&log, (900_000_000, true), 8_000.0, &mut clock).1.over(), Some(57_000_000));
    }

    #[test]
    fn rounds_that_outlast_what_was_kept_are_not_reported() {
        let log = [entry(0, 0, 1), entry(60, 0, 1)];
        let mut clock = |_| Some(Clock { rtt: 50_000_000, background: false });
        assert_eq!(rounds(&log, (900_000_000, false), 8_000.0, &mut clock).0.len(), 1);
        assert_eq!(rounds(&log, (900_000_000, true), 8_000.0, &mut clock).0.len(), 2);
    }

    #[test]
    fn flows_without_a_round_trip_have_no_rounds() {
        let (found, first) = rounds(&[entry(0, 0, 1)], (1, true), 8_000.0, &mut |_| None);
        assert!(found.is_empty());
        assert_eq!((first.rate(), first.over()), (None, None));
    }
}
