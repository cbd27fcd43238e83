//! The engine and the analysis in a page: one call takes a request and gives an answer, both JSON.
//!
//! | request | answer |
//! |---|---|
//! | `{"do": "version"}` | `version` |
//! | `{"do": "check", "scenario": TEXT}` | `problems`, `notes`, `hash`: null where there are errors, and `watched`, names of ports |
//! | `{"do": "start", "scenario": TEXT}` | as `check`; a run is under way if `hash` is not null, and the one before it is gone |
//! | `{"do": "advance", "events": N}` | how far the run is, and `ports`: queues, drops and marks now |
//! | `{"do": "finish", "points": N}` | `fingerprint`, `summary`, `flows`, and for each watched port its `queue` in at most about N points and its `report` |
//! | `{"do": "analyze", "files": [{"name", "size"}], "settings": {…}}` | `report`, as `fanin analyze --json` has it, or `problems` |
//! | `{"do": "explore", …, "stretches": […]}` | records of stretches of time, packet by packet or added up, or `problems` |
//!
//! A request that cannot be understood, and a run that gets stuck, are answered by `{"error": …}`.
//!
//! The site has two modules of this crate, each with one of its features: `engine`, which the playground loads, and `analyze`, which only the
//! page loads that analyses captures.
//!
//! Compiled for wasm32-unknown-unknown, the memory of a module is the only thing that it shares with the page: [`fanin_open`] opens a
//! session, [`fanin_room`] gives room for a request, [`fanin_call`] answers it. The engine reads nothing from anywhere else: a scenario that
//! names files is refused as on any machine without them. The analysis reads the files that a request names by what the page imports into the
//! module: `fanin_read(file, at, to, bytes)` puts bytes of a file into the memory and says how many, less than 0 where it cannot, and
//! `fanin_progress(done, records)` hears how far it is; another answer than 0 ends the analysis.

#[cfg(feature = "analyze")]
mod analyze;
#[cfg(feature = "engine")]
mod engine;
mod room;
mod session;

#[cfg(feature = "analyze")]
pub use analyze::Host;
pub use room::{fanin_answer_bytes, fanin_call, fanin_open, fanin_room, Page};
pub use session::Session;
