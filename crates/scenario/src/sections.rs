//! Settings that belong to no model crate: framing, hosts, telemetry, engine.

use crate::pauses::{PauseWatchdog, Storm};
use fanin_packet::IpVersion;
use fanin_params::{choice, names, params, Cx, Node, Param, Schema, Value};
use fanin_units::{Bytes, Span};

names! {
    /// IP version of all hosts. Ports and paths of flows are the same with either.
    pub enum Ip {
        /// IPv4, with a header of 20 B. Source: RFC 791.
        "v4" => V4,
        /// IPv6, with a header of 40 B: full segments carry 20 B less, drop notifications have 44 B. Source: RFC 8200.
        "v6" => V6,
    }
}

params! {
    /// Framing: the bytes that link layer and IP add to each packet. The defaults are Ethernet's: a full-size packet of 1500
    /// B is a frame of 1518 B in queues and takes 1538 B of wire time.
    pub struct Framing {
        /// Version of IP.
        pub ip: Ip = Ip::V4;
        /// Link-layer header and frame check sequence, counted in queues and on the wire. Source: IEEE 802.3 (14 + 4 bytes).
        pub header: Bytes = Bytes(18), in Bytes(0)..=Bytes(1_000);
        /// Smallest frame; shorter ones are padded to it. Source: IEEE 802.3.
        pub min_frame: Bytes = Bytes(64), in Bytes(0)..=Bytes(1_500);
        /// Preamble and inter-packet gap, counted in wire time only. Source: IEEE 802.3 (8 + 12 bytes).
        pub gap: Bytes = Bytes(20), in Bytes(0)..=Bytes(1_000);
    }
}

impl Framing {
    /// Version of IP of all hosts.
    pub fn version(&self) -> IpVersion {
        match self.ip {
            Ip::V4 => IpVersion::V4,
            Ip::V6 => IpVersion::V6,
        }
    }

    /// Framing in the form that packets use; the ranges above are within 16 bits.
    pub fn of_packets(&self) -> fanin_packet::Framing {
        let small = |bytes: Bytes| bytes.get() as u16;
        fanin_packet::Framing {
            header: small(self.header),
            min_frame: small(self.min_frame),
            gap: small(self.gap),
            ip: self.version(),
        }
    }
}

params! {
    /// Fair NIC: unsent packets stay in the sockets.
    pub struct FairNic { }
}
params! {
    /// First in, first out: each connection, in the order in which they became ready, puts all that its window (and
    /// `small_queues`) allows into the host's transmit queue. Source: Linux pfifo_fast.
    pub struct FifoNic {
        /// Length of the transmit queue in packets, a TSO burst counting as one; if absent, unlimited. If it is full, a TCP
        /// segment stays unsent and the window falls as for an ECN echo; ACKs and datagrams are lost. Source: Linux
        /// txqueuelen (1000), pfifo_fast_enqueue, __tcp_transmit_skb.
        ///
        /// Deviation: no driver's ring behind it (some hundred packets without byte queue limits).
        pub txqueuelen: Option<u32> = None, in 1u32..=10_000_000;
    }
}
choice! {
    /// Queueing discipline of a host's NIC.
    pub enum Nic {
        /// Round robin over connections with something to send, one packet each. Source: Linux sch_fq without pacing.
        "fair" => Fair(FairNic),
        /// First in, first out: each connection, in the order in which they became ready, puts all that its window (and
        /// `small_queues`) allows into the host's transmit queue. Source: Linux pfifo_fast.
        "fifo" => Fifo(FifoNic),
    }
}

/// Default packets per poll. Source: Linux NAPI_POLL_WEIGHT.
const BUDGET: u32 = 64;
/// Default payload of merged segments: 64 KiB with headers. Source: Linux GRO_LEGACY_MAX_SIZE.
const GRO_MAX: Bytes = Bytes(65_483);

params! {
    /// Immediate delivery: each packet reaches its transport as soon as it has arrived.
    pub struct AtOnce { }
}
params! {
    /// Interrupt coalescing and GRO: the host takes waiting packets in polls; consecutive segments of a flow that differ in
    /// nothing else are merged, and acknowledged as one. Source: Linux NAPI, GRO (napi_poll, tcp_gro_receive,
    /// skb_gro_receive).
    ///
    /// Deviation: a poll takes no time, and does not span several flows' buckets (gro_list). Control messages of switches do
    /// not wait.
    pub struct Napi {
        /// Interrupt delay, from the first packet at an idle NIC to the poll: rx-usecs of ethtool (mlx5 8 us, ice and i40e
        /// 50 us).
        pub interrupt_delay: Span = Span::from_us(8), in Span::from_ns(1)..=Span::from_ms(10);
        /// Generic receive offload (GRO): merges consecutive segments of a flow.
        pub gro: bool = true;
        /// Largest number of packets in a poll; the next poll follows at once, but merges nothing with this one. Source:
        /// Linux NAPI_POLL_WEIGHT.
        pub budget: u32 = BUDGET, in 1..=65_535;
        /// Largest payload of merged segments. Source: Linux GRO_LEGACY_MAX_SIZE (64 KiB with headers).
        pub gro_max: Bytes = GRO_MAX, in Bytes(1_460)..=Bytes(524_280);
    }
}
choice! {
    /// Delivery of packets from the NIC to the transport.
    pub enum Receive {
        /// Packet by packet, without delay.
        "at_once" => AtOnce(AtOnce),
        /// Interrupts with polls, and segments merged by GRO.
        "napi" => Napi(Napi),
    }
}

params! {
    /// No random delay.
    pub struct NoNoise { }
}
params! {
    /// Uniform random delay, from zero up to a maximum.
    pub struct UniformNoise {
        /// Largest delay.
        pub max: Span = Span::from_us(10), in Span::from_ns(1)..=Span::from_ms(10);
    }
}
params! {
    /// Exponentially distributed random delay.
    pub struct ExponentialNoise {
        /// Mean delay.
        pub mean: Span = Span::from_us(5), in Span::from_ns(1)..=Span::from_ms(10);
    }
}
choice! {
    /// Random delay that a host adds to each packet it receives.
    pub enum Noise {
        /// No random delay.
        "none" => None(NoNoise),
        /// Uniformly distributed delays up to a bound.
        "uniform" => Uniform(UniformNoise),
        /// Exponentially distributed delays: mostly short, some long.
        "exponential" => Exponential(ExponentialNoise),
    }
}

params! {
    /// Reordering buffer between NIC and transport: packets wait for those before them in the flow's byte stream.
    /// Duplicates, and packets without a place in the stream (acknowledgments, datagrams), do not wait. Source: Vertigo
    /// §3.3, DRILL §3.3.
    pub struct ReorderBuffer {
        /// Longest wait for missing packets. Source: Vertigo (360 us in the simulations published with it).
        pub timeout: Span = Span::from_us(360), in Span::from_ns(1)..=Span::from_s(1);
    }
}

params! {
    /// Host: NIC, receive path and pauses, everything besides the transport.
    pub struct Host {
        /// Queueing discipline of the NIC.
        pub nic: Nic = Nic::Fair(FairNic {});
        /// Processing delay, from a packet's last bit until the transport sees it.
        pub processing_delay: Span = Span::ZERO, in Span::ZERO..=Span::from_ms(10);
        /// Delivery of packets from the NIC to the transport.
        pub receive: Receive = Receive::AtOnce(AtOnce {});
        /// Random delay of each received packet, besides `processing_delay`, drawn per host. Packets stay in order: each
        /// waits for those before it.
        pub noise: Noise = Noise::None(NoNoise {});
        /// Reordering buffer before the transport; if absent, packets are delivered in order of arrival.
        pub reorder: Option<ReorderBuffer>;
        /// Watchdog of the NIC that ends overlong pauses of a class; if absent, the class waits.
        pub pause_watchdog: Option<PauseWatchdog>;
        /// Pause storms: NICs that request pauses without need.
        pub storms: Vec<Storm> = Vec::new();
        /// Stall prevention: after requesting pauses of a class for this long without a break, a NIC requests none until the
        /// need has ended. If absent, it never stops. Source: NVIDIA (pfc_prevention_tout: 100 ms where it is set to auto, 8
        /// s by default).
        pub stall_prevention: Option<Span>, in Span::from_us(1)..=Span::from_s(100);
    }
}

impl Host {
    /// Delay of a packet that arrives alone until its transport sees it, without noise.
    pub(crate) fn delay(&self) -> Span {
        match &self.receive {
            Receive::AtOnce(_) => self.processing_delay,
            Receive::Napi(napi) => self.processing_delay + napi.interrupt_delay,
        }
    }

    /// True if packets may wait between NIC and transport.
    pub fn holds_packets(&self) -> bool {
        !matches!((&self.receive, &self.noise, &self.reorder), (Receive::AtOnce(_), Noise::None(_), None))
    }

    /// Reports settings without effect.
    pub(crate) fn check(&self, cx: &mut Cx) {
        let Receive::Napi(napi) = &self.receive else { return };
        if napi.gro {
            return;
        }
        cx.key("host", |cx| {
            cx.key("receive", |cx| {
                let remedy = "gro = true, or leave it out";
                cx.unused_at("budget", &napi.budget, "has no effect while gro is off", remedy);
                cx.unused_at("gro_max", &napi.gro_max, "has no effect while gro is off", remedy);
            });
        });
    }
}

/// Sampling period of the ports' time series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// No time series.
    Off,
    /// One sample per period.
    Every(Span),
}

/// Shortest sampling period.
pub const SHORTEST_SAMPLING: Span = Span::from_ns(10);

pub(crate) const SAMPLING: &str = "a duration or \"off\"";
const SAMPLING_EXAMPLES: &str = "\"100us\", \"1ms\", \"off\"";

impl Param for Sampling {
    fn schema() -> Schema {
        Schema::Quantity { what: SAMPLING, examples: SAMPLING_EXAMPLES }
    }

    fn parse(node: &Node, cx: &mut Cx) -> Option<Self> {
        if node.text() == Some("off") {
            return Some(Sampling::Off);
        }
        let period = Span::parse(node, cx)?;
        if period < SHORTEST_SAMPLING {
            let problem =
                cx.error(Some(node), "is too short a period", Some(format!("at least {SHORTEST_SAMPLING}, or \"off\"")));
            if period == Span::ZERO {
                problem.suggestion = Some("write \"off\" for no samples".to_string());
            }
            return None;
        }
        Some(Sampling::Every(period))
    }

    fn to_value(&self) -> Value {
        match self {
            Sampling::Off => Value::Text("off".to_string()),
            Sampling::Every(period) => period.to_value(),
        }
    }
}

params! {
    /// Registers in which watched ports keep time and queue length. Source: S-ECN §II-C.
    pub struct Registers {
        /// Step of the time register, which wraps around after 2^32 ticks (32 bits).
        pub tick: Span = Span::from_ns(800), in Span::from_ns(1)..=Span::from_ms(1);
        /// Step of the queue register: queues of 65535 units and more read alike (16 bits).
        pub unit: Bytes = Bytes(8), in Bytes(1)..=Bytes(65_536);
    }
}

params! {
    /// All records, without any setting.
    pub struct KeepAll {}
}

params! {
    /// Latest records of each watched port, in a ring that is written when the run ends.
    pub struct KeepLast {
        /// Number of records in a port's ring.
        pub records: u32 = 65_536, in 1..=MOST_RECORDS;
    }
}

params! {
    /// Records around a trigger of each watched port: a packet finds more than `above` in the queue, where the previous one
    /// did not.
    pub struct KeepAround {
        /// Queue length that fires the trigger.
        pub above: Bytes;
        /// Time before the trigger of which records are kept.
        pub before: Span = Span::from_us(500), in Span::ZERO..=Span::from_s(1_000);
        /// Time after the trigger of which records are kept.
        pub after: Span = Span::from_us(500), in Span::ZERO..=Span::from_s(1_000);
        /// Largest number of records that a port remembers before the trigger.
        pub records: u32 = 65_536, in 1..=MOST_RECORDS;
    }
}

/// Length of a stamp, for which hosts leave room in every frame if [`Telemetry::registers`] is present.
pub const STAMP_BYTES: u16 = 8;

impl Telemetry {
    /// True if messages of some flows are recorded.
    pub fn follows_messages(&self) -> bool {
        !self.hosts.is_empty() || !self.messages.is_empty()
    }

    /// Bytes of each frame behind the IP packet and its padding.
    pub fn trailer(&self) -> u16 {
        self.registers.as_ref().map_or(0, |_| STAMP_BYTES)
    }
}

/// Largest number of records in a port's ring.
const MOST_RECORDS: u32 = 100_000_000;

choice! {
    /// Rule that selects the records of watched ports to be kept.
    pub enum Keep {
        /// All records.
        "all" => All(KeepAll),
        /// Latest records of each watched port, in a ring that is written when the run ends.
        "last" => Last(KeepLast),
        /// Records around a trigger of each watched port: a packet finds more than `above` in the queue, where the previous
        /// one did not.
        "around" => Around(KeepAround),
    }
}

params! {
    /// Capture of frames at NICs, in both directions, and on links behind switches, byte for byte. Source: pcapng.
    pub struct CaptureFrames {
        /// Hosts whose NICs are captured, by name, `*` stands for anything.
        pub hosts: Vec<String> = Vec::new();
        /// Switch ports whose links are captured, as frames leave, by name, `*` stands for anything. Headers that switches
        /// insert for each other are visible there.
        pub links: Vec<String> = Vec::new();
        /// Largest number of bytes kept of a frame; if absent, all. 94 B hold all headers, with IPv6 114 B; stamps are at
        /// the end of the frame.
        pub snap: Option<Bytes>, in Bytes(64)..=Bytes(65_535);
    }
}

params! {
    /// Telemetry: tables in the result folder besides flows and totals. See docs/results.md.
    pub struct Telemetry {
        /// Period of samples in `ports.parquet`; "off": no such table.
        pub sample: Sampling = Sampling::Every(Span::from_us(100));
        /// Switch ports whose packets are recorded one by one in `queues.parquet`, by name, `*` stands for anything.
        pub queues: Vec<String> = Vec::new();
        /// Followed flows, for `fanin explain`: their senders' state in `hosts.parquet`, their packets in `segments.parquet`
        /// and `hops.parquet`. Given by traffic entry, host (all flows from or to it), or a flow's id or number; `*` stands
        /// for anything. See docs/explain.md.
        pub hosts: Vec<String> = Vec::new();
        /// Flows of which only messages are recorded, in `messages.parquet`: when each was written, sent, delivered and
        /// acknowledged. Given as in `hosts`, whose flows' messages are recorded in any case.
        pub messages: Vec<String> = Vec::new();
        /// Records of `queues` that are kept.
        pub keep: Keep = Keep::All(KeepAll {});
        /// Stamps, as a real switch would report queues: watched ports write one into each packet, receivers read it into
        /// `stamps.parquet`. If present, full segments carry 8 B less, other frames are 8 B longer. See docs/telemetry.md.
        pub registers: Option<Registers>;
        /// Capture in `packets.pcapng`: frames as tcpdump would record them at NICs, and a tap behind switch ports. If
        /// absent, none. See docs/wire.md.
        pub capture: Option<CaptureFrames>;
        /// Table of dropped packets, `drops.parquet`.
        pub drops: bool = true;
    }
}

names! {
    /// Event model of output ports. Results are the same, bit by bit.
    pub enum PortModel {
        /// One event per packet and hop; departures are events only while a port has to choose between packets.
        "auto" => Auto,
        /// Departures as events at every port: slower, for comparison.
        "explicit" => Explicit,
    }
}

names! {
    /// Order of packets that arrive in the same picosecond: at a full drop-tail port the first gets the free space.
    pub enum Ties {
        /// Random order, drawn for each instant from seed, time and link: no host is favoured, and unrelated flows change
        /// nothing.
        "drawn" => Drawn,
        /// Order of link ids: of hosts in step, the first in the topology always wins.
        "by_link" => ByLink,
    }
}

params! {
    /// Execution of the simulation. Only `ties` affects results; the rest is speed, and limits at which a run gives up.
    pub struct Engine {
        /// Order of packets that arrive in the same picosecond.
        pub ties: Ties = Ties::Drawn;
        /// Event model of output ports.
        pub ports: PortModel = PortModel::Auto;
        /// Threads of the run, among which the network is divided; 0: as many as pay on this machine. A run whose results
        /// could depend on it stays on one, and the manifest says why. Not part of the scenario's hash. See
        /// docs/parallel.md.
        pub threads: u32 = 1, in 0..=64;
        /// Event limit: the run ends after this many events, marked partial.
        pub max_events: Option<u64>, in 1u64..;
        /// Stall limit: the run counts as hung when this many events pass while simulated time stands still.
        pub stall_events: u64 = 200_000_000, in 1_000..;
        /// Flow limit: a scenario with more flows is refused, as each is a row in the results.
        pub max_flows: u64 = 50_000_000, in 1..;
    }
}
