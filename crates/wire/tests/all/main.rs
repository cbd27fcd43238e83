//! All tests of frames and captures from outside, in one program: it is linked once.

mod capture;
mod common;
mod frames;
mod hostile;
mod roce;
mod tunnels;
mod wrapping;
