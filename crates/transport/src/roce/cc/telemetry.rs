//! Differences of telemetry between consecutive acknowledgments, per port of the path: the input common to HPCC and PowerTCP.

use super::Feedback;
use fanin_packet::{HopSample, MAX_HOPS};
use fanin_units::Time;

/// Latest sample of each port on the path, in memory of its own.
#[derive(Clone, Debug)]
pub(super) struct Ports(Box<Last>);

/// Samples of one acknowledgment, in as few cache lines as they fit into.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
struct Last {
    path: u16,
    hops: u8,
    places: [Place; MAX_HOPS],
}

/// Sample of a port without its rate: bytes of a [`HopSample`] have at most 27 bits.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    at: Time,
    tx_bytes: u32,
    queue_bytes: u32,
}

impl Place {
    fn of(sample: &HopSample) -> Place {
        Place { at: sample.at, tx_bytes: sample.tx_bytes as u32, queue_bytes: sample.queue_bytes as u32 }
    }

    /// The sample, with the rate that a later one of the same port has.
    fn before(&self, now: &HopSample) -> HopSample {
        HopSample { queue_bytes: self.queue_bytes.into(), tx_bytes: self.tx_bytes.into(), at: self.at, rate: now.rate }
    }
}

/// Activity of a port between two samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    /// Length of the interval \[s\].
    pub seconds: f64,
    /// Rate of the link \[B/s\].
    pub rate: f64,
    /// Sending rate of the port \[B/s\].
    pub sent: f64,
    /// Queue length at the beginning and at the end \[B\].
    pub queue: [f64; 2],
}

impl Ports {
    pub(super) fn new() -> Self {
        Ports(Box::default())
    }

    /// Shows `fetch` the memory of the samples: a call for each cache line.
    pub(super) fn apart(&self, fetch: &impl Fn(*const u8)) {
        let first = std::ptr::from_ref(&*self.0).cast::<u8>();
        [0, 64].into_iter().for_each(|at| fetch(first.wrapping_add(at))); // seven ports; paths are seldom longer
    }

    /// Computes the ports' activity since the previous acknowledgment, except for ports where no time has passed. `None` if
    /// it cannot be computed: for the first acknowledgment, after a change of path, or if a counter may have wrapped around.
    pub(super) fn since(&mut self, f: &Feedback<'_>, mut each: impl FnMut(Interval)) -> Option<()> {
        let last = &mut *self.0;
        let hops = usize::from(last.hops);
        let known = last.path == f.path && hops == f.telemetry.len() && hops > 0;
        let pairs = || last.places.iter().zip(f.telemetry).map(|(before, now)| (before.before(now), now));
        let compared = known && pairs().all(|(before, now)| now.is_comparable(&before));
        if compared {
            pairs().filter(|(before, now)| now.at > before.at).for_each(|(before, now)| {
                let seconds = now.at.since(before.at).as_secs_f64();
                each(Interval {
                    seconds,
                    rate: now.rate.bps() as f64 / 8.0,
                    sent: now.sent_since(&before) as f64 / seconds,
                    queue: [before.queue_bytes as f64, now.queue_bytes as f64],
                });
            });
        }
        debug_assert!(f.telemetry.len() <= MAX_HOPS, "{} samples", f.telemetry.len());
        (last.path, last.hops) = (f.path, f.telemetry.len() as u8);
        last.places.iter_mut().zip(f.telemetry).for_each(|(place, now)| *place = Place::of(now));
        compared.then_some(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use fanin_units::{BitRate, Span};

    pub(in super::super) fn sample(us: u64, queue_bytes: u64, tx_bytes: u64) -> HopSample {
        HopSample { queue_bytes, tx_bytes, at: Time::ZERO + Span::from_us(us), rate: BitRate::from_gbps(100) }
    }

    pub(in super::super) fn feedback(us: u64, una: u64, nxt: u64, telemetry: &[HopSample]) -> Feedback<'_> {
        let now = Time::ZERO + Span::from_us(us);
        Feedback { now, acked: 1_000, packets: 1, una, nxt, telemetry, path: 7, ..Feedback::default() }
    }

    fn seen(ports: &mut Ports, f: &Feedback<'_>) -> Option<Vec<Interval>> {
        let mut all = Vec::new();
        ports.since(f, |interval| all.push(interval)).map(|()| all)
    }

    #[test]
    fn two_samples_say_what_a_port_sent_and_what_waited() {
        let mut ports = Ports::new();
        assert_eq!(seen(&mut ports, &feedback(20, 0, 0, &[sample(10, 800, 0), sample(11, 0, 128)])), None);
        let next = [sample(14, 1_600, 25_600), sample(11, 0, 128)];
        let expected = Interval { seconds: 4e-6, rate: 12.5e9, sent: 6.4e9, queue: [800.0, 1_600.0] };
        assert_eq!(seen(&mut ports, &feedback(24, 0, 0, &next)), Some(vec![expected]));
        // of the other no time has passed
    }

    #[test]
    fn another_way_and_counters_that_wrapped_say_nothing() {
        let mut ports = Ports::new();
        seen(&mut ports, &feedback(20, 0, 0, &[sample(10, 0, 0)]));
        let other = Feedback { path: 8, ..feedback(30, 0, 0, &[]) };
        assert_eq!(seen(&mut ports, &Feedback { telemetry: &[sample(20, 0, 128)], ..other }), None);
        assert_eq!(seen(&mut ports, &Feedback { telemetry: &[sample(21, 0, 128), sample(22, 0, 0)], ..other }), None);
        assert_eq!(seen(&mut ports, &Feedback { telemetry: &[], ..other }), None);
        assert_eq!(seen(&mut ports, &Feedback { telemetry: &[], ..other }), None);
        seen(&mut ports, &feedback(30, 0, 0, &[sample(20, 0, 0)]));
        let late = [sample(20 + 10_738, 0, 128)]; // 2^27 B take 10,737.4 us
        assert_eq!(seen(&mut ports, &feedback(12_000, 0, 0, &late)), None);
        assert!(seen(&mut ports, &feedback(12_000, 0, 0, &[sample(20 + 10_740, 0, 128)])).is_some());
    }
}
