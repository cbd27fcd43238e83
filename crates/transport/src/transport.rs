//! What every transport does, and what a scenario asks of its parameters.

use crate::report::{Event, Stats};
use crate::signals::{SignalCounts, SignalLog};
use crate::snapshot::SenderState;
use fanin_packet::{Envelope, Framing, Header, IpVersion, Signal, Signals, Stack};
use fanin_params::{Cx, Ground, Trial};
use fanin_units::{BitRate, Bytes, Span, Stream, Time};

/// Kinds of packets that a poll may give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u8);

impl Kinds {
    /// Acknowledgments and handshakes: they leave in the round in which they are due.
    pub const CONTROL: Kinds = Kinds(1);
    /// What leaves when the NIC has room.
    pub const DATA: Kinds = Kinds(2);
    pub const ALL: Kinds = Kinds(3);

    /// Whether all of `other` are in it.
    #[inline(always)]
    pub const fn has(self, other: Kinds) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both.
    #[inline(always)]
    pub const fn with(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }
}

/// What the completion time of a flow alone on an idle network depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Payload of a full data packet \[bytes\].
    pub payload: u64,
    /// Transport header of a data packet, and of its acknowledgment \[bytes\].
    pub header: u16,
    /// Bytes that the header of the first data packet is longer.
    pub first: u16,
    /// Transport header of the packets that open a connection, one in each direction \[bytes\]; `None` without a handshake.
    pub opening: Option<u16>,
}

/// Where a flow runs: what a transport may know of it before it sends.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Of the hosts, with room for stamps.
    pub framing: Framing,
    /// Of the NICs, the initiator's first.
    pub rates: [BitRate; 2],
    /// Round trip of a full packet and one without payload on an idle network.
    pub base_rtt: Span,
    /// Switches on the way.
    pub hops: u32,
    /// What every packet waits in its receiver, which is a part of the way's delay.
    pub processing: Span,
}

impl Place {
    /// A path over one switch between two hosts on Ethernet.
    pub fn new(ip: IpVersion, rate: BitRate, base_rtt: Span) -> Self {
        let framing = Framing { ip, ..Framing::ETHERNET };
        Place { framing, rates: [rate; 2], base_rtt, hops: 1, processing: Span::ZERO }
    }
}

/// A data packet that a host's queue did not accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Sequence number on the wire.
    pub number: u32,
    /// Bytes of transport header and payload.
    pub header: u16,
    pub payload: u16,
}

/// One end of a flow, sans-IO: time is passed as an argument, packets are polled.
///
/// After each input the host polls [`Kinds::CONTROL`] until nothing is due, reads [`Transport::poll_event`] until it is empty,
/// polls [`Kinds::DATA`] when its NIC has room, and calls [`Transport::on_timer`] at [`Transport::next_timeout`].
pub trait Transport: Sized {
    /// Its table in a scenario.
    type Params: TransportParams;

    /// Both ends of a flow, initiator first. `draws`: the flow's own random stream.
    fn pair(cfg: &Self::Params, place: &Place, now: Time, draws: &mut Stream) -> [Self; 2];

    /// The application writes `bytes`.
    fn write(&mut self, cfg: &Self::Params, now: Time, bytes: u64);

    /// The application writes nothing more.
    fn close(&mut self, cfg: &Self::Params, now: Time);

    /// The packet that comes next reached the host at a time before: it has waited between NIC and transport.
    fn arrived_at(&mut self, _at: Time) {}

    /// A packet of the other end has arrived, perhaps trimmed.
    fn on_packet(&mut self, cfg: &Self::Params, now: Time, envelope: &Envelope, header: &Header);

    /// The network signals something about a packet of this end.
    fn on_signal(&mut self, _cfg: &Self::Params, _now: Time, _signal: &Signal) {
        self.signal_log().counts().notifications.ignored += 1;
    }

    /// The packet that is given next brings telemetry: of its own way, or what the other end sends back.
    fn on_telemetry(&mut self, _stack: &Stack) {}

    /// The telemetry in the frame of the packet that [`Transport::poll`] has just given: an empty stack where ports shall write,
    /// or what the other end is told; `None` without. Asked only where [`TransportParams::needs_telemetry`].
    fn telemetry(&mut self) -> Option<Stack> {
        None
    }

    /// A timeout has expired. Early and repeated calls are harmless.
    fn on_timer(&mut self, cfg: &Self::Params, now: Time);

    /// The earliest time at which [`Transport::on_timer`] has something to do; `Time::MAX`: never.
    fn next_timeout(&self) -> Time;

    /// Whether no packet of data that it sends before its next input sets a timeout sooner than `span` after it; `false` where it does not
    /// know.
    fn is_patient(&self, _cfg: &Self::Params, _span: Span) -> bool {
        false
    }

    /// Whether that lies before `at`.
    fn times_out_before(&self, at: Time) -> bool {
        self.next_timeout() < at
    }

    /// Whether [`Transport::poll`] would give a packet.
    fn due(&self, cfg: &Self::Params, now: Time, kinds: Kinds) -> bool;

    /// Whether data may be due, by a short look; `false`: it is not.
    fn may_have_data(&self, cfg: &Self::Params, now: Time) -> bool {
        self.due(cfg, now, Kinds::DATA)
    }

    /// Makes the next packet, if one of `kinds` is due: its header, and of the envelope `payload`, `ecn`, `kind` and
    /// `trimmed`. The host fills the rest.
    fn poll(&mut self, cfg: &Self::Params, now: Time, kinds: Kinds, envelope: &mut Envelope, header: &mut Header) -> bool;

    /// Payload bytes that one turn at the NIC may send back to back; zero: one packet.
    fn burst(&self, _cfg: &Self::Params, _now: Time) -> u64 {
        0
    }

    /// Bytes of this end that may stand in a queue of its host before it sends more (TCP small queues).
    fn output_limit(&self, _cfg: &Self::Params, _now: Time) -> u64 {
        u64::MAX
    }

    /// The host's queue is full: the data packet that [`Transport::poll`] would give is dropped there, and stays unsent.
    /// What it would have been; `None`: there is none, or this transport does not notice and is polled as ever.
    fn on_refusal(&mut self, _cfg: &Self::Params, _now: Time) -> Option<Refused> {
        None
    }

    /// The next event, oldest cause first.
    fn poll_event(&mut self) -> Option<Event>;

    /// Drops the news that more has been delivered or acknowledged while that is below these totals, at which its application wants to
    /// hear of it. Whether no other event waits; `false` where it does not know without a look.
    fn is_quiet_below(&mut self, _delivered: u64, _acked: u64) -> bool {
        false
    }

    /// Whether nothing more leaves this end of its own accord.
    fn is_over(&self, cfg: &Self::Params) -> bool;

    /// Where it keeps what its next packet needs, in steps: a line of memory each, to be fetched ahead. In the first step nothing but
    /// the first two lines of itself is at hand, in the second what the first has shown.
    fn apart(&self, _step: usize, _fetch: impl Fn(*const u8)) {}

    /// Counters since the start.
    fn stats(&self) -> Stats;

    /// [`Stats::packets_sent`], modulo 2^32.
    fn sent(&self) -> u32 {
        self.stats().packets_sent as u32
    }

    /// What became of signals.
    fn signals(&self) -> SignalCounts;

    /// Where the endpoint counts signals.
    fn signal_log(&mut self) -> &mut SignalLog;

    /// See [`Shape`].
    fn shape(cfg: &Self::Params, ip: IpVersion) -> Shape {
        cfg.shape(ip)
    }

    /// The place of the next byte that it has not got yet, as headers have it; `None`: it does not know, or its packets have no order.
    fn next_place(&self) -> Option<u32> {
        None
    }

    /// What it is doing as a sender, for telemetry; `None` where it has no window.
    fn snapshot(&self) -> Option<SenderState> {
        None
    }

    /// Its state in words, for the report of a run that hangs.
    fn describe(&self) -> String;
}

/// What a check of parameters knows of the rest of the scenario.
#[derive(Clone, Copy, Debug)]
pub struct CheckSite {
    /// Bytes of each frame that lie behind the IP packet, by which the MTU is smaller.
    pub trailer: u16,
    pub ip: IpVersion,
    /// Packets queue in hosts: `nic = "fifo"`.
    pub queues_at_hosts: bool,
}

/// The network when it is idle, as far as parameters have to suit it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Of the fastest NIC.
    pub line: BitRate,
    /// The longest round trip of the transport's flows, of a full packet and one without payload; none where no flow is known.
    pub base_rtt: Option<Span>,
}

/// A timeout that a sender waits for after a loss.
#[derive(Clone, Copy, Debug)]
pub struct LossTimer {
    /// Its key in the scenario.
    pub key: &'static str,
    pub value: Span,
    /// The key has a number n, and the timeout is 4.096 us · 2^n. Source: IBTA §9.7.6.1.3.
    pub exponent: Option<u32>,
    /// It is what it is, whatever RTT the sender measures.
    pub fixed: bool,
    /// What it costs, after a colon.
    pub cost: &'static str,
}

/// What asks an endpoint many things in a row: compiled for the common transport, so that whose endpoint it is is found out once.
pub trait Act {
    /// What comes of it.
    type Out;

    /// Does it.
    fn act<E: Transport>(self, end: &mut E, cfg: &E::Params) -> Self::Out;
}

/// What a scenario asks of a transport's parameters. Each has a default.
pub trait TransportParams: Default {
    /// Reports values that contradict each other, and values without effect; `cx` is at their table.
    fn check(&self, cx: &mut Cx, site: &CheckSite);

    /// Reports values that do not suit the network; `cx` is at their table.
    fn check_at(&self, _at: &Idle, _cx: &mut Cx) {}

    /// Bytes of the largest IP packet.
    fn mtu(&self, ip: IpVersion) -> u16;

    /// The same for packets that are smaller by `bytes`.
    fn with_mtu_less(self, bytes: u16) -> Self;

    /// See [`Shape`].
    fn shape(&self, ip: IpVersion) -> Shape;

    /// Headers of IP and transport in the longest acknowledgment without selective ones \[bytes\].
    fn longest_header(&self, ip: IpVersion) -> u16;

    /// Bytes of a message at most: what an application writes at once is cut into as many; `None`: it is one.
    fn largest_message(&self) -> Option<Bytes> {
        None
    }

    /// Payload bytes that a sender may have in flight before the first acknowledgment.
    fn first_window(&self, ip: IpVersion) -> u64;

    /// Whether connections keep their share of the host's queue small.
    fn keeps_queues_small(&self) -> bool {
        false
    }

    /// Whether it hands several segments to the NIC at once.
    fn bursts(&self) -> bool {
        false
    }

    /// The key of the receive window, and the most that it offers.
    fn receive_window(&self) -> Option<(&'static str, Bytes)> {
        None
    }

    /// Timeouts that follow a loss, the most important one first.
    fn loss_timers(&self) -> Vec<LossTimer> {
        Vec::new()
    }

    /// What makes it send ECN-capable packets, where it does not.
    fn ecn_remedy(&self) -> Option<&'static str> {
        None
    }

    /// What helps where packets come in another order than they were sent in, if it takes that for loss and sends them again.
    fn wants_order(&self) -> Option<&'static str> {
        None
    }

    /// Whether it sends ECN-capable packets.
    fn uses_ecn(&self) -> bool {
        false
    }

    /// Whether it works by marks, so that a drop in their place is a mistake: its name.
    fn needs_marks(&self) -> Option<&'static str> {
        None
    }

    /// Whether its marks should come by chance, the more the longer the queue, and not from a threshold on.
    fn marks_by_curve(&self) -> bool {
        false
    }

    /// Whether it works by telemetry of the ports on the way: its name.
    fn needs_telemetry(&self) -> Option<&'static str> {
        None
    }

    /// What to write where it is in a class that drops packets, which it takes badly; `None`: it repairs losses.
    fn wants_lossless(&self) -> Option<&'static str> {
        None
    }

    /// Classes of packets that do not travel in their flow's, each with its key.
    fn other_classes(&self) -> Vec<(&'static str, u8)> {
        Vec::new()
    }

    /// The signals that it acts on.
    fn acts_on(&self) -> Signals {
        Signals::NONE
    }

    /// As it is tried on a scenario: by itself, or with each congestion control that it has.
    fn trials(kind: &'static str, docs: &[&str], _at: &Ground) -> Vec<Trial>
    where
        Self: Sized,
    {
        let own = ("transport".to_string(), format!("{{ kind = {kind:?} }}"));
        vec![Trial::new("transport", kind, docs, own, Vec::new())]
    }

    /// The keys that turn this on, each with its signal.
    fn signal_keys(&self) -> &'static [(Signals, &'static str)] {
        &[]
    }

    /// The key that makes it act on `signal`.
    fn key_of(&self, signal: Signals) -> Option<&'static str> {
        self.signal_keys().iter().find(|(signals, _)| signals.has(signal)).map(|(_, key)| *key)
    }
}
