//! Vertigo: where a port has no room, the packet whose flow has most left to send takes another port. Source: Vertigo.
//!
//! Hosts write into each frame how much its flow has left and how often the packet was sent before; queues are served by that.

use super::{
    names_it, Arrival, Claims, Context, Displaces, Dropped, Effects, Headers, Hooks, Mechanism, Node, PortNo, PortSite, Profile,
    Ranks, Refused, Sent, Site, Strays, Verdict,
};
use crate::{DropReason, Unit};
use fanin_packet::{Envelope, Kind, Shim};
use fanin_params::{counters, names, params, Cx, Ground, Param, Setting};
use fanin_units::{Stream, TrafficClass};
use std::collections::BTreeMap;

names! {
    /// Order in which the packets of a class leave a port.
    pub enum ServeBy {
        /// Least left first: by the flow's remaining bytes, boosted; ties by arrival. Later packets of a flow have less left
        /// than earlier ones.
        "least_left" => LeastLeft,
        /// Order of arrival: remaining bytes decide only which packet is deflected.
        "arrival" => Arrival,
    }
}

params! {
    /// Vertigo: at a port without room, the packet whose flow has most left to send, queued or arriving, is deflected to
    /// another port. Source: Vertigo.
    pub struct VertigoParams {
        /// Number of random ports to other switches, of which the shortest queue takes the deflected packet; 0: it is
        /// dropped. Source: Vertigo, its simulator (2).
        pub choices: u8 = 2, in 0..=64;
        /// Boost: each retransmission of a packet divides its remaining bytes by this; 1: none. Source: Vertigo, its
        /// simulator (2; 4 and 8 were tried).
        pub boost: u32 = 2, in 1..=256;
        /// Order in which the packets of a class leave.
        pub serve: ServeBy = ServeBy::LeastLeft;
        /// Switches without Vertigo, by name, `*` stands for anything: they forward deflected packets as usual.
        pub unaware: Vec<String> = Vec::new();
    }
}

counters! {
    /// Packets without room at switches with Vertigo. At any time dropped packets of `buffer_full` and `displaced` = dropped,
    /// as long as no other mechanism handles them.
    pub struct VertigoCounts in "vertigo" {
        /// Deflections: packets sent to another switch instead of being dropped. A packet that is deflected again counts again.
        deflected,
        /// Packets removed from a queue to make room for packets with less left.
        displaced,
        /// Deflected arriving packets that returned to the switch from which they had come.
        back,
        /// Deflected packets that found no room and displaced packets with more left.
        forced,
        /// Packets with most left that found no room: dropped, unless another mechanism handles them.
        dropped: failure,
        /// Packets whose time to live expired at a switch with Vertigo.
        out_of_hops: failure,
    }
}

impl DropReason {
    /// Reason of drops that make room for a packet whose flow has less left to send.
    pub const DISPLACED: DropReason = DropReason("displaced");
}

/// EtherType of the header of hosts: bytes left (4 B), earlier transmissions of the packet (1 B, at most 255), and a byte that is
/// zero. Not registered.
const LEFT: u16 = 0xA8F8;
/// Bytes of the header of hosts. Source: Vertigo, its simulator (an option of IP of 8 bytes).
const HEADER_BYTES: u16 = 8;
/// Separates the draws of Vertigo from those of other mechanisms.
const SALT: u32 = 5;

fn header(sent: &Sent) -> Shim {
    let [a, b, c, d] = u32::try_from(sent.left).unwrap_or(u32::MAX).to_be_bytes();
    Shim::new(LEFT, &[a, b, c, d, u8::try_from(sent.again).unwrap_or(u8::MAX), 0], 0)
}

/// Content of a header: bytes left, and how often the packet was sent before.
fn read(shim: &Shim) -> Option<(u32, u8)> {
    match (shim.ether_type, shim.body()) {
        (LEFT, [a, b, c, d, again, _]) => Some((u32::from_be_bytes([*a, *b, *c, *d]), *again)),
        _ => None,
    }
}

/// Vertigo at one switch.
#[derive(Debug)]
pub struct Vertigo {
    choices: usize,
    boost: u32,
    serve: ServeBy,
    /// Ports that lead to switches.
    ports: Vec<PortNo>,
    /// Random streams by port, for the packets that it refuses.
    draws: Vec<Stream>,
    counts: VertigoCounts,
    reasons: BTreeMap<&'static str, u64>,
}

impl Vertigo {
    /// Port with the shortest queue among those that are drawn; of several, the one that was drawn first. Source: Vertigo, its
    /// simulator (ports to switches, the one that the packet came by among them). Deviation: the port that refuses is none of
    /// them.
    fn draw(&mut self, node: &mut dyn Node, refuses: PortNo) -> Option<PortNo> {
        let mut others: Vec<PortNo> = self.ports.iter().copied().filter(|port| *port != refuses).collect();
        let draws = &mut self.draws[refuses.index()];
        let drawn = (0..self.choices.min(others.len())).map(|_| others.remove(draws.below(others.len() as u64) as usize));
        drawn.collect::<Vec<_>>().into_iter().min_by_key(|port| node.view(*port).queue(Unit::Bytes))
    }

    /// Sends a packet that `port` has no room for to another one.
    fn deflect(&mut self, node: &mut dyn Node, port: PortNo, from: Option<PortNo>, reason: DropReason) -> Option<Verdict> {
        let Some(to) = self.draw(node, port) else {
            self.counts.dropped += 1;
            return None;
        };
        self.counts.deflected += 1;
        self.counts.back += u64::from(from == Some(to));
        *self.reasons.entry(reason.name()).or_default() += 1;
        Some(Verdict::Detour(to))
    }

    /// Makes room for a packet at a port by packets with more left than `rank`: those with most left go first, of equal ones the
    /// last that came; false where they are not enough. Source: Vertigo, its simulator.
    fn make_room(&self, node: &mut dyn Node, port: PortNo, e: &Envelope, rank: u32, fx: &mut Effects) -> bool {
        let mut frames = Vec::new();
        let mut places = Vec::new();
        for (place, frame) in self.above(node, port, e.class, rank) {
            frames.push(frame);
            places.push(place);
            if node.has_room_without(port, e, &frames) {
                places.into_iter().for_each(|place| fx.displace(place));
                return true;
            }
        }
        false
    }

    /// Places and frames of waiting packets with more left than `rank`, in the order in which they make room.
    fn above(&self, node: &mut dyn Node, port: PortNo, class: TrafficClass, rank: u32) -> Vec<(usize, u16)> {
        let mut above = Vec::new();
        for place in (0..node.waiting(port, class)).rev() {
            let Some((e, shim)) = node.waiting_at(port, class, place) else { break };
            let other = self.rank(&e, shim.as_ref());
            if other > rank {
                above.push((other, place, e.frame));
            } else if self.serve == ServeBy::LeastLeft {
                break; // the queue is in this order
            }
        }
        above.sort_by_key(|(rank, place, _)| std::cmp::Reverse((*rank, *place)));
        above.into_iter().map(|(_, place, frame)| (place, frame)).collect()
    }
}

/// Forwarding by the power of two choices, hops for many deflections, and hosts that put packets in order. Source: Vertigo, its
/// simulator.
fn authors(_at: &Ground) -> Vec<Setting> {
    vec![
        ("switch.routing", "{ kind = \"drill\", d = 2, m = 0 }".to_string()),
        ("switch.ttl", "250".to_string()),
        ("host.reorder", "{ timeout = \"360us\" }".to_string()),
    ]
}

impl Mechanism for Vertigo {
    type Params = VertigoParams;
    type Counts = VertigoCounts;

    const PROFILE: Profile =
        Profile { headers: Some(Headers { bytes: HEADER_BYTES, of_host: Some(header) }), authors, ..Profile::PLAIN };

    fn claims(params: &VertigoParams) -> Claims {
        let strays = if params.choices > 0 { Strays::Refused } else { Strays::None };
        Claims { strays, ..Claims::default() }
    }

    fn runs_at(params: &VertigoParams, switch: &str) -> bool {
        !names_it(&params.unaware, switch)
    }

    fn new(params: &VertigoParams, site: &Site) -> Option<Self> {
        let to_switch = |(number, port): (u16, &PortSite)| (!port.to_host).then_some(PortNo(number));
        Self::runs_at(params, &site.name).then(|| Vertigo {
            choices: usize::from(params.choices),
            boost: params.boost,
            serve: params.serve,
            ports: (0..).zip(&site.ports).filter_map(to_switch).collect(),
            draws: site.ports.iter().map(|port| site.stream(SALT, port)).collect(),
            counts: VertigoCounts::default(),
            reasons: BTreeMap::new(),
        })
    }

    fn check(params: &VertigoParams, context: &Context<'_>, cx: &mut Cx) {
        if context.is_unlimited() {
            cx.warn(None, "has nothing to deflect: with an unlimited buffer nothing is refused for want of room", None);
        }
        if params.choices > 0 {
            context.check_neighbours(|switch| Self::runs_at(params, switch), None, cx);
        }
        if params.serve == ServeBy::LeastLeft && !context.hosts.puts_in_order {
            let value = params.serve.to_value().into();
            cx.key("serve", |cx| {
                let message = "lets packets of a flow overtake each other, and hosts do not put them in order";
                let problem = cx.warn(Some(&value), message, None);
                problem.suggestion = Some("host.reorder = { timeout = \"360us\" }".to_string());
                problem.severity
            });
        }
        cx.key("unaware", |cx| context.check_unaware(&params.unaware, false, ("nothing is deflected", "no vertigo"), cx));
    }

    fn hooks(&self) -> Hooks {
        let hooks = Hooks::REFUSAL.with(Hooks::DETOURED).with(Hooks::DROP);
        match self.serve {
            ServeBy::LeastLeft => hooks.with(Hooks::RANKS),
            ServeBy::Arrival => hooks,
        }
    }

    fn counts(&self) -> VertigoCounts {
        self.counts
    }

    fn by_reason(&self) -> Vec<(&'static str, u64)> {
        self.reasons.iter().map(|(reason, n)| (*reason, *n)).collect()
    }

    /// Packets that marking drops are dropped: that tells the sender.
    fn on_refusal(&mut self, node: &mut dyn Node, refused: &mut Refused<'_>, fx: &mut Effects) -> Verdict {
        let e = *refused.packet.envelope;
        if !refused.room || e.kind == Kind::Control {
            return Verdict::Pass;
        }
        let rank = self.rank(&e, refused.packet.shim.as_ref());
        if self.make_room(node, refused.port, &e, rank, fx) {
            self.counts.forced += u64::from(refused.detoured);
            return Verdict::Displace;
        }
        if refused.detoured {
            self.counts.dropped += 1;
            return Verdict::Pass;
        }
        self.deflect(node, refused.port, refused.packet.from, refused.reason).unwrap_or(Verdict::Pass)
    }

    fn on_drop(&mut self, _: &mut dyn Node, dropped: &Dropped<'_>, _: &mut Effects) {
        self.counts.out_of_hops += u64::from(dropped.reason == DropReason::TTL);
    }
}

impl Ranks for Vertigo {
    /// Bytes left, divided by `boost` for each time that the packet was sent before. What has no header, and what has no payload, is first.
    fn rank(&self, _envelope: &Envelope, shim: Option<&Shim>) -> u32 {
        let (left, again) = shim.and_then(read).unwrap_or_default();
        self.boost.checked_pow(u32::from(again)).map_or(0, |boost| left / boost)
    }
}

impl Displaces for Vertigo {
    /// Deflects a displaced packet, or drops it if it made room for a packet that had been deflected.
    fn on_displaced(
        &mut self,
        node: &mut dyn Node,
        _p: &mut Arrival<'_>,
        port: PortNo,
        for_detoured: bool,
        _fx: &mut Effects,
    ) -> Verdict {
        self.counts.displaced += 1;
        if for_detoured {
            self.counts.dropped += 1;
            return Verdict::Drop(DropReason::DISPLACED);
        }
        self.deflect(node, port, None, DropReason::DISPLACED).unwrap_or(Verdict::Drop(DropReason::DISPLACED))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{bench, site, Bench};
    use super::*;
    use fanin_packet::PacketId;

    fn vertigo(choices: u8, boost: u32, serve: ServeBy) -> Vertigo {
        let params = VertigoParams { choices, boost, serve, unaware: Vec::new() };
        Vertigo::new(&params, &site(&["h0", "s1", "h1", "s2", "s3"])).unwrap()
    }

    /// A packet of so many frame bytes whose flow has `left`, sent `again` before.
    fn packet(frame: u16, left: u64, again: u32) -> (Envelope, Option<Shim>) {
        let shim = Some(header(&Sent { left, again }));
        let mut e = Envelope { frame: frame - HEADER_BYTES, ..Envelope::default() };
        e.set_shim(shim.as_ref());
        (e, shim)
    }

    /// What becomes of a packet that came by port 1 and finds no room at `port`, and which places make room.
    fn refuse(
        v: &mut Vertigo,
        node: &mut Bench,
        port: u16,
        packet: (Envelope, Option<Shim>),
        detoured: bool,
    ) -> (Verdict, Vec<usize>) {
        let ((mut e, mut shim), mut fx) = (packet, Effects::default());
        let packet = Arrival { id: PacketId(1), envelope: &mut e, from: Some(PortNo(1)), shim: &mut shim };
        let (port, reason) = (PortNo(port), DropReason::BUFFER_FULL);
        let mut refused = Refused { packet, port, view: node.view(port), reason, room: true, detoured };
        let verdict = v.on_refusal(node, &mut refused, &mut fx);
        (verdict, fx.displaced)
    }

    #[test]
    fn rank_is_what_is_left_less_with_each_retransmission() {
        for (boost, again, rank) in [(2, 0, 1_000), (2, 1, 500), (2, 3, 125), (4, 2, 62), (1, 200, 1_000), (2, 40, 0)] {
            let (e, shim) = packet(1526, 1_000, again);
            assert_eq!(vertigo(2, boost, ServeBy::LeastLeft).rank(&e, shim.as_ref()), rank, "{boost} {again}");
        }
        let v = vertigo(2, 2, ServeBy::LeastLeft);
        assert_eq!(v.rank(&Envelope::default(), None), 0, "acknowledgments of others, messages");
        assert_eq!(v.rank(&Envelope::default(), Some(&Shim::new(0xA8F0, &[9; 6], 0))), 0);
        let (e, shim) = packet(1526, u64::MAX, 0);
        assert_eq!((v.rank(&e, shim.as_ref()), e.extra.shim()), (u32::MAX, HEADER_BYTES));
    }

    #[test]
    fn the_packet_with_most_left_makes_room_whether_it_waits_or_arrives() {
        let queue = |lefts: &[u64]| lefts.iter().map(|left| packet(1526, *left, 0)).collect::<Vec<_>>();
        let (mut v, mut node) = (vertigo(2, 2, ServeBy::LeastLeft), bench(5));
        node.waiting = queue(&[100, 700, 900]);
        assert_eq!(refuse(&mut v, &mut node, 0, packet(1526, 500, 0), false), (Verdict::Displace, vec![2]));
        assert_eq!(
            refuse(&mut v, &mut node, 0, packet(1526, 1_000, 1), false).0,
            Verdict::Displace,
            "a retransmission is boosted"
        );
        let (verdict, places) = refuse(&mut v, &mut node, 0, packet(1526, 900, 0), false);
        assert!(matches!(verdict, Verdict::Detour(PortNo(1 | 3 | 4))) && places.is_empty(), "{verdict:?}");
        // Whatever the order of the queue.
        let mut v = vertigo(2, 2, ServeBy::Arrival);
        node.waiting = queue(&[100, 900, 700, 900, 100]);
        assert_eq!(refuse(&mut v, &mut node, 0, packet(1526, 500, 0), false), (Verdict::Displace, vec![3]));
    }

    #[test]
    fn as_many_make_room_as_it_takes_and_none_where_they_do_not_suffice() {
        let (mut v, mut node) = (vertigo(2, 2, ServeBy::LeastLeft), bench(5));
        node.waiting = vec![packet(1526, 10, 0), packet(800, 700, 0), packet(800, 900, 0)];
        assert_eq!(refuse(&mut v, &mut node, 0, packet(1526, 500, 0), false), (Verdict::Displace, vec![2, 1]));
        node.waiting = vec![packet(1526, 10, 0), packet(800, 900, 0)];
        assert!(
            matches!(refuse(&mut v, &mut node, 0, packet(1526, 500, 0), false), (Verdict::Detour(_), places) if places.is_empty())
        );
    }

    /// Two of the ports to switches are drawn, each as often, and the shorter queue of both is taken; the one that refuses is not drawn.
    #[test]
    fn the_shorter_of_two_queues_is_taken() {
        let (mut v, mut node) = (vertigo(2, 2, ServeBy::LeastLeft), bench(5));
        node.queues = vec![(PortNo(1), 5), (PortNo(3), 9), (PortNo(4), 7)];
        let mut taken = [0; 5];
        for _ in 0..3_000 {
            match refuse(&mut v, &mut node, 0, packet(1526, 1, 0), false).0 {
                Verdict::Detour(port) => taken[port.index()] += 1,
                other => panic!("{other:?}"),
            }
        }
        // Of the pairs (1, 3), (1, 4), (3, 4).
        assert!((1_900..2_100).contains(&taken[1]) && taken[3] == 0 && taken[1] + taken[4] == 3_000, "{taken:?}");
        assert_eq!((v.counts.deflected, v.counts.back), (3_000, taken[1]));
        assert_eq!(v.by_reason(), [("buffer_full", 3_000)]);
        assert!((0..100).all(|_| refuse(&mut v, &mut node, 1, packet(1526, 1, 0), false).0 != Verdict::Detour(PortNo(1))));
    }

    #[test]
    fn a_packet_is_deflected_once_at_a_switch() {
        let (mut v, mut node) = (vertigo(2, 2, ServeBy::LeastLeft), bench(5));
        node.waiting = vec![packet(1526, 600, 0)];
        assert_eq!(refuse(&mut v, &mut node, 3, packet(1526, 500, 0), true), (Verdict::Displace, vec![0]));
        assert_eq!(refuse(&mut v, &mut node, 3, packet(1526, 700, 0), true), (Verdict::Pass, vec![]));
        let (mut e, mut shim) = packet(1526, 600, 0);
        let mut displaced = |v: &mut Vertigo, for_detoured| {
            let mut p = Arrival { id: PacketId(1), envelope: &mut e, from: None, shim: &mut shim };
            v.on_displaced(&mut node, &mut p, PortNo(3), for_detoured, &mut Effects::default())
        };
        assert_eq!(displaced(&mut v, true), Verdict::Drop(DropReason::DISPLACED));
        assert!(matches!(displaced(&mut v, false), Verdict::Detour(PortNo(1 | 4))));
        let c = v.counts;
        assert_eq!((c.forced, c.dropped, c.displaced, c.deflected), (1, 2, 2, 1));
        // Without choices, and with no other switch, it is dropped.
        let mut v = vertigo(0, 2, ServeBy::LeastLeft);
        assert_eq!(displaced(&mut v, false), Verdict::Drop(DropReason::DISPLACED));
        assert_eq!((v.counts.dropped, v.counts.deflected), (1, 0));
    }

    /// Ranks are asked for where they decide who leaves, and drops of packets without hops are counted.
    #[test]
    fn hooks_and_drops() {
        let mut v = vertigo(2, 2, ServeBy::LeastLeft);
        assert!(v.hooks().any(Hooks::RANKS) && !vertigo(2, 2, ServeBy::Arrival).hooks().any(Hooks::RANKS));
        for (reason, count) in [(DropReason::BUFFER_FULL, 0), (DropReason::TTL, 1)] {
            let dropped = Dropped { packet: PacketId(1), envelope: &Envelope::default(), reference: None, reason };
            v.on_drop(&mut bench(5), &dropped, &mut Effects::default());
            assert_eq!(v.counts, VertigoCounts { out_of_hops: count, ..VertigoCounts::default() });
        }
    }

    #[test]
    fn what_marking_drops_and_messages_are_not_deflected() {
        let (mut v, mut node) = (vertigo(2, 2, ServeBy::LeastLeft), bench(5));
        for (room, kind) in [(false, Kind::Reliable), (true, Kind::Control)] {
            let ((mut e, mut shim), mut fx) = (packet(1526, 5, 0), Effects::default());
            e.kind = kind;
            let packet = Arrival { id: PacketId(1), envelope: &mut e, from: None, shim: &mut shim };
            let (port, reason) = (PortNo(0), DropReason::BUFFER_FULL);
            let mut refused = Refused { packet, port, view: node.view(port), reason, room, detoured: false };
            assert_eq!(v.on_refusal(&mut node, &mut refused, &mut fx), Verdict::Pass);
        }
        assert_eq!(v.counts, VertigoCounts::default());
    }
}
