//! Parameters of RIMM, their checks, and its counters.

use super::header::NUMBER_BYTES;
use crate::config::MIN_FRAME;
use crate::mechanism::{names_it, Context, PortSite};
use crate::{PortSettings, Unit};
use fanin_params::{choice, counters, names, params, CounterDef, Cx, Node, Param};
use fanin_units::{Amount, Bytes, Span};

names! {
    /// Way in which the ingress learns that a queue has reached α.
    pub enum AlertBy {
        /// A message by way of a neighbour, as needed where the ingress cannot read the egress. Source: RIMM §III-A.1.
        "message" => Message,
        /// Direct reading of the queue, which the paper's hardware cannot do: the difference to `message` is the message's
        /// cost.
        "at_once" => AtOnce,
    }
}

names! {
    /// Start of `give_up` for a pair of sequence numbers.
    pub enum GiveUpWhen {
        /// Last progress of the detour: the last release of one of the pair's packets and, with `release` = drained, the last packet that
        /// met a port which has not run empty since its alert.
        "stalled" => Stalled,
        /// Start of the detour, the paper to the letter ("packet detouring lasts longer than a user-defined period of
        /// time"): with bursts longer than `give_up` each detour ends early, out of order.
        "outstanding" => Outstanding,
    }
}

names! {
    /// Ports whose packets take detours.
    pub enum Detours {
        /// Ports that have neighbours from which everything returns, by those alone: all shortest paths of such a neighbour
        /// to the hosts behind the port lead over this switch. In a leaf–spine network: ports of leaves to hosts. Source:
        /// RIMM §III-A.1 ("guaranteed to return").
        "returning" => Returning,
        /// All ports, by any neighbour. Where the neighbour knows another way, packets take it and are out of order.
        "all" => All,
    }
}

names! {
    /// Interval at which a neighbour is chosen.
    pub enum Neighbour {
        /// A choice for each detour of each packet. Source: RIMM §III-A.2.
        "per_packet" => PerPacket,
        /// One choice for all packets of a pair that are on detours at the time, as long as the neighbour has room.
        /// Deviation: not in the paper.
        "per_flow" => PerFlow,
    }
}

names! {
    /// Cost of a detour in a packet's time to live.
    pub enum Hops {
        /// Two hops per detour, like any path; a packet with fewer than eight left takes no detour.
        "spent" => Spent,
        /// None: the switch restores the two hops when the packet is back. Only `give_up` ends its detour.
        "restored" => Restored,
    }
}

params! {
    /// Drained: a flow's detour ends as soon as all its packets are back (Sa = Sf). Source: RIMM §V, which could not build
    /// it: two accesses to one register.
    pub struct DrainedParams {}
}
params! {
    /// Flowlet: a flow's detour ends with a pause of the flow. Source: RIMM §III-C.
    pub struct FlowletGap {
        /// χ: gap between two new packets that ends the detour. Deviation: the paper has "a few milliseconds"; flows of a
        /// full queue have no such gap.
        pub chi: Span = Span::from_us(500), in Span::from_ns(1)..=Span::from_ms(4_000);
    }
}
params! {
    /// Unordered: packets have no numbers, and go on as soon as the alert is off, in any order. Source: RIMM §IV-B
    /// ("detour-based forwarding").
    pub struct UnorderedParams {}
}
choice! {
    /// Condition that ends a flow's detour after the alert.
    pub enum Release {
        /// Return of all packets of the flow.
        "drained" => Drained(DrainedParams),
        /// Flowlet: a flow's detour ends with a pause of the flow. Source: RIMM §III-C.
        "flowlet" => Flowlet(FlowletGap),
        /// End of the alert; packets are not kept in order.
        "unordered" => Unordered(UnorderedParams),
    }
}

/// Default of `longest`: the paper's bursts of 5 MB take 8 ms at the paper's rates.
const LONGEST: Span = Span::from_ms(10);
/// Default of `repeat`.
const REPEAT: Span = Span::from_us(100);
/// Largest depth that a header can state, of cells of 80 B.
const ROOM: Bytes = Bytes(5_242_800);

params! {
    /// RIMM: packets for a port whose queue has reached α take a detour by a neighbouring switch, and go on in order.
    /// Source: RIMM.
    pub struct RimmParams {
        /// α: depth of a queue from which on its packets take detours. Source: RIMM §IV (20,000 of 24,000 cells).
        pub alpha: Amount = Amount::Cells(20_000);
        /// Way in which the ingress learns that a queue has reached α.
        pub alert: AlertBy = AlertBy::Message;
        /// Traffic class of messages; if absent, that of the packet whose headers the message copies, among whose class it
        /// then waits. Deviation: the paper does not say.
        pub message_class: Option<u8>, in 0u8..=7u8;
        /// Interval at which the message is repeated while the queue stays above α, as messages may be lost. Deviation: the
        /// paper repeats none.
        pub repeat: Span = REPEAT, in Span::from_us(1)..=Span::from_ms(4_000);
        /// Condition that ends a flow's detour after the alert.
        pub release: Release = Release::Drained(DrainedParams {});
        /// Time after which an alert counts as congestion: packets on detours are released, and the port has no detours
        /// until the next alert. A pair of sequence numbers is given up after the same time, counted by `give_up_when`: its
        /// new packets take no detour, the others go on once they are back and the alert is off. Source: RIMM §III-B, §V (1
        /// ms).
        pub give_up: Span = Span::from_ms(1), in Span::from_us(1)..=Span::from_ms(4_000);
        /// Start of `give_up` for a pair of sequence numbers.
        pub give_up_when: GiveUpWhen = GiveUpWhen::Stalled;
        /// Longest detour of a pair, from its first packet (Sa leaves Sf). Then the pair is given up even during an alert,
        /// and has no detours until the alert is off. Deviation: the paper's 1 ms is shorter than its own bursts of 5 MB.
        pub longest: Span = LONGEST, in Span::from_us(1)..=Span::from_ms(4_000);
        /// Ports whose packets take detours.
        pub detours: Detours = Detours::Returning;
        /// Occasion on which the neighbour with the least depth is chosen anew.
        pub neighbour: Neighbour = Neighbour::PerPacket;
        /// Depth from which on a neighbour gets no detours. Deviation: the paper has no bound; the default is the largest
        /// depth that a header can state, 65,535 cells.
        pub room: Bytes = ROOM, in Bytes(1)..;
        /// Number of hash bits that select a flow's pair of sequence numbers; flows that agree in them share a pair. Source:
        /// RIMM §III-B (12).
        pub hash_bits: u32 = 12, in 0..=16;
        /// Cost of a detour in TTL.
        pub hops: Hops = Hops::Spent;
        /// Largest frame between switches: a packet that RIMM's headers would make longer goes without them, and takes no
        /// detour.
        pub max_frame: Bytes = Bytes(9_216), in Bytes(76)..=Bytes(65_535);
        /// Switches without RIMM, by name, `*` stands for anything.
        pub unaware: Vec<String> = Vec::new();
    }
}

counters! {
    /// Detours by RIMM and messages about queues. At any time detoured = released + late + let_go + astray + dropped_away +
    /// packets on a detour (with `release` = unordered: packets have no numbers, and each detour counts as a new one), and
    /// messages_sent = messages_returned + messages_repeated + messages_overtaken + messages_lost + messages on the way.
    pub struct RimmCounts in "rimm" {
        /// Packets that started a detour.
        detoured,
        /// Packets that returned from a detour and took another one.
        redetoured,
        /// Packets released in order after their detour.
        released: success,
        /// Packets that returned after their pair was given up: they went on out of order, once the alert was off.
        late: failure,
        /// Packets that returned out of order and went on nevertheless: no neighbour, or no hops left (`by_reason`).
        let_go: failure,
        /// New packets that went on out of order, or to a queue above α: no neighbour, or no hops left (`by_reason`).
        stayed: failure,
        /// Packets on a detour that the neighbour forwarded by another path.
        astray,
        /// Packets dropped on a detour.
        dropped_away: failure,
        /// Detours of pairs that came to a bound: congestion, no release for `give_up`, or one of the next two.
        given_up: failure,
        /// Given-up detours that outlived the burst, by `give_up` after the port had run empty: packets came back so shuffled, or new ones
        /// joined so fast, that the pair was not drained.
        outlived: failure,
        /// Given-up detours that had lasted for `longest`, or for `give_up` with `give_up_when` = outstanding.
        overlong: failure,
        /// Times that an ingress learned of a queue at or above α.
        alerts,
        /// Messages sent for crossings of α at an egress, for the first time that the queue is empty after one, and repetitions.
        messages_sent,
        /// Crossings without a neighbour to send a message to.
        messages_unsent: failure,
        /// Messages that returned and told of a crossing.
        messages_returned: success,
        /// Messages that returned and told of a crossing that was known: repetitions.
        messages_repeated,
        /// Crossings that no message had told of when a later one returned, as its number shows. Where a queue went below α and back
        /// meanwhile, its alert began anew.
        messages_missed: failure,
        /// Messages that returned after a later one, and were ignored.
        messages_overtaken: failure,
        /// Messages dropped, or forwarded by another path at the neighbour.
        messages_lost: failure,
    }
}

/// Largest values that RIMM keeps besides its counters.
pub(super) const PEAKS: &[CounterDef] = &[
    CounterDef::step("longest_detour_ps", "From a packet's first detour until it went on [ps]."),
    CounterDef::step("longest_idle_ps", "Longest time for which the detour of a pair went on after its port had run empty [ps]."),
    CounterDef::step("most_detours", "Detours of one packet, one after the other."),
    CounterDef::step("most_out", "Sa − Sf: packets of one pair that were out together."),
    CounterDef::step("state_bytes", "Registers of a switch [B]."),
    CounterDef::step("paper_state_bytes", "The same after the paper's formula, 4·n + 8·2^`hash_bits` for n ports [B]."),
];

impl RimmParams {
    /// Reports errors that single parameters cannot show.
    pub(super) fn check(&self, context: &Context<'_>, cx: &mut Cx) {
        let full = context
            .traffic
            .transports
            .iter()
            .map(|t| u64::from(t.mtu + context.frames.framing.header + context.frames.trailer))
            .max();
        let alpha: Node = self.alpha.to_value().into();
        cx.key("alpha", |cx| {
            if self.alpha.count() == 0 || self.alpha.count() >= u64::from(u32::MAX) {
                cx.error(Some(&alpha), "is no depth that a queue can cross", Some("from 1 to 4294967294".to_string()));
            }
            let size = |amount| in_unit_of(self.alpha, amount, context.cell());
            let reaches = |most: &Option<Amount>| {
                most.map(size).is_none_or(|most| Unit::of(most) != Unit::of(self.alpha) || most.count() >= self.alpha.count())
            };
            let most = context.most_of_ports();
            if let Some(largest) = most.iter().flatten().max_by_key(|most| size(**most).count()) {
                if !most.iter().any(reaches) {
                    let message = format!("is more than any port may hold, {largest}: there are no detours");
                    cx.warn(Some(&alpha), message, None).suggestion =
                        Some(format!("five sixths of it, as the paper has: {}", five_sixths(*largest)));
                }
            }
            self.check_marks(context, full, cx);
        });
        if let Some(class) = self.message_class {
            let why = match (self.alert, context.has_classes()) {
                (AlertBy::AtOnce, _) => Some("there are no messages with alert = \"at_once\""),
                (_, false) => Some("no port has queues for several classes"),
                _ => None,
            };
            if let Some(why) = why {
                let accepted = "a scheduling with classes and alert = \"message\", or no such key".to_string();
                let message = format!("has no effect: {why}");
                cx.key("message_class", |cx| cx.error(Some(&class.to_value().into()), message, Some(accepted)).severity);
            }
        }
        let stated = Bytes(u64::from(u16::MAX) * u64::from(context.cell()));
        if self.room > stated && self.room != ROOM {
            cx.key("room", |cx| {
                let message = format!("has no effect: no header can state more than {stated}, 65535 cells of switch.cell");
                cx.warn(Some(&self.room.to_value().into()), message, None);
            });
        }
        if let Some(full) = full.filter(|full| self.room.get() < *full) {
            cx.key("room", |cx| {
                let message = format!("is less than a frame of {full} B: a neighbour in whose queue one waits gets no detours");
                let problem = cx.warn(Some(&self.room.to_value().into()), message, None);
                problem.suggestion = Some(format!("more than {full} B"));
            });
        }
        if let Release::Flowlet(flowlet) = &self.release {
            let (key, bound) = match self.give_up_when {
                GiveUpWhen::Stalled => ("longest", self.longest),
                GiveUpWhen::Outstanding => ("give_up", self.give_up),
            };
            if flowlet.chi >= bound {
                cx.key("release", |cx| {
                    cx.key("chi", |cx| {
                        let value = flowlet.chi.to_value().into();
                        let message = format!("has no effect: after {key}, {bound}, detours end anyway");
                        cx.warn(Some(&value), message, None).suggestion = Some(format!("a gap below {key}"));
                    });
                });
            }
        }
        let orders = !matches!(self.release, Release::Unordered(_));
        if orders && self.give_up_when == GiveUpWhen::Stalled && self.longest < self.give_up {
            cx.key("longest", |cx| {
                let message = format!("is below give_up, {}, which then ends alerts but no detours", self.give_up);
                cx.warn(Some(&self.longest.to_value().into()), message, None).suggestion = Some("more than give_up".to_string());
            });
        }
        if orders && self.give_up_when == GiveUpWhen::Outstanding && self.longest != LONGEST {
            cx.key("longest", |cx| {
                let message = "has no effect: with give_up_when = \"outstanding\" detours end after give_up";
                let accepted = Some("no such key, or give_up_when = \"stalled\"".to_string());
                cx.error(Some(&self.longest.to_value().into()), message, accepted).severity
            });
        }
        if self.alert == AlertBy::AtOnce && self.repeat != REPEAT {
            cx.key("repeat", |cx| {
                let message = "has no effect: there are no messages with alert = \"at_once\"";
                let accepted = Some("alert = \"message\", or no such key".to_string());
                cx.error(Some(&self.repeat.to_value().into()), message, accepted).severity
            });
        }
        self.check_ports(context, cx);
        if matches!(self.release, Release::Unordered(_)) {
            let set = [
                ("hash_bits", self.hash_bits != 12, self.hash_bits.to_value()),
                ("hops", self.hops != Hops::Spent, self.hops.to_value()),
                ("longest", self.longest != LONGEST, self.longest.to_value()),
                ("give_up_when", self.give_up_when != GiveUpWhen::Stalled, self.give_up_when.to_value()),
                ("neighbour", self.neighbour != Neighbour::PerPacket, self.neighbour.to_value()),
            ];
            for (key, _, value) in set.into_iter().filter(|(_, set, _)| *set) {
                let accepted = "another release, or no such key".to_string();
                let message = "has no effect: packets without numbers are not known when they are back";
                cx.key(key, |cx| cx.error(Some(&value.into()), message, Some(accepted)).severity);
            }
        }
        for transport in context.traffic.transports {
            let full =
                u64::from(transport.mtu + context.frames.framing.header + context.frames.trailer) + u64::from(NUMBER_BYTES);
            if full > self.max_frame.get() {
                let name = transport.name;
                cx.key("max_frame", |cx| {
                    let message =
                        format!("has no room for the headers of a full frame of transport {name}, which takes no detours");
                    cx.warn(Some(&self.max_frame.to_value().into()), message, None).suggestion =
                        Some(format!("at least {full} B"));
                });
            }
        }
        cx.key("unaware", |cx| context.check_unaware(&self.unaware, false, ("nothing is detoured", "no rimm"), cx));
    }

    /// Warns of an α beyond the queue from which each port marks every packet, where all senders act on marks.
    fn check_marks(&self, context: &Context<'_>, full: Option<u64>, cx: &mut Cx) {
        let traffic = &context.traffic;
        let act = traffic.is_complete && traffic.datagram == 0 && traffic.transports.iter().all(|t| t.uses_ecn);
        let below = |amount: Amount| {
            let amount = match (self.alpha, amount) {
                (Amount::Bytes(_), Amount::Packets(n)) => Amount::Bytes(n.saturating_mul(full.unwrap_or(MIN_FRAME))),
                (Amount::Cells(_), Amount::Packets(n)) => {
                    Amount::Cells(n.saturating_mul(full.unwrap_or(MIN_FRAME).div_ceil(u64::from(context.cell()))))
                }
                _ => in_unit_of(self.alpha, amount, context.cell()),
            };
            amount.count() < self.alpha.count()
        };
        let marks = |port: &PortSettings| {
            let all = port.markings().into_iter().map(|(_, marking)| marking.marks_all_from().filter(|amount| below(*amount)));
            all.collect::<Option<Vec<Amount>>>().and_then(|all| all.into_iter().max_by_key(|amount| amount.count()))
        };
        let all: Option<Vec<Amount>> = context.ports.iter().map(marks).collect();
        let Some(first) = all.filter(|_| act && !traffic.transports.is_empty()).and_then(|all| all.first().copied()) else {
            return;
        };
        let message = format!(
            "is above the queue from which ports mark every packet, {first}: senders that act on marks keep it below, and only the first \
             windows of many flows make detours"
        );
        cx.warn(Some(&self.alpha.to_value().into()), message, None).suggestion = Some(format!("less than {first}"));
    }

    /// Warns where no packet comes back from a detour, or some go astray.
    fn check_ports(&self, context: &Context<'_>, cx: &mut Cx) {
        let sites = context.network.sites.iter().filter(|site| !names_it(&self.unaware, &site.name));
        let aware = |port: &PortSite| !port.to_host && port.peer_runs.contains(&"rimm");
        let (mut some, mut astray) = (false, Vec::new());
        for site in sites {
            for (number, port) in site.ports.iter().enumerate() {
                let others = || site.ports.iter().enumerate().filter(|(other, to)| *other != number && aware(to));
                let is_back = |(other, _): &(usize, &PortSite)| port.back.iter().any(|back| back.index() == *other);
                some |= others().any(|other| is_back(&other));
                if others().any(|other| !is_back(&other)) {
                    astray.push(format!("{}->{}", site.name, port.peer));
                }
            }
        }
        let Some(first) = astray.first() else { return };
        match self.detours {
            Detours::All => {
                let rest = if astray.len() > 1 { format!(" and {} other ports", astray.len() - 1) } else { String::new() };
                let message = format!(
                    "sends packets astray that would leave by {first}{rest}: some neighbour has another way to what is behind it"
                );
                cx.key("detours", |cx| {
                    cx.warn(Some(&self.detours.to_value().into()), message, None).suggestion = Some("\"returning\"".to_string());
                });
            }
            Detours::Returning if !some => {
                let message =
                    "has no effect: each neighbour of each port has another way to what is behind it, so that nothing comes back";
                cx.warn(None, message, None);
            }
            Detours::Returning => {}
        }
    }
}

/// Five sixths of an amount: α of 20,000 of 24,000 cells. Source: RIMM §IV.
pub(super) fn five_sixths(amount: Amount) -> Amount {
    match amount {
        Amount::Bytes(n) => Amount::Bytes(n * 5 / 6),
        Amount::Packets(n) => Amount::Packets(n * 5 / 6),
        Amount::Cells(n) => Amount::Cells(n * 5 / 6),
    }
}

/// Amount of a buffer in the unit of another amount, where the conversion makes sense.
pub(super) fn in_unit_of(other: Amount, buffer: Amount, cell: u32) -> Amount {
    match (other, buffer) {
        (Amount::Bytes(_), Amount::Cells(n)) => Amount::Bytes(n.saturating_mul(u64::from(cell))),
        (Amount::Packets(_), Amount::Bytes(n)) => Amount::Packets(n / MIN_FRAME),
        (Amount::Packets(_), Amount::Cells(n)) => Amount::Packets(n),
        (Amount::Cells(_), Amount::Bytes(n)) => Amount::Cells(n / u64::from(cell) + n / MIN_FRAME),
        _ => buffer,
    }
}
