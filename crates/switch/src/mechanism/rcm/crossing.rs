//! RCC at a combined input- and output-queued switch: a held packet waits at its input, and joins its virtual output queue when
//! its window permits. Source: RCM §3.4, §4.1 (the switch).

use super::cfr::Tuple;
use super::Rcm;
use crate::mechanism::{Arrival, Effect, Effects, Node, PortNo, Verdict};

/// Number of largest frames on their way to a wire that keep it busy: one crosses while another waits for it.
const FRAMES: u64 = 2;

impl Rcm {
    /// True if an output has enough frames on the way to it to keep its wire busy without harmful flows.
    fn is_busy(&self, sendable: u64) -> bool {
        sendable >= FRAMES * u64::from(self.control.bounds.floor)
    }

    /// Decides about a packet of a harmful flow, or of a flow with held packets, at a combined switch: it joins its virtual
    /// output queue where its window permits and nothing waits before it.
    pub(super) fn control_crossing(
        &mut self,
        node: &mut dyn Node,
        p: &Arrival<'_>,
        tuple: Tuple,
        port: PortNo,
        fx: &mut Effects,
    ) -> Verdict {
        if p.from.is_none() {
            return Verdict::Pass; // it was held
        }
        let (now, class, packet) = (node.now(), p.envelope.class, (p.id, p.envelope.frame));
        let how = (self.is_busy(node.sendable_bytes(port)), self.paces(port));
        let control = &mut self.ports[port.index()].control;
        if control.is_empty() && !node.is_paused(port, class) && control.passes(now, &self.control, packet, how) {
            return Verdict::Pass;
        }
        // What is ahead of it in its virtual output queue stays ahead.
        self.hold(now, p, (port, tuple), || 0, fx);
        if !how.0 {
            self.look_soon(port, fx); // what is held before it may be of a class that is paused
        } else if how.1 {
            self.wait_for_window(port, fx);
        }
        Verdict::Hold
    }

    /// Releases held packets of a port into their virtual output queues, as many as its window allows or its wire needs to stay
    /// busy.
    pub(super) fn let_cross(&mut self, node: &mut dyn Node, port: PortNo, fx: &mut Effects) {
        let (now, paces) = (node.now(), self.paces(port));
        let mut sendable = node.sendable_bytes(port);
        while !self.ports[port.index()].control.is_empty() {
            let how = (self.is_busy(sendable), paces);
            let control = &mut self.ports[port.index()].control;
            let Some((packet, frame)) = control.release(now, &self.control, how, |class| node.is_paused(port, class)) else {
                if paces {
                    self.wait_for_window(port, fx);
                }
                return;
            };
            sendable += u64::from(frame);
            self.counts.released += 1;
            fx.push(Effect::Forward { packet, port });
            if node.is_idle(port) {
                return; // it leaves at once, and what is next is looked at then
            }
        }
    }
}
