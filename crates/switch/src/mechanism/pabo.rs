//! PABO: packets for a queue that grows go back to the switch upstream, the more likely the longer the queue. Source: PABO.

use super::{
    names_it, Arrival, Claims, Context, Dropped, Effects, Headers, Hooks, Mechanism, Node, Peaks, PortNo, PortSite, Profile,
    Site, Strays, Verdict,
};
use crate::Unit;
use fanin_packet::{Envelope, Kind, Shim};
use fanin_params::{choice, counters, params, CounterDef, Cx, Param};
use fanin_units::{Amount, Bytes, Stream};

params! {
    /// Linear growth: probability proportional to x.
    pub struct Linear {}
}
params! {
    /// Exponential growth: (e^(λx) − 1) / (e^λ − 1), small for most x, then steep.
    pub struct Exponential {
        /// λ, the steepness of the growth. Deviation: the paper's value is not known.
        pub lambda: f64 = 4.0, in 0.01..=50.0;
    }
}
params! {
    /// Saturating growth, as in the authors' simulation: (1 − e^(−λx/(n+1))) / (1 − e^(−λ/(n+1))) after n bounces; steep at
    /// first, less so with each bounce. Source: PABO-code.
    pub struct Saturating {
        /// λ, the steepness of the growth. Source: PABO-code (A · (1 − Threshold) = 50 · 0.2).
        pub lambda: f64 = 10.0, in 0.01..=50.0;
    }
}
choice! {
    /// Growth of the bounce probability with x, the queue's position between `lower` (0) and `upper` (1).
    pub enum Growth {
        /// Saturating growth, as in the authors' simulation: (1 − e^(−λx/(n+1))) / (1 − e^(−λ/(n+1))) after n bounces; steep
        /// at first, less so with each bounce. Source: PABO-code.
        "saturating" => Saturating(Saturating),
        /// Exponential growth: (e^(λx) − 1) / (e^λ − 1), small for most x, then steep.
        "exponential" => Exponential(Exponential),
        /// Linear growth.
        "linear" => Linear(Linear),
    }
}

params! {
    /// PABO: after n bounces a packet for a queue of q is bounced to the switch upstream with probability g(x)^(n + 1), x =
    /// (q − lower) / (upper − lower), unless `growth` has its own formula; with probability 1 if there is no room. Source:
    /// PABO §III.
    pub struct PaboParams {
        /// Queue up to which no packet is bounced.
        pub lower: Amount = Amount::Packets(50);
        /// Queue from which every packet is bounced.
        pub upper: Amount = Amount::Packets(100);
        /// g: growth of the probability between the two.
        pub growth: Growth = Growth::Exponential(Exponential { lambda: 4.0 });
        /// Switches without PABO, by name, `*` stands for anything: they forward bounced packets as usual.
        pub unaware: Vec<String> = Vec::new();
    }
}

counters! {
    /// Packets to be bounced by PABO. At any time such packets = bounced + at_edge + no_room + out_of_hops.
    pub struct PaboCounts in "pabo" {
        /// Bounces: packets sent back to the switch upstream.
        bounced,
        /// Bounces of packets that had been bounced before.
        again,
        /// Packets not bounced because a host is upstream: they went to their own port.
        at_edge,
        /// Packets not bounced because the port upstream had no room, or led to a switch without PABO: they went to their own
        /// port.
        no_room: failure,
        /// Packets not bounced because they had fewer than eight hops left: they went to their own port.
        out_of_hops: failure,
        /// Packets dropped after they had been bounced.
        dropped: failure,
    }
}

/// EtherType of the header of bounced packets: number of bounces (1 B, at most 255) and a byte that is zero. Not registered.
const BOUNCED: u16 = 0xA8F5;
/// Bytes of the header of bounced packets.
const HEADER_BYTES: u16 = 4;
/// Hops that a packet must have left: two for the bounce, and the longest way of a folded Clos network from there.
const LEAST_HOPS: u8 = 8;
/// Separates the draws of PABO from those of other mechanisms.
const SALT: u32 = 4;

fn header(bounces: u8) -> Shim {
    Shim::new(BOUNCED, &[bounces, 0], 0)
}

/// Number of bounces of a packet.
fn bounces(p: &Arrival<'_>) -> u8 {
    match &*p.shim {
        Some(shim) if shim.ether_type == BOUNCED => shim.body()[0],
        _ => 0,
    }
}

/// The probability that a packet is bounced which finds `queue` and was bounced `before`.
fn probability(params: &PaboParams, queue: u64, before: u8) -> f64 {
    let (lower, upper) = (params.lower.count(), params.upper.count());
    if queue <= lower {
        return 0.0;
    }
    if queue >= upper {
        return 1.0;
    }
    let x = (queue - lower) as f64 / (upper - lower) as f64;
    let times = f64::from(before) + 1.0;
    let g = match &params.growth {
        Growth::Saturating(s) => return libm::expm1(-s.lambda * x / times) / libm::expm1(-s.lambda / times),
        Growth::Linear(_) => x,
        Growth::Exponential(e) => libm::expm1(e.lambda * x) / libm::expm1(e.lambda),
    };
    libm::pow(g, times)
}

/// PABO at one switch.
#[derive(Debug)]
pub struct Pabo {
    params: PaboParams,
    ports: Vec<Port>,
    counts: PaboCounts,
    most: u64,
}

#[derive(Debug)]
struct Port {
    to_host: bool,
    /// True if the switch at the far end runs PABO.
    aware: bool,
    draws: Stream,
}

/// Destination of a bounce.
enum Upstream {
    Port(PortNo),
    Host,
    Nowhere,
}

impl Pabo {
    /// Port to the switch that a packet came from; for a packet that was bounced to this switch, the one on the way to its
    /// source.
    ///
    /// Source: PABO §III (a bounced packet goes on upstream while queues are long there too). Deviation: a switch knows the way to the
    /// source from its routes; with several shortest paths that need not be the one that the packet took.
    fn upstream(&self, node: &mut dyn Node, p: &Arrival<'_>, from: PortNo, to: PortNo) -> Upstream {
        let mut port = from;
        if from == to {
            let e = &*p.envelope;
            let back = Envelope { src: e.dst, dst: e.src, hash: e.reverse_hash, reverse_hash: e.hash, ..*e };
            match node.route(&back).filter(|port| *port != to) {
                Some(way) => port = way,
                None => return Upstream::Nowhere,
            }
        }
        match &self.ports[port.index()] {
            Port { to_host: true, .. } => Upstream::Host,
            Port { aware: false, .. } => Upstream::Nowhere,
            _ => Upstream::Port(port),
        }
    }

    /// Port to which a packet is bounced, if it is to be bounced at all.
    fn decide(&mut self, node: &mut dyn Node, p: &Arrival<'_>, to: PortNo, before: u8) -> bool {
        if !node.has_room(to, p.envelope) {
            return true;
        }
        let queue = node.view(to).queue(Unit::of(self.params.lower));
        let share = probability(&self.params, queue, before);
        share > 0.0 && self.ports[to.index()].draws.unit() < share
    }
}

impl Mechanism for Pabo {
    type Params = PaboParams;
    type Counts = PaboCounts;

    const PROFILE: Profile = Profile {
        headers: Some(Headers { bytes: HEADER_BYTES, of_host: None }),
        peaks: &[CounterDef::step("most_bounces", "Bounces of one packet, at most 255 are counted.")],
        ..Profile::PLAIN
    };

    fn claims(params: &PaboParams) -> Claims {
        Claims { amounts: vec![params.lower, params.upper], strays: Strays::Queued, ..Claims::default() }
    }

    /// No memory: bounces are counted in the packet.
    fn memory(_params: &PaboParams, _site: &Site) -> Option<Bytes> {
        Some(Bytes(0))
    }

    fn runs_at(params: &PaboParams, switch: &str) -> bool {
        !names_it(&params.unaware, switch)
    }

    fn new(params: &PaboParams, site: &Site) -> Option<Self> {
        let port = |port: &PortSite| Port {
            to_host: port.to_host,
            aware: port.peer_runs.contains(&"pabo"),
            draws: site.stream(SALT, port),
        };
        Self::runs_at(params, &site.name).then(|| Pabo {
            params: params.clone(),
            ports: site.ports.iter().map(port).collect(),
            counts: PaboCounts::default(),
            most: 0,
        })
    }

    fn check(params: &PaboParams, context: &Context<'_>, cx: &mut Cx) {
        let upper = params.upper.to_value().into();
        if Unit::of(params.lower) != Unit::of(params.upper) || params.lower.count() >= params.upper.count() {
            let accepted = format!("more than lower, {}, in the same unit", params.lower);
            cx.key("upper", |cx| cx.error(Some(&upper), "is no queue above lower", Some(accepted)).severity);
        }
        context.check_neighbours(|switch| Self::runs_at(params, switch), Some("pabo"), cx);
        context.check_hops(LEAST_HOPS, cx);
        cx.key("unaware", |cx| context.check_unaware(&params.unaware, false, ("nothing is bounced", "no pabo"), cx));
    }

    fn hooks(&self) -> Hooks {
        Hooks::ROUTE.with(Hooks::OFFER).with(Hooks::DROP)
    }

    fn counts(&self) -> PaboCounts {
        self.counts
    }

    fn on_route(&mut self, node: &mut dyn Node, p: &mut Arrival<'_>, to: PortNo, _fx: &mut Effects) -> Verdict {
        let Some(from) = p.from.filter(|_| p.envelope.kind != Kind::Control) else { return Verdict::Pass };
        let before = bounces(p);
        if !self.decide(node, p, to, before) {
            return Verdict::Pass;
        }
        let counted = header(before.saturating_add(1));
        let port = match self.upstream(node, p, from, to) {
            Upstream::Port(port) => port,
            Upstream::Host => {
                self.counts.at_edge += 1;
                return Verdict::Pass;
            }
            Upstream::Nowhere => {
                self.counts.no_room += 1;
                return Verdict::Pass;
            }
        };
        if p.envelope.ttl < LEAST_HOPS {
            self.counts.out_of_hops += 1;
            return Verdict::Pass;
        }
        let mut longer = *p.envelope;
        longer.set_shim(Some(&counted));
        if !node.has_room(port, &longer) {
            self.counts.no_room += 1;
            return Verdict::Pass;
        }
        self.counts.bounced += 1;
        self.counts.again += u64::from(before > 0);
        self.most = self.most.max(u64::from(before) + 1);
        p.set_shim(Some(counted));
        Verdict::Detour(port)
    }

    /// Hosts, and switches without PABO, do not know the header.
    fn on_offer(&mut self, _node: &mut dyn Node, p: &mut Arrival<'_>, port: PortNo, _fx: &mut Effects) -> Verdict {
        if !self.ports[port.index()].aware && bounces(p) > 0 {
            p.set_shim(None);
        }
        Verdict::Pass
    }

    fn on_drop(&mut self, _: &mut dyn Node, dropped: &Dropped<'_>, _: &mut Effects) {
        self.counts.dropped += u64::from(dropped.envelope.kind != Kind::Control && dropped.envelope.extra.shim() > 0);
    }
}

impl Peaks for Pabo {
    fn peaks(&self) -> Vec<u64> {
        vec![self.most]
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{bench, site, Bench};
    use super::*;
    use crate::DropReason;
    use fanin_packet::PacketId;
    use fanin_params::defaults;
    use fanin_units::HostId;

    fn params(growth: Growth) -> PaboParams {
        PaboParams { lower: Amount::Packets(20), upper: Amount::Packets(40), growth, unaware: Vec::new() }
    }

    /// Ports 0 and 2 lead to hosts, 1 and 3 to switches; hosts are reached by port `number mod 4`.
    fn pabo() -> (Pabo, Bench) {
        (Pabo::new(&params(Growth::Linear(Linear {})), &site(&["h0", "s1", "h1", "s2"])).unwrap(), bench(4))
    }

    fn packet(src: u32, dst: u32) -> Envelope {
        Envelope { src: HostId(src), dst: HostId(dst), frame: 1000, ..Envelope::default() }
    }

    fn route(pabo: &mut Pabo, node: &mut Bench, e: &mut Envelope, shim: &mut Option<Shim>, from: u16) -> Verdict {
        let to = node.route(e).unwrap();
        let mut p = Arrival { id: PacketId(1), envelope: e, from: Some(PortNo(from)), shim };
        pabo.on_route(node, &mut p, to, &mut Effects::default())
    }

    #[test]
    fn the_probability_is_that_of_the_formula() {
        let linear = params(Growth::Linear(Linear {}));
        let steep = params(Growth::Exponential(Exponential { lambda: 4.0 }));
        for (queue, before, in_proportion, exponential) in [
            (0, 0, 0.0, 0.0),
            (20, 3, 0.0, 0.0),
            (25, 0, 0.25, 0.032_058), // (e − 1) / (e⁴ − 1)
            (30, 0, 0.5, 0.119_203),
            (30, 2, 0.125, 0.001_694),
            (40, 9, 1.0, 1.0),
            (99, 0, 1.0, 1.0),
        ] {
            assert!((probability(&linear, queue, before) - in_proportion).abs() < 1e-12, "{queue} {before}");
            let p = probability(&steep, queue, before);
            assert!((p - exponential).abs() < 1e-6, "{queue} {before}: {p}");
        }
    }

    /// By hand: λ = 10 shared among n + 1 bounces.
    #[test]
    fn the_authors_growth_is_steep_at_first_and_less_so_after_bounces() {
        let saturating = params(Growth::Saturating(defaults()));
        for (queue, before, expected) in [
            (20, 0, 0.0),
            (22, 0, 0.632_149), // (1 − e⁻¹) / (1 − e⁻¹⁰)
            (30, 0, 0.993_307), // (1 − e⁻⁵) / (1 − e⁻¹⁰)
            (30, 1, 0.924_142), // (1 − e⁻²·⁵) / (1 − e⁻⁵)
            (30, 9, 0.622_459), // (1 − e⁻⁰·⁵) / (1 − e⁻¹)
            (39, 4, 0.983_539), // (1 − e⁻¹·⁹) / (1 − e⁻²)
            (40, 4, 1.0),
        ] {
            let p = probability(&saturating, queue, before);
            assert!((p - expected).abs() < 1e-6, "{queue} {before}: {p}");
        }
    }

    #[test]
    fn packets_go_back_where_they_came_from_as_often_as_it_says() {
        let (mut pabo, mut node) = pabo();
        let mut bounced = 0;
        node.queue = 30;
        for _ in 0..4_000 {
            let (mut e, mut shim) = (packet(1, 0), None);
            match route(&mut pabo, &mut node, &mut e, &mut shim, 1) {
                Verdict::Detour(PortNo(1)) => bounced += u32::from(shim == Some(header(1)) && e.frame == 1004),
                Verdict::Pass => assert_eq!((shim, e.frame), (None, 1000)),
                other => panic!("{other:?}"),
            }
        }
        assert!((1_900..=2_100).contains(&bounced), "{bounced}"); // 3.2 standard deviations
        assert_eq!((pabo.counts.bounced, pabo.peaks()), (u64::from(bounced), vec![1]));
        node.queue = 20;
        assert_eq!(route(&mut pabo, &mut node, &mut packet(1, 0), &mut None, 1), Verdict::Pass);
        node.full = vec![PortNo(0)];
        assert_eq!(route(&mut pabo, &mut node, &mut packet(1, 0), &mut None, 1), Verdict::Detour(PortNo(1)), "no room");
    }

    /// A packet that is back at the switch upstream goes on towards its source while the queue is long there too, until a host is next.
    #[test]
    fn what_is_back_goes_on_towards_its_source() {
        let (mut pabo, mut node) = pabo();
        node.queue = 40;
        let mut shim = Some(header(1));
        let mut e = packet(3, 1);
        e.set_shim(shim.as_ref());
        assert_eq!(route(&mut pabo, &mut node, &mut e, &mut shim, 1), Verdict::Detour(PortNo(3)));
        assert_eq!((shim, e.frame, pabo.counts.again), (Some(header(2)), 1004, 1));
        assert_eq!(route(&mut pabo, &mut node, &mut packet(2, 1), &mut None, 1), Verdict::Pass);
        assert_eq!(route(&mut pabo, &mut node, &mut packet(2, 1), &mut None, 2), Verdict::Pass);
        assert_eq!((pabo.counts.at_edge, pabo.counts.no_room), (2, 0));
        assert_eq!(route(&mut pabo, &mut node, &mut packet(1, 1), &mut None, 1), Verdict::Pass, "its source is there too");
        node.full = vec![PortNo(3)];
        assert_eq!(route(&mut pabo, &mut node, &mut packet(3, 1), &mut None, 1), Verdict::Pass);
        assert_eq!((pabo.counts.bounced, pabo.counts.no_room), (1, 2));
        let mut last = Envelope { ttl: 7, ..packet(1, 0) };
        assert_eq!(route(&mut pabo, &mut node, &mut last, &mut None, 1), Verdict::Pass);
        assert_eq!(pabo.counts.out_of_hops, 1);
    }

    /// Where nothing can be bounced no random number is drawn: what is bounced later does not depend on it.
    #[test]
    fn a_short_queue_draws_nothing() {
        let bounced = |before: u32| {
            let (mut pabo, mut node) = pabo();
            node.queue = 20;
            (0..before).for_each(|_| assert_eq!(route(&mut pabo, &mut node, &mut packet(1, 0), &mut None, 1), Verdict::Pass));
            node.queue = 30;
            (0..64).map(|_| route(&mut pabo, &mut node, &mut packet(1, 0), &mut None, 1)).collect::<Vec<_>>()
        };
        assert_eq!(bounced(0), bounced(7));
    }

    /// Messages, packets of the switch itself, and what has too few hops are not bounced, nor is anything to a neighbour without PABO.
    #[test]
    fn what_is_never_bounced() {
        let (mut pabo, mut node) = pabo();
        node.queue = 40;
        let mut message = Envelope { kind: Kind::Control, ..packet(1, 0) };
        assert_eq!(route(&mut pabo, &mut node, &mut message, &mut None, 1), Verdict::Pass);
        let mut own = packet(1, 0);
        let mut p = Arrival { id: PacketId(1), envelope: &mut own, from: None, shim: &mut None };
        assert_eq!(pabo.on_route(&mut node, &mut p, PortNo(0), &mut Effects::default()), Verdict::Pass);
        assert_eq!(pabo.counts, PaboCounts::default());
        let mut enough = Envelope { ttl: 8, ..packet(1, 0) };
        assert_eq!(route(&mut pabo, &mut node, &mut enough, &mut None, 1), Verdict::Detour(PortNo(1)));
        pabo.ports[1].aware = false;
        assert_eq!(route(&mut pabo, &mut node, &mut packet(1, 0), &mut None, 1), Verdict::Pass);
        assert_eq!(pabo.counts, PaboCounts { bounced: 1, no_room: 1, ..PaboCounts::default() });
    }

    /// A header counts to 255. Packets that are dropped with one are counted, messages are not.
    #[test]
    fn bounces_are_counted_as_far_as_the_header_goes_and_drops_after_them() {
        let (mut pabo, mut node) = pabo();
        node.queue = 40;
        let (mut e, mut shim) = (packet(1, 0), Some(header(255)));
        e.set_shim(shim.as_ref());
        assert_eq!(route(&mut pabo, &mut node, &mut e, &mut shim, 1), Verdict::Detour(PortNo(1)));
        assert_eq!((shim, pabo.peaks()), (Some(header(255)), vec![256]));
        for (envelope, dropped) in [(packet(1, 0), 0), (Envelope { kind: Kind::Control, ..e }, 0), (e, 1)] {
            let packet = Dropped { packet: PacketId(1), envelope: &envelope, reference: None, reason: DropReason::BUFFER_FULL };
            pabo.on_drop(&mut node, &packet, &mut Effects::default());
            assert_eq!(pabo.counts.dropped, dropped);
        }
    }

    /// A header of another mechanism counts nothing.
    #[test]
    fn headers_of_others_are_no_bounces() {
        let of = |shim| bounces(&Arrival { id: PacketId(1), envelope: &mut packet(1, 0), from: None, shim: &mut { shim } });
        assert_eq!([None, Some(header(9)), Some(Shim::new(0xA8F0, &[9, 0], 0))].map(of), [0, 9, 0]);
    }

    #[test]
    fn hosts_get_no_header() {
        let (mut pabo, mut node) = pabo();
        for (port, frame) in [(0, 1000), (1, 1004)] {
            let (mut e, mut shim) = (packet(1, 0), Some(header(3)));
            e.set_shim(shim.as_ref());
            let mut p = Arrival { id: PacketId(1), envelope: &mut e, from: None, shim: &mut shim };
            assert_eq!(pabo.on_offer(&mut node, &mut p, PortNo(port), &mut Effects::default()), Verdict::Pass);
            assert_eq!(e.frame, frame);
        }
    }
}
