//! CRD: queues are sampled, and upstream neighbours are notified of congestion and of the flows that cause it. Source: RCM §3.2.

use super::cfr::Tuple;
use super::{bytes, message, LocalFlag, Rcm, Task};
use crate::mechanism::{Effect, Effects, Node, PortNo};
use fanin_dataplane::rcm::passed_on;
use fanin_units::Time;

impl Rcm {
    /// Handles a degree above zero of an output port, its own or one that it has heard of.
    pub(super) fn congested(&mut self, now: Time, port: PortNo, degree: u8, fx: &mut Effects) {
        let at = &mut self.ports[port.index()];
        if self.rcc {
            let harmful = if at.control.is_on() { Vec::new() } else { at.harmful() };
            at.control.on_degree(degree, self.control.again, harmful);
            fx.push(Effect::Watch(port));
        }
        let (least, count, within) = self.severe;
        if self.sar && u32::from(degree) >= least {
            at.severity.note(now, count, within);
        }
    }

    /// Ends the control of a port with its congestion, and releases held packets of flows that are not harmful.
    pub(super) fn calm(&mut self, port: PortNo, fx: &mut Effects) {
        let at = &mut self.ports[port.index()];
        if !at.is_congested() && at.control.is_on() {
            at.control.end();
        }
        self.let_go(port, fx);
        self.show(port, fx);
    }

    /// Samples the output queue of a port, including what is held for it.
    pub(super) fn sample_output(&mut self, node: &mut dyn Node, port: PortNo, frame: u16, fx: &mut Effects) {
        let at = &mut self.ports[port.index()];
        if !at.output.is_due(frame) {
            return;
        }
        let queue = node.view(port).queue_bytes + at.control.bytes();
        let draw = at.draws.next_u32();
        let sample = at.output.sample(&self.detect, bytes(queue), draw);
        at.set_own(sample.lasting(at.own));
        self.counts.samples += 1;
        if sample.degree > 0 {
            self.counts.congested += 1;
            self.congested(node.now(), port, sample.degree, fx);
        }
        self.calm(port, fx);
    }

    /// Samples the queue of packets that came in by a port. The packet leaves by `to`.
    pub(super) fn sample_input(&mut self, node: &mut dyn Node, (port, to): (PortNo, PortNo), frame: u16, fx: &mut Effects) {
        let at = &mut self.ports[port.index()];
        if !at.input.is_due(frame) {
            return;
        }
        let draw = at.draws.next_u32();
        let queue = node.input_bytes(port);
        let sample = at.input.sample(&self.detect, bytes(queue), draw);
        let degree = sample.lasting(at.arriving);
        self.counts.samples += 1;
        self.counts.congested += u64::from(sample.degree > 0);
        if self.local_flag == LocalFlag::Either && sample.degree > 0 {
            self.ports[to.index()].set_input(port, sample.degree);
            self.congested(node.now(), to, sample.degree, fx);
            self.calm(to, fx);
        }
        self.set_arriving(node.now(), port, degree, fx);
    }

    /// Takes the flag of an input queue that is congested no longer from the outputs where it was set.
    fn input_is_calm(&mut self, input: PortNo, fx: &mut Effects) {
        for port in (0..self.ports.len() as u16).map(PortNo) {
            let at = &mut self.ports[port.index()];
            if at.inputs.iter().any(|(other, _)| *other == input) {
                at.set_input(input, 0);
                self.calm(port, fx);
            }
        }
    }

    /// Sets the degree of an input queue, and notifies the neighbour there.
    pub(super) fn set_arriving(&mut self, now: Time, port: PortNo, degree: u8, fx: &mut Effects) {
        let again = now + self.expiry / 2;
        let at = &mut self.ports[port.index()];
        let waiting = at.arriving > 0;
        at.arriving = degree;
        if degree > 0 {
            at.arriving_until = again;
            if !waiting {
                self.at(again, port, Task::Arriving, fx);
            }
            self.notify(port, degree, fx);
        } else {
            if std::mem::take(&mut at.notified) {
                self.send(port, 0, &[], fx);
            }
            self.input_is_calm(port, fx);
        }
        self.show(port, fx);
    }

    /// Notifies the neighbour upstream of a port of the degree of its input queue, and of the harmful flows that came in there.
    pub(super) fn notify(&mut self, port: PortNo, degree: u8, fx: &mut Effects) {
        let (mut flows, mut heard): (Vec<Tuple>, Option<u8>) = (Vec::new(), None);
        for at in self.ports.iter().filter(|at| at.is_congested()) {
            let before = flows.len();
            let here = at.harmful().into_iter().filter(|flow| flow.from == Some(port)).map(|flow| flow.tuple);
            here.for_each(|tuple| {
                if !flows.contains(&tuple) {
                    flows.push(tuple)
                }
            });
            if flows.len() > before {
                heard = heard.max(at.heard());
            }
        }
        if flows.is_empty() || !self.ports[port.index()].aware {
            self.counts.not_notified += 1;
            return;
        }
        self.ports[port.index()].notified = true;
        self.send(port, passed_on(degree, heard, self.weight), &flows, fx);
    }

    pub(super) fn send(&mut self, port: PortNo, degree: u8, flows: &[Tuple], fx: &mut Effects) {
        for mut message in message::messages(self.ip, degree, port, flows) {
            self.counts.notifications_sent += 1;
            if self.loss > 0.0 && self.ports[port.index()].draws.unit() < self.loss {
                self.counts.notifications_lost += 1;
                message.envelope.ttl = 0;
            }
            fx.push(Effect::Emit { port, message });
        }
    }

    /// Forgets a degree from downstream that has expired.
    pub(super) fn forget(&mut self, now: Time, port: PortNo, fx: &mut Effects) {
        let at = &mut self.ports[port.index()];
        if at.remote == 0 {
            return;
        }
        let until = at.until;
        if until > now {
            return self.at(until, port, Task::Heard, fx);
        }
        at.remote = 0;
        at.named.clear();
        self.calm(port, fx);
        self.wake(port, fx);
    }

    /// Samples an input queue at which nothing has arrived for a while: where it is still too long, the neighbour is notified
    /// again.
    pub(super) fn look_again(&mut self, node: &mut dyn Node, port: PortNo, fx: &mut Effects) {
        let at = &mut self.ports[port.index()];
        let (degree, until) = (at.arriving, at.arriving_until);
        if degree == 0 {
            return;
        }
        if until > node.now() {
            return self.at(until, port, Task::Arriving, fx);
        }
        at.arriving = 0;
        let long = node.input_bytes(port) > u64::from(self.detect.q_eq);
        self.set_arriving(node.now(), port, if long { degree } else { 0 }, fx);
    }
}
