//! Application of a host's rules to one of its ends.
//!
//! The fast path is the same rules, compiled for the common transport and a NIC that pulls: whose endpoint it is, its parameters, its NIC and
//! the time are found out once.

use super::discipline::{Discipline, Fifo, Pull, Tapped};
use super::ends::{End, EndId, EndKind};
use super::protocol::{Any, Known};
use super::rules::{AtHost, Rule};
use super::{Host, Hosts};
use crate::core::Core;
use fanin_packet::Framing;
use fanin_transport::{Act, Endpoint, Parameters, Transport};

/// A rule that waits for the endpoint to be known.
struct Bound<'a, R, D>(R, AtHost<'a, D>);

impl<R: Rule, D: Discipline> Act for Bound<'_, R, D> {
    type Out = R::Out;

    #[inline(always)]
    fn act<E: Transport>(self, end: &mut E, cfg: &E::Params) -> R::Out {
        self.0.apply(self.1, &mut Known { end, cfg })
    }
}

/// Borrows an end's endpoint and everything else of the end apart.
#[inline(always)]
fn split<'a, D>(
    core: &'a mut Core,
    host: &'a mut Host,
    framing: &'a Framing,
    (end, id): (&'a mut End, EndId),
    nic: D,
) -> (&'a mut Endpoint, &'a Parameters, AtHost<'a, D>) {
    let hears = end.hears();
    let End { protocol, params, sends, route, queued, armed, telemetry, next, order, .. } = end;
    (
        protocol,
        params,
        AtHost { core, host, framing, nic, id, sends, route, hears, queued, armed, telemetry: *telemetry, next, order },
    )
}

/// Applies a rule on the fast path; `None` where the endpoint is of another transport.
#[inline(always)]
pub fn apply_fast<R: Rule>(
    core: &mut Core,
    host: &mut Host,
    framing: &Framing,
    end: (&mut End, EndId),
    rule: R,
) -> Option<R::Out> {
    let (protocol, params, at) = split(core, host, framing, end, Pull);
    protocol.act(params, Bound(rule, at))
}

#[inline(always)]
fn apply_to_any<R: Rule, D: Discipline>(
    core: &mut Core,
    host: &mut Host,
    framing: &Framing,
    (end, id): (&mut End, EndId),
    (rule, nic): (R, D),
) -> R::Out {
    let source = end.kind == EndKind::Source;
    let (protocol, params, at) = split(core, host, framing, (end, id), nic);
    rule.apply(at, &mut Any { end: protocol, cfg: params, source })
}

impl Hosts {
    /// Applies a rule to an end.
    #[inline(always)]
    pub(super) fn apply<R: Rule>(&mut self, core: &mut Core, id: EndId, rule: R) -> R::Out {
        if R::IS_HOT && self.pulls_untapped {
            let end = &mut self.ends[id];
            let host = &mut self.hosts[end.host()];
            if let Some(out) = apply_fast(core, host, &self.framing, (end, id), rule) {
                return out;
            }
        }
        self.apply_in_general(core, id, rule)
    }

    /// Applies a rule to an end of any transport, at a NIC of any kind.
    #[inline(never)]
    pub(super) fn apply_in_general<R: Rule>(&mut self, core: &mut Core, id: EndId, rule: R) -> R::Out {
        let size = if self.headers.is_some() { self.bytes_to_send(id) } else { 0 };
        let end = &mut self.ends[id];
        let host = end.host();
        let (state, framing) = (&mut self.hosts[host], &self.framing);
        if R::IS_HOT && self.pulls_untapped && end.kind == EndKind::Transfer {
            // Each packet of a transport other than the common one: which it is is found out once, not at each question.
            let (protocol, params, at) = split(&mut *core, &mut *state, framing, (&mut *end, id), Pull);
            if let Some(out) = protocol.act_other(params, Bound(rule, at)) {
                return out;
            }
        }
        let end = (end, id);
        if self.pulls_untapped {
            return apply_to_any(core, state, framing, end, (rule, Pull));
        }
        let headers = self.headers.as_deref_mut();
        match self.tx_queues.as_mut() {
            None => apply_to_any(core, state, framing, end, (rule, Tapped { nic: Pull, headers, size })),
            Some(queues) => {
                apply_to_any(core, state, framing, end, (rule, Tapped { nic: Fifo(&mut queues[host]), headers, size }))
            }
        }
    }

    /// Bytes that an end has to send in all; zero: without limit.
    pub(super) fn bytes_to_send(&self, id: EndId) -> u64 {
        let Some(flow) = self.ends.flow(id) else { return 0 };
        if self.ends[id].sends_data {
            flow.spec.size
        } else {
            flow.spec.request
        }
    }
}
