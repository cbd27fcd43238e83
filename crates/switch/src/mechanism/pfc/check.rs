//! Checks of priority flow control beside the scenario: headroom, thresholds, classes, neighbours, deadlock.

use super::{memory, PfcParams, StormAction, Xoff, BODY};
use crate::mechanism::{message_frame, Context, PortSite, Retries, Site};
use crate::{PRIORITIES, QUANTUM_BITS};
use fanin_packet::CONTROL_BODY;
use fanin_params::{Cx, Param};
use fanin_units::{Amount, BitRate, Bytes, Span};
use std::cmp::Reverse;

/// Memory for everything that a link can deliver after a switch has decided to pause its neighbour, including the packet that
/// made it decide: while the PFC frame waits for a frame that is being sent, is sent itself, and crosses the link, until the
/// neighbour's present frame has been sent and has crossed the link. Source: IEEE 802.1Q Annex N.
///
/// Either frame may have a message at its end, or be a message alone. Where a switch adds more to a frame than the link's gap is long,
/// what arrives takes more memory than it took time on the link.
pub(super) fn needed(params: &PfcParams, site: &Site, port: &PortSite) -> u64 {
    needed_by(params.max_frame.get(), params, site, port)
}

/// Frame bytes of a PFC frame at a switch.
fn pause_frame(site: &Site) -> u64 {
    u64::from(message_frame(&site.framing, BODY as u8))
}

/// The largest frame that a link may be busy with, where that of the traffic has `full` bytes.
fn on_the_link(full: u64, site: &Site) -> u64 {
    full.max(site.attached_frame.get()).max(u64::from(message_frame(&site.framing, CONTROL_BODY as u8)))
}

/// Headroom that is needed where the largest frame has `full` bytes.
fn needed_by(full: u64, params: &PfcParams, site: &Site, port: &PortSite) -> u64 {
    let gap = u64::from(port.overhead);
    let on_the_wire = port.rate.time_to_send(Bytes(2 * (on_the_link(full, site) + gap) + pause_frame(site) + gap));
    let bytes = port.rate.bytes_in(on_the_wire + port.round_trip + params.response).get();
    let frames = bytes / (u64::from(site.framing.frame(0)) + gap);
    full + bytes + frames * u64::from(site.growth.saturating_sub(port.overhead))
}

fn warn(cx: &mut Cx, message: impl Into<String>, suggestion: &str) {
    cx.warn(None, message, None).suggestion = Some(suggestion.to_string());
}

/// Reports errors and doubtful settings, all at once.
pub(super) fn check(params: &PfcParams, context: &Context<'_>, cx: &mut Cx) {
    classes(params, context, cx);
    what_drops(params, context, cx);
    neighbours(params, context, cx);
    quanta(params, context, cx);
    max_frame(params, context, cx);
    memory_of_switches(params, context, cx);
    headroom(params, context, cx);
    retries(params, context, cx);
    if let Some(circle) = (context.network.circle)().filter(|_| params.watchdog.is_none()) {
        let message = format!("may block itself for ever: routes go around in a circle, {}", circle.join(", "));
        warn(cx, message, "routes that go up and then down, as in fat trees, or a watchdog");
    }
    if let Some([down, circle]) = (context.network.rerouted)().filter(|_| params.watchdog.is_none()) {
        let down = if down.len() > LISTED { format!("{} links", down.len()) } else { listed(&down) };
        let message = format!("may block itself for ever: with {down} down, routes go around in a circle, {}", circle.join(", "));
        warn(cx, message, "a watchdog, failures that leave each switch a way up and down, or a longer failover.converge");
    }
    if let Some(circle) = context.circle_of_detours().filter(|_| params.watchdog.is_none()) {
        let message = format!("may block itself for ever: detours go around in a circle, {}", circle.join(", "));
        warn(cx, message, "no mechanism with detours beside it, or a watchdog");
    }
}

/// Number of links that are named.
const LISTED: usize = 4;

/// Text of a list, such as `3, 4 and 7`.
fn listed(all: &[impl ToString]) -> String {
    let texts: Vec<String> = all.iter().map(ToString::to_string).collect();
    match texts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => texts.concat(),
    }
}

fn classes(params: &PfcParams, context: &Context<'_>, cx: &mut Cx) {
    let value = params.classes.to_value().into();
    if params.classes.is_empty() {
        cx.key("classes", |cx| cx.error(None, "names no class", Some("at least one of 0 to 7".into())).severity);
    }
    for (i, class) in params.classes.iter().enumerate() {
        if params.classes[..i].contains(class) {
            let message = format!("names class {class} a second time");
            cx.key("classes", |cx| {
                cx.index(i, |cx| cx.error(Some(&class.to_value().into()), message, Some("each class once".into())).severity)
            });
        }
    }
    if context.traffic.is_complete && !context.traffic.classes.iter().any(|class| params.classes.contains(class)) {
        let plural = if context.traffic.classes.len() == 1 { "" } else { "es" };
        let message = format!("names no class of the traffic, which is of class{plural} {}", listed(context.traffic.classes));
        cx.key("classes", |cx| cx.warn(Some(&value), message, None).severity);
    }
    let all = params.classes.len() == PRIORITIES; // the default
    let queues = context.most_queues();
    let without: Vec<u8> = params.classes.iter().copied().filter(|class| usize::from(*class) >= queues).collect();
    if !without.is_empty() && !all {
        let there = if queues == 1 {
            "one queue, for class 0".into()
        } else {
            format!("{queues} queues, for classes 0 to {}", queues - 1)
        };
        let (plural, them) = if without.len() == 1 { ("", "it") } else { ("es", "them") };
        let message = format!(
            "names class{plural} {} that no port has: ports have {there}; headroom is kept free for {them} all the same",
            listed(&without)
        );
        cx.key("classes", |cx| {
            cx.warn(Some(&value), message, None).suggestion =
                Some("switch.scheduling with more classes, or only classes that there are".into());
        });
    }
    let lossy = params.lossless().count_ones() < PRIORITIES as u32;
    if params.lossy.is_some() && !lossy {
        let accepted = Some("fewer classes, or no lossy".into());
        cx.key("lossy", |cx| cx.error(None, "has no class to hold: all eight classes are lossless", accepted).severity);
    }
}

/// Causes of losses in spite of PFC.
fn what_drops(params: &PfcParams, context: &Context<'_>, cx: &mut Cx) {
    if let Some(watchdog) = &params.watchdog {
        let what = match watchdog.action {
            StormAction::Drop => "the watchdog drops a class",
            StormAction::Forward => "the watchdog sends a class, whether the neighbour has room or not,",
        };
        let message = format!("may lose packets: {what} after {} of pause", watchdog.detection);
        warn(cx, message, "no watchdog, where nothing may be lost");
        if let Some(duration) = context.duration.filter(|duration| watchdog.detection >= *duration) {
            let message = format!("finds no storm: a run of {duration} is over before a pause has lasted so long");
            cx.key("watchdog", |cx| {
                let problem = cx.warn_at("detection", &watchdog.detection, message);
                problem.suggestion = Some(format!("less than {duration}, or a longer run"));
            });
        }
    }
    if !context.is_unlimited() && context.voq().is_none() {
        let remedy = "switch.buffer = { kind = \"unlimited\" }: PFC counts the memory itself, where packets come in";
        warn(cx, "loses packets all the same where a port has no room", remedy);
    }
    if context.marking_drops() & params.lossless() != 0 {
        let remedy = "marking that only marks: threshold, or red with hard_drop = false and drop_others = false";
        warn(cx, "does not keep marking from dropping packets of lossless classes", remedy);
    }
}

fn neighbours(_params: &PfcParams, context: &Context<'_>, cx: &mut Cx) {
    if context.hosts.fifo_nics {
        let message = "does not stop hosts: NICs that are one queue, first in, first out, ignore pauses";
        warn(cx, message, "host.nic = \"fair\"");
    }
    let ports = context.network.sites.iter().flat_map(|site| site.ports.iter().map(move |port| (site, port)));
    let deaf: Vec<_> = ports.filter(|(_, port)| !port.to_host && !port.peer_runs.contains(&"pfc")).collect();
    if let Some((site, port)) = deaf.first() {
        let others = match deaf.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} others"),
        };
        let message =
            format!("may lose packets: {}, a neighbour of {}, has no PFC and does not pause{others}", port.peer, site.name);
        warn(cx, message, "PFC at all switches");
    }
}

/// Checks that `quanta` suffice: a frame that asks again leaves after half of the time, and may wait for a full frame and take
/// its own time then.
fn quanta(params: &PfcParams, context: &Context<'_>, cx: &mut Cx) {
    let late = |site: &Site| {
        let gap = site.ports.iter().map(|port| u64::from(port.overhead)).max().unwrap_or(0);
        on_the_link(longest(params, context), site) + pause_frame(site) + 2 * gap
    };
    let Some(late) = context.network.sites.iter().map(late).max() else { return };
    let least = (2 * late * 8).div_ceil(QUANTUM_BITS);
    if u64::from(params.quanta) < least {
        let message = "is too short: a frame that asks again comes after the pause has ended, so lossless packets are lost";
        cx.error_at("quanta", &params.quanta, message, &format!("from {least} to 65535"));
    }
}

/// Largest frame of the traffic, as far as it could be read.
fn of_traffic(context: &Context<'_>) -> Option<u64> {
    let packets = context.traffic.transports.iter().map(|t| u64::from(t.mtu) + u64::from(t.telemetry));
    let largest = packets.chain((context.traffic.datagram > 0).then_some(context.traffic.datagram)).max()?;
    Some(largest + u64::from(context.frames.framing.header + context.frames.trailer + context.frames.header_bytes))
}

/// The largest frame that a link may be busy with: of the traffic, whatever `max_frame` says, which a given headroom does not use.
fn longest(params: &PfcParams, context: &Context<'_>) -> u64 {
    of_traffic(context).unwrap_or(0).max(params.max_frame.get())
}

fn max_frame(params: &PfcParams, context: &Context<'_>, cx: &mut Cx) {
    if let Some(bytes) = of_traffic(context).filter(|bytes| *bytes > params.max_frame.get() && params.headroom.is_none()) {
        let message = format!("is less than the largest frame of the traffic, {bytes} B: the headroom is too small by as much");
        cx.error_at("max_frame", &params.max_frame, message, &format!("at least {bytes} B"));
    }
}

/// Headroom and reservations of a switch.
fn fixed(params: &PfcParams, site: &Site) -> u64 {
    memory::fixed(params, site.ports.iter().map(|port| params.headroom_at(site, port)))
}

/// Memory that a port and class keep for frames after XOFF, memory that is shared, and the most that one port and class hold when
/// they reach XOFF, alone at a switch.
pub(super) fn sizes(params: &PfcParams, site: &Site) -> Vec<(&'static str, Bytes)> {
    let pool = memory::common(params, fixed(params, site));
    let xoff = params.reserved.get() + xoff_alone(params, pool);
    let headroom = site.ports.iter().map(|port| ("headroom", Bytes(params.headroom_at(site, port))));
    headroom.chain([("pool", Bytes(pool)), ("xoff", Bytes(xoff))]).collect()
}

/// Share of the pool that one port and class have when they reach XOFF, alone at a switch; bytes of the pool.
fn xoff_alone(params: &PfcParams, pool: u64) -> u64 {
    match &params.xoff {
        Xoff::Static(xoff) => xoff.bytes.get().min(pool),
        Xoff::Dynamic(xoff) => (xoff.alpha / (1.0 + xoff.alpha) * pool as f64) as u64,
    }
}

fn memory_of_switches(params: &PfcParams, context: &Context<'_>, cx: &mut Cx) {
    let lossy = params.lossy.as_ref().map_or(0, |lossy| lossy.memory.get());
    let most = context.network.sites.iter().map(|site| (fixed(params, site), site)).min_by_key(|(fixed, _)| Reverse(*fixed));
    let Some((fixed, site)) = most else { return };
    if fixed + lossy >= params.memory.get() {
        let own = if lossy > 0 { format!(", the pool of other classes {lossy} B") } else { String::new() };
        let classes = match params.lossless().count_ones() {
            1 => "one lossless class".to_string(),
            more => format!("{more} lossless classes"),
        };
        let message = format!(
            "leaves no pool at {}: headroom and reservations of {} ports and {classes} take {fixed} B{own}",
            site.name,
            site.ports.len(),
        );
        let least = fixed + lossy + params.max_frame.get();
        let accepted = format!("at least {least} B, which is one frame more; or fewer classes, or less headroom");
        cx.error_at("memory", &params.memory, message, &accepted);
        return;
    }
    thresholds(params, context, (site, memory::common(params, fixed)), cx);
}

/// Checks XOFF and XON against the pool, and against the amounts that ports may hold.
fn thresholds(params: &PfcParams, context: &Context<'_>, (site, pool): (&Site, u64), cx: &mut Cx) {
    if let Xoff::Static(xoff) = &params.xoff {
        if xoff.bytes.get() > pool {
            let message = format!("is more than the pool of {}, {pool} B: XOFF is reached when that is full", site.name);
            cx.key("xoff", |cx| cx.warn_at("bytes", &xoff.bytes, message).suggestion = Some(format!("at most {pool} B")));
        }
    }
    let highest = match &params.xoff {
        Xoff::Static(xoff) => xoff.bytes.get().min(pool),
        Xoff::Dynamic(xoff) => (xoff.alpha * pool as f64) as u64,
    };
    other_classes(params, context, highest, cx);
    if params.xon_gap.get() > highest {
        let message = format!("puts XON below zero: XOFF is {highest} B at most, so a pause lasts until nothing is left");
        cx.error_at("xon_gap", &params.xon_gap, message, &format!("at most {highest} B"));
    }
    let xoff = params.reserved.get() + xoff_alone(params, pool);
    if let Some(voq) = context.voq() {
        return virtual_output_queues(params, context, (xoff, voq), cx);
    }
    pauses_for_a_burst(context, xoff, cx);
    pauses_before_marks(params, context, (site, pool), cx);
    let bytes = |amount: &Amount| match amount {
        Amount::Bytes(bytes) => Some(*bytes),
        Amount::Packets(packets) => Some(packets.saturating_mul(params.max_frame.get())),
        Amount::Cells(cells) => Some(cells.saturating_mul(u64::from(context.cell()))),
    };
    let largest = context.buffers().iter().filter_map(bytes).max();
    if let Some(buffer) = largest.filter(|buffer| !context.is_unlimited() && *buffer < xoff) {
        let message = format!("can never trigger at one port: that holds {buffer} B at most, and XOFF is reached at {xoff} B");
        cx.key("xoff", |cx| {
            warn(cx, message, &format!("XOFF of less than {buffer} B, or switch.buffer = {{ kind = \"unlimited\" }}"));
        });
    }
}

/// Checks lossy classes without a pool of their own, for which XOFF is a limit as well: with less than a frame, none may ever
/// wait.
fn other_classes(params: &PfcParams, context: &Context<'_>, highest: u64, cx: &mut Cx) {
    let lossy: Vec<u8> =
        context.traffic.classes.iter().copied().filter(|class| params.lossless() >> (class & 7) & 1 == 0).collect();
    let (room, frame) = (highest.saturating_add(params.reserved.get()), longest(params, context));
    if lossy.is_empty() || params.lossy.is_some() || room >= frame {
        return;
    }
    let plural = if lossy.len() == 1 { "" } else { "es" };
    let message =
        format!("leaves class{plural} {} no room for a frame of {frame} B: each that has to wait is dropped", listed(&lossy));
    cx.key("xoff", |cx| warn(cx, message, "a pool for the other classes (lossy), or a higher XOFF"));
}

/// Virtual output queues that are full before the neighbour has stopped: all that waits at an input may be for one port.
fn virtual_output_queues(params: &PfcParams, context: &Context<'_>, (xoff, voq): (u64, Bytes), cx: &mut Cx) {
    let at = |site: &Site| site.ports.iter().map(|port| params.headroom_at(site, port)).max().unwrap_or(0);
    let headroom = context.network.sites.iter().map(at).max().unwrap_or(0);
    if xoff + headroom <= voq.get() {
        return;
    }
    let need = Bytes(xoff + headroom);
    let message = format!(
        "is above what a virtual output queue holds, {voq}: XOFF at {} and headroom of {} are {need}, all of which may wait for one port",
        Bytes(xoff),
        Bytes(headroom)
    );
    let room = voq.get().saturating_sub(headroom + params.reserved.get());
    let static_xoff = if room > params.xon_gap.get() {
        format!("xoff = {{ kind = \"static\", bytes = \"{room}B\" }} or less, or ")
    } else {
        String::new()
    };
    let accepted = format!("{static_xoff}switch.architecture.voq of at least {need}");
    cx.key("xoff", |cx| cx.error(None, message, Some(accepted)).severity);
}

/// Warns of an XOFF below the burst that one end hands to its NIC at once: wherever two of these meet, a neighbour is paused.
fn pauses_for_a_burst(context: &Context<'_>, xoff: u64, cx: &mut Cx) {
    let bursts = context.traffic.transports.iter().filter_map(|transport| Some((transport.name, transport.burst?)));
    let Some((name, (key, bytes))) = bursts.max_by_key(|(_, (_, bytes))| *bytes).filter(|(_, (_, bytes))| bytes.get() > xoff)
    else {
        return;
    };
    let message = format!(
        "is reached within a burst: transport {name} hands the NIC {} B at once ({key}), and XOFF is {xoff} B",
        bytes.get()
    );
    let suggestion = format!("{key} of at most {xoff} B, or a higher XOFF");
    cx.key("xoff", |cx| warn(cx, message, &suggestion));
}

/// Warns of an XOFF that comes before the first mark, whatever inputs a queue is from: no control that works by marks can keep it
/// away.
fn pauses_before_marks(params: &PfcParams, context: &Context<'_>, (site, pool): (&Site, u64), cx: &mut Cx) {
    let inputs = site.ports.len().saturating_sub(1) as u64;
    let most = inputs * params.reserved.get()
        + match &params.xoff {
            Xoff::Static(xoff) => xoff.bytes.get().saturating_mul(inputs).min(pool),
            Xoff::Dynamic(xoff) => {
                let sum = xoff.alpha * inputs as f64;
                (sum / (1.0 + sum) * pool as f64) as u64
            }
        };
    let bytes = |amount: &Amount| match amount {
        Amount::Bytes(bytes) => *bytes,
        Amount::Packets(packets) => packets.saturating_mul(params.max_frame.get()),
        Amount::Cells(cells) => cells.saturating_mul(u64::from(context.cell())),
    };
    let marks_from = context.marks_from();
    let lossless = marks_from.iter().filter(|(classes, _)| classes & params.lossless() != 0);
    let Some(from) = lossless.map(|(_, from)| bytes(from)).min().filter(|from| *from >= most) else { return };
    let message = format!(
        "pauses before ports mark: XOFF is reached with {most} B in a queue at {} at most, and marks begin at {from} B",
        site.name
    );
    cx.key("xoff", |cx| warn(cx, message, "switch.marking with lower thresholds, or a higher XOFF"));
}

/// Longest time that a packet and its acknowledgment may take without a loss: each waits behind all packets that the switches on
/// its way can hold, at the rate of the slowest port. `None` where there are no ports.
fn longest_wait(params: &PfcParams, context: &Context<'_>) -> Option<(Span, BitRate)> {
    let ports = context.network.sites.iter().flat_map(|site| &site.ports);
    let slowest = ports.map(|port| port.rate).min()?;
    Some((slowest.time_to_send(params.memory).saturating_mul(2 * u64::from(context.network.longest_path)), slowest))
}

/// Warns of flows that fail by time while they only wait for pauses.
fn retries(params: &PfcParams, context: &Context<'_>, cx: &mut Cx) {
    let Some((wait, slowest)) = longest_wait(params, context) else { return };
    let us = |span: Span| Span::from_us(span.ps().div_ceil(Span::from_us(1).ps()));
    for transport in context.traffic.transports {
        let Some(Retries { key, timeout, exponent, times, raise }) = transport.retries else { continue };
        if timeout.saturating_mul(u64::from(times)) >= wait {
            continue;
        }
        let least = us(Span::from_ps(wait.ps().div_ceil(u64::from(times))));
        let suggestion = match exponent {
            Some(n) => {
                let doublings = (0..32).find(|more| timeout.saturating_mul(1 << more) >= least).unwrap_or(32);
                format!("{raise} = {} at transport {}", n + doublings, transport.name)
            }
            None => format!("{raise} of at least {least} at transport {}, or less memory", transport.name),
        };
        let message = format!(
            "may keep a packet and its acknowledgment waiting for {} without a loss ({} switches of {} both ways, at {slowest}), and \
             flows of transport {} fail after {times} timeouts of {timeout} ({key})",
            us(wait),
            context.network.longest_path,
            params.memory,
            transport.name,
        );
        cx.key("memory", |cx| warn(cx, message, &suggestion));
    }
}

fn headroom(params: &PfcParams, context: &Context<'_>, cx: &mut Cx) {
    let Some(given) = params.headroom else { return };
    let ports = context.network.sites.iter().flat_map(|site| site.ports.iter().map(move |port| (site, port)));
    let full = longest(params, context);
    let needs = ports.map(|(site, port)| (needed_by(full, params, site, port), site, port));
    let Some((need, site, port)) = needs.min_by_key(|(need, ..)| Reverse(*need)) else { return };
    if given.get() < need {
        let missing = need - given.get();
        let message = format!(
            "may lose packets: what {} can send to {} after XOFF is up to {need} B, {missing} B more",
            port.peer, site.name
        );
        cx.warn_at("headroom", &given, message).suggestion = Some(format!("at least {need} B, or none"));
    }
}
