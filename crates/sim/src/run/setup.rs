//! From a validated scenario to a world at time zero.

use super::folder::RunError;
use crate::core::faults::Fault;
use crate::core::gate::PortGate;
use crate::core::held::Held;
use crate::core::link::{flag, FarEnd, Link};
use crate::core::pool::Pool;
use crate::core::port::{at_dequeue, Owner, Port};
use crate::core::queues::Queues;
use crate::core::{Core, TimerKey};
use crate::fabric::combined::{self, Crossbar};
use crate::fabric::express::headers_alone;
use crate::fabric::failover::{Change, Failover};
use crate::fabric::switch::{counts_alone, leaves_alone, stamps_alone};
use crate::fabric::table::Fib;
use crate::fabric::{Fabric, SwitchNode};
use crate::hosts::ends::Ends;
use crate::hosts::header::Headers;
use crate::hosts::pause::{NicCounts, LINK};
use crate::hosts::receive::Receivers;
use crate::hosts::round::Round;
use crate::hosts::storm::{Storm, Storms, STORM};
use crate::hosts::tx_queue::TxQueue;
use crate::hosts::{Host, Hosts, NO_HOST};
use crate::ledger::{Capturing, Destination, Ledger, Stamps, Tables, Totals, Trace, Wanted};
use crate::outside::{Blocks, KeepWaiting};
use crate::world::sample::Samples;
use crate::world::{World, DEADLOCK_PERIOD};
use fanin_engine::{Ahead, Table, Ties, Timers, Wheel};
use fanin_packet::{rate_code, Framing};
use fanin_scenario::{notices, Nic, Notice, PauseWatchdog, PortModel, Sampling, Scenario, Telemetry};
use fanin_switch::{
    Admission, At, Buffer, Effects, Express, Hooks, Marker, MechanismState, Mechanisms, PathChooser, PortNo, Scheduler,
};
use fanin_switch::{Scheduling, SharedBuffer};
use fanin_telemetry::{Keep, Name, Registers};
use fanin_topology::{Routes, Topology};
use fanin_traffic::Traffic;
use fanin_transport::{SignalCounts, TransportParams};
use fanin_units::{Amount, Bytes, HostId, LinkId, NodeId, Purpose, QueueClass, Span, Stream, SwitchId, Time};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Links whose hot state, with that of the flows over them, fits into a second-level cache of today. Up to here fetching ahead
/// gains nothing: fat trees of 128 hosts have 768 links and run as fast without, those of 432 have 2,592 and run 1.15 times as
/// fast with it.
const CACHED_LINKS: usize = 1024;
/// Flows open at once whose state fits into a second-level cache: 2.6 KB each. A direct all-to-all of 128 hosts has 16,256.
const CACHED_FLOWS: usize = 4096;
/// Number of events that the wheel knows ahead where prefetching pays: the first step of fetching is so far ahead.
const FETCHED_AHEAD: usize = 11;

/// The far end of a link that leads to `node`.
fn far_end(topology: &Topology, node: NodeId) -> FarEnd {
    match topology.host_id(node) {
        Some(host) => FarEnd::Host(host),
        None => FarEnd::Switch(SwitchId(topology.switch_index(node).unwrap_or_default() as u32)),
    }
}

/// The outside blocks of a scenario, each waited for until its own timeout.
fn blocks(scenario: &Scenario) -> Result<Blocks, RunError> {
    Blocks::connect(scenario, &(Arc::new(|| true) as KeepWaiting)).map_err(RunError::Problems)
}

/// Builds the world of a scenario.
///
/// # Errors
/// When a result table cannot be created, the traffic cannot be generated, or a block outside that decides is not there.
pub fn world(scenario: &Scenario, destination: &Destination<'_>) -> Result<World, RunError> {
    world_asking(scenario, destination, blocks(scenario)?)
}

/// Builds the world of a scenario whose outside blocks are connected.
///
/// # Errors
/// As [`world`].
pub fn world_asking(scenario: &Scenario, destination: &Destination<'_>, outside: Blocks) -> Result<World, RunError> {
    build(scenario, destination, None, outside)
}

/// Builds the world of a scenario, with or without fetching ahead: results do not depend on it, which tests show on networks of any size.
///
/// # Errors
/// As [`world`].
pub fn world_fetching(scenario: &Scenario, destination: &Destination<'_>, prefetches: bool) -> Result<World, RunError> {
    build(scenario, destination, Some(prefetches), blocks(scenario)?)
}

/// `prefetches`: whether to fetch ahead; absent: where it pays.
fn build(
    scenario: &Scenario,
    destination: &Destination<'_>,
    prefetches: Option<bool>,
    outside: Blocks,
) -> Result<World, RunError> {
    let topology = scenario.topology();
    let doc = scenario.doc();
    let (switch, engine, telemetry) = (&doc.switch, &doc.engine, &doc.telemetry);
    let traffic = scenario.traffic().map_err(RunError::Problems)?;
    let grows = || topology.links.len() > CACHED_LINKS || traffic.connections() > CACHED_FLOWS;
    let prefetches = prefetches.unwrap_or_else(grows) && switch.architecture.combined().is_none();
    let framing = doc.framing.of_packets();
    let switches = switches(scenario);
    let (links, ports, ingress, gates) = links_and_ports(scenario, &switches);
    let (crossbars, crossbar_slots) = crossbars(scenario);
    let combined = !crossbars.is_empty();
    let off_fast_path = |l: &Link| matches!(l.flags & flag::OFF_FAST_PATH, flags if flags != 0);
    let fails = !scenario.outages().is_empty();
    let general = fails || links.iter().any(off_fast_path);
    let faults = faults(scenario);
    let mut ports: Table<Port, LinkId> = ports.into();
    outside.attach(scenario, &mut ports);
    let arrivals = links.len() + crossbar_slots.len();

    let (horizon, spacing, shortest) = rhythm(topology, framing);
    let ahead = if prefetches { Ahead { events: FETCHED_AHEAD, span: shortest / 2 } } else { Ahead::NOTHING };
    let samples = match telemetry.sample {
        Sampling::Every(period) => Samples::every(period, links.len()),
        Sampling::Off => Samples::every(Span::MAX, links.len()),
    };
    let ledger = ledger(scenario, destination, &traffic, (samples.are_on(), gates.is_empty(), combined))?;
    let pausable = !gates.is_empty();
    let mut timers = Timers::default();
    let hosts = hosts(scenario, &traffic, &gates, &mut timers);
    let fib = fib(topology, scenario.routes());
    let failover = fails.then(|| Box::new(failover(scenario, &fib)));
    for (at, key) in failover.iter().flat_map(|failover| failover.timers(topology.hosts.len() as u32)) {
        timers.push(at, key);
    }
    Ok(World {
        core: Core {
            now: Time::ZERO,
            wheel: Wheel::new(links.len() + arrivals, horizon, spacing, ties(scenario, arrivals), ahead),
            timers,
            barrier: Time::ZERO,
            arrivals,
            links: links.into(),
            ports,
            pool: Pool::default(),
            shared: shared_buffers(scenario).into(),
            combined,
            crossings: crossbars.iter().map(Crossbar::clock).collect::<Vec<_>>().into(),
            gates,
            inspects: ledger.observed || !faults.is_empty(),
            faults,
            cell: if switch.counts_cells() { switch.cell_bytes() } else { 0 },
            held: Held::default(),
            departed: Vec::new(),
            ledger,
            failure: None,
            stuck: None,
            part: None,
        },
        fabric: Fabric {
            fib,
            failover,
            general,
            seen_up_to: match combined {
                true => u16::MAX,
                false => switches.iter().flat_map(|s| &s.mechanisms).map(MechanismState::offered_up_to).max().unwrap_or(0),
            },
            sees_all: combined || switches.iter().any(|s| s.headers.is_some() || s.hooks.any(Hooks::OFFER.with(Hooks::RANKS))),
            crossbars: crossbars.into(),
            crossbar_slots,
            switches: switches.into(),
            hosts: topology.hosts.len() as u32,
            effects: Effects::default(),
            detouring: false,
            departing: false,
            ingress: ingress.into(),
            entered: Vec::new(),
            reverse: topology.links.iter().map(|link| link.reverse).collect::<Vec<_>>().into(),
            framing,
        },
        hosts,
        traffic,
        outside,
        informed: BTreeMap::new(),
        prefetches,
        stop: scenario.stop().unwrap_or(Time::MAX),
        next_app: Time::ZERO,
        idle_timer: Time::ZERO,
        wound_up: false,
        reached: Time::ZERO,
        news: None,
        starts_until: Time::MAX,
        left: 0,
        samples,
        standstill: (Time::ZERO, 0),
        looked: Time::ZERO,
        next_look: if pausable { Time::ZERO + DEADLOCK_PERIOD } else { Time::MAX },
        stall_events: engine.stall_events,
        max_events: engine.max_events.unwrap_or(u64::MAX),
    })
}

/// Another ledger for a world in which nothing has happened, whose tables go to a place of their own; gives that which it had.
///
/// # Errors
/// When a result table cannot be created.
pub fn exchange_ledger(world: &mut World, scenario: &Scenario, destination: &Destination<'_>) -> Result<Ledger, RunError> {
    let facts = (world.samples.are_on(), world.core.gates.is_empty(), world.core.combined);
    let another = ledger(scenario, destination, &world.traffic, facts)?;
    Ok(std::mem::replace(&mut world.core.ledger, another))
}

/// The order of events at the same instant; slots of arrivals begin at `arrivals`.
fn ties(scenario: &Scenario, arrivals: usize) -> Ties {
    match scenario.doc().engine.ties {
        fanin_scenario::Ties::ByLink => Ties::BySlot,
        fanin_scenario::Ties::Drawn => {
            let seed = Stream::new(scenario.seed(), Purpose::Ties, 0).next_u64();
            Ties::Drawn { seed, from: arrivals as u32 }
        }
    }
}

/// The ledger of a run, with all tables that it writes. `samples`: ports are sampled; `no_pauses`: no port may be paused; `combined`:
/// switches have virtual output queues.
fn ledger(
    scenario: &Scenario,
    destination: &Destination<'_>,
    traffic: &Traffic,
    (samples, no_pauses, combined): (bool, bool, bool),
) -> Result<Ledger, RunError> {
    let (topology, telemetry) = (scenario.topology(), &scenario.doc().telemetry);
    let registers = telemetry.registers.as_ref().map(|registers| Registers { tick: registers.tick, unit: registers.unit });
    let watched = scenario.watched();
    let wanted = Wanted {
        collectives: !traffic.jobs().is_empty(),
        ports: samples,
        queues: !watched.is_empty(),
        drops: telemetry.drops,
        pauses: !no_pauses,
        states: records_states(scenario),
        voqs: samples && combined,
        stamps: registers.is_some(),
        hosts: !telemetry.hosts.is_empty(),
        messages: telemetry.follows_messages(),
        watched: watched.len(),
        keep: keep(&telemetry.keep),
    };
    let mut tables = Tables::new(destination, wanted, traffic.entry_names().map(Name::from).collect())?;
    tables.capture = Capturing::new(scenario, &scenario.doc().framing.of_packets(), destination)?;
    Ok(Ledger {
        observed: observes(telemetry),
        trace: Trace::new(&telemetry.hosts, &telemetry.messages),
        tables,
        totals: Totals::default(),
        stamps: registers.map(|registers| Box::new(Stamps::new(registers))),
        watched: watched.iter().map(|link| (*link, topology.link_name(*link).as_str().into())).collect(),
        host_names: (0..topology.hosts.len() as u32).map(|h| topology.host_name(HostId(h)).into()).collect(),
    })
}

/// The hosts with their NICs; the first storm of each that makes any is set in `timers`.
fn hosts(scenario: &Scenario, traffic: &Traffic, gates: &BTreeMap<LinkId, PortGate>, timers: &mut Timers<TimerKey>) -> Hosts {
    let (topology, doc) = (scenario.topology(), scenario.doc());
    let (switch, engine, telemetry) = (&doc.switch, &doc.engine, &doc.telemetry);
    let observed = observes(telemetry);
    let fifo_nic = matches!(doc.host.nic, Nic::Fifo(_));
    let tapped = observed || host_headers(scenario).is_some();
    let nic = |node: &NodeId| {
        let nic = topology.host_link(*node);
        let gate = gates.contains_key(&nic).then(Box::default);
        // Rows of what happens at NICs stand in the order of time.
        let watched = observed || fifo_nic || gate.is_some() || engine.ports == PortModel::Explicit;
        Host { nic, ready: Round::default(), armed: false, watched, hasty: false, closed: 0, gate }
    };
    let mut storms = Storms::new();
    for (host, changes) in scenario.storms() {
        if let Some((first, storm)) = Storm::new(changes) {
            timers.push(first, (NodeId(host.0), STORM));
            storms.insert(host, storm);
        }
    }
    let mut notices = BTreeMap::new();
    for (host, node) in (0..).map(HostId).zip(&topology.hosts) {
        let all: VecDeque<Notice> = notices_of(scenario, topology.host_link(*node));
        if let Some(first) = all.front() {
            timers.push(first.at, (NodeId(host.0), LINK));
            notices.insert(host, all);
        }
    }
    let mut feeders = vec![NO_HOST; topology.links.len()];
    (0..).map(HostId).zip(&topology.hosts).for_each(|(host, node)| feeders[topology.host_link(*node).index()] = host);
    let nics: Vec<Host> = topology.hosts.iter().map(nic).collect();
    let transports = scenario.transports().iter().map(|(name, config)| (name.as_str().into(), Arc::new(config.clone().into())));
    Hosts {
        reordering: Default::default(),
        hosts: nics.into(),
        feeders: feeders.into(),
        ends: Ends::default(),
        transports: transports.collect::<Vec<_>>().into(),
        framing: doc.framing.of_packets().with_trailer(telemetry.trailer()),
        processing: doc.host.processing_delay,
        ttl: switch.ttl,
        pulls_untapped: !fifo_nic && !tapped,
        watchdog_times: doc.host.pause_watchdog.as_ref().map(PauseWatchdog::times),
        storms,
        pause_counts: NicCounts::default(),
        notices,
        tx_queues: TxQueue::of_hosts(&doc.host, scenario.transports(), topology.hosts.len()),
        seed: scenario.seed(),
        entry_keys: traffic.entry_names().map(fnv1a).collect(),
        completed: Vec::new(),
        progress: Vec::new(),
        connections: BTreeMap::new(),
        after_end: BTreeMap::new(),
        gone: Vec::new(),
        signals: SignalCounts::default(),
        receivers: Receivers::new(&doc.host, topology.hosts.len(), scenario.seed()),
        headers: host_headers(scenario),
    }
}

/// Changes that the ends of a link notice, in order.
fn notices_of(scenario: &Scenario, link: LinkId) -> VecDeque<Notice> {
    notices(scenario.outages_of(link)).into()
}

/// Failures and bit errors of links during the run, by link, in one direction.
fn faults(scenario: &Scenario) -> BTreeMap<LinkId, Fault> {
    let topology = scenario.topology();
    let of = |(l, wire): (LinkId, &fanin_topology::Link)| {
        let (outages, errors) = (scenario.outages_of(l).to_vec(), scenario.bit_errors().get(&l).cloned().unwrap_or_default());
        let inside = scenario.hop_delay(l) - wire.delay;
        let draws = Stream::new(scenario.seed(), Purpose::BitErrors, u64::from(l.0));
        let happens = !outages.is_empty() || !errors.is_empty();
        happens.then(|| (l, Fault::new(inside, outages, errors, draws)))
    };
    (0..).map(LinkId).zip(&topology.links).filter_map(of).collect()
}

/// Failures of links between switches: the time at which each end notices, and from which tables know. Links of hosts are in no
/// table: packets for a host go to its switch.
fn failover(scenario: &Scenario, fib: &Fib) -> Failover {
    let (topology, converge) = (scenario.topology(), scenario.doc().failover.converge);
    let (mut noticed, mut changes) = (Vec::new(), Vec::new());
    for link in scenario.outages().keys() {
        let links = [*link, topology.link(*link).reverse];
        let seen = notices_of(scenario, *link);
        let switches = links.map(|l| topology.switch_index(topology.link(l).from));
        for (l, s) in links.into_iter().zip(switches) {
            noticed.extend(s.iter().flat_map(|s| seen.iter().map(|notice| (SwitchId(*s as u32), l, *notice))));
        }
        if switches.iter().all(Option::is_some) {
            changes.extend(seen.iter().map(|notice| Change { at: notice.at + converge, links, up: notice.up }));
        }
    }
    changes.sort_by_key(|change| (change.at, change.links[0]));
    Failover::new(topology, fib.clone(), &noticed, changes)
}

/// The switches with their mechanisms.
fn switches(scenario: &Scenario) -> Vec<SwitchNode> {
    let topology = scenario.topology();
    let switch = &scenario.doc().switch;
    let combined = switch.architecture.combined().is_some();
    let hooks_of = |mechanisms: &[MechanismState]| {
        let all = mechanisms.iter().map(MechanismState::hooks).fold(Hooks::NONE, Hooks::with);
        if combined {
            all.without(Hooks::INPUTS).with(Hooks::COMBINED)
        } else {
            all
        }
    };
    let of = |s: usize| {
        let node = NodeId((topology.hosts.len() + s) as u32);
        let site = scenario.site(node);
        let mechanisms = scenario.mechanisms(node).at(&site);
        let (hooks, headers) = (hooks_of(&mechanisms), headers_alone(&mechanisms));
        SwitchNode {
            name: site.name.as_str().into(),
            seed: Stream::new(scenario.seed(), Purpose::Hashing, s as u64).next_u32(),
            paths: PathChooser::new(&switch.routing),
            rng: Stream::new(scenario.seed(), Purpose::Spraying, s as u64),
            hooks,
            headers,
            stamps: stamps_alone(&mechanisms),
            counts: counts_alone(&mechanisms).filter(|_| !combined),
            leaves: leaves_alone(&mechanisms),
            mechanisms,
            ports: site.ports.iter().map(|port| port.link).collect(),
            inputs: Vec::new(),
            outbox: VecDeque::new(),
            dropped: VecDeque::new(),
        }
    };
    (0..topology.switch_count()).map(of).collect()
}

/// True where a mechanism of some switch records its states of ports.
fn records_states(scenario: &Scenario) -> bool {
    let topology = scenario.topology();
    (topology.hosts.len()..topology.nodes.len()).any(|node| scenario.mechanisms(NodeId(node as u32)).states())
}

/// The headers that hosts put into frames, where a mechanism of some switch wants them.
fn host_headers(scenario: &Scenario) -> Option<Box<Headers>> {
    let topology = scenario.topology();
    let switches = (topology.hosts.len()..topology.nodes.len()).map(|node| NodeId(node as u32));
    switches.map(|node| scenario.mechanisms(node)).find_map(Mechanisms::host_header).map(Headers::new)
}

/// Buffers that ports of a switch share, by switch, if they do. Each class of each port is a queue of its own there.
fn shared_buffers(scenario: &Scenario) -> Vec<SharedBuffer> {
    let topology = scenario.topology();
    let switch = &scenario.doc().switch;
    let Buffer::Dynamic(params) = &switch.buffer else { return Vec::new() };
    let of = |s: usize| {
        let links = topology.out_links(NodeId((topology.hosts.len() + s) as u32));
        let queues = links.iter().map(|link| scenario.port(*link).scheduling.classes() as u32).sum();
        SharedBuffer::new(params, queues, switch.cell_bytes())
    };
    (0..topology.switch_count()).map(of).collect()
}

/// Crossbars by switch, and their slots of the wheel; empty where switches are output queued.
fn crossbars(scenario: &Scenario) -> (Vec<Crossbar>, Vec<(SwitchId, u16)>) {
    let topology = scenario.topology();
    let Some(settings) = scenario.doc().switch.architecture.combined() else { return (Vec::new(), Vec::new()) };
    let (mut all, mut slots) = (Vec::new(), Vec::new());
    for s in 0..topology.switch_count() {
        let node = NodeId((topology.hosts.len() + s) as u32);
        let links = topology.out_links(node);
        let ports: Vec<_> = links.iter().map(|link| (*link, scenario.port(*link).scheduling)).collect();
        let settings = combined::Settings {
            arbitration: &settings.scheduler,
            rate: scenario.crossbar_rate(node).unwrap_or_default(),
            voq: settings.voq.get(),
            output: settings.output.get(),
            largest: scenario.largest_frame().get(),
            first_slot: topology.links.len() + slots.len(),
        };
        all.push(Crossbar::new(&settings, &ports));
        slots.extend((0..Crossbar::slots(ports.len())).map(|which| (SwitchId(s as u32), which as u16)));
    }
    (all, slots)
}

/// True if packets are recorded where they are sent and delivered.
fn observes(telemetry: &Telemetry) -> bool {
    telemetry.registers.is_some() || telemetry.capture.is_some() || telemetry.follows_messages()
}

/// Links with the ports that feed them, the ingress port of the switch at each link's end, and the pauses of ports that may be
/// paused.
#[allow(clippy::type_complexity)] // what a world is made of, taken apart where it is built
fn links_and_ports(scenario: &Scenario, switches: &[SwitchNode]) -> (Vec<Link>, Vec<Port>, Vec<u16>, BTreeMap<LinkId, PortGate>) {
    let topology = scenario.topology();
    let explicit = scenario.doc().engine.ports == PortModel::Explicit;
    let asked = scenario.transports().iter().any(|(_, transport)| transport.needs_telemetry().is_some());
    let stormy: Vec<HostId> = scenario.storms().into_iter().map(|(host, _)| host).collect();
    let mut links = Vec::with_capacity(topology.links.len());
    let mut ports: Vec<Port> = Vec::with_capacity(topology.links.len());
    let port_of =
        |node: NodeId, link: LinkId| topology.out_links(node).iter().position(|l| *l == link).unwrap_or_default() as u16;
    let mut ingress = Vec::with_capacity(topology.links.len());
    let mut gates = BTreeMap::new();
    for (i, wire) in topology.links.iter().enumerate() {
        let id = LinkId(i as u32);
        let gap = scenario.overhead(id);
        // What a packet spends inside the node at the far end before that acts on it is part of the delay.
        let mut link = Link::new(scenario.hop_delay(id), wire.rate, gap, far_end(topology, wire.to));
        let owner = match far_end(topology, wire.from) {
            FarEnd::Host(h) => Owner::Host(h),
            FarEnd::Switch(s) => Owner::Switch(s, PortNo(port_of(wire.from, id))),
        };
        let mut port = Port {
            carried: [0; 2],
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
            rate_code: rate_code(wire.rate).unwrap_or(0),
            at_dequeue: 0,
            by_class: false,
            closed: 0,
            down: false,
            takes_all: false,
            last_class: 0,
            general: false,
            in_ring: QueueClass::FIRST,
            since: 0,
            admission: Admission::Unlimited,
            marker: Marker::new(&fanin_switch::Marking::None(fanin_switch::NoMarking {})),
            rng: Stream::new(scenario.seed(), Purpose::Marking, i as u64),
            watched: scenario.watched().binary_search(&id).ok().map(|number| number as u32),
            queues: None,
            name: topology.link_name(id).as_str().into(),
            sampled: [0; 4],
            held_bytes: 0,
            held_packets: 0,
            held_max: 0,
        };
        let hooks = |end: FarEnd| match end {
            FarEnd::Host(_) => Hooks::NONE,
            FarEnd::Switch(s) => switches[s.index()].hooks,
        };
        let sends = hooks(far_end(topology, wire.from));
        if matches!(owner, Owner::Switch(..)) {
            equip(&mut link, &mut port, scenario, id, explicit, sends);
            give_express(&mut link, &mut port, switches);
        }
        // A NIC too, where the switch that it leads to may ask it to pause.
        // One that is a queue, first in, first out, has no classes to pause.
        let deaf = matches!(owner, Owner::Host(_)) && matches!(scenario.doc().host.nic, Nic::Fifo(_));
        if !deaf && (sends.any(Hooks::GATES) || hooks(link.far_end()).any(Hooks::GATES)) {
            let obeys = matches!(owner, Owner::Host(_)) || sends.any(Hooks::GATES);
            gates.insert(id, PortGate::new(wire.reverse, obeys));
        }
        let holds = matches!(link.far_end(), FarEnd::Host(_)) && scenario.doc().host.holds_packets();
        // Packets of followed flows are recorded where they arrive, and frames of captured links; at hosts all that are observed.
        let at_host = matches!(link.far_end(), FarEnd::Host(_)) && observes(&scenario.doc().telemetry);
        let followed = !scenario.doc().telemetry.hosts.is_empty() || scenario.captured_links().binary_search(&id).is_ok();
        // Telemetry in a frame is for the endpoint behind it.
        let telemetry = asked && matches!(link.far_end(), FarEnd::Host(_));
        // What a host asks its switch for is no packet.
        let asks = matches!(owner, Owner::Host(host) if stormy.contains(&host));
        let of_packets = holds || followed || at_host || telemetry || hooks(link.far_end()).any(Hooks::ROUTE);
        // What happens on the link comes before everything else at its far end.
        let fails = !scenario.outages_of(id).is_empty() || scenario.bit_errors().contains_key(&id);
        let of_packets = of_packets || fails;
        if of_packets || asks || sends.any(Hooks::MESSAGES) {
            link.hook_ingress(!of_packets);
        }
        ingress.push(match link.far_end() {
            FarEnd::Switch(_) => port_of(wire.to, wire.reverse),
            FarEnd::Host(_) => u16::MAX,
        });
        links.push(link);
        ports.push(port);
    }
    (links, ports, ingress, gates)
}

/// Gives a switch's port the express queue that a mechanism there wants.
fn give_express(link: &mut Link, port: &mut Port, switches: &[SwitchNode]) {
    let params = switches[port.owner.switch().index()].mechanisms.iter().find_map(|m| m.overtakes(|m| m.express()));
    if let (Some(params), Some(queues)) = (params, port.queues.as_deref_mut()) {
        queues.express = Some(Box::new(Express::new(params)));
        port.general = true;
        link.flags |= flag::GENERAL;
    }
}

/// The part of the records of watched ports that is kept.
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

/// FNV-1a hash of a name, of 64 bits.
fn fnv1a(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Gives a switch's port its buffer, marking and scheduling. `explicit`: its departures are always events.
fn equip(link: &mut Link, port: &mut Port, scenario: &Scenario, id: LinkId, explicit: bool, hooks: Hooks) {
    let settings = scenario.port(id);
    let marker = Marker::new(settings.marking);
    let markers: Option<Box<[Marker]>> = settings.marking_by_class().map(|of| of.into_iter().map(Marker::new).collect());
    let asked = |of: fn(&Marker) -> bool| markers.as_deref().unwrap_or(std::slice::from_ref(&marker)).iter().any(of);
    let scheduler = Scheduler::new(settings.scheduling);
    let admission = match (settings.buffer, settings.alpha) {
        (Some(Amount::Bytes(output)), _) if hooks.any(Hooks::COMBINED) => Admission::Granted(Bytes(output)),
        (Some(limit), _) => Admission::Static(limit),
        (None, Some(alpha)) => Admission::Shared { alpha, queued: vec![0; scheduler.classes()] },
        (None, None) => Admission::Unlimited,
    };
    let cells = scenario.doc().switch.counts_cells();
    port.at_dequeue = if asked(Marker::acts_at_dequeue) { at_dequeue::MARK } else { 0 };
    port.at_dequeue |= if hooks.any(Hooks::SHIMS) { at_dequeue::LEFT } else { 0 };
    port.at_dequeue |= if hooks.any(Hooks::DEPARTED) { at_dequeue::NOTIFY } else { 0 };
    port.by_class = markers.is_some();
    // Where a crossbar asks for room, it must be known when there is room again.
    let always = explicit || hooks.any(Hooks::COMBINED) || asked(Marker::decides_at_head);
    let classes = !matches!(settings.scheduling, Scheduling::Fifo(_));
    // What the inner loop can serve by itself: limits and thresholds in bytes or packets.
    // Beyond 4 GiB there is no limit and no threshold; a queue that reaches it ends the run.
    let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    (link.limit, link.flags) = match admission.simple_limit() {
        Some(Amount::Bytes(n)) => (small(n), link.flags),
        Some(Amount::Packets(n)) => (small(n), link.flags | flag::LIMIT_PACKETS),
        _ => (u32::MAX, link.flags), // shared, or in cells
    };
    (link.threshold, link.flags) = match marker.simple_threshold() {
        _ if !marker.acts_at_enqueue() => (u32::MAX, link.flags),
        Some((Amount::Bytes(k), At::Enqueue)) => (small(k), link.flags),
        Some((Amount::Packets(k), At::Enqueue)) => (small(k), link.flags | flag::MARK_PACKETS),
        _ => (u32::MAX, link.flags | flag::POLICY),
    };
    let acts_alone = port.at_dequeue & (at_dequeue::MARK | at_dequeue::LEFT) != 0; // also on what finds the wire free
    link.flags |= if admission.is_shared() || acts_alone || port.watched.is_some() { flag::POLICY } else { 0 };
    link.flags |= if admission.is_shared() || port.at_dequeue != 0 { flag::DEQUEUE } else { 0 };
    link.flags |= if classes { flag::CLASSES } else { 0 };
    let general = always || cells || port.by_class || hooks.any(Hooks::RANKS);
    link.flags |= if general { flag::GENERAL } else { 0 };
    link.flags |= if always { flag::EVENTS } else { 0 };
    if hooks.any(Hooks::BEFORE_PORTS.with(Hooks::COMBINED)) {
        link.flags |= flag::MECHANISMS;
    }
    // A port that goes down leaves the fast path.
    let goes_down = !scenario.outages_of(id).is_empty();
    if link.flags & (flag::GENERAL | flag::CLASSES) != 0 || hooks != Hooks::NONE || goes_down {
        let heads = asked(Marker::decides_at_head);
        let queues = Queues::new(scheduler, always, (heads, hooks.any(Hooks::RANKS)), markers);
        port.last_class = (queues.count() - 1) as u8;
        port.general = link.flags & flag::GENERAL != 0;
        port.queues = Some(Box::new(queues));
    }
    let unmarked = matches!(settings.marking, fanin_switch::Marking::None(_)) && !port.by_class;
    port.takes_all = unmarked && matches!(admission, Admission::Unlimited) && port.watched.is_none();
    (port.admission, port.marker) = (admission, marker);
}

/// Time scales for the event wheel: how far ahead most events lie (propagation and serialisation of a full frame on most links),
/// how far apart they are (the time in which about two such frames leave the network's ports when half of them are busy), and the
/// shortest of the former. A slow link in a fast
/// fabric must not make the wheel's buckets wide; its events take the heap. Buckets stay well below the shortest delay
/// where delays are alike, so that events rarely fall into the bucket that is open.
fn rhythm(topology: &Topology, framing: Framing) -> (Span, Span, Span) {
    let full = fanin_units::Bytes(u64::from(framing.on_wire(framing.frame(1500 - framing.ip.header()))));
    let mut ahead: Vec<Span> = topology.links.iter().map(|l| l.delay + l.rate.time_to_send(full)).collect();
    ahead.sort_unstable();
    let horizon = ahead.get(ahead.len() * 9 / 10).copied().unwrap_or(Span::from_us(1));
    let shortest = ahead.first().copied().unwrap_or(Span::ZERO);
    let tx = topology.links.iter().map(|l| l.rate.time_to_send(full)).min().unwrap_or(Span::ZERO);
    let spacing = Span::from_ps((tx * 4 / (ahead.len().max(1) as u64)).ps().min(shortest.ps() / 16));
    (horizon, spacing, shortest)
}

/// Flattens the routing tables.
fn fib(topology: &Topology, routes: &Routes) -> Fib {
    let hosts: Vec<_> =
        (0..topology.hosts.len() as u32).map(|h| (routes.attachment_of(HostId(h)), routes.host_port(HostId(h)))).collect();
    let mut fib = Fib::new(topology.switch_count(), routes.attachments(), &hosts, routes.groups());
    for switch in 0..topology.switch_count() {
        let node = NodeId((topology.hosts.len() + switch) as u32);
        for attachment in 0..routes.attachments() {
            if routes.attachment_node(attachment) == node {
                fib.set_local(switch, attachment);
            } else if let Some(group) = routes.group(node, attachment) {
                fib.set(switch, attachment, group);
            }
        }
    }
    fib
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::table::NextHop;

    fn scenario(topology: &str) -> Scenario {
        let traffic = "[[traffic]]\nkind = \"flows\"\nflows = [{ src = \"h0\", dst = \"h1\", size = \"100KB\" }]\n";
        Scenario::from_toml(&format!("[topology]\n{topology}\n{traffic}"), std::path::Path::new(".")).expect("a valid scenario")
    }

    #[test]
    fn every_switch_forwards_to_every_host_as_the_routes_say() {
        for topology in [
            "kind = \"fat_tree\"\nk = 6",
            "kind = \"leaf_spine\"\nleaves = 3\nhosts_per_leaf = 2\nspines = 2\nlinks_per_pair = 2",
            "kind = \"chain\"\nswitches = 3",
        ] {
            let scenario = scenario(topology);
            let (topology, routes) = (scenario.topology(), scenario.routes());
            let fib = fib(topology, routes);
            for (switch, host) in (0..topology.switch_count()).flat_map(|s| (0..topology.hosts.len()).map(move |h| (s, h))) {
                let host = HostId(host as u32);
                let links: Vec<LinkId> = match fib.lookup(SwitchId(switch as u32), host) {
                    NextHop::One(link) => vec![link],
                    NextHop::Several(links) => links.to_vec(),
                    NextHop::None => Vec::new(),
                };
                let node = NodeId((topology.hosts.len() + switch) as u32);
                let told = routes.next_hops(node, host).to_vec();
                assert_eq!(links, told, "switch {switch} to host {host}");
            }
        }
    }

    /// A host with its six directed links, their ports and rings, and its share of the tables: about the same in any fat tree.
    #[test]
    fn a_host_of_a_large_network_takes_as_little_as_one_of_a_small() {
        for k in [8, 16, 24] {
            let world = world(&scenario(&format!("kind = \"fat_tree\"\nk = {k}")), &Destination::Nowhere).expect("a world");
            let (name, bytes) = world.memory()[0];
            assert!(name == "bytes_per_host" && (2_000.0..6_000.0).contains(&bytes), "k = {k}: {bytes} bytes");
        }
    }
}
