//! DIBS: a packet that finds no room at its port takes another port, at random. Source: DIBS.

use super::{
    names_it, Claims, Context, Dropped, Effects, Hooks, Mechanism, Node, PortNo, PortSite, Profile, Refused, Site, Strays,
    Verdict,
};
use crate::DropReason;
use fanin_packet::Kind;
use fanin_params::{counters, params, Cx, Ground, Setting};
use fanin_units::{Bytes, Stream};
use std::collections::BTreeMap;

params! {
    /// DIBS: a packet that finds no room is detoured to a random other port that leads to a switch. Source: DIBS §3.
    pub struct DibsParams {
        /// Switches without DIBS, by name, `*` stands for anything: they forward detoured packets as usual.
        pub unaware: Vec<String> = Vec::new();
    }
}

counters! {
    /// Detours by DIBS of packets that found no room. At any time packets without room = detoured + no_room.
    pub struct DibsCounts in "dibs" {
        /// Detours: packets sent to another switch instead of being dropped. A packet that is detoured again counts again.
        detoured,
        /// Detoured packets that returned to the switch from which they had come.
        back,
        /// Packets that found no room at any port to a switch: dropped, unless another mechanism handles them.
        no_room: failure,
        /// Packets whose time to live expired at a switch with DIBS.
        out_of_hops: failure,
    }
}

/// Separates the draws of DIBS from those of other mechanisms.
const SALT: u32 = 3;

/// DIBS at one switch.
#[derive(Debug)]
pub struct Dibs {
    /// Ports that lead to switches.
    ports: Vec<PortNo>,
    /// Random streams by port, for the packets that it refuses.
    draws: Vec<Stream>,
    counts: DibsCounts,
    reasons: BTreeMap<&'static str, u64>,
}

/// Hops for many detours, and no fast retransmit. Source: Vertigo (its simulations of DIBS turn fast retransmit off and send with 250;
/// 255 is the largest there is).
fn authors(_at: &Ground) -> Vec<Setting> {
    vec![
        ("switch.ttl", "255".to_string()),
        ("transport.loss_detection", "\"rfc6675\"".to_string()),
        ("transport.dup_thresh", "65535".to_string()),
    ]
}

impl Mechanism for Dibs {
    type Params = DibsParams;
    type Counts = DibsCounts;

    const PROFILE: Profile = Profile { authors, ..Profile::PLAIN };

    fn claims(_params: &DibsParams) -> Claims {
        Claims { strays: Strays::Refused, ..Claims::default() }
    }

    /// No memory: nothing is kept between packets.
    fn memory(_params: &DibsParams, _site: &Site) -> Option<Bytes> {
        Some(Bytes(0))
    }

    fn runs_at(params: &DibsParams, switch: &str) -> bool {
        !names_it(&params.unaware, switch)
    }

    fn new(params: &DibsParams, site: &Site) -> Option<Self> {
        let to_switch = |(number, port): (u16, &PortSite)| (!port.to_host).then_some(PortNo(number));
        Self::runs_at(params, &site.name).then(|| Dibs {
            ports: (0..).zip(&site.ports).filter_map(to_switch).collect(),
            draws: site.ports.iter().map(|port| site.stream(SALT, port)).collect(),
            counts: DibsCounts::default(),
            reasons: BTreeMap::new(),
        })
    }

    fn check(params: &DibsParams, context: &Context<'_>, cx: &mut Cx) {
        if context.is_unlimited() {
            cx.warn(None, "has nothing to detour: with an unlimited buffer nothing is refused for want of room", None);
        }
        context.check_neighbours(|switch| Self::runs_at(params, switch), None, cx);
        cx.key("unaware", |cx| context.check_unaware(&params.unaware, false, ("nothing is detoured", "no dibs"), cx));
    }

    fn hooks(&self) -> Hooks {
        Hooks::REFUSAL.with(Hooks::DROP)
    }

    fn counts(&self) -> DibsCounts {
        self.counts
    }

    fn by_reason(&self) -> Vec<(&'static str, u64)> {
        self.reasons.iter().map(|(reason, n)| (*reason, *n)).collect()
    }

    /// Packets that marking drops are dropped: that tells the sender. Source: DIBS §3 (a full queue alone detours).
    fn on_refusal(&mut self, node: &mut dyn Node, refused: &mut Refused<'_>, _fx: &mut Effects) -> Verdict {
        let envelope = &*refused.packet.envelope;
        if !refused.room || envelope.kind == Kind::Control {
            return Verdict::Pass;
        }
        let usable: Vec<PortNo> = self.ports.iter().copied().filter(|port| node.has_room(*port, envelope)).collect();
        if usable.is_empty() {
            self.counts.no_room += 1;
            return Verdict::Pass;
        }
        let port = usable[self.draws[refused.port.index()].below(usable.len() as u64) as usize];
        self.counts.detoured += 1;
        self.counts.back += u64::from(refused.packet.from == Some(port));
        *self.reasons.entry(refused.reason.name()).or_default() += 1;
        Verdict::Detour(port)
    }

    fn on_drop(&mut self, _: &mut dyn Node, dropped: &Dropped<'_>, _: &mut Effects) {
        self.counts.out_of_hops += u64::from(dropped.reason == DropReason::TTL);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{bench, site, Bench};
    use super::super::Arrival;
    use super::*;
    use fanin_packet::{Envelope, PacketId};

    fn dibs() -> Dibs {
        Dibs::new(&DibsParams { unaware: Vec::new() }, &site(&["h0", "s1", "h1", "s2", "s3"])).unwrap()
    }

    /// What becomes of a packet that came by port 1 and finds no room at port 0.
    fn refuse(dibs: &mut Dibs, node: &mut Bench, mut envelope: Envelope, room: bool) -> Verdict {
        let packet = Arrival { id: PacketId(1), envelope: &mut envelope, from: Some(PortNo(1)), shim: &mut None };
        let (port, view, reason) = (PortNo(0), node.view(PortNo(0)), DropReason::BUFFER_FULL);
        let mut refused = Refused { packet, port, view, reason, room, detoured: false };
        dibs.on_refusal(node, &mut refused, &mut Effects::default())
    }

    #[test]
    fn it_goes_to_any_switch_that_has_room_the_one_it_came_from_included() {
        let (mut dibs, mut node) = (dibs(), bench(5));
        let mut taken = [0; 5];
        for _ in 0..3_000 {
            match refuse(&mut dibs, &mut node, Envelope::default(), true) {
                Verdict::Detour(port) => taken[port.index()] += 1,
                other => panic!("{other:?}"),
            }
        }
        assert!(taken[0] == 0 && taken[2] == 0 && [1, 3, 4].iter().all(|i| i32::abs(taken[*i] - 1_000) < 90), "{taken:?}");
        assert_eq!((dibs.counts.detoured, dibs.counts.back as i32), (3_000, taken[1]));
        assert_eq!(dibs.by_reason(), [("buffer_full", 3_000)]);
        node.full = vec![PortNo(1), PortNo(4)];
        assert!((0..50).all(|_| refuse(&mut dibs, &mut node, Envelope::default(), true) == Verdict::Detour(PortNo(3))));
        node.full.push(PortNo(3));
        assert_eq!(refuse(&mut dibs, &mut node, Envelope::default(), true), Verdict::Pass);
        assert_eq!((dibs.counts.detoured, dibs.counts.no_room), (3_050, 1));
    }

    #[test]
    fn what_marking_drops_and_messages_take_no_detour() {
        let (mut dibs, mut node) = (dibs(), bench(5));
        assert_eq!(refuse(&mut dibs, &mut node, Envelope::default(), false), Verdict::Pass);
        let message = Envelope { kind: Kind::Control, ..Envelope::default() };
        assert_eq!(refuse(&mut dibs, &mut node, message, true), Verdict::Pass);
        assert_eq!(dibs.counts, DibsCounts::default());
    }

    #[test]
    fn drops_of_packets_without_hops_are_counted() {
        let mut dibs = dibs();
        for (reason, count) in [(DropReason::BUFFER_FULL, 0), (DropReason::TTL, 1)] {
            let dropped = Dropped { packet: PacketId(1), envelope: &Envelope::default(), reference: None, reason };
            dibs.on_drop(&mut bench(5), &dropped, &mut Effects::default());
            assert_eq!(dibs.counts, DibsCounts { out_of_hops: count, ..DibsCounts::default() });
        }
    }

    #[test]
    fn a_switch_that_is_unaware_has_none() {
        let unaware = DibsParams { unaware: vec!["s*".to_string()] };
        assert!(Dibs::new(&unaware, &site(&["s1"])).is_none());
    }
}
