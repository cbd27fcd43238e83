//! Completion times on an idle network, which slowdowns are measured against.

use crate::core::link::Link;
use crate::core::port::Owner;
use crate::core::Core;
use fanin_packet::Framing;
use fanin_units::{LinkId, Span, WireClock};

/// Segments of a flow: payload bytes of a full packet, its transport header, and bytes by which the first one is longer.
pub type Segment = (u64, u16, u16);

/// The paths of a flow's data and of the replies, by link.
pub struct Paths {
    pub there: Vec<LinkId>,
    pub back: Vec<LinkId>,
    /// Bytes of telemetry in a frame of data on each link of the path there; empty without telemetry.
    pub telemetry: Vec<u16>,
}

/// Time in which a frame crosses an idle path.
pub fn crossing(core: &Core, path: &[LinkId], frame: u16) -> u64 {
    let stages = path.iter().flat_map(|l| stages(core, *l));
    stages.fold(0, |sum, stage| sum.saturating_add(stage.delay() + stage.tx(frame)))
}

/// A store-and-forward stage, which a packet passes as a whole.
enum Stage<'a> {
    /// The crossbar of the switch that a link begins at.
    Crossbar(&'a WireClock),
    Link(&'a Link),
}

impl Stage<'_> {
    fn tx(&self, frame: u16) -> u64 {
        match self {
            Stage::Crossbar(clock) => clock.tx(u32::from(frame)).ps(),
            Stage::Link(link) => link.tx(frame),
        }
    }

    fn delay(&self) -> u64 {
        match self {
            Stage::Crossbar(_) => 0,
            Stage::Link(link) => link.delay(),
        }
    }
}

/// The stages of a link and of the switch before it.
fn stages(core: &Core, l: LinkId) -> impl Iterator<Item = Stage<'_>> {
    let crossbar = match core.ports[l].owner {
        Owner::Switch(s, _) => core.crossings.get(s.index()),
        Owner::Host(_) => None,
    };
    crossbar.map(Stage::Crossbar).into_iter().chain([Stage::Link(&core.links[l])])
}

impl Paths {
    /// Completion time of a transfer alone on an idle network: its data and before that, where the transport has them, SYN,
    /// SYN/ACK and the request. What follows a SYN/ACK waits for the ACK that its host sends first; so does what follows a
    /// request with FIN. `opening`: bytes of a SYN's transport header.
    pub fn ideal(
        &self,
        core: &Core,
        framing: &Framing,
        (size, request): (u64, u64),
        segment: Segment,
        opening: Option<u16>,
    ) -> Span {
        let ack = opening.map(|_| framing.frame(segment.1));
        let mut total = stream(core, framing, (&self.there, &self.telemetry), ack, size, segment);
        if request > 0 {
            total = total.saturating_add(stream(core, framing, (&self.back, &[]), ack, request, segment));
        }
        if let Some(syn) = opening.map(|header| framing.frame(header)) {
            total = total.saturating_add(crossing(core, &self.there, syn)).saturating_add(crossing(core, &self.back, syn));
        }
        Span::from_ps(total)
    }

    /// Time in which a full packet crosses an idle path and one without payload returns on another.
    pub fn round_trip(&self, core: &Core, framing: &Framing, (mss, header, _): Segment) -> Span {
        let [data, ack] = [header + mss as u16, header].map(|bytes| framing.frame(bytes));
        let echo = self.telemetry.last().copied().unwrap_or(0);
        let there = longer(&self.there, &self.telemetry)
            .flat_map(|(l, more)| stages(core, l).map(move |stage| stage.delay() + stage.tx(data + more)));
        Span::from_ps(there.fold(0, u64::saturating_add).saturating_add(crossing(core, &self.back, ack + echo)))
    }
}

/// Links of a path, each with the bytes by which frames are longer there.
fn longer<'a>(path: &'a [LinkId], telemetry: &'a [u16]) -> impl Iterator<Item = (LinkId, u16)> + 'a {
    path.iter().copied().zip(telemetry.iter().copied().chain(std::iter::repeat(0)))
}

/// Time in which `size` bytes cross a path that is idle but for a frame `ahead` of them, by the tandem-queue recursion:
/// n − 1 full packets and a last one, store and forward at each hop h, no window limit. A crossbar is a hop without delay.
///
/// T = Σ delay + max over hops i ≤ j of Σ_{h ≤ i} tx_h(ahead) + Σ_{i ≤ h ≤ j} tx_h(full) + (n − 2)·max_{i ≤ h ≤ j} tx_h(full)
/// + Σ_{h ≥ j} tx_h(last); a single packet is a last one. A first packet that is longer is ahead of the others.
fn stream(
    core: &Core,
    framing: &Framing,
    (path, telemetry): (&[LinkId], &[u16]),
    ahead: Option<u16>,
    size: u64,
    (mss, header, more): Segment,
) -> u64 {
    let all = || longer(path, telemetry).flat_map(|(l, longer)| stages(core, l).map(move |stage| (stage, longer)));
    let times = |frame: u16| all().map(|(l, longer)| l.tx(frame + longer)).collect::<Vec<u64>>();
    let packets = size.div_ceil(mss).max(1);
    let longer = if packets > 1 { 0 } else { more };
    let last = times(framing.frame(header + longer + (size.max(1) - (packets - 1) * mss) as u16));
    let full = times(framing.frame(header + mss as u16));
    // Departure of the packet before, at its latest, from each hop; then of the full ones; then of the last.
    let mut before = vec![0_u64; full.len()];
    let mut fulls = packets - 1;
    let mut pass = |frame: u16| {
        let mut left = 0_u64;
        for (b, time) in before.iter_mut().zip(times(frame)) {
            left = left.max(*b).saturating_add(time);
            *b = left;
        }
    };
    if let Some(frame) = ahead {
        pass(frame);
    }
    if more > 0 && fulls > 0 {
        pass(framing.frame(header + more + mss as u16));
        fulls -= 1;
    }
    if fulls > 0 {
        let starts = before;
        before = vec![0; full.len()];
        for (i, start) in starts.iter().enumerate() {
            let (mut sum, mut slowest) = (*start, 0);
            for (j, time) in full.iter().enumerate().skip(i) {
                sum += time;
                slowest = slowest.max(*time);
                before[j] = before[j].max(sum.saturating_add((fulls - 1).saturating_mul(slowest)));
            }
        }
    }
    let mut done = 0_u64;
    for (b, time) in before.iter().zip(&last) {
        done = done.max(*b).saturating_add(*time);
    }
    done.saturating_add(all().map(|(stage, _)| stage.delay()).sum())
}
