//! Packet drop notification (PDN): the switch that drops a packet notifies its sender. Source: PDN §IV.
//!
//! A notification waits in a queue of its own at the port towards the sender, apart from packets. It leaves at the end of the
//! next frame that has room for it, or in an empty frame when the port is idle; the next switch takes it off and does the same.

use super::{
    longest, names_it, Attaches, Claims, Context, Dropped, Effect, Effects, Hooks, Listens, Mechanism, Message, Messages, Node,
    Peaks, PortNo, Profile, Sends, Site, Turn,
};
use crate::DropReason;
use fanin_dataplane::pdn::{
    self as registers, Bounds, Raising, DROP_IPV4, DROP_IPV6, FIELDS, IPV4_WITH_NOTICE, IPV6_WITH_NOTICE,
};
use fanin_packet::{address, Control, Envelope, IpVersion, Kind, Lost, Part, Reference, Side, Signal, Signals};
use fanin_params::{counters, names, params, Cx, Param};
use fanin_units::{Bytes, Stream};
use std::collections::VecDeque;

names! {
    /// Action that a notification asks of the sender.
    pub enum Operations {
        /// Retransmit, and reduce the window. Source: PDN §IV.
        "retransmit_and_halve" => RetransmitAndHalve,
        /// Retransmit only.
        "retransmit" => Retransmit,
    }
}

params! {
    /// Packet drop notification: the sender of a dropped packet is notified at once. Source: PDN §IV.
    pub struct PdnParams {
        /// Queue of notifications at each port, 20 bytes each, with IPv6 44; what does not fit is lost and counted. Source:
        /// PDN §V (20 bytes sufficed in its simulations).
        pub queue: Bytes = Bytes(2_000), in Bytes(20)..=Bytes(1_000_000);
        /// Action asked of the sender.
        pub operation: Operations = Operations::RetransmitAndHalve;
        /// Notifications of dropped pure acknowledgments, too, which their sender repeats. If false, losing the last one of
        /// a window costs a timeout.
        pub acks: bool = true;
        /// Largest frame: a notification waits while it would make the next frame longer than this. Source: IEEE 802.3
        /// §3.2.7 (1518 bytes).
        pub max_frame: Bytes = Bytes(1_518), in Bytes(84)..=Bytes(65_535);
        /// Switches and hosts without PDN, by name, `*` stands for anything: they notify nobody, and notifications to them
        /// are lost and counted.
        pub unaware: Vec<String> = Vec::new();
        /// Probability of losing a notification on each link that it crosses, for any reason; the frame that carries it
        /// arrives.
        pub loss: f64 = 0.0, in 0.0..=1.0;
    }
}

counters! {
    /// Notifications in the network. At any time raised = overflowed + next_hop_unaware + expired + lost + on_the_way + those
    /// that reached their hosts.
    pub struct NoticeCounts in "notifications" {
        /// Drops that a switch notified the sender of.
        raised,
        /// Drops without notification: no route, hop limit, datagrams, or acknowledgments with `acks` = false.
        not_raised,
        /// Notifications attached to a frame that was leaving anyway, once per link.
        attached,
        /// Notifications sent in an empty frame because the port was idle, once per link.
        empty_frames,
        /// Notifications lost because the notification queue was full.
        overflowed: failure,
        /// Notifications lost because the next hop does not run PDN, or there is no route.
        next_hop_unaware: failure,
        /// Notifications lost after crossing as many switches as the hop limit allows.
        expired: failure,
        /// Notifications lost on a link, by `loss`.
        lost: failure,
    }
}

impl NoticeCounts {
    /// Notifications that never reach a host.
    pub fn stranded(&self) -> u64 {
        self.overflowed + self.next_hop_unaware + self.expired + self.lost
    }
}

/// Separates the draws of PDN's `loss` from those of other mechanisms.
const SALT: u32 = 1;

/// Bytes of a notification: two addresses and ports, sequence number 4, length 2, type 1, operation 1. Source: PDN fig. 3 for
/// the 20 bytes of IPv4; with its fields and addresses of 16 bytes they are 44.
pub(crate) const fn notice_bytes(ip: IpVersion) -> u16 {
    ip.tuple() + FIELDS as u16
}

/// True if the sender is notified of a packet that was dropped for `reason`: of congestion, not of packets without a route.
fn is_congestion(reason: DropReason) -> bool {
    reason != DropReason::TTL && reason != DropReason::NO_ROUTE
}

/// A notification as bytes on the wire. Source: PDN fig. 3.
fn body(ip: IpVersion, dropped: &Envelope, reference: Reference, operation: u8) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(usize::from(notice_bytes(ip)));
    for host in [dropped.src, dropped.dst] {
        match ip {
            IpVersion::V4 => bytes.extend(address::ipv4(host).octets()),
            IpVersion::V6 => bytes.extend(address::ipv6(host).octets()),
        }
    }
    let (client, server) = address::ports(dropped.flow);
    let (source, destination) = if dropped.to == Side::Responder { (client, server) } else { (server, client) };
    bytes.extend(source.to_be_bytes());
    bytes.extend(destination.to_be_bytes());
    let kind = if ip == IpVersion::V4 { DROP_IPV4 } else { DROP_IPV6 };
    bytes.extend(registers::fields(reference.number, reference.length, kind, operation));
    bytes
}

/// Notifications that wait at one port, first in, first out.
#[derive(Debug)]
pub(crate) struct Queue<M> {
    waiting: VecDeque<M>,
    peak: u32,
}

impl<M> Queue<M> {
    pub(crate) fn new() -> Self {
        Queue { waiting: VecDeque::new(), peak: 0 }
    }

    pub(crate) fn len(&self) -> u32 {
        self.waiting.len() as u32
    }

    pub(crate) fn peak(&self) -> u32 {
        self.peak
    }

    /// Queues a notification; false: there is no room, and it is lost.
    pub(crate) fn push(&mut self, bounds: &Bounds, message: M) -> bool {
        let takes = bounds.takes(self.len());
        if takes {
            self.waiting.push_back(message);
            self.peak = self.peak.max(self.len());
        }
        takes
    }

    /// The notification that goes at the end of a frame.
    pub(crate) fn attach(&mut self, bounds: &Bounds, frame: u16) -> Option<M> {
        let attaches = bounds.attaches(self.len(), frame);
        attaches.then(|| self.waiting.pop_front()).flatten()
    }

    /// The notification that leaves in an empty frame.
    pub(crate) fn alone(&mut self, bounds: &Bounds, data: bool) -> Option<M> {
        let goes = bounds.goes_alone(self.len(), data);
        goes.then(|| self.waiting.pop_front()).flatten()
    }
}

/// Bounds of queues and frames, by the settings.
pub(crate) fn bounds(queue: Bytes, max_frame: Bytes, ip: IpVersion) -> Bounds {
    Bounds { room: queue.get() as u32, each: notice_bytes(ip) as u8, largest: max_frame.get() as u16 }
}

/// Policy on drops, by the settings.
pub(crate) fn raising(acks: bool, operation: Operations) -> Raising {
    Raising { acks, halve: operation == Operations::RetransmitAndHalve }
}

/// A port towards a neighbour with PDN.
#[derive(Debug)]
struct Port {
    queue: Queue<Message>,
    draws: Stream,
}

/// PDN at one switch.
#[derive(Debug)]
pub struct Pdn {
    bounds: Bounds,
    raising: Raising,
    /// Probability that a notification is lost on a link.
    loss: f64,
    ip: IpVersion,
    ttl: u8,
    /// State of each port; `None` where the next hop runs no PDN.
    ports: Vec<Option<Port>>,
    counts: NoticeCounts,
}

impl Pdn {
    /// Queues a notification at the port towards the sender: the port that an acknowledgment would take. Where several paths
    /// are equal the switch chooses as for a packet with the hash of the acknowledgments.
    fn queue(&mut self, node: &mut dyn Node, message: Message, fx: &mut Effects) {
        let port = node.route(&message.envelope);
        let Some((port, at)) = port.and_then(|port| Some((port, self.ports[port.index()].as_mut()?))) else {
            self.counts.next_hop_unaware += 1;
            return;
        };
        if at.queue.push(&self.bounds, message) {
            fx.push(Effect::Arm(port));
        } else {
            self.counts.overflowed += 1;
        }
    }
}

/// Reads a notification for the endpoint of the flow that it names.
fn read(body: &[u8]) -> Signal {
    let Some(told) = registers::read(body) else { return Signal::Undefined };
    let part = match told.lost {
        registers::Lost::Data => Part::Data,
        registers::Lost::Acknowledgment => Part::Acknowledgment,
    };
    Signal::Lost(Lost { packet: Reference { number: told.number, length: told.length, part }, reduce: told.reduce })
}

impl Mechanism for Pdn {
    type Params = PdnParams;
    type Counts = NoticeCounts;

    const PROFILE: Profile = Profile {
        signals: Signals::LOST,
        messages: Some(Messages { ether_types: &[IPV4_WITH_NOTICE, IPV6_WITH_NOTICE], signal: read, pauses: None }),
        at_combined: true,
        ..Profile::PLAIN
    };

    fn claims(params: &PdnParams) -> Claims {
        Claims { largest_frame: Some(params.max_frame), ..Claims::default() }
    }

    /// The queues of notifications.
    fn memory(params: &PdnParams, site: &Site) -> Option<Bytes> {
        Some(Bytes(params.queue.get() * site.ports.len() as u64))
    }

    fn runs_at(params: &PdnParams, switch: &str) -> bool {
        !names_it(&params.unaware, switch)
    }

    fn new(params: &PdnParams, site: &Site) -> Option<Self> {
        if !Self::runs_at(params, &site.name) {
            return None;
        }
        let port = |port: &super::PortSite| {
            let aware = !names_it(&params.unaware, &port.peer) && (port.to_host || port.peer_runs.contains(&"pdn"));
            aware.then(|| Port { queue: Queue::new(), draws: site.stream(SALT, port) })
        };
        let ip = site.framing.ip;
        Some(Pdn {
            bounds: bounds(params.queue, params.max_frame, ip),
            raising: raising(params.acks, params.operation),
            loss: params.loss,
            ip,
            ttl: site.ttl,
            ports: site.ports.iter().map(port).collect(),
            counts: NoticeCounts::default(),
        })
    }

    fn check(params: &PdnParams, context: &Context<'_>, cx: &mut Cx) {
        if context.is_unlimited() && !context.mechanisms_drop() {
            cx.warn(None, "has no drops to notify of: with an unlimited buffer nothing is dropped for want of room", None);
        }
        if params.loss == 1.0 {
            cx.key("loss", |cx| {
                cx.warn(Some(&params.loss.to_value().into()), "loses every notification: no sender is notified", None);
            });
        }
        context.check_signals(Signals::LOST, "notifications", cx);
        for transport in context.traffic.transports.iter().filter(|t| t.acts_on.has(Signals::LOST)) {
            let full = u64::from(transport.mtu) + u64::from(context.frames.framing.header);
            if full > params.max_frame.get() {
                let name = transport.name;
                cx.key("max_frame", |cx| {
                    let message =
                        format!("has no room for a notification in a full frame of transport {name}: it takes {full} B with it");
                    cx.warn(Some(&params.max_frame.to_value().into()), message, None).suggestion =
                        Some(format!("at least {full} B"));
                });
            }
        }
        // The parameter accepts the 20 bytes of IPv4, and one of IPv6 takes more.
        let bytes = Bytes(u64::from(notice_bytes(context.frames.framing.ip)));
        if params.queue < bytes {
            cx.key("queue", |cx| {
                let value = params.queue.to_value().into();
                cx.error(Some(&value), "has no room for one notification of IPv6", Some(format!("at least {bytes}"))).severity
            });
        }
        cx.key("unaware", |cx| {
            context.check_unaware(&params.unaware, true, ("nobody sends notifications", "no pdn"), cx);
            let hosts: Vec<&str> = context.network.nodes.iter().filter(|(_, switch)| !switch).map(|(name, _)| *name).collect();
            if !hosts.is_empty() && hosts.iter().all(|host| names_it(&params.unaware, host)) {
                cx.warn(None, "names every host: no sender is notified of a drop", None);
            }
        });
    }

    fn hooks(&self) -> Hooks {
        Hooks::DROP.with(Hooks::DEPARTURE).with(Hooks::TURN).with(Hooks::MESSAGES)
    }

    fn counts(&self) -> NoticeCounts {
        self.counts
    }

    fn on_drop(&mut self, node: &mut dyn Node, dropped: &Dropped<'_>, fx: &mut Effects) {
        let Dropped { envelope: dropped, reference, reason, .. } = *dropped;
        let lost = reference.map(|reference| match reference.part {
            Part::Data => registers::Lost::Data,
            Part::Acknowledgment => registers::Lost::Acknowledgment,
        });
        let operation = self.raising.operation(is_congestion(reason), lost);
        let Some((reference, operation)) = reference.zip(operation) else {
            self.counts.not_raised += 1;
            return;
        };
        self.counts.raised += 1;
        let bytes = body(self.ip, dropped, reference, operation);
        let ether_type = if self.ip == IpVersion::V4 { IPV4_WITH_NOTICE } else { IPV6_WITH_NOTICE };
        let envelope = Envelope {
            flow: dropped.flow,
            src: dropped.dst,
            dst: dropped.src,
            hash: dropped.reverse_hash,
            reverse_hash: dropped.hash,
            header: bytes.len() as u8,
            ttl: self.ttl,
            to: dropped.to.other(),
            kind: Kind::Control,
            ..Envelope::default()
        };
        self.queue(node, Message { envelope, control: Control::new(ether_type, &bytes) }, fx);
    }
}

impl Peaks for Pdn {
    fn longest_queue(&self) -> Option<(PortNo, Bytes)> {
        let bytes = u64::from(notice_bytes(self.ip));
        longest(self.ports.iter().map(|at| at.as_ref().map_or(0, |at| u64::from(at.queue.peak()) * bytes)))
    }
}

impl Attaches for Pdn {
    fn messages(&self) -> u64 {
        self.ports.iter().flatten().map(|at| u64::from(at.queue.len())).sum()
    }

    fn on_departure(&mut self, port: PortNo, envelope: &Envelope) -> Option<Message> {
        let message = self.ports[port.index()].as_mut()?.queue.attach(&self.bounds, envelope.frame)?;
        self.counts.attached += 1;
        Some(message)
    }

    fn loses(&mut self, port: PortNo) -> bool {
        let Some(at) = self.ports[port.index()].as_mut().filter(|_| self.loss > 0.0) else { return false };
        let lost = at.draws.unit() < self.loss;
        self.counts.lost += u64::from(lost);
        lost
    }
}

impl Sends for Pdn {
    fn on_turn(&mut self, _node: &mut dyn Node, port: PortNo, data: bool, _fx: &mut Effects) -> Turn {
        let at = self.ports[port.index()].as_mut();
        let Some(message) = at.and_then(|at| at.queue.alone(&self.bounds, data)) else { return Turn::Pass };
        self.counts.empty_frames += 1;
        Turn::Message(message)
    }

    fn waits(&self, port: PortNo) -> bool {
        self.ports[port.index()].as_ref().is_some_and(|at| at.queue.len() > 0)
    }
}

impl Listens for Pdn {
    fn on_message(&mut self, node: &mut dyn Node, _from: PortNo, message: &Message, fx: &mut Effects) {
        let mut message = *message;
        let Some(left) = registers::hops_left(message.envelope.ttl) else {
            self.counts.expired += 1;
            return;
        };
        message.envelope.ttl = left;
        self.queue(node, message, fx);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{bench, site};
    use super::super::{message_frame, MechanismState};
    use super::*;
    use crate::Mechanisms;
    use fanin_packet::{Framing, PacketId};
    use fanin_units::{FlowId, HostId};

    fn params() -> PdnParams {
        PdnParams {
            queue: Bytes(79),
            operation: Operations::Retransmit,
            acks: true,
            max_frame: Bytes(1_518),
            unaware: Vec::new(),
            loss: 0.0,
        }
    }

    /// A packet of 1000 B from host 0 to host 1 with this sequence number.
    fn dropped(seq: u32) -> (Envelope, Reference) {
        let envelope =
            Envelope { flow: FlowId(7), src: HostId(0), dst: HostId(1), hash: 5, reverse_hash: 9, ..Envelope::default() };
        (envelope, Reference { number: seq, length: 1_000, part: Part::Data })
    }

    fn drops(pdn: &mut Pdn, seqs: impl IntoIterator<Item = u32>) -> Vec<Effect> {
        let mut fx = Effects::default();
        for seq in seqs {
            let (envelope, reference) = dropped(seq);
            let dropped =
                Dropped { packet: PacketId(0), envelope: &envelope, reference: Some(reference), reason: DropReason::BUFFER_FULL };
            pdn.on_drop(&mut bench(2), &dropped, &mut fx);
        }
        fx.list.into_iter().map(|(_, effect)| effect).collect()
    }

    fn alone(pdn: &mut Pdn) -> Option<Signal> {
        match pdn.on_turn(&mut bench(2), PortNo(0), false, &mut Effects::default()) {
            Turn::Message(message) => Some(read(message.body())),
            _ => None,
        }
    }

    fn lost(seq: u32, reduce: bool) -> Signal {
        Signal::Lost(Lost { packet: dropped(seq).1, reduce })
    }

    #[test]
    fn the_queue_is_bounded_and_keeps_its_order() {
        let mut pdn = Pdn::new(&params(), &site(&["h0", "h1"])).unwrap();
        let armed = drops(&mut pdn, 0..5);
        assert_eq!(armed, [Effect::Arm(PortNo(0)); 3]); // three times 20 of 79 bytes
        assert_eq!((pdn.counts.raised, pdn.counts.overflowed, pdn.longest_queue()), (5, 2, Some((PortNo(0), Bytes(60)))));
        let frame = Envelope { frame: 1_498, ..Envelope::default() };
        let message = pdn.on_departure(PortNo(0), &frame).unwrap();
        assert_eq!((read(message.body()), message.envelope.dst, message.envelope.hash), (lost(0, false), HostId(0), 9));
        assert_eq!(pdn.on_departure(PortNo(1), &frame), None);
        drops(&mut pdn, [9]);
        assert_eq!(pdn.on_turn(&mut bench(2), PortNo(0), true, &mut Effects::default()), Turn::Pass);
        let left: Vec<Signal> = std::iter::from_fn(|| alone(&mut pdn)).collect();
        assert_eq!(left, [1, 2, 9].map(|seq| lost(seq, false)));
        assert_eq!((pdn.counts.attached, pdn.counts.empty_frames), (1, 3));
        assert!(!pdn.waits(PortNo(0)) && pdn.on_departure(PortNo(0), &Envelope::default()).is_none());
    }

    #[test]
    fn a_full_frame_carries_none() {
        let mut pdn = Pdn::new(&params(), &site(&["h0", "h1"])).unwrap();
        drops(&mut pdn, [1]);
        for (frame, carries) in [(1_499, false), (u16::MAX, false), (1_498, true)] {
            assert_eq!(pdn.on_departure(PortNo(0), &Envelope { frame, ..Envelope::default() }).is_some(), carries);
        }
    }

    /// Addresses of 16 bytes make a notification 44 bytes long: one of 79, and a frame of 1518 − 44.
    #[test]
    fn notifications_of_ipv6_take_more_room() {
        let mut site = site(&["h0", "h1"]);
        site.framing.ip = IpVersion::V6;
        let mut pdn = Pdn::new(&params(), &site).unwrap();
        drops(&mut pdn, [1, 2]);
        assert_eq!((pdn.counts.overflowed, pdn.longest_queue()), (1, Some((PortNo(0), Bytes(44)))));
        assert!(pdn.on_departure(PortNo(0), &Envelope { frame: 1_475, ..Envelope::default() }).is_none());
        let message = pdn.on_departure(PortNo(0), &Envelope { frame: 1_474, ..Envelope::default() }).unwrap();
        assert_eq!((message.body().len(), read(message.body())), (44, lost(1, false)));
    }

    /// The bytes of PDN fig. 3.
    #[test]
    fn a_notification_has_the_fields_of_the_paper() {
        let (envelope, reference) = dropped(0x0102_0304);
        let bytes = body(IpVersion::V4, &envelope, reference, registers::RETRANSMIT_AND_HALVE);
        let (client, server) = address::ports(FlowId(7));
        let mut expected = vec![10, 0, 0, 1, 10, 0, 0, 2];
        expected.extend([client.to_be_bytes(), server.to_be_bytes()].concat());
        expected.extend([1, 2, 3, 4, 0x03, 0xE8, 1, 1]);
        assert_eq!(bytes, expected);
        assert_eq!(read(&bytes), lost(0x0102_0304, true));
        for (operation, defined) in [(0, false), (2, true), (3, true), (4, false), (255, false)] {
            let bytes = body(IpVersion::V4, &envelope, reference, operation);
            assert_eq!(read(&bytes) != Signal::Undefined, defined, "{operation}");
        }
        assert_eq!(read(&[1, 2, 3]), Signal::Undefined);
    }

    #[test]
    fn congestion_is_notified_and_a_missing_route_is_not() {
        let mut pdn = Pdn::new(&PdnParams { acks: false, ..params() }, &site(&["h0", "h1"])).unwrap();
        let (envelope, reference) = dropped(1);
        let ack = Reference { part: Part::Acknowledgment, ..reference };
        let mut raised = |reference, reason| {
            let dropped = Dropped { packet: PacketId(0), envelope: &envelope, reference, reason };
            pdn.on_drop(&mut bench(2), &dropped, &mut Effects::default());
            pdn.counts.raised
        };
        assert_eq!(raised(Some(reference), DropReason::TTL), 0);
        assert_eq!(raised(Some(reference), DropReason::NO_ROUTE), 0);
        assert_eq!(raised(None, DropReason::BUFFER_FULL), 0);
        assert_eq!(raised(Some(ack), DropReason::BUFFER_FULL), 0); // `acks` is off
        assert_eq!(raised(Some(reference), DropReason("red")), 1);
        assert_eq!(pdn.counts.not_raised, 4);
    }

    #[test]
    fn without_an_aware_next_hop_there_is_no_notification() {
        let unaware = |names: &[&str]| PdnParams { unaware: names.iter().map(|n| (*n).to_string()).collect(), ..params() };
        assert!(Pdn::new(&unaware(&["s*"]), &site(&["h0", "h1"])).is_none());
        let mut pdn = Pdn::new(&unaware(&["h0"]), &site(&["h0", "h1"])).unwrap();
        assert_eq!(drops(&mut pdn, [1]), []);
        assert_eq!((pdn.counts.next_hop_unaware, pdn.counts.stranded()), (1, 1));
        // A switch that has other mechanisms only is one of them.
        for (peer_runs, expected) in [(vec!["trimming"], 1), (vec!["pdn"], 0)] {
            let mut site = site(&["s1", "h1"]);
            site.ports[0].peer_runs = peer_runs;
            let mut pdn = Pdn::new(&params(), &site).unwrap();
            drops(&mut pdn, [1]);
            assert_eq!(pdn.counts.next_hop_unaware, expected);
        }
    }

    #[test]
    fn a_notification_expires_at_its_last_hop() {
        let mut pdn = Pdn::new(&params(), &site(&["h0", "h1"])).unwrap();
        drops(&mut pdn, [1]);
        let Turn::Message(mut message) = pdn.on_turn(&mut bench(2), PortNo(0), false, &mut Effects::default()) else {
            panic!("a notification")
        };
        message.envelope.ttl = 2;
        pdn.on_message(&mut bench(2), PortNo(1), &message, &mut Effects::default());
        assert_eq!((pdn.counts.expired, pdn.messages()), (0, 1));
        message.envelope.ttl = 1;
        pdn.on_message(&mut bench(2), PortNo(1), &message, &mut Effects::default());
        assert_eq!((pdn.counts.expired, pdn.messages()), (1, 1));
    }

    /// A notification goes back as a packet of the flow would, with all hops before it.
    #[test]
    fn a_notification_is_addressed_to_the_sender() {
        let mut pdn = Pdn::new(&params(), &Site { ttl: 9, ..site(&["h0", "h1"]) }).unwrap();
        assert_eq!(pdn.messages(), 0);
        drops(&mut pdn, [1, 2]);
        assert_eq!(pdn.messages(), 2);
        let Turn::Message(message) = pdn.on_turn(&mut bench(2), PortNo(0), false, &mut Effects::default()) else {
            panic!("a notification")
        };
        let expected = Envelope {
            flow: FlowId(7),
            src: HostId(1),
            dst: HostId(0),
            hash: 9,
            reverse_hash: 5,
            header: 20,
            ttl: 9,
            to: Envelope::default().to.other(),
            kind: Kind::Control,
            ..Envelope::default()
        };
        assert_eq!((message.envelope, pdn.messages()), (expected, 1));
    }

    #[test]
    fn four_ways_to_be_stranded_add_up() {
        let counts = NoticeCounts { overflowed: 1, next_hop_unaware: 10, expired: 100, lost: 1_000, ..NoticeCounts::default() };
        assert_eq!(counts.stranded(), 1_111);
    }

    #[test]
    fn losses_are_drawn_for_each_link_and_counted() {
        let mut pdn = Pdn::new(&PdnParams { loss: 0.25, ..params() }, &site(&["h0", "h1"])).unwrap();
        let lost = (0..4_000).filter(|_| pdn.loses(PortNo(0))).count();
        assert!((900..1_100).contains(&lost) && pdn.counts.lost == lost as u64, "{lost}");
        let mut never = Pdn::new(&params(), &site(&["h0", "h1"])).unwrap();
        assert!(!never.loses(PortNo(0)));
    }

    #[test]
    fn an_empty_frame_is_a_minimum_frame() {
        let v6 = Framing { ip: IpVersion::V6, ..Framing::ETHERNET };
        assert_eq!(message_frame(&Framing::ETHERNET, 20), 64);
        assert_eq!(message_frame(&v6, 44), 64);
        assert_eq!(message_frame(&Framing { header: 22, ..v6 }, 44), 66);
        assert_eq!(message_frame(&Framing { min_frame: 0, ..Framing::ETHERNET }, 20), 38);
    }

    #[test]
    fn it_is_in_the_registry() {
        let mechanisms = Mechanisms { pdn: Some(params()), ..Mechanisms::NONE };
        let states = mechanisms.at(&site(&["h0", "h1"]));
        assert!(matches!(states[..], [MechanismState::Pdn(_)]) && states[0].kind().profile.owns(IPV6_WITH_NOTICE));
        assert_eq!((mechanisms.signals(), Mechanisms::that_signal(Signals::LOST)), (Signals::LOST, vec!["pdn"]));
    }
}
