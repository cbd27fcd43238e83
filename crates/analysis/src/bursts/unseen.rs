//! Drops that looks at a queue tell of the time since the look before, where no look saw a burst.

use crate::display::{count, span};

/// Drops between looks, of which nobody knows when they were, nor how long the queue was then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unseen {
    pub drops: u64,
    /// True if there may be more: a running count began anew.
    pub at_least: bool,
    /// Drops in time of which looks are missing.
    pub in_holes: u64,
    /// Begin and end [ps] of the time with most of them, and how many it has.
    most: (u64, u64, u64),
    /// Drops of the present look: begin and end of their time, and their number.
    present: (u64, u64, u64),
}

impl Unseen {
    /// Takes a drop between two looks.
    #[cold]
    pub fn add(&mut self, (since, now): (u64, u64), in_hole: bool) {
        self.drops += 1;
        self.in_holes += u64::from(in_hole);
        let known = if self.present.1 == now { self.present.2 } else { 0 };
        self.present = (since, now, known + 1);
        if self.present.2 > self.most.2 {
            self.most = self.present;
        }
    }

    /// The drops and where they may have been, in words.
    pub fn words(&self) -> String {
        let (since, until, drops) = self.most;
        let were = |drops: u64| if drops == 1 { "1 packet was".to_string() } else { format!("{drops} packets were") };
        let between = format!("between {} and {}", span(since), span(until));
        let place = if drops == self.drops { between } else { format!("most of them ({drops}) {between}") };
        let holes = match self.in_holes {
            0 => String::new(),
            all if all == self.drops => ", where looks are missing".into(),
            some => format!(", {some} in all where looks are missing"),
        };
        let least = if self.at_least { "at least " } else { "" };
        format!("{least}{} dropped while no look saw a burst, {place}{holes}", were(self.drops))
    }
}

/// The time between two looks, as a drop in it sees it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Between {
    /// Time of the look before the present one [ps].
    pub since: u64,
    /// True if that look was within a burst, and if looks are missing since.
    pub in_burst: bool,
    pub is_hole: bool,
}

/// Words on drops when no burst was found; `largest`: the largest queue that a look saw.
pub(crate) fn nothing_seen(unseen: &Unseen, largest: &str) -> String {
    format!("whether there was a burst is unknown: {}; {largest}", unseen.words())
}

/// Note of holes.
pub(crate) fn holes(ps: u64, holes: u64) -> String {
    format!(
        "records are missing for {} ({}): that time is unknown, neither a burst nor an empty queue",
        span(ps),
        count(holes, "hole")
    )
}
