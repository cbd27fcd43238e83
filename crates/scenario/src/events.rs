//! Link events: failures, flaps and bit errors in a scenario, and their consequences for each link.

use fanin_params::{choice, params};
use fanin_topology::Topology;
use fanin_traffic::LATEST;
use fanin_units::{LinkId, Span, Time};
use std::collections::BTreeMap;
use std::ops::Bound;

params! {
    /// Event of links: failure, flap, or bit errors. See docs/failures.md.
    pub struct LinkEvent, with kind: LinkEventKind {
        /// Links, by name of a port (`leaf0->spine1`, `h3->leaf0`), `*` stands for anything.
        pub links: Vec<String>;
        /// Start of the event.
        pub start: Time = Time::ZERO, in Time::ZERO..=LATEST;
        /// End of the event, after which the links work as before; if absent, the end of the run.
        pub end: Option<Time>, in Time::ZERO..=LATEST;
    }
}

choice! {
    /// Kind of event.
    pub enum LinkEventKind {
        /// Links are down in both directions, whichever is named: a cut cable.
        "down" => Down(Down),
        /// Frames over the links have bit errors, in the direction that is named: a dirty connector.
        "bit_errors" => BitErrors(BitErrors),
    }
}

params! {
    /// Links that are down from `start` to `end`.
    pub struct Down {
        /// Period of a flap: after each, the links fail again for as long as the first time. If absent, they fail once.
        pub every: Option<Span>, in Span::from_ns(1)..=Span::from_s(1_000);
        /// Number of failures of a flap.
        pub times: Option<u32>, in 2u32..=1_000_000;
        /// Detection time of these links; if absent, `failover.detect`.
        pub detect: Option<Span>, in Span::ZERO..=Span::from_s(1_000);
    }
}

params! {
    /// Links with bit errors from `start` to `end`: a frame arrives intact with probability (1 − rate)^bits; otherwise it is
    /// discarded, as its check sequence is wrong. Source: IEEE 802.3 §3.4 (the receiver discards it).
    pub struct BitErrors {
        /// Bit error rate: probability that a bit is wrong, each by itself. Source: IEEE 802.3 allows 10⁻¹² at most on links
        /// of 10 Gb/s (§52.1).
        pub rate: f64, in (Bound::Excluded(0.0), Bound::Included(0.01));
    }
}

params! {
    /// Reaction to links that fail and come back. See docs/failures.md.
    pub struct Failover {
        /// Detection time: from a link's failure or recovery until its ends know, each by itself; a shorter change is not
        /// noticed. The default is ours: hardware takes microseconds, interrupts and polls milliseconds.
        pub detect: Span = Span::from_us(100), in Span::ZERO..=Span::from_s(1_000);
        /// Convergence time: from detection until all switches forward by shortest paths over the remaining links. Source:
        /// Quagga (200 ms, the initial delay in the example of `timers throttle spf`).
        pub converge: Span = Span::from_ms(200), in Span::ZERO..=Span::from_s(1_000);
    }
}

/// A time at which a link is down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outage {
    pub start: Time,
    /// Time at which the link works again; [`Time::MAX`]: never.
    pub end: Time,
    /// Detection time.
    pub detect: Span,
    /// Index of the event in the document.
    pub event: usize,
}

/// A time at which frames arrive over a link with bit errors.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Errors {
    pub start: Time,
    pub end: Time,
    /// Bit error rate.
    pub rate: f64,
    /// Index of the event in the document.
    pub event: usize,
}

/// Most outages of all links together.
pub(crate) const MOST_OUTAGES: usize = 1_000_000;

/// Events of all links, in order of time; links without any are absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Events {
    /// Outages of each link, by its direction with the smaller id.
    pub(crate) outages: BTreeMap<LinkId, Vec<Outage>>,
    /// Bit errors by direction.
    pub(crate) errors: BTreeMap<LinkId, Vec<Errors>>,
}

impl LinkEventKind {
    /// The failure, if the event is one.
    pub(crate) fn down(&self) -> Option<&Down> {
        match self {
            LinkEventKind::Down(down) => Some(down),
            LinkEventKind::BitErrors(_) => None,
        }
    }
}

impl Down {
    /// Starts of the outages, each as long as the first, without those at `until` or later.
    pub(crate) fn starts(&self, first: Time, until: Time) -> impl Iterator<Item = Time> + '_ {
        let times = self.every.map_or(1, |_| self.times.unwrap_or(u32::MAX));
        let every = self.every.unwrap_or(Span::ZERO);
        (0..u64::from(times)).map(move |n| first + every.saturating_mul(n)).take_while(move |start| *start < until)
    }
}

/// A change that an end of a link notices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notice {
    pub at: Time,
    /// The link works again, or is down.
    pub up: bool,
}

/// Changes that the ends of a link notice: those that last for the detection time.
pub fn notices(outages: &[Outage]) -> Vec<Notice> {
    let mut changes: Vec<(Time, bool, Span)> = Vec::new();
    for outage in outages {
        changes.push((outage.start, false, outage.detect));
        if outage.end < Time::MAX {
            changes.push((outage.end, true, outage.detect));
        }
    }
    let mut known = true;
    let mut noticed = Vec::new();
    for (i, (time, up, detect)) in changes.iter().enumerate() {
        let at = *time + *detect;
        let lasts = changes.get(i + 1).is_none_or(|(next, ..)| *next > at);
        if lasts && *up != known {
            known = *up;
            noticed.push(Notice { at, up: *up });
        }
    }
    noticed
}

/// The direction of a link that stands for both.
pub(crate) fn either(topology: &Topology, link: LinkId) -> LinkId {
    link.min(topology.link(link).reverse)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outage(start: u64, end: u64, detect: u64) -> Outage {
        let at = |us| if us == u64::MAX { Time::MAX } else { Time::ZERO + Span::from_us(us) };
        Outage { start: at(start), end: at(end), detect: Span::from_us(detect), event: 0 }
    }

    fn of(outages: &[Outage]) -> Vec<(u64, bool)> {
        notices(outages).into_iter().map(|notice| (notice.at.ps() / 1_000_000, notice.up)).collect()
    }

    #[test]
    fn what_lasts_for_the_detection_time_is_noticed_and_nothing_else() {
        assert_eq!(of(&[outage(10, 50, 5)]), [(15, false), (55, true)]);
        assert_eq!(of(&[outage(10, u64::MAX, 5)]), [(15, false)]);
        // Over before anybody knows: at the very instant is too short as well.
        assert_eq!(of(&[outage(10, 15, 5)]), []);
        assert_eq!(of(&[outage(10, 16, 5)]), [(15, false), (21, true)]);
        // Works again for too short a time: down all the while, as far as its ends know.
        assert_eq!(of(&[outage(10, 20, 5), outage(23, 40, 5)]), [(15, false), (45, true)]);
        // Too short, but the next is not.
        assert_eq!(of(&[outage(10, 12, 5), outage(30, 60, 5)]), [(35, false), (65, true)]);
        assert_eq!(of(&[outage(10, 20, 0)]), [(10, false), (20, true)]);
    }

    #[test]
    fn a_flap_fails_again_and_again() {
        let flap = Down { every: Some(Span::from_us(10)), times: Some(3), detect: None };
        let first = Time::ZERO + Span::from_us(4);
        let starts = |down: &Down, until: u64| {
            down.starts(first, Time::from_ps(until)).map(|start| start.ps() / 1_000_000).collect::<Vec<_>>()
        };
        assert_eq!(starts(&flap, u64::MAX), [4, 14, 24]);
        assert_eq!(starts(&flap, 24_000_000), [4, 14]);
        assert_eq!(starts(&Down { times: None, ..flap.clone() }, 50_000_001), [4, 14, 24, 34, 44]);
        assert_eq!(starts(&Down { every: None, times: None, detect: None }, u64::MAX), [4]);
    }
}
