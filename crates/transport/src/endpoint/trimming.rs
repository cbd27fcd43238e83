//! Trimmed packets, whose payload a switch has cut off, and the NACKs that answer them. Source: NDP §3.1, CP.

use super::drop_notification::Outcome;
use super::{due, Sync, TcpEndpoint};
use crate::config::{EcnEcho, Tcp};
use fanin_packet::{Ecn, Envelope, Lost, Nack, Part, Reference, Segment};
use fanin_units::Time;

fanin_params::counters! {
    /// Responses of receivers to trimmed packets, and of senders to NACKs.
    pub struct TrimmingCounts in "trimming" {
        /// Trimmed packets that the receiver answered with a NACK.
        nacked,
        /// Trimmed packets at a receiver whose transport does not act on them: set `trim_nack` = true.
        ignored: failure,
        /// Trimmed packets at a receiver whose connection was not open; the sender retransmits the data if needed.
        not_open,
        /// NACKs that led to a retransmission of the packet.
        nack_retransmitted: success,
        /// NACKs of a loss that the sender knew already.
        nack_redundant,
        /// NACKs of data that had been acknowledged by then.
        nack_arrived,
        /// NACKs of data that was not in flight, or at a sender whose transport does not act on them.
        nack_unknown,
    }
}

impl TcpEndpoint {
    /// Processes a trimmed packet: an ACK with a NACK is sent back at once, one for each.
    ///
    /// Nothing of it is data, and a FIN on it arrives again with the data. A mark is echoed as that of any packet of data, since
    /// the queue that marked it held it; that there is none means nothing to DCTCP's receiver, since a packet that was cut on its
    /// arrival had no queue that could have marked it. On an open connection what it acknowledges is left to the next packet that
    /// is whole.
    pub(super) fn on_trimmed(&mut self, cfg: &Tcp, now: Time, p: Segment<'_>) {
        if !cfg.trim_nack {
            self.signals.counts().trimming.ignored += 1;
            return;
        }
        match self.sync {
            // The ACK of the handshake was lost: what follows it says the same.
            Sync::SynReceived => {
                let envelope = Envelope { payload: 0, trimmed: false, ..*p.envelope };
                self.on_unusual(cfg, now, Segment { envelope: &envelope, tcp: &p.acknowledgment() });
            }
            Sync::TimeWait => self.due |= due::ACK,
            _ => {}
        }
        if self.sync != Sync::Open {
            self.signals.counts().trimming.not_open += 1;
            return;
        }
        if self.ecn_on && (p.envelope.ecn == Ecn::Ce || cfg.ecn_echo == EcnEcho::Classic) {
            self.note_ecn(cfg, p);
        }
        self.nack = Nack { seq: p.seq, length: p.envelope.payload };
        self.due = self.due & !due::ACK | due::NACK;
        self.signals.counts().trimming.nacked += 1;
    }

    /// Processes an ACK with a NACK: first its acknowledgment, as of any ACK, except that without SACK it is no duplicate;
    /// then the loss, as of a drop notification that asks to retransmit and halve. To an end without `trim_nack` it is an
    /// ACK.
    pub(super) fn on_nack(&mut self, cfg: &Tcp, now: Time, p: Segment<'_>, nack: Nack) {
        let outcome = self.take_nack(cfg, now, p, nack);
        let counts = &mut self.signals.counts().trimming;
        match outcome {
            Outcome::Retransmitted => counts.nack_retransmitted += 1,
            Outcome::Redundant => counts.nack_redundant += 1,
            Outcome::Arrived => counts.nack_arrived += 1,
            Outcome::Unknown => counts.nack_unknown += 1,
        }
    }

    fn take_nack(&mut self, cfg: &Tcp, now: Time, p: Segment<'_>, nack: Nack) -> Outcome {
        if !cfg.trim_nack {
            self.dispatch_segment(cfg, now, Segment { tcp: &p.without_nack(), ..p });
            return Outcome::Unknown;
        }
        if self.sync != Sync::Open {
            return Outcome::Unknown;
        }
        self.on_segment(cfg, now, p);
        let packet = Reference { number: nack.seq, length: nack.length, part: Part::Data };
        self.on_certain_loss(cfg, now, &Lost { packet, reduce: true })
    }
}
