//! Drop notifications between the switch that dropped a packet and the end that sent it: raised, queued, carried, taken off.
//!
//! A frame carries its notification on one link only: it is attached when the frame's first bit leaves, and taken off when its
//! last has arrived. In between the packet's `frame` is so much longer; what is carried stands here, by packet.

use crate::fib::NextHop;
use crate::host::Protocol;
use crate::link::{FarEnd, Link};
use crate::pool::PacketId;
use crate::port::{Owner, Port};
use crate::world::World;
use fanin_packet::{Framing, IpVersion, Notification, Operation, Packet};
use fanin_switch::{empty_frame, notice_of, tells_of, DropReason, NoticeQueue, PdnParams};
use fanin_transport::{NoticeOutcome, TransportConfig};
use fanin_units::{Bytes, Purpose, Stream};
use std::collections::BTreeMap;

/// What has become of notifications. At any time raised = overflowed + no_way + expired + lost + on the way + reached, and
/// reached = repaired + known + arrived + unknown + refused + unheard + ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoticeCounts {
    /// Drops that a switch told of.
    pub raised: u64,
    /// Times that a notification left at the end of a frame that was going anyway.
    pub attached: u64,
    /// Times that one left in an empty frame.
    pub empty_frames: u64,
    /// Found the notification queue full.
    pub overflowed: u64,
    /// The next node knows nothing of notifications, or there is none.
    pub no_way: u64,
    /// Had crossed as many switches as they may.
    pub expired: u64,
    /// Got lost on a link, by `loss`.
    pub lost: u64,
    /// Made the sender send something again.
    pub repaired: u64,
    /// Told what the sender knew.
    pub known: u64,
    /// Told of data that had arrived.
    pub arrived: u64,
    /// Told of what the sender does not have in flight.
    pub unknown: u64,
    /// Asked for an operation that there is not.
    pub refused: u64,
    /// Came to a transport without `drop_notification`.
    pub unheard: u64,
    /// Came after the flow's end.
    pub ended: u64,
}

impl NoticeCounts {
    /// Those that came to the host of the packet's sender.
    pub fn reached(&self) -> u64 {
        self.repaired + self.known + self.arrived + self.unknown + self.refused + self.unheard + self.ended
    }

    /// Those that never come to a host.
    pub fn stranded(&self) -> u64 {
        self.overflowed + self.no_way + self.expired + self.lost
    }
}

/// A notification on a link.
struct Carried {
    notification: Notification,
    /// Nothing else is in the frame.
    alone: bool,
}

/// All of a world's notifications.
pub struct Notify {
    operation: Operation,
    /// Whether acknowledgments without data are told of.
    acks: bool,
    /// The queue of each port, by link; none where either end of the link knows nothing of notifications.
    queues: Vec<Option<NoticeQueue>>,
    /// Probability of being lost on a link, and what draws for each link.
    loss: f64,
    draws: Vec<Stream>,
    seed: u64,
    /// Whether a switch knows them.
    aware: Vec<bool>,
    /// What frames on the wire carry.
    carried: BTreeMap<PacketId, Carried>,
    /// Frames on the wire with nothing else in them.
    pub alone: u64,
    empty_frame: u16,
    /// Of packets and so of notifications.
    ip: IpVersion,
    pub counts: NoticeCounts,
}

impl Notify {
    /// Notifications as `params` has them, and no port with a queue.
    pub fn new(params: &PdnParams, framing: &Framing, aware: Vec<bool>, seed: u64) -> Self {
        Notify {
            operation: params.operation(),
            acks: params.acks,
            queues: Vec::new(),
            loss: params.loss,
            draws: Vec::new(),
            seed,
            aware,
            carried: BTreeMap::new(),
            alone: 0,
            empty_frame: empty_frame(framing),
            ip: framing.ip,
            counts: NoticeCounts::default(),
        }
    }

    /// Adds the next port, with a queue where it belongs to a switch and both ends know notifications.
    pub fn add_port(&mut self, params: &PdnParams, link: &mut Link, port: &Port, far_end_knows: bool) {
        let knows = matches!(port.owner, Owner::Switch(s) if self.aware[s as usize]) && far_end_knows;
        if knows {
            link.look_at_arrivals();
        }
        self.draws.push(Stream::new(self.seed, Purpose::NoticeLoss, self.queues.len() as u64));
        self.queues.push(knows.then(|| NoticeQueue::new(params, self.ip)));
    }

    /// Notifications that are queued or on a wire.
    pub fn on_the_way(&self) -> u64 {
        self.queues.iter().flatten().map(|queue| queue.len() as u64).sum::<u64>() + self.carried.len() as u64
    }

    /// The longest notification queue that there was: port and bytes; the first port of several.
    pub fn peak(&self) -> Option<(usize, Bytes)> {
        let peaks = self.queues.iter().enumerate().filter_map(|(l, queue)| Some((l, queue.as_ref()?.peak_bytes())));
        peaks.rev().max_by_key(|(_, bytes)| *bytes).filter(|(_, bytes)| bytes.get() > 0)
    }

    /// Whether the notification that has come over link `l` is lost there.
    fn is_lost(&mut self, l: usize) -> bool {
        self.loss > 0.0 && self.draws[l].unit() < self.loss
    }

    /// Bytes of a frame that are a notification.
    fn carried_bytes(&self, packet: PacketId) -> u16 {
        if self.carried.contains_key(&packet) {
            self.ip.notice()
        } else {
            0
        }
    }
}

/// A packet without content that goes the way of a notification.
fn in_its_place(notification: &Notification) -> Packet {
    let mut p = Packet::default();
    p.flow = notification.flow;
    p.dst = notification.sender;
    p.to = notification.to;
    p.hash = notification.hash;
    p
}

impl World {
    /// A packet is dropped at port `l`: its sender is told.
    ///
    /// Connections that have ended have nothing in flight that matters, and their hosts are forgotten: no notification.
    pub(crate) fn raise_notice(&mut self, l: usize, packet: PacketId, reason: DropReason) {
        let Some(notify) = self.notify.as_deref_mut() else { return };
        let Owner::Switch(s) = self.ports[l].owner else { return };
        if !notify.aware[s as usize] || !tells_of(reason) {
            return;
        }
        let p = &self.pool[packet];
        let Some(notice) = notice_of(p, notify.operation, notify.acks) else { return };
        let Some(id) = self.conns.of(p.flow) else { return };
        let flow = &self.conns[id].flow;
        notify.counts.raised += 1;
        let to = p.to.other();
        let notification = Notification {
            flow: p.flow,
            to,
            sender: flow.peer(p.to),
            receiver: p.dst,
            hash: flow.hash[p.to as usize],
            notice,
            ttl: self.ttl,
        };
        self.route_notice(s, notification);
    }

    /// Queues a notification at the port of switch `s` towards the sender: the port that an acknowledgment would take.
    ///
    /// Where several paths are equal the switch chooses by its usual rule, of a packet with the hash of the acknowledgments.
    fn route_notice(&mut self, s: u32, notification: Notification) {
        let l = match self.fib.lookup(s, notification.sender) {
            NextHop::One(link) => Some(link as usize),
            NextHop::Several(links) => {
                let p = in_its_place(&notification);
                let switch = &mut self.switches[s as usize];
                let i = switch.paths.pick(self.now, &p, links.len(), switch.seed, &mut switch.rng);
                Some(links[i] as usize)
            }
            NextHop::None => None,
        };
        let Some(notify) = self.notify.as_deref_mut() else { return };
        let queue = l.and_then(|l| Some((l, notify.queues[l].as_mut()?)));
        let Some((l, queue)) = queue else {
            notify.counts.no_way += 1;
            return;
        };
        if !queue.push(notification) {
            notify.counts.overflowed += 1;
            return;
        }
        if self.links[l].free_at <= self.now.ps() {
            self.send_notice_alone(l);
        }
        self.arm_for_notices(l);
    }

    /// Sets a departure event where notifications wait and none is set.
    pub(crate) fn arm_for_notices(&mut self, l: usize) {
        let Some(notify) = self.notify.as_deref() else { return };
        if notify.queues[l].as_ref().is_none_or(NoticeQueue::is_empty) {
            return;
        }
        self.arm(l);
    }

    /// A frame is about to leave port `l`: a notification goes with it if one waits and there is room.
    pub(crate) fn attach_notice(&mut self, l: usize, packet: PacketId) {
        let Some(notify) = self.notify.as_deref_mut() else { return };
        let Some(queue) = notify.queues[l].as_mut() else { return };
        let Some(notification) = queue.attach(self.pool[packet].frame) else { return };
        self.pool[packet].frame += notify.ip.notice();
        notify.carried.insert(packet, Carried { notification, alone: false });
        notify.counts.attached += 1;
    }

    /// Port `l` has nothing else to send: the first notification that waits leaves in an empty frame.
    pub(crate) fn send_notice_alone(&mut self, l: usize) {
        let Some(notify) = self.notify.as_deref_mut() else { return };
        let Some(notification) = notify.queues[l].as_mut().and_then(NoticeQueue::attach_to_nothing) else { return };
        let packet = self.pool.take();
        self.pool[packet] = in_its_place(&notification);
        self.pool[packet].frame = notify.empty_frame;
        notify.carried.insert(packet, Carried { notification, alone: true });
        notify.alone += 1;
        notify.counts.empty_frames += 1;
        self.send(l, packet, false);
    }

    /// A frame has come over a link whose ends know notifications: takes off what it carries. True when there was nothing
    /// else in it.
    pub(crate) fn detach_notice(&mut self, l: usize, packet: PacketId) -> bool {
        let Some(notify) = self.notify.as_deref_mut() else { return false };
        let Some(Carried { mut notification, alone }) = notify.carried.remove(&packet) else { return false };
        let p = self.pool[packet];
        if alone {
            notify.alone -= 1;
            self.pool.free(packet);
        } else {
            self.pool[packet].frame -= notify.ip.notice();
        }
        if notify.is_lost(l) {
            notify.counts.lost += 1;
            return alone;
        }
        match self.links[l].far_end() {
            FarEnd::Host(host) => {
                if self.observed {
                    self.capture_notice(host, &notification, alone.then_some(&p));
                }
                self.hand_over_notice(&notification);
            }
            FarEnd::Switch(s) => {
                notification.ttl -= 1;
                if notification.ttl == 0 {
                    notify.counts.expired += 1;
                } else {
                    self.route_notice(s, notification);
                }
            }
        }
        alone
    }

    /// A notification has come to the host of the packet's sender.
    fn hand_over_notice(&mut self, notification: &Notification) {
        let Some(notify) = self.notify.as_deref_mut() else { return };
        let counts = &mut notify.counts;
        let Some(id) = self.conns.of(notification.flow) else {
            counts.ended += 1;
            return;
        };
        let conn = &mut self.conns[id];
        debug_assert_eq!(conn.flow.host(notification.to), notification.sender.0, "a notification at another host");
        let Protocol::Tcp(endpoint) = &mut conn.ends[notification.to as usize].protocol else { return };
        let TransportConfig::Tcp(cfg) = &self.transports[usize::from(conn.flow.spec.transport)].1;
        let counter = match endpoint.on_notice(cfg, self.now, &notification.notice) {
            NoticeOutcome::Repairs => &mut counts.repaired,
            NoticeOutcome::Known => &mut counts.known,
            NoticeOutcome::Arrived => &mut counts.arrived,
            NoticeOutcome::Unknown => &mut counts.unknown,
            NoticeOutcome::Refused => &mut counts.refused,
            NoticeOutcome::Off => &mut counts.unheard,
        };
        *counter += 1;
        self.after_input(id, notification.to);
    }

    /// Frame bytes of a packet as it stood in its queue.
    pub(crate) fn queued_frame(&self, packet: PacketId) -> u16 {
        let carried = self.notify.as_deref().map_or(0, |notify| notify.carried_bytes(packet));
        self.pool[packet].frame - carried
    }

    /// What has become of notifications so far; `None` where there are none.
    pub fn notices(&self) -> Option<NoticeCounts> {
        self.notify.as_deref().map(|notify| notify.counts)
    }

    /// Notifications that are queued or on a wire.
    pub fn notices_on_the_way(&self) -> u64 {
        self.notify.as_deref().map_or(0, Notify::on_the_way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Destination;
    use crate::world::Pause;
    use fanin_scenario::Scenario;
    use fanin_units::{HostId, LinkId};
    use std::path::Path;

    /// No shortest path is longer back than forth, so a notification expires where tables have a loop only, as while real ones
    /// change: it crosses as many links as its time to live, to and fro, and is counted.
    #[test]
    fn in_a_loop_a_notification_expires() {
        let text = r#"
            duration = "3ms"
            [topology]
            kind = "dumbbell"
            left = 8
            right = 1
            [switch]
            buffer = { kind = "static", per_port = "30KB" }
            notification = { kind = "pdn", queue = "20KB" }
            ttl = 9
            [transport]
            kind = "tcp"
            drop_notification = true
            handshake = false
            initial_window = 40
            max_retries = 1
            [[traffic]]
            kind = "incast"
            receiver = "h8"
            size = "50KB"
            "#;
        let scenario = Scenario::from_toml(text, Path::new(".")).expect("a valid scenario");
        let mut world = crate::setup::world(&scenario, &Destination::Memory).expect("a world");
        let link =
            |world: &World, name: &str| world.ports.iter().position(|p| p.name.to_string() == name).expect("a port") as u32;
        // The drops are at the left switch. To the servers it sends by the right one, which sends back.
        let (over, servers) = (link(&world, "left->right"), scenario.routes().attachment_of(HostId(0)));
        world.fib.set(0, usize::from(servers), &[LinkId(over)]);
        while world.advance(50).expect("tables in memory") == Pause::Budget {
            let c = world.notify.as_deref().expect("notifications").counts;
            assert_eq!(c.raised, c.stranded() + world.notices_on_the_way() + c.reached(), "{c:?}");
        }
        let c = world.notices().expect("notifications");
        assert!(c.raised > 20 && c.expired == c.raised, "{c:?}");
        assert_eq!(c.attached + c.empty_frames, 9 * c.expired, "{c:?}");
        assert_eq!(world.in_flight(), 0);
    }
}
