//! RIMM: packets for a port whose queue has reached α take a detour by a neighbour, and go on in order. Source: RIMM.
//!
//! The state machines are those of [`fanin_dataplane::rimm`]; here are the headers, the messages and the choice of a port.

mod header;
mod settings;
pub(crate) mod testing;

pub use settings::{
    AlertBy, Detours, DrainedParams, FlowletGap, GiveUpWhen, Hops, Neighbour, Release, RimmCounts, RimmParams, UnorderedParams,
};

use self::header::{read, Said, ANSWER, DEPTH, DEPTH_BYTES, DETOUR, MESSAGE, NUMBER_BYTES, RETURN};
use super::{
    names_it, Arrival, Claims, Clones, Context, Dropped, Effect, Effects, Headers, Hooks, Mechanism, Node, Peaks, PortNo,
    Profile, Site, Verdict, Watches,
};
use crate::{DropReason, PortView, Unit};
use fanin_dataplane::rimm::{index, least, Alert, Back, Bounds, Detector, Ended, Heard, Pair, Until};
use fanin_packet::{Kind, PacketId, Shim, SHIM_BODY};
use fanin_params::{Cx, Ground, Setting};
use fanin_units::{Bytes, Span, Time, TrafficClass};
use std::collections::BTreeMap;

/// Hops that a packet must have left for a detour: two for the detour, and the longest way of a folded Clos network from there.
const LEAST_HOPS: u8 = 8;

impl DropReason {
    /// A RIMM message was dropped because its neighbour would forward it by another way.
    pub const NO_WAY_BACK: DropReason = DropReason("no_way_back");
}

/// Reason for which a packet takes no detour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    NoNeighbour,
    OutOfHops,
    TooLong,
}

impl Why {
    const fn name(self) -> &'static str {
        match self {
            Why::NoNeighbour => "no_neighbour",
            Why::OutOfHops => "out_of_hops",
            Why::TooLong => "too_long",
        }
    }
}

/// The present in the registers' clock [ns].
fn clock(now: Time) -> u32 {
    (now.ps() / 1_000) as u32
}

fn nanoseconds(span: Span) -> u32 {
    u32::try_from(span.ps() / 1_000).unwrap_or(u32::MAX)
}

/// A port's registers.
#[derive(Clone, Debug, Default)]
struct Port {
    /// True if the port leads to a switch with RIMM.
    aware: bool,
    detector: Detector,
    alert: Alert,
}

/// Packets of a pair behind which one that is away is taken to be lost.
const FORGOTTEN: u32 = 1 << 16;

/// A packet's detours, which no switch would keep: for the largest values.
#[derive(Clone, Copy, Debug)]
struct Away {
    since: Time,
    detours: u64,
}

/// RIMM at one switch.
#[derive(Debug)]
pub struct Rimm {
    unit: Unit,
    /// α in `unit`.
    alpha: u32,
    by: AlertBy,
    /// `None`: packets have no numbers.
    until: Option<Until>,
    /// Setting `give_up` [ns].
    give_up: u32,
    /// Bounds of a pair's detour.
    bounds: Bounds,
    /// Interval of messages about a queue that stays above α [ns].
    repeat: u32,
    neighbour: Neighbour,
    /// Depths from here on are too much.
    room: u16,
    hash_bits: u32,
    message_class: Option<TrafficClass>,
    hops: Hops,
    max_frame: u64,
    cell: u32,
    ttl: u8,
    ports: Vec<Port>,
    /// True for each neighbour that sends a packet for a port back, by port and neighbour; empty for ports without detours.
    back: Vec<Vec<bool>>,
    /// Depth that the neighbour has last stated, by port.
    qdm: Vec<Option<u16>>,
    /// Pairs of sequence numbers, by hash; empty until the first detour.
    pairs: Vec<Pair>,
    /// Port of the pair's last detour, by hash; only with `neighbour` = per_flow.
    ways: Vec<PortNo>,
    /// Packets away on a detour, by pair and number.
    away: BTreeMap<(u32, u32), Away>,
    counts: RimmCounts,
    reasons: BTreeMap<Why, u64>,
    longest: Span,
    /// Longest time that a detour went on beside an idle port [ns].
    longest_idle: u32,
    most_detours: u64,
    most_out: u32,
}

impl Rimm {
    fn depth(&self, view: &PortView) -> u64 {
        view.queue(self.unit)
    }

    /// Header for packets to a switch with RIMM; the port writes the depth when the frame leaves.
    fn shim(&self, ether_type: u16, rest: &[u8]) -> Shim {
        let mut body = [0; SHIM_BODY];
        body[2..2 + rest.len()].copy_from_slice(rest);
        Shim::new(ether_type, &body[..2 + rest.len()], self.cell.min(u32::from(u16::MAX)) as u16)
    }

    fn numbered(&self, ether_type: u16, number: u32) -> Shim {
        self.shim(ether_type, &number.to_be_bytes())
    }

    /// True if a packet that would leave by `not` may come back from the neighbour behind a port.
    fn comes_back(&self, port: usize, not: PortNo) -> bool {
        self.back[not.index()].get(port).is_some_and(|back| *back)
    }

    /// True if packets for a port may take detours.
    fn has_detours(&self, port: PortNo) -> bool {
        !self.back[port.index()].is_empty()
    }

    /// True if the neighbour behind a port, which has stated `depth`, may get a packet that would leave by `not`.
    fn usable(&self, port: usize, depth: u16, not: PortNo) -> bool {
        self.comes_back(port, not) && depth < self.room && !self.ports[port].alert.is_on()
    }

    /// Port to the neighbour with the least depth that may get a packet that would leave by `not`.
    fn way(&self, not: PortNo) -> Option<PortNo> {
        least(&self.qdm, |port, depth| self.usable(port, depth, not)).map(|port| PortNo(port as u16))
    }

    /// Port by which other packets of the pair are out.
    fn kept(&self, hash: u32, not: PortNo) -> Option<PortNo> {
        let index = index(hash, self.hash_bits);
        let way = *self.ways.get(index).filter(|_| self.pairs[index].out() > 0)?;
        let depth = self.qdm[way.index()]?;
        self.usable(way.index(), depth, not).then_some(way)
    }

    /// Neighbour for a message: one without room, or behind a port in alert, is better than none.
    fn way_of_message(&self, not: PortNo) -> Option<PortNo> {
        let any = || least(&self.qdm, |port, _| self.comes_back(port, not)).map(|port| PortNo(port as u16));
        self.way(not).or_else(any)
    }

    /// Port by which a packet that would leave by `to` takes its detour.
    fn detour(&self, p: &Arrival<'_>, to: PortNo) -> Result<PortNo, Why> {
        let frame = u64::from(p.envelope.frame - p.envelope.extra.shim() + NUMBER_BYTES);
        if frame > self.max_frame {
            return Err(Why::TooLong);
        }
        if p.envelope.ttl < LEAST_HOPS {
            return Err(Why::OutOfHops);
        }
        self.kept(p.envelope.hash, to).or_else(|| self.way(to)).ok_or(Why::NoNeighbour)
    }

    /// A packet takes a detour by a port.
    fn keep(&mut self, hash: u32, port: PortNo) {
        if self.neighbour == Neighbour::PerFlow {
            self.ways.resize(1 << self.hash_bits, PortNo(0));
            self.ways[index(hash, self.hash_bits)] = port;
        }
    }

    fn note(&mut self, why: Why) {
        *self.reasons.entry(why).or_default() += 1;
    }

    /// State of a port's alert: packets for it take detours now; it has not run empty since its alert; and, as the second, the
    /// alert has lasted so long that they take none.
    fn alert(&mut self, node: &mut dyn Node, to: PortNo) -> ((bool, bool), bool) {
        let now = clock(node.now());
        if self.by == AlertBy::AtOnce {
            if !self.has_detours(to) {
                return ((false, false), false);
            }
            let depth = u32::try_from(self.depth(&node.view(to))).unwrap_or(u32::MAX);
            let alert = &mut self.ports[to.index()].alert;
            self.counts.alerts += u64::from(depth >= self.alpha && !alert.is_on());
            alert.set(depth, self.alpha, now);
        }
        let alert = &mut self.ports[to.index()].alert;
        let detours = alert.detours(now, self.give_up);
        ((detours, alert.is_busy()), alert.is_on() && !detours)
    }

    /// Pair of a packet's flow, given up where its detour has come to a bound.
    fn pair(&mut self, hash: u32, now: u32, (congested, busy): (bool, bool), until: Until) -> &mut Pair {
        if self.pairs.is_empty() {
            self.pairs.resize(1 << self.hash_bits, Pair::default());
        }
        let pair = &mut self.pairs[index(hash, self.hash_bits)];
        if !busy {
            self.longest_idle = self.longest_idle.max(pair.idle(now));
        }
        let ended = pair.expire(now, congested, self.bounds, until);
        self.counts.given_up += u64::from(ended.is_some());
        self.counts.outlived += u64::from(ended == Some(Ended::Outlived));
        self.counts.overlong += u64::from(ended == Some(Ended::Overlong));
        pair
    }

    /// A packet that has not been here before, or has no number.
    fn on_new(&mut self, node: &mut dyn Node, p: &mut Arrival<'_>, to: PortNo) -> Verdict {
        let (alert, congested) = self.alert(node, to);
        let now = clock(node.now());
        let detours = match self.until {
            None => alert.0,
            Some(_) if !alert.0 && self.pairs.is_empty() => false,
            Some(until) => self.pair(p.envelope.hash, now, (congested, alert.1), until).on_new(to.0, alert, now, until),
        };
        if !detours {
            return Verdict::Pass;
        }
        match self.detour(p, to) {
            Err(why) => {
                self.note(why);
                self.counts.stayed += 1;
                Verdict::Pass
            }
            Ok(port) => {
                self.counts.detoured += 1;
                if let Some(until) = self.until {
                    let pair = &mut self.pairs[index(p.envelope.hash, self.hash_bits)];
                    let number = pair.attach(to.0, now, until);
                    self.most_out = self.most_out.max(pair.out());
                    p.set_shim(Some(self.numbered(DETOUR, number)));
                    self.keep(p.envelope.hash, port);
                    self.leaves(p.envelope.hash, number, node.now());
                }
                Verdict::Detour(port)
            }
        }
    }

    /// A packet with a number of this switch.
    fn on_return(&mut self, node: &mut dyn Node, p: &mut Arrival<'_>, to: PortNo, number: u32) -> Verdict {
        if self.hops == Hops::Restored {
            p.envelope.ttl = p.envelope.ttl.saturating_add(2).min(self.ttl);
        }
        let (alert, congested) = self.alert(node, to);
        let now = clock(node.now());
        let until = self.until.unwrap_or(Until::Drained);
        let bounds = self.bounds;
        let back = self.pair(p.envelope.hash, now, (congested, alert.1), until).on_return(number, alert, now, bounds);
        let pair = index(p.envelope.hash, self.hash_bits) as u32;
        match back {
            Back::Release => self.counts.released += 1,
            Back::Late => self.counts.late += 1,
            Back::Again => match self.detour(p, to) {
                Ok(port) => {
                    self.counts.redetoured += 1;
                    self.away.get_mut(&(pair, number)).into_iter().for_each(|away| away.detours += 1);
                    p.set_shim(Some(self.numbered(DETOUR, number)));
                    self.keep(p.envelope.hash, port);
                    return Verdict::Detour(port);
                }
                Err(why) => {
                    self.note(why);
                    let awaited = self.pairs[index(p.envelope.hash, self.hash_bits)].let_go(number, now);
                    self.counts.let_go += u64::from(awaited);
                    self.counts.late += u64::from(!awaited);
                }
            },
        }
        p.set_shim(Some(self.shim(DEPTH, &[])));
        if let Some(away) = self.away.remove(&(pair, number)) {
            self.longest = self.longest.max(node.now().since(away.since));
            self.most_detours = self.most_detours.max(away.detours);
        }
        Verdict::Pass
    }

    /// Notes that a packet goes away with a number. Those far behind it were dropped elsewhere.
    fn leaves(&mut self, hash: u32, number: u32, now: Time) {
        let pair = index(hash, self.hash_bits) as u32;
        while let Some((known, _)) = self.away.range((pair, 0)..(pair, number.saturating_sub(FORGOTTEN))).next() {
            let known = *known;
            self.away.remove(&known);
        }
        self.away.insert((pair, number), Away { since: now, detours: 1 });
    }

    /// Bits of registers: for each port its place in the QDM table, its detector and its alert; for each pair its numbers, clocks
    /// and port, and the neighbour that it keeps.
    fn state_bytes(&self) -> u64 {
        const PORT: u64 = 16 + (2 + 16 + 32) + (3 + 16 + 32);
        let pair = match self.until {
            None => 0,
            Some(Until::Drained) => 32 * 5 + 16 + 1,
            Some(Until::Flowlet(_)) => 32 * 6 + 16 + 2,
        };
        let pair = pair + if self.neighbour == Neighbour::PerFlow { 16 } else { 0 };
        (PORT * self.ports.len() as u64 + (pair << self.hash_bits)).div_ceil(8)
    }
}

/// α of 20,000 of 24,000 cells, or as much below the queue from which senders are told to slow down, and tables that name one spine for each host. Source: RIMM §IV.
fn authors(at: &Ground) -> Vec<Setting> {
    let most = at.marks.or(at.buffer);
    let alpha = most.map(|most| ("switch.mechanisms.rimm.alpha", format!("\"{}\"", settings::five_sixths(most))));
    let tables = ("switch.routing", "\"by_destination\"".to_string());
    alpha.into_iter().chain(std::iter::once(tables)).collect()
}

impl Mechanism for Rimm {
    type Params = RimmParams;
    type Counts = RimmCounts;

    const PROFILE: Profile = Profile {
        headers: Some(Headers { bytes: NUMBER_BYTES, of_host: None }),
        peaks: settings::PEAKS,
        returns: true,
        authors,
        ..Profile::PLAIN
    };

    fn claims(params: &RimmParams) -> Claims {
        Claims { amounts: vec![params.alpha], ..Claims::default() }
    }

    /// Each port: detector 50 bits, alert 51, depth of the neighbour 16. Each pair of numbers: 177 bits, and 33 for gaps between
    /// flowlets: the registers of `fanin_dataplane::rimm`. Source: RIMM §III.
    fn memory(params: &RimmParams, site: &Site) -> Option<Bytes> {
        let pair = match params.release {
            Release::Drained(_) => 177,
            Release::Flowlet(_) => 210,
            Release::Unordered(_) => 0,
        };
        let bits = (50 + 51 + 16) * site.ports.len() as u64 + (pair << params.hash_bits);
        Some(Bytes(bits.div_ceil(Bytes(1).bits())))
    }

    fn runs_at(params: &RimmParams, switch: &str) -> bool {
        !names_it(&params.unaware, switch)
    }

    fn new(params: &RimmParams, site: &Site) -> Option<Self> {
        if !Self::runs_at(params, &site.name) {
            return None;
        }
        let aware = |port: &super::PortSite| Port { aware: port.peer_runs.contains(&"rimm"), ..Port::default() };
        let back = |(number, port): (usize, &super::PortSite)| {
            let comes = |other: usize| match params.detours {
                Detours::All => other != number,
                Detours::Returning => port.back.contains(&PortNo(other as u16)),
            };
            let all: Vec<bool> = (0..site.ports.len()).map(comes).collect();
            if all.contains(&true) {
                all
            } else {
                Vec::new()
            }
        };
        let ports: Vec<Port> = site.ports.iter().map(aware).collect();
        Some(Rimm {
            unit: Unit::of(params.alpha),
            alpha: u32::try_from(params.alpha.count()).unwrap_or(u32::MAX),
            by: params.alert,
            until: match &params.release {
                Release::Drained(_) => Some(Until::Drained),
                Release::Flowlet(flowlet) => Some(Until::Flowlet(nanoseconds(flowlet.chi))),
                Release::Unordered(_) => None,
            },
            give_up: nanoseconds(params.give_up),
            bounds: match params.give_up_when {
                GiveUpWhen::Stalled => Bounds { whole: nanoseconds(params.longest), wait: Some(nanoseconds(params.give_up)) },
                GiveUpWhen::Outstanding => Bounds { whole: nanoseconds(params.give_up), wait: None },
            },
            repeat: nanoseconds(params.repeat),
            neighbour: params.neighbour,
            room: u16::try_from(params.room.get().div_ceil(u64::from(site.cell))).unwrap_or(u16::MAX),
            hash_bits: params.hash_bits,
            message_class: params.message_class.map(TrafficClass),
            hops: params.hops,
            max_frame: params.max_frame.get(),
            cell: site.cell,
            ttl: site.ttl,
            back: site.ports.iter().enumerate().map(back).collect(),
            qdm: vec![None; ports.len()],
            ports,
            pairs: Vec::new(),
            ways: Vec::new(),
            away: BTreeMap::new(),
            counts: RimmCounts::default(),
            reasons: BTreeMap::new(),
            longest: Span::ZERO,
            longest_idle: 0,
            most_detours: 0,
            most_out: 0,
        })
    }

    fn check(params: &RimmParams, context: &Context<'_>, cx: &mut Cx) {
        params.check(context, cx);
        context.check_neighbours(|switch| Self::runs_at(params, switch), Some("rimm"), cx);
        context.check_hops(LEAST_HOPS, cx);
    }

    fn hooks(&self) -> Hooks {
        let hooks = Hooks::ROUTE.with(Hooks::OFFER).with(Hooks::DROP).with(Hooks::SHIMS);
        match self.by {
            AlertBy::Message => hooks.with(Hooks::EGRESS),
            AlertBy::AtOnce => hooks,
        }
    }

    fn counts(&self) -> RimmCounts {
        self.counts
    }

    fn by_reason(&self) -> Vec<(&'static str, u64)> {
        self.reasons.iter().map(|(why, n)| (why.name(), *n)).collect()
    }

    fn on_route(&mut self, node: &mut dyn Node, p: &mut Arrival<'_>, to: PortNo, _fx: &mut Effects) -> Verdict {
        let read = p.shim.as_ref().and_then(read);
        let (Some((depth, said)), Some(from)) = (read, p.from) else { return self.on_new(node, p, to) };
        self.qdm[from.index()] = Some(depth);
        match said {
            Said::Nothing => self.on_new(node, p, to),
            Said::Return(number) => self.on_return(node, p, to, number),
            // The detour of a neighbour: what leads back is on its way back, anything else is lost to it.
            Said::Detour(number) => {
                let back = to == from;
                self.counts.astray += u64::from(!back);
                p.set_shim(Some(if back { self.numbered(RETURN, number) } else { self.shim(DEPTH, &[]) }));
                Verdict::Pass
            }
            Said::Message if to == from => {
                let rest = p.shim.map_or(Vec::new(), |shim| shim.body()[2..].to_vec());
                p.set_shim(Some(self.shim(ANSWER, &rest)));
                Verdict::Pass
            }
            Said::Message => Verdict::Drop(DropReason::NO_WAY_BACK),
            Said::Answer(port, crossing, depth) => {
                if let Some(port) = self.ports.get_mut(usize::from(port)) {
                    let was = port.alert.is_on();
                    match port.alert.on_message(crossing, depth, self.alpha, clock(node.now())) {
                        Heard::News(missed) => {
                            self.counts.messages_returned += 1;
                            self.counts.messages_missed += u64::from(missed);
                            self.counts.alerts += u64::from(port.alert.is_on() && (!was || missed > 0));
                        }
                        Heard::Known => self.counts.messages_repeated += 1,
                        Heard::Old => self.counts.messages_overtaken += 1,
                    }
                }
                Verdict::Take
            }
        }
    }

    /// The frame gets the header that the port's far end understands, or none.
    fn on_offer(&mut self, node: &mut dyn Node, p: &mut Arrival<'_>, port: PortNo, fx: &mut Effects) -> Verdict {
        let aware = self.ports[port.index()].aware;
        let said = p.shim.as_ref().and_then(read).map(|(_, said)| said);
        match said {
            Some(Said::Message | Said::Answer(..)) if !aware => return Verdict::Drop(DropReason::NO_WAY_BACK),
            Some(Said::Detour(_) | Said::Return(_)) if !aware => {
                self.counts.astray += 1;
                p.set_shim(None);
            }
            Some(Said::Nothing) if !aware => p.set_shim(None),
            None if aware && u64::from(p.envelope.frame + DEPTH_BYTES) <= self.max_frame => {
                p.set_shim(Some(self.shim(DEPTH, &[])));
            }
            _ => {}
        }
        if self.by == AlertBy::Message && self.has_detours(port) {
            let view = node.view(port);
            let with_it = self.depth(&view) + self.unit.size(p.envelope.frame, self.cell);
            if with_it >= u64::from(self.alpha) {
                fx.push(Effect::Watch(port));
            }
        }
        Verdict::Pass
    }

    fn on_drop(&mut self, _: &mut dyn Node, dropped: &Dropped<'_>, _: &mut Effects) {
        self.counts.dropped_away +=
            u64::from(dropped.envelope.kind != Kind::Control && dropped.envelope.extra.shim() == NUMBER_BYTES);
    }

    /// Forgets the neighbour behind a link that goes down until it states its depth again, and the queue at the link's egress.
    fn on_link(&mut self, node: &mut dyn Node, port: PortNo, up: bool, _fx: &mut Effects) {
        if !up {
            self.qdm[port.index()] = None;
            self.ports[port.index()].alert.set(0, self.alpha, clock(node.now()));
        }
    }
}

impl Peaks for Rimm {
    fn peaks(&self) -> Vec<u64> {
        let paper = 4 * self.ports.len() as u64 + (8 << self.hash_bits);
        let idle = u64::from(self.longest_idle) * 1_000;
        vec![self.longest.ps(), idle, self.most_detours, u64::from(self.most_out), self.state_bytes(), paper]
    }
}

impl Watches for Rimm {
    fn on_egress(&mut self, node: &mut dyn Node, packet: PacketId, port: PortNo, fx: &mut Effects) {
        let depth = u32::try_from(self.depth(&node.view(port))).unwrap_or(u32::MAX);
        let now = clock(node.now());
        let Some(crossing) = self.ports[port.index()].detector.on_egress(depth, self.alpha, now, self.repeat) else { return };
        let Some(way) = self.way_of_message(port) else {
            self.counts.messages_unsent += u64::from(self.has_detours(port));
            return;
        };
        self.counts.messages_sent += 1;
        let [a, b, c, d] = depth.to_be_bytes();
        let ([p, q], [r, s]) = (port.0.to_be_bytes(), crossing.to_be_bytes());
        let shim = self.shim(MESSAGE, &[p, q, r, s, a, b, c, d]);
        fx.push(Effect::Clone { packet, port: way, ttl: self.ttl, class: self.message_class, shim });
    }
}

impl Clones for Rimm {
    fn on_lost(&mut self, shim: &Shim, _reason: DropReason) {
        self.counts.messages_lost += u64::from(matches!(shim.ether_type, MESSAGE | ANSWER));
    }
}

#[cfg(test)]
mod tests;
