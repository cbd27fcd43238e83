//! Sampled series of all ports, and the end of a run.

use crate::fabric::link::Link;
use crate::fabric::port::{Owner, Port};
use crate::hosts::ends::Ends;
use crate::world::World;
use fanin_telemetry::PortRow;
use fanin_units::Time;

impl World {
    /// Takes a sample of every port.
    pub(crate) fn sample(&mut self) {
        self.sample_ports();
        self.next_sample = self.core.now.saturating_add(self.sample_period);
    }

    fn sample_ports(&mut self) {
        let core = &mut self.core;
        for l in 0..core.ports.len() {
            core.catch_up(l);
            let (queue_bytes, queue_packets) = core.queue(l);
            let now = core.now.ps();
            let (port, link) = (&mut core.ports[l], &mut core.links[l]);
            let [bytes, packets] = port.sent(link);
            let counters = [bytes, packets, port.marks, port.drops];
            let before = std::mem::replace(&mut port.sampled, counters);
            // What stands in the queue now is part of the next interval too.
            let queue_max_bytes = u64::from(std::mem::replace(&mut port.interval_max, queue_bytes as u32)).max(queue_bytes);
            link.set_peak(queue_bytes as u32);
            let row = PortRow {
                time_ps: now,
                port: port.name.clone(),
                tx_bytes: counters[0] - before[0],
                tx_packets: counters[1] - before[1],
                queue_bytes,
                queue_packets,
                queue_max_bytes,
                drops: (counters[3] - before[3]) as u32,
                marks: (counters[2] - before[2]) as u32,
            };
            let result = core.ledger.tables.ports.push(row);
            core.check(result);
        }
    }

    /// Brings everything up to the end: last sample, flows that did not end, port counters into the fingerprint.
    pub(crate) fn wind_up(&mut self) {
        if let Some(capture) = &mut self.core.ledger.tables.capture {
            capture.settle(self.core.now);
        }
        if self.next_sample < Time::MAX {
            self.sample_ports();
        } else {
            (0..self.core.ports.len()).for_each(|l| self.core.catch_up(l));
        }
        self.hosts.wind_up(&mut self.core);
        let core = &mut self.core;
        let fingerprint = &mut core.ledger.tables.fingerprint;
        for ((l, port), link) in (0..).zip(core.ports.iter()).zip(core.links.iter()) {
            let [bytes, packets] = port.sent(link);
            let peak = [u64::from(port.peak_bytes), port.peak_time.ps()];
            fingerprint.add([l, bytes, packets, port.marks, port.drops].into_iter().chain(peak));
        }
        let totals = core.ledger.totals;
        fingerprint.add([u64::MAX, totals.packet_hops, totals.sent, totals.delivered, totals.dropped]);
    }

    /// Packets marked, dropped at ports.
    pub(crate) fn port_totals(&self) -> (u64, u64) {
        self.core.ports.iter().fold((0, 0), |(marks, drops), p| (marks + p.marks, drops + p.drops))
    }

    /// The ports of switches, by number, those with the largest queue first.
    pub(crate) fn hottest_ports(&self) -> Vec<usize> {
        let mut ports: Vec<usize> =
            (0..self.core.ports.len()).filter(|l| matches!(self.core.ports[*l].owner, Owner::Switch(..))).collect();
        ports.sort_by_key(|l| (std::cmp::Reverse(self.core.ports[*l].peak_bytes), *l));
        ports
    }
}

impl World {
    /// What the state takes, in bytes: names for the benchmark's output.
    pub(crate) fn memory(&self) -> Vec<(&'static str, f64)> {
        let core = &self.core;
        let links = core.links.len() * (std::mem::size_of::<Link>() + std::mem::size_of::<Port>());
        let network = links + self.fabric.fib.bytes() + core.rings.bytes();
        vec![
            ("bytes_per_host", network as f64 / self.hosts.hosts.len().max(1) as f64),
            ("bytes_per_flow", Ends::bytes_each() as f64),
            ("bytes_per_packet", crate::fabric::pool::BYTES_EACH as f64),
            ("pool_bytes", core.pool.bytes() as f64),
        ]
    }
}
