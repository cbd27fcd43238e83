//! All tests of traffic from outside, in one program: it is linked once.

mod common;
mod distributions;
mod imports;
mod order_and_streams;
mod refusals;
