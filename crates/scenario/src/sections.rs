//! The parts of a scenario that belong to no model crate: framing, hosts, telemetry, engine.

use crate::pauses::{PauseWatchdog, Storm};
use fanin_packet::IpVersion;
use fanin_params::{choice, names, params, Cx, Node, Param, Schema, Value};
use fanin_units::{Bytes, Span};

names! {
    /// Version of the Internet Protocol that all hosts speak. Flows have the same ports and take the same paths over either.
    pub enum Ip {
        /// IPv4: a header of 20 B. Source: RFC 791.
        "v4" => V4,
        /// IPv6: a header of 40 B, so that a full segment carries 20 B less, and drop notifications of 44 B. Source: RFC 8200.
        "v6" => V6,
    }
}

params! {
    /// How an IP packet sits on the wire. The defaults are Ethernet's: a full-size packet of 1500 B is a frame of 1518 B in
    /// queues and takes 1538 B of wire time.
    pub struct Framing {
        /// Version of IP.
        pub ip: Ip = Ip::V4;
        /// Link-layer header and frame check sequence: counted in queues and on the wire. Source: IEEE 802.3 (14 + 4 bytes).
        pub header: Bytes = Bytes(18), in Bytes(0)..=Bytes(1_000);
        /// Smallest frame; shorter ones are padded. Source: IEEE 802.3.
        pub min_frame: Bytes = Bytes(64), in Bytes(0)..=Bytes(1_500);
        /// Preamble and inter-packet gap: wire time only. Source: IEEE 802.3 (8 + 12 bytes).
        pub gap: Bytes = Bytes(20), in Bytes(0)..=Bytes(1_000);
    }
}

impl Framing {
    /// Version of IP.
    pub fn version(&self) -> IpVersion {
        match self.ip {
            Ip::V4 => IpVersion::V4,
            Ip::V6 => IpVersion::V6,
        }
    }

    /// The same for packets; the ranges above are within 16 bits.
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
    /// What is not sent yet stays in the sockets.
    pub struct FairNic { }
}
params! {
    /// What windows allow stands in the host's queue.
    pub struct FifoNic {
        /// Packets that wait there at most, a burst with `tso` being one; absent: any number. Of a connection of TCP a packet too many
        /// stays unsent and its window falls as for an ECN echo; ACKs and datagrams are lost. Source: Linux txqueuelen (1000),
        /// pfifo_fast_enqueue, __tcp_transmit_skb.
        ///
        /// Deviation: no ring of the driver's besides, which holds some hundred packets more where there are no byte queue limits.
        pub txqueuelen: Option<u32> = None, in 1u32..=10_000_000;
    }
}
choice! {
    /// In which order a host's connections use its NIC.
    pub enum Nic {
        /// Round robin over the connections that have something to send, one packet each. Source: Linux sch_fq without
        /// pacing.
        "fair" => Fair(FairNic),
        /// A connection sends all that its window allows (and `small_queues`) before the next one, in the order in which they
        /// became ready. Source: Linux pfifo_fast.
        "fifo" => Fifo(FifoNic),
    }
}

/// Source: Linux NAPI_POLL_WEIGHT.
const BUDGET: u32 = 64;
/// 64 KiB with headers. Source: Linux GRO_LEGACY_MAX_SIZE.
const GRO_MAX: Bytes = Bytes(65_483);

params! {
    /// Each packet reaches its transport as soon as it has arrived.
    pub struct AtOnce { }
}
params! {
    /// The NIC coalesces interrupts, and the host takes what waits in polls: segments of a flow that follow one another and differ in
    /// nothing else are handed to the transport as one, which acknowledges them once. Source: Linux NAPI, GRO (napi_poll,
    /// tcp_gro_receive, skb_gro_receive).
    ///
    /// Deviation: a poll takes no time, and does not span several flows' buckets (gro_list). Control messages of switches do not wait.
    pub struct Napi {
        /// From the first packet that finds nothing waiting until the poll, rx-usecs of ethtool: mlx5 has 8 us, ice and i40e 50 us.
        pub interrupt_delay: Span = Span::from_us(8), in Span::from_ns(1)..=Span::from_ms(10);
        /// Whether segments are merged.
        pub gro: bool = true;
        /// Packets of one poll; the next follows at once, but merges nothing with it. Source: Linux NAPI_POLL_WEIGHT.
        pub budget: u32 = BUDGET, in 1..=65_535;
        /// Payload bytes of merged segments at most. Source: Linux GRO_LEGACY_MAX_SIZE (64 KiB with headers).
        pub gro_max: Bytes = GRO_MAX, in Bytes(1_460)..=Bytes(524_280);
    }
}
choice! {
    /// How packets come from the NIC to the transport.
    pub enum Receive {
        /// One by one.
        "at_once" => AtOnce(AtOnce),
        /// In polls, with segments merged.
        "napi" => Napi(Napi),
    }
}

params! {
    /// None.
    pub struct NoNoise { }
}
params! {
    /// Uniform from zero.
    pub struct UniformNoise {
        /// At most.
        pub max: Span = Span::from_us(10), in Span::from_ns(1)..=Span::from_ms(10);
    }
}
params! {
    /// Exponential.
    pub struct ExponentialNoise {
        /// On average.
        pub mean: Span = Span::from_us(5), in Span::from_ns(1)..=Span::from_ms(10);
    }
}
choice! {
    /// What a host adds to the delay of each packet that it receives.
    pub enum Noise {
        /// Nothing.
        "none" => None(NoNoise),
        /// Any delay up to a bound is as likely as another.
        "uniform" => Uniform(UniformNoise),
        /// Short delays are likely, long ones possible.
        "exponential" => Exponential(ExponentialNoise),
    }
}

params! {
    /// Packets that come too early wait in front of the transport for those before them, by their places in the flow's bytes; it sees
    /// them in order. What is there already, and what has no place (acknowledgments, datagrams), does not wait. Source: Vertigo §3.3,
    /// DRILL §3.3, which have such a buffer between NIC and transport.
    pub struct ReorderBuffer {
        /// A packet goes on after this time, whatever is missing. Source: Vertigo (360 us in the simulations that were published with
        /// it).
        pub timeout: Span = Span::from_us(360), in Span::from_ns(1)..=Span::from_s(1);
    }
}

params! {
    /// What hosts do besides their transport.
    pub struct Host {
        /// In which order connections use the NIC.
        pub nic: Nic = Nic::Fair(FairNic {});
        /// From the arrival of a packet's last bit until the transport sees it.
        pub processing_delay: Span = Span::ZERO, in Span::ZERO..=Span::from_ms(10);
        /// How packets come from the NIC to the transport.
        pub receive: Receive = Receive::AtOnce(AtOnce {});
        /// A random delay of each packet received, besides `processing_delay`, drawn by host. A host's packets stay in order: one
        /// waits for those before it.
        pub noise: Noise = Noise::None(NoNoise {});
        /// A buffer that puts packets in order before the transport sees them. Absent: there is none.
        pub reorder: Option<ReorderBuffer>;
        /// The storm watchdog of NICs: what becomes of a class whose pause does not end. Absent: it waits.
        pub pause_watchdog: Option<PauseWatchdog>;
        /// NICs that ask for pauses without need: PFC storms.
        pub storms: Vec<Storm> = Vec::new();
        /// A NIC that has asked for pauses of a class for so long without a break asks for none any more, until it has had no need
        /// to. Absent: it goes on. Source: NVIDIA (pfc_prevention_tout: 100 ms where it is set to auto, 8 s by default).
        pub stall_prevention: Option<Span>, in Span::from_us(1)..=Span::from_s(100);
    }
}

impl Host {
    /// What a packet that arrives alone takes until its transport sees it, without noise.
    pub(crate) fn delay(&self) -> Span {
        match &self.receive {
            Receive::AtOnce(_) => self.processing_delay,
            Receive::Napi(napi) => self.processing_delay + napi.interrupt_delay,
        }
    }

    /// Whether packets may wait between NIC and transport.
    pub fn holds_packets(&self) -> bool {
        !matches!((&self.receive, &self.noise, &self.reorder), (Receive::AtOnce(_), Noise::None(_), None))
    }

    /// Values that do nothing.
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

/// How often the time series of ports take a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// No series.
    Off,
    /// One sample in each period.
    Every(Span),
}

/// The shortest period between samples.
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
    /// The registers in which watched ports keep time and queue length. Source: S-ECN §II-C.
    pub struct Registers {
        /// Step of the time register, which has 32 bits and starts again after 2^32 ticks.
        pub tick: Span = Span::from_ns(800), in Span::from_ns(1)..=Span::from_ms(1);
        /// Step of the length register, which has 16 bits: queues of 65535 units and more read the same.
        pub unit: Bytes = Bytes(8), in Bytes(1)..=Bytes(65_536);
    }
}

params! {
    /// Nothing to choose.
    pub struct KeepAll {}
}

params! {
    /// A ring buffer for each watched port, written when the run ends.
    pub struct KeepLast {
        /// Records that a port's ring holds.
        pub records: u32 = 65_536, in 1..=MOST_RECORDS;
    }
}

params! {
    /// A trigger for each watched port: a packet finds more than `above` where the one before it found no more than that.
    pub struct KeepAround {
        /// Queue that sets it off.
        pub above: Bytes;
        /// What is kept of the time before.
        pub before: Span = Span::from_us(500), in Span::ZERO..=Span::from_s(1_000);
        /// What is kept of the time after.
        pub after: Span = Span::from_us(500), in Span::ZERO..=Span::from_s(1_000);
        /// Records that a port remembers of the time before: the last so many.
        pub records: u32 = 65_536, in 1..=MOST_RECORDS;
    }
}

/// Bytes of a stamp, for which hosts leave room in every frame where [`Telemetry::registers`] is present.
pub const STAMP_BYTES: u16 = 8;

impl Telemetry {
    /// Bytes of each frame that lie behind the IP packet and any padding.
    pub fn trailer(&self) -> u16 {
        self.registers.as_ref().map_or(0, |_| STAMP_BYTES)
    }
}

/// The longest ring of a port.
const MOST_RECORDS: u32 = 100_000_000;

choice! {
    /// Which records of watched ports are kept.
    pub enum Keep {
        /// Each.
        "all" => All(KeepAll),
        /// The last of each port.
        "last" => Last(KeepLast),
        /// Those around each upward crossing of a threshold.
        "around" => Around(KeepAround),
    }
}

params! {
    /// Frames at the NICs of hosts, both ways, and on links behind switches, byte for byte. Source: pcapng.
    pub struct CaptureFrames {
        /// Hosts whose NICs are captured: names as in the results (`h3`), `*` stands for anything.
        pub hosts: Vec<String> = Vec::new();
        /// Ports of switches on whose links frames are captured as they leave: names as in the results (`leaf0->spine1`), `*`
        /// stands for anything. What switches put into frames for each other can be seen there.
        pub links: Vec<String> = Vec::new();
        /// Most bytes that are kept of a frame; absent: all. 94 B hold all headers, with IPv6 114 B; stamps are at the end.
        pub snap: Option<Bytes>, in Bytes(64)..=Bytes(65_535);
    }
}

params! {
    /// What the result folder holds besides flows and totals. docs/results.md describes the tables.
    pub struct Telemetry {
        /// Period of the samples in `ports.parquet`; "off": no such table.
        pub sample: Sampling = Sampling::Every(Span::from_us(100));
        /// Ports whose packets are recorded one by one in `queues.parquet`: names as in the results (`leaf0->h3`), `*`
        /// stands for anything. Only ports of switches can be watched.
        pub queues: Vec<String> = Vec::new();
        /// Flows that are followed, so that `fanin explain` can say where their time went: their senders' state in `hosts.parquet`,
        /// their packets in `segments.parquet` and `hops.parquet`. Names of traffic entries, of hosts (all flows from or to
        /// them), ids and numbers of flows; `*` stands for anything. See docs/explain.md.
        pub hosts: Vec<String> = Vec::new();
        /// Which of these records are kept.
        pub keep: Keep = Keep::All(KeepAll {});
        /// The same as a switch would report it: watched ports write a stamp into each packet, receivers read it into
        /// `stamps.parquet`. Absent: no stamps. Present, hosts leave room for 8 B in every frame: full segments carry so much
        /// less, all others are so much longer. See docs/telemetry.md.
        pub registers: Option<Registers>;
        /// Frames as tcpdump would capture them at the NICs of hosts, and as a tap would behind ports of switches, in `packets.pcapng`. Absent: none. See docs/wire.md.
        pub capture: Option<CaptureFrames>;
        /// Whether `drops.parquet` lists each dropped packet.
        pub drops: bool = true;
    }
}

names! {
    /// How output ports are simulated. The results are the same, bit by bit.
    pub enum PortModel {
        /// One event per packet and hop; departures are events only while a port has to choose what is next.
        "auto" => Auto,
        /// Departures as events at every port: slower, for comparison.
        "explicit" => Explicit,
    }
}

names! {
    /// In which order packets are handled that arrive in the same picosecond. At a full drop-tail port the first one gets the place
    /// that has become free.
    pub enum Ties {
        /// Drawn anew for each instant, from seed, time and link: no host is favoured, and unrelated flows change nothing.
        "drawn" => Drawn,
        /// By number of the link: of hosts that send in step the first in the topology always wins.
        "by_link" => ByLink,
    }
}

params! {
    /// How the simulation runs. But for `ties`, nothing here changes what is simulated, only how, and when it gives up.
    pub struct Engine {
        /// In which order packets are handled that arrive in the same picosecond.
        pub ties: Ties = Ties::Drawn;
        /// How output ports are simulated.
        pub ports: PortModel = PortModel::Auto;
        /// The run ends, marked partial, after this many events.
        pub max_events: Option<u64>, in 1u64..;
        /// The run is taken to hang when this many events pass without time moving on.
        pub stall_events: u64 = 200_000_000, in 1_000..;
        /// A scenario with more flows than this is refused: each costs the result a row.
        pub max_flows: u64 = 50_000_000, in 1..;
    }
}
