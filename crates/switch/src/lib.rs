//! A switch is a row of stages: classify → route → admit → mark → schedule.
//!
//! Each stage is a question over an immutable view, answered by a verdict that carries a reason; whoever runs the pipeline
//! carries the verdict out and counts it. Where deciding and bookkeeping differ they are two functions: `check` then
//! `commit`. Nothing here knows of events, telemetry or transports: time comes in as an argument, and a packet is its size,
//! class, ECN field, destination and hash.

mod buffer;
mod config;
mod marking;
mod notification;
mod path;
mod scheduling;
mod trimming;
mod vectors;
mod verdict;
mod view;

pub use buffer::{Buffer, DynamicBuffer, PortBuffer, SharedBuffer, StaticBuffer, UnlimitedBuffer};
pub use config::Switch;
pub use marking::*;
pub use notification::{
    empty_frame, notice_of, tells_of, NoNotification, NoticeQueue, NotificationConfig, Operations, PdnParams,
};
pub use path::{ecmp, five_tuple_hash, Ecmp, FlowletParams, PathChoice, PathChooser, RoundRobinParams, Spray};
pub use scheduling::{DrrParams, FifoParams, Scheduler, Scheduling, StrictDrrParams, StrictParams, MAX_CLASSES};
pub use trimming::{header_frame, is_header, is_trimmable, Cut, HeaderQueue, NdpParams, NoTrimming, TrimmingConfig};
pub use vectors::{vectors, Column, Role, SEcnCase, SEcnVectorParams, Sequence, Vectors, VECTORS};
pub use verdict::{DropReason, MarkReason, MarkVerdict};
pub use view::{cells, PortView, Unit};

#[cfg(test)]
mod tests;
