//! Segmentation offload: length of bursts, and their deferral.

use super::{Phase, TcpEndpoint};
use crate::cc::Controller;
use crate::config::{Paced, Tcp};
use fanin_units::{Span, Time};

/// Time whose bytes at the pacing rate make a burst. Source: Linux sk_pacing_shift = 10 (1/1024 s).
const AUTOSIZE: Span = Span::from_ps(976_562_500);
/// Number of segments of the shortest burst. Source: Linux tcp_min_tso_segs.
const LEAST_SEGMENTS: u64 = 2;
/// Divisor of the window that gives the burst worth waiting for. Source: Linux tcp_tso_win_divisor.
const WIN_DIVISOR: u64 = 3;
/// Time without sending after which a sender does not defer. Source: Linux tcp_tso_should_defer.
const RECENT: Span = Span::from_ms(1);

impl TcpEndpoint {
    /// Bytes of new data up to the end of the present socket buffer, which bursts do not cross: buffers are filled to the
    /// longest burst. Source: Linux tcp_xmit_size_goal.
    fn in_socket_buffer(&self, cfg: &Tcp) -> u64 {
        let goal = self.socket_buffer(cfg);
        (goal - self.nxt.saturating_sub(1) % goal).min(self.end - self.nxt)
    }

    fn socket_buffer(&self, cfg: &Tcp) -> u64 {
        let mss = u64::from(self.w.mss);
        (cfg.tso_max.get() / mss).max(1) * mss
    }

    /// True if a socket buffer ends at SND.NXT; without bursts each segment has its own.
    pub(super) fn ends_socket_buffer(&self, cfg: &Tcp) -> bool {
        !cfg.tso || (self.nxt - 1) % self.socket_buffer(cfg) == 0
    }

    /// Bytes that the pacing rate sends in a millisecond; `None` before an RTT is known.
    pub(super) fn bytes_by_rate(&self, cfg: &Tcp) -> Option<u64> {
        let srtt = self.rtt.srtt;
        match self.cc.pacing_rate(&self.w, srtt) {
            Some(rate) => Some(rate.bytes_in(AUTOSIZE).get()),
            None if srtt == Span::ZERO => None,
            None => {
                let standard = Paced { slow_start_gain: 2.0, gain: 1.2 };
                let paced = self.paced(cfg).unwrap_or(&standard);
                let gain = if self.w.cwnd < self.w.ssthresh / 2 { paced.slow_start_gain } else { paced.gain };
                let window = self.w.cwnd.max(self.nxt - self.una) as f64;
                Some((gain * window * AUTOSIZE.as_secs_f64() / srtt.as_secs_f64()) as u64)
            }
        }
    }

    /// Length of a burst that only the rate and the NIC limit. Source: Linux tcp_tso_autosize, tcp_update_pacing_rate: the
    /// rate is computed whether or not anything is paced by it.
    fn burst_goal(&self, cfg: &Tcp) -> u64 {
        let mss = u64::from(self.w.mss);
        let most = cfg.tso_max.get();
        let by_rate = self.bytes_by_rate(cfg).unwrap_or(most);
        let least = self.outstanding.as_ref().and_then(|o| o.segments.least_rtt());
        let short_rtt = match (cfg.tso_rtt_log, least) {
            (1.., Some(least)) => {
                let halvings = (least.ps() / 1_000_000) >> cfg.tso_rtt_log;
                most.checked_shr(halvings.min(64) as u32).unwrap_or(0)
            }
            _ => 0,
        };
        ((by_rate + short_rtt).min(most) / mss).max(LEAST_SEGMENTS) * mss
    }

    /// Length of the burst that starts now: at most half of the window, so that two are in flight. Source: Linux
    /// tcp_cwnd_test, tcp_mss_split_point.
    pub(super) fn burst_size(&self, cfg: &Tcp) -> u64 {
        let mss = u64::from(self.w.mss);
        let room = self.w.cwnd.saturating_sub(self.pipe()).min(self.edge - self.nxt);
        let half = (self.w.cwnd / mss / 2).max(1) * mss;
        let size = self.in_socket_buffer(cfg).min(self.burst_goal(cfg)).min(room).min(half);
        if size > mss && size < self.end - self.nxt {
            size - size % mss
        } else {
            size
        }
    }

    /// Notes that a burst is deferred because of cwnd, which shows that the window is used up although it is not full.
    /// Source: Linux tcp_tso_should_defer, tcp_write_xmit (since 5.11 where nothing was sent either), tcp_cwnd_validate.
    #[inline(never)]
    pub(super) fn note_deferral(&mut self, cfg: &Tcp, now: Time) {
        if self.nxt >= self.end || self.burst > 0 || !self.defers(cfg, now) {
            return;
        }
        let by_cwnd = self.w.cwnd.saturating_sub(self.pipe());
        if by_cwnd < self.edge - self.nxt && by_cwnd <= self.in_socket_buffer(cfg) {
            self.cwnd_limited = true;
            self.max_flight = self.nxt - self.una;
            self.usage_end = self.nxt;
        }
    }

    /// True if the next burst is deferred until the window has room for one that is worth it, unless no ACK is about to make
    /// room.
    ///
    /// Source: Linux tcp_tso_should_defer. Deviation: without RACK only while nothing is lost or reordered.
    pub(super) fn defers(&self, cfg: &Tcp, now: Time) -> bool {
        let buffered = self.in_socket_buffer(cfg);
        let repairing = matches!(self.phase, Phase::Recovery | Phase::Loss);
        if repairing || buffered <= u64::from(self.w.mss) || self.nxt == self.una || self.rtt.srtt == Span::ZERO {
            return false;
        }
        let room = self.w.cwnd.saturating_sub(self.pipe()).min(self.edge - self.nxt);
        let window = self.w.cwnd.min(self.edge - self.una);
        let last = buffered == self.end - self.nxt;
        if room >= self.burst_goal(cfg) || (!last && room >= buffered) || room >= window / WIN_DIVISOR {
            return false;
        }
        let head = self.outstanding.as_ref().and_then(|o| o.segments.head_sent());
        if now.since(self.last_sent) > RECENT || head.is_some_and(|at| now.since(at) < self.rtt.srtt / 2) {
            return false;
        }
        !(last && self.fin_wanted && room > buffered)
    }
}
