//! Sending half of a queue pair: next packet, acknowledgments, loss recovery.

use super::cc::{Control, Feedback, Loss, Path, RateControl, Sending};
use super::config::{local_ack_timeout, Roce, RoceRecovery};
use super::limiter::Limiter;
use super::messages::Messages;
use crate::report::Stats;
use fanin_packet::{Ecn, Envelope, Framing, Header, HopSample, Kind, RoceHeader, RoceOp, Stack, Syndrome};
use fanin_units::{Bytes, Span, Time};
use std::collections::VecDeque;

/// Largest number of outstanding packets, so that a sequence number identifies one: half of all numbers. Source: IBTA §9.7.2.
const MOST_OUTSTANDING: u64 = 1 << 23;

/// A packet that was sent and is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    /// True if the packet was retransmitted.
    again: bool,
    /// True if the packet has arrived out of order.
    arrived: bool,
}

/// State of selective repeat while packets are missing. Source: IRN §3.1.
#[derive(Clone, Copy, Debug, Default)]
struct Repair {
    /// Packet before which all must be acknowledged to end the recovery; `None`: nothing is missing.
    until: Option<u64>,
    /// Highest packet known to have arrived, plus one: missing packets before it are lost.
    arrived: u64,
    /// First packet not yet examined for loss.
    scan: u64,
    /// Next packet to retransmit.
    next: Option<u64>,
}

/// Facts about an acknowledgment besides its header.
#[derive(Clone, Copy, Debug)]
pub struct Heard<'a> {
    /// Time that the acknowledgment waited in this host.
    pub at_end: Span,
    /// Telemetry of the path, see [`Feedback`].
    pub telemetry: &'a [HopSample],
    pub path: u16,
}

/// Effect of an acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Nothing,
    Acknowledged,
    /// Failure: one negative acknowledgment more than the queue pair tolerates.
    Failed,
}

/// Sending half of a queue pair.
#[derive(Clone, Debug)]
pub struct Sender {
    messages: Messages,
    /// Packet numbers: first unacknowledged one, next in order, and one behind the highest sent.
    una: u64,
    nxt: u64,
    high: u64,
    origin: u32,
    sent: VecDeque<Sent>,
    repair: Repair,
    /// Number of consecutive retransmissions of the first packet.
    retries: u32,
    /// Start and expiry of the timeout.
    waits_since: Time,
    timeout_at: Time,
    /// Time at which the rate limiter releases the next packet, if nothing else holds it.
    pace_at: Time,
    /// Number of packets since the last one that requested an acknowledgment.
    since_ack_request: u32,
    /// Time at which the last packet of a burst has left.
    free_at: Time,
    limiter: Limiter,
    /// Limit of outstanding bytes of the queue pair's own window \[bytes\].
    limit: u64,
    /// Part of a packet that has to fit into the control's window for it to leave \[bytes\].
    fits: u64,
    control: Control,
    sending: Sending,
    path: Path,
    framing: Framing,
    /// Last measured RTT.
    rtt: Span,
}

impl Sender {
    pub fn new(cfg: &Roce, path: Path, framing: Framing, origin: u32) -> Self {
        let (control, sending) = Control::new(&cfg.congestion_control, &path);
        let burst = cfg.burst.map_or(u32::from(cfg.mtu), |burst| burst.get() as u32);
        Sender {
            messages: Messages::new(cfg.mtu, cfg.packets_per_message()),
            una: 0,
            nxt: 0,
            high: 0,
            origin,
            sent: VecDeque::new(),
            repair: Repair::default(),
            retries: 0,
            waits_since: Time::ZERO,
            timeout_at: Time::MAX,
            pace_at: Time::MAX,
            since_ack_request: 0,
            free_at: Time::ZERO,
            limiter: Limiter::new(burst),
            limit: cfg.window.bytes(&path),
            fits: if cfg.congestion_control.needs().fills_window { 1 } else { u64::from(path.payload) },
            control,
            sending,
            path,
            framing,
            rtt: Span::ZERO,
        }
    }

    /// Fetches the send times of packets that are sent and acknowledged next, the writes, and the memory of the control.
    #[inline(always)]
    pub fn apart(&self, fetch: &impl Fn(*const u8)) {
        let (first, wrapped) = self.sent.as_slices();
        let last = if wrapped.is_empty() { first } else { wrapped };
        fetch(first.as_ptr().cast());
        fetch(last.as_ptr().wrapping_add(last.len()).cast());
        self.messages.apart(fetch);
        self.control.apart(fetch);
    }

    pub fn write(&mut self, now: Time, bytes: u64) {
        self.messages.write(bytes);
        self.set_pace_timer(now);
    }

    /// True if all written data is acknowledged.
    pub fn is_done(&self) -> bool {
        self.una == self.messages.packets()
    }

    /// Next packet that windows allow to leave.
    #[inline]
    fn next_packet(&self) -> Option<u64> {
        if let Some(lost) = self.repair.next {
            return Some(lost);
        }
        (self.nxt < self.messages.packets() && self.has_room()).then_some(self.nxt)
    }

    /// True if the windows have room for the next packet in order; one packet may always be outstanding.
    #[inline]
    fn has_room(&self) -> bool {
        let outstanding = self.nxt - self.una;
        let payload = u64::from(self.path.payload);
        outstanding == 0
            || (outstanding < MOST_OUTSTANDING
                && (outstanding + 1) * payload <= self.limit
                && outstanding * payload + self.fits <= self.sending.window)
    }

    /// True if a packet may leave now.
    #[inline]
    pub fn due(&self, now: Time) -> bool {
        self.limiter.next() <= now && self.next_packet().is_some()
    }

    /// Makes the next packet.
    pub fn poll(&mut self, cfg: &Roce, now: Time, stats: &mut Stats, envelope: &mut Envelope, header: &mut Header) -> bool {
        if self.limiter.next() > now {
            return false;
        }
        let Some(packet) = self.next_packet() else { return false };
        let piece = self.messages.piece(packet);
        let again = packet < self.high;
        self.since_ack_request += 1;
        let ack_request = piece.last || self.since_ack_request >= cfg.ack_every;
        if ack_request {
            self.since_ack_request = 0;
        }
        let roce = RoceHeader {
            op: RoceOp::write(piece.first, piece.last),
            psn: self.psn(packet),
            ack_request,
            reth: piece.first || cfg.selective(),
            place: piece.offset as u32,
            message: piece.message,
            pad: RoceHeader::pad_of(piece.length),
            ..RoceHeader::default()
        };
        let telemetry = cfg.congestion_control.needs().telemetry.map_or(0, |_| Stack::bytes(0));
        let wire = self.framing.on_wire(self.framing.frame(roce.bytes() + piece.length) + telemetry);
        let leaves = self.leaves(cfg, now, wire);
        self.note_sent(packet, leaves);
        *header = Header::Roce(roce);
        envelope.payload = piece.length;
        envelope.ecn = if cfg.congestion_control.needs().marks.is_some() { Ecn::Ect0 } else { Ecn::NotEct };
        envelope.kind = Kind::Reliable;
        envelope.trimmed = false;
        stats.packets_sent += 1;
        stats.bytes_sent += u64::from(piece.length);
        stats.retransmits += u64::from(again);
        if self.sending.rate < self.path.line_rate {
            self.limiter.sent(now, u32::from(piece.length), wire, self.sending.rate);
        } else {
            self.limiter.open();
        }
        self.steer(|control, sending| control.on_sent(sending, now, wire));
        if self.timeout_at == Time::MAX {
            self.waits_since = now;
        }
        self.set_timeout(cfg);
        self.set_pace_timer(now);
        true
    }

    /// Time at which a packet begins to leave: the NIC takes those of a burst at once, and they leave one after the other.
    fn leaves(&mut self, cfg: &Roce, now: Time, wire: u32) -> Time {
        if cfg.burst.is_none() {
            return now;
        }
        let leaves = now.max(self.free_at);
        self.free_at = leaves + self.path.line_rate.time_to_send(Bytes(u64::from(wire)));
        leaves
    }

    /// Accounts for a packet that begins to leave at `now`.
    fn note_sent(&mut self, packet: u64, now: Time) {
        if packet == self.high {
            self.sent.push_back(Sent { at: now, again: false, arrived: false });
            self.high += 1;
        } else if let Some(sent) = self.sent.get_mut((packet - self.una) as usize) {
            (sent.at, sent.again) = (now, true);
        }
        if self.repair.next == Some(packet) {
            self.repair.scan = packet + 1;
            self.find_lost();
        } else {
            self.nxt = packet + 1;
        }
    }

    fn psn(&self, packet: u64) -> u32 {
        self.origin.wrapping_add(packet as u32) & RoceHeader::PSN_MASK
    }

    /// Packet that a sequence number refers to: the nearest to the first outstanding one.
    fn packet_of(&self, psn: u32) -> u64 {
        let ahead = psn.wrapping_sub(self.psn(self.una)) << 8;
        self.una.wrapping_add_signed(i64::from(ahead as i32 >> 8))
    }

    /// Runs an action of the congestion control, and adapts the rate limiter to its rate.
    #[inline]
    fn steer(&mut self, act: impl FnOnce(&mut Control, &mut Sending)) {
        let before = self.sending.rate;
        act(&mut self.control, &mut self.sending);
        if self.sending.rate != before {
            if self.sending.rate < self.path.line_rate {
                self.limiter.retime(self.sending.rate);
            } else {
                self.limiter.open();
            }
        }
    }

    /// Processes a positive or negative acknowledgment.
    pub fn on_ack(&mut self, cfg: &Roce, now: Time, ack: &RoceHeader, heard: &Heard<'_>, stats: &mut Stats) -> Outcome {
        let named = self.packet_of(ack.psn);
        let negative = ack.syndrome == Syndrome::SequenceError;
        let until = if negative { named } else { named.wrapping_add(1) };
        if until > self.high {
            return Outcome::Nothing; // of a packet that never left
        }
        let early = ack.early.map(|psn| self.packet_of(psn)).filter(|packet| (self.una..self.high).contains(packet));
        let rtt = self.measure(now, if negative { early } else { Some(named) });
        let before = self.una;
        let offset = self.messages.offset(before);
        self.advance(until.max(before));
        let acked = self.messages.offset(self.una) - offset;
        stats.acked += acked;
        if let Some(rtt) = rtt {
            self.rtt = rtt;
        }
        let una = offset + acked;
        let waited = Span::from_ns(u64::from(ack.waited.unwrap_or(0)));
        let feedback = Feedback {
            now,
            acked,
            packets: (self.una - before) as u32,
            una,
            nxt: self.messages.offset(self.nxt),
            rtt,
            at_ends: waited + heard.at_end,
            telemetry: heard.telemetry,
            path: heard.path,
        };
        let progress = self.una > before;
        if progress || rtt.is_some() {
            self.steer(|control, sending| control.on_ack(sending, &feedback));
        }
        if progress {
            self.retries = 0;
            self.waits_since = now;
        }
        let fine = !negative || self.on_negative(cfg, now, until, (early, progress), stats);
        self.find_lost();
        self.set_timeout(cfg);
        self.set_pace_timer(now);
        match (fine, progress) {
            (false, _) => Outcome::Failed,
            (true, true) => Outcome::Acknowledged,
            (true, false) => Outcome::Nothing,
        }
    }

    /// RTT of a packet that was sent once and not reported before; `None` otherwise.
    fn measure(&self, now: Time, packet: Option<u64>) -> Option<Span> {
        let at = packet?.checked_sub(self.una)?;
        let sent = self.sent.get(at as usize)?;
        (!sent.again && !sent.arrived).then(|| now.since(sent.at))
    }

    /// Acknowledges all packets before `una`.
    fn advance(&mut self, una: u64) {
        // One by one, as nearly all acknowledgments are of one packet.
        for _ in self.una..una {
            self.sent.pop_front();
        }
        self.una = una;
        self.nxt = self.nxt.max(una);
        self.messages.forget(una);
        self.repair.scan = self.repair.scan.max(una);
        if self.repair.until.is_some_and(|until| una >= until) {
            self.repair.until = None;
        }
    }

    /// Handles the report that packet `missing` has not arrived, and a later one has. False: it was retransmitted too often.
    fn on_negative(
        &mut self,
        cfg: &Roce,
        now: Time,
        missing: u64,
        (early, progress): (Option<u64>, bool),
        stats: &mut Stats,
    ) -> bool {
        if missing < self.una || missing >= self.high {
            return true;
        }
        if let Some(early) = early {
            if let Some(sent) = self.sent.get_mut((early - self.una) as usize) {
                sent.arrived = true;
            }
            self.repair.arrived = self.repair.arrived.max(early + 1);
            if self.repair.until.is_some() {
                return true;
            }
            self.repair.until = Some(self.high);
            self.repair.scan = self.una;
        } else {
            if !progress {
                self.retries += 1;
                if self.retries > cfg.retry_count {
                    return false;
                }
            }
            self.nxt = missing;
        }
        stats.recoveries += 1;
        self.steer(|control, sending| control.on_loss(sending, now, Loss::Nak));
        true
    }

    /// Finds the next packet that is known to be lost and was not retransmitted since.
    fn find_lost(&mut self) {
        self.repair.next = None;
        if self.repair.until.is_none() {
            return;
        }
        let from = self.repair.scan.max(self.una);
        let lost = (from..self.repair.arrived).find(|packet| !self.has_arrived(*packet));
        self.repair.scan = lost.unwrap_or(from.max(self.repair.arrived));
        self.repair.next = lost;
    }

    fn has_arrived(&self, packet: u64) -> bool {
        self.sent.get((packet - self.una) as usize).is_some_and(|sent| sent.arrived)
    }

    /// Restarts the timeout, which runs from the last progress on while packets are outstanding.
    fn set_timeout(&mut self, cfg: &Roce) {
        self.timeout_at = if self.nxt > self.una { self.waits_since.saturating_add(self.timeout(cfg)) } else { Time::MAX };
    }

    fn timeout(&self, cfg: &Roce) -> Span {
        match &cfg.recovery {
            RoceRecovery::GoBackN(back) => local_ack_timeout(back.ack_timeout),
            RoceRecovery::SelectiveRepeat(repeat) if self.high - self.una <= u64::from(repeat.few) => repeat.rto_low,
            RoceRecovery::SelectiveRepeat(repeat) => repeat.rto_high,
        }
    }

    /// Handles due timers. False: a packet was retransmitted too often.
    pub fn on_timer(&mut self, cfg: &Roce, now: Time, stats: &mut Stats) -> bool {
        if self.control.next_timeout() <= now {
            self.steer(|control, sending| control.on_timer(sending, now));
        }
        if self.timeout_at <= now {
            stats.timeouts += 1;
            self.retries += 1;
            if self.retries > cfg.retry_count {
                return false;
            }
            self.waits_since = now;
            if cfg.selective() {
                self.repair.until = Some(self.high);
                self.repair.scan = self.una;
                self.repair.arrived = self.repair.arrived.max(self.una + 1);
                self.find_lost();
            } else {
                self.nxt = self.una;
            }
            self.steer(|control, sending| control.on_loss(sending, now, Loss::Timeout));
            self.set_timeout(cfg);
        }
        self.set_pace_timer(now);
        true
    }

    pub fn on_cnp(&mut self, now: Time, stats: &mut Stats) {
        let before = self.sending.rate;
        self.steer(|control, sending| control.on_cnp(sending, now));
        stats.ecn_reductions += u32::from(self.sending.rate < before);
        self.set_pace_timer(now);
    }

    /// Records the time at which the limiter releases the next packet, if nothing else holds it.
    fn set_pace_timer(&mut self, now: Time) {
        let next = self.limiter.next();
        self.pace_at = if next > now && self.next_packet().is_some() { next } else { Time::MAX };
    }

    #[inline]
    pub fn next_timeout(&self) -> Time {
        self.timeout_at.min(self.pace_at).min(self.control.next_timeout())
    }

    /// Payload bytes that the limiter releases back to back.
    pub fn burst(&self, cfg: &Roce) -> u64 {
        cfg.burst.filter(|_| self.sending.rate < self.path.line_rate).map_or(0, |burst| burst.get())
    }

    /// State for telemetry, see [`crate::SenderState`].
    pub fn look(&self) -> Look {
        let next = self.messages.offset(self.high);
        let acked = self.messages.offset(self.una);
        Look {
            acked,
            next,
            unsent: self.messages.bytes() - next,
            flight: self.messages.offset(self.nxt) - acked,
            window: self.limit.min(self.sending.window),
            rate: self.sending.rate,
            rtt: self.rtt,
            timeout: self.timeout_at.since(self.waits_since.min(self.timeout_at)),
            payload: self.path.payload,
            timeout_at: self.timeout_at,
            pace_at: self.pace_at,
            alpha: self.control.alpha(),
            repairs: self.repair.until.is_some() || self.nxt < self.high,
            late: self.retries > 0,
        }
    }
}

/// State of a sender at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    pub acked: u64,
    pub next: u64,
    pub unsent: u64,
    pub flight: u64,
    pub window: u64,
    pub rate: fanin_units::BitRate,
    pub rtt: Span,
    pub timeout: Span,
    pub payload: u32,
    pub timeout_at: Time,
    pub pace_at: Time,
    pub alpha: Option<f64>,
    pub repairs: bool,
    pub late: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roce::cc::RoceControl;
    use fanin_params::defaults;
    use fanin_units::BitRate;

    /// Packets of 1024 B that leave at once with this window of the control.
    fn leave(congestion_control: RoceControl, window: u64) -> u64 {
        let cfg = Roce { congestion_control, ..Roce::default() };
        let path = Path { line_rate: BitRate::from_gbps(100), base_rtt: Span::from_us(10), hops: 1, payload: 1_024, wire: 1_106 };
        let mut sender = Sender::new(&cfg, path, Framing::ETHERNET, 0);
        sender.write(Time::ZERO, 100_000);
        sender.sending.window = window;
        let (mut envelope, mut header) = (Envelope::default(), Header::default());
        while sender.poll(&cfg, Time::ZERO, &mut Stats::default(), &mut envelope, &mut header) {}
        sender.high
    }

    /// The RTT of a packet in a burst begins when it leaves, not when the NIC has taken the burst. Source: TIMELY §4.1.
    #[test]
    fn rtts_in_a_burst_begin_as_each_packet_leaves() {
        let times = |burst: Option<Bytes>| {
            let cfg = Roce { burst, ..Roce::default() };
            let path =
                Path { line_rate: BitRate::from_gbps(10), base_rtt: Span::from_us(10), hops: 1, payload: 1_024, wire: 1_106 };
            let mut sender = Sender::new(&cfg, path, Framing::ETHERNET, 0);
            sender.write(Time::ZERO, 100_000);
            let (mut envelope, mut header) = (Envelope::default(), Header::default());
            for _ in 0..4 {
                assert!(sender.poll(&cfg, Time::from_ps(5_000), &mut Stats::default(), &mut envelope, &mut header));
            }
            sender.sent.iter().map(|sent| sent.at.ps()).collect::<Vec<_>>()
        };
        // 10 Gb/s: 800 ps a byte; the first packet has an RETH of 16 B more.
        let first = 5_000 + 1_122 * 800;
        assert_eq!(times(Some(Bytes(4_096))), [5_000, first, first + 1_106 * 800, first + 2 * 1_106 * 800]);
        assert_eq!(times(None), [5_000; 4], "a NIC takes one at a time");
    }

    /// A sender of 100 kB over 10 Gb/s, of which four packets have left at 5 ns.
    fn after_four(cfg: &Roce) -> Sender {
        let path = Path { line_rate: BitRate::from_gbps(10), base_rtt: Span::from_us(10), hops: 1, payload: 1_024, wire: 1_106 };
        let mut sender = Sender::new(cfg, path, Framing::ETHERNET, 0);
        sender.write(Time::ZERO, 100_000);
        let (mut envelope, mut header) = (Envelope::default(), Header::default());
        for _ in 0..4 {
            assert!(sender.poll(cfg, Time::from_ps(5_000), &mut Stats::default(), &mut envelope, &mut header));
        }
        sender
    }

    fn acknowledge(sender: &mut Sender, cfg: &Roce, syndrome: Syndrome, packet: u64, early: Option<u64>) -> Outcome {
        let (psn, early) = (sender.psn(packet), early.map(|packet| sender.psn(packet)));
        let ack = RoceHeader { op: RoceOp::Acknowledge, psn, syndrome, early, ..RoceHeader::default() };
        let heard = Heard { at_end: Span::ZERO, telemetry: &[], path: 0 };
        sender.on_ack(cfg, Time::from_ps(20_000_000), &ack, &heard, &mut Stats::default())
    }

    #[test]
    fn telemetry_shows_what_is_acknowledged_in_flight_and_unsent() {
        let cfg = Roce::default();
        let mut sender = after_four(&cfg);
        acknowledge(&mut sender, &cfg, Syndrome::Ack, 1, None);
        let Look { acked, next, unsent, flight, rate, rtt, payload, .. } = sender.look();
        assert_eq!((acked, next, unsent, flight, payload), (2_048, 4_096, 95_904, 2_048, 1_024));
        assert_eq!((rate, rtt), (BitRate::from_gbps(10), Span::from_ps(20_000_000 - 5_000)));
    }

    /// What never left cannot have arrived: such an acknowledgment is dropped. Source: IBTA §9.7.5.
    #[test]
    fn acknowledgments_of_what_never_left_are_dropped() {
        let cfg = Roce::default();
        for (syndrome, first_unsent) in [(Syndrome::Ack, 4), (Syndrome::SequenceError, 5)] {
            let mut sender = after_four(&cfg);
            assert_eq!(acknowledge(&mut sender, &cfg, syndrome, first_unsent, None), Outcome::Nothing);
            assert_eq!(acknowledge(&mut sender, &cfg, syndrome, 1_000, None), Outcome::Nothing);
            assert_eq!((sender.una, sender.nxt, sender.retries, sender.sent.len()), (0, 4, 0, 4));
            assert_eq!(acknowledge(&mut sender, &cfg, syndrome, first_unsent - 1, None), Outcome::Acknowledged);
            assert_eq!((sender.una, sender.sent.len()), (4, 0), "of the last one that left");
        }
    }

    /// A second acknowledgment of what has been acknowledged changes nothing. Source: IBTA §9.7.5.
    #[test]
    fn old_acknowledgments_change_nothing() {
        let cfg = Roce::default();
        let mut sender = after_four(&cfg);
        assert_eq!(acknowledge(&mut sender, &cfg, Syndrome::Ack, 2, None), Outcome::Acknowledged);
        for packet in [0, 2] {
            assert_eq!(acknowledge(&mut sender, &cfg, Syndrome::Ack, packet, None), Outcome::Nothing);
            assert_eq!((sender.una, sender.nxt, sender.sent.len()), (3, 4, 1));
        }
    }

    fn poll_at(sender: &mut Sender, cfg: &Roce, ps: u64) -> bool {
        let (mut envelope, mut header) = (Envelope::default(), Header::default());
        sender.poll(cfg, Time::from_ps(ps), &mut Stats::default(), &mut envelope, &mut header)
    }

    /// The RTT of a packet that was sent again is not measured (Karn), and that of its neighbours is.
    #[test]
    fn a_retransmission_is_noted_of_its_own_packet() {
        let cfg = Roce::default();
        let mut sender = after_four(&cfg);
        acknowledge(&mut sender, &cfg, Syndrome::SequenceError, 2, None);
        assert!(poll_at(&mut sender, &cfg, 21_000_000));
        let noted: Vec<_> = sender.sent.iter().map(|sent| (sent.at.ps(), sent.again)).collect();
        assert_eq!(noted, [(21_000_000, true), (5_000, false)]);
        assert_eq!((sender.una, sender.nxt, sender.high), (2, 3, 4));
        let later = Time::from_ps(22_000_000);
        assert_eq!(sender.measure(later, Some(2)), None);
        assert_eq!(sender.measure(later, Some(3)), Some(Span::from_ps(22_000_000 - 5_000)));
    }

    /// Sequence numbers of half of all are outstanding at most. Source: IBTA §9.7.2.
    #[test]
    fn half_of_all_numbers_may_be_outstanding() {
        let mut sender = after_four(&Roce::default());
        let mut room = |nxt| {
            sender.nxt = nxt;
            sender.has_room()
        };
        assert!(room((1 << 23) - 1) && !room(1 << 23));
    }

    /// The timeout runs from the first packet that is outstanding, and while one is. Source: IBTA §9.7.6.1.3.
    #[test]
    fn the_timeout_runs_from_the_first_outstanding_packet_on() {
        let cfg = Roce::default();
        let timeout = Span::from_ns(4_096 << 14);
        let mut sender = after_four(&cfg);
        assert!(poll_at(&mut sender, &cfg, 9_000_000));
        assert_eq!(sender.timeout_at, Time::from_ps(5_000) + timeout);
        acknowledge(&mut sender, &cfg, Syndrome::Ack, 4, None);
        assert_eq!(sender.timeout_at, Time::MAX, "nothing is outstanding");
        assert!(poll_at(&mut sender, &cfg, 30_000_000));
        let at = Time::from_ps(30_000_000) + timeout;
        assert_eq!(sender.timeout_at, at);
        assert!(sender.on_timer(&cfg, at, &mut Stats::default()));
        assert_eq!((sender.nxt, sender.timeout_at), (5, Time::MAX), "until the packet has left again");
    }

    /// A packet is sent again `retry_count` times, and the next negative acknowledgment without progress is one too many. Source: IBTA
    /// §9.9.2.1.1.
    #[test]
    fn negative_acknowledgments_without_progress_are_counted() {
        let cfg = Roce { retry_count: 2, ..Roce::default() };
        let mut sender = after_four(&cfg);
        let mut hear = |missing| {
            let outcome = acknowledge(&mut sender, &cfg, Syndrome::SequenceError, missing, None);
            (outcome, sender.retries)
        };
        assert_eq!([hear(0), hear(0)], [(Outcome::Nothing, 1), (Outcome::Nothing, 2)]);
        assert_eq!(hear(1), (Outcome::Acknowledged, 0), "progress");
        assert_eq!([hear(1), hear(1), hear(1)], [(Outcome::Nothing, 1), (Outcome::Nothing, 2), (Outcome::Failed, 3)]);
    }

    /// A notification that lowers no rate is no reduction.
    #[test]
    fn notifications_count_where_the_rate_falls() {
        for (control, count) in [(RoceControl::None(defaults()), 0), (RoceControl::Dcqcn(defaults()), 1)] {
            let mut sender = after_four(&Roce { congestion_control: control, ..Roce::default() });
            let mut stats = Stats::default();
            sender.on_cnp(Time::from_ps(6_000), &mut stats);
            assert_eq!(stats.ecn_reductions, count);
        }
    }

    /// HPCC takes telemetry from every acknowledgment: from a negative one without progress, and where no RTT is known. Source:
    /// HPCC Algorithm 1 (NewAck).
    #[test]
    fn controls_see_negative_acknowledgments_and_those_without_an_rtt() {
        let repeat = super::super::config::SelectiveRepeat { rto_low: Span::from_us(100), rto_high: Span::from_us(320), few: 3 };
        let cfg = Roce {
            congestion_control: RoceControl::Hpcc(defaults()),
            recovery: RoceRecovery::SelectiveRepeat(repeat),
            ..Roce::default()
        };
        // 10 Gb/s for 10 us are 12,500 B: so much waits, and a full line: U = 2. The window was twelve packets.
        let expected = (12.0 * 1_024.0 * 0.95 / 2.0 + 80.0) as u64;
        let sample = |us, tx_bytes| {
            let at = Time::ZERO + Span::from_us(us);
            HopSample { queue_bytes: 12_500, tx_bytes, at, rate: BitRate::from_gbps(10) }
        };
        let hear = |sender: &mut Sender, us, (syndrome, psn, early), telemetry: &[HopSample]| {
            let ack = RoceHeader { op: RoceOp::Acknowledge, psn, syndrome, early, ..RoceHeader::default() };
            let heard = Heard { at_end: Span::ZERO, telemetry, path: 7 };
            sender.on_ack(&cfg, Time::ZERO + Span::from_us(us), &ack, &heard, &mut Stats::default())
        };
        let mut sender = after_four(&cfg);
        hear(&mut sender, 20, (Syndrome::SequenceError, 0, Some(1)), &[sample(10, 0)]);
        assert_eq!(sender.sending.window, 12 * 1_024);
        assert_eq!(hear(&mut sender, 30, (Syndrome::SequenceError, 0, Some(2)), &[sample(20, 12_500)]), Outcome::Nothing);
        assert_eq!(sender.sending.window, expected);

        let mut sender = after_four(&cfg);
        hear(&mut sender, 20, (Syndrome::SequenceError, 0, Some(1)), &[sample(10, 0)]);
        assert!(poll_at(&mut sender, &cfg, 20_000_000), "packet 0 again");
        assert_eq!(hear(&mut sender, 30, (Syndrome::Ack, 1, None), &[sample(20, 12_500)]), Outcome::Acknowledged);
        assert_eq!((sender.sending.window, sender.rtt), (expected, Span::from_ps(20_000_000 - 5_000)));
    }

    /// A packet that has arrived out of order is known to have, and what was sent before it is lost.
    #[test]
    fn an_early_packet_bounds_what_is_lost() {
        let cfg = Roce::default();
        let mut sender = after_four(&cfg);
        acknowledge(&mut sender, &cfg, Syndrome::SequenceError, 0, Some(2));
        assert_eq!((sender.repair.arrived, sender.repair.until), (3, Some(4)));
        assert_eq!(sender.sent.iter().map(|sent| sent.arrived).collect::<Vec<_>>(), [false, false, true, false]);
    }

    /// At the line's rate nothing is limited, whatever was sent before at a lower one.
    #[test]
    fn the_limit_is_lifted_at_the_rate_of_the_line() {
        let mut sender = after_four(&Roce::default());
        let (line, slow) = (sender.path.line_rate, BitRate::from_gbps(1));
        sender.limiter = Limiter::new(1_024);
        sender.steer(|_, sending| sending.rate = slow);
        sender.limiter.sent(Time::from_ps(5_000), 1_024, 1_106, slow);
        assert_eq!(sender.limiter.next(), Time::from_ps(5_000 + 1_106 * 8_000));
        sender.steer(|_, sending| sending.rate = BitRate::from_mbps(500));
        assert_eq!(sender.limiter.next(), Time::from_ps(5_000 + 1_106 * 16_000), "half the rate, twice the time");
        sender.steer(|_, sending| sending.rate = line);
        assert_eq!(sender.limiter.next(), Time::ZERO);
    }

    /// Room for telemetry takes time on the wire in a burst. Source: HPCC §4.1 (INT header).
    #[test]
    fn telemetry_counts_in_the_times_of_a_burst() {
        let cfg = Roce { burst: Some(Bytes(4_096)), congestion_control: RoceControl::Hpcc(defaults()), ..Roce::default() };
        let sender = after_four(&cfg);
        let times: Vec<u64> = sender.sent.iter().map(|sent| sent.at.ps()).collect();
        let more = u64::from(Stack::bytes(0));
        assert!(more > 0);
        assert_eq!([times[2] - times[1], times[3] - times[2]], [(1_106 + more) * 800; 2]);
    }

    /// HPCC and PowerTCP send while less than the window is in flight, Swift while a packet fits; one packet always may.
    #[test]
    fn windows_are_filled_where_the_control_says_so() {
        let counts =
            |control: &dyn Fn() -> RoceControl| [1, 1_024, 1_025, 1_536, 2_048, 2_049].map(|bytes| leave(control(), bytes));
        let filled: [&dyn Fn() -> RoceControl; 3] = [
            &|| RoceControl::Hpcc(defaults()),
            &|| RoceControl::PowerTcp(defaults()),
            &|| RoceControl::ThetaPowerTcp(defaults()),
        ];
        for control in filled {
            assert_eq!(counts(control), [1, 1, 2, 2, 2, 3]);
        }
        assert_eq!(counts(&|| RoceControl::Swift(defaults())), [1, 1, 1, 1, 2, 2]);
    }
}
