//! The network between hosts, as hosts ask about it when a flow starts or news of one spreads.

use super::route::Route;
use super::Core;
use fanin_packet::Envelope;
use fanin_units::HostId;

/// Paths between hosts.
pub trait Network {
    /// The links from one host to another for a packet with this hash, as per-flow ECMP would choose them; the first is `nic`, the host's own.
    fn path(&self, core: &Core, nic: u32, to: HostId, hash: u32) -> Vec<u32>;

    /// The route of packets with this envelope that leave their host over its link `nic`: all of it or nothing.
    fn settled_route(&self, core: &Core, nic: u32, envelope: &Envelope) -> Route;

    /// Bytes of telemetry in a frame that asks for it, on each link of a path from a host.
    fn telemetry(&self, core: &Core, path: &[u32]) -> Vec<u16>;
}
