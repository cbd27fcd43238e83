//! All tests of scenarios from outside, in one program: it is linked once. Generated files have a test of their own.

mod anything;
mod capture;
mod class_marking;
mod common;
mod errors;
mod errors_combined;
mod errors_mechanisms;
mod errors_telemetry;
mod events;
mod exceptions;
mod int;
mod lossless;
mod rcm;
mod rimm;
mod roce;
mod scenarios;
mod storms;
mod trials;
mod warnings;
