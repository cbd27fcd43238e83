//! From a validated scenario to a world at time zero.

use crate::capture::Capturing;
use crate::fib::Fib;
use crate::folder::RunError;
use crate::host::{Conns, Host};
use crate::link::{flag, FarEnd, Link, Rings};
use crate::notify::Notify;
use crate::pool::Pool;
use crate::port::{Explicit, Limit, Owner, Port};
use crate::record::{Destination, Recorder, Tables};
use crate::stamp::Stamps;
use crate::trim::Trim;
use crate::world::{SwitchNode, Totals, World};
use fanin_engine::{Timers, Wheel};
use fanin_packet::Framing;
use fanin_scenario::{NicOrder, PortModel, Sampling, Scenario};
use fanin_switch::{
    At, Buffer, Marker, NotificationConfig, PathChooser, Scheduler, Scheduling, SharedBuffer, Switch, TrimmingConfig,
};
use fanin_telemetry::{Keep, Name, Registers};
use fanin_topology::{Routes, Topology};
use fanin_units::{Amount, HostId, LinkId, NodeId, Purpose, Span, Stream, Time};
use std::collections::VecDeque;

/// The far end of a link that leads to `node`.
fn far_end(topology: &Topology, node: NodeId) -> FarEnd {
    match topology.host_id(node) {
        Some(host) => FarEnd::Host(host.0),
        None => FarEnd::Switch(topology.switch_index(node).unwrap_or_default() as u32),
    }
}

/// Builds the world of a scenario.
///
/// # Errors
/// When a result table cannot be created, or the traffic cannot be generated.
pub fn world(scenario: &Scenario, destination: &Destination<'_>) -> Result<World, RunError> {
    let topology = scenario.topology();
    let doc = scenario.doc();
    let (switch, engine, telemetry) = (&doc.switch, &doc.engine, &doc.telemetry);
    let seed = scenario.seed();
    let traffic = scenario.traffic().map_err(RunError::Problems)?;
    let framing = doc.framing.of_packets();
    let registers = telemetry.registers.as_ref().map(|registers| Registers { tick: registers.tick, unit: registers.unit });
    let cell = switch.cell_bytes();

    let mut rings = Rings::default();
    let mut links = Vec::with_capacity(topology.links.len());
    let mut ports = Vec::with_capacity(topology.links.len());
    let watched = scenario.watched();
    let mut notify = match &switch.notification {
        NotificationConfig::None(_) => None,
        NotificationConfig::Pdn(params) => {
            let switches = (topology.hosts.len()..topology.nodes.len()).map(|node| NodeId(node as u32));
            let aware = switches.map(|switch| !scenario.is_unaware(switch)).collect();
            Some((params, Box::new(Notify::new(params, &framing, aware, seed))))
        }
    };
    let stamped = framing.with_trailer(telemetry.trailer());
    let mut trim = match &switch.trimming {
        TrimmingConfig::None(_) => None,
        TrimmingConfig::Ndp(params) => Some((params, Box::new(Trim::new(params, framing, telemetry.trailer())))),
    };
    for (i, wire) in topology.links.iter().enumerate() {
        let id = LinkId(i as u32);
        // What a packet spends inside the node at the far end before it is looked at there is part of the delay.
        let gap = wire.wire_overhead.map_or(framing.gap, |bytes| bytes.get() as u16 - framing.header);
        let mut link = Link::new(&mut rings, scenario.hop_delay(id), wire.rate, gap, far_end(topology, wire.to));
        let owner = match far_end(topology, wire.from) {
            FarEnd::Host(h) => Owner::Host(h),
            FarEnd::Switch(s) => Owner::Switch(s),
        };
        let mut port = Port {
            tx_bytes: 0,
            tx_packets: 0,
            marks: 0,
            drops: 0,
            interval_max: 0,
            peak_bytes: 0,
            peak_packets: 0,
            queue_cells: 0,
            peak_time: Time::ZERO,
            owner,
            rate: wire.rate,
            overhead: gap,
            limit: Limit::Unlimited,
            marker: Marker::new(&fanin_switch::Marking::None(fanin_switch::NoMarking {})),
            rng: Stream::new(seed, Purpose::Marking, i as u64),
            watched: watched.binary_search(&id).ok().map(|number| number as u32),
            explicit: None,
            name: topology.link_name(id).as_str().into(),
            sampled: [0; 4],
        };
        if let Owner::Switch(_) = owner {
            port.limit = match (&switch.buffer, scenario.port_buffer(id)) {
                (Buffer::Static(b), own) => Limit::Static(own.unwrap_or(b.per_port)),
                (Buffer::Dynamic(_), _) => Limit::Shared,
                (Buffer::Unlimited(_), _) => Limit::Unlimited,
            };
            equip(&mut link, &mut port, switch, engine.ports == PortModel::Explicit || notify.is_some() || trim.is_some());
        }
        if let Some((params, notify)) = &mut notify {
            notify.add_port(params, &mut link, &port, !scenario.is_unaware(wire.to));
        }
        if let Some((params, trim)) = &mut trim {
            trim.add_port(params, matches!(owner, Owner::Switch(_)) && !scenario.is_unaware(wire.from));
            if matches!((owner, link.far_end()), (Owner::Switch(_), FarEnd::Host(_))) {
                link.look_at_arrivals();
            }
        }
        links.push(link);
        ports.push(port);
    }
    let hosts: Vec<Host> = topology
        .hosts
        .iter()
        .map(|node| Host { nic: topology.host_link(*node).0, ready: VecDeque::new(), armed: false })
        .collect();

    let (horizon, spacing) = rhythm(topology, framing);
    let slots = 2 * links.len();
    let (sample_period, next_sample) = match telemetry.sample {
        Sampling::Every(period) => (period, Time::ZERO + period),
        Sampling::Off => (Span::MAX, Time::MAX),
    };
    let tables = Tables {
        ports: next_sample < Time::MAX,
        queues: !watched.is_empty(),
        drops: telemetry.drops,
        stamps: registers.is_some(),
        watched: watched.len(),
        keep: keep(&telemetry.keep),
    };
    let groups = traffic.entry_names().map(Name::from).collect();
    let entry_keys = traffic.entry_names().map(fnv1a).collect();
    let switches: Vec<SwitchNode> = (0..topology.switch_count())
        .map(|s| SwitchNode {
            name: topology.nodes[topology.hosts.len() + s].name.as_str().into(),
            seed: Stream::new(seed, Purpose::Hashing, s as u64).next_u32(),
            paths: PathChooser::new(&switch.routing),
            rng: Stream::new(seed, Purpose::Spraying, s as u64),
            shared: match &switch.buffer {
                Buffer::Dynamic(params) => {
                    // Each class of each port is a queue that the shared buffer tells apart.
                    let ports = topology.out_links(NodeId((topology.hosts.len() + s) as u32)).len();
                    Some(SharedBuffer::new(params, (ports * switch.scheduling.classes()) as u32, cell))
                }
                _ => None,
            },
        })
        .collect();
    let mut recorder = Recorder::new(destination, tables, groups)?;
    recorder.capture = Capturing::new(scenario, &framing, destination)?;
    Ok(World {
        now: Time::ZERO,
        stop: scenario.stop().unwrap_or(Time::MAX),
        wheel: Wheel::new(slots, horizon, spacing),
        timers: Timers::default(),
        barrier: Time::ZERO,
        arrivals: links.len(),
        links: links.into(),
        ports: ports.into(),
        rings,
        pool: Pool::default(),
        fib: fib(topology, scenario.routes()),
        switches: switches.into(),
        cell,
        ttl: switch.ttl,
        hosts: hosts.into(),
        host_names: (0..topology.hosts.len() as u32).map(|h| topology.host_name(HostId(h)).into()).collect(),
        conns: Conns::default(),
        transports: scenario
            .transports()
            .iter()
            .map(|(name, config)| (name.as_str().into(), config.clone()))
            .collect::<Vec<_>>()
            .into(),
        traffic,
        entry_keys,
        framing: stamped,
        seed,
        fifo_nic: doc.host.nic == NicOrder::Fifo,
        next_app: Time::ZERO,
        sample_period,
        next_sample,
        observed: registers.is_some() || recorder.capture.is_some(),
        stamps: registers.map(|registers| Box::new(Stamps::new(registers))),
        notify: notify.map(|(_, notify)| notify),
        trim: trim.map(|(_, trim)| trim),
        watched: watched.to_vec(),
        recorder,
        totals: Totals::default(),
        failure: None,
        standstill: (Time::ZERO, 0),
        stall_events: engine.stall_events,
        max_events: engine.max_events.unwrap_or(u64::MAX),
    })
}

/// What is kept of the records of watched ports.
fn keep(keep: &fanin_scenario::Keep) -> Keep {
    use fanin_scenario::Keep::{All, Around, Last};
    match keep {
        All(_) => Keep::All,
        Last(last) => Keep::Last { records: last.records as usize },
        Around(around) => {
            Keep::Around { above: around.above, before: around.before, after: around.after, records: around.records as usize }
        }
    }
}

/// FNV-1a 64.
fn fnv1a(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Gives a switch's port, which has its buffer, marking and scheduling.
fn equip(link: &mut Link, port: &mut Port, switch: &Switch, explicit: bool) {
    port.marker = Marker::new(&switch.marking);
    if port.marker.acts_at_dequeue() || switch.counts_cells() {
        link.flags |= flag::DEQUEUE;
    }
    let explicit = explicit || port.limit == Limit::Shared || !matches!(switch.scheduling, Scheduling::Fifo(_));
    if explicit {
        link.flags |= flag::EXPLICIT;
        let scheduler = Scheduler::new(&switch.scheduling);
        let classes = switch.scheduling.classes();
        port.explicit = Some(Box::new(Explicit {
            queues: vec![VecDeque::new(); classes],
            class_used: vec![0; classes],
            scheduler,
            armed: false,
            bytes: 0,
            packets: 0,
        }));
        return;
    }
    // A port that the inner loop can serve by itself has a limit and a threshold in bytes or packets.
    // Beyond 4 GiB there is no limit and no threshold; a queue that comes near it ends the run.
    let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let limit = match port.limit {
        Limit::Unlimited => Some((u32::MAX, 0)),
        Limit::Static(Amount::Bytes(n)) => Some((small(n), 0)),
        Limit::Static(Amount::Packets(n)) => Some((small(n), flag::LIMIT_PACKETS)),
        _ => None,
    };
    let threshold = match (port.marker.acts_at_enqueue(), port.marker.simple_threshold()) {
        (false, _) => Some((u32::MAX, 0)),
        (true, Some((Amount::Bytes(k), At::Enqueue))) => Some((small(k), 0)),
        (true, Some((Amount::Packets(k), At::Enqueue))) => Some((small(k), flag::MARK_PACKETS)),
        _ => None,
    };
    match (limit, threshold) {
        (Some((limit, a)), Some((threshold, b))) if port.watched.is_none() => {
            link.limit = limit;
            link.threshold = threshold;
            link.flags |= a | b;
        }
        _ => link.flags |= flag::PIPELINE,
    }
}

/// How far ahead most events lie, and how far apart they are: propagation and serialisation of a full frame on most links,
/// and the time in which about two such frames leave the network's ports when half of them are busy. A slow link in a fast
/// fabric must not make the wheel's buckets wide; its events take the heap. Buckets stay well below the shortest delay, so
/// that events rarely fall into the bucket that is open.
fn rhythm(topology: &Topology, framing: Framing) -> (Span, Span) {
    let full = fanin_units::Bytes(u64::from(framing.on_wire(framing.frame(1500 - framing.ip.header()))));
    let mut ahead: Vec<Span> = topology.links.iter().map(|l| l.delay + l.rate.time_to_send(full)).collect();
    ahead.sort_unstable();
    let horizon = ahead.get(ahead.len() * 9 / 10).copied().unwrap_or(Span::from_us(1));
    let shortest = ahead.first().copied().unwrap_or(Span::ZERO);
    let tx = topology.links.iter().map(|l| l.rate.time_to_send(full)).min().unwrap_or(Span::ZERO);
    let spacing = Span::from_ps((tx * 4 / (ahead.len().max(1) as u64)).ps().min(shortest.ps() / 16));
    (horizon, spacing)
}

/// Flattens the routing tables.
fn fib(topology: &Topology, routes: &Routes) -> Fib {
    let hosts: Vec<_> =
        (0..topology.hosts.len() as u32).map(|h| (routes.attachment_of(HostId(h)), routes.host_port(HostId(h)))).collect();
    let mut fib = Fib::new(topology.switch_count(), routes.attachments(), &hosts);
    for switch in 0..topology.switch_count() {
        let node = NodeId((topology.hosts.len() + switch) as u32);
        for attachment in 0..routes.attachments() {
            if routes.attachment_node(attachment) == node {
                fib.set_local(switch, attachment);
            } else {
                fib.set(switch, attachment, routes.lookup(node, attachment));
            }
        }
    }
    fib
}
