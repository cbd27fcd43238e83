//! Fidelity: the simulator against closed forms, identities and its own promises. docs/fidelity.md lists every test with
//! theory, tolerance and what was measured; `cargo test -p fanin-sim --test fidelity -- --nocapture` prints the numbers.

mod burst_laws;
mod closed_forms;
mod codel;
mod collectives;
mod combined;
mod common;
mod dctcp;
mod determinism;
mod detours;
mod drop_notification;
mod explain;
mod front_drop;
mod int;
mod ipv6;
mod nic;
mod order;
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
mod tcp_laws;
mod ties;
mod trimming;
mod vertigo;
mod watchdog;
