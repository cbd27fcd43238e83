//! Trimmed packets: headers whose payload a switch has cut off, and the NACKs that answer them. Source: NDP §3.1, CP.

use super::{due, NoticeOutcome, Sync, TcpEndpoint};
use crate::config::Tcp;
use fanin_packet::{DropNotice, Nack, Operation, Packet};
use fanin_units::Time;

impl TcpEndpoint {
    /// The headers of a packet whose payload was cut off have arrived: an ACK with a NACK goes back at once, one for each. False:
    /// this end does not know what they are (`trim_nack` is off), or the connection is not open.
    ///
    /// Nothing of it is data, and a FIN on it comes again with the data. Of a mark it is told as by any packet of data: the
    /// queue that marked it held it. On an open connection what it acknowledges is left to the next packet that is whole.
    pub fn on_trimmed(&mut self, cfg: &Tcp, now: Time, p: &Packet) -> bool {
        if !cfg.trim_nack {
            return false;
        }
        match self.sync {
            // The ACK of the handshake was lost: what follows it says the same.
            Sync::SynReceived => self.on_unusual(cfg, now, &p.acknowledgment()),
            Sync::TimeWait => self.due |= due::ACK,
            _ => {}
        }
        if self.sync != Sync::Open {
            return false;
        }
        if self.ecn_on {
            self.note_ecn(cfg, p);
        }
        self.nack = Nack { seq: p.seq, length: p.payload };
        self.due = self.due & !due::ACK | due::NACK;
        true
    }

    /// An ACK with a NACK: first what it acknowledges, as of any ACK, save that it is no duplicate; then what it says is lost,
    /// as of a drop notification that asks to retransmit and halve.
    pub fn on_nack(&mut self, cfg: &Tcp, now: Time, p: &Packet) -> NoticeOutcome {
        let Some(nack) = p.nack() else { return NoticeOutcome::Unknown };
        if !cfg.trim_nack {
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
