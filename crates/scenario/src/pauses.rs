//! Priority flow control at hosts: NICs that send pauses without need, and their reaction to pauses that do not end.

use crate::scenario::Scenario;
use fanin_params::{params, pattern};
use fanin_switch::WatchdogTimes;
use fanin_units::{HostId, Span, Time};

params! {
    /// Storm watchdog of NICs: a class that is paused for too long transmits nevertheless, until its pauses have been over
    /// for a while. Source: PFC-watchdog, of switches; here applied to hosts.
    pub struct PauseWatchdog {
        /// Time paused without a break, with packets waiting, after which a class is in a storm. Source: PFC-watchdog (200
        /// ms).
        pub detection: Span = Span::from_ms(200), in Span::from_us(1)..=Span::from_s(100);
        /// Time without a pause after which the storm is over. Source: PFC-watchdog (200 ms).
        pub restoration: Span = Span::from_ms(200), in Span::from_us(1)..=Span::from_s(100);
    }
}

impl PauseWatchdog {
    /// Detection and restoration times of the watchdog.
    pub fn times(&self) -> WatchdogTimes {
        WatchdogTimes { detection: self.detection, restoration: self.restoration }
    }
}

params! {
    /// Pause storm: defective NICs that keep their switch paused without a break; they go on receiving and sending. Source:
    /// RDMA-at-scale §4.3.
    pub struct Storm {
        /// Hosts with the defect, by name, `*` stands for anything.
        pub hosts: Vec<String>;
        /// Traffic classes that are paused: priorities of PFC frames.
        pub classes: Vec<u8>, in 0_u8..=7;
        /// Start of the storm.
        pub start: Time = Time::ZERO;
        /// End of the storm; if absent, it never ends.
        pub end: Option<Time>;
    }
}

/// Time from which on a NIC requests pauses of these classes, one bit per class.
pub type Asking = (Time, u8);

/// Pause requests of a host over time: each change, in order, starting without any. No class is requested for longer than
/// `prevention` without a break.
fn asking(storms: &[&Storm], prevention: Option<Span>) -> Vec<Asking> {
    let mut spans: Vec<(u8, Time, Time)> = Vec::new();
    let each = storms.iter().flat_map(|storm| storm.classes.iter().map(move |class| (*class & 7, storm)));
    let mut all: Vec<(u8, Time, Time)> =
        each.map(|(class, storm)| (class, storm.start, storm.end.unwrap_or(Time::MAX))).collect();
    all.sort_unstable();
    for (class, start, end) in all {
        match spans.last_mut().filter(|(of, _, until)| *of == class && *until >= start) {
            Some((_, _, until)) => *until = end.max(*until),
            None => spans.push((class, start, end)),
        }
    }
    let mut changes: Vec<Time> = Vec::new();
    for (_, start, end) in &mut spans {
        *end = prevention.map_or(*end, |most| (*end).min(*start + most));
        changes.extend([*start, *end]);
    }
    changes.sort_unstable();
    changes.dedup();
    let at = |now: Time| {
        let now_in = spans.iter().filter(|(_, start, end)| *start <= now && now < *end);
        now_in.fold(0, |all, (class, ..)| all | 1_u8 << class)
    };
    changes.into_iter().filter(|time| *time != Time::MAX).map(|time| (time, at(time))).collect()
}

impl Scenario {
    /// Hosts with pause storms, in order, each with its pause requests over time.
    pub fn storms(&self) -> Vec<(HostId, Vec<Asking>)> {
        let host = &self.doc().host;
        let of = |id: HostId| {
            let name = self.topology().host_name(id);
            let fits = |storm: &&Storm| storm.hosts.iter().any(|wanted| pattern::fits(wanted, name));
            let storms: Vec<&Storm> = host.storms.iter().filter(fits).collect();
            (!storms.is_empty()).then(|| (id, asking(&storms, host.stall_prevention)))
        };
        (0..self.topology().hosts.len() as u32).filter_map(|id| of(HostId(id))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn storm(classes: &[u8], start: u64, end: Option<u64>) -> Storm {
        Storm { hosts: Vec::new(), classes: classes.to_vec(), start: Time::from_ps(start), end: end.map(Time::from_ps) }
    }

    #[test]
    fn storms_of_a_class_join_and_are_cut() {
        let storms = [storm(&[0], 10, Some(20)), storm(&[0, 3], 20, Some(50)), storm(&[0], 70, None)];
        let storms: Vec<&Storm> = storms.iter().collect();
        let at = |changes: &[(u64, u8)]| changes.iter().map(|(t, c)| (Time::from_ps(*t), *c)).collect::<Vec<_>>();
        assert_eq!(asking(&storms, None), at(&[(10, 0b1), (20, 0b1001), (50, 0), (70, 0b1)]));
        // Class 0 is asked for from 10 on without a break, class 3 from 20 on.
        let prevention = Some(Span::from_ps(25));
        assert_eq!(asking(&storms, prevention), at(&[(10, 0b1), (20, 0b1001), (35, 0b1000), (45, 0), (70, 0b1), (95, 0)]));
    }
}
