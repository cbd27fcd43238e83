//! Checks of a scenario as a whole, which no parameter can do by itself.

mod capture;
mod combined;
mod events;
mod except;
mod load;
mod mechanisms;
mod names;
mod network;
mod pauses;
mod settings;
mod switch;
mod telemetry;
mod transport;
mod volume;

pub(crate) use network::{core_rate, crossbar_rate, host_infos, Network};

pub(crate) use self::capture::Captured;
use self::settings::{at_marking, at_setting, path, Settings};
use self::transport::shown;
pub(crate) use self::volume::{flow_volume, with_waiting_flows, ACKS};
use crate::doc::{Parts, DEFAULT_TRANSPORT};
use crate::events::Events;
use crate::exceptions::Exceptions;
use fanin_packet::{IpVersion, Stack, MAX_HOPS};
use fanin_params::{Cx, Problem, Severity};
use fanin_switch::Marking;
use fanin_traffic::{Entry, FlowSpec, HostInfo, Traffic, TrafficContext, TrafficKind, MAX_FLOWS};
use fanin_transport::{Idle, TransportConfig, TransportParams};
use fanin_units::{BitRate, Bytes, LinkId, Time};
use std::collections::BTreeSet;
use std::path::Path;

/// Result of the checks: problems, and the objects that the scenario's names refer to.
pub(crate) struct Findings {
    pub problems: Vec<Problem>,
    /// Ports that `telemetry.queues` selects.
    pub watched: Vec<LinkId>,
    /// Hosts and links that `telemetry.capture` selects.
    pub captured: Captured,
    /// Ports and switches to which the entries of `switch.except` apply.
    pub exceptions: Exceptions,
    /// Failures and bit errors of links during the run.
    pub events: Events,
    /// Notes about decisions taken from the content of files.
    pub notes: Vec<String>,
}

/// Runs all checks that `parts` allow; `network` is absent if the topology could not be built.
pub(crate) fn check(parts: &Parts, network: Option<&Network>, base_dir: &Path) -> Findings {
    let mut cx = Cx::new();
    each_transport(parts, &mut cx);
    if let Some(switch) = &parts.switch {
        cx.key("switch", |cx| switch::check(switch, cx));
    }
    if let Some(host) = &parts.host {
        host.check(&mut cx);
    }
    let exceptions = network.map(|network| except::resolve(parts, network, &mut cx)).unwrap_or_default();
    let events = events::check(parts, network, &mut cx);
    let flows = network.map(|network| flows(parts, network, base_dir));
    let sample = flows.iter().flatten().flat_map(|(_, sample)| sample);
    let of_traffic = OfTraffic::new(parts, sample);
    let settings = parts.switch.as_ref().map(|switch| Settings::of(switch, &exceptions, network));
    let mut notes = Vec::new();
    if let Some(settings) = &settings {
        switch::in_use(settings, network, &mut cx);
        combined::check(parts, settings, &mut cx);
        classes(parts, settings, &of_traffic, (&mut notes, &mut cx));
    }
    frame_sizes(parts, &mut cx);
    long_datagrams(parts, &mut cx);
    if let Some(settings) = &settings {
        ecn(parts, settings, (network, &of_traffic), &mut cx);
        mechanisms::check(parts, settings, (network, &events, &of_traffic), &mut cx);
        pauses::check(parts, settings, network, &mut cx);
    }
    let mut watched = Vec::new();
    let mut captured = Captured::default();
    let mut problems;
    if let (Some(network), Some(flows)) = (network, flows) {
        wire_overhead(parts, network, &mut cx);
        for (name, config) in used_transports(parts) {
            let fastest = network.host_infos().iter().map(|host| host.rate).max();
            if let Some(line) = fastest {
                let sample = flows.iter().flat_map(|(_, sample)| sample);
                let at = Idle { line, base_rtt: load::longest_rtt(parts, name, config, sample, network) };
                at_transport(&mut cx, name, |cx| config.check_at(&at, cx));
            }
        }
        watched = telemetry::watched(parts, network, &mut cx);
        let mut largest = telemetry::Largest::Unknown;
        if let Some(settings) = &settings {
            telemetry::sampling(parts, settings, network, &mut cx);
            largest = telemetry::largest_buffer(settings, &watched);
        }
        telemetry::keep(parts, &watched, largest, &mut cx);
        telemetry::registers(parts, &watched, largest, (&mut notes, &mut cx));
        captured = capture::check(parts, settings.as_ref(), network, &mut cx);
        switch::paths(parts, network, &mut cx);
        switch::order(parts, network, &mut cx);
        switch::time_to_live(parts, network, &mut cx);
        problems = traffic(parts, flows, (settings.as_ref(), network, &watched), (&mut notes, &mut cx));
    } else {
        problems = problems_without_network(parts, base_dir);
    }
    problems.extend(cx.into_problems());
    Findings { problems, watched, captured, exceptions, events, notes }
}

fn each_transport(parts: &Parts, cx: &mut Cx) {
    if parts.default_named {
        let remedy = "any other name; [transport] is the one that is called default";
        cx.key("transports", |cx| {
            cx.key(DEFAULT_TRANSPORT, |cx| cx.error(None, "is the name of [transport]", Some(remedy.to_string())).severity);
        });
    }
    for (i, (name, config)) in parts.transports.iter().enumerate() {
        let body = |cx: &mut Cx| {
            if let Some(config) = config {
                transport::check(config, parts, cx);
            }
        };
        let used = |entry: &Entry| transport_of(parts, entry).is_some_and(|(used, _)| used == name);
        let idle = parts.all_traffic && config.is_some() && !parts.traffic.iter().any(|(_, entry)| used(entry));
        if i == 0 {
            let default = TransportConfig::default();
            cx.key("transport", |cx| {
                body(cx);
                if idle && config.as_ref() != Some(&default) {
                    cx.warn(None, "is used by no traffic", None);
                }
            });
            continue;
        }
        cx.key("transports", |cx| {
            cx.key(name, |cx| {
                body(cx);
                if idle {
                    cx.warn(None, "is used by no traffic", None);
                }
            });
        });
    }
}

/// The transport of an entry, if it has one and that could be parsed.
fn transport_of<'a>(parts: &'a Parts, entry: &Entry) -> Option<(&'a str, &'a TransportConfig)> {
    if matches!(entry.kind, TrafficKind::Cbr(_) | TrafficKind::OnOff(_)) {
        return None;
    }
    let wanted = entry.transport.as_deref().unwrap_or(DEFAULT_TRANSPORT);
    let (name, config) = parts.transports.iter().find(|(name, _)| name == wanted)?;
    Some((name, config.as_ref()?))
}

/// The transports that traffic uses, each once, with their names.
fn used_transports(parts: &Parts) -> Vec<(&str, &TransportConfig)> {
    let mut used: Vec<(&str, &TransportConfig)> = Vec::new();
    for (_, entry) in &parts.traffic {
        if let Some((name, config)) = transport_of(parts, entry) {
            if !used.iter().any(|(known, _)| *known == name) {
                used.push((name, config));
            }
        }
    }
    used
}

/// Runs `body` at the path of a transport in the document.
fn at_transport(cx: &mut Cx, name: &str, body: impl FnOnce(&mut Cx)) {
    if name == DEFAULT_TRANSPORT {
        cx.key("transport", body);
    } else {
        cx.key("transports", |cx| cx.key(name, body));
    }
}

fn at_entry(cx: &mut Cx, index: usize, body: impl FnOnce(&mut Cx)) {
    cx.key("traffic", |cx| cx.index(index, body));
}

/// The traffic classes of each entry's flows, indexed like the entries that could be parsed.
pub(crate) struct OfTraffic(Vec<BTreeSet<u8>>);

impl OfTraffic {
    /// Collects the class of each entry, and the classes of its flows in `sample` if a file gives flows classes of their own.
    fn new<'a>(parts: &Parts, sample: impl Iterator<Item = &'a FlowSpec>) -> OfTraffic {
        let mut classes = vec![BTreeSet::new(); parts.traffic.len()];
        for flow in sample {
            if let Some(of_entry) = classes.get_mut(usize::from(flow.entry)) {
                of_entry.insert(flow.class);
            }
        }
        for ((_, entry), of_entry) in parts.traffic.iter().zip(&mut classes) {
            if of_entry.is_empty() || !matches!(entry.kind, TrafficKind::File(_)) {
                *of_entry = BTreeSet::from([entry.class]);
            }
        }
        OfTraffic(classes)
    }

    /// Classes of all traffic, and the further classes in which transports send (acknowledgments, notifications).
    fn in_use(&self, parts: &Parts) -> BTreeSet<u8> {
        let others = used_transports(parts).into_iter().flat_map(|(_, config)| config.other_classes());
        self.0.iter().flatten().copied().chain(others.map(|(_, class)| class)).collect()
    }

    /// Classes of a transport's flows.
    fn of_transport(&self, parts: &Parts, name: &str) -> BTreeSet<u8> {
        let entries = parts.traffic.iter().zip(&self.0);
        let its = entries.filter(|((_, entry), _)| transport_of(parts, entry).is_some_and(|(used, _)| used == name));
        its.flat_map(|(_, classes)| classes.iter().copied()).collect()
    }
}

/// Reports classes that no port has, and schedulers that have nothing to choose between. A class that only some ports have is
/// neither: at the others it shares the last queue.
fn classes(parts: &Parts, settings: &Settings, of_traffic: &OfTraffic, (notes, cx): (&mut Vec<String>, &mut Cx)) {
    let [(entry, most), (fewest_entry, fewest)] = settings.most_and_fewest_classes();
    let classes = most.classes();
    for (i, traffic) in &parts.traffic {
        if usize::from(traffic.class) >= classes {
            at_entry(cx, *i, |cx| {
                cx.key("class", |cx| {
                    let highest = if classes == 1 { "0".to_string() } else { format!("from 0 to {}", classes - 1) };
                    let accepted = format!("{highest}, the classes of {} \"{}\"", path(entry, "scheduling"), most.kind());
                    cx.error(Some(&shown(&traffic.class)), "is a class that the switches do not have", Some(accepted));
                });
            });
        }
    }
    for (name, config) in used_transports(parts) {
        for (key, class) in config.other_classes().into_iter().filter(|(_, class)| usize::from(*class) >= classes) {
            at_transport(cx, name, |cx| {
                let accepted = format!("below {classes}, the classes of {} \"{}\"", path(entry, "scheduling"), most.kind());
                cx.error_at(key, &class, "is a class that the switches do not have", &accepted);
            });
        }
    }
    let in_use = of_traffic.in_use(parts);
    let highest = in_use.last().copied().unwrap_or_default();
    if (fewest.classes()..classes).contains(&usize::from(highest)) {
        notes.push(format!(
            "{} \"{}\" has classes up to {}: at its ports, packets of higher classes belong to that one",
            path(fewest_entry, "scheduling"),
            fewest.kind(),
            fewest.classes() - 1
        ));
    }
    let from_file = parts.traffic.iter().any(|(_, entry)| matches!(entry.kind, TrafficKind::File(_)));
    if in_use.len() != 1 || !parts.all_traffic || from_file {
        return;
    }
    for (entry, _) in settings.schedulings().filter(|(_, scheduling)| scheduling.classes() > 1) {
        let message = format!("has nothing to choose between: all traffic is of class {highest}");
        at_setting(entry, "scheduling", cx, |cx| cx.warn(None, message, None).severity);
    }
}

/// Length of the IP and UDP headers of a datagram.
fn ip_and_udp(parts: &Parts) -> u64 {
    u64::from(parts.ip().header()) + UDP_HEADER
}

/// Length of a UDP header \[bytes\]. Source: RFC 768.
const UDP_HEADER: u64 = 8;

/// Entries that send datagrams, by their index in the document, and the application bytes of each datagram.
fn datagrams(parts: &Parts) -> impl Iterator<Item = (usize, Bytes)> + use<'_> {
    parts.traffic.iter().filter_map(|(i, entry)| match &entry.kind {
        TrafficKind::Cbr(source) => Some((*i, source.packet)),
        TrafficKind::OnOff(source) => Some((*i, source.packet)),
        _ => None,
    })
}

/// Size of the largest frame of the traffic, with everything that switches may add to it.
pub(crate) fn largest_frame(parts: &Parts) -> Bytes {
    let Some(framing) = &parts.framing else { return Bytes(u64::from(u16::MAX)) };
    let sets = parts.switch.iter().flat_map(|switch| {
        std::iter::once(&switch.mechanisms).chain(switch.except.iter().filter_map(|entry| entry.mechanisms.as_ref()))
    });
    let headers = sets.map(|mechanisms| u64::from(mechanisms.header_bytes())).max().unwrap_or(0);
    let telemetry = |config: &TransportConfig| config.needs_telemetry().map_or(0, |_| u64::from(Stack::bytes(MAX_HOPS)));
    let of_transports =
        used_transports(parts).into_iter().map(|(_, config)| u64::from(config.mtu(parts.ip())) + telemetry(config));
    let of_sources = datagrams(parts).map(|(_, packet)| packet.get() + ip_and_udp(parts));
    let longest = of_transports.chain(of_sources).max().unwrap_or(0);
    (framing.header + Bytes(longest + u64::from(parts.trailer()) + headers)).max(framing.min_frame)
}

/// Reports links whose wire overhead makes frames too long for the 16 bits of their length.
fn wire_overhead(parts: &Parts, network: &Network, cx: &mut Cx) {
    let Some(header) = parts.framing.as_ref().map(|framing| framing.header) else { return };
    if let Some((link, overhead)) = network.headless_link(header) {
        let message = format!("gives {link} a wire_overhead of {overhead}, less than framing.header");
        cx.key("topology", |cx| cx.error(None, message, Some(format!("at least {header}"))).severity);
    }
}

fn frame_sizes(parts: &Parts, cx: &mut Cx) {
    let Some(framing) = &parts.framing else { return };
    let room = u64::from(u16::MAX) - framing.header.get();
    for (name, config) in parts.transports.iter().filter_map(|(name, config)| Some((name, config.as_ref()?))) {
        let mtu = config.mtu(parts.ip());
        if u64::from(mtu) > room {
            at_transport(cx, name, |cx| {
                cx.key("mtu", |cx| {
                    cx.error(Some(&shown(&mtu)), "does not fit a frame with framing.header", Some(format!("at most {room}")))
                        .severity
                });
            });
        }
    }
    let room = room - u64::from(parts.trailer());
    for (i, packet) in datagrams(parts) {
        let headers = ip_and_udp(parts);
        if packet.get() + headers > room {
            let accepted = format!("at most {}", Bytes(room - headers));
            at_entry(cx, i, |cx| {
                cx.key("packet", |cx| {
                    cx.error(Some(&shown(&packet)), "does not fit a frame with its headers", Some(accepted)).severity
                });
            });
        }
    }
}

/// The largest IP packet of Ethernet. Source: IEEE 802.3 §3.2.7.
const ETHERNET_MTU: u64 = 1_500;

/// Warns of datagrams that fill their frame only without a stamp and with IPv4's header.
fn long_datagrams(parts: &Parts, cx: &mut Cx) {
    let usual = u64::from(IpVersion::V4.header()) + UDP_HEADER;
    let (headers, stamp) = (ip_and_udp(parts), u64::from(parts.trailer()));
    for (i, packet) in datagrams(parts) {
        if packet.get() + usual <= ETHERNET_MTU && packet.get() + headers + stamp > ETHERNET_MTU {
            let what = match (headers > usual, stamp > 0) {
                (true, true) => "the header of IPv6 and the stamp of telemetry.registers",
                (true, false) => "the header of IPv6",
                (false, _) => "the stamp of telemetry.registers",
            };
            at_entry(cx, i, |cx| {
                let message =
                    format!("leaves no room for {what} in a frame of Ethernet: its frames are longer than others can be");
                transport::warn(cx, "packet", &packet, message).suggestion =
                    Some(format!("\"{}\"", Bytes(ETHERNET_MTU - headers - stamp)));
            });
        }
    }
}

/// Reports ECN that is enabled at one end only: switches that mark for transports without ECN, or the other way round.
fn ecn(parts: &Parts, settings: &Settings, (network, of_traffic): (Option<&Network>, &OfTraffic), cx: &mut Cx) {
    let used = used_transports(parts);
    for (name, config) in used.iter().filter(|(_, config)| config.uses_ecn()) {
        let mut classes = of_traffic.of_transport(parts, name);
        if classes.is_empty() {
            classes.insert(0); // traffic that could not be read
        }
        let Some(class) = classes.into_iter().find(|class| !settings.marks_class(*class)) else { continue };
        let any = settings.markings().any(|(_, marking)| marking.marks());
        let (message, table) = if any {
            (
                format!("uses ECN in class {class}, and no switch marks that"),
                format!("a switch.class_marking entry for class {class}"),
            )
        } else {
            ("uses ECN, and no switch marks".to_string(), "switch.marking".to_string())
        };
        let marking = example_of_marking(config, network);
        at_transport(cx, name, |cx| {
            cx.warn(None, message, None).suggestion = Some(format!("set {table}, for example {marking}"))
        });
    }
    let by_marks = used.iter().find_map(|(_, config)| config.needs_marks());
    let unused = !used.is_empty() && parts.all_traffic && !used.iter().any(|(_, config)| config.uses_ecn());
    for (at, marking) in settings.markings() {
        if let (Marking::Red(red), Some(control)) = (marking, by_marks) {
            if red.ecn && red.hard_drop {
                at_marking(at, cx, |cx| {
                    let message = format!("drops packets of {control} above its upper limit, where {control} takes marks");
                    transport::warn(cx, "hard_drop", &red.hard_drop, message).suggestion =
                        Some("set hard_drop = false".to_string());
                });
            }
        }
        if unused && marking.marks() {
            at_marking(at, cx, |cx| {
                let problem = cx.warn(None, "marks ECN-capable packets, and no transport in use sends any", None);
                let remedies: BTreeSet<&str> = used.iter().filter_map(|(_, config)| config.ecn_remedy()).collect();
                problem.suggestion = (!remedies.is_empty()).then(|| remedies.into_iter().collect::<Vec<_>>().join("; or "));
            });
        }
    }
}

/// Example of a marking policy for messages: a step, as DCTCP uses, or for transports that want a curve the one of DCQCN
/// §5.2, scaled to the rate of the slowest switch port.
fn example_of_marking(config: &TransportConfig, network: Option<&Network>) -> String {
    if !config.marks_by_curve() {
        return "{ kind = \"threshold\", k = \"65 packets\" }".to_string();
    }
    let rate = network.and_then(|network| network.switch_ports().map(|(_, port)| port.rate).min());
    let rate = rate.unwrap_or(BitRate::from_gbps(40)).bps();
    let [min, max] = [5_000_u64, 200_000].map(|bytes| Bytes((bytes as u128 * u128::from(rate) / 40_000_000_000) as u64));
    format!(
        "{{ kind = \"red\", min = \"{min}\", max = \"{max}\", max_p = 0.01, weight = 1.0, gentle = false, hard_drop = false, drop_others = false, spacing = \"geometric\" }}"
    )
}

/// The traffic and a sample of its flows, or the problems that prevent them.
type Flows = Result<(Traffic, Vec<FlowSpec>), Vec<Problem>>;

/// Builds the traffic, which runs its own checks. If all of it could be parsed, a sample of flows is drawn from it.
fn flows(parts: &Parts, network: &Network, base_dir: &Path) -> Flows {
    let names: Vec<String> = parts.transports.iter().map(|(name, _)| name.clone()).collect();
    let context = TrafficContext {
        hosts: network.host_infos(),
        transports: &names,
        core_rate: network.core_rate(),
        seed: parts.seed,
        duration: parts.duration.map(|span| Time::ZERO + span),
        base_dir,
        max_flows: parts.engine.as_ref().map_or(MAX_FLOWS, |engine| engine.max_flows),
    };
    let entries: Vec<Entry> = parts.traffic.iter().map(|(_, entry)| entry.clone()).collect();
    let mut built = Traffic::new(&entries, &context)?;
    let sample = if parts.all_traffic { load::sample(&mut built) } else { Vec::new() };
    Ok((built, sample))
}

/// Checks the traffic's requests against the network.
fn traffic(
    parts: &Parts,
    flows: Flows,
    (settings, network, watched): (Option<&Settings>, &Network, &[LinkId]),
    (notes, cx): (&mut Vec<String>, &mut Cx),
) -> Vec<Problem> {
    if parts.traffic.is_empty() && parts.all_traffic {
        cx.key("traffic", |cx| {
            cx.error(None, "is empty: there is nothing to simulate", Some("at least one [[traffic]] table".to_string())).severity
        });
    }
    let (mut built, sample) = match flows {
        Ok(flows) => flows,
        Err(problems) => return in_document(problems, parts),
    };
    let problems = in_document(built.warnings().to_vec(), parts);
    notes.extend_from_slice(built.notes());
    if parts.all_traffic {
        telemetry::followed(parts, network, &built, cx);
        load::check(parts, settings, &sample, network, cx);
        volume::check(parts, (sample, &mut built), network, watched, cx);
    }
    problems
}

/// Problems of the traffic that do not depend on the network, for scenarios whose network could not be built: stand-in hosts
/// take its place, and problems about hosts are left out.
fn problems_without_network(parts: &Parts, base_dir: &Path) -> Vec<Problem> {
    let names: Vec<String> = parts.transports.iter().map(|(name, _)| name.clone()).collect();
    let hosts: Vec<String> = (0..STAND_INS).map(|i| format!("h{i}")).collect();
    let context = TrafficContext {
        hosts: (0..)
            .zip(&hosts)
            .map(|(i, name): (u32, &String)| HostInfo { name, rate: BitRate(10_000_000_000), rack: i / 8 })
            .collect(),
        transports: &names,
        core_rate: None,
        seed: parts.seed,
        duration: parts.duration.map(|span| Time::ZERO + span),
        base_dir,
        max_flows: parts.engine.as_ref().map_or(MAX_FLOWS, |engine| engine.max_flows),
    };
    let entries: Vec<Entry> = parts.traffic.iter().map(|(_, entry)| entry.clone()).collect();
    let Err(problems) = Traffic::new(&entries, &context) else { return Vec::new() };
    let of_hosts = |problem: &Problem| {
        let texts = [Some(&problem.message), problem.accepted.as_ref(), problem.suggestion.as_ref()];
        let mut texts = texts.into_iter().flatten().chain([&problem.path]);
        texts.any(|text| OF_HOSTS.iter().any(|word| text.contains(word)))
    };
    in_document(problems.into_iter().filter(|problem| !of_hosts(problem)).collect(), parts)
}

/// Number of stand-in hosts for a network that could not be built.
const STAND_INS: u32 = 64;

/// Words by which messages about hosts are recognised, as these depend on the network.
const OF_HOSTS: [&str; 14] = [
    "host",
    "sender",
    "receiver",
    "source",
    "destination",
    "client",
    "responder",
    "fanout",
    "hot",
    "rack",
    "src",
    "dst",
    "load",
    "core",
];

/// Renumbers problems from indices among the parsed entries to indices in the document. If some entries could not be parsed,
/// errors about `after` are left out, as they may refer to those.
fn in_document(problems: Vec<Problem>, parts: &Parts) -> Vec<Problem> {
    let renumbered = problems.into_iter().filter_map(|mut problem| {
        let Some((position, rest)) = problem.path.strip_prefix("traffic[").and_then(|rest| rest.split_once(']')) else {
            return Some(problem);
        };
        let (original, _) = parts.traffic.get(position.parse::<usize>().ok()?)?;
        if !parts.all_traffic && rest.contains("after") && problem.severity == Severity::Error {
            return None;
        }
        problem.path = format!("traffic[{original}]{rest}");
        Some(problem)
    });
    renumbered.collect()
}
