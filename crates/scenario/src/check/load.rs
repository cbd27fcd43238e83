//! Checks of the offered load, on a sample of the flows.

use super::settings::Settings;
use super::transport::warn;
use super::{at_entry, at_transport, transport_of, used_transports, Network};
use crate::doc::Parts;
use fanin_params::Cx;
use fanin_traffic::{FlowKind, FlowSpec, Traffic, TrafficKind};
use fanin_transport::{TransportConfig, TransportParams};
use fanin_units::{BitRate, Bytes, HostId, Span};
use std::collections::BTreeMap;

/// Number of flows in the sample.
const SAMPLE: usize = 50_000;
/// Smallest number of flows from which a host's rate is estimated.
const ENOUGH: u64 = 30;
/// Standard errors by which an estimate must exceed capacity to count as overload.
const SIGMAS: f64 = 3.0;
/// Number of host pairs per entry whose RTT is computed.
const PAIRS: usize = 64;
/// Ratio of timeout to RTT from which a warning is given.
const FAR_ABOVE: u64 = 1_000;
/// Largest RTO_min that data centers use.
const USUAL: Span = Span::from_ms(10);

/// Takes the first flows of `traffic` as a sample.
pub(super) fn sample(traffic: &mut Traffic) -> Vec<FlowSpec> {
    std::iter::from_fn(|| traffic.pop()).take(SAMPLE).collect()
}

/// Checks the load on a sample of the flows.
pub(super) fn check(parts: &Parts, settings: Option<&Settings>, sample: &[FlowSpec], network: &Network, cx: &mut Cx) {
    let mut by_entry: BTreeMap<usize, Vec<&FlowSpec>> = BTreeMap::new();
    for flow in sample {
        by_entry.entry(usize::from(flow.entry)).or_default().push(flow);
    }
    overload(parts, sample, network, cx);
    if let Some(settings) = settings {
        classes(parts, settings, sample, cx);
        timeouts(parts, settings, &by_entry, network, cx);
        first_round(parts, settings, &by_entry, network, cx);
    }
    receive_windows(parts, sample, network, cx);
    short_timeouts(parts, sample, network, cx);
}

/// Reports classes that a file of flows gives but the switches do not have.
fn classes(parts: &Parts, settings: &Settings, sample: &[FlowSpec], cx: &mut Cx) {
    let [(_, most), _] = settings.most_and_fewest_classes();
    let classes = most.classes();
    let mut seen: BTreeMap<u16, &FlowSpec> = BTreeMap::new();
    for flow in sample.iter().filter(|flow| usize::from(flow.class) >= classes) {
        seen.entry(flow.entry).or_insert(flow);
    }
    for (entry, flow) in seen {
        // The entry's own class has been checked by itself.
        if parts.traffic.get(usize::from(entry)).is_some_and(|(_, e)| e.class != flow.class) {
            let message = format!("has flows of class {}, which the switches do not have", flow.class);
            at_entry(cx, usize::from(entry), |cx| {
                cx.error(None, message, Some(format!("classes below {classes}")));
            });
        }
    }
}

/// Flows and application bytes of a host.
#[derive(Clone, Copy, Default)]
struct Sum {
    flows: u64,
    bytes: f64,
    squares: f64,
}

/// Warns of hosts whose random arrivals exceed the capacity of their links.
///
/// For a compound Poisson process the sum of the sizes has the variance Σ size², so a host is overloaded beyond doubt when
/// Σ size − 3 √(Σ size²) exceeds what its link carries in the time considered.
fn overload(parts: &Parts, sample: &[FlowSpec], network: &Network, cx: &mut Cx) {
    let random: Vec<&FlowSpec> = sample
        .iter()
        .filter(|flow| {
            let kind = parts.traffic.get(usize::from(flow.entry)).map(|(_, entry)| &entry.kind);
            matches!(kind, Some(TrafficKind::Poisson(_) | TrafficKind::HotSpot(_) | TrafficKind::Query(_)))
        })
        .collect();
    let hosts = network.host_infos();
    let (Some(first), Some(last)) = (random.first(), random.last()) else { return };
    let over = last.start.since(first.start);
    for (receives, verb) in [(true, "receives"), (false, "sends")] {
        let mut sums = vec![Sum::default(); hosts.len()];
        for flow in &random {
            let size = flow.size as f64;
            let sum = &mut sums[if receives { flow.dst } else { flow.src }.index()];
            *sum = Sum { flows: sum.flows + 1, bytes: sum.bytes + size, squares: sum.squares + size * size };
        }
        let excess = |(host, sum): (usize, &Sum)| -> Option<(f64, usize)> {
            let capacity = hosts[host].rate.bytes_in(over).get() as f64;
            let surely = sum.bytes - SIGMAS * libm::sqrt(sum.squares);
            (sum.flows >= ENOUGH && over > Span::ZERO && surely > capacity).then(|| (sum.bytes / capacity, host))
        };
        let found: Vec<(f64, usize)> = sums.iter().enumerate().filter_map(excess).collect();
        let Some((_, host)) = found.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0)) else { continue };
        let seen = &hosts[host];
        let offered = BitRate::of(Bytes(sums[host].bytes as u64), over);
        let others = if found.len() > 1 { format!(" ({} hosts are overloaded)", found.len()) } else { String::new() };
        let message = format!(
            "asks more than a link carries: {} {verb} {:.2} times its {}, about {offered}, seen in {} flows{others}; queues and completion times grow with the run",
            seen.name,
            offered.bps() as f64 / seen.rate.bps() as f64,
            seen.rate,
            random.len(),
        );
        cx.key("traffic", |cx| {
            cx.warn(None, message, None).suggestion = Some("lower the load, or its share for this host".to_string())
        });
    }
}

/// Warns of an RTO_min far above the RTT, for traffic in which tail losses are likely.
fn timeouts(parts: &Parts, settings: &Settings, by_entry: &BTreeMap<usize, Vec<&FlowSpec>>, network: &Network, cx: &mut Cx) {
    for (i, entry) in &parts.traffic {
        if by_entry.get(i).into_iter().flatten().all(|flow| !settings.fills_up(flow.class)) {
            continue;
        }
        let synchronised = matches!(entry.kind, TrafficKind::Incast(_) | TrafficKind::Query(_) | TrafficKind::Collective(_));
        let Some((name, config)) = transport_of(parts, entry).filter(|_| synchronised) else { continue };
        let flows = by_entry.get(i).into_iter().flatten().take(PAIRS);
        let Some(rtt) = flows.filter_map(|flow| network.base_rtt([flow.src, flow.dst], parts, config.mtu(parts.ip()))).max()
        else {
            continue;
        };
        let far_above = |timeout: Span| timeout > USUAL && timeout > rtt.saturating_mul(FAR_ABOVE);
        let times =
            |timeout: Span| format!("is {} times the RTT of traffic[{i}] ({})", timeout.ps() / rtt.ps().max(1), rounded(rtt));
        let remedy = Some(format!("data centers use 1ms to {USUAL}"));
        at_transport(cx, name, |cx| {
            if let Some(timer) = config.loss_timers().iter().find(|timer| far_above(timer.value)) {
                let message = format!("{}: {}", times(timer.value), timer.cost);
                match timer.exponent {
                    None => warn(cx, timer.key, &timer.value, message).suggestion = remedy,
                    Some(n) => {
                        let message = format!("means {}, and {message}", rounded(timer.value));
                        warn(cx, timer.key, &n, message).suggestion = Some(EXPONENTS.to_string());
                    }
                }
            }
        });
    }
}

/// Warns of timeouts that expire before an acknowledgment can arrive on an idle network.
fn short_timeouts(parts: &Parts, sample: &[FlowSpec], network: &Network, cx: &mut Cx) {
    for (name, config) in used_transports(parts) {
        let Some(rtt) = longest_rtt(parts, name, config, sample.iter(), network) else { continue };
        let timers = config.loss_timers();
        let Some(timer) = timers.iter().find(|timer| timer.fixed && timer.value <= rtt) else { continue };
        let below =
            format!("no more than the RTT of an idle network, {}: packets that were not lost are retransmitted", rounded(rtt));
        at_transport(cx, name, |cx| match timer.exponent {
            None => {
                warn(cx, timer.key, &timer.value, format!("is {below}")).suggestion = Some(format!("more than {}", rounded(rtt)));
            }
            Some(n) => {
                let exponents = (0..).zip(std::iter::successors(Some(timer.value), |value| Some(value.saturating_mul(2))));
                let least = exponents.take(32).find(|(_, value)| *value > rtt).map(|(more, _)| n + more);
                warn(cx, timer.key, &n, format!("means {}, {below}", rounded(timer.value))).suggestion =
                    least.map(|least| format!("{least} or more"));
            }
        });
    }
}

/// Longest idle RTT of a transport's flows, over a sample of their host pairs.
pub(super) fn longest_rtt<'a>(
    parts: &Parts,
    name: &str,
    config: &TransportConfig,
    sample: impl Iterator<Item = &'a FlowSpec>,
    network: &Network,
) -> Option<Span> {
    let mut seen: Vec<(HostId, HostId)> = Vec::new();
    for flow in sample.filter(|flow| parts.transports.get(usize::from(flow.transport)).is_some_and(|(used, _)| used == name)) {
        if flow.kind == FlowKind::Transfer && !seen.contains(&(flow.src, flow.dst)) {
            seen.push((flow.src, flow.dst));
        }
        if seen.len() == PAIRS {
            break;
        }
    }
    seen.into_iter().filter_map(|(src, dst)| network.base_rtt([src, dst], parts, config.mtu(parts.ip()))).max()
}

/// Hint about timeout exponents that suit data centers.
const EXPONENTS: &str = "data centers use 8 (1.05 ms) to 11 (8.4 ms)";

/// Rounds a time to a tenth of a microsecond, or from 10 ms on to a millisecond, for messages.
fn rounded(span: Span) -> Span {
    let tenth = if span < Span::from_ms(10) { Span::from_ns(100) } else { Span::from_ms(1) };
    Span::from_ps((span.ps() + tenth.ps() / 2) / tenth.ps() * tenth.ps())
}

/// Warns if the initial windows of an incast exceed the buffer in front of the receiver.
fn first_round(parts: &Parts, settings: &Settings, by_entry: &BTreeMap<usize, Vec<&FlowSpec>>, network: &Network, cx: &mut Cx) {
    let Some(framing) = &parts.framing else { return };
    if settings.switch.architecture.combined().is_some() {
        return; // what comes at once waits in queues of the inputs
    }
    for (i, entry) in &parts.traffic {
        let TrafficKind::Incast(incast) = &entry.kind else { continue };
        let Some((_, config)) = transport_of(parts, entry).filter(|_| incast.jitter == Span::ZERO) else {
            continue;
        };
        let mut round = by_entry.get(i).into_iter().flatten().peekable();
        let Some((query, receiver)) = round.peek().map(|flow| (flow.query, flow.dst)) else { continue };
        let Some(buffer) = settings.most(network.port_to(receiver)) else { continue };
        let config = config.clone().with_mtu_less(parts.trailer());
        let shape = config.shape(parts.ip());
        let (mss, window) = (shape.payload.max(1), config.first_window(parts.ip()));
        let overhead = u64::from(parts.ip().header() + shape.header + parts.trailer()) + framing.header.get();
        let (mut flows, mut bytes) = (0u64, 0u64);
        for flow in round.take_while(|flow| flow.query == query) {
            let first = flow.size.min(window);
            flows += 1;
            bytes = bytes.saturating_add(first + first.div_ceil(mss) * overhead);
        }
        if Bytes(bytes) > buffer && flows > 1 {
            at_entry(cx, *i, |cx| {
                let message = format!(
                    "sends {} in the first windows of {flows} flows to a port that holds {}: packets are lost in the first round",
                    Bytes(bytes),
                    buffer
                );
                cx.warn(None, message, None);
            });
        }
    }
}

/// Warns of receive windows that are smaller than the path's bandwidth-delay product.
fn receive_windows(parts: &Parts, sample: &[FlowSpec], network: &Network, cx: &mut Cx) {
    // Where the product of rate and RTT is largest, for each transport.
    let mut largest: BTreeMap<u16, (Bytes, BitRate, Span)> = BTreeMap::new();
    let mut seen: BTreeMap<u16, Vec<(HostId, HostId)>> = BTreeMap::new();
    for flow in sample {
        let pairs = seen.entry(flow.transport).or_default();
        if pairs.len() >= PAIRS || pairs.contains(&(flow.src, flow.dst)) {
            continue;
        }
        pairs.push((flow.src, flow.dst));
        let Some((_, Some(config))) = parts.transports.get(usize::from(flow.transport)) else { continue };
        let Some(rtt) = network.base_rtt([flow.src, flow.dst], parts, config.mtu(parts.ip())) else { continue };
        let Some(rate) = network.bottleneck(flow.src, flow.dst) else { continue };
        let product = rate.bytes_in(rtt);
        let best = largest.entry(flow.transport).or_insert((product, rate, rtt));
        if product > best.0 {
            *best = (product, rate, rtt);
        }
    }
    for (transport, (product, rate, rtt)) in largest {
        let Some((name, Some(config))) = parts.transports.get(usize::from(transport)) else { continue };
        let Some((key, window)) = config.receive_window() else { continue };
        if window < product {
            at_transport(cx, name, |cx| {
                cx.key(key, |cx| {
                    let message = format!(
                        "of at most {window} is below {product}, what {rate} carry in an RTT of {}: it limits the rate",
                        rounded(rtt)
                    );
                    cx.warn(None, message, None);
                });
            });
        }
    }
}
