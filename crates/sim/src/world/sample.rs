//! Sampled series of all ports, and the end of a run.

use super::World;
use crate::core::link::flag;
use crate::core::port::{Owner, Port};
use crate::core::Core;
use crate::fabric::combined::Sampled;
use crate::hosts::ends::Ends;
use crate::ledger::kind;
use fanin_engine::Table;
use fanin_switch::PortNo;
use fanin_telemetry::{PortRow, VoqRow};
use fanin_units::{LinkId, Span, SwitchId, Time};

/// Sampler of ports: the times of samples, and the ports of which the last one has rows.
pub(crate) struct Samples {
    period: Span,
    /// Time of the next sample; [`Time::MAX`]: never.
    pub next: Time,
    /// Ports of which samples are taken: all, or those of a part of the network.
    ports: Vec<LinkId>,
    /// Time of each port's last row; before the first sample there is none.
    last_row: Table<Time, LinkId>,
    /// Count of events after a sample in which every port was quiet.
    quiet_since: Option<u64>,
}

impl Samples {
    /// Samples every `period`, the first after one; [`Span::MAX`]: never.
    pub fn every(period: Span, ports: usize) -> Self {
        let ports: Vec<LinkId> = if period < Span::MAX { (0..ports as u32).map(LinkId).collect() } else { Vec::new() };
        let last_row = vec![Time::MAX; ports.len()].into();
        Samples { period, next: Time::ZERO.saturating_add(period), ports, last_row, quiet_since: None }
    }

    /// Samples only those ports from now on.
    pub fn keep_ports(&mut self, keep: impl Fn(LinkId) -> bool) {
        self.ports.retain(|l| keep(*l));
    }

    /// True if samples are taken.
    pub fn are_on(&self) -> bool {
        self.next < Time::MAX
    }
}

/// True if nothing has happened at a port since its last row: the next one would be all zeros.
///
/// The queue need not be up to now. What waited at the last row, or has waited since at a switch, is in `interval_max`; what a
/// host has given to its NIC since is either sent or in the queue.
#[inline]
fn is_quiet(core: &Core, l: LinkId) -> bool {
    let (port, link) = (&core.ports[l], &core.links[l]);
    let [bytes, packets, marks, drops] = port.sampled;
    port.most() == 0 && core.queue(l).1 == 0 && (port.marks, port.drops) == (marks, drops) && port.sent(link) == [bytes, packets]
}

impl World {
    /// Takes a sample: a row for each port at which something has happened. The first, and the last one where it is due when the
    /// run stops, have a row for every port.
    pub(crate) fn sample(&mut self) {
        // A NIC whose turn is not an event has a packet on its way.
        let sent = self.core.pool.in_flight() > 0 && self.hosts.catch_up_all(&mut self.core);
        let (core, samples) = (&mut self.core, &mut self.samples);
        // The event that calls this is the only one since a sample without rows.
        let events = core.ledger.totals.events;
        let last = core.now >= self.stop;
        if last || sent || samples.quiet_since != Some(events - 1) {
            let mut quiet = true;
            for l in samples.ports.iter().copied() {
                if core.links[l].flags & flag::GENERAL != 0 && core.links[l].is_followed() {
                    // Headers and control frames are in no row while they wait, and leave without an event.
                    core.catch_up(l);
                    quiet = false;
                }
                if last || samples.last_row[l] == Time::MAX || !is_quiet(core, l) {
                    write_row(core, l);
                    samples.last_row[l] = core.now;
                    quiet = false;
                }
            }
            samples.quiet_since = quiet.then_some(events);
        } else {
            samples.quiet_since = Some(events);
        }
        samples.next = core.now.saturating_add(samples.period);
        self.fabric.notify(&mut self.core);
        self.sample_inputs();
    }

    /// Rows of the virtual output queues in which something has happened.
    fn sample_inputs(&mut self) {
        for s in (0..self.fabric.crossbars.len() as u32).map(SwitchId) {
            if self.core.part.as_deref().is_some_and(|part| !part.has_switch(s)) {
                continue;
            }
            self.core.ledger.note_event(self.core.now, kind::SAMPLE, [u64::from(s.0), 0]);
            for Sampled { input, output, depth } in self.fabric.crossbars[s].sample() {
                let row = VoqRow {
                    time_ps: self.core.now.ps(),
                    input: input.map(|port| self.core.ports[self.link_into(s, port)].name.clone()),
                    port: self.core.ports[output].name.clone(),
                    queue_bytes: depth.standing(),
                    queue_packets: depth.packets + depth.held_packets,
                    queue_max_bytes: depth.interval_max.max(depth.standing()),
                    held_bytes: depth.held,
                    drops: depth.interval_drops,
                };
                let result = self.core.ledger.tables.voqs.push(row);
                self.core.check(result);
            }
        }
    }

    /// The link that comes in by a port of a switch.
    pub(crate) fn link_into(&self, s: SwitchId, port: PortNo) -> LinkId {
        self.fabric.reverse[self.fabric.switches[s].ports[port.index()]]
    }

    /// Takes the last sample, at the end of the run, which has a row for every port. A sample at that very time has it already,
    /// whole: sampling is the last thing that happens at an instant.
    fn last_sample(&mut self) {
        let core = &mut self.core;
        for l in self.samples.ports.iter().copied() {
            if self.samples.last_row[l] != core.now {
                write_row(core, l);
            }
        }
    }

    /// Brings everything up to the end: last sample, flows that did not end, port counters into the fingerprint.
    /// Does nothing where it has been done.
    pub(crate) fn wind_up(&mut self) {
        if !self.wound_up {
            self.wind_up_part();
            self.add_ports_to_fingerprint();
        }
    }

    /// Brings everything that is here up to the end: last sample, flows that did not end.
    pub(crate) fn wind_up_part(&mut self) {
        self.core.ledger.tables.settle_capture(self.core.now);
        self.hosts.catch_up_all(&mut self.core);
        self.core.links.ids().for_each(|l| self.core.catch_up(l));
        self.fabric.notify(&mut self.core);
        if self.samples.are_on() {
            self.last_sample();
            self.sample_inputs();
        }
        self.core.end_pauses();
        self.hosts.wind_up(&mut self.core);
        let core = &mut self.core;
        let on_the_way = core.ledger.trace.as_deref_mut().map(|trace| trace.on_the_way()).unwrap_or_default();
        for row in on_the_way {
            let result = core.ledger.tables.follow(None, Some(row), None);
            core.check(result);
        }
    }

    /// Adds the counters of all ports to the fingerprint, and the totals.
    pub(crate) fn add_ports_to_fingerprint(&mut self) {
        self.wound_up = true;
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
    pub(crate) fn hottest_ports(&self) -> Vec<LinkId> {
        let mut ports: Vec<LinkId> =
            self.core.links.ids().filter(|l| matches!(self.core.ports[*l].owner, Owner::Switch(..))).collect();
        ports.sort_by_key(|l| (std::cmp::Reverse(self.core.ports[*l].peak_bytes), *l));
        ports
    }

    /// The ports of hosts that dropped anything or were paused, by number: the most drops first, then the most pauses.
    pub(crate) fn troubled_hosts(&self) -> Vec<LinkId> {
        let ports = &self.core.ports;
        let pauses = |l: LinkId| self.core.gates.get(&l).map_or(0, |gate| gate.pauses.iter().sum::<u64>());
        let of_host = |l: &LinkId| !matches!(ports[*l].owner, Owner::Switch(..)) && (ports[*l].drops > 0 || pauses(*l) > 0);
        let mut dropping: Vec<LinkId> = self.core.links.ids().filter(of_host).collect();
        dropping.sort_by_key(|l| (std::cmp::Reverse((ports[*l].drops, pauses(*l))), *l));
        dropping
    }
}

/// Writes a row with everything that has happened at a port since its last row.
fn write_row(core: &mut Core, l: LinkId) {
    core.ledger.note_event(core.now, kind::SAMPLE, [u64::from(l.0), 0]);
    core.catch_up(l);
    let (queue_bytes, queue_packets) = core.standing(l);
    let time_ps = core.now.ps();
    let (port, link) = (&mut core.ports[l], &mut core.links[l]);
    let [bytes, packets] = port.sent(link);
    let counters = [bytes, packets, port.marks, port.drops];
    let before = std::mem::replace(&mut port.sampled, counters);
    // What stands in the queue now is part of the next interval too.
    let queue_max_bytes = u64::from(port.most()).max(queue_bytes);
    port.set_most(link, queue_bytes as u32);
    let row = PortRow {
        time_ps,
        port: port.name.clone(),
        tx_bytes: counters[0] - before[0],
        tx_packets: counters[1] - before[1],
        queue_bytes,
        queue_packets,
        queue_max_bytes,
        held_bytes: u64::from(port.held_bytes),
        drops: (counters[3] - before[3]) as u32,
        marks: (counters[2] - before[2]) as u32,
    };
    let result = core.ledger.tables.ports.push(row);
    core.check(result);
}

impl World {
    /// Bytes that the state takes, by part, for the benchmark's output.
    pub(crate) fn memory(&self) -> Vec<(&'static str, f64)> {
        let core = &self.core;
        let ports = core.links.len() * std::mem::size_of::<Port>();
        let network = core.links.bytes() + ports + self.fabric.fib.bytes();
        vec![
            ("bytes_per_host", network as f64 / self.hosts.hosts.len().max(1) as f64),
            ("bytes_per_flow", Ends::bytes_each() as f64),
            ("bytes_per_packet", crate::core::pool::BYTES_EACH as f64),
            ("pool_bytes", core.pool.bytes() as f64),
        ]
    }
}
