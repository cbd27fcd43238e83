//! RoCEv2: a flow is a reliable queue pair over UDP, which writes to the memory of the other end.
//!
//! Source: IBTA §9 and Annex A17 (from memory), IRN for selective repeat.
//! Deviation: queue pairs exist before the flow does; no read, send or atomic operations; end-to-end credits and RNR are left out, as
//! RDMA WRITE needs neither.

pub mod cc;
mod config;
mod limiter;
mod messages;
mod receiver;
mod sender;
mod telemetry;

pub use config::{BdpWindow, FixedRoceWindow, GoBackN, NoRoceWindow, Roce, RoceRecovery, RoceWindow, SelectiveRepeat};

use crate::endpoint::Phase;
use crate::report::{AbortReason, Event, Pending, RackCounts, Stats};
use crate::signals::{SignalCounts, SignalLog};
use crate::snapshot::{SenderState, Timer};
use crate::transport::{Kinds, Place, Transport};
use cc::Path;
use fanin_packet::{Envelope, Header, RoceHeader, RoceOp, Stack};
use fanin_units::{Span, Stream, Time};
use receiver::Receiver;
use sender::{Heard, Outcome, Sender};
use telemetry::InBand;

/// One end of a queue pair.
#[derive(Debug)]
pub struct RoceEndpoint {
    sender: Sender,
    receiver: Receiver,
    /// First sequence numbers of what it sends and of what it receives.
    origins: [u32; 2],
    /// Bytes received in order.
    place: u64,
    /// When the packet that comes next reached the host, where that was before.
    arrived: Option<Time>,
    /// What every packet waits in a host besides.
    processing: Span,
    /// Telemetry, where its control works by that.
    in_band: Option<Box<InBand>>,
    pending: Pending,
    failed: bool,
    stats: Stats,
    signals: SignalLog,
}

impl RoceEndpoint {
    fn new(cfg: &Roce, place: &Place, side: usize, origins: [u32; 2]) -> Self {
        let full = RoceHeader { op: RoceOp::WriteMiddle, reth: cfg.selective(), ..RoceHeader::default() }.bytes() + cfg.mtu;
        let path = Path {
            line_rate: place.rates[side],
            base_rtt: place.base_rtt,
            hops: place.hops,
            payload: u32::from(cfg.mtu),
            wire: place.framing.on_wire(place.framing.frame(full)),
        };
        let sender = Sender::new(cfg, path, place.framing, origins[0]);
        RoceEndpoint {
            sender,
            receiver: Receiver::new(cfg, origins[1]),
            origins,
            place: 0,
            arrived: None,
            processing: place.processing,
            in_band: cfg.congestion_control.needs().telemetry.map(|_| Box::default()),
            pending: Pending::default(),
            failed: false,
            stats: Stats::default(),
            signals: SignalLog::default(),
        }
    }

    fn fail(&mut self) {
        self.failed = true;
        self.pending.add(Pending::ABORTED);
    }
}

impl Transport for RoceEndpoint {
    type Params = Roce;

    fn pair(cfg: &Roce, place: &Place, _now: Time, draws: &mut Stream) -> [Self; 2] {
        let [a, b] = [draws.next_u32(), draws.next_u32()].map(|n| n & RoceHeader::PSN_MASK);
        [RoceEndpoint::new(cfg, place, 0, [a, b]), RoceEndpoint::new(cfg, place, 1, [b, a])]
    }

    fn write(&mut self, _cfg: &Roce, now: Time, bytes: u64) {
        self.sender.write(now, bytes);
    }

    /// Nothing on the wire closes a queue pair.
    fn close(&mut self, _cfg: &Roce, _now: Time) {}

    fn arrived_at(&mut self, at: Time) {
        self.arrived = Some(at);
    }

    fn on_telemetry(&mut self, stack: &Stack) {
        if let Some(in_band) = &mut self.in_band {
            in_band.arrived(stack);
        }
    }

    fn telemetry(&mut self) -> Option<Stack> {
        self.in_band.as_mut()?.of_sent()
    }

    fn on_packet(&mut self, cfg: &Roce, now: Time, envelope: &Envelope, header: &Header) {
        let waited = self.processing + self.arrived.take().map_or(Span::ZERO, |at| now.since(at));
        let Header::Roce(roce) = header else { return };
        let heard = self.in_band.as_mut().map(|in_band| in_band.on_packet(now, roce.op));
        if envelope.trimmed {
            self.signals.counts().trimming.ignored += 1;
            return;
        }
        match roce.op {
            RoceOp::Acknowledge => {
                let (telemetry, path) = heard.unwrap_or((&[], 0));
                match self.sender.on_ack(cfg, now, roce, &Heard { at_end: waited, telemetry, path }, &mut self.stats) {
                    Outcome::Nothing => {}
                    Outcome::Acknowledged => self.pending.add(Pending::ACKED),
                    Outcome::Failed => self.fail(),
                }
            }
            RoceOp::Notification => self.sender.on_cnp(now, &mut self.stats),
            _ => {
                let bytes = self.receiver.on_data(cfg, now, waited, (envelope, roce), &mut self.stats);
                self.place += bytes;
                if bytes > 0 {
                    self.pending.add(Pending::DELIVERED);
                }
            }
        }
    }

    fn on_timer(&mut self, cfg: &Roce, now: Time) {
        self.receiver.on_timer(now);
        if !self.sender.on_timer(cfg, now, &mut self.stats) {
            self.fail();
        }
    }

    #[inline]
    fn next_timeout(&self) -> Time {
        if self.failed {
            return Time::MAX;
        }
        self.sender.next_timeout().min(self.receiver.next_timeout())
    }

    #[inline]
    fn due(&self, _cfg: &Roce, now: Time, kinds: Kinds) -> bool {
        !self.failed
            && ((kinds.has(Kinds::CONTROL) && self.receiver.due(now)) || (kinds.has(Kinds::DATA) && self.sender.due(now)))
    }

    fn poll(&mut self, cfg: &Roce, now: Time, kinds: Kinds, envelope: &mut Envelope, header: &mut Header) -> bool {
        if self.failed {
            return false;
        }
        let made = (kinds.has(Kinds::CONTROL) && self.receiver.poll(cfg, now, &mut self.stats, envelope, header))
            || (kinds.has(Kinds::DATA) && self.sender.poll(cfg, now, &mut self.stats, envelope, header));
        if let (Some(in_band), Header::Roce(roce), true) = (&mut self.in_band, &*header, made) {
            in_band.sent(roce.op);
        }
        made
    }

    fn burst(&self, cfg: &Roce, _now: Time) -> u64 {
        self.sender.burst(cfg)
    }

    fn poll_event(&mut self) -> Option<Event> {
        if self.pending.0 == 0 {
            return None;
        }
        Some(match self.pending.take() {
            Pending::DELIVERED => Event::Delivered { total: self.stats.delivered },
            Pending::ACKED => Event::Acked { total: self.stats.acked },
            _ => Event::Aborted(AbortReason::RetriesExhausted),
        })
    }

    fn is_over(&self, _cfg: &Roce) -> bool {
        self.sender.is_done()
    }

    fn stats(&self) -> &Stats {
        &self.stats
    }

    fn signals(&self) -> SignalCounts {
        self.signals.so_far()
    }

    fn signal_log(&mut self) -> &mut SignalLog {
        &mut self.signals
    }

    fn next_place(&self) -> Option<u32> {
        Some(self.place as u32)
    }

    fn snapshot(&self) -> Option<SenderState> {
        let look = self.sender.look();
        let phase = match (look.repairs, look.late) {
            (_, true) => Phase::Loss,
            (true, false) => Phase::Recovery,
            (false, false) => Phase::Open,
        };
        Some(SenderState {
            established: true,
            origins: self.origins,
            acked: look.acked + 1,
            next: look.next + 1,
            cwnd: look.window,
            ssthresh: None,
            srtt: look.rtt,
            rttvar: Span::ZERO,
            rto: look.timeout,
            alpha: look.alpha,
            mss: look.payload,
            pipe: look.flight,
            unsent: look.unsent,
            window: u64::MAX - look.acked,
            phase,
            rack: RackCounts::default(),
            timers: [(Timer::Retransmission, look.timeout_at), (Timer::DelayedAck, Time::MAX), (Timer::Pacing, look.pace_at)],
        })
    }

    fn describe(&self) -> String {
        let look = self.sender.look();
        format!("{} B in flight, {} B unsent, at {}", look.flight, look.unsent, look.rate)
    }
}
