//! Trimmed packets: headers whose payload a switch has cut off, and the NACKs that answer them. Source: NDP §3.1, CP.

use super::{due, NoticeOutcome, Sync, TcpEndpoint};
use crate::config::{EcnEcho, Tcp};
use fanin_packet::{DropNotice, Ecn, Nack, Operation, Packet};
use fanin_units::Time;

/// What an endpoint did about a trimmed packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimOutcome {
    /// A NACK is due.
    Nacked,
    /// The connection is not open: the other end will send again what it is about, or has no need to.
    NotOpen,
    /// `trim_nack` is off.
    Off,
}

impl TcpEndpoint {
    /// The headers of a packet whose payload was cut off have arrived: an ACK with a NACK goes back at once, one for each.
    ///
    /// Nothing of it is data, and a FIN on it comes again with the data. A mark is echoed as that of any packet of data, since the
    /// queue that marked it held it; that there is none means nothing to DCTCP's receiver, since a packet that was cut on its arrival
    /// had no queue that could have marked it. On an open connection what it acknowledges is left to the next packet that is whole.
    pub fn on_trimmed(&mut self, cfg: &Tcp, now: Time, p: &Packet) -> TrimOutcome {
        if !cfg.trim_nack {
            return TrimOutcome::Off;
        }
        match self.sync {
            // The ACK of the handshake was lost: what follows it says the same.
            Sync::SynReceived => self.on_unusual(cfg, now, &p.acknowledgment()),
            Sync::TimeWait => self.due |= due::ACK,
            _ => {}
        }
        if self.sync != Sync::Open {
            return TrimOutcome::NotOpen;
        }
        if self.ecn_on && (p.ecn == Ecn::Ce || cfg.ecn_echo == EcnEcho::Classic) {
            self.note_ecn(cfg, p);
        }
        self.nack = Nack { seq: p.seq, length: p.payload };
        self.due = self.due & !due::ACK | due::NACK;
        TrimOutcome::Nacked
    }

    /// An ACK with a NACK: first what it acknowledges, as of any ACK, save that without SACK it is no duplicate; then what it says
    /// is lost, as of a drop notification that asks to retransmit and halve. To an end without `trim_nack` it is an ACK.
    pub fn on_nack(&mut self, cfg: &Tcp, now: Time, p: &Packet) -> NoticeOutcome {
        let Some(nack) = p.nack() else { return NoticeOutcome::Unknown };
        if !cfg.trim_nack {
            self.on_packet(cfg, now, &p.without_nack());
            return NoticeOutcome::Off;
        }
        if self.sync != Sync::Open {
            return NoticeOutcome::Unknown;
        }
        self.on_segment(cfg, now, p);
        let notice = DropNotice { seq: nack.seq, length: nack.length, operation: Operation::RETRANSMIT_AND_HALVE };
        self.packet_was_lost(cfg, now, &notice)
    }
}
