//! Handshake and close of a connection. Source: RFC 9293 §3.5, §3.6, RFC 3168 §6.1.1, RFC 7323 §2.2.

use super::{due, Role, Sync, TcpEndpoint, NO_FIN};
use crate::config::{Tcp, TIMESTAMP_BYTES};
use crate::report::{AbortReason, Pending};
use fanin_packet::{Segment, TcpFlags};
use fanin_units::{Span, Time};

impl TcpEndpoint {
    /// Takes the first step of a new endpoint.
    pub(super) fn start(&mut self, cfg: &Tcp, now: Time) {
        self.note_room();
        if self.open_from_start {
            self.snd_scale = cfg.window_scale();
            self.rcv_scale = cfg.window_scale();
            self.una = 1;
            self.nxt = 1;
            self.rcv_nxt = 1;
            self.last_ack_sent = 1;
            self.open_receiver(cfg, now);
            self.note_room();
            self.rcv_edge = 1 + self.announceable();
            self.edge = 1 + cfg.opening_window(self.w.mss);
            self.established(cfg);
        } else if self.role == Role::Initiator {
            self.sync = Sync::SynSent;
            self.nxt = 1;
            self.send_syn(now);
        } else {
            self.sync = Sync::Listen;
        }
    }

    /// Largest window that a segment can announce for the free buffer.
    #[inline(always)]
    pub(super) fn announceable(&self) -> u64 {
        u64::from(self.room)
    }

    /// Recomputes that window whenever the buffer, the unread bytes or the scale have changed. A window is less than 2^30
    /// bytes (RFC 7323 §2.3).
    pub(super) fn note_room(&mut self) {
        let free = self.buffer.saturating_sub(self.held) >> self.rcv_scale;
        self.room = (free.min(u64::from(u16::MAX)) << self.rcv_scale) as u32;
    }

    fn send_syn(&mut self, now: Time) {
        self.due |= due::SYN;
        self.timed_end = 1;
        self.timed_at = now;
        self.rto_at = now + self.rtt.rto;
    }

    /// Enters the open state and sets the initial window. Source: RFC 5681 §3.1: one segment after a lost SYN or SYN/ACK.
    fn established(&mut self, cfg: &Tcp) {
        self.sync = Sync::Open;
        self.w.cwnd = if self.syn_again || self.syn_dropped { self.w.segments(1) } else { cfg.initial_window_bytes(self.w.mss) };
        self.max_flight = self.w.cwnd;
        self.max_window = self.edge - self.una;
        self.retries = 0;
        self.rtt.handshake_done(cfg, self.syn_again);
        self.stop_timing(cfg);
        self.rto_at = Time::MAX;
        if let Some(o) = &mut self.outstanding {
            o.established(self.una, self.sack_on);
        }
        self.enter_fast_path();
    }

    fn take_syn_options(&mut self, cfg: &Tcp, now: Time, p: Segment<'_>) {
        let Some(syn) = p.syn_options() else { return };
        self.irs = p.seq;
        self.rcv_nxt = 1;
        self.last_ack_sent = 1;
        self.ts_on = cfg.timestamps && p.timestamps().is_some();
        if let Some(ts) = p.timestamps() {
            self.ts_recent = ts.value;
            self.ts_seen = true;
        }
        self.sack_on = cfg.sack && syn.sack_permitted;
        if let Some(scale) = syn.window_scale {
            self.snd_scale = scale.min(14); // Source: RFC 7323 §2.3.
            self.rcv_scale = cfg.window_scale();
        }
        self.note_room();
        // Source: RFC 6691 §2, RFC 9293 §3.7.1.
        let options = if self.ts_on { TIMESTAMP_BYTES } else { 0 };
        let theirs = syn.mss.saturating_sub(options).max(64);
        self.w.mss = u32::from(cfg.payload(self.mtu, self.ip, self.ts_on).min(theirs));
        self.rcv_edge = 1 + self.buffer.min(u64::from(u16::MAX)); // the window of a SYN is not scaled
        self.last_data = now;
    }

    /// Processes an unusual packet: with SYN, FIN or RST, without ACK, trimmed, with a NACK, or outside the established
    /// state.
    #[inline(never)]
    pub(super) fn on_unusual(&mut self, cfg: &Tcp, now: Time, p: Segment<'_>) {
        if p.envelope.trimmed {
            self.on_trimmed(cfg, now, p);
            return;
        }
        if let Some(nack) = p.nack() {
            self.on_nack(cfg, now, p, nack);
            return;
        }
        let has = |flag| p.flags.has(flag);
        let rst = has(TcpFlags::RST);
        match self.sync {
            Sync::Listen if has(TcpFlags::SYN) && !has(TcpFlags::ACK) && !rst => {
                self.take_syn_options(cfg, now, p);
                // Source: RFC 3168 §6.1.1: an ECN-setup SYN has ECE and CWR.
                self.ecn_on = cfg.ecn && has(TcpFlags::ECE) && has(TcpFlags::CWR);
                self.edge = 1 + u64::from(p.window);
                self.sync = Sync::SynReceived;
                self.nxt = 1;
                self.send_syn(now);
            }
            Sync::Listen => {}
            Sync::SynSent => {
                let acks_syn = has(TcpFlags::ACK) && p.ack == self.wire(1);
                if rst && acks_syn {
                    self.abort(AbortReason::Reset);
                } else if has(TcpFlags::SYN) && acks_syn {
                    self.take_syn_options(cfg, now, p);
                    // Source: RFC 3168 §6.1.1: an ECN-setup SYN/ACK has ECE, not CWR.
                    self.ecn_on = cfg.ecn && has(TcpFlags::ECE) && !has(TcpFlags::CWR);
                    self.edge = 1 + u64::from(p.window);
                    self.due |= due::ACK;
                    self.open(cfg, now, p);
                }
            }
            Sync::SynReceived => {
                if rst {
                    self.abort(AbortReason::Reset);
                } else if has(TcpFlags::SYN) {
                    self.due |= due::SYN;
                } else if has(TcpFlags::ACK) && p.ack.wrapping_sub(self.wire(1)) as i32 >= 0 {
                    self.open(cfg, now, p);
                    self.edge = self.una + (u64::from(p.window) << self.snd_scale);
                    self.on_established(cfg, now, p);
                }
            }
            Sync::Open => {
                if rst {
                    self.abort(AbortReason::Reset);
                } else if has(TcpFlags::SYN) {
                    self.due |= due::ACK; // our ACK of the SYN/ACK was lost
                } else if has(TcpFlags::ACK) {
                    self.on_established(cfg, now, p);
                }
            }
            Sync::TimeWait => {
                // Our last ACK was lost: whatever arrives again is old. Source: RFC 9293 §3.10.7.4.
                if has(TcpFlags::FIN) || p.envelope.payload > 0 {
                    self.due |= due::ACK;
                }
                if has(TcpFlags::FIN) {
                    self.rto_at = now + cfg.time_wait;
                }
            }
            Sync::Closed => {
                if self.aborted.is_some() && !rst {
                    self.due |= due::RST;
                }
            }
        }
    }

    /// Processes a segment that may carry FIN.
    fn on_established(&mut self, cfg: &Tcp, now: Time, p: Segment<'_>) {
        let accepted = self.on_segment(cfg, now, p);
        if accepted && self.sync == Sync::Open && p.flags.has(TcpFlags::FIN) {
            let seq = self.rcv_nxt.wrapping_add_signed(i64::from(p.seq.wrapping_sub(self.wire_rcv_nxt()) as i32));
            let fin = seq.wrapping_add(u64::from(p.envelope.payload));
            if fin >= self.rcv_nxt && fin < 1 << 63 && fin <= self.rcv_edge {
                self.peer_fin = fin;
            }
            self.due |= due::ACK;
            self.take_fin(cfg, now);
        }
    }

    /// Completes the handshake: the SYN is acknowledged.
    fn open(&mut self, cfg: &Tcp, now: Time, p: Segment<'_>) {
        self.una = 1;
        if self.timed_end == 1 {
            self.sample(cfg, now, now.since(self.timed_at));
        } else if self.ts_on {
            // A SYN that was sent again is timed by its timestamp only. Source: RFC 7323 §4.1.
            if let (true, Some(ts)) = (cfg.rtt_sampling != crate::RttSampling::TimedSegment, p.timestamps()) {
                let ticks = self.ts_clock(cfg, now).wrapping_sub(ts.echo).max(1);
                self.sample(cfg, now, cfg.timestamp_tick * u64::from(ticks));
            }
        }
        self.last_sent = now;
        self.open_receiver(cfg, now);
        self.established(cfg);
        self.arm_persist(now);
        self.pending.add(Pending::CONNECTED);
        if self.fin_wanted {
            self.fin_if_all_sent(cfg, now);
        }
    }

    /// Takes an RTT sample from the handshake.
    fn sample(&mut self, cfg: &Tcp, now: Time, rtt: Span) {
        if let Some(o) = &mut self.outstanding {
            o.segments.note_rtt(now, rtt);
        }
        match &mut self.outstanding {
            Some(o) if cfg.times_every_ack() => {
                self.rtt.sample_every(cfg, &mut o.rtt, rtt, (self.una, self.nxt));
            }
            _ => self.rtt.sample(cfg, rtt, 1),
        }
    }

    /// Closes the application's direction: FIN follows the last byte written. Connections that are open from the start stay
    /// open. Before the handshake is done, the FIN waits for it, in LISTEN too.
    pub(super) fn close_stream(&mut self, cfg: &Tcp, now: Time) {
        if self.open_from_start || self.fin_wanted || self.sync == Sync::Closed {
            return;
        }
        self.fin_wanted = true;
        if self.sync == Sync::Open {
            self.fin_if_all_sent(cfg, now);
        }
    }

    /// Sends a separate FIN if no data is left to carry it.
    fn fin_if_all_sent(&mut self, cfg: &Tcp, now: Time) {
        if self.nxt == self.end && !self.fin_sent {
            self.mark_fin_sent();
            self.due |= due::FIN;
            if self.rto_at == Time::MAX {
                self.rto_at = now + self.rtt.rto;
            }
            self.note_sent(cfg, now, self.end);
        }
    }

    /// Assigns the FIN its place in the stream.
    pub(super) fn mark_fin_sent(&mut self) {
        self.fin_sent = true;
        self.nxt = self.end + 1;
        self.leave_fast_path();
        if let Some(repair) = self.repair.as_deref_mut() {
            repair.advance(self.una); // on the calm path it was not kept up to date
        }
    }

    /// Checks if an advance of SND.UNA covers this end's FIN.
    #[inline]
    pub(super) fn fin_acked(&mut self, cfg: &Tcp, now: Time) {
        if self.fin_sent && self.una > self.end {
            self.check_closed(cfg, now);
        }
    }

    /// Closes the connection once both FINs are acknowledged: TIME-WAIT for the end that closed first, else closed. Source:
    /// RFC 9293 §3.6.
    pub(super) fn check_closed(&mut self, cfg: &Tcp, now: Time) {
        let both = self.fin_sent && self.una > self.end && self.peer_fin != NO_FIN && self.rcv_nxt > self.peer_fin;
        if !both || self.sync != Sync::Open {
            return;
        }
        self.leave_fast_path();
        self.ack_at = Time::MAX;
        self.pace_at = Time::MAX;
        self.pending.add(Pending::CLOSED);
        if self.passive_close {
            self.sync = Sync::Closed;
            self.rto_at = Time::MAX;
        } else {
            self.sync = Sync::TimeWait;
            self.rto_at = now.saturating_add(cfg.time_wait);
        }
    }
}
