//! RCC at a port: packets of harmful flows are held, and released within their window. Source: RCM §3.4.

use super::cfr::Tuple;
use super::{Port, Rcm, Task};
use crate::mechanism::{Arrival, Effect, Effects, Node, PortNo, Verdict};
use fanin_units::{Bytes, Time, TrafficClass};

/// Packets of a flow in the queue of a port, which leave before the held packets of that flow.
pub(super) fn queued(node: &mut dyn Node, port: PortNo, class: TrafficClass, tuple: &Tuple) -> u32 {
    let places = 0..node.waiting(port, class);
    let waits = |place| node.waiting_at(port, class, place).is_some_and(|(other, _)| Tuple::of(&other) == *tuple);
    places.filter(|place| waits(*place)).count() as u32
}

impl Rcm {
    /// True if released packets join the queue of their class, from which the scheduler takes them: at a combined switch, and
    /// where a port has several classes. Elsewhere it leaves past the queue.
    pub(super) fn joins(&self, node: &mut dyn Node, port: PortNo) -> bool {
        self.combined || node.queues(port) > 1
    }

    /// Ends the wait for the window at a port that no longer paces. Not to be called while a packet is being held, which could
    /// leave before it is counted where it came in.
    pub(super) fn wake(&mut self, port: PortNo, fx: &mut Effects) {
        let control = &self.ports[port.index()].control;
        if control.is_stalled() && !self.paces(port) {
            self.ports[port.index()].control.wake();
            fx.push(Effect::Arm(port));
        }
    }

    /// Releases held packets of flows that are harmful no longer into the queue: flows that the neighbour downstream does not
    /// name, or all flows when the congestion is over. At a root, held flows stay harmful even when overwritten in its CAM.
    pub(super) fn let_go(&mut self, port: PortNo, fx: &mut Effects) {
        let at = &mut self.ports[port.index()];
        if at.control.is_empty() {
            return;
        }
        let Port { control, local, remote, named, .. } = at;
        let harmful = |tuple: &Tuple| if *remote > 0 { named.has(tuple) } else { *local > 0 };
        for packet in control.let_go(harmful) {
            self.counts.released += 1;
            fx.push(Effect::Forward { packet, port });
        }
    }

    /// True if harmful flows of a port do not use what others leave.
    pub(super) fn paces(&self, port: PortNo) -> bool {
        self.paces && self.ports[port.index()].remote > 0
    }

    /// Time at which the window of a port expires; `None`: no window is open.
    pub(super) fn window_ends(&self, port: PortNo) -> Option<Time> {
        let at = &self.ports[port.index()];
        at.control.window().map(|w| at.control.since + at.rate.time_to_send(Bytes(u64::from(w))))
    }

    /// Holds a packet of a harmful flow where its window is used up, or where it must not overtake.
    pub(super) fn control(&mut self, node: &mut dyn Node, p: &Arrival<'_>, port: PortNo, fx: &mut Effects) -> Verdict {
        let at = &self.ports[port.index()];
        if !at.control.is_on() && at.control.is_empty() {
            return Verdict::Pass;
        }
        fx.push(Effect::Watch(port));
        let tuple = Tuple::of(p.envelope);
        if !(at.control.holds(&tuple) || at.control.is_running() && at.is_harmful(&tuple)) {
            return Verdict::Pass;
        }
        let (now, paces) = (node.now(), self.paces(port));
        let over = paces && self.window_ends(port).is_some_and(|end| end <= now);
        let control = &mut self.ports[port.index()].control;
        if over && control.is_empty() {
            control.restart(now);
        }
        if self.joins(node, port) {
            return self.control_crossing(node, p, tuple, port, fx);
        }
        let control = &self.ports[port.index()].control;
        let class = p.envelope.class;
        let idle = node.is_idle(port);
        if idle && control.is_empty() && !node.is_paused(port, class) && (control.is_open() || !paces) {
            return Verdict::Pass;
        }
        self.hold(now, p, (port, tuple), || queued(node, port, class, &tuple), fx);
        if idle {
            self.look_soon(port, fx); // what is held before it may be of a class that is paused
        } else {
            fx.push(Effect::Arm(port));
        }
        Verdict::Hold
    }

    /// Holds a packet. It may be marked for what waits before it, as one that joins the queue: end-to-end control goes on.
    pub(super) fn hold(
        &mut self,
        now: Time,
        p: &Arrival<'_>,
        (port, tuple): (PortNo, Tuple),
        queued: impl FnOnce() -> u32,
        fx: &mut Effects,
    ) {
        let frame = p.envelope.frame;
        fx.push(Effect::Mark { packet: p.id, port });
        self.ports[port.index()].control.hold(now, (p.id, p.envelope.class, frame), tuple, queued);
        self.counts.held += 1;
        self.counts.held_bytes += u64::from(frame);
    }

    /// Schedules the release of held packets of a port for the end of this instant, after all its other events.
    pub(super) fn look_soon(&mut self, port: PortNo, fx: &mut Effects) {
        if self.tasks.insert((Time::ZERO, port.0, Task::Look)) {
            fx.push(Effect::Timer(Time::ZERO));
        }
    }

    /// Schedules the release of held packets of a port for the time when its window expires.
    pub(super) fn wait_for_window(&mut self, port: PortNo, fx: &mut Effects) {
        if let Some(end) = self.window_ends(port) {
            self.at(end, port, Task::Window, fx);
        }
    }

    /// The time of a window is over.
    pub(super) fn next_window(&mut self, now: Time, port: PortNo, fx: &mut Effects) {
        if self.window_ends(port).is_none_or(|end| end > now) {
            if self.ports[port.index()].control.is_stalled() {
                self.wait_for_window(port, fx); // another one has begun since
            }
            return;
        }
        let control = &mut self.ports[port.index()].control;
        control.restart(now);
        if control.waits() {
            fx.push(Effect::Arm(port));
        }
    }
}
