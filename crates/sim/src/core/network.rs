//! Questions of hosts about the network between them, asked as a flow starts. The fabric answers; hosts know no more of it.

use super::route::Route;
use super::Core;
use fanin_packet::Envelope;
use fanin_units::{HostId, LinkId};

/// The paths of a network.
pub trait Network {
    /// Links from one host to another for a packet with this hash, as per-flow ECMP would choose them; the first is the host's
    /// own.
    fn path(&self, core: &Core, nic: LinkId, to: HostId, hash: u32) -> Vec<LinkId>;

    /// Source route of packets with this envelope that leave their host over its link `nic`: all of it or nothing.
    fn source_route(&self, core: &Core, nic: LinkId, envelope: &Envelope) -> Route;

    /// Bytes of telemetry in a frame that asks for it, on each link of a path from a host.
    fn telemetry(&self, core: &Core, path: &[LinkId]) -> Vec<u16>;
}
