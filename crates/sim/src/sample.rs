//! Sampled series of all ports, and the end of a run.

use crate::port::Owner;
use crate::world::World;
use fanin_telemetry::PortRow;
use fanin_units::Time;

impl World {
    /// Takes a sample of every port.
    pub(crate) fn sample(&mut self) {
        self.sample_ports();
        self.next_sample = self.now.saturating_add(self.sample_period);
    }

    fn sample_ports(&mut self) {
        for l in 0..self.ports.len() {
            self.catch_up(l);
            let (queue_bytes, queue_packets) = self.queue(l);
            let now = self.now.ps();
            let port = &mut self.ports[l];
            let counters = [port.tx_bytes, port.tx_packets, port.marks, port.drops];
            let before = std::mem::replace(&mut port.sampled, counters);
            let queue_max_bytes = u64::from(std::mem::take(&mut port.interval_max)).max(queue_bytes);
            // What stands in the queue now is part of the next interval too.
            port.interval_max = queue_bytes as u32;
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
            let result = self.recorder.ports.push(row);
            self.check(result);
        }
    }

    /// Brings everything up to the end: last sample, flows that did not end, port counters into the fingerprint.
    pub(crate) fn wind_up(&mut self) {
        if let Some(capture) = &mut self.recorder.capture {
            capture.settle(self.now);
        }
        if self.next_sample < Time::MAX {
            self.sample_ports();
        } else {
            (0..self.ports.len()).for_each(|l| self.catch_up(l));
        }
        for id in self.conns.ids() {
            if let Some(conn) = self.conns.remove(id) {
                self.record_flow(&conn);
            }
        }
        for l in 0..self.ports.len() {
            let port = &self.ports[l];
            let values =
                [port.tx_bytes, port.tx_packets, port.marks, port.drops, u64::from(port.peak_bytes), port.peak_time.ps()];
            values.into_iter().for_each(|v| self.recorder.fold(v));
        }
        for value in [self.totals.packet_hops, self.totals.sent, self.totals.delivered, self.totals.dropped] {
            self.recorder.fold(value);
        }
    }

    /// Packets marked, dropped at ports.
    pub(crate) fn port_totals(&self) -> (u64, u64) {
        self.ports.iter().fold((0, 0), |(marks, drops), p| (marks + p.marks, drops + p.drops))
    }

    /// The ports of switches, by number, those with the largest queue first.
    pub(crate) fn hottest_ports(&self) -> Vec<usize> {
        let mut ports: Vec<usize> = (0..self.ports.len()).filter(|l| matches!(self.ports[*l].owner, Owner::Switch(_))).collect();
        ports.sort_by_key(|l| (std::cmp::Reverse(self.ports[*l].peak_bytes), *l));
        ports
    }
}

impl World {
    /// What the state takes, in bytes: names for the benchmark's output.
    pub(crate) fn memory(&self) -> Vec<(&'static str, f64)> {
        let links = self.links.len() * (std::mem::size_of::<crate::link::Link>() + std::mem::size_of::<crate::port::Port>());
        let network = links + self.fib.bytes() + self.rings.bytes();
        vec![
            ("bytes_per_host", network as f64 / self.hosts.len().max(1) as f64),
            ("bytes_per_flow", crate::host::Conns::bytes_each() as f64),
            ("bytes_per_packet", std::mem::size_of::<fanin_packet::Packet>() as f64),
            ("pool_bytes", self.pool.bytes() as f64),
        ]
    }
}
