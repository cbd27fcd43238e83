//! The storm watchdog: a class that is paused for too long is served, or dropped, all the same, until its pauses have been over for a
//! while. Source: PFC-watchdog.

use crate::Patience;
use fanin_params::{names, params};
use fanin_units::Span;

names! {
    /// What a switch does with a class whose pause does not end.
    pub enum StormAction {
        /// What waits is dropped, and what comes.
        "drop" => Drop,
        /// Its pauses are ignored.
        "forward" => Forward,
    }
}

params! {
    /// The storm watchdog of a switch's ports. Source: PFC-watchdog.
    pub struct Watchdog {
        /// A class that is paused without a break while packets wait, for so long, is in a storm. Source: PFC-watchdog (200 ms).
        pub detection: Span = Span::from_ms(200), in Span::from_us(1)..=Span::from_s(100);
        /// A storm is over when the class has not been paused for so long. Source: PFC-watchdog (200 ms).
        pub restoration: Span = Span::from_ms(200), in Span::from_us(1)..=Span::from_s(100);
        /// What is done with the class meanwhile. Source: PFC-watchdog.
        pub action: StormAction = StormAction::Drop;
    }
}

impl Watchdog {
    /// Its times.
    pub(super) fn patience(&self) -> Patience {
        Patience { detection: self.detection, restoration: self.restoration }
    }
}
