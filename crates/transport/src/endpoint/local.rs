//! Transmit queue of the sender's own host: TCP small queues, and segments that it does not accept.

use super::output::Reason;
use super::{Phase, TcpEndpoint};
use crate::cc::{Congestion, Controller};
use crate::config::{Pacing, Tcp, WindowRules, TCP_HEADER, TIMESTAMP_BYTES};
use crate::transport::Refused;
use fanin_units::{Span, Time};

/// Largest number of bytes in the transmit queue without pacing. Source: Linux tcp_limit_output_bytes (4.20 to 6.12).
const LIMIT_OUTPUT_BYTES: u64 = 1 << 20;
/// Delay after which a retransmission that the queue did not accept is tried again. Source: Linux
/// TCP_RESOURCE_PROBE_INTERVAL.
const RESOURCE_PROBE: Span = Span::from_ms(500);

impl TcpEndpoint {
    /// TCP small queue limit: bytes in the transmit queue beyond which nothing more is sent; no limit if at most one segment
    /// is outstanding.
    ///
    /// Source: Linux tcp_small_queue_check. Deviation: frames are counted, in the kernel the memory that holds them (truesize).
    pub(super) fn small_queue(&self, cfg: &Tcp, now: Time) -> u64 {
        let mss = u64::from(self.w.mss);
        if self.nxt - self.una <= mss {
            return u64::MAX;
        }
        let burst = if cfg.tso { self.tso_bytes(cfg, now).max(mss) } else { mss };
        let mut limit = self.bytes_by_rate(cfg).unwrap_or(u64::MAX).max(2 * burst);
        if matches!(cfg.pacing, Pacing::None(_)) {
            limit = limit.min(LIMIT_OUTPUT_BYTES);
        }
        match self.next_segment(cfg, now) {
            Some(next) if next.reason != Reason::New => limit.saturating_mul(2),
            _ => limit,
        }
    }

    /// Handles a transmit queue that does not accept the next segment: it stays unsent and is no loss. The window falls as
    /// for an ECN echo, once per round; the next ACK or timeout resumes sending.
    ///
    /// Source: Linux __tcp_transmit_skb, tcp_write_xmit, tcp_enter_cwr; tcp_retransmit_timer.
    pub(super) fn refused_by_host(&mut self, cfg: &Tcp, now: Time) -> Option<Refused> {
        let next = self.next_segment(cfg, now)?;
        if self.phase == Phase::Open && self.una > self.reduced_until {
            self.reduce_for_host(cfg, now);
        }
        if next.reason != Reason::New && next.from == self.una && self.phase == Phase::Loss && self.retries > 0 {
            self.rtt.undo_back_off();
            self.rto_at = now + RESOURCE_PROBE;
        } else if self.rto_at == Time::MAX {
            self.rto_at = now + self.rtt.rto;
        }
        self.burst = 0;
        self.refused = true;
        self.leave_fast_path();
        let payload = (next.to.min(self.end) - next.from) as u16;
        Some(Refused { number: self.wire(next.from), header: TCP_HEADER + if self.ts_on { TIMESTAMP_BYTES } else { 0 }, payload })
    }

    fn reduce_for_host(&mut self, cfg: &Tcp, now: Time) {
        let mut r = self.repair.take().unwrap_or_default();
        match self.outstanding.take() {
            Some(mut o) if o.rack.is_some() => {
                if let Some(rack) = &mut o.rack {
                    self.begin_cwr_by_rack(cfg, now, &mut r, rack);
                }
                self.outstanding = Some(o);
            }
            o => {
                self.outstanding = o;
                let (flight, before) = (self.nxt - self.una, self.w.cwnd);
                let from_cwnd = cfg.window_rules == WindowRules::Linux;
                let event = Congestion { now, flight, from_cwnd, nxt: self.nxt, after_ecn: false, first: true };
                self.cc.on_ecn(&mut self.w, &event);
                self.reduced_until = self.nxt;
                self.reduced_by_ecn = true;
                self.cwr_due = self.ecn_on;
                if cfg.prr && flight > 0 && self.w.cwnd < before {
                    self.begin_cwr(&mut r, 0);
                }
            }
        }
        self.repair = Some(r);
    }
}
