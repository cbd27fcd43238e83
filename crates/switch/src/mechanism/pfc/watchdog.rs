//! Storm watchdog: a class that is paused for too long is served, or dropped, all the same, until it has not been paused for a
//! while. Source: PFC-watchdog.

use crate::WatchdogTimes;
use fanin_params::{names, params};
use fanin_units::Span;

names! {
    /// Action on a class whose pause does not end.
    pub enum StormAction {
        /// Drops waiting and arriving packets of the class.
        "drop" => Drop,
        /// Ignores pauses of the class.
        "forward" => Forward,
    }
}

params! {
    /// Storm watchdog of a switch's ports. Source: PFC-watchdog.
    pub struct Watchdog {
        /// Time paused without a break, with packets waiting, after which a class is in a storm. Source: PFC-watchdog (200
        /// ms).
        pub detection: Span = Span::from_ms(200), in Span::from_us(1)..=Span::from_s(100);
        /// Time without a pause after which the storm is over. Source: PFC-watchdog (200 ms).
        pub restoration: Span = Span::from_ms(200), in Span::from_us(1)..=Span::from_s(100);
        /// Action on the class during a storm. Source: PFC-watchdog.
        pub action: StormAction = StormAction::Drop;
    }
}

impl Watchdog {
    /// Detection and restoration times of the watchdog.
    pub(super) fn times(&self) -> WatchdogTimes {
        WatchdogTimes { detection: self.detection, restoration: self.restoration }
    }
}
