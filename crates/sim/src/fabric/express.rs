//! Express queue of a port, for trimmed packets: it leaves before the queues of classes, so many of its packets for each of
//! theirs ([`Express`]).

use super::switch::{Fabric, SwitchNode};
use crate::core::Core;
use fanin_packet::PacketId;
use fanin_switch::{DropReason, Express, Hooks, MechanismState, PortNo};
use fanin_units::{Bytes, LinkId};

/// The mechanism that has express queues, where no other has a say in packets before they join a queue.
pub fn headers_alone(mechanisms: &[MechanismState]) -> Option<u8> {
    let at = mechanisms.iter().position(|m| m.overtakes(|_| ()).is_some())?;
    let others = mechanisms.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, m)| m.hooks()).fold(Hooks::NONE, Hooks::with);
    let say = Hooks::BEFORE_PORTS.with(Hooks::INPUTS).with(Hooks::EGRESS).with(Hooks::DEPARTED);
    (!others.any(say)).then_some(at as u8)
}

impl SwitchNode {
    /// Port with the longest express queue that there was, and its bytes: the first of several, `None` where all were empty.
    pub fn express_peak(&self, core: &Core) -> Option<(PortNo, Bytes)> {
        let mut most = None;
        for (port, l) in (0..).map(PortNo).zip(&self.ports) {
            let queues = core.ports[*l].queues.as_deref();
            let peak = queues.and_then(|queues| queues.express.as_deref()).map_or(Bytes(0), Express::peak);
            if peak > most.map_or(Bytes(0), |(_, most)| most) {
                most = Some((port, peak));
            }
        }
        most
    }
}

impl Fabric {
    /// Enqueues a trimmed packet at a port: into the express queue, or onto the wire if that is free; or drops it. True: nobody
    /// else has a use for it.
    #[inline(never)]
    pub fn join_headers(&mut self, core: &mut Core, l: LinkId, packet: PacketId) -> bool {
        core.catch_up_general(l);
        if core.links[l].free_at <= core.now.ps() {
            core.stamp_at(l, packet);
            core.start_past_queue(l, core.now, packet);
        } else if core.has_express_room(l, core.pool[packet].frame) {
            core.stamp_at(l, packet);
            self.join_express(core, l, packet);
        } else {
            self.drop_packet(core, l, packet, DropReason::HEADERS_FULL);
        }
        true
    }

    /// Puts a packet into a port's express queue, which has room for it, while the port is not idle.
    pub fn join_express(&mut self, core: &mut Core, l: LinkId, packet: PacketId) {
        let frame = core.pool[packet].frame;
        core.leave_fast_path(l);
        if let Some(express) = core.express(l) {
            express.push(packet, frame);
        }
        core.send_later(l);
    }
}

impl Core {
    fn express(&mut self, l: LinkId) -> Option<&mut Express> {
        self.ports[l].queues.as_deref_mut()?.express.as_deref_mut()
    }

    /// True if the express queue of a port has room for a frame.
    pub fn has_express_room(&mut self, l: LinkId, frame: u16) -> bool {
        self.catch_up(l);
        self.express(l).is_some_and(|express| express.fits(frame))
    }

    /// Takes the next packet off a port's express queue, if that may send now. `data`: packets of classes wait.
    pub fn pop_express(&mut self, l: LinkId, data: bool) -> Option<PacketId> {
        self.express(l)?.pop(data)
    }
}
