//! First look at both captures: the identity by which packets match, the offset of the clocks, and the direction that leads to
//! the port.

use super::identity::Match;
use super::{Files, Tick};
use crate::input::problem::Failure;
use crate::input::problem::Problem;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Number of packets of one capture that are sought in the other, and number of matches that is enough.
const SAMPLE: usize = 1 << 16;
const ENOUGH: usize = 20_000;
/// Time that a packet may spend between both captures [ps].
pub const LONGEST: i128 = 10_000_000_000_000;
/// Pairs of hosts whose directions are compared, and packets of each.
const PAIRS: usize = 4_096;
const PACKETS: usize = 256;

/// Coarse match of two captures: the identity of packets, the shift of the clocks, and the directions.
#[derive(Clone, Debug)]
pub struct Coarse {
    pub matching: Match,
    /// Time behind less time before, nearly the least of it [ps].
    pub shift: i128,
    /// Hosts behind the port, as each side knows them; empty where all packets go one way.
    pub hosts: [Arc<BTreeSet<u64>>; 2],
    /// Packets towards the port, and packets the other way.
    pub ways: [Way; 2],
}

/// Packets of one direction that both captures have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Way {
    pub packets: u64,
    pub bytes: u64,
    /// The least and the most time from one capture to the other [ps].
    delays: Option<(i128, i128)>,
}

impl Way {
    fn add(&mut self, both: &Both) {
        self.packets += 1;
        self.bytes += u64::from(both.bytes);
        let (least, most) = self.delays.unwrap_or((both.delay, both.delay));
        self.delays = Some((least.min(both.delay), most.max(both.delay)));
    }

    /// Longest time between both captures beyond the least [ps].
    pub fn wait(&self) -> i128 {
        self.delays.map_or(0, |(least, most)| most - least)
    }
}

/// A packet that both captures have.
#[derive(Clone, Copy, Debug)]
struct Both {
    delay: i128,
    bytes: u32,
    before: (u64, u64),
    behind: (u64, u64),
}

struct Tried {
    both: Vec<Both>,
    /// Share of the packets that could have been found which were found.
    share: f64,
    /// True if a packet of either capture names a tenant of a tunnel.
    tenants: bool,
}

/// Looks for packets that are in both captures, and for the direction that enters the port.
///
/// # Errors
/// No packet is in both captures, or they cannot be read.
pub fn look(files: &Files, tick: Tick<'_>) -> Result<Coarse, Failure> {
    let mut best: Option<(Match, Tried)> = None;
    for matching in [Match::Flow, Match::InnerFlow, Match::Ports, Match::Contents] {
        // Where no packet names a tenant, both ask for the same.
        if matching == Match::InnerFlow && best.as_ref().is_some_and(|(_, tried)| !tried.tenants) {
            continue;
        }
        let found = attempt(files, matching, tick)?;
        let enough = found.share >= 0.5;
        // Captures that overlap little have few packets in common, however they are compared.
        if best.as_ref().is_none_or(|(_, most)| 2 * found.both.len() > 3 * most.both.len()) {
            best = Some((matching, found));
        }
        if enough {
            break;
        }
    }
    let none = || {
        let (before, behind) = (&files.before[0].file.path, &files.behind[0].file.path);
        if let [Some(from), Some(to)] = &files.places {
            let problem = Problem::new(format!("no packet crosses from interface '{}' to '{}'", from.interface, to.interface));
            return problem.file(before).column("before_interface, behind_interface").accepted(
                "interfaces of the capture, by name (eth0), number on the host (4) or place in the file (#0, #1): fanin analyze without these options \
                 lists them in a note",
            );
        }
        Problem::new(format!("no packet of it is in {}", behind.display()))
            .file(before)
            .accepted("captures of the same packets before and behind one port, at least 64 B of each frame")
            .suggestion("GSO and TSO make frames that never cross a wire: ethtool -K IF gso off tso off gro off")
    };
    let Some((matching, Tried { mut both, .. })) = best else { return Err(none().into()) };
    both.sort_unstable_by_key(|b| b.delay);
    let Some(median) = both.get(both.len() / 2).map(|b| b.delay) else { return Err(none().into()) };
    both.retain(|b| (b.delay - median).abs() <= LONGEST);
    let one_sided = files.places.iter().flatten().count() == 1;
    let (forward, hosts) = directions(&both, one_sided);
    let shift = both.iter().filter(|b| forward(b)).map(|b| b.delay).min().unwrap_or(median);
    let mut ways = [Way::default(); 2];
    both.iter().for_each(|b| ways[usize::from(!forward(b))].add(b));
    Ok(Coarse { matching, shift, hosts: hosts.map(Arc::new), ways })
}

fn attempt(files: &Files, matching: Match, tick: Tick<'_>) -> Result<Tried, Failure> {
    let first = search(files, matching, false, tick)?;
    if first.share >= 0.5 {
        return Ok(first);
    }
    // The capture behind may have begun long before the other.
    let second = search(files, matching, true, tick)?;
    let tenants = first.tenants || second.tenants;
    Ok(Tried { tenants, ..if second.both.len() > first.both.len() { second } else { first } })
}

/// Seeks the first packets behind among those before, or the other way round.
fn search(files: &Files, matching: Match, swapped: bool, tick: Tick<'_>) -> Result<Tried, Failure> {
    let side = |index| files.side(index, matching, Arc::default());
    let (mut sampled, mut scanned) = (side(1), side(0));
    if swapped {
        std::mem::swap(&mut sampled, &mut scanned);
    }
    // Of each identity the first packet, by its place among them.
    let mut sample: BTreeMap<(u64, u64), usize> = BTreeMap::new();
    let mut firsts: Vec<(i128, u32, (u64, u64))> = Vec::new();
    let mut tenants = false;
    while sample.len() < SAMPLE {
        let Some(seen) = sampled.next()? else { break };
        tenants |= seen.flow.4.is_some();
        sample.entry((seen.key, seen.tag)).or_insert_with(|| {
            firsts.push((seen.time, seen.bytes, seen.hosts));
            firsts.len() - 1
        });
    }
    let (mut both, mut count) = (Vec::new(), 0_usize);
    while both.len() < ENOUGH {
        let Some(seen) = scanned.next()? else { break };
        count += 1;
        tenants |= seen.flow.4.is_some();
        if count % 8_192 == 0 && !tick(0.0) {
            return Err(Failure::Stopped);
        }
        let Some(first) = sample.get(&(seen.key, seen.tag)) else { continue };
        let (this, other) = ((seen.time, seen.bytes, seen.hosts), firsts[*first]);
        let (before, behind) = if swapped { (other, this) } else { (this, other) };
        both.push(Both { delay: behind.0 - before.0, bytes: before.1, before: before.2, behind: behind.2 });
    }
    let possible = count.min(sample.len()).max(1);
    Ok(Tried { share: both.len() as f64 / possible as f64, both, tenants })
}

/// Finds the packets that went towards the port, and the hosts behind it: of two hosts that send to each other, the packets of
/// one reach the second capture later than the first, and those of the other earlier. Where one side is of one direction only,
/// the other is likewise.
fn directions(both: &[Both], one_sided: bool) -> (impl Fn(&Both) -> bool, [BTreeSet<u64>; 2]) {
    let mut pairs: BTreeMap<(u64, u64), [Vec<i128>; 2]> = BTreeMap::new();
    let pair = |(src, dst): (u64, u64)| ((src.min(dst), src.max(dst)), usize::from(src > dst));
    for b in both {
        let (key, way) = pair(b.before);
        if pairs.len() < PAIRS || pairs.contains_key(&key) {
            let delays = &mut pairs.entry(key).or_default()[way];
            if delays.len() < PACKETS {
                delays.push(b.delay);
            }
        }
    }
    let medians: BTreeMap<(u64, u64), [Option<i128>; 2]> = pairs
        .into_iter()
        .map(|(key, ways)| {
            (
                key,
                ways.map(|mut delays| {
                    delays.sort_unstable();
                    delays.get(delays.len() / 2).copied()
                }),
            )
        })
        .collect();
    let two_way = || medians.values().filter_map(|m| m[0].zip(m[1]));
    let (late, early) = (two_way().map(|(a, b)| a.max(b)).min(), two_way().map(|(a, b)| a.min(b)).max());
    let between = late.zip(early).map(|(late, early)| (late + early) / 2);
    let forward = move |hosts: (u64, u64)| {
        let Some(between) = between else { return true };
        let (key, way) = pair(hosts);
        match medians.get(&key) {
            Some([Some(a), Some(b)]) => (a > b) == (way == 0),
            Some(m) => m[way].is_none_or(|median| median >= between),
            None => true,
        }
    };
    let mut behind = [BTreeSet::new(), BTreeSet::new()];
    if between.is_some() || one_sided {
        let towards = |b: &&Both| forward(b.before);
        for (side, hosts) in [|b: &Both| b.before, |b: &Both| b.behind].into_iter().enumerate() {
            let senders: BTreeSet<u64> = both.iter().filter(towards).map(|b| hosts(b).0).collect();
            behind[side] = both.iter().filter(towards).map(|b| hosts(b).1).filter(|dst| !senders.contains(dst)).collect();
        }
    }
    (move |b: &Both| forward(b.before), behind)
}
