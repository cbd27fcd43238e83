//! Switches: what their own check leaves to the whole.

use super::telemetry::unknown;
use super::transport::{shown, warn};
use super::Network;
use crate::doc::Parts;
use crate::pattern;
use fanin_params::{Cx, Param};
use fanin_switch::{Buffer, DynamicBuffer, Marking, PathChoice, RedParams, Switch};
use fanin_units::{Amount, Bytes, LinkId};

/// A shared buffer of which a single queue may take more than this is hardly shared.
const GREEDY_ALPHA: f64 = 16.0;
/// A queue that may not hold this many full frames cannot take a burst.
const BURST_FRAMES: u64 = 10;
/// A full Ethernet frame.
const FRAME: u64 = 1518;

/// Checks the switches by themselves; `cx` stands at their table.
pub(super) fn check(switch: &Switch, cx: &mut Cx) {
    switch.check(cx);
    let default = Switch::parse(&fanin_params::Value::Table(Vec::new()).into(), &mut Cx::new());
    if default.is_some_and(|default| default.cell != switch.cell) && !switch.counts_cells() {
        let remedy = "a buffer or threshold such as \"20000 cells\", or no cell";
        cx.key("cell", |cx| {
            cx.error(Some(&shown(&switch.cell)), "has no effect: nothing counts in cells", Some(remedy.to_string())).severity
        });
    }
    if let Marking::Red(red) = &switch.marking {
        let default = RedParams::parse(&fanin_params::Value::Table(Vec::new()).into(), &mut Cx::new());
        if !red.ecn && default.is_some_and(|default| default.hard_drop != red.hard_drop) {
            let remedy = "ecn = true, or no hard_drop";
            cx.key("marking", |cx| {
                cx.key("hard_drop", |cx| {
                    let message = "has no effect: without ecn all packets are dropped";
                    cx.error(Some(&shown(&red.hard_drop)), message, Some(remedy.to_string())).severity
                })
            });
        }
    }
    if let Buffer::Dynamic(buffer) = &switch.buffer {
        dynamic(buffer, switch, cx);
    }
}

fn dynamic(buffer: &DynamicBuffer, switch: &Switch, cx: &mut Cx) {
    let share = buffer.alpha / (1.0 + buffer.alpha);
    let alone = libm::floor(share * buffer.total.count() as f64) as u64;
    cx.key("buffer", |cx| {
        if buffer.alpha > GREEDY_ALPHA {
            let message = format!("lets a single queue take {:.0} % of the buffer", 100.0 * share);
            warn(cx, "alpha", &buffer.alpha, message).suggestion = Some("chips offer 1/128 to 8".to_string());
        }
        let frames = in_bytes(buffer.total, switch).map(|total| libm::floor(share * total as f64) as u64 / FRAME);
        if let Some(frames) = frames.filter(|frames| *frames < BURST_FRAMES) {
            warn(cx, "alpha", &buffer.alpha, format!("lets a queue that is alone hold no more than {frames} full frames"));
        }
    });
    for threshold in switch.marking.amounts() {
        let same_unit = std::mem::discriminant(&threshold) == std::mem::discriminant(&buffer.total);
        // What is above the whole buffer is warned of by the switch itself.
        if same_unit && threshold.count() < buffer.total.count() && threshold.count() >= alone {
            cx.key("marking", |cx| {
                let message = switch.marking.out_of_reach(threshold);
                cx.warn(None, format!("{message} what one queue may hold, alpha/(1 + alpha) of the buffer"), None);
            });
        }
    }
}

/// The ports that `switch.buffer.except` names, in order of their ids, and the buffer of each.
pub(super) fn buffers(parts: &Parts, network: &Network, cx: &mut Cx) -> Vec<(LinkId, Amount)> {
    let Some(Buffer::Static(buffer)) = parts.switch.as_ref().map(|switch| &switch.buffer) else { return Vec::new() };
    let ports: Vec<(LinkId, &str)> = network
        .ports
        .iter()
        .zip(0u32..)
        .filter(|(port, _)| port.of_switch)
        .map(|(port, id)| (LinkId(id), port.name.as_str()))
        .collect();
    let names: Vec<&str> = ports.iter().map(|(_, name)| *name).collect();
    // Which entry a port has its buffer from.
    let mut chosen: Vec<Option<usize>> = vec![None; ports.len()];
    for (i, entry) in buffer.except.iter().enumerate() {
        if entry.ports.is_empty() {
            except(cx, i, |cx| cx.error(None, "is empty: the entry has no effect", Some("names of ports".to_string())).severity);
        }
        for (j, wanted) in entry.ports.iter().enumerate() {
            let (mut any, mut twice) = (false, None);
            for (name, chosen) in names.iter().zip(&mut chosen).filter(|(name, _)| pattern::fits(wanted, name)) {
                any = true;
                match chosen.replace(i) {
                    Some(earlier) if earlier != i => twice = twice.or(Some((*name, earlier))),
                    _ => {}
                }
            }
            if !any {
                except(cx, i, |cx| cx.index(j, |cx| unknown(wanted, &names, cx)));
            }
            if let Some((name, earlier)) = twice {
                except(cx, i, |cx| {
                    cx.index(j, |cx| {
                        let message = format!("is {name} once more: switch.buffer.except[{earlier}] names it too");
                        cx.error(Some(&shown(wanted)), message, Some("one buffer for each port".to_string())).severity
                    })
                });
            }
        }
    }
    let amounts = ports.iter().zip(&chosen);
    amounts.filter_map(|((id, _), entry)| Some((*id, buffer.except[(*entry)?].per_port))).collect()
}

/// Runs `body` at the ports of an entry of `switch.buffer.except`.
fn except<T>(cx: &mut Cx, entry: usize, body: impl FnOnce(&mut Cx) -> T) -> T {
    cx.key("switch", |cx| cx.key("buffer", |cx| cx.key("except", |cx| cx.index(entry, |cx| cx.key("ports", body)))))
}

/// An amount in bytes, packets counted as full frames.
pub(super) fn in_bytes(amount: Amount, switch: &Switch) -> Option<u64> {
    match amount {
        Amount::Bytes(n) => Some(n),
        Amount::Packets(n) => n.checked_mul(FRAME),
        Amount::Cells(n) => n.checked_mul(u64::from(switch.cell_bytes())),
    }
}

/// The most that one port can hold by itself; `None` where there is no limit.
pub(super) fn port_buffer(switch: &Switch) -> Option<Bytes> {
    match &switch.buffer {
        Buffer::Static(buffer) => in_bytes(buffer.per_port, switch).map(Bytes),
        Buffer::Dynamic(buffer) => {
            let share = buffer.alpha / (1.0 + buffer.alpha);
            in_bytes(buffer.total, switch).map(|total| Bytes(libm::floor(share * total as f64) as u64))
        }
        Buffer::Unlimited(_) => None,
    }
}

/// A packet that no switch is left for on a shortest path.
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

/// A way to choose between paths where there is only one.
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
