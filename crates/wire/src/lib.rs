//! Packets as bytes: simulated packets on an Ethernet, and captures (pcap, pcapng) of them and of real ones.
//!
//! docs/wire.md says what is real in a frame and what is invented.

mod capture;
pub mod control;
mod cooked;
mod file;
mod frame;
mod headers;
pub mod notification;
mod options;
mod roce;
pub mod shim;
mod trailer;
mod tunnel;
mod write;

pub use capture::{Capture, CaptureError, Direction, Format, Frame, Interface, Skipped, Trouble, ZEROS};
pub use fanin_packet::address;
pub use file::CaptureFile;
pub use frame::{Framer, NotEthernet, FCS};
pub use headers::{Headers, LinkType, Tcp};
pub use options::TcpOptions;
pub use tunnel::{Mirror, Tunnel, Wrap};
pub use write::Encoder;
