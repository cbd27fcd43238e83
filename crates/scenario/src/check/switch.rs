//! Checks of switches that need more than the switch's own settings.

use super::settings::{at_marking, at_setting, in_bytes, Settings, FRAME};
use super::transport::shown;
use super::{at_transport, used_transports, Network};
use crate::doc::{all_defaults, Parts};
use fanin_params::Cx;
use fanin_switch::{Buffer, CodelParams, DynamicBuffer, Marking, PathChoice, PortSettings, Setting, Switch};
use fanin_transport::TransportParams;
use fanin_units::{Amount, BitRate, Bytes, Span};
use std::collections::BTreeMap;

/// α from which a single queue can take nearly all of a shared buffer.
const GREEDY_ALPHA: f64 = 16.0;
/// Smallest queue, in full frames, that can absorb a burst.
const BURST_FRAMES: u64 = 10;

/// Runs the switches' own checks; `cx` is at their table.
pub(super) fn check(switch: &Switch, cx: &mut Cx) {
    switch.check(cx);
    if !switch.counts_cells() {
        let remedy = "a buffer or threshold such as \"20000 cells\", or no cell";
        cx.unused_at("cell", &switch.cell, "has no effect: nothing counts in cells", remedy);
    }
}

/// Checks the combination of settings in use at ports.
pub(super) fn in_use(settings: &Settings, network: Option<&Network>, cx: &mut Cx) {
    let default: Switch = all_defaults();
    for key in &settings.replaced {
        let given = match *key {
            "buffer" => settings.switch.buffer != default.buffer,
            "marking" => settings.switch.marking != default.marking,
            "scheduling" => settings.switch.scheduling != default.scheduling,
            _ => settings.switch.mechanisms != default.mechanisms,
        };
        if given {
            let message = "has no effect: switch.except replaces it everywhere";
            at_setting(None, key, cx, |cx| cx.warn(None, message, None).severity);
        }
    }
    for origins in settings.origins() {
        cx.key("switch", |cx| settings.switch.check_thresholds(origins, cx));
    }
    class_marking(settings, cx);
    for (at, marking) in settings.markings() {
        let Marking::Red(red) = marking else { continue };
        if !red.ecn {
            let message = "has no effect: without ecn all packets are dropped";
            at_marking(at, cx, |cx| cx.unused_at("hard_drop", &red.hard_drop, message, "ecn = true, or no hard_drop").severity);
        }
    }
    if let Some(network) = network {
        waits(settings, network, cx);
    }
    if let Buffer::Dynamic(buffer) = &settings.switch.buffer {
        for (entry, alpha) in settings.alphas() {
            let place = if entry.is_none() { "buffer" } else { "alpha" };
            at_setting(entry, place, cx, |cx| share(buffer, alpha, (settings.switch, entry.is_none()), cx));
        }
    }
}

/// Warns of classes with a marking of their own that share a queue with others.
fn class_marking(settings: &Settings, cx: &mut Cx) {
    let entries = &settings.switch.class_marking;
    let most = settings.schedulings().map(|(_, scheduling)| scheduling.classes()).max().unwrap_or(1);
    if entries.is_empty() {
        return;
    }
    cx.key("switch", |cx| {
        cx.key("class_marking", |cx| {
            if most == 1 {
                let accepted = "switch.scheduling with classes, for example { kind = \"strict\", classes = 2 }";
                cx.error(None, "has no effect: ports have one queue for all classes", Some(accepted.to_string()));
                return;
            }
            for (i, entry) in entries.iter().enumerate() {
                let Some(class) = entry.classes.iter().find(|class| usize::from(**class) >= most) else { continue };
                let message =
                    format!("names class {class}, which no port has a queue for: classes from {} on share one", most - 1);
                let accepted = "switch.scheduling with more classes, or only classes that there are".to_string();
                cx.index(i, |cx| cx.key("classes", |cx| cx.error(None, message, Some(accepted)).severity));
            }
        });
    });
    if entries.iter().flat_map(|entry| &entry.classes).any(|class| usize::from(*class) >= most) {
        return; // what the other classes have is not known before that is mended
    }
    for (entry, marking) in settings.unused_markings() {
        let message = "has no effect: switch.class_marking has an entry for each queue of its ports";
        let accepted = "no marking, or a class without an entry";
        at_setting(entry, "marking", cx, |cx| cx.unused_at("kind", &marking.kind().to_string(), message, accepted).severity);
    }
}

/// Wire bytes of the smallest frame, and its frame bytes.
const SMALLEST: [u64; 2] = [84, 64];
/// Wire bytes of a full frame.
const WIRE: u64 = 1538;

/// Longest time that a packet can wait at a port of this rate; `None` if unbounded.
fn longest_wait(port: &PortSettings<'_>, rate: BitRate, switch: &Switch) -> Option<Span> {
    let most = port.buffer.or(match (&switch.buffer, port.alpha) {
        (Buffer::Dynamic(shared), Some(alpha)) => Some(match shared.total {
            Amount::Bytes(_) => Amount::Bytes(shared.alone(alpha)),
            Amount::Packets(_) => Amount::Packets(shared.alone(alpha)),
            Amount::Cells(_) => Amount::Cells(shared.alone(alpha)),
        }),
        _ => None,
    })?;
    let wire = match most {
        Amount::Packets(n) => n.checked_mul(WIRE)?,
        bytes => in_bytes(bytes, switch)?.checked_mul(SMALLEST[0])? / SMALLEST[1],
    };
    Some(rate.time_to_send(Bytes(wire.checked_add(WIRE)?)))
}

/// Rounds a time up to a readable value.
fn rounded(span: Span) -> Span {
    let unit = if span < Span::from_us(10) { Span::from_ns(1) } else { Span::from_us(1) };
    Span::from_ps(span.ps().div_ceil(unit.ps()) * unit.ps())
}

/// Warns of CoDel times that can have no effect at the ports that use them.
fn waits(settings: &Settings, network: &Network, cx: &mut Cx) {
    // By entry: the slowest port, and the longest that a packet can wait at any.
    let mut found: BTreeMap<Option<usize>, (&CodelParams, BitRate, Option<Span>)> = BTreeMap::new();
    for (link, seen) in network.switch_ports() {
        let port = settings.port(link);
        let Marking::Codel(codel) = port.marking else { continue };
        let entry = settings.exceptions.port(link).of(Setting::Marking);
        let wait = longest_wait(&port, seen.rate, settings.switch);
        let slot = found.entry(entry).or_insert((codel, seen.rate, wait));
        slot.1 = slot.1.min(seen.rate);
        slot.2 = slot.2.zip(wait).map(|(a, b)| a.max(b));
    }
    for (entry, (codel, rate, wait)) in found {
        let frame = rounded(rate.time_to_send(Bytes(WIRE)));
        let mut warn = |key, time: Span, message, suggestion| {
            at_setting(entry, "marking", cx, |cx| {
                cx.key(key, |cx| cx.warn(Some(&shown(&time)), message, None).suggestion = suggestion);
            });
        };
        let times = [("target", Some(codel.target)), ("ce_threshold", codel.ce_threshold)];
        for (key, time) in times.into_iter().filter_map(|(key, time)| Some((key, time?))) {
            if let Some(wait) = wait.filter(|wait| *wait < time) {
                let message = format!("never acts: in this buffer no packet waits longer than {}", rounded(wait));
                warn(key, time, message, None);
            } else if key == "target" && time < frame {
                let message =
                    format!("is below the time of one full frame at {rate}, {frame}: every packet behind one waits longer");
                warn(key, time, message, Some(format!("\"{frame}\" or more")));
            }
        }
    }
}

/// Warns of a share of the shared buffer that is too small or too large for a single queue; `cx` is at the buffer, or at an
/// exception's α.
fn share(buffer: &DynamicBuffer, alpha: f64, (switch, own): (&Switch, bool), cx: &mut Cx) {
    let share = alpha / (1.0 + alpha);
    let warn = |cx: &mut Cx, message: String, suggestion: Option<String>| {
        let body = |cx: &mut Cx| cx.warn(Some(&shown(&alpha)), message, None).suggestion = suggestion;
        if own {
            cx.key("alpha", body);
        } else {
            body(cx);
        }
    };
    if alpha > GREEDY_ALPHA {
        let message = format!("lets a single queue take {:.0} % of the buffer", 100.0 * share);
        warn(cx, message, Some("chips offer 1/128 to 8".to_string()));
    }
    let frames = in_bytes(buffer.total, switch).map(|total| libm::floor(share * total as f64) as u64 / FRAME);
    if let Some(frames) = frames.filter(|frames| *frames < BURST_FRAMES) {
        warn(cx, format!("lets a single queue hold no more than {frames} full frames"), None);
    }
}

/// Warns if packets run out of hops (TTL) on a shortest path.
pub(super) fn time_to_live(parts: &Parts, network: &Network, cx: &mut Cx) {
    let Some(switch) = &parts.switch else { return };
    let most = network.longest();
    if u32::from(switch.ttl) <= most {
        cx.key("switch", |cx| {
            cx.key("ttl", |cx| {
                let message = format!("drops packets on the way: between some hosts they cross {most} switches");
                let accepted = if most < 255 { format!("from {} to 255", most + 1) } else { "a shorter network".to_string() };
                cx.error(Some(&shown(&switch.ttl)), message, Some(accepted)).severity
            })
        });
    }
}

/// Warns of path choice where there is only one path.
pub(super) fn paths(parts: &Parts, network: &Network, cx: &mut Cx) {
    let Some(switch) = &parts.switch else { return };
    if network.multipath() || matches!(switch.routing, PathChoice::Ecmp(_)) {
        return;
    }
    cx.key("switch", |cx| {
        cx.key("routing", |cx| {
            cx.warn(None, "has nothing to choose between: the topology has one shortest path for each pair of hosts", None);
        });
    });
}

/// Warns of per-packet path choice under transports that take reordering for loss.
pub(super) fn order(parts: &Parts, network: &Network, cx: &mut Cx) {
    let Some(switch) = &parts.switch else { return };
    let in_order = parts.host.as_ref().is_some_and(|host| host.reorder.is_some());
    if in_order || !switch.routing.per_packet() || !network.multipath() {
        return;
    }
    for (name, config) in used_transports(parts) {
        let Some(remedy) = config.wants_order() else { continue };
        let message =
            "retransmits packets that arrive out of order, and switch.routing sends packets of a flow over several paths";
        at_transport(cx, name, |cx| {
            cx.warn(None, message, None).suggestion = Some(format!("{remedy}, or switch.routing = \"ecmp\""))
        });
    }
}
