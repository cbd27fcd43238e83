//! Fidelity: the simulator against closed forms, identities and its own promises. docs/fidelity.md, docs/dev/fidelity-measured.md and docs/dev/invariants.md
//! list every test with theory, tolerance and what was measured; `cargo test -p fanin-sim --test fidelity -- --nocapture`
//! prints the numbers.

mod burst_laws;
mod class_marking;
mod closed_forms;
mod codel;
mod collectives;
mod combined;
mod common;
mod dcqcn;
mod dctcp;
mod determinism;
mod detours;
mod detours_end;
mod drop_notification;
mod explain;
mod failures;
mod failures_random;
mod front_drop;
mod headroom;
mod held;
mod int;
mod ipv6;
mod lossless;
mod nic;
mod order;
mod parts;
mod pauses;
mod pfc;
mod ports;
mod random;
mod rcm;
mod receive;
mod reordering;
mod rivals;
mod roce;
mod samples;
mod slow_start;
mod stamps;
mod storms;
mod tcp_laws;
mod ties;
mod trimming;
mod vertigo;
mod watchdog;
