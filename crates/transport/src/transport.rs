//! Interfaces of all transports: [`Transport`] for endpoints, [`TransportParams`] for their parameters in a scenario.

use crate::report::{Event, Stats};
use crate::signals::{SignalCounts, SignalLog};
use crate::snapshot::SenderState;
use fanin_packet::{Envelope, Framing, Header, IpVersion, Signal, Signals, Stack};
use fanin_params::{Cx, Ground, Trial};
use fanin_units::{BitRate, Bytes, Span, Stream, Time};

/// Set of packet kinds that a poll may yield.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u8);

impl Kinds {
    /// Acknowledgments and handshakes, which leave in the round in which they are due.
    pub const CONTROL: Kinds = Kinds(1);
    /// Data packets, which leave when the NIC has room.
    pub const DATA: Kinds = Kinds(2);
    pub const ALL: Kinds = Kinds(3);

    /// True if this set contains all of `other`.
    #[inline(always)]
    pub const fn has(self, other: Kinds) -> bool {
        self.0 & other.0 == other.0
    }

    /// Union of the two sets.
    #[inline(always)]
    pub const fn with(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }
}

/// Packet sizes that determine the completion time of a single flow on an idle network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Payload of a full data packet \[bytes\].
    pub payload: u64,
    /// Transport header of a data packet, and of its acknowledgment \[bytes\].
    pub header: u16,
    /// Bytes by which the header of the first data packet is longer.
    pub first: u16,
    /// Transport header of the packets that open a connection, one in each direction \[bytes\]; `None` without a handshake.
    pub opening: Option<u16>,
}

/// Path and hosts of a flow, as a transport knows them before it sends.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Framing of the hosts, with room for stamps.
    pub framing: Framing,
    /// Rates of the two NICs, the initiator's first.
    pub rates: [BitRate; 2],
    /// Idle RTT of a full packet and one without payload.
    pub base_rtt: Span,
    /// Number of switches on the path.
    pub hops: u32,
    /// Processing delay of every packet in its receiver, which is a part of the path's delay.
    pub processing: Span,
}

impl Place {
    /// A path over one switch between two hosts on Ethernet.
    pub fn new(ip: IpVersion, rate: BitRate, base_rtt: Span) -> Self {
        let framing = Framing { ip, ..Framing::ETHERNET };
        Place { framing, rates: [rate; 2], base_rtt, hops: 1, processing: Span::ZERO }
    }
}

/// A data packet that the transmit queue of its host did not accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Sequence number of the packet on the wire.
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
    /// Parameters of the transport, a table of the scenario.
    type Params: TransportParams;

    /// The two ends of a flow, initiator first. `draws`: the flow's own random stream.
    fn pair(cfg: &Self::Params, place: &Place, now: Time, draws: &mut Stream) -> [Self; 2];

    /// Takes a write of `bytes` from the application.
    fn write(&mut self, cfg: &Self::Params, now: Time, bytes: u64);

    /// Closes the application's direction: no further writes follow.
    fn close(&mut self, cfg: &Self::Params, now: Time);

    /// Gives the arrival time of the next packet at the host, if it has waited between NIC and transport.
    fn arrived_at(&mut self, _at: Time) {}

    /// Processes a packet of the peer, perhaps trimmed.
    fn on_packet(&mut self, cfg: &Self::Params, now: Time, envelope: &Envelope, header: &Header);

    /// Processes a signal of the network about a packet of this end.
    fn on_signal(&mut self, _cfg: &Self::Params, _now: Time, _signal: &Signal) {
        self.signal_log().counts().notifications.ignored += 1;
    }

    /// True if endpoints of the transport may work by telemetry.
    const HAS_TELEMETRY: bool = false;

    /// Gives the telemetry of the next packet: of its own path, or returned by the peer.
    fn on_telemetry(&mut self, _stack: &Stack) {}

    /// Telemetry for the frame of the packet that [`Transport::poll`] has just `made`: an empty stack for ports to write into,
    /// or one to return to the peer; `None` without. Asked only if [`TransportParams::needs_telemetry`].
    fn telemetry(&self, _made: &Header) -> Option<Stack> {
        None
    }

    /// Handles expired timeouts. Early and repeated calls are harmless.
    fn on_timer(&mut self, cfg: &Self::Params, now: Time);

    /// The earliest time at which [`Transport::on_timer`] has something to do; `Time::MAX`: never.
    fn next_timeout(&self) -> Time;

    /// True if no data packet sent before the next input sets a timeout sooner than `span` after it; false if unknown.
    fn is_patient(&self, _cfg: &Self::Params, _span: Span) -> bool {
        false
    }

    /// True if the next timeout is before `at`.
    fn times_out_before(&self, at: Time) -> bool {
        self.next_timeout() < at
    }

    /// True if [`Transport::poll`] would yield a packet.
    fn due(&self, cfg: &Self::Params, now: Time, kinds: Kinds) -> bool;

    /// True if data may be due, by a quick look; false if it is not.
    fn may_have_data(&self, cfg: &Self::Params, now: Time) -> bool {
        self.due(cfg, now, Kinds::DATA)
    }

    /// Makes the next packet, if one of `kinds` is due: its header, and of the envelope `payload`, `ecn`, `kind` and
    /// `trimmed`. The host fills in the rest.
    fn poll(&mut self, cfg: &Self::Params, now: Time, kinds: Kinds, envelope: &mut Envelope, header: &mut Header) -> bool;

    /// Payload bytes that one transmission opportunity at the NIC may send back to back; zero: one packet.
    fn burst(&self, _cfg: &Self::Params, _now: Time) -> u64 {
        0
    }

    /// TCP small queue limit: bytes of this end in its host's transmit queue beyond which it sends nothing more.
    fn output_limit(&self, _cfg: &Self::Params, _now: Time) -> u64 {
        u64::MAX
    }

    /// Handles a full transmit queue of the host: the data packet that [`Transport::poll`] would make is dropped there, and
    /// stays unsent. Returns that packet; `None`: there is none, or this transport does not notice and is polled as usual.
    fn on_refusal(&mut self, _cfg: &Self::Params, _now: Time) -> Option<Refused> {
        None
    }

    /// Takes the next event, oldest cause first.
    fn poll_event(&mut self) -> Option<Event>;

    /// Drops pending events of delivered and acknowledged bytes below these totals, at which the application wants to be
    /// notified. True if no other event is pending; false if that is unknown without a look.
    fn is_quiet_below(&mut self, _delivered: u64, _acked: u64) -> bool {
        false
    }

    /// True if this end sends nothing more without input.
    fn is_over(&self, cfg: &Self::Params) -> bool;

    /// Fetches the memory that the next packet needs, in steps of cache lines. In step 0 only the first two lines of the
    /// endpoint are in the cache, in step 1 also those that step 0 has fetched.
    fn apart(&self, _step: usize, _fetch: impl Fn(*const u8)) {}

    /// Counters since the start.
    fn stats(&self) -> Stats;

    /// Low 32 bits of [`Stats::packets_sent`].
    fn sent(&self) -> u32 {
        self.stats().packets_sent as u32
    }

    /// Counters of signals.
    fn signals(&self) -> SignalCounts;

    /// Mutable counters of signals.
    fn signal_log(&mut self) -> &mut SignalLog;

    /// Packet sizes, see [`Shape`].
    fn shape(cfg: &Self::Params, ip: IpVersion) -> Shape {
        cfg.shape(ip)
    }

    /// Position in headers of the next byte that this end awaits; `None`: unknown, or its packets have no order.
    fn next_place(&self) -> Option<u32> {
        None
    }

    /// State as a sender, for telemetry; `None` without a window.
    fn snapshot(&self) -> Option<SenderState> {
        None
    }

    /// Describes the state in words, for the report of a run that hangs.
    fn describe(&self) -> String;
}

/// Facts about the rest of the scenario, for checks of parameters.
#[derive(Clone, Copy, Debug)]
pub struct CheckSite {
    /// Bytes of each frame behind the IP packet, by which the MTU is smaller.
    pub trailer: u16,
    pub ip: IpVersion,
    /// True if packets queue in hosts: `nic = "fifo"`.
    pub queues_at_hosts: bool,
}

/// Properties of the idle network that parameters have to suit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Rate of the fastest NIC.
    pub line: BitRate,
    /// Longest idle RTT of the transport's flows, of a full packet and one without payload; `None` if no flow is known.
    pub base_rtt: Option<Span>,
}

/// A timeout that a sender waits for after a loss.
#[derive(Clone, Copy, Debug)]
pub struct LossTimer {
    /// Key of the timeout in the scenario.
    pub key: &'static str,
    pub value: Span,
    /// Exponent n of a timeout of 4.096 us · 2^n, if the key has that. Source: IBTA §9.7.6.1.3.
    pub exponent: Option<u32>,
    /// True if the timeout does not depend on the measured RTT.
    pub fixed: bool,
    /// Cost of the timeout in words, for a message, after a colon.
    pub cost: &'static str,
}

/// Timeouts without progress with which a flow fails.
#[derive(Clone, Copy, Debug)]
pub struct FailsAfter {
    /// The shortest timeout.
    pub timer: LossTimer,
    /// Number of timeouts in a row.
    pub times: u32,
    /// Keys to raise for longer ones.
    pub raise: &'static str,
}

/// A sequence of calls to an endpoint, compiled for the common transport, so that its kind is tested once.
pub trait Act {
    /// Result of the calls.
    type Out;

    /// Makes the calls.
    fn act<E: Transport>(self, end: &mut E, cfg: &E::Params) -> Self::Out;
}

/// Parameters of a transport, as a scenario uses them. Every method but a few has a default.
pub trait TransportParams: Default {
    /// Reports values that contradict each other, and values without effect; `cx` is at their table.
    fn check(&self, cx: &mut Cx, site: &CheckSite);

    /// Reports values that do not suit the network; `cx` is at their table.
    fn check_at(&self, _at: &Idle, _cx: &mut Cx) {}

    /// MTU: bytes of the largest IP packet.
    fn mtu(&self, ip: IpVersion) -> u16;

    /// These parameters for packets that are smaller by `bytes`.
    fn with_mtu_less(self, bytes: u16) -> Self;

    /// Packet sizes, see [`Shape`].
    fn shape(&self, ip: IpVersion) -> Shape;

    /// Length of IP and transport headers in the longest acknowledgment without SACK blocks \[bytes\].
    fn longest_header(&self, ip: IpVersion) -> u16;

    /// Largest message: an application's write is cut into such messages; `None`: a write is one message.
    fn largest_message(&self) -> Option<Bytes> {
        None
    }

    /// Payload bytes that a sender may have in flight before the first acknowledgment.
    fn first_window(&self, ip: IpVersion) -> u64;

    /// True if connections limit their share of the host's transmit queue (TCP small queues).
    fn keeps_queues_small(&self) -> bool {
        false
    }

    /// Most payload that an endpoint hands to the NIC at once, and the key that says so; `None`: a packet.
    fn burst(&self) -> Option<(&'static str, Bytes)> {
        None
    }

    /// Key of the receive window, and the largest window it allows.
    fn receive_window(&self) -> Option<(&'static str, Bytes)> {
        None
    }

    /// Timeouts that follow a loss, the most important one first.
    fn loss_timers(&self) -> Vec<LossTimer> {
        Vec::new()
    }

    /// Timeouts with which a flow fails, also where nothing was lost; `None`: flows do not fail by time.
    fn fails_after(&self) -> Option<FailsAfter> {
        None
    }

    /// Setting that makes the transport send ECN-capable packets, for messages; `None` if it sends them already.
    fn ecn_remedy(&self) -> Option<&'static str> {
        None
    }

    /// Setting that helps against reordering, if the transport takes that for loss and retransmits; `None` if it does not.
    fn wants_order(&self) -> Option<&'static str> {
        None
    }

    /// True if the transport sends ECN-capable packets.
    fn uses_ecn(&self) -> bool {
        self.needs_marks().is_some()
    }

    /// Name of the congestion control if it works by marks, so that drops instead of marks are a mistake.
    fn needs_marks(&self) -> Option<&'static str> {
        None
    }

    /// True if marking should be probabilistic, increasing with the queue, instead of a threshold.
    fn marks_by_curve(&self) -> bool {
        false
    }

    /// Name of the congestion control if it works by telemetry of the ports on the path.
    fn needs_telemetry(&self) -> Option<&'static str> {
        None
    }

    /// Setting that helps in a class that drops packets, if the transport is loss-sensitive; `None` if it repairs losses
    /// well.
    fn wants_lossless(&self) -> Option<&'static str> {
        None
    }

    /// Classes of packets that do not travel in their flow's class, each with its key.
    fn other_classes(&self) -> Vec<(&'static str, u8)> {
        Vec::new()
    }

    /// Signals that the transport acts on.
    fn acts_on(&self) -> Signals {
        Signals::NONE
    }

    /// Trials of the transport: by itself, or with each of its congestion controls.
    fn trials(kind: &'static str, docs: &[&str], _at: &Ground) -> Vec<Trial>
    where
        Self: Sized,
    {
        let own = ("transport".to_string(), format!("{{ kind = {kind:?} }}"));
        vec![Trial::new("transport", kind, docs, own, Vec::new())]
    }

    /// Keys that make the transport act on signals, each with its signal.
    fn signal_keys(&self) -> &'static [(Signals, &'static str)] {
        &[]
    }

    /// Key that makes the transport act on `signal`.
    fn key_of(&self, signal: Signals) -> Option<&'static str> {
        self.signal_keys().iter().find(|(signals, _)| signals.has(signal)).map(|(_, key)| *key)
    }
}
