//! Implementation of [`Transport`] for TCP.

use super::{unlikely, Connection, Sync, TcpEndpoint};
use crate::cc::{Controller, Window};
use crate::config::{Pacing, Tcp};
use crate::report::{AbortReason, Event, Pending, Stats};
use crate::signals::{SignalCounts, SignalLog};
use crate::snapshot::{SenderState, Timer};
use crate::transport::{Kinds, Place, Refused, Transport};
use fanin_packet::{Envelope, Header, Segment, SegmentMut, Signal};
use fanin_units::{Span, Stream, Time};

/// Cache lines of an endpoint that only senders use, beside the first two.
const SENDER_LINES: [usize; 2] = [3, 4];

impl Transport for TcpEndpoint {
    type Params = Tcp;

    fn pair(cfg: &Tcp, place: &Place, now: Time, draws: &mut Stream) -> [Self; 2] {
        let iss = [draws.next_u32(), draws.next_u32()];
        let ts_offset = [draws.next_u32(), draws.next_u32()];
        Connection::pair(cfg, place.framing.ip, iss, ts_offset).map(|connection| TcpEndpoint::new(cfg, connection, now))
    }

    /// Writes are refused after [`Transport::close`].
    fn write(&mut self, _cfg: &Tcp, now: Time, bytes: u64) {
        if !self.fin_wanted {
            if let Some(push) = self.outstanding.as_mut().and_then(|o| o.push.as_mut()) {
                push.written(self.end, self.nxt.max(1) == self.end);
            }
            self.refused = false;
            self.end += bytes;
            self.arm_persist(now);
            if let Some(rx) = &mut self.rx {
                rx.note_write(now.since(self.last_data));
            }
        }
    }

    fn close(&mut self, cfg: &Tcp, now: Time) {
        self.close_stream(cfg, now);
    }

    #[inline(always)]
    fn on_packet(&mut self, cfg: &Tcp, now: Time, envelope: &Envelope, header: &Header) {
        if let Header::Tcp(tcp) = header {
            self.dispatch_segment(cfg, now, Segment { envelope, tcp });
        }
    }

    fn on_signal(&mut self, cfg: &Tcp, now: Time, signal: &Signal) {
        self.on_notification(cfg, now, signal);
    }

    fn on_timer(&mut self, cfg: &Tcp, now: Time) {
        if self.ack_at <= now {
            self.ack_at = Time::MAX;
            self.due |= super::due::ACK;
            if let Some(rx) = &mut self.rx {
                rx.on_ack_timer(cfg, now, self.rtt.rto);
            }
        }
        if self.pace_at <= now {
            self.pace_at = Time::MAX;
        }
        if self.rto_at <= now {
            self.on_rto_timer(cfg, now);
        }
    }

    #[inline(always)]
    fn next_timeout(&self) -> Time {
        self.rto_at.min(self.ack_at).min(self.pace_at)
    }

    /// True without pacing and RACK, if the retransmission timer is longer than `span`. RACK's counts from the time at which
    /// the first segment was sent, which may be long ago.
    #[inline(always)]
    fn is_patient(&self, cfg: &Tcp, span: Span) -> bool {
        self.rtt.rto > span
            && self.w.cwnd >= u64::from(self.w.mss)
            && matches!(cfg.pacing, Pacing::None(_))
            && (self.bare || self.outstanding.as_ref().is_none_or(|outstanding| outstanding.rack.is_none()))
            && self.cc.pacing_rate(&self.w, self.rtt.srtt).is_none()
    }

    #[inline(always)]
    fn times_out_before(&self, at: Time) -> bool {
        unlikely(self.rto_at < at) || unlikely(self.ack_at < at) || unlikely(self.pace_at < at)
    }

    #[inline(always)]
    fn due(&self, cfg: &Tcp, now: Time, kinds: Kinds) -> bool {
        (kinds.has(Kinds::CONTROL) && self.due != 0) || (kinds.has(Kinds::DATA) && self.data_due(cfg, now))
    }

    #[inline(always)]
    fn may_have_data(&self, cfg: &Tcp, now: Time) -> bool {
        if self.on_fast_path() {
            self.nxt < self.end && (!cfg.tso || self.has_data(cfg, now))
        } else {
            self.has_data(cfg, now)
        }
    }

    #[inline(always)]
    fn poll(&mut self, cfg: &Tcp, now: Time, kinds: Kinds, envelope: &mut Envelope, header: &mut Header) -> bool {
        if kinds.has(Kinds::CONTROL) && self.due != 0 {
            self.poll_control(cfg, now, &mut SegmentMut { envelope, tcp: header.make_tcp() });
            return true;
        }
        kinds.has(Kinds::DATA) && self.poll_data(cfg, now, &mut SegmentMut { envelope, tcp: header.make_tcp() })
    }

    #[inline(always)]
    fn burst(&self, cfg: &Tcp, now: Time) -> u64 {
        if cfg.tso {
            self.tso_bytes(cfg, now)
        } else {
            0
        }
    }

    fn output_limit(&self, cfg: &Tcp, now: Time) -> u64 {
        if cfg.small_queues {
            self.small_queue(cfg, now)
        } else {
            u64::MAX
        }
    }

    fn on_refusal(&mut self, cfg: &Tcp, now: Time) -> Option<Refused> {
        self.refused_by_host(cfg, now)
    }

    #[inline(always)]
    fn poll_event(&mut self) -> Option<Event> {
        match self.pending.0 {
            0 => None,
            // Nearly always.
            Pending::DELIVERED => {
                self.pending = Pending::default();
                Some(Event::Delivered { total: self.delivered() })
            }
            Pending::ACKED => {
                self.pending = Pending::default();
                Some(Event::Acked { total: self.acked() })
            }
            _ => Some(self.first_event()),
        }
    }

    #[inline(always)]
    fn is_quiet_below(&mut self, delivered: u64, acked: u64) -> bool {
        let news = self.pending.0;
        let unheard = if news == Pending::DELIVERED {
            self.rcv_nxt - 1 < delivered // no FIN, which would be news, too
        } else if news == Pending::ACKED {
            self.acked() < acked
        } else {
            return news == 0;
        };
        if unheard {
            self.pending = Pending::default();
        }
        unheard
    }

    fn is_over(&self, cfg: &Tcp) -> bool {
        match self.sync {
            Sync::Closed | Sync::TimeWait => true,
            _ => !cfg.handshake && self.una >= self.end,
        }
    }

    /// Fetches the sender's cache lines if the endpoint has sent, or may send, unacknowledged data. The first two lines are
    /// in the cache already.
    #[inline(always)]
    fn apart(&self, step: usize, fetch: impl Fn(*const u8)) {
        if step == 0 && self.una < self.end {
            let first = std::ptr::from_ref(self).cast::<u8>();
            SENDER_LINES.into_iter().for_each(|line| fetch(first.wrapping_add(64 * line)));
        }
    }

    fn stats(&self) -> Stats {
        let counts = &self.counts;
        Stats {
            packets_sent: u64::from(self.packets_sent),
            bytes_sent: self.nxt.min(self.end).saturating_sub(1) + counts.bytes_again,
            acked: self.acked(),
            delivered: self.delivered(),
            control_sent: u64::from(self.control_sent),
            marked: counts.marked,
            retransmits: counts.retransmits,
            duplicate_bytes: counts.duplicate_bytes,
            timeouts: counts.timeouts,
            recoveries: counts.recoveries,
            ecn_reductions: counts.ecn_reductions,
            dup_acks: counts.dup_acks,
            spurious_rtos: counts.spurious_rtos,
            window_probes: counts.window_probes,
            notices: counts.notices,
            notice_reductions: counts.notice_reductions,
        }
    }

    #[inline(always)]
    fn sent(&self) -> u32 {
        self.packets_sent
    }

    fn signals(&self) -> SignalCounts {
        self.signals.so_far()
    }

    fn signal_log(&mut self) -> &mut SignalLog {
        &mut self.signals
    }

    fn next_place(&self) -> Option<u32> {
        (self.sync == Sync::Open).then(|| self.wire_rcv_nxt())
    }

    fn snapshot(&self) -> Option<SenderState> {
        let probes = self.una == self.nxt && self.end > self.nxt && self.sync == Sync::Open;
        let oldest = if probes { Timer::WindowProbe } else { self.loss_timer() };
        Some(SenderState {
            established: matches!(self.sync, Sync::Open | Sync::TimeWait),
            origins: [self.iss, self.irs],
            acked: self.una,
            next: self.nxt,
            cwnd: self.cwnd(),
            ssthresh: Some(self.ssthresh()).filter(|ssthresh| *ssthresh != Window::INFINITE),
            srtt: self.srtt(),
            rttvar: self.rttvar(),
            rto: self.rto(),
            rate: self.cc.pacing_rate(&self.w, self.rtt.srtt),
            alpha: self.alpha(),
            mss: self.mss(),
            pipe: self.pipe(),
            unsent: self.unsent(),
            window: self.edge.saturating_sub(self.una),
            phase: self.phase(),
            rack: self.rack_counts(),
            timers: [(oldest, self.rto_at), (Timer::DelayedAck, self.ack_at), (Timer::Pacing, self.pace_at)],
        })
    }

    fn describe(&self) -> String {
        format!(
            "{:?}, {} B in flight, {} B unsent, cwnd {} B, RTO {}",
            self.state(),
            self.inflight(),
            self.unsent(),
            self.cwnd(),
            self.rto()
        )
    }
}

impl TcpEndpoint {
    /// Application bytes acknowledged by the peer.
    #[inline(always)]
    fn acked(&self) -> u64 {
        self.una.min(self.end).saturating_sub(1)
    }

    /// Application bytes received in order.
    fn delivered(&self) -> u64 {
        self.rcv_nxt.min(self.peer_fin).saturating_sub(1)
    }

    /// True if data is due, for states in which that takes long to find.
    #[inline(never)]
    fn has_data(&self, cfg: &Tcp, now: Time) -> bool {
        self.data_due(cfg, now)
    }

    /// Takes the first pending event, in causal order.
    #[inline(never)]
    fn first_event(&mut self) -> Event {
        match self.pending.take() {
            Pending::CONNECTED => Event::Connected,
            Pending::DELIVERED => Event::Delivered { total: self.delivered() },
            Pending::ACKED => Event::Acked { total: self.acked() },
            Pending::PEER_CLOSED => Event::PeerClosed,
            Pending::CLOSED => Event::Closed,
            _ => Event::Aborted(self.aborted.unwrap_or(AbortReason::Reset)),
        }
    }
}
