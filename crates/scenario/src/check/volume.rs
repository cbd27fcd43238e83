//! Warnings before long runs and large tables, from an estimate of the traffic.

use super::transport::warn;
use super::Network;
use crate::doc::Parts;
use crate::sections::{Keep, Sampling};
use fanin_params::{pattern, Cx};
use fanin_traffic::{DatagramSpec, FlowKind, FlowSpec, Traffic};
use fanin_transport::TransportParams;
use fanin_units::{BitRate, Bytes, LinkId, Span};
use std::collections::BTreeMap;

/// Number of packets that takes hours to simulate, at some ten million hops a second.
const MANY_PACKETS: f64 = 1e10;
/// Size of a table from which a warning is given \[bytes\].
const LARGE: f64 = 3e9;
/// Disk space of a row in `flows.parquet` \[bytes\], measured on web-search traffic at loads from 0.1 to 0.7.
const FLOW_ROW: f64 = 40.0;
const PORT_ROW: f64 = 10.0;
const QUEUE_ROW: f64 = 10.5;
/// Disk space \[bytes\] of a packet of a followed flow, its sender's state included, and of each link that it crosses.
const SEGMENT_ROW: f64 = 27.0;
const HOP_ROW: f64 = 9.5;
/// Wire bytes of a full frame.
const FRAME: Bytes = Bytes(1538);
/// Number of further flows in the sample, which wait for others.
const MORE: usize = 50_000;
/// Acknowledgments per data packet, as with delayed ACKs.
pub(crate) const ACKS: f64 = 0.5;
/// Number of flows whose paths are computed.
const PATHS: usize = 20_000;

/// Estimated volume of a run.
struct Volume {
    flows: f64,
    packets: f64,
    /// Average number of watched ports that a packet crosses.
    crossings: f64,
    /// Average number of links that a packet crosses, acknowledgments included.
    hops: f64,
    /// Share of packets that belong to followed flows.
    followed: f64,
    /// Lower bound of the run's simulated time \[s\].
    lasts: f64,
}

/// Warns of very many packets and very large tables. `sample` holds the first flows, `traffic` yields those that follow.
pub(super) fn check(
    parts: &Parts,
    (sample, traffic): (Vec<FlowSpec>, &mut Traffic),
    network: &Network,
    watched: &[LinkId],
    cx: &mut Cx,
) {
    let sample = with_waiting_flows(sample, traffic);
    let Some(volume) = Volume::of(parts, (&sample, traffic), network, watched) else { return };
    if volume.packets > MANY_PACKETS {
        let message = format!("asks for about {} packets: the run will take hours, or days", short(volume.packets));
        cx.key("traffic", |cx| {
            cx.warn(None, message, None).suggestion =
                Some("a shorter duration or an earlier stop, a lower load, fewer or smaller flows".to_string());
        });
    }
    if let Some(size) = large(volume.flows * FLOW_ROW) {
        let message = format!("asks for about {} flows: flows.parquet will have {size}", short(volume.flows));
        cx.key("traffic", |cx| {
            cx.warn(None, message, None).suggestion =
                Some("fewer flows: a shorter duration, a lower load, or larger ones".to_string());
        });
    }
    let Some(telemetry) = &parts.telemetry else { return };
    cx.key("telemetry", |cx| {
        if let Sampling::Every(period) = telemetry.sample {
            // Quiet ports have no rows. Elsewhere there is one at most for each packet, and for each period in which one is sent.
            let periods = |rate: BitRate| rate.time_to_send(FRAME).as_secs_f64() / period.as_secs_f64();
            let waits = network.ports.iter().map(|port| periods(port.rate)).fold(0.0, f64::max);
            let every = volume.lasts / period.as_secs_f64() * network.ports.len() as f64;
            let rows = every.min(volume.packets * volume.hops * (1.0 + waits));
            if let Some(size) = large(rows * PORT_ROW) {
                let message = format!(
                    "makes up to {} rows for {} ports in {:.3} s: ports.parquet will have {size}",
                    short(rows),
                    network.ports.len(),
                    volume.lasts
                );
                warn(cx, "sample", &telemetry.sample, message).suggestion = Some("a longer period, or \"off\"".to_string());
            }
        }
        let followed = volume.packets * volume.followed;
        if let Some(size) = large(followed * ((1.0 + ACKS) * SEGMENT_ROW + volume.hops * HOP_ROW)) {
            let message = format!(
                "follows about {} packets of data: hosts.parquet, segments.parquet and hops.parquet will have {size}",
                short(followed)
            );
            cx.key("hosts", |cx| cx.warn(None, message, None).suggestion = Some("fewer flows".to_string()));
        }
        let records = volume.packets * volume.crossings;
        // A stamp is a row of another table, for each packet that a watched port has sent.
        let tables = if telemetry.registers.is_some() { 2.0 } else { 1.0 };
        if let (Keep::All(_), Some(size)) = (&telemetry.keep, large(records * QUEUE_ROW * tables)) {
            let message = format!(
                "records about {} packets at {} port{}: {} will have {size}",
                short(records),
                watched.len(),
                if watched.len() == 1 { "" } else { "s" },
                if tables > 1.0 { "queues.parquet and stamps.parquet" } else { "queues.parquet" }
            );
            cx.key("queues", |cx| {
                cx.warn(None, message, None).suggestion =
                    Some("fewer ports, or telemetry.keep of kind \"last\" or \"around\"".to_string());
            });
        }
    });
}

/// Extends a sample by flows that wait for others; each flow is assumed to be complete when it starts.
pub(crate) fn with_waiting_flows(mut sample: Vec<FlowSpec>, traffic: &mut Traffic) -> Vec<FlowSpec> {
    sample.iter().for_each(|flow| traffic.on_complete(flow.completion(flow.start)));
    for _ in 0..MORE {
        let Some(flow) = traffic.pop() else { break };
        traffic.on_complete(flow.completion(flow.start));
        sample.push(flow);
    }
    sample
}

/// Number and start times of an entry's flows in the sample.
#[derive(Default)]
struct Seen {
    flows: f64,
    first: f64,
    last: f64,
}

/// Load on a host's link.
#[derive(Clone, Copy, Default)]
struct Load {
    packets: f64,
    bytes: f64,
}

impl Load {
    fn add(&mut self, packets: f64, bytes: f64) {
        *self = Load { packets: self.packets + packets, bytes: self.bytes + bytes };
    }
}

impl Volume {
    fn of(parts: &Parts, (sample, traffic): (&[FlowSpec], &Traffic), network: &Network, watched: &[LinkId]) -> Option<Volume> {
        let stop = parts.duration.map(Span::as_secs_f64);
        let mut entries: BTreeMap<u16, Seen> = BTreeMap::new();
        for flow in sample {
            let at = flow.start.as_secs_f64();
            let seen = entries.entry(flow.entry).or_insert(Seen { flows: 0.0, first: at, last: at });
            *seen = Seen { flows: seen.flows + 1.0, last: seen.last.max(at), ..*seen };
        }
        // For how many flows one that is seen stands.
        let weight = |entry: u16, seen: &Seen| traffic.expected_flows(entry).map_or(1.0, |all| (all / seen.flows).max(1.0));
        let weights: BTreeMap<u16, f64> = entries.iter().map(|(entry, seen)| (*entry, weight(*entry, seen))).collect();
        let hosts = network.host_infos();
        let (mut sent, mut received) = (vec![Load::default(); hosts.len()], vec![Load::default(); hosts.len()]);
        let names: Vec<&str> = traffic.entry_names().collect();
        let wanted = parts.telemetry.as_ref().map_or(&[][..], |telemetry| &telemetry.hosts);
        let follows = |(number, flow): (usize, &FlowSpec)| {
            let (number, ends) = (number.to_string(), [flow.src, flow.dst].map(|host| hosts[host.index()].name));
            let known = [Some(number.as_str()), flow.id.as_deref(), names.get(usize::from(flow.entry)).copied()];
            let is_wanted = |name: &str| wanted.iter().any(|wanted| pattern::fits(wanted, name));
            known.into_iter().flatten().any(is_wanted) || ends.into_iter().any(is_wanted)
        };
        let (mut flows, mut all, mut followed) = (0.0, 0.0, 0.0);
        for (number, flow) in sample.iter().enumerate() {
            let (packets, bytes) = flow_volume(parts, flow, stop)?;
            let weight = weights[&flow.entry];
            flows += weight;
            all += weight * packets;
            followed += if !wanted.is_empty() && follows((number, flow)) { weight * packets } else { 0.0 };
            sent[flow.src.index()].add(weight * packets, weight * bytes);
            received[flow.dst.index()].add(weight * packets, weight * bytes);
        }
        // What a link cannot carry in the time that there is, is not sent.
        let carried = |loads: &[Load]| -> f64 {
            let each = loads.iter().zip(&hosts).map(|(load, host)| {
                let most = stop.map_or(f64::INFINITY, |stop| host.rate.bps() as f64 / BITS_PER_BYTE * stop);
                load.packets * if load.bytes > most { most / load.bytes } else { 1.0 }
            });
            each.sum()
        };
        let starts = entries.iter().map(|(entry, seen)| seen.first + (seen.last - seen.first) * weights[entry]);
        let busy = received.iter().zip(&hosts).map(|(load, host)| load.bytes * BITS_PER_BYTE / host.rate.bps() as f64);
        let lasts = stop.unwrap_or_else(|| starts.chain(busy).fold(0.0, f64::max));
        let packets = carried(&sent).min(carried(&received));
        let crossings = |counts: &dyn Fn(&LinkId) -> bool| crossings(sample, network, counts);
        let watched = if watched.is_empty() { 0.0 } else { crossings(&|link| watched.binary_search(link).is_ok()) };
        Some(Volume { flows, packets, crossings: watched, hops: crossings(&|_| true), followed: followed / all, lasts })
    }
}

const BITS_PER_BYTE: f64 = Bytes(1).bits() as f64;

/// Number of data packets and bytes of a flow; `None` if its transport could not be parsed.
pub(crate) fn flow_volume(parts: &Parts, flow: &FlowSpec, stop: Option<f64>) -> Option<(f64, f64)> {
    let payload = match &flow.kind {
        FlowKind::Transfer => {
            let config = parts.transports.get(usize::from(flow.transport))?.1.as_ref()?;
            config.clone().with_mtu_less(parts.trailer()).shape(parts.ip()).payload.max(1) as f64
        }
        FlowKind::Datagrams(spec) => spec.packet.get() as f64,
    };
    let bytes = match &flow.kind {
        FlowKind::Transfer => flow.size as f64 + flow.request as f64,
        FlowKind::Datagrams(spec) if flow.size > 0 => (flow.size as f64).min(most(spec, flow, stop)),
        FlowKind::Datagrams(spec) => most(spec, flow, stop),
    };
    Some((libm::ceil(bytes / payload), bytes))
}

/// Bytes that a datagram source sends until it ends.
fn most(spec: &DatagramSpec, flow: &FlowSpec, stop: Option<f64>) -> f64 {
    let until = stop.map_or(spec.until.as_secs_f64(), |stop| stop.min(spec.until.as_secs_f64()));
    let (on, off) = (spec.on.map_or(1.0, Span::as_secs_f64), spec.off.map_or(0.0, Span::as_secs_f64));
    let share = if spec.on.is_some() { on / (on + off) } else { 1.0 };
    (until - flow.start.as_secs_f64()).max(0.0) * spec.rate.bps() as f64 / BITS_PER_BYTE * share
}

/// Average number of links satisfying `counts` that a packet crosses, over a sample of paths.
fn crossings(sample: &[FlowSpec], network: &Network, counts: &dyn Fn(&LinkId) -> bool) -> f64 {
    if sample.is_empty() {
        return 0.0;
    }
    let step = sample.len().div_ceil(PATHS);
    let (mut bytes, mut crossed) = (0.0, 0.0);
    for (i, flow) in sample.iter().enumerate().step_by(step) {
        let size = flow.size.max(1) as f64;
        let on = |ends| network.path(ends, i).iter().filter(|link| counts(link)).count() as f64;
        let acks = if flow.kind == FlowKind::Transfer { ACKS } else { 0.0 };
        bytes += size;
        crossed += size * (on([flow.src, flow.dst]) + acks * on([flow.dst, flow.src]));
    }
    crossed / bytes
}

/// Size of a table in words, if it is large enough for a warning.
fn large(bytes: f64) -> Option<String> {
    (bytes > LARGE).then(|| format!("about {} GB", short(bytes / 1e9)))
}

/// Prints a number with two significant digits.
fn short(number: f64) -> String {
    if number < 100.0 {
        format!("{number:.1}")
    } else if number < 10_000.0 {
        format!("{number:.0}")
    } else {
        format!("{number:.1e}")
    }
}
