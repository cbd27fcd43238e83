//! Sites: facts about a switch and its ports that hold from the start.

use fanin_packet::Framing;
use fanin_params::pattern;
use fanin_units::{BitRate, Bytes, LinkId, Purpose, Span, Stream};

/// A port of a switch, by its place among the switch's links.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PortNo(pub u16);

impl PortNo {
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Facts about a port of a switch that hold from the start.
#[derive(Clone, Debug)]
pub struct PortSite {
    /// Outgoing link of the port, which names its random streams.
    pub link: LinkId,
    pub rate: BitRate,
    /// Wire bytes of each frame besides the frame's own.
    pub overhead: u16,
    /// Name of the node at the far end.
    pub peer: String,
    /// True if the far end is a host.
    pub to_host: bool,
    /// Keys of the mechanisms that run at the far end, if it is a switch.
    pub peer_runs: Vec<&'static str>,
    /// Ports whose neighbours send back whatever leaves by this one: their only shortest paths to this port's hosts lead over
    /// this switch. Empty unless a mechanism here asks for it (`Profile::returns`).
    pub back: Vec<PortNo>,
    /// Propagation there and back, and the time that both ends take from a frame's last bit until they act on it.
    pub round_trip: Span,
}

/// Facts about a switch that hold from the start.
#[derive(Clone, Debug)]
pub struct Site {
    pub name: String,
    pub ports: Vec<PortSite>,
    /// Framing of packets, without [`Site::trailer`].
    pub framing: Framing,
    /// Bytes of each frame behind the IP packet: room for stamps.
    pub trailer: u16,
    /// Largest number of switches that a packet or message may cross.
    pub ttl: u8,
    /// Bytes of a buffer cell.
    pub cell: u32,
    /// Upper bound on the frames of the traffic, whatever switches put into them.
    pub largest_frame: Bytes,
    /// Largest frame with a message at its end, at whatever switch; zero without such frames.
    pub attached_frame: Bytes,
    /// Bytes that a switch may add to a frame before it waits there: a header, or room for a record of telemetry.
    pub growth: u16,
    /// A combined input- and output-queued switch.
    pub combined: bool,
    pub seed: u64,
}

impl Site {
    /// The stream of a mechanism's draws at a port; `salt` differs between mechanisms.
    pub fn stream(&self, salt: u32, port: &PortSite) -> Stream {
        Stream::new(self.seed, Purpose::Mechanism, u64::from(salt) << 32 | u64::from(port.link.0))
    }
}

/// True if one of the patterns names a node.
pub(crate) fn names_it(patterns: &[String], node: &str) -> bool {
    patterns.iter().any(|wanted| pattern::fits(wanted, node))
}

/// The longest of the queues of a switch's ports, in order of ports; the first of several, none where all are empty.
pub(crate) fn longest(bytes: impl Iterator<Item = u64>) -> Option<(PortNo, Bytes)> {
    let mut most = None;
    for (port, bytes) in (0..).map(PortNo).zip(bytes.map(Bytes)) {
        if bytes > most.map_or(Bytes(0), |(_, most)| most) {
            most = Some((port, bytes));
        }
    }
    most
}
