//! The engine and the analysis in a page: one call takes a request and gives an answer, both JSON.
//!
//! | request | answer |
//! |---|---|
//! | `{"do": "version"}` | `version` |
//! | `{"do": "check", "scenario": TEXT}` | `problems`, `notes`, `hash`: null where there are errors, and `watched`, names of ports |
//! | `{"do": "start", "scenario": TEXT}` | as `check`; a run is under way if `hash` is not null, and the one before it is gone |
//! | `{"do": "advance", "events": N}` | how far the run is, and `ports`: queues, drops and marks now |
//! | `{"do": "finish", "points": N}` | `fingerprint`, `summary`, `flows`, and for each watched port its `queue` in at most about N points and its `report` |
//!
//! A request that cannot be understood, and a run that gets stuck, are answered by `{"error": …}`.
//!
//! Compiled for wasm32-unknown-unknown, the memory of the module is the only thing that it shares with the page: [`fanin_open`] opens a
//! session, [`fanin_room`] gives room for a request, [`fanin_call`] answers it. Nothing is read from anywhere else: a scenario that names files is refused as on any machine
//! without them.

mod answer;
mod room;

pub use answer::Session;
pub use room::{fanin_answer_bytes, fanin_call, fanin_open, fanin_room, Page};
