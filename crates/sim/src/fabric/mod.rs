//! Links, ports and switches: what happens to a packet between two hosts.
//!
//! A packet's way: arrival → route → offer → admission → marking → queue → departure. Each step calls only
//! the next; what a mechanism wants besides is carried out after its hook.

mod by_class;
pub mod combined;
mod displace;
pub mod express;
pub mod fifo;
pub mod gate;
pub mod held;
mod here;
mod hooks;
pub mod link;
pub mod links;
pub mod pool;
pub mod port;
pub mod queue;
pub mod route;
pub mod switch;
pub mod table;

pub use fifo::FifoKind;
pub use switch::{Fabric, SwitchNode};
