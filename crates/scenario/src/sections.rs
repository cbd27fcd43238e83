//! Settings that belong to no model crate: framing, hosts, telemetry, engine.

use crate::pauses::{PauseWatchdog, Storm};
use fanin_packet::IpVersion;
use fanin_params::{choice, names, params, Cx, Node, Param, Schema, Value};
use fanin_units::{Bytes, Span};

names! {
    /// Version of the Internet Protocol of all hosts. Flows have equal ports and take equal paths over either version.
    pub enum Ip {
        /// IPv4, with a header of 20 B. Source: RFC 791.
        "v4" => V4,
        /// IPv6, with a header of 40 B: a full segment carries 20 B less, and drop notifications have 44 B. Source: RFC 8200.
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
    /// FIFO NIC: all packets that windows allow wait in the host's transmit queue.
    pub struct FifoNic {
        /// Length of the transmit queue in packets, a TSO burst counting as one; if absent, unlimited. A TCP segment that finds it full
        /// stays unsent, and the window falls as for an ECN echo; ACKs and datagrams are lost. Source: Linux txqueuelen (1000),
        /// pfifo_fast_enqueue, __tcp_transmit_skb.
        ///
        /// Deviation: no driver's ring behind it, of some hundred packets without byte queue limits.
        pub txqueuelen: Option<u32> = None, in 1u32..=10_000_000;
    }
}
choice! {
    /// Queueing discipline of a host's NIC.
    pub enum Nic {
        /// Round robin over the connections that have something to send, one packet each. Source: Linux sch_fq without
        /// pacing.
        "fair" => Fair(FairNic),
        /// First in, first out: a connection sends all that its window (and `small_queues`) allows before the next one, in
        /// the order in which they became ready. Source: Linux pfifo_fast.
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
    /// nothing else are merged and handed to the transport as one, which acknowledges them once. Source: Linux NAPI, GRO
    /// (napi_poll, tcp_gro_receive, skb_gro_receive).
    ///
    /// Deviation: a poll takes no time, and does not span several flows' buckets (gro_list). Control messages of switches do not wait.
    pub struct Napi {
        /// Interrupt delay, from the first packet that arrives at an idle NIC to the poll: rx-usecs of ethtool (mlx5 has 8
        /// us, ice and i40e 50 us).
        pub interrupt_delay: Span = Span::from_us(8), in Span::from_ns(1)..=Span::from_ms(10);
        /// Generic receive offload (GRO): merges consecutive segments of a flow.
        pub gro: bool = true;
        /// Largest number of packets in one poll; the next poll follows at once, but merges nothing with it. Source: Linux
        /// NAPI_POLL_WEIGHT.
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
    /// Reordering buffer between NIC and transport: packets that arrive out of order wait for those before them in the flow's
    /// byte stream, so that the transport sees them in order. Packets already received, and those without a place in the
    /// stream (acknowledgments, datagrams), do not wait. Source: Vertigo §3.3, DRILL §3.3, which have such a buffer between
    /// NIC and transport.
    pub struct ReorderBuffer {
        /// Longest time that a packet waits for missing ones. Source: Vertigo (360 us in the simulations that were published
        /// with it).
        pub timeout: Span = Span::from_us(360), in Span::from_ns(1)..=Span::from_s(1);
    }
}

params! {
    /// Host: NIC, receive path and pauses, everything besides the transport.
    pub struct Host {
        /// Queueing discipline of the NIC.
        pub nic: Nic = Nic::Fair(FairNic {});
        /// Processing delay from the arrival of a packet's last bit until the transport sees it.
        pub processing_delay: Span = Span::ZERO, in Span::ZERO..=Span::from_ms(10);
        /// Delivery of packets from the NIC to the transport.
        pub receive: Receive = Receive::AtOnce(AtOnce {});
        /// Random delay of each received packet, in addition to `processing_delay`, drawn per host. A host's packets stay in
        /// order: each waits for those before it.
        pub noise: Noise = Noise::None(NoNoise {});
        /// Reordering buffer in front of the transport; if absent, packets are delivered in order of arrival.
        pub reorder: Option<ReorderBuffer>;
        /// Storm watchdog of the NIC, which ends overlong pauses of a class; if absent, the class waits.
        pub pause_watchdog: Option<PauseWatchdog>;
        /// Pause storms: NICs that send pauses without need.
        pub storms: Vec<Storm> = Vec::new();
        /// Stall prevention: a NIC that has requested pauses of a class for this long without a break requests none until the need has
        /// ended. If absent, it never stops. Source: NVIDIA (pfc_prevention_tout: 100 ms where it is set to auto, 8 s by default).
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
    /// Telemetry registers, in which watched ports keep time and queue length. Source: S-ECN §II-C.
    pub struct Registers {
        /// Step of the time register, which has 32 bits and wraps around after 2^32 ticks.
        pub tick: Span = Span::from_ns(800), in Span::from_ns(1)..=Span::from_ms(1);
        /// Step of the queue-length register, which has 16 bits: queues of 65535 units and more read alike.
        pub unit: Bytes = Bytes(8), in Bytes(1)..=Bytes(65_536);
    }
}

params! {
    /// All records, without any setting.
    pub struct KeepAll {}
}

params! {
    /// A ring buffer of records for each watched port, written when the run ends.
    pub struct KeepLast {
        /// Number of records in a port's ring.
        pub records: u32 = 65_536, in 1..=MOST_RECORDS;
    }
}

params! {
    /// A trigger for each watched port: fires when a packet finds more than `above` in the queue, where the previous packet
    /// did not.
    pub struct KeepAround {
        /// Queue length that fires the trigger.
        pub above: Bytes;
        /// Time before the trigger of which records are kept.
        pub before: Span = Span::from_us(500), in Span::ZERO..=Span::from_s(1_000);
        /// Time after the trigger of which records are kept.
        pub after: Span = Span::from_us(500), in Span::ZERO..=Span::from_s(1_000);
        /// Largest number of records before the trigger that a port remembers.
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
        /// Latest records of each port, in a ring.
        "last" => Last(KeepLast),
        /// Records around each upward crossing of a threshold.
        "around" => Around(KeepAround),
    }
}

params! {
    /// Capture of frames at the NICs of hosts, in both directions, and on links behind switches, byte for byte. Source:
    /// pcapng.
    pub struct CaptureFrames {
        /// Hosts whose NICs are captured: names as in the results (`h3`), `*` stands for anything.
        pub hosts: Vec<String> = Vec::new();
        /// Switch ports whose links are captured, as frames leave: names as in the results (`leaf0->spine1`), `*` stands for
        /// anything. Headers that switches insert for each other are visible there.
        pub links: Vec<String> = Vec::new();
        /// Largest number of bytes kept of each frame; if absent, all. 94 B hold all headers, with IPv6 114 B; stamps are at
        /// the end of the frame.
        pub snap: Option<Bytes>, in Bytes(64)..=Bytes(65_535);
    }
}

params! {
    /// Telemetry: tables in the result folder besides flows and totals. docs/results.md describes the tables.
    pub struct Telemetry {
        /// Period of the samples in `ports.parquet`; "off": no such table.
        pub sample: Sampling = Sampling::Every(Span::from_us(100));
        /// Switch ports whose packets are recorded one by one in `queues.parquet`: names as in the results (`leaf0->h3`), `*`
        /// stands for anything.
        pub queues: Vec<String> = Vec::new();
        /// Followed flows, for `fanin explain`: their senders' state is recorded in `hosts.parquet`, their packets in `segments.parquet`
        /// and `hops.parquet`. Names of traffic entries, of hosts (all flows from or to them), ids and numbers of flows; `*` stands for
        /// anything. See docs/explain.md.
        pub hosts: Vec<String> = Vec::new();
        /// Flows whose messages alone are recorded, in `messages.parquet`: when each was written, sent, delivered and acknowledged. Named
        /// as in `hosts`, whose flows are recorded in any case.
        pub messages: Vec<String> = Vec::new();
        /// Rule that selects the records of `queues` to be kept.
        pub keep: Keep = Keep::All(KeepAll {});
        /// Stamps, by which a real switch would report queues: watched ports write one into each packet, receivers read it into
        /// `stamps.parquet`. If present, hosts leave room for 8 B in every frame: full segments carry 8 B less, other frames are 8 B
        /// longer. See docs/telemetry.md.
        pub registers: Option<Registers>;
        /// Capture in `packets.pcapng`: frames as tcpdump would record them at the NICs of hosts, and as a tap would behind
        /// switch ports. If absent, none. See docs/wire.md.
        pub capture: Option<CaptureFrames>;
        /// Table of drops: `drops.parquet` lists each dropped packet.
        pub drops: bool = true;
    }
}

names! {
    /// Event model of output ports. Results do not depend on it, bit by bit.
    pub enum PortModel {
        /// One event per packet and hop; departures are computed lazily, and are events only while a port has to choose
        /// between packets.
        "auto" => Auto,
        /// Departures as events at every port: slower, for comparison.
        "explicit" => Explicit,
    }
}

names! {
    /// Order of packets that arrive in the same picosecond. At a full drop-tail port, the first one gets the space that has
    /// become free.
    pub enum Ties {
        /// Random order, drawn anew for each instant from seed, time and link: no host is favoured, and unrelated flows
        /// change nothing.
        "drawn" => Drawn,
        /// Order of link ids: of hosts that send in step, the first in the topology always wins.
        "by_link" => ByLink,
    }
}

params! {
    /// Execution of the simulation. Except for `ties`, no setting here affects results, only speed and the limits at which a
    /// run gives up.
    pub struct Engine {
        /// Order of packets that arrive in the same picosecond.
        pub ties: Ties = Ties::Drawn;
        /// Event model of output ports.
        pub ports: PortModel = PortModel::Auto;
        /// Threads of the run, among which the network is divided. A run whose results could depend on it stays on one, and the manifest
        /// says why. 0: as many as pay on this machine. No part of the scenario's hash. See docs/parallel.md.
        pub threads: u32 = 1, in 0..=64;
        /// Event limit: the run ends after this many events, marked partial.
        pub max_events: Option<u64>, in 1u64..;
        /// Stall limit: the run is assumed to hang when this many events pass without simulated time moving on.
        pub stall_events: u64 = 200_000_000, in 1_000..;
        /// Flow limit: a scenario with more flows is refused, as each costs a row in the results.
        pub max_flows: u64 = 50_000_000, in 1..;
    }
}
