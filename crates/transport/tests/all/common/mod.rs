//! A network of two endpoints in which anything can happen to a packet.

pub mod packetdrill;
pub mod script;
pub mod ten;

use fanin_packet::{Ecn, Lost, Packet, Part, Reference, Signal, TcpFlags};
use fanin_transport::{Connection, Event, Kinds, Phase, Place, Tcp, TcpEndpoint, Transport};
use fanin_units::{BitRate, Span, Time};

/// A path of 100 Gb/s and 10 us.
pub fn place() -> Place {
    Place::new(fanin_packet::IpVersion::V4, BitRate::from_gbps(100), Span::from_us(10))
}

/// What becomes of a packet: (delay, drop, trim, duplicate delay, mark), and when its sender is notified that it was dropped, be
/// it true or not: once or twice, with this operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fate {
    pub delay: Span,
    pub drop: bool,
    /// Where it has payload.
    pub trim: bool,
    pub again: Option<Span>,
    pub mark: bool,
    pub notified: [Option<Span>; 2],
    pub operation: u8,
}

/// One end with its NIC and what it knows about its window.
pub struct End {
    pub tcp: TcpEndpoint,
    /// Right edge that the other end has advertised, as an absolute offset from the first byte.
    pub advertised: u64,
    nic_free: Time,
    pub connected: bool,
    pub delivered: u64,
    pub acked: u64,
    pub peer_closed: bool,
    pub closed: bool,
    pub aborted: bool,
    pub arrived_bytes: u64,
    pub sent_offset: u64,
    /// Duplicate ACKs as of the last ACK that advanced: limited transmit may exceed cwnd by two segments after it.
    dup_acks: u32,
}

/// What the congestion window bounds when new data is sent outside of a recovery.
///
/// RFC 5681 §2 and §4.1 bound FlightSize: what was sent again after a loss counts once, like all that is not acknowledged. RFC 6675
/// §5 bounds pipe, from which SACKed bytes are taken and in which those are counted twice that were sent again and are not known to
/// be lost. Without SACK there is no pipe to speak of; with it a sender that keeps to either does no wrong.
fn outstanding(cfg: &Tcp, tcp: &TcpEndpoint) -> u64 {
    if cfg.sack {
        tcp.pipe().min(tcp.inflight())
    } else {
        tcp.inflight()
    }
}

/// Two endpoints, and the packets between them.
pub struct Net<F: FnMut(Time, usize, &Packet) -> Fate> {
    pub cfg: Tcp,
    pub ends: [End; 2],
    iss: [u32; 2],
    pub now: Time,
    flying: Vec<(Time, u64, usize, Packet)>,
    notices: Vec<(Time, usize, Signal)>,
    sequence: u64,
    pub tx: Span,
    fate: F,
    pub steps: u64,
}

impl<F: FnMut(Time, usize, &Packet) -> Fate> Net<F> {
    pub fn new(cfg: Tcp, iss: [u32; 2], tx: Span, fate: F) -> Self {
        let conns = Connection::pair(&cfg, fanin_packet::IpVersion::V4, iss, [7, u32::MAX - 3]);
        let mss = u32::from(cfg.payload(cfg.mtu, fanin_packet::IpVersion::V4, cfg.timestamps));
        let advertised = if cfg.handshake { 0 } else { cfg.opening_window(mss) };
        let ends = conns.map(|c| End {
            tcp: TcpEndpoint::new(&cfg, c, Time::ZERO),
            advertised,
            nic_free: Time::ZERO,
            connected: !cfg.handshake,
            delivered: 0,
            acked: 0,
            peer_closed: false,
            closed: false,
            aborted: false,
            arrived_bytes: 0,
            sent_offset: 0,
            dup_acks: 0,
        });
        let mut net =
            Net { cfg, ends, iss, now: Time::ZERO, flying: Vec::new(), notices: Vec::new(), sequence: 0, tx, fate, steps: 0 };
        net.drain(0);
        net.drain(1);
        net
    }

    pub fn write(&mut self, end: usize, bytes: u64) {
        self.ends[end].tcp.write(&self.cfg, self.now, bytes);
        self.drain(end);
    }

    pub fn close(&mut self, end: usize) {
        self.ends[end].tcp.close(&self.cfg, self.now);
        self.drain(end);
    }

    fn offset(&self, end: usize, wire: u32, near: u64) -> u64 {
        let base = self.iss[end].wrapping_add(1).wrapping_add(near as u32);
        near.wrapping_add_signed(i64::from(wire.wrapping_sub(base) as i32))
    }

    fn put(&mut self, from: usize, p: Packet) {
        let tcp = *p.header.tcp();
        if tcp.flags.has(TcpFlags::ACK) && !tcp.flags.has(TcpFlags::SYN) {
            let to = 1 - from;
            let ack = self.offset(to, tcp.ack, self.ends[to].sent_offset);
            self.ends[to].advertised = self.ends[to].advertised.max(ack + (u64::from(tcp.window) << self.cfg.window_scale()));
        } else if tcp.flags.has(TcpFlags::SYN) {
            self.ends[1 - from].advertised = u64::from(tcp.window);
        }
        let fate = (self.fate)(self.now, from, &p);
        for delay in fate.notified.into_iter().flatten() {
            let part = if fate.operation == 3 { Part::Acknowledgment } else { Part::Data };
            let packet = Reference { number: tcp.seq, length: p.envelope.payload, part };
            let signal = match fate.operation {
                1..=3 => Signal::Lost(Lost { packet, reduce: fate.operation == 1 }),
                _ => Signal::Undefined,
            };
            self.notices.push((self.now + delay, from, signal));
        }
        let mut deliver = |delay: Span, p: Packet| {
            self.sequence += 1;
            self.flying.push((self.now + delay, self.sequence, 1 - from, p));
        };
        if !fate.drop {
            let mut p = p;
            if fate.trim && p.envelope.payload > 0 {
                p.envelope.trim(64);
            }
            if fate.mark && p.envelope.ecn != Ecn::NotEct {
                p.envelope.ecn = Ecn::Ce;
            }
            deliver(fate.delay, p);
            if let Some(delay) = fate.again {
                deliver(delay, p);
            }
        }
    }

    /// Everything that an input may have caused: control packets, data as the NIC has room, events.
    fn drain(&mut self, end: usize) {
        let mut p = Packet::default();
        while self.ends[end].tcp.poll(&self.cfg, self.now, Kinds::CONTROL, &mut p.envelope, &mut p.header) {
            self.put(end, p);
        }
        while self.now >= self.ends[end].nic_free {
            let wanted = self.ends[end].tcp.due(&self.cfg, self.now, Kinds::DATA);
            let burst = self.ends[end].tcp.burst(&self.cfg, self.now);
            let (sent, again) = (self.ends[end].tcp.stats().packets_sent, self.ends[end].tcp.stats().retransmits);
            let calm =
                self.ends[end].tcp.phase() == Phase::Open && self.ends[end].tcp.stats().dup_acks == self.ends[end].dup_acks;
            let probes = self.ends[end].tcp.rack_counts().tail_probes;
            let got = self.ends[end].tcp.poll(&self.cfg, self.now, Kinds::DATA, &mut p.envelope, &mut p.header);
            let tcp = &self.ends[end].tcp;
            let calm = calm && tcp.rack_counts().tail_probes == probes; // a probe needs no room
            let new = tcp.stats().packets_sent > sent && tcp.stats().retransmits == again;
            if new && calm && p.envelope.payload > 0 {
                let outstanding = outstanding(&self.cfg, tcp);
                // A FIN needs no room.
                assert!(outstanding <= tcp.cwnd() + 1, "beyond cwnd: {outstanding} > {}", tcp.cwnd());
            }
            assert_eq!(wanted, got, "due is exact");
            assert!(burst >= u64::from(p.envelope.payload) || burst == 0 || !got);
            if !got {
                break;
            }
            self.ends[end].nic_free = self.now + self.tx;
            if p.envelope.payload > 0 {
                let start = self.offset(end, p.header.number(), self.ends[end].sent_offset);
                let past = start + u64::from(p.envelope.payload);
                assert!(past <= self.ends[end].advertised, "beyond the window: {past} > {}", self.ends[end].advertised);
                assert!(start <= self.ends[end].sent_offset, "a gap in what is sent");
                self.ends[end].sent_offset = self.ends[end].sent_offset.max(past);
                assert!(u32::from(p.envelope.payload) <= self.ends[end].tcp.mss());
            }
            self.put(end, p);
            while self.ends[end].tcp.poll(&self.cfg, self.now, Kinds::CONTROL, &mut p.envelope, &mut p.header) {
                self.put(end, p);
            }
            if self.tx == Span::ZERO {
                continue;
            }
        }
        while let Some(event) = self.ends[end].tcp.poll_event() {
            let e = &mut self.ends[end];
            match event {
                Event::Connected => e.connected = true,
                Event::Delivered { total } => {
                    assert!(total >= e.delivered);
                    e.delivered = total;
                }
                Event::Acked { total } => {
                    assert!(total >= e.acked);
                    e.acked = total;
                    e.dup_acks = e.tcp.stats().dup_acks;
                }
                Event::PeerClosed => e.peer_closed = true,
                Event::Closed => e.closed = true,
                Event::Aborted(_) => e.aborted = true,
            }
        }
    }

    /// The next thing that happens; false when nothing will.
    pub fn step(&mut self) -> bool {
        self.steps += 1;
        let packet = self.flying.iter().enumerate().min_by_key(|(_, f)| (f.0, f.1)).map(|(i, f)| (f.0, i));
        let timer = (0..2).map(|e| (self.ends[e].tcp.next_timeout(), e)).min().unwrap();
        let nic = (0..2)
            .filter(|e| self.ends[*e].nic_free > self.now)
            .map(|e| (self.ends[e].nic_free, e))
            .min()
            .unwrap_or((Time::MAX, 0));
        let notice = self.notices.iter().enumerate().min_by_key(|(_, n)| n.0).map_or((Time::MAX, 0), |(i, n)| (n.0, i));
        let at = packet.map_or(Time::MAX, |p| p.0).min(timer.0).min(nic.0).min(notice.0);
        if at == Time::MAX {
            return false;
        }
        assert!(at >= self.now, "time goes back: {at} < {}", self.now);
        self.now = at;
        if notice.0 == at {
            let (_, to, signal) = self.notices.remove(notice.1);
            self.ends[to].tcp.on_signal(&self.cfg, at, &signal);
            self.drain(to);
        } else if let Some((_, i)) = packet.filter(|p| p.0 == at) {
            let (_, _, to, p) = self.flying.swap_remove(i);
            self.ends[to].arrived_bytes += if p.envelope.trimmed { 0 } else { u64::from(p.envelope.payload) };
            self.ends[to].tcp.on_packet(&self.cfg, at, &p.envelope, &p.header);
            self.drain(to);
        } else if nic.0 == at {
            self.drain(nic.1);
        } else {
            self.ends[timer.1].tcp.on_timer(&self.cfg, at);
            self.drain(timer.1);
            assert!(self.ends[timer.1].tcp.next_timeout() > at, "a timeout that does not go away");
        }
        self.check();
        true
    }

    /// What must hold at any time.
    fn check(&self) {
        for (me, other) in [(0, 1), (1, 0)] {
            let (me, other) = (&self.ends[me], &self.ends[other]);
            assert!(me.acked <= other.delivered, "{} acknowledged, {} delivered", me.acked, other.delivered);
            assert!(other.delivered <= me.sent_offset);
            assert!(me.tcp.pipe() <= 2 * me.tcp.inflight());
            let stats = other.tcp.stats();
            assert!(stats.delivered + stats.duplicate_bytes <= other.arrived_bytes);
            assert!(me.tcp.cwnd() >= u64::from(me.tcp.mss()) || !me.connected);
        }
    }

    /// Until nothing happens any more, at most `limit` of time and `steps` steps.
    pub fn run(&mut self, limit: Span, steps: u64) {
        let end = Time::ZERO + limit;
        let last = self.steps + steps;
        while self.now < end && self.steps < last && self.step() {}
    }
}
