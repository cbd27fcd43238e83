//! Packets as bytes: what a simulated packet looks like on an Ethernet, and captures (pcap, pcapng) of such and of real ones.
//!
//! docs/wire.md says what is real in a frame and what is invented.

mod capture;
mod headers;
mod trailer;

pub use capture::{Capture, CaptureError, Direction, Format, Frame, Interface, Skipped, Trouble};
pub use headers::{Headers, LinkType, Tcp};
