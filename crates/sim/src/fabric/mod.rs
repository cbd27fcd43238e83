//! Switches: what happens to a packet between two hosts.
//!
//! A packet's way: arrival → route → mechanisms → admission → marking → queue → departure. Each step calls only
//! the next; what a mechanism wants besides is carried out after its hook.

pub mod combined;
mod departures;
mod displace;
mod enqueue;
pub mod express;
pub mod failover;
mod gate;
mod hooks;
pub mod switch;
mod switch_view;
pub mod table;

pub use switch::{Fabric, SwitchNode};
