//! Waiting times of packets.

use crate::HistogramReport;
use serde::Serialize;
use std::collections::BTreeMap;

/// Number of classes to each power of two, so that a percentile is off by less than 0.8 %.
const STEPS: u64 = 64;
const BITS: u32 = 6;
/// Classes that the histogram of the report takes together.
const TOGETHER: usize = 16;
/// Flows that are distinguished, and flows that are at hand.
const FLOWS: usize = 1 << 18;
const LATELY: usize = 1 << 10;

/// Waiting times of packets that left the port.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitReport {
    pub packets: u64,
    pub mean_ps: f64,
    pub p50_ps: u64,
    pub p95_ps: u64,
    pub p99_ps: u64,
    pub max_ps: u64,
    /// Arrival of the packet that waited longest.
    pub max_at_ps: u64,
    /// `counts[i]` is of `edges[i] <= x < edges[i + 1]`.
    pub histogram: HistogramReport,
    /// The flows with the longest wait.
    pub flows: Vec<FlowWait>,
    /// All flows, where transfers are asked for: for their rows.
    #[serde(skip)]
    pub all: Vec<FlowWait>,
}

/// One flow at the port.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowWait {
    pub flow: u32,
    pub name: String,
    /// Packets that left the port, and that were dropped there.
    pub packets: u64,
    pub dropped: u64,
    pub mean_ps: f64,
    pub max_ps: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    packets: u64,
    dropped: u64,
    sum: u128,
    max: u64,
}

/// Number of times by their length.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    max: u64,
}

impl Histogram {
    #[inline]
    pub fn add(&mut self, value: u64) {
        let class = class(value);
        if self.counts.len() <= class {
            self.counts.resize(class + 1, 0);
        }
        self.counts[class] += 1;
        (self.count, self.max) = (self.count + 1, self.max.max(value));
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// The value that a share of all does not exceed.
    pub fn at(&self, share: f64) -> u64 {
        let rank = (libm::ceil(share * self.count as f64) as u64).max(1);
        let mut below = 0;
        for (class, count) in self.counts.iter().enumerate() {
            if below + count >= rank {
                let (low, high) = (edge(class), edge(class + 1));
                let inside = (rank - below) as f64 / *count as f64;
                return low.saturating_add((inside * (high - low) as f64) as u64).min(self.max);
            }
            below += count;
        }
        self.max
    }
}

/// All waits of a port.
#[derive(Debug, Default)]
pub struct Waits {
    counts: Histogram,
    all: Tally,
    max_at: u64,
    /// Flows in order of appearance; their places by number, and those of a few, each at the place that its number gives.
    flows: Vec<(u32, Tally)>,
    places: BTreeMap<u32, usize>,
    lately: Vec<usize>,
    pub of_other_flows: u64,
}

fn class(value: u64) -> usize {
    if value < STEPS {
        return value as usize;
    }
    let log = 63 - value.leading_zeros();
    (u64::from(log - BITS + 1) * STEPS + (value >> (log - BITS)) - STEPS) as usize
}

fn edge(class: usize) -> u64 {
    let (octave, step) = (class as u64 / STEPS, class as u64 % STEPS);
    if octave == 0 {
        return step;
    }
    let edge = u128::from(STEPS + step) << (octave - 1);
    u64::try_from(edge).unwrap_or(u64::MAX)
}

impl Waits {
    fn flow(&mut self, flow: u32) -> Option<&mut Tally> {
        if self.lately.is_empty() {
            self.lately = vec![0; LATELY];
        }
        let lately = &mut self.lately[flow as usize % LATELY];
        if self.flows.get(*lately).is_none_or(|(known, _)| *known != flow) {
            *lately = match self.places.get(&flow) {
                Some(place) => *place,
                None if self.flows.len() >= FLOWS => {
                    self.of_other_flows += 1;
                    return None;
                }
                None => {
                    self.places.insert(flow, self.flows.len());
                    self.flows.push((flow, Tally::default()));
                    self.flows.len() - 1
                }
            };
        }
        self.flows.get_mut(*lately).map(|(_, tally)| tally)
    }

    pub fn add(&mut self, flow: u32, wait: u64, at: u64) {
        self.counts.add(wait);
        if wait > self.all.max || self.all.packets == 0 {
            self.max_at = at;
        }
        let add = |t: &mut Tally| {
            t.packets += 1;
            t.sum += u128::from(wait);
            t.max = t.max.max(wait);
        };
        add(&mut self.all);
        if let Some(tally) = self.flow(flow) {
            add(tally);
        }
    }

    pub fn dropped(&mut self, flow: u32) {
        self.all.dropped += 1;
        if let Some(tally) = self.flow(flow) {
            tally.dropped += 1;
        }
    }

    /// Flows none of whose packets left the port, and the number of these packets that count as dropped.
    pub fn never_left(&self) -> (u64, u64) {
        let never = self.flows.iter().filter(|(_, t)| t.packets == 0);
        never.fold((0, 0), |(flows, packets), (_, t)| (flows + 1, packets + t.dropped))
    }

    /// The report, with the `top` flows of the longest waits, and `all` flows if asked for.
    pub fn finish(&self, (top, all): (usize, bool), name: &dyn Fn(u32) -> String) -> Option<WaitReport> {
        if self.all.packets == 0 {
            return None;
        }
        let mean = |t: &Tally| if t.packets > 0 { t.sum as f64 / t.packets as f64 } else { 0.0 };
        let mut flows: Vec<&(u32, Tally)> = self.flows.iter().collect();
        flows.sort_by_key(|(flow, t)| (std::cmp::Reverse((t.max, t.sum)), *flow));
        let row = |(flow, t): &&(u32, Tally)| FlowWait {
            flow: *flow,
            name: name(*flow),
            packets: t.packets,
            dropped: t.dropped,
            mean_ps: mean(t),
            max_ps: t.max,
        };
        let coarse: Vec<u64> = self.counts.counts.chunks(TOGETHER).map(|classes| classes.iter().sum()).collect();
        let first = coarse.iter().position(|n| *n > 0).unwrap_or(0);
        Some(WaitReport {
            packets: self.all.packets,
            mean_ps: mean(&self.all),
            p50_ps: self.counts.at(0.5),
            p95_ps: self.counts.at(0.95),
            p99_ps: self.counts.at(0.99),
            max_ps: self.all.max,
            max_at_ps: self.max_at,
            histogram: HistogramReport {
                edges: (first..=coarse.len()).map(|class| edge(class * TOGETHER)).collect(),
                counts: coarse[first..].to_vec(),
            },
            flows: flows.iter().take(top).map(row).collect(),
            all: flows.iter().take(if all { flows.len() } else { 0 }).map(row).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wait_lies_between_the_edges_of_its_class() {
        for shift in 0..64 {
            for offset in [-1_i128, 0, 1] {
                let Ok(value) = u64::try_from((1_i128 << shift) + offset) else { continue };
                let c = class(value);
                assert!(edge(c) <= value && (value < edge(c + 1) || edge(c + 1) == u64::MAX), "{value}");
            }
        }
    }

    #[test]
    fn percentiles_are_off_by_less_than_one_class() {
        let mut waits = Waits::default();
        (1..=1_000_u64).rev().for_each(|i| waits.add((i % 3) as u32, i * 1_000_003, i));
        waits.dropped(7);
        let report = waits.finish((2, true), &|flow| format!("f{flow}")).unwrap();
        for (found, exact) in [(report.p50_ps, 500), (report.p95_ps, 950), (report.p99_ps, 990)] {
            let exact = exact as f64 * 1_000_003.0;
            assert!((found as f64 / exact - 1.0).abs() < 0.01, "{found} {exact}");
        }
        assert_eq!((report.max_ps, report.max_at_ps, report.packets), (1_000_003_000, 1_000, 1_000));
        assert_eq!(report.flows.iter().map(|f| (&*f.name, f.packets)).collect::<Vec<_>>(), [("f1", 334), ("f0", 333)]);
        assert_eq!(report.all.len(), 4);
        assert_eq!(report.histogram.counts.iter().sum::<u64>(), 1_000);
        assert_eq!(waits.never_left(), (1, 1));
        assert!(Waits::default().finish((1, false), &|_| String::new()).is_none());
    }
}
