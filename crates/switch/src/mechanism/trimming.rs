//! Trimming: instead of a whole packet, its payload is dropped. Source: NDP §3.1, after CP.
//!
//! What remains are the headers. They wait in a queue of their own, with all other packets that are nothing but headers, and
//! leave by weighted round robin with the data. The receiver learns from them what was lost.

use super::{
    names_it, Arrival, Context, Displaces, Dropped, Effects, Hooks, Mechanism, Node, Overtakes, PortNo, Profile, Refused, Sends,
    Site, Turn, Verdict,
};
use crate::{DropReason, ExpressParams};
use fanin_packet::{Envelope, Framing, Kind, Signals, LONGEST_SHIM};
use fanin_params::{counters, names, params, Cx, Param};
use fanin_units::{Bytes, Stream};
use std::collections::BTreeMap;

names! {
    /// Packet that is trimmed when a data packet finds its queue full.
    pub enum Cut {
        /// The arriving packet.
        "arriving" => Arriving,
        /// The arriving packet or, with equal probability, the last one in the queue, whose place the arriving one takes: so
        /// that it is not always the same flow that is late. Source: NDP §3.1.
        "either" => Either,
    }
}

params! {
    /// Trimming: packets that find no room lose their payload. Source: NDP §3.1.
    pub struct TrimmingParams {
        /// Buffer of each port for trimmed packets, in addition to that for data. Source: NDP §3.1 (as much as for data:
        /// eight packets, of 9000 bytes).
        pub headers: Bytes = Bytes(72_000), in Bytes(128)..=Bytes(10_000_000);
        /// Number of trimmed packets sent per data packet while both wait. Source: NDP §3.1 (10).
        pub ratio: u32 = 10, in 1..=1_000_000;
        /// Packet that is trimmed.
        pub cut: Cut = Cut::Either;
        /// Switches without trimming, by name, `*` stands for anything.
        pub unaware: Vec<String> = Vec::new();
    }
}

counters! {
    /// Trimmed packets in the network. At any time trimmed = headers_lost + on_the_way + those that reached their hosts.
    pub struct TrimCounts in "trimming" {
        /// Packets whose payload a switch has cut off.
        trimmed,
        /// Trimmed packets that were the last of a queue: the arriving packet took their place.
        tail_trimmed,
        /// Trimmed packets that were dropped later.
        headers_lost: failure,
    }
}

impl DropReason {
    /// The queue of headers had no room.
    pub const HEADERS_FULL: DropReason = DropReason("headers_full");
}

/// Separates the draws of trimming from those of other mechanisms.
const SALT: u32 = 2;

/// Trimming at one switch.
#[derive(Debug)]
pub struct Trimming {
    cut: Cut,
    /// Framing with the trailer.
    framing: Framing,
    trailer: u16,
    headers: ExpressParams,
    /// Random streams by port, which decide whose payload is cut off.
    coins: Vec<Stream>,
    counts: TrimCounts,
    reasons: BTreeMap<&'static str, u64>,
}

impl Trimming {
    /// Frame bytes of a packet's headers alone, including headers that switches have put before them.
    fn header_frame(&self, e: &Envelope) -> u16 {
        self.framing.frame(u16::from(e.header)) + e.extra.shim()
    }

    /// True if a packet can lose its payload: of a reliable transport, as nobody sends datagrams again, with more payload than
    /// fills the smallest frame and than the trailer that frames have behind it.
    ///
    /// So the length on the wire shows what was trimmed: the IP header states more than the frame holds, trailer included.
    fn is_trimmable(&self, e: &Envelope) -> bool {
        e.kind == Kind::Reliable && e.frame > self.header_frame(e) + self.trailer
    }

    /// True if a packet is one for the queue of headers: reliable, and not to be trimmed. Acknowledgments, SYN, FIN, what was
    /// trimmed before, and short payloads.
    fn is_header(&self, e: &Envelope) -> bool {
        e.kind == Kind::Reliable && !self.is_trimmable(e)
    }

    fn cut_off(&mut self, e: &mut Envelope, reason: DropReason) {
        e.trim(self.header_frame(e));
        self.counts.trimmed += 1;
        *self.reasons.entry(reason.name()).or_default() += 1;
    }

    /// A packet without payload goes onto the wire of an idle port, or waits among the headers, or is dropped. It has no row and
    /// gets no mark: the queue that has rows and marks is that of data.
    fn join(&self, node: &mut dyn Node, p: &Arrival<'_>, port: PortNo) -> Verdict {
        if node.is_idle(port) {
            Verdict::Send
        } else if node.has_express_room(port, p.envelope.frame) {
            Verdict::Express
        } else {
            Verdict::Drop(DropReason::HEADERS_FULL)
        }
    }
}

impl Mechanism for Trimming {
    type Params = TrimmingParams;
    type Counts = TrimCounts;

    const PROFILE: Profile = Profile { signals: Signals::TRIMMED, ..Profile::PLAIN };

    /// Memory: the express queues of all ports.
    fn memory(params: &TrimmingParams, site: &Site) -> Option<Bytes> {
        Some(Bytes(params.headers.get() * site.ports.len() as u64))
    }

    fn runs_at(params: &TrimmingParams, switch: &str) -> bool {
        !names_it(&params.unaware, switch)
    }

    fn new(params: &TrimmingParams, site: &Site) -> Option<Self> {
        if !Self::runs_at(params, &site.name) {
            return None;
        }
        Some(Trimming {
            cut: params.cut,
            framing: site.framing.with_trailer(site.trailer),
            trailer: site.trailer,
            headers: ExpressParams { room: params.headers, ratio: params.ratio },
            coins: site.ports.iter().map(|port| site.stream(SALT, port)).collect(),
            counts: TrimCounts::default(),
            reasons: BTreeMap::new(),
        })
    }

    fn check(params: &TrimmingParams, context: &Context<'_>, cx: &mut Cx) {
        if context.is_unlimited() && context.marking_drops() == 0 {
            cx.warn(None, "has nothing to trim: with an unlimited buffer nothing is refused for want of room", None);
        }
        context.check_signals(Signals::TRIMMED, "trimmed packets", cx);
        let longest =
            context.traffic.transports.iter().map(|t| t.headers).max().unwrap_or(context.frames.framing.ip.header() + 20);
        let smallest = (context.frames.framing.header + longest + context.frames.trailer).max(context.frames.framing.min_frame);
        let smallest = Bytes(u64::from(smallest));
        if params.headers < smallest {
            cx.key("headers", |cx| {
                let value = params.headers.to_value().into();
                cx.error(Some(&value), "has no room for a single header", Some(format!("at least {smallest}"))).severity
            });
        }
        cx.key("unaware", |cx| context.check_unaware(&params.unaware, false, ("nobody trims", "no trimming"), cx));
    }

    fn hooks(&self) -> Hooks {
        Hooks::OFFER.with(Hooks::REFUSAL).with(Hooks::DROP).with(Hooks::TURN)
    }

    fn counts(&self) -> TrimCounts {
        self.counts
    }

    fn by_reason(&self) -> Vec<(&'static str, u64)> {
        self.reasons.iter().map(|(reason, n)| (*reason, *n)).collect()
    }

    fn on_offer(&mut self, node: &mut dyn Node, p: &mut Arrival<'_>, port: PortNo, _fx: &mut Effects) -> Verdict {
        if self.is_header(p.envelope) {
            self.join(node, p, port)
        } else {
            Verdict::Pass
        }
    }

    /// Trims a refused packet. With [`Cut::Either`], in one of two cases the last packet of its class is trimmed in its stead:
    /// only where both can be trimmed and have the same size, so that neither buffer nor scheduler sees a difference. Source: NDP
    /// §3.1. Deviation: the paper does not speak of packets of different sizes.
    fn on_refusal(&mut self, node: &mut dyn Node, refused: &mut Refused<'_>, fx: &mut Effects) -> Verdict {
        if !self.is_trimmable(refused.packet.envelope) {
            return Verdict::Pass;
        }
        if self.cut == Cut::Either {
            let (frame, class) = (refused.packet.envelope.frame, refused.packet.envelope.class);
            let last = node.waiting(refused.port, class).checked_sub(1).filter(|_| refused.room);
            let tail = last.and_then(|last| node.waiting_at(refused.port, class, last));
            let alike = tail.is_some_and(|(tail, _)| tail.frame == frame && self.is_trimmable(&tail));
            if alike && self.coins[refused.port.index()].below(2) == 1 {
                last.into_iter().for_each(|last| fx.displace(last));
                return Verdict::Displace;
            }
        }
        self.cut_off(refused.packet.envelope, refused.reason);
        self.join(node, &refused.packet, refused.port)
    }

    fn on_drop(&mut self, _: &mut dyn Node, dropped: &Dropped<'_>, _: &mut Effects) {
        self.counts.headers_lost += u64::from(dropped.envelope.trimmed);
    }
}

impl Overtakes for Trimming {
    /// Largest frame of headers alone.
    fn largest(&self) -> u16 {
        self.framing.frame(u16::from(u8::MAX)) + LONGEST_SHIM + self.trailer
    }

    fn express(&self) -> ExpressParams {
        self.headers
    }

    #[inline]
    fn is_express(&self, e: &Envelope) -> bool {
        self.is_header(e)
    }
}

impl Displaces for Trimming {
    fn on_displaced(&mut self, node: &mut dyn Node, p: &mut Arrival<'_>, port: PortNo, _: bool, _fx: &mut Effects) -> Verdict {
        self.cut_off(p.envelope, DropReason::BUFFER_FULL);
        self.counts.tail_trimmed += 1;
        self.join(node, p, port)
    }
}

impl Sends for Trimming {
    fn on_turn(&mut self, _node: &mut dyn Node, _port: PortNo, _data: bool, _fx: &mut Effects) -> Turn {
        Turn::Express
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{bench, site, Bench};
    use super::*;
    use fanin_packet::{Packet, PacketId, TcpFlags, Timestamps};
    use fanin_units::Time;

    fn params(headers: u64, ratio: u32) -> TrimmingParams {
        TrimmingParams { headers: Bytes(headers), ratio, cut: Cut::Either, unaware: Vec::new() }
    }

    fn trimming(trailer: u16) -> Trimming {
        let site = Site { trailer, ..site(&["h0"]) };
        Trimming::new(&params(72_000, 10), &site).unwrap()
    }

    fn tcp(payload: u16, timestamps: bool) -> Envelope {
        let mut p = Packet::of_tcp(TcpFlags::ACK, 1, 1, 1, payload);
        if timestamps {
            p.segment_mut().set_timestamps(Timestamps { value: 1, echo: 2 });
        }
        let header = p.header_bytes();
        Envelope { header: header as u8, frame: Framing::ETHERNET.frame(header + payload), ..p.envelope }
    }

    #[test]
    fn a_packet_no_longer_than_its_headers_is_a_header() {
        let t = trimming(0);
        for (payload, timestamps, header) in
            [(0, false, true), (6, false, true), (7, false, false), (0, true, true), (1, true, false), (1460, false, false)]
        {
            let mut e = tcp(payload, timestamps);
            assert_eq!((t.is_header(&e), t.is_trimmable(&e)), (header, !header), "{payload}");
            assert!(!header || e.frame <= t.largest(), "{payload}");
            if !header {
                e.trim(t.header_frame(&e));
                assert_eq!((e.frame, t.is_header(&e), t.is_trimmable(&e)), (if timestamps { 70 } else { 64 }, true, false));
            }
        }
        for payload in [1, 1000] {
            let e = Packet::of_udp(1, payload).envelope;
            let e = Envelope { header: 8, frame: Framing::ETHERNET.frame(8 + payload), ..e };
            assert!(!t.is_header(&e) && !t.is_trimmable(&e));
        }
        // With stamps eight bytes of payload are not seen to be missing: the stamp has as many.
        let t = trimming(8);
        for (payload, header) in [(8, true), (9, false)] {
            let e = tcp(payload, true);
            let e = Envelope { frame: t.framing.frame(u16::from(e.header) + payload), ..e };
            assert_eq!((t.is_header(&e), t.is_trimmable(&e)), (header, !header));
        }
    }

    /// A port that does not accept a packet asks; the places that make room come with the verdict.
    fn refuse(t: &mut Trimming, node: &mut Bench, mine: &mut Envelope, room: bool) -> (Verdict, Vec<usize>) {
        let packet = Arrival { id: PacketId(1), envelope: mine, from: None, shim: &mut None };
        let (view, reason) = (node.view(PortNo(0)), DropReason::BUFFER_FULL);
        let mut refused = Refused { packet, port: PortNo(0), view, reason, room, detoured: false };
        let mut fx = Effects::default();
        (t.on_refusal(node, &mut refused, &mut fx), fx.displaced)
    }

    #[test]
    fn a_refused_packet_or_the_tail_loses_its_payload_as_often() {
        let mut t = Trimming::new(&params(72_000, 10), &site(&["h0"])).unwrap();
        let mut busy = bench(1);
        busy.free_at = busy.now + fanin_units::Span::from_us(1);
        let (mut own, mut tails) = (0, 0);
        busy.waiting = vec![(tcp(1000, false), None), (tcp(1460, false), None)];
        for _ in 0..400 {
            let mut mine = tcp(1460, false);
            match refuse(&mut t, &mut busy, &mut mine, true) {
                (Verdict::Displace, places) => tails += u32::from(places == [1]),
                (Verdict::Express, _) => own += u32::from(mine.trimmed && mine.frame == 64),
                other => panic!("{other:?}"),
            }
        }
        assert!((150..=250).contains(&tails) && own + tails == 400, "{own} {tails}");
        assert_eq!((t.counts.trimmed, t.by_reason()), (u64::from(own), vec![("buffer_full", u64::from(own))]));
        // The tail stays where marking drops the packet, where it is of another size, where it has no payload to lose, and where there is none.
        let always = |t: &mut Trimming, busy: &mut Bench, room, frame: &dyn Fn(&mut Envelope)| {
            for _ in 0..40 {
                let mut mine = tcp(1460, false);
                frame(&mut mine);
                assert_eq!(refuse(t, busy, &mut mine, room), (Verdict::Express, vec![]));
            }
        };
        always(&mut t, &mut busy, false, &|_| ());
        always(&mut t, &mut busy, true, &|mine| mine.frame += 1);
        busy.waiting[1].0.kind = Kind::Control;
        always(&mut t, &mut busy, true, &|_| ());
        busy.waiting.clear();
        always(&mut t, &mut busy, true, &|_| ());
        // Nor by `cut = "arriving"`.
        busy.waiting = vec![(tcp(1460, false), None)];
        t.cut = Cut::Arriving;
        always(&mut t, &mut busy, true, &|_| ());
        // What has no payload to lose is dropped as it is.
        let mut header = tcp(0, false);
        assert_eq!(refuse(&mut t, &mut busy, &mut header, true), (Verdict::Pass, vec![]));
        assert!(!header.trimmed);
    }

    /// The last of a queue that makes room is trimmed in its turn, and counted so; of trimmed packets that are dropped there is a count, too.
    #[test]
    fn what_makes_room_is_trimmed() {
        let (mut t, mut busy, mut fx) = (trimming(0), bench(1), Effects::default());
        busy.free_at = Time::MAX;
        let (mut tail, mut whole) = (tcp(1460, false), tcp(1460, false));
        let mut p = Arrival { id: PacketId(1), envelope: &mut tail, from: None, shim: &mut None };
        assert_eq!(t.on_displaced(&mut busy, &mut p, PortNo(0), false, &mut fx), Verdict::Express);
        assert!(tail.trimmed && tail.frame == 64);
        for (envelope, lost) in [(&mut whole, 0), (&mut tail, 1)] {
            let dropped = Dropped { packet: PacketId(1), envelope, reference: None, reason: DropReason::HEADERS_FULL };
            t.on_drop(&mut busy, &dropped, &mut fx);
            assert_eq!(t.counts, TrimCounts { trimmed: 1, tail_trimmed: 1, headers_lost: lost });
        }
        assert_eq!((t.by_reason(), t.on_turn(&mut busy, PortNo(0), true, &mut fx)), (vec![("buffer_full", 1)], Turn::Express));
        assert!(t.is_express(&tail) && !t.is_express(&whole));
    }

    #[test]
    fn headers_go_straight_onto_an_idle_wire_and_are_dropped_where_their_queue_is_full() {
        let mut t = Trimming::new(&params(128, 10), &site(&["h0"])).unwrap();
        let (mut node, mut fx) = (bench(1), Effects::default());
        let mut offer = |node: &mut Bench, e: &mut Envelope| {
            t.on_offer(node, &mut Arrival { id: PacketId(1), envelope: e, from: None, shim: &mut None }, PortNo(0), &mut fx)
        };
        assert_eq!(offer(&mut node, &mut tcp(0, false)), Verdict::Send);
        assert_eq!(offer(&mut node, &mut tcp(1460, false)), Verdict::Pass);
        node.free_at = Time::MAX;
        assert_eq!(offer(&mut node, &mut tcp(0, false)), Verdict::Express);
        node.express_room = 63;
        assert_eq!(offer(&mut node, &mut tcp(0, false)), Verdict::Drop(DropReason::HEADERS_FULL));
        assert_eq!(offer(&mut node, &mut tcp(1460, false)), Verdict::Pass);
        assert!(fx.list.is_empty());
        assert_eq!(t.express(), ExpressParams { room: Bytes(128), ratio: 10 });
    }
}
