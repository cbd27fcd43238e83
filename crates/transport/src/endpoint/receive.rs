//! What arrives: data. Source: RFC 9293 §3.10.7.4, RFC 5681 §4.2, RFC 3168 §6.1.3, RFC 8257 §3.2.

use super::{due, Sync, TcpEndpoint, NO_FIN};
use crate::config::{EcnEcho, Tcp};
use crate::report::Pending;
use fanin_packet::{Ecn, Segment, TcpFlags};
use fanin_units::{Span, Time};

/// Dynamic right-sizing of the receive buffer. Source: DRS; Linux
/// tcp_rcv_space_adjust, tcp_rcv_rtt_measure.
#[derive(Clone, Debug)]
pub(super) struct Growth {
    max: u64,
    /// Shortest time in which one window arrived: an upper bound of the RTT. Zero before the first.
    rtt: Span,
    /// The window being timed ends here.
    window_end: u64,
    window_at: Time,
    /// What arrives per `rtt` is counted from here.
    round_from: u64,
    round_at: Time,
}

impl Growth {
    pub fn new(max: u64, window: u64, now: Time) -> Self {
        Growth { max, rtt: Span::ZERO, window_end: 1 + window, window_at: now, round_from: 1, round_at: now }
    }

    /// RCV.NXT has come to `next`: the buffer to have.
    fn on_data(&mut self, now: Time, next: u64, buffer: u64, mss: u32) -> u64 {
        if next >= self.window_end {
            let took = now.since(self.window_at).max(Span::from_ps(1));
            self.rtt = if self.rtt == Span::ZERO { took } else { self.rtt.min(took) };
            self.window_end = next + buffer;
            self.window_at = now;
        }
        if self.rtt == Span::ZERO || now.since(self.round_at) < self.rtt {
            return buffer;
        }
        let got = next - self.round_from;
        self.round_from = next;
        self.round_at = now;
        // Twice what came, and a little for the first round of slow start. Source: Linux tcp_rcv_space_adjust.
        (2 * got + 16 * u64::from(mss)).min(self.max).max(buffer)
    }
}

impl TcpEndpoint {
    /// A segment with payload.
    #[inline(always)]
    pub(super) fn on_data(&mut self, cfg: &Tcp, now: Time, p: Segment<'_>, seq: u64) {
        if self.ecn_on {
            self.note_ecn(cfg, p);
        }
        let end = seq.wrapping_add(u64::from(p.envelope.payload));
        let in_order = seq == self.rcv_nxt && end <= self.rcv_edge && self.ooo.as_ref().is_none_or(|o| o.is_empty());
        if in_order {
            self.rcv_nxt = end;
            self.stats.delivered += u64::from(p.envelope.payload);
            self.pending.add(Pending::DELIVERED);
            if self.growth.is_some() || self.holding || cfg.quick_acks > 0 {
                self.note_arrival(cfg, now, u64::from(p.envelope.payload));
            }
            self.unacked += 1;
            if u32::from(self.unacked) >= cfg.ack_every || self.quick > 0 {
                self.due |= due::ACK;
            } else if self.ack_at == Time::MAX {
                self.ack_at = now + cfg.delayed_ack_timeout;
            }
        } else {
            self.on_data_slowly(cfg, now, seq, end);
        }
    }

    /// Buffer growth, unread data, quick ACKs after idle time.
    #[inline(never)]
    fn note_arrival(&mut self, cfg: &Tcp, now: Time, bytes: u64) {
        if let Some(growth) = &mut self.growth {
            self.buffer = growth.on_data(now, self.rcv_nxt, self.buffer, self.w.mss);
        }
        if self.holding {
            self.held += bytes;
        }
        // Source: Linux tcp_event_data_recv.
        if now.since(self.last_data) > self.rtt.rto {
            self.quick = cfg.quick_acks as u8;
        }
        self.last_data = now;
    }

    /// Duplicate, out of order, beyond the window, or filling a gap: each is acknowledged at once.
    #[inline(never)]
    fn on_data_slowly(&mut self, cfg: &Tcp, now: Time, seq: u64, end: u64) {
        self.due |= due::ACK;
        // Offsets below zero have wrapped: they are far in the past.
        if end <= self.rcv_nxt || seq > 1 << 63 {
            self.stats.duplicate_bytes += end.wrapping_sub(seq);
            return;
        }
        let end = end.min(self.rcv_edge);
        if seq >= end {
            return;
        }
        let mut ooo = self.ooo.take().unwrap_or_default();
        if seq <= self.rcv_nxt {
            self.stats.duplicate_bytes += self.rcv_nxt - seq;
            let before = self.rcv_nxt;
            self.rcv_nxt = ooo.advance(end);
            let news = self.rcv_nxt - before;
            self.stats.delivered += news;
            self.pending.add(Pending::DELIVERED);
            self.note_arrival(cfg, now, news);
        } else {
            self.stats.duplicate_bytes += end - seq - ooo.insert(seq, end);
            self.quick = cfg.quick_acks as u8; // Source: Linux tcp_data_queue_ofo, tcp_enter_quickack_mode.
        }
        self.ooo = Some(ooo);
        self.take_fin(cfg, now);
    }

    /// Marks, and CWR. Source: RFC 3168 §6.1.3, RFC 8257 §3.2.
    #[inline(always)]
    pub(super) fn note_ecn(&mut self, cfg: &Tcp, p: Segment<'_>) {
        let ce = p.envelope.ecn == Ecn::Ce;
        self.stats.marked += u64::from(ce);
        match cfg.ecn_echo {
            EcnEcho::Classic => {
                if p.flags.has(TcpFlags::CWR) {
                    self.echo = false;
                }
                self.echo |= ce;
            }
            EcnEcho::Dctcp => {
                if ce != self.echo {
                    self.ce_changed(ce);
                }
            }
        }
    }

    /// DCTCP.CE changes: what was received under the old state and not yet acknowledged is acknowledged with it, and this
    /// segment at once with the new one.
    #[inline(never)]
    fn ce_changed(&mut self, ce: bool) {
        if self.unacked > 0 {
            self.prior_ack = self.wire_rcv_nxt();
            self.due |= due::PRIOR_ACK;
        }
        self.echo = ce;
        self.due |= due::ACK;
    }

    /// The application reads `bytes` that were held back; notifies the other end when the window opens by a segment or half
    /// the buffer. Source: RFC 9293 §3.8.6.2.2.
    pub fn read(&mut self, _cfg: &Tcp, _now: Time, bytes: u64) {
        self.held = self.held.saturating_sub(bytes);
        let offer = (self.rcv_nxt + self.buffer.saturating_sub(self.held)).max(self.rcv_edge);
        if offer - self.rcv_edge >= u64::from(self.w.mss).min(self.buffer / 2) && self.sync == Sync::Open {
            self.due |= due::ACK;
        }
    }

    /// A FIN whose turn has come.
    pub(super) fn take_fin(&mut self, cfg: &Tcp, now: Time) {
        if self.peer_fin == NO_FIN || self.rcv_nxt != self.peer_fin {
            return;
        }
        self.rcv_nxt += 1;
        self.passive_close = !self.fin_sent;
        self.pending.add(Pending::PEER_CLOSED);
        self.due |= due::ACK;
        self.check_closed(cfg, now);
    }
}
