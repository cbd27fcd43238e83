//! Scenarios: from text to a validated scenario.
//!
//! A document is read ([`read_toml`], [`read_json`]) into a tree of [`fanin_params::Node`]s, parsed by the one definition
//! of each parameter ([`ScenarioDoc`]), and cross-checked as a whole. Every error is found in one go; [`render`] prints
//! them. Only a [`Scenario`], which has none, can be run.

mod canonical;
mod check;
mod doc;
mod events;
mod exceptions;
mod facts;
mod generate;
mod locate;
mod pauses;
mod read;
mod render;
mod scenario;
mod sections;
mod sites;
mod trials;

pub use canonical::canonical_json;
pub use doc::{ScenarioDoc, DEFAULT_TRANSPORT};
pub use events::{notices, BitErrors, Down, Errors, Failover, LinkEvent, LinkEventKind, Notice, Outage};
pub use facts::Volume;
pub use generate::{json_schema, json_schema_of, python_types, python_types_of, reference, reference_of};
pub use locate::lines;
pub use pauses::{Asking, PauseWatchdog, Storm};
pub use read::{read_json, read_toml, MAX_DEPTH, MAX_DOCUMENT};
pub use render::render;
pub use scenario::Scenario;
pub use sections::{
    AtOnce, Engine, ExponentialNoise, FairNic, FifoNic, Framing, Host, Ip, Keep, KeepAll, KeepAround, KeepLast, Napi, Nic,
    NoNoise, Noise, PortModel, Receive, Registers, Sampling, Telemetry, Ties, UniformNoise, SHORTEST_SAMPLING, STAMP_BYTES,
};
