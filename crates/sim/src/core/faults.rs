//! Links that fail, and links with bit errors: the fate of a frame that should arrive at the far end.
//!
//! Nothing is told to anybody for it: when a link is down is known from the beginning, and bit errors are draws of the node that receives. So a
//! frame is lost or discarded at the instant at which it would have been handed over, and until then it is on the wire.

use super::Core;
use fanin_packet::{Packet, PacketId};
use fanin_params::counters;
use fanin_scenario::{Errors, Outage};
use fanin_switch::{DropReason, Mechanisms};
use fanin_units::{LinkId, Span, Stream, Time};

counters! {
    /// Losses on links that fail or have bit errors, and at their ports: by link in `links` of summary.json, both directions of
    /// each link with an event. Packets among them are drops, by the reasons `link_lost`, `bit_error` and `link_down`.
    pub struct LinkCounts in "links" {
        /// Packets a part of which was on the link while it was down.
        lost: failure,
        /// Packets that arrived with bit errors, and were discarded.
        corrupted: failure,
        /// Packets dropped at the port, as the link was known to be down: packets that waited, and packets that came.
        dropped: failure,
        /// Control messages of switches and NICs lost as packets are, those at the end of packets' frames among them.
        messages_lost: failure,
        /// Control messages that arrived with bit errors.
        messages_corrupted: failure,
        /// Control messages that were to leave by the port while the link was known to be down.
        messages_unsent: failure,
    }
}

/// Failures and bit errors of a link, in one direction.
pub struct Fault {
    /// Time from the arrival of a frame's last bit until the node acts on it.
    inside: Span,
    /// Outages of the link, in order, and the number of them that no later frame can have met.
    outages: Vec<Outage>,
    passed: usize,
    errors: Vec<Errors>,
    draws: Stream,
    pub counts: LinkCounts,
}

impl Fault {
    /// A link on which nothing was lost yet; `inside`: from the arrival of a frame's last bit until the node acts on it.
    pub fn new(inside: Span, outages: Vec<Outage>, errors: Vec<Errors>, draws: Stream) -> Fault {
        Fault { inside, outages, passed: 0, errors, draws, counts: LinkCounts::default() }
    }

    /// Judges a frame of so many bytes whose first bit left at `first`, and whose last arrived at `last`: the reason of its loss,
    /// if it is lost.
    fn judge(&mut self, [first, last]: [Time; 2], frame: u16) -> Option<DropReason> {
        while self.outages.get(self.passed).is_some_and(|outage| outage.end <= first) {
            self.passed += 1; // frames do not overtake one another
        }
        if self.outages.get(self.passed).is_some_and(|outage| outage.start < last) {
            return Some(DropReason::LINK_LOST);
        }
        let errors = self.errors.iter().find(|errors| errors.start <= last && last < errors.end)?;
        (self.draws.unit() < error_probability(errors.rate, frame)).then_some(DropReason::BIT_ERROR)
    }
}

/// Probability that a bit of a frame is wrong.
fn error_probability(rate: f64, frame: u16) -> f64 {
    -libm::expm1(f64::from(frame) * 8.0 * libm::log1p(-rate))
}

impl Core {
    /// Reason for which a frame that should now come to the far end of link `l` is lost; `None`: it arrives.
    pub fn fault(&mut self, l: LinkId, packet: PacketId) -> Option<DropReason> {
        let fault = self.faults.get_mut(&l)?;
        let (link, frame) = (&self.links[l], self.pool[packet].frame);
        let left = self.now.ps() - link.delay();
        let first = Time::from_ps(left - link.tx(frame));
        fault.judge([first, Time::from_ps(self.now.ps() - fault.inside.ps())], frame)
    }

    /// A packet is lost on link `l`, or discarded at its far end.
    pub fn lose_packet(&mut self, l: LinkId, packet: PacketId, reason: DropReason) {
        if let Some(fault) = self.faults.get_mut(&l) {
            let counts = &mut fault.counts;
            *(if reason == DropReason::BIT_ERROR { &mut counts.corrupted } else { &mut counts.lost }) += 1;
        }
        let (dropped, port) = (self.pool.packet(packet), self.ports[l].name.clone());
        self.record_drop(packet, &dropped, reason, port, 0);
        self.pool.free(packet);
    }

    /// Counts a packet that is dropped at port `l`, as its link is known to be down.
    pub fn count_dropped_at(&mut self, l: LinkId) {
        if let Some(fault) = self.faults.get_mut(&l) {
            fault.counts.dropped += 1;
        }
    }

    /// Counts a control message that is lost on link `l`, discarded at its far end, or not sent.
    pub fn count_lost_message(&mut self, l: LinkId, reason: DropReason) {
        let Some(fault) = self.faults.get_mut(&l) else { return };
        let counts = &mut fault.counts;
        *(match reason {
            DropReason::LINK_DOWN => &mut counts.messages_unsent,
            DropReason::BIT_ERROR => &mut counts.messages_corrupted,
            _ => &mut counts.messages_lost,
        }) += 1;
    }

    /// Removes a control message, alone or at the end of a frame, that is lost on link `l`, discarded at its far end, or taken
    /// off its port again.
    pub fn lose_message(&mut self, l: LinkId, message: &Packet, reason: DropReason) {
        self.count_lost_message(l, reason);
        let fanin_packet::Header::Control(control) = &message.header else { return };
        if Mechanisms::pause(control, message.envelope.header).is_some() {
            self.note_pause_lost(l, reason == DropReason::LINK_DOWN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_units::Purpose;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn fault(outages: &[(u64, u64)], errors: &[(u64, u64, f64)]) -> Fault {
        let outage = |(start, end): &(u64, u64)| Outage { start: at(*start), end: at(*end), detect: Span::ZERO, event: 0 };
        let error = |(start, end, rate): &(u64, u64, f64)| Errors { start: at(*start), end: at(*end), rate: *rate, event: 0 };
        let draws = Stream::new(1, Purpose::BitErrors, 0);
        Fault::new(Span::ZERO, outages.iter().map(outage).collect(), errors.iter().map(error).collect(), draws)
    }

    #[test]
    fn a_frame_is_lost_if_any_of_it_is_on_the_link_while_that_is_down() {
        let mut fault = fault(&[(10, 20), (30, 31)], &[]);
        let lost = Some(DropReason::LINK_LOST);
        for ([first, last], expected) in [
            ([5, 10], None), // its last bit arrives as the link fails
            ([6, 11], lost),
            ([12, 13], lost),
            ([19, 24], lost),
            ([20, 25], None), // its first bit leaves as the link works again
            ([29, 34], lost), // the link is down for a moment in the middle
            ([31, 36], None),
        ] {
            assert_eq!(fault.judge([at(first), at(last)], 1_000), expected, "{first} to {last}");
        }
    }

    #[test]
    fn bit_errors_are_those_of_all_bits_of_a_frame_and_only_in_their_time() {
        assert!((error_probability(1e-6, 1_518) - (1.0 - libm::pow(0.999_999, 12_144.0))).abs() < 1e-12);
        // Where 1 - rate is 1 in double precision as well.
        assert!((error_probability(1e-18, 1_000) / 8e-15 - 1.0).abs() < 1e-9);
        let mut fault = fault(&[], &[(10, 20, 1e-4)]);
        assert!((0..1_000).all(|_| fault.judge([at(4), at(9)], 9_000).is_none()));
        assert!((0..1_000).all(|_| fault.judge([at(15), at(20)], 9_000).is_none()));
        // p = 1 - exp(-0.08) = 0.07688 of 1,000 B: four standard deviations of 20,000 draws are 0.0075.
        let wrong = (0..20_000).filter(|_| fault.judge([at(11), at(12)], 100).is_some()).count();
        assert!((wrong as f64 / 20_000.0 - 0.076_88).abs() < 0.007_5, "{wrong}");
    }
}
