//! A switch is a row of stages: classify → route → admit → mark → schedule.
//!
//! Each stage is a question over an immutable view, answered by a verdict that carries a reason; whoever runs the pipeline
//! carries the verdict out and counts it. Where deciding and bookkeeping differ they are two functions: `check` then
//! `commit`. Nothing here knows of events, telemetry or transports: time is passed as an argument, and a packet is its
//! envelope. What a switch does beyond these stages is a [mechanism](MechanismState).

mod admission;
mod config;
mod crossbar;
mod gate;
mod marking;
mod mechanism;
mod overrides;
mod path;
mod scheduling;
mod vectors;
mod verdict;
mod view;
mod watch;

pub use admission::{Admission, Buffer, DynamicBuffer, SharedBuffer, StaticBuffer, UnlimitedBuffer};
pub use config::Switch;
pub use crossbar::{
    Arbitration, Architecture, Combined, CrossbarArbiter, Inputs, IslipParams, Match, OutputQueued, Requests,
    RoundRobinArbiterParams,
};
pub use gate::{Gate, Pause, PRIORITIES, QUANTUM_BITS};
pub use marking::*;
pub use mechanism::*;
pub use overrides::{Except, Origins, PortSettings, Setting};
pub use path::{
    ecmp, five_tuple_hash, ByDestinationParams, DrillParams, Ecmp, FlowletParams, Links, PathChoice, PathChooser,
    RoundRobinParams, Spray,
};
pub use scheduling::{
    DrrParams, Express, ExpressParams, FifoParams, Scheduler, Scheduling, StrictDrrParams, StrictParams, MAX_CLASSES,
};
pub use vectors::{
    vectors, Column, PdnCase, PdnVectorParams, RcmCase, RcmVectorParams, RimmCase, RimmVectorParams, Role, SEcnCase,
    SEcnVectorParams, Sequence, Vectors, VECTORS,
};
pub use verdict::{DropReason, MarkReason, MarkVerdict};
pub use view::{cells, Head, PortView, Unit};
pub use watch::{Found, Waiting, Watch, WatchdogTimes};

#[cfg(test)]
mod tests;
