//! TCP endpoint: one end of a connection.

use crate::cc::{Control, Controller, Window};
use crate::config::{Pacing, ReceiveWindow, RttSampling, Tcp};
use crate::reassembly::Reassembly;
use crate::report::{AbortReason, Counts, Pending};
use crate::rtt::Rtt;
use crate::signals::SignalLog;
use crate::transport::Transport;
use fanin_packet::{IpVersion, Nack, Segment, TcpHeader};
use fanin_units::{Span, Time};

mod as_transport;
mod drop_notification;
mod input;
mod local;
mod loss;
mod open_close;
mod output;
mod push;
mod rack;
mod receive;
mod receiver;
mod trimming;
mod tso;

pub(crate) use drop_notification::notification_bytes;
pub use drop_notification::NotificationCounts;
pub use trimming::TrimmingCounts;

use loss::Repair;
use rack::Outstanding;
use receiver::Receiver;

/// End of a connection by which side opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The end that sends the SYN.
    Initiator,
    /// The end that waits for a SYN.
    Responder,
}

/// Facts about a connection that an endpoint starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    pub role: Role,
    /// True if established from the start: no handshake, no FIN. Options are those of the configuration, which both ends
    /// share.
    pub open: bool,
    /// Initial sequence number; the first byte has the next one.
    pub iss: u32,
    /// Initial sequence number of the peer; used if `open`.
    pub irs: u32,
    /// Value of this end's timestamp clock at time zero.
    pub ts_offset: u32,
    /// Path MTU: bytes of the largest IP packet.
    pub mtu: u16,
    /// Version of IP on the path.
    pub ip: IpVersion,
}

impl Connection {
    /// The two ends of a connection over `ip`, initiator first: with a handshake or already open, by `cfg`.
    pub fn pair(cfg: &Tcp, ip: IpVersion, iss: [u32; 2], ts_offset: [u32; 2]) -> [Connection; 2] {
        [(Role::Initiator, 0), (Role::Responder, 1)].map(|(role, i)| Connection {
            role,
            open: !cfg.handshake,
            iss: iss[i],
            irs: iss[1 - i],
            ts_offset: ts_offset[i],
            mtu: cfg.mtu,
            ip,
        })
    }
}

/// Connection state. Source: RFC 9293 §3.3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpState {
    Listen,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    Closed,
}

/// Congestion state of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Slow start or congestion avoidance.
    Open,
    /// Reduction over a round after an ECN echo (with `prr`).
    Cwr,
    /// Fast recovery after a detected loss.
    Recovery,
    /// Loss recovery after a timeout, until all data outstanding then is acknowledged.
    Loss,
}

/// Connection state in two bytes, so that no other field has as many spare values: the discriminants of `Endpoint` and of
/// `Option` are stored in it, in the first cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
enum Sync {
    Listen,
    SynSent,
    SynReceived,
    Open,
    TimeWait,
    Closed,
}

/// Control packets that wait to be polled, one bit each.
mod due {
    pub const SYN: u8 = 1;
    pub const RST: u8 = 2;
    pub const PRIOR_ACK: u8 = 4;
    pub const ACK: u8 = 8;
    pub const PROBE: u8 = 16;
    pub const FIN: u8 = 32;
    /// ACK with a NACK option.
    pub const NACK: u8 = 64;
}

/// Marks a condition as unlikely, so that the compiler tests it with a branch of its own and computes the rest only then.
#[inline(always)]
fn unlikely(condition: bool) -> bool {
    #[cold]
    #[inline]
    fn seldom() {}
    if condition {
        seldom();
    }
    condition
}

/// Value of `timed_end` while no segment is timed.
const UNTIMED: u64 = u64::MAX;
/// Value of `timed_end` if segments are never timed: every ACK gives a sample by the times of all segments.
const NEVER_TIMED: u64 = u64::MAX - 1;
/// Signature that no segment has.
const NOTHING: u16 = u16::MAX;
/// Value of `peer_fin` before the peer has sent FIN.
const NO_FIN: u64 = u64::MAX;

/// One end of a full-duplex TCP connection.
///
/// Positions in the two streams are 64-bit offsets in which the SYN is 0 and the first byte 1; they become 32-bit sequence
/// numbers on the wire and are unwrapped against SND.UNA and RCV.NXT.
///
/// The fields stand in the order of their cache lines: the next data touches the first two, an ACK of new data and a segment
/// that is sent two more.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct TcpEndpoint {
    // Line 0: where both directions stand, and by what each segment is told apart.
    /// SND.UNA.
    una: u64,
    /// SND.NXT: everything below has been sent once.
    nxt: u64,
    /// Right edge of the send window.
    edge: u64,
    /// End of the application's written data, where the FIN goes.
    end: u64,
    /// RCV.NXT.
    rcv_nxt: u64,
    /// Right edge of the receive window as advertised.
    rcv_edge: u64,
    /// Signature of segments that take the fast path ([`TcpHeader::looks`]): in the open phase without duplicate ACKs, with
    /// nothing SACKed and no FIN. [`NOTHING`]: none does.
    expects: u16,
    sync: Sync,
    /// True if none of `ooo`, `rx` and `outstanding` exists, the application reads at once, and there are no quick ACKs.
    bare: bool,
    ts_on: bool,
    ts_seen: bool,
    sack_on: bool,
    ecn_on: bool,
    /// True if ACKs carry ECE: the latch of RFC 3168, or the DCTCP.CE state of RFC 8257.
    echo: bool,
    snd_scale: u8,
    rcv_scale: u8,
    /// Number of segments received in order and not yet acknowledged.
    unacked: u8,
    /// Number of further ACKs that will not be delayed.
    quick: u8,
    due: u8,
    pending: Pending,

    // Line 1: timers, what a header shows, the receiver's ACKs.
    /// Expiry of the RTO, persist, SYN or TIME-WAIT timer.
    rto_at: Time,
    /// Expiry of the delayed-ACK timer.
    ack_at: Time,
    /// Time at which the next paced segment may leave; `Time::MAX`: not paced.
    pace_at: Time,
    /// Last.ACK.sent. Source: RFC 7323 §4.3.
    last_ack_sent: u64,
    /// Next tick of the timestamp clock.
    ts_next: Time,
    iss: u32,
    irs: u32,
    /// Present value of the timestamp clock, and the latest value of the peer's (TS.Recent).
    ts_now: u32,
    ts_recent: u32,
    /// Largest window that a segment can announce for the free buffer \[bytes\] ([`TcpEndpoint::note_room`]).
    room: u32,
    /// Segments sent without payload, SYN and FIN included.
    control_sent: u32,

    // Line 2: seldom, but for the second half of `rtt`.
    timed_at: Time,
    /// End of the data to which the last reduction belongs; signals about earlier data cause no further one.
    reduced_until: u64,
    /// Largest window that the peer has offered.
    max_window: u64,
    /// Size of the receive buffer.
    buffer: u64,
    /// Bytes in the receive buffer that the application has not read.
    held: u64,
    last_data: Time,
    rtt: Rtt,

    // Line 3: what a sender keeps.
    /// End of the segment being timed.
    timed_end: u64,
    /// End of the round over which the use of the window is judged, and the largest flight in it.
    usage_end: u64,
    max_flight: u64,
    last_sent: Time,
    /// Segments sent with payload, retransmissions included.
    packets_sent: u32,
    /// Bytes covered by the last ACK that advanced SND.UNA.
    last_acked: u32,
    phase: Phase,
    /// True if the window was used up in this round.
    cwnd_limited: bool,
    /// True if the next new segment carries CWR.
    cwr_due: bool,
    fin_wanted: bool,
    reduced_by_ecn: bool,
    /// True if the host's transmit queue has refused a segment: the next one waits for an ACK or a timeout.
    refused: bool,
    fin_sent: bool,
    /// Number of consecutive timeouts.
    retries: u8,

    // Line 4, and what a congestion control keeps beyond.
    w: Window,
    cc: Control,

    // Seldom.
    counts: Counts,
    repair: Option<Box<Repair>>,
    ooo: Option<Box<Reassembly>>,
    /// Receiver functions beyond RFC 9293, if the configuration asks for any.
    rx: Option<Box<Receiver>>,
    /// Times of outstanding segments, for RACK, TSO and controllers that take the RTT of each ACK.
    outstanding: Option<Box<Outstanding>>,
    signals: SignalLog,
    peer_fin: u64,
    ts_offset: u32,
    /// Acknowledgment number of the ACK that precedes a change of the DCTCP.CE state.
    prior_ack: u32,
    dup_acks: u32,
    /// Payload bytes left in the present TSO burst.
    burst: u32,
    /// Trimmed packet that the next ACK reports.
    nack: Nack,
    mtu: u16,
    ip: IpVersion,
    role: Role,
    aborted: Option<AbortReason>,
    open_from_start: bool,
    /// True while the application does not read.
    holding: bool,
    /// True if the peer's FIN came before this end's was sent.
    passive_close: bool,
    syn_again: bool,
    /// True if a switch has dropped the SYN, and asked to reduce the window.
    syn_dropped: bool,
}

/// Layout of the cache lines that the next packet needs.
const _: () = {
    use std::mem::{offset_of, size_of};
    assert!(offset_of!(TcpEndpoint, pending) == 63, "line 0: what each segment reads");
    assert!(offset_of!(TcpEndpoint, rto_at) == 64 && offset_of!(TcpEndpoint, control_sent) + 4 == 128, "line 1: headers, timers");
    assert!(
        offset_of!(TcpEndpoint, rtt) + size_of::<Rtt>() / 2 == 192 && offset_of!(TcpEndpoint, w) == 256,
        "line 3: a sender's"
    );
    assert!(offset_of!(TcpEndpoint, cc) + Control::COUNTED <= 320, "line 4: windows");
};

impl TcpEndpoint {
    /// Makes an endpoint at the start of `conn`; poll it as after every input.
    pub fn new(cfg: &Tcp, conn: Connection, now: Time) -> Self {
        let mss = u32::from(cfg.payload(conn.mtu, conn.ip, cfg.timestamps));
        let buffer = match &cfg.receive_window {
            ReceiveWindow::Fixed(w) => w.size.get(),
            ReceiveWindow::Auto(w) => w.announced(mss),
        };
        let ssthresh = cfg.initial_ssthresh.map_or(Window::INFINITE, |s| s.get());
        let cc = Control::new(cfg);
        let outstanding = Outstanding::new(cfg, cc.needs_rtt());
        let rx = Receiver::new(cfg, now);
        let mut endpoint = TcpEndpoint {
            una: 0,
            nxt: 0,
            edge: 0,
            end: 1,
            w: Window { cwnd: 0, ssthresh, mss },
            rto_at: Time::MAX,
            ack_at: Time::MAX,
            pace_at: Time::MAX,
            rtt: Rtt::new(cfg),
            timed_end: UNTIMED,
            timed_at: now,
            usage_end: 0,
            max_flight: 0,
            reduced_until: 0,
            last_sent: now,
            max_window: 0,
            bare: outstanding.is_none() && rx.is_none() && cfg.quick_acks == 0,
            outstanding,
            cc,
            repair: None,
            rcv_nxt: 0,
            rcv_edge: 0,
            last_ack_sent: 0,
            buffer,
            held: 0,
            room: 0,
            peer_fin: NO_FIN,
            last_data: now,
            ooo: None,
            rx,
            counts: Counts::default(),
            packets_sent: 0,
            control_sent: 0,
            ts_next: Time::ZERO,
            iss: conn.iss,
            irs: conn.irs,
            ts_now: 0,
            ts_offset: conn.ts_offset,
            ts_recent: 0,
            prior_ack: 0,
            dup_acks: 0,
            last_acked: 0,
            burst: 0,
            nack: Nack::default(),
            signals: SignalLog::default(),
            mtu: conn.mtu,
            expects: NOTHING,
            ip: conn.ip,
            snd_scale: 0,
            rcv_scale: 0,
            unacked: 0,
            quick: if cfg.adapts_acks() { 0 } else { cfg.quick_acks as u8 },
            retries: 0,
            due: 0,
            pending: Pending::default(),
            role: conn.role,
            sync: Sync::Closed,
            phase: Phase::Open,
            aborted: None,
            open_from_start: conn.open,
            ts_on: cfg.timestamps,
            ts_seen: false,
            sack_on: cfg.sack,
            ecn_on: cfg.ecn,
            echo: false,
            cwr_due: false,
            reduced_by_ecn: false,
            cwnd_limited: false,
            fin_wanted: false,
            fin_sent: false,
            passive_close: false,
            syn_again: false,
            syn_dropped: false,
            holding: false,
            refused: false,
        };
        endpoint.note_room();
        endpoint.start(cfg, now);
        endpoint
    }

    /// Stops (`true`) or resumes (`false`) immediate reading by the application; while stopped, the receive window closes.
    /// Unread bytes are taken with [`TcpEndpoint::read`].
    pub fn hold_reads(&mut self, hold: bool) {
        self.holding = hold;
        self.bare &= !hold;
    }

    /// Congestion window \[bytes\]. In fast recovery without SACK it includes the inflation of RFC 5681 §3.2.
    pub fn cwnd(&self) -> u64 {
        self.w.cwnd
    }

    /// Slow-start threshold \[bytes\]; [`Window::INFINITE`] before the first reduction.
    pub fn ssthresh(&self) -> u64 {
        self.w.ssthresh
    }

    /// Payload bytes of a full segment.
    pub fn mss(&self) -> u32 {
        self.w.mss
    }

    /// Smoothed RTT; zero before the first sample.
    pub fn srtt(&self) -> Span {
        self.rtt.srtt
    }

    /// RTT variation.
    pub fn rttvar(&self) -> Span {
        self.rtt.rttvar
    }

    /// Present RTO, back-off included.
    pub fn rto(&self) -> Span {
        self.rtt.rto
    }

    /// DCTCP's alpha; `None` for other congestion controls.
    pub fn alpha(&self) -> Option<f64> {
        self.cc.alpha()
    }

    /// Congestion state of the sender.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// FlightSize: bytes sent and not cumulatively acknowledged. Source: RFC 5681 §2.
    pub fn inflight(&self) -> u64 {
        self.nxt - self.una
    }

    /// Bytes believed to be in the network: [`TcpEndpoint::inflight`] without SACKed and lost bytes, plus retransmitted ones.
    /// Source: RFC 6675 §4.
    pub fn pipe(&self) -> u64 {
        match (&self.repair, &self.outstanding) {
            _ if self.on_fast_path() => self.inflight(),
            (_, Some(o)) if o.rack.is_some() => o.segments.pipe(self.nxt),
            (Some(r), _) => r.pipe(self.una, self.nxt),
            _ => self.inflight(),
        }
    }

    /// Bytes written by the application and not yet sent.
    pub fn unsent(&self) -> u64 {
        self.end.saturating_sub(self.nxt)
    }

    /// Connection state.
    pub fn state(&self) -> TcpState {
        let ours_acked = self.fin_sent && self.una > self.end;
        let theirs = self.rcv_nxt > self.peer_fin;
        match self.sync {
            Sync::Listen => TcpState::Listen,
            Sync::SynSent => TcpState::SynSent,
            Sync::SynReceived => TcpState::SynReceived,
            Sync::TimeWait => TcpState::TimeWait,
            Sync::Closed => TcpState::Closed,
            Sync::Open => match (self.fin_sent, ours_acked, theirs) {
                (false, _, false) => TcpState::Established,
                (false, _, true) => TcpState::CloseWait,
                (true, false, false) => TcpState::FinWait1,
                (true, true, false) => TcpState::FinWait2,
                (true, _, true) if self.passive_close => TcpState::LastAck,
                (true, _, true) => TcpState::Closing,
            },
        }
    }

    /// True unless something may happen without input: data unacknowledged or unsent, or a timer armed.
    pub fn is_idle(&self) -> bool {
        self.una == self.nxt && self.nxt >= self.end && self.next_timeout() == Time::MAX
    }

    /// Present value of the timestamp clock. Source: RFC 7323 §5.4.
    #[inline(always)]
    fn ts_clock(&mut self, cfg: &Tcp, now: Time) -> u32 {
        if now >= self.ts_next {
            let tick = cfg.timestamp_tick;
            let ticks = now.ps() / tick.ps();
            self.ts_now = self.ts_offset.wrapping_add(ticks as u32);
            self.ts_next = Time::ZERO + tick * (ticks + 1);
        }
        self.ts_now
    }

    /// Sequence number on the wire of an offset in this end's stream.
    #[inline(always)]
    fn wire(&self, offset: u64) -> u32 {
        self.iss.wrapping_add(offset as u32)
    }

    /// RCV.NXT on the wire.
    #[inline(always)]
    fn wire_rcv_nxt(&self) -> u32 {
        self.irs.wrapping_add(self.rcv_nxt as u32)
    }

    /// True if segments may take the fast path.
    #[inline(always)]
    fn on_fast_path(&self) -> bool {
        self.expects != NOTHING
    }

    /// Disables the fast path.
    #[inline(always)]
    fn leave_fast_path(&mut self) {
        self.expects = NOTHING;
    }

    /// Enables the fast path if its conditions hold.
    fn enter_fast_path(&mut self) {
        let calm = self.sync == Sync::Open
            && self.phase == Phase::Open
            && self.dup_acks == 0
            && !self.fin_sent
            && !self.refused
            && self.repair.as_ref().is_none_or(|r| r.board.is_empty() && r.notified.is_empty())
            && self.outstanding.as_ref().is_none_or(|o| o.is_calm());
        self.expects = if calm { TcpHeader::usual(self.ts_on) } else { NOTHING };
    }

    fn paced<'a>(&self, cfg: &'a Tcp) -> Option<&'a crate::config::Paced> {
        match &cfg.pacing {
            Pacing::Fq(paced) if self.rtt.srtt > Span::ZERO => Some(paced),
            _ => None,
        }
    }

    /// Stops timing a segment, called before every retransmission (Karn's algorithm); outside the open phase none is timed
    /// anew. With timestamps every ACK gives a sample. Source: RFC 6298 §3.
    fn stop_timing(&mut self, cfg: &Tcp) {
        self.timed_end = match cfg.rtt_sampling {
            RttSampling::Timestamps if self.ts_on => 0,
            RttSampling::EveryAck => NEVER_TIMED,
            _ => UNTIMED,
        };
    }

    /// Dispatches a segment: the next data without news of the other direction, or an ACK of new data, takes the fast path
    /// while nothing is lost. All others go to [`TcpEndpoint::on_segment`], which would treat these alike (Van Jacobson's
    /// header prediction). Source: Linux, tcp_rcv_established (pred_flags).
    #[inline(always)]
    fn dispatch_segment(&mut self, cfg: &Tcp, now: Time, p: Segment<'_>) {
        if p.looks() != self.expects {
            self.on_unexpected(cfg, now, p);
        } else if p.envelope.payload > 0 {
            self.on_expected_data(cfg, now, p);
        } else {
            self.on_expected_ack(cfg, now, p);
        }
    }

    #[inline(never)]
    fn on_unexpected(&mut self, cfg: &Tcp, now: Time, p: Segment<'_>) {
        if self.sync == Sync::Open && p.is_plain() && !p.envelope.trimmed {
            self.on_segment(cfg, now, p);
        } else {
            self.on_unusual(cfg, now, p);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Paced, Pacing};
    use crate::transport::Kinds;
    use fanin_packet::{Packet, TcpFlags};
    use fanin_units::BitRate;

    const MSS: u64 = 1000;

    #[test]
    fn an_endpoint_stays_small() {
        let size = std::mem::size_of::<TcpEndpoint>();
        assert!(size <= 512, "{size}");
    }

    fn us(n: u64) -> Time {
        Time::ZERO + Span::from_us(n)
    }

    /// A sender with much to send and an RTT of 100 us.
    fn sender(cfg: &Tcp) -> TcpEndpoint {
        let [conn, _] = Connection::pair(cfg, IpVersion::V4, [0, 0], [0, 0]);
        let mut tcp = TcpEndpoint::new(cfg, conn, Time::ZERO);
        tcp.rtt.sample(cfg, Span::from_us(100), 1);
        tcp.write(cfg, Time::ZERO, 100 * MSS);
        tcp
    }

    fn config() -> Tcp {
        Tcp { handshake: false, mss: Some(MSS as u16), timestamps: false, ..Tcp::default() }
    }

    fn sends(cfg: &Tcp, tcp: &mut TcpEndpoint, now: Time) -> bool {
        let mut p = Packet::default();
        let due = tcp.due(cfg, now, Kinds::DATA);
        assert_eq!(tcp.poll(cfg, now, Kinds::DATA, &mut p.envelope, &mut p.header), due);
        due
    }

    fn ack(cfg: &Tcp, tcp: &mut TcpEndpoint, now: Time, number: u32) {
        let p = Packet::of_tcp(TcpFlags::ACK, 1, number, 1000, 0);
        tcp.on_packet(cfg, now, &p.envelope, &p.header);
    }

    /// A quarter of a segment: one each four RTTs, whether the connection is calm or not, and never two in flight.
    #[test]
    fn a_window_below_one_segment_is_paced() {
        for calm in [true, false] {
            let cfg = config();
            let mut tcp = sender(&cfg);
            let quarter = |tcp: &mut TcpEndpoint| {
                (tcp.w.cwnd, tcp.w.ssthresh) = (MSS / 4, MSS / 4);
                tcp.expects = if calm { tcp.expects } else { NOTHING };
            };
            quarter(&mut tcp);
            assert!(sends(&cfg, &mut tcp, us(0)));
            for round in 0..3 {
                let start = 400 * round;
                assert!(!sends(&cfg, &mut tcp, us(start + 50)), "one is in flight");
                ack(&cfg, &mut tcp, us(start + 100), (round as u32 + 1) * MSS as u32 + 1);
                quarter(&mut tcp);
                assert_eq!((tcp.inflight(), tcp.next_timeout()), (0, us(start + 400)));
                assert!(!sends(&cfg, &mut tcp, us(start + 399)));
                tcp.on_timer(&cfg, us(start + 400));
                assert!(sends(&cfg, &mut tcp, us(start + 400)));
            }
        }
    }

    /// In the repair of a loss too: a hole is sent where nothing else is in flight.
    #[test]
    fn a_window_below_one_segment_repairs_losses() {
        let cfg = config();
        let mut tcp = sender(&cfg);
        assert!(sends(&cfg, &mut tcp, us(0)));
        let timeout = tcp.next_timeout();
        tcp.on_timer(&cfg, timeout);
        tcp.w.cwnd = MSS / 4;
        assert_eq!((tcp.phase(), tcp.pipe()), (Phase::Loss, 0));
        assert!(sends(&cfg, &mut tcp, timeout) && !sends(&cfg, &mut tcp, timeout));
        assert_eq!((tcp.counts.retransmits, tcp.pipe()), (1, MSS));
    }

    /// The rate of a controller takes precedence over `pacing`, and needs no RTT.
    #[test]
    fn a_controllers_rate_paces() {
        let fq = Pacing::Fq(Paced { slow_start_gain: 2.0, gain: 1.0 });
        for pacing in [config().pacing, fq] {
            let cfg = Tcp { pacing, ..config() };
            let mut tcp = sender(&cfg);
            tcp.rtt = Rtt::new(&cfg);
            tcp.pace(&cfg, us(10), MSS, Some(BitRate::from_mbps(8)));
            assert_eq!(tcp.pace_at, us(1010));
            tcp.pace(&cfg, us(1000), MSS, Some(BitRate::from_mbps(8)));
            assert_eq!(tcp.pace_at, us(2010), "late by no fault of the rate");
            tcp.pace(&cfg, us(3000), MSS, None);
            assert_eq!(tcp.pace_at, us(2010), "without an RTT `pacing` has no rate");
        }
    }
}
