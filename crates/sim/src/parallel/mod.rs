//! One run on several cores: the network is divided into parts, each a world of its own, which move on in windows of time that nothing needs
//! to cross a border. What a part does depends on nothing but its own state and what has crossed before, so the division and the number of
//! threads change no result. See docs/parallel.md.

mod division;
mod gather;
mod steps;
mod threads;

pub use division::Division;
pub use threads::{run_parts, Order, Undivided};
