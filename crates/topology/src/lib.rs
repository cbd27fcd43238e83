//! Topologies: hosts, switches and directed links, generated or imported, checked, named; and shortest paths.
//!
//! Hosts come first among the nodes, so that host `h` is node `h`. Every host has one link, and no host forwards.

mod circles;
mod config;
mod draft;
mod failed;
mod generate;
mod import;
mod network;
mod routes;

pub use circles::circle;
pub use config::{
    Chain, Dumbbell, FatTree, FileFormat, FromFile, LeafSpine, LinkParams, RackLinkParams, Racks, SingleSwitch, TopologyConfig,
    UplinkParams, MAX_LINKS, MAX_NODES,
};
pub use network::{Link, Node, NodeKind, Topology, Wire};
pub use routes::Routes;

#[cfg(test)]
mod tests;
