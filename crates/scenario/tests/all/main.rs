//! All tests of scenarios from outside, in one program: it is linked once. Generated files have a test of their own.

mod anything;
mod capture;
mod common;
mod errors;
mod int;
mod exceptions;
mod scenarios;
mod warnings;
