//! Flowlet switching. Source: LetFlow.

use super::hash::{mix32, reduce};
use super::{Chooser, Links};
use fanin_packet::Envelope;
use fanin_params::params;
use fanin_units::{Span, Stream, Time};

params! {
    /// Flowlets: a flow that has paused for longer than the gap draws a new path.
    pub struct FlowletParams {
        /// Gap that ends a flowlet; nothing is reordered if it exceeds the difference of path delays. Source: CONGA §3.6
        /// (500 us).
        pub gap: Span = Span::from_us(500);
        /// Entries of each switch's flowlet table; flows whose hashes collide share an entry, and so a path. Source: CONGA
        /// §3.4 has 65536. Deviation: 4096, which fit the cache of a simulating machine.
        pub entries: u32 = 4096, in 1..=1_048_576;
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    last: Time,
    /// Draw that chooses a link, kept instead of the link so that destinations with different numbers of links may share an
    /// entry.
    draw: u32,
    used: bool,
}

/// Flowlet table of a switch, made when the first packet has a choice.
///
/// Source: LetFlow §3 (a new flowlet takes a path at random). Deviation: pauses are measured exactly, not by an age bit
/// that a timer clears.
#[derive(Clone, Debug)]
pub struct Flowlets {
    gap: Span,
    entries: usize,
    table: Vec<Entry>,
}

impl Chooser for Flowlets {
    type Params = FlowletParams;

    fn new(params: &FlowletParams) -> Self {
        Flowlets { gap: params.gap, entries: params.entries.max(1) as usize, table: Vec::new() }
    }

    #[inline]
    fn pick(&mut self, now: Time, p: &Envelope, links: &mut impl Links, switch_seed: u32, rng: &mut Stream) -> usize {
        if self.table.is_empty() {
            self.table.resize(self.entries, Entry { last: Time::ZERO, draw: 0, used: false });
        }
        let entry = &mut self.table[reduce(mix32(p.hash ^ switch_seed), self.entries)];
        if !entry.used || now.since(entry.last) > self.gap {
            entry.draw = rng.next_u32();
            entry.used = true;
        }
        entry.last = now;
        reduce(entry.draw, links.count())
    }
}
