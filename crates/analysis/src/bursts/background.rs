//! Background flows: the flows of a burst that were active before it, apart from those that are new.

use crate::bursts::burst::Context;
use crate::bursts::flows::Flows;
use crate::bursts::port::{Candidate, HEADERS};
use crate::{FlowInfo, Settings};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Round trips for which a flow must have been active before a burst to be background.
pub const BACKGROUND_RTTS: u64 = 20;
/// Round trips without a packet after which a flow begins anew. What acknowledgements clock pauses for one, beside the queues on its way:
/// only the time counts in which the port had nothing to send, for then no queue that it serves holds packets of the flow back.
const PAUSE_RTTS: u64 = 5;
/// Pause that ends a connection's activity, as a multiple of the time that makes a background flow, where no round trip is known.
const PAUSE: u64 = 5;

/// Times of a flow that its round trip sets, ps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtt {
    /// Round trip on the idle network, if known.
    pub rtt: Option<u64>,
    /// Active for this long: background.
    pub background: u64,
    /// Idle time of the port without a packet of the flow after which the flow begins anew.
    pub pause: u64,
}

/// Picoseconds in the unit of a flow's slot.
pub fn short(ps: u64) -> u32 {
    u32::try_from(ps >> 16).unwrap_or(u32::MAX).max(1)
}

impl Rtt {
    pub fn of(flow: &FlowInfo, settings: &Settings) -> Self {
        let rtt = flow.base_rtt.or(settings.rtt).map(|rtt| rtt.ps().max(1));
        match rtt {
            Some(ps) => Rtt { rtt, background: ps.saturating_mul(BACKGROUND_RTTS), pause: ps.saturating_mul(PAUSE_RTTS) },
            None => {
                let background = settings.background().ps().max(1);
                Rtt { rtt, background, pause: background.saturating_mul(PAUSE) }
            }
        }
    }
}

/// The flows that brought payload to a burst, by slot.
#[derive(Clone, Debug, Default)]
pub struct Past {
    pub background: BTreeSet<u32>,
    pub new: BTreeSet<u32>,
    /// New as far as the trace shows, which begins too late to be sure.
    pub unsure: u64,
    /// Distinct sources of the background flows, where all are known.
    pub sources: Option<u64>,
    /// Longest round trip of the flows.
    pub rtt: Option<u64>,
}

/// Splits the first `count` flows of a burst into background flows and new ones.
pub fn past(context: &Context, candidate: &Candidate, count: usize, flows: &mut Flows) -> Past {
    let start = candidate.start;
    let mut found = Past::default();
    let (mut sources, mut anonymous) = (BTreeSet::<Arc<str>>::new(), false);
    for &slot in &candidate.flows[..count] {
        let s = *flows.get(slot);
        // Small frames only, among larger ones: handshakes, acknowledgments.
        if s.pause == 0 && context.largest > u64::from(HEADERS) {
            continue;
        }
        let info = (context.lookup)(s.flow);
        let times = Rtt::of(&info, context.settings);
        found.rtt = found.rtt.max(times.rtt);
        let since = candidate.resumed.get(&slot).copied().unwrap_or(s.active_since);
        // The trace may begin in the midst of its activity.
        let hidden = since <= context.first.saturating_add(times.pause.min(times.background));
        let asked = info.start.map(|at| at.ps()).filter(|_| hidden);
        if since.min(asked.unwrap_or(since)).saturating_add(times.background) <= start {
            found.background.insert(slot);
            match info.src {
                Some(src) => {
                    sources.insert(src);
                }
                None => anonymous = true,
            }
            continue;
        }
        let known = !hidden || context.settings.idle_before || info.start.is_some() || info.opened.is_some();
        found.unsure += u64::from(!known);
        found.new.insert(slot);
    }
    found.sources = (!anonymous && !found.background.is_empty()).then_some(sources.len() as u64);
    found
}
