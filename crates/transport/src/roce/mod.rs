//! RoCEv2: a flow is a reliable queue pair over UDP, which writes to the memory of the peer.
//!
//! Source: IBTA §9 and Annex A17; IRN (selective repeat).
//! Deviation: queue pairs exist before the flow does; no read, send or atomic operations; end-to-end credits and RNR are left out, as
//! RDMA WRITE needs neither.

pub mod cc;
mod config;
mod limiter;
mod messages;
mod receiver;
mod sender;
mod telemetry;
#[cfg(test)]
mod tests;

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
use telemetry::{InBand, Samples};

/// RoCEv2 endpoint: one end of a queue pair, boxed so that it does not enlarge TCP's endpoints.
#[derive(Debug)]
pub struct RoceEndpoint(Box<QueuePair>);

#[derive(Debug)]
struct QueuePair {
    sender: Sender,
    receiver: Receiver,
    /// Initial packet sequence numbers of sent and of received packets.
    origins: [u32; 2],
    /// Bytes received in order.
    place: u64,
    /// Arrival time of the next packet at the host, if it waited there.
    arrived: Option<Time>,
    /// Processing delay of every packet in the host.
    processing: Span,
    /// In-band telemetry, if the control uses it.
    in_band: Option<Box<InBand>>,
    pending: Pending,
    failed: bool,
    stats: Stats,
    signals: SignalLog,
}

/// Fetches the cache lines of a value.
#[inline(always)]
fn lines<T>(of: &T, fetch: impl Fn(*const u8)) {
    let first = std::ptr::from_ref(of).cast::<u8>();
    (0..std::mem::size_of::<T>()).step_by(64).for_each(|at| fetch(first.wrapping_add(at)));
}

impl RoceEndpoint {
    fn new(cfg: &Roce, place: &Place, side: usize, origins: [u32; 2]) -> Self {
        let full = cfg.data_header().bytes() + cfg.mtu;
        let path = Path {
            line_rate: place.rates[side],
            base_rtt: place.base_rtt,
            hops: place.hops,
            payload: u32::from(cfg.mtu),
            wire: place.framing.on_wire(place.framing.frame(full)),
        };
        let sender = Sender::new(cfg, path, place.framing, origins[0]);
        RoceEndpoint(Box::new(QueuePair {
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
        }))
    }

    fn fail(&mut self) {
        self.0.failed = true;
        self.0.pending.add(Pending::ABORTED);
    }
}

/// Implementation of [`Transport`], never inlined: TCP's path through the hosts, which nearly all runs take, stays short.
impl Transport for RoceEndpoint {
    type Params = Roce;

    fn pair(cfg: &Roce, place: &Place, _now: Time, draws: &mut Stream) -> [Self; 2] {
        let [a, b] = [draws.next_u32(), draws.next_u32()].map(|n| n & RoceHeader::PSN_MASK);
        [RoceEndpoint::new(cfg, place, 0, [a, b]), RoceEndpoint::new(cfg, place, 1, [b, a])]
    }

    #[inline(never)]
    fn write(&mut self, _cfg: &Roce, now: Time, bytes: u64) {
        self.0.sender.write(now, bytes);
    }

    /// Does nothing: no packet closes a queue pair.
    fn close(&mut self, _cfg: &Roce, _now: Time) {}

    fn arrived_at(&mut self, at: Time) {
        self.0.arrived = Some(at);
    }

    const HAS_TELEMETRY: bool = true;

    fn on_telemetry(&mut self, stack: &Stack) {
        if let Some(in_band) = &mut self.0.in_band {
            in_band.arrived(stack);
        }
    }

    fn telemetry(&self, made: &Header) -> Option<Stack> {
        let Header::Roce(roce) = made else { return None };
        self.0.in_band.as_ref()?.of_sent(roce.op)
    }

    #[inline(never)]
    fn on_packet(&mut self, cfg: &Roce, now: Time, envelope: &Envelope, header: &Header) {
        let waited = self.0.processing + self.0.arrived.take().map_or(Span::ZERO, |at| now.since(at));
        let Header::Roce(roce) = header else { return };
        if envelope.trimmed {
            self.0.signals.counts().trimming.ignored += 1;
            return;
        }
        match roce.op {
            RoceOp::Acknowledge => {
                let samples = self.0.in_band.as_mut().map_or(Samples::NONE, |in_band| in_band.take_samples(now));
                let heard = Heard { at_end: waited, telemetry: samples.as_slice(), path: samples.path };
                match self.0.sender.on_ack(cfg, now, roce, &heard, &mut self.0.stats) {
                    Outcome::Nothing => {}
                    Outcome::Acknowledged => self.0.pending.add(Pending::ACKED),
                    Outcome::Failed => self.fail(),
                }
            }
            RoceOp::Notification => self.0.sender.on_cnp(now, &mut self.0.stats),
            _ => {
                let bytes = self.0.receiver.on_data(cfg, now, waited, (envelope, roce), &mut self.0.stats);
                self.0.place += bytes;
                if bytes > 0 {
                    self.0.pending.add(Pending::DELIVERED);
                }
            }
        }
    }

    #[inline(never)]
    fn on_timer(&mut self, cfg: &Roce, now: Time) {
        self.0.receiver.on_timer(now);
        if !self.0.sender.on_timer(cfg, now, &mut self.0.stats) {
            self.fail();
        }
    }

    #[inline]
    fn next_timeout(&self) -> Time {
        if self.0.failed {
            return Time::MAX;
        }
        self.0.sender.next_timeout().min(self.0.receiver.next_timeout())
    }

    #[inline]
    fn due(&self, _cfg: &Roce, now: Time, kinds: Kinds) -> bool {
        !self.0.failed
            && ((kinds.has(Kinds::CONTROL) && self.0.receiver.due(now)) || (kinds.has(Kinds::DATA) && self.0.sender.due(now)))
    }

    #[inline(never)]
    fn poll(&mut self, cfg: &Roce, now: Time, kinds: Kinds, envelope: &mut Envelope, header: &mut Header) -> bool {
        if self.0.failed {
            return false;
        }
        (kinds.has(Kinds::CONTROL) && self.0.receiver.poll(cfg, now, &mut self.0.stats, envelope, header))
            || (kinds.has(Kinds::DATA) && self.0.sender.poll(cfg, now, &mut self.0.stats, envelope, header))
    }

    #[inline]
    fn burst(&self, cfg: &Roce, _now: Time) -> u64 {
        self.0.sender.burst(cfg)
    }

    #[inline(never)]
    fn poll_event(&mut self) -> Option<Event> {
        if self.0.pending.0 == 0 {
            return None;
        }
        Some(match self.0.pending.take() {
            Pending::DELIVERED => Event::Delivered { total: self.0.stats.delivered },
            Pending::ACKED => Event::Acked { total: self.0.stats.acked },
            _ => Event::Aborted(AbortReason::RetriesExhausted),
        })
    }

    #[inline]
    fn is_quiet_below(&mut self, delivered: u64, acked: u64) -> bool {
        let pair = &mut *self.0;
        let unheard = match pair.pending.0 {
            Pending::DELIVERED => pair.stats.delivered < delivered,
            Pending::ACKED => pair.stats.acked < acked,
            news => return news == 0,
        };
        if unheard {
            pair.pending = Pending::default();
        }
        unheard
    }

    #[inline(never)]
    fn is_over(&self, _cfg: &Roce) -> bool {
        self.0.sender.is_done()
    }

    /// Fetches the queue pair's memory, then the memory that it points to.
    #[inline(always)]
    fn apart(&self, step: usize, fetch: impl Fn(*const u8)) {
        let pair = &*self.0;
        if step == 0 {
            return lines(pair, fetch);
        }
        pair.sender.apart(&fetch);
        if let Some(in_band) = pair.in_band.as_deref() {
            in_band.apart(!pair.sender.is_done(), &fetch);
        }
    }

    fn stats(&self) -> Stats {
        self.0.stats
    }

    #[inline(always)]
    fn sent(&self) -> u32 {
        self.0.stats.packets_sent as u32
    }

    fn signals(&self) -> SignalCounts {
        self.0.signals.so_far()
    }

    fn signal_log(&mut self) -> &mut SignalLog {
        &mut self.0.signals
    }

    fn next_place(&self) -> Option<u32> {
        Some(self.0.place as u32)
    }

    fn snapshot(&self) -> Option<SenderState> {
        let look = self.0.sender.look();
        let phase = match (look.repairs, look.late) {
            (_, true) => Phase::Loss,
            (true, false) => Phase::Recovery,
            (false, false) => Phase::Open,
        };
        Some(SenderState {
            established: true,
            origins: self.0.origins,
            acked: look.acked + 1,
            next: look.next + 1,
            cwnd: look.window,
            ssthresh: None,
            srtt: look.rtt,
            rttvar: Span::ZERO,
            rto: look.timeout,
            rate: Some(look.rate),
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
        let look = self.0.sender.look();
        format!("{} B in flight, {} B unsent, at {}", look.flight, look.unsent, look.rate)
    }
}
