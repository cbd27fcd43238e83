//! First pass over two captures: the offset of their clocks, and everything else that must be known before the queue can be
//! counted.

use super::coarse::Coarse;
use super::envelope::{Delay, Envelope};
use super::flight::Found;
use super::identity::{Match, Seen};
use super::matching::Take;
use super::rows::{Keeper, Rows};
use super::side::NEVER;
use super::{Files, Tick};
use crate::capture::Connections;
use crate::input::problem::Failure;
use crate::input::problem::Problems;
use fanin_units::{BitRate, BPS};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Number of packet sizes whose least delays are known each; further ones are taken together in steps of 64 B.
const SIZES: usize = 64;
/// Largest number of destinations that is counted.
const DESTINATIONS: usize = 1 << 16;
/// Largest drift of clocks that is believed, and the least that counts over the whole capture [ps].
const DRIFT: f64 = 1e-3;
const COUNTS: f64 = 3e6;
/// Error of calculation with floating point, at most [ps].
const ROUNDING: f64 = 0.01;
/// Largest difference of least delays in most parts of the time that shows no drift [ps].
const STEADY: f64 = COUNTS;
/// Packets in a row by which the port's speed is guessed.
const ROW: u64 = 64;

/// Alignment of the clocks of two captures, and figures that they have in common.
#[derive(Clone, Debug)]
pub struct Alignment {
    /// Origin of times, on the clock before [ps].
    zero: i128,
    shift: i128,
    /// Gain of the clock behind on that before; `drift_seen`: it could be measured, if only as none.
    pub drift: f64,
    pub drift_seen: bool,
    /// Least time between both captures, beyond `shift`, with the offset of the clocks [ps].
    least: f64,
    /// Time that a byte takes, if times behind are those of frames' ends; else 0 [ps].
    pub by_byte: f64,
    /// Least time of packets beyond that of all, by their size [ps].
    by_size: BTreeMap<u32, f64>,
    /// The longest that a packet waited, at most [ps].
    pub longest: i128,
    /// Largest number of places by which a packet left later than those that arrived behind it.
    pub late: u64,
    /// First and last time behind, on the clock before [ps].
    pub behind: (i128, i128),
    /// End of the capture before [ps], and the time at which the last packet of it was seen behind, on the clock there.
    pub before_ends: i128,
    pub last_match: i128,
    /// Longest time from one capture to the other, by their clocks [ps].
    pub latest: i128,
    /// The speed of packets in a row before and behind, at most [bit/s].
    pub paces: (f64, f64),
    /// Steps in which times are, the coarser of both captures [ps].
    pub tick: Option<u64>,
    /// Hosts that packets behind go to; none: more than are distinguished, or rewritten.
    pub destinations: Option<BTreeSet<u64>>,
    /// The port's speed, as far as gaps behind show it [bit/s].
    pub rate: f64,
    /// Least delay in each of up to 32 parts of the time, beyond the least of all [ps].
    pub above: Vec<f64>,
}

impl Alignment {
    /// Time at which a packet of so many bytes began to leave, on the clock before [ps].
    pub fn left(&self, behind: i128, bytes: u32) -> i128 {
        let since = float(behind - self.shift - self.zero);
        let apart = self.least + self.by_byte * f64::from(bytes) + self.drift * since;
        // Never too early by rounding, or the quickest packets would leave before they arrive.
        behind - self.shift - floor(apart + ROUNDING)
    }

    /// Least time of a packet of so many bytes, beyond that of all [ps]: its time on links, up to two of them.
    pub fn least_of(&self, bytes: u32) -> i64 {
        let known = self.by_size.get(&bytes).or_else(|| self.by_size.get(&bytes.next_multiple_of(64)));
        let most = if self.rate > 0.0 { 2.0 * f64::from(bytes) * BPS / self.rate } else { 0.0 };
        known.map_or(0, |more| more.clamp(0.0, most) as i64)
    }

    /// Lead of the clock behind over that before at the start, with the time between both captures [ps].
    pub fn offset(&self) -> i128 {
        self.shift + self.least as i128
    }
}

/// A number of picoseconds as a float, by the processor's own conversion where it has one: times within half a year.
pub fn float(ps: i128) -> f64 {
    i64::try_from(ps).map_or(ps as f64, |ps| ps as f64)
}

/// The whole number of picoseconds below a float, by the processor's own conversion where it has one.
fn floor(ps: f64) -> i128 {
    if ps.abs() < 9e18 {
        let whole = ps as i64;
        i128::from(whole) - i128::from(whole as f64 > ps)
    } else {
        ps as i128
    }
}

/// The speed that packets show which follow one another.
#[derive(Debug, Default)]
struct Pace {
    since: i128,
    bytes: u64,
    packets: u64,
    most: f64,
}

impl Pace {
    fn left(&mut self, seen: &Seen) {
        if self.packets > 0 {
            self.bytes += u64::from(seen.bytes);
        } else {
            self.since = seen.time;
        }
        self.packets += 1;
        if self.packets == ROW {
            let time = (seen.time - self.since) as f64;
            if time > 0.0 {
                self.most = self.most.max(self.bytes as f64 * BPS / time);
            }
            *self = Pace { since: seen.time, packets: 1, most: self.most, bytes: 0 };
        }
    }
}

/// Counts of the first pass.
struct Pass {
    zero: i128,
    shift: i128,
    sizes: BTreeMap<u32, Envelope>,
    matched: bool,
    pace: Pace,
    pace_before: Pace,
    before_ends: i128,
    last_match: i128,
    behind: Option<(i128, i128)>,
    destinations: Option<BTreeSet<u64>>,
    /// Host that the last packet behind went to.
    destination: Option<u64>,
    keep: [Keeper; 2],
}

impl Take for Pass {
    fn before(&mut self, seen: &Seen) {
        self.pace_before.left(seen);
        self.before_ends = seen.time;
        self.keep[0].push(seen, None);
    }

    fn behind(&mut self, seen: &Seen, found: Option<&Found<u32>>) {
        self.keep[1].push(seen, found.map(Found::partner));
        self.pace.left(seen);
        let (first, _) = *self.behind.get_or_insert((seen.time, seen.time));
        self.behind = Some((first, seen.time));
        if self.destination != Some(seen.hosts.1) {
            self.destination = Some(seen.hosts.1);
            if let Some(there) = &mut self.destinations {
                there.insert(seen.hosts.1);
                if there.len() > DESTINATIONS {
                    self.destinations = None;
                }
            }
        }
        let Some(Found { time, what: bytes, .. }) = found.copied() else { return };
        self.last_match = seen.time;
        // Times count from the first packet that both have, however long one capture began before the other.
        if !std::mem::replace(&mut self.matched, true) {
            self.zero = seen.time - self.shift;
        }
        let delay = seen.time - self.shift - time;
        let (Ok(at), Ok(delay)) = (i64::try_from(seen.time - self.shift - self.zero), i64::try_from(delay)) else { return };
        let point = Delay { time: at.max(0), delay, bytes };
        if let Some(envelope) = self.sizes.get_mut(&bytes) {
            envelope.add(point);
        } else {
            let size = if self.sizes.len() < SIZES { bytes } else { bytes.next_multiple_of(64) };
            self.sizes.entry(size).or_default().add(point);
        }
    }
}

/// Findings of the first reading.
pub struct Aligned {
    pub alignment: Alignment,
    /// Connections of the captures before.
    pub connections: Connections,
    /// The packets of both sides, where there was room for them.
    pub rows: Option<[Arc<Rows>; 2]>,
}

/// Reads both captures.
///
/// # Errors
/// They cannot be read, or were stopped.
pub fn align(
    files: &Files,
    coarse: &Coarse,
    (rate, transfers): (Option<BitRate>, bool),
    tick: Tick<'_>,
) -> Result<Aligned, Failure> {
    let mut matching = files.matching(coarse);
    matching.before.connections = Some(Connections::new(transfers));
    let mut pass = Pass {
        zero: matching.before.peek()?.unwrap_or(0),
        shift: coarse.shift,
        sizes: BTreeMap::new(),
        matched: false,
        pace: Pace::default(),
        pace_before: Pace::default(),
        before_ends: NEVER,
        last_match: NEVER,
        behind: None,
        destinations: (coarse.matching <= Match::InnerFlow).then(BTreeSet::new),
        destination: None,
        keep: [Keeper::default(), Keeper::default()],
    };
    let mut steps = 0_u64;
    while matching.step(&mut pass)? {
        steps += 1;
        if steps % 8_192 == 0 && !tick(matching.progress() / 2.0) {
            return Err(Failure::Stopped);
        }
    }
    let late = matching.late();
    let (mut before, behind) = (matching.before, matching.behind);
    let ambiguous = [before.ambiguous("before_interface"), behind.ambiguous("behind_interface")];
    let problems: Problems = ambiguous.into_iter().flatten().collect();
    if !problems.is_empty() {
        return Err(problems.into());
    }
    let tick = [&before, &behind].into_iter().filter_map(|side| side.passed.grain.step()).max();
    let connections = before.connections.take().unwrap_or_default();
    let [kept_before, kept_behind] = std::mem::take(&mut pass.keep);
    let rows = kept_before.finish(before.passed).zip(kept_behind.finish(behind.passed)).map(<[_; 2]>::from);
    Ok(Aligned { alignment: Alignment { tick, late, ..pass.finish(rate) }, connections, rows })
}

impl Pass {
    fn finish(self, rate: Option<BitRate>) -> Alignment {
        let rate = rate.map_or(self.pace.most, |rate| rate.bps() as f64);
        let frequent = self.sizes.values().max_by_key(|envelope| envelope.points());
        let whole = self.sizes.values().map(Envelope::until).max().unwrap_or(0);
        let seen = frequent.and_then(|envelope| drift_of(envelope, whole));
        let drift = seen.unwrap_or(0.0);
        let by_byte = self.by_byte(drift, rate);
        let least = |envelope: &Envelope| envelope.least(drift).map(|(delay, bytes)| delay - by_byte * f64::from(bytes));
        let first = self.sizes.values().filter_map(least).min_by(f64::total_cmp).unwrap_or(0.0);
        let by_size = self.sizes.iter().filter_map(|(size, envelope)| Some((*size, least(envelope)? - first))).collect();
        let most = self.sizes.values().filter_map(Envelope::most).max().unwrap_or(0);
        let slant = drift.abs() * whole as f64;
        let above = frequent.map(|envelope| {
            let own = envelope.least(drift).map_or(0.0, |(delay, _)| delay);
            envelope.by_part(drift).into_iter().map(|delay| delay - own).collect()
        });
        let mut alignment = Alignment {
            zero: self.zero,
            shift: self.shift,
            drift,
            drift_seen: seen.is_some(),
            least: first,
            by_byte,
            by_size,
            longest: (most as f64 - first + slant).max(0.0) as i128 + 1,
            late: 0,
            behind: (0, 0),
            before_ends: self.before_ends,
            last_match: self.last_match,
            latest: self.shift + i128::from(most),
            paces: (self.pace_before.most, self.pace.most),
            tick: None,
            destinations: self.destinations,
            rate,
            above: above.unwrap_or_default(),
        };
        let (first, last) = self.behind.unwrap_or_default();
        alignment.behind = (alignment.left(first, 0), alignment.left(last, 0));
        alignment
    }

    /// Time that a byte takes, where times behind are those of frames' ends: large packets then need longer than small ones, even
    /// when nothing is in front of them [ps].
    fn by_byte(&self, drift: f64, rate: f64) -> f64 {
        let Some((_, large)) = self.sizes.iter().max_by_key(|(_, envelope)| envelope.points()) else { return 0.0 };
        let Some(small) = self.sizes.values().next() else { return 0.0 };
        let (Some(large), Some(small)) = (large.least(drift), small.least(drift)) else { return 0.0 };
        if rate <= 0.0 || large.1 < small.1 + 256 {
            return 0.0;
        }
        let byte = BPS / rate;
        let share = (large.0 - small.0) / (f64::from(large.1 - small.1) * byte);
        if (0.6..1.5).contains(&share) {
            byte
        } else {
            0.0
        }
    }
}

/// Drift of the clocks, where the least delays show it: in most parts of the time they must lie near one line. None: too little passes
/// without waiting. `whole`: time in which packets of any size passed [ps].
fn drift_of(envelope: &Envelope, whole: i64) -> Option<f64> {
    let middle = |drift: f64| {
        let mut parts = envelope.by_part(drift);
        parts.sort_by(f64::total_cmp);
        // But for the least, which a single quick packet makes.
        (parts.len() >= 4).then(|| parts[parts.len() / 2] - parts[1])
    };
    let level = middle(0.0)?;
    let steady = (level < STEADY && envelope.reaches()).then_some(0.0);
    // Under one quick packet the nearest line is aslant: the parts of the time outvote it.
    let slopes = [envelope.slope(), envelope.slope_of_parts()];
    let believed = |slope: &f64| slope.abs() <= DRIFT && slope.abs() * (whole as f64) >= COUNTS;
    let tried = slopes.into_iter().flatten().filter(believed).filter_map(|slope| Some((middle(slope)?, slope)));
    let best = tried.min_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(scatter, _)| *scatter < level / 4.0).map(|(_, slope)| slope).or(steady)
}
