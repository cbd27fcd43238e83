//! Mechanisms that real dataplanes share with the simulator, in integers, without an operating system.
//!
//! A register machine here is what a switch's pipeline, a software switch or a hardware block computes for each packet: clocks and
//! bytes in, a decision out. No floating point, no allocation, no dependency; the simulator's policies drive the same code, and
//! test vectors are made from it.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic, clippy::std_instead_of_core)]

pub mod pdn;
pub mod rcm;
pub mod rimm;
pub mod s_ecn;
