//! Captures: choice of the frames that are arrivals at a port, and facts about flows and hosts.

mod acks;
pub mod chains;
mod connections;
mod direction;
mod file;
pub mod filter;
pub mod frame_checks;
mod interface_pair;
pub mod links;
mod packets;
pub mod selection;
mod sequence;
pub mod survey;
pub mod transfers;

pub use file::CaptureFile;
pub use packets::{ends_inside, unreadable, Connections, FlowKey};
