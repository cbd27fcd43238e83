//! All tests of the analysis from outside, in one program: it is linked once.

mod common;
mod conclusions;
mod ends;
mod head_drops;
mod many;
mod notices;
mod port;
mod s_ecn;
mod trimmed;
