//! All tests of the transports from outside, in one program: it is linked once.

mod common;
mod endpoint;
mod packetdrill_cubic;
mod packetdrill_recovery;
mod packetdrill_rest;
mod packetdrill_slow_start;
mod properties;
mod roce;
mod scripts_drop_notification;
mod scripts_ecn;
mod scripts_linux_flow;
mod scripts_loss;
mod scripts_open_close;
mod scripts_rack;
mod scripts_rack_conditions;
mod scripts_receiver;
mod scripts_rto_in_recovery;
mod scripts_slow_start;
mod scripts_timeout;
mod scripts_trimmed;
mod scripts_undo;
mod scripts_window;
