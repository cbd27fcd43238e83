//! Checks of events of links: names, times, overlaps, reactions without effect.

use super::names::{unknown, LINK};
use super::Network;
use crate::doc::Parts;
use crate::events::{either, notices, Errors, Events, Failover, LinkEvent, LinkEventKind, Outage, MOST_OUTAGES};
use fanin_params::{defaults, pattern, Cx};
use fanin_topology::{Routes, Topology};
use fanin_units::{LinkId, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Most tables that are searched for circles, the first of the run.
const TABLES: usize = 16;

/// Resolves the events of links, and reports what is wrong with them.
pub(super) fn check(parts: &Parts, network: Option<&Network>, cx: &mut Cx) -> Events {
    let mut events = Events::default();
    for (i, event) in &parts.events {
        let before = cx.count();
        cx.key("events", |cx| cx.index(*i, |cx| times(event, parts.duration, cx)));
        let timed = cx.count() == before;
        if let Some(network) = network {
            cx.key("events", |cx| {
                cx.index(*i, |cx| {
                    let links = links(event, network, cx);
                    if timed {
                        resolve((*i, event), &links, (parts, network.topology()), &mut events, cx);
                    }
                });
            });
        }
    }
    let downs = || parts.events.iter().filter_map(|(_, event)| event.kind.down());
    if parts.all_events && downs().next().is_none() {
        if let Some(failover) = &parts.failover {
            cx.unused_at("failover", failover, "has no effect: no link fails", "an event with kind = \"down\", or no failover");
        }
    } else if parts.all_events && downs().all(|down| down.detect.is_some()) {
        if let Some(failover) = &parts.failover {
            cx.key("failover", |cx| {
                cx.unused_at(
                    "detect",
                    &failover.detect,
                    "has no effect: each event has a detect of its own",
                    "no failover.detect",
                );
            });
        }
    }
    if let Some(network) = network {
        overlaps(&mut events, network.topology(), cx);
        unnoticed(&events, network.topology(), parts.duration, cx);
    }
    events
}

/// Reports times out of order, and settings of flaps without effect.
fn times(event: &LinkEvent, duration: Option<Span>, cx: &mut Cx) {
    let start = event.start;
    if let Some(duration) = duration.filter(|duration| start >= Time::ZERO + *duration) {
        cx.error_at("start", &start, "is not before the end of the run", &format!("before {duration}, or a longer duration"));
    }
    if let Some(end) = event.end.filter(|end| *end <= start) {
        cx.error_at("end", &end, "is not after the start", &format!("after {start}"));
    }
    let Some(down) = event.kind.down() else { return };
    match (down.every, event.end) {
        (None, _) => {
            if let Some(times) = down.times {
                cx.error_at("times", &times, "has no effect: the links fail once", "an `every`, or no `times`");
            }
        }
        (Some(every), None) => {
            cx.error_at(
                "every",
                &every,
                "has no effect: the links do not come back",
                "an `end` for the first failure, or no `every`",
            );
        }
        (Some(every), Some(end)) => {
            let lasts = end.since(start);
            if end > start && every <= lasts {
                let message =
                    format!("is not longer than a failure, which lasts {lasts}: the links would fail again before they work");
                cx.error_at("every", &every, message, &format!("more than {lasts}"));
            }
            if down.times.is_none() && duration.is_none() {
                let accepted = "a number of failures, or a duration of the scenario";
                cx.key("times", |cx| cx.error(None, "is missing: the flap would never end", Some(accepted.into())).severity);
            }
        }
    }
}

/// Finds the links that an event names, in the direction that is named.
fn links(event: &LinkEvent, network: &Network, cx: &mut Cx) -> Vec<LinkId> {
    if event.links.is_empty() {
        cx.key("links", |cx| cx.error(None, "is empty: nothing happens", Some("at least one link".to_string())).severity);
    }
    let names: Vec<&str> = network.ports.iter().map(|port| port.name.as_str()).collect();
    for (n, wanted) in event.links.iter().enumerate() {
        if !names.iter().any(|name| pattern::fits(wanted, name)) {
            cx.key("links", |cx| cx.index(n, |cx| unknown(&LINK, wanted, &names, cx)));
        }
    }
    let fits = |name: &str| event.links.iter().any(|wanted| pattern::fits(wanted, name));
    (0u32..).map(LinkId).zip(&names).filter(|(_, name)| fits(name)).map(|(link, _)| link).collect()
}

/// Adds the outages and bit errors of an event to its links.
fn resolve(
    (i, event): (usize, &LinkEvent),
    links: &[LinkId],
    (parts, topology): (&Parts, &Topology),
    events: &mut Events,
    cx: &mut Cx,
) {
    let until = parts.duration.map_or(Time::MAX, |duration| Time::ZERO + duration);
    let end = event.end.unwrap_or(Time::MAX);
    match &event.kind {
        LinkEventKind::Down(down) => {
            let mut links: Vec<LinkId> = links.iter().map(|link| either(topology, *link)).collect();
            links.sort_unstable();
            links.dedup();
            let detect = down.detect.or(parts.failover.as_ref().map(|failover| failover.detect)).unwrap_or_default();
            let starts: Vec<Time> = down.starts(event.start, until).take(MOST_OUTAGES + 1).collect();
            let known: usize = events.outages.values().map(Vec::len).sum();
            if starts.len().saturating_mul(links.len()).saturating_add(known) > MOST_OUTAGES {
                let message = format!("makes more than {MOST_OUTAGES} failures of all links together");
                cx.error(None, message, Some("fewer links, a longer `every`, or fewer `times`".to_string()));
                return;
            }
            for link in links {
                let of = |start: &Time| {
                    let end = if end == Time::MAX { end } else { *start + end.since(event.start) };
                    Outage { start: *start, end, detect, event: i }
                };
                events.outages.entry(link).or_default().extend(starts.iter().map(of));
            }
        }
        LinkEventKind::BitErrors(errors) => {
            for link in links {
                let errors = Errors { start: event.start, end, rate: errors.rate, event: i };
                events.errors.entry(*link).or_default().push(errors);
            }
        }
    }
}

/// Puts the events of each link in order, and reports the first two that overlap.
fn overlaps(events: &mut Events, topology: &Topology, cx: &mut Cx) {
    let mut found = None;
    for (link, outages) in &mut events.outages {
        outages.sort_by_key(|outage| (outage.start, outage.event));
        let pair = outages.windows(2).find(|pair| pair[1].start <= pair[0].end);
        found = found.or(pair.map(|pair| (*link, "down", [pair[0].event, pair[1].event], pair[1].start, pair[0].end)));
    }
    for (link, errors) in &mut events.errors {
        errors.sort_by_key(|errors| (errors.start, errors.event));
        let pair = errors.windows(2).find(|pair| pair[1].start < pair[0].end);
        found = found.or(pair.map(|pair| (*link, "with bit errors", [pair[0].event, pair[1].event], pair[1].start, pair[0].end)));
    }
    let Some((link, state, [first, second], at, until)) = found else { return };
    let until = if until == Time::MAX { "the end".to_string() } else { format!("{until}") };
    cx.key("events", |cx| {
        cx.index(second, |cx| {
            let name = topology.link_name(link);
            let message = format!("finds {name} {state} at {at} already, by events[{first}] until {until}");
            cx.error(None, message, Some("events of a link that follow each other".to_string()));
        });
    });
}

/// Warns of failures that nobody notices: too short, or too late in the run.
fn unnoticed(events: &Events, topology: &Topology, duration: Option<Span>, cx: &mut Cx) {
    let until = duration.map_or(Time::MAX, |duration| Time::ZERO + duration);
    let unseen = |outages: &Vec<Outage>| notices(outages).into_iter().all(|notice| notice.at >= until);
    let mut warned = Vec::new();
    for (link, outages) in &events.outages {
        let Some(first) = outages.first().filter(|first| unseen(outages) && !warned.contains(&first.event)) else { continue };
        warned.push(first.event);
        let name = topology.link_name(*link);
        let message =
            format!("is noticed by neither end of {name}, which takes {}: frames are lost, and nothing reacts", first.detect);
        cx.key("events", |cx| {
            cx.index(first.event, |cx| {
                cx.warn(None, message, None).suggestion =
                    Some("a failure that lasts longer, or a shorter detect, where it is to be noticed".to_string());
            });
        });
    }
}

/// Links that are down together at some time of the run, and a circle of links in the tables that all switches have then; `None` if there is
/// none, or the intact network has one.
///
/// Tables change when a switch has been told, as in a run. Packets on their way as tables change are left out.
pub(super) fn circle_of_tables(events: &Events, parts: &Parts, network: &Network) -> Option<[Vec<String>; 2]> {
    let topology = network.topology();
    let converge = parts.failover.as_ref().map_or_else(|| defaults::<Failover>().converge, |failover| failover.converge);
    let until = parts.duration.map_or(Time::MAX, |duration| Time::ZERO + duration);
    let mut changes: BTreeMap<Time, Vec<(LinkId, bool)>> = BTreeMap::new();
    for (link, outages) in events.outages.iter().filter(|(link, _)| between_switches(topology, **link)) {
        for notice in notices(outages) {
            changes.entry(notice.at + converge).or_default().push((*link, notice.up));
        }
    }
    if changes.keys().next().is_none_or(|first| *first >= until) || network.circle().is_some() {
        return None;
    }
    let (mut down, mut seen): (BTreeSet<LinkId>, BTreeSet<BTreeSet<LinkId>>) = Default::default();
    for (_, now) in changes.into_iter().take_while(|(at, _)| *at < until) {
        for (link, up) in now {
            for link in [link, topology.link(link).reverse] {
                let _ = if up { down.remove(&link) } else { down.insert(link) };
            }
        }
        if down.is_empty() || !seen.insert(down.clone()) {
            continue;
        }
        let routes = Routes::shortest_without(topology, &down).ok()?;
        let names = |links: &mut dyn Iterator<Item = LinkId>| links.map(|link| topology.link_name(link)).collect();
        if let Some(circle) = routes.circle(topology) {
            let mut failed = down.iter().copied().filter(|link| either(topology, *link) == *link);
            return Some([names(&mut failed), names(&mut circle.into_iter())]);
        }
        if seen.len() >= TABLES {
            break;
        }
    }
    None
}

fn between_switches(topology: &Topology, link: LinkId) -> bool {
    let link = topology.link(link);
    topology.host_id(link.from).is_none() && topology.host_id(link.to).is_none()
}
