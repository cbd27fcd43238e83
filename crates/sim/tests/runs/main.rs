//! What runs write, and what holds at some ports only, in one program: it is linked once. What is true of them is in `fidelity`.

mod capture;
mod except;
#[cfg(unix)]
mod outside;
mod summary;
