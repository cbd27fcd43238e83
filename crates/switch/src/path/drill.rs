//! Micro load balancing by local queues. Source: DRILL.

use super::hash::reduce;
use super::{Chooser, Links};
use fanin_packet::Envelope;
use fanin_params::params;
use fanin_units::{Bytes, Stream, Time};

params! {
    /// DRILL(d, m): each packet takes the shortest queue among d links drawn at random and the m best of the last comparison.
    /// Source: DRILL §3.2.
    pub struct DrillParams {
        /// d: number of different links that each packet draws; with as many as there are, all are compared. Source: DRILL
        /// §3.2 (2).
        pub d: u32 = 2, in 1..=64;
        /// m: number of links remembered, the best of the last comparison. Source: DRILL §3.2 (1).
        pub m: u32 = 1, in 0..=64;
    }
}

/// A link that a packet compares: bytes that wait there, true if its wire is busy, and its number.
type Candidate = (u64, bool, u32);

/// State of DRILL at one switch: the remembered links.
///
/// Source: DRILL §3.2. Deviation: a switch has one forwarding engine, which all ports share, and sees each packet in the queue as soon
/// as it has joined it; the paper has an engine for each line card or so, each with a memory of its own, and counts a packet when all
/// of it is there. Of equal queues the one of a free wire is shorter, then the link drawn first: the paper leaves ties open.
#[derive(Clone, Debug)]
pub struct Drill {
    d: usize,
    m: usize,
    /// Numbers of the best links of the last comparison, best first.
    best: Vec<u32>,
    /// Links that are compared for the present packet; kept between packets so that nothing is allocated.
    candidates: Vec<(Candidate, usize)>,
    /// The places drawn so far, ascending.
    drawn: Vec<usize>,
}

impl Drill {
    /// Draws `d` different places out of `0..n`, in the order of the draws.
    fn draw(&mut self, links: &mut impl Links, rng: &mut Stream) {
        let n = links.count();
        self.drawn.clear();
        for left in (0..n).rev().take(self.d) {
            let mut place = reduce(rng.next_u32(), left + 1);
            let mut at = 0;
            while at < self.drawn.len() && self.drawn[at] <= place {
                place += 1;
                at += 1;
            }
            self.drawn.insert(at, place);
            self.compare(links, place);
        }
    }

    fn compare(&mut self, links: &mut impl Links, place: usize) {
        let view = links.queue(place);
        self.candidates.push(((view.queue_bytes, !view.is_idle(), links.number(place)), place));
    }
}

impl Chooser for Drill {
    type Params = DrillParams;

    const PER_PACKET: bool = true;

    /// Memory: the links that are remembered, each by a number of 16 bits.
    fn memory(params: &DrillParams) -> Option<Bytes> {
        Some(Bytes(2 * u64::from(params.m)))
    }

    fn new(params: &DrillParams) -> Self {
        let (d, m) = (params.d as usize, params.m as usize);
        Drill { d, m, best: Vec::new(), candidates: Vec::new(), drawn: Vec::new() }
    }

    #[inline(never)] // apart from the choices that take a few instructions
    fn pick(&mut self, _now: Time, _p: &Envelope, links: &mut impl Links, _switch_seed: u32, rng: &mut Stream) -> usize {
        self.candidates.clear();
        self.draw(links, rng);
        // Links that do not lead to this destination are not compared, nor are those that were drawn already.
        for i in 0..self.best.len() {
            let place = (0..links.count()).find(|place| links.number(*place) == self.best[i]);
            if let Some(place) = place.filter(|place| self.drawn.binary_search(place).is_err()) {
                self.compare(links, place);
            }
        }
        self.candidates.sort_by_key(|((bytes, busy, _), _)| (*bytes, *busy)); // stable: what was drawn first comes first
        self.best.clear();
        self.best.extend(self.candidates.iter().take(self.m).map(|((_, _, number), _)| *number));
        self.candidates[0].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::view;
    use crate::PortView;
    use fanin_units::{Purpose, Span};

    /// Links with these bytes waiting, numbered from `first`.
    struct Queues(u32, Vec<u64>);

    impl Links for Queues {
        fn count(&self) -> usize {
            self.1.len()
        }

        fn number(&self, i: usize) -> u32 {
            self.0 + i as u32
        }

        fn queue(&mut self, i: usize) -> PortView {
            let view = view(0);
            PortView { queue_bytes: self.1[i], free_at: view.now + Span::from_us(1), ..view }
        }
    }

    fn drill(d: u32, m: u32) -> impl FnMut(&mut Queues) -> usize {
        let (mut drill, mut rng) = (Drill::new(&DrillParams { d, m }), Stream::new(5, Purpose::Spraying, 0));
        move |queues| drill.pick(Time::ZERO, &Envelope::default(), queues, 0, &mut rng)
    }

    #[test]
    fn with_as_many_draws_as_links_the_shortest_queue_is_taken() {
        for d in [4, 64] {
            let mut pick = drill(d, 0);
            assert!((0..50).all(|_| pick(&mut Queues(10, vec![9, 7, 3, 8])) == 2), "{d}");
        }
    }

    /// With two different draws of four, the shortest is taken when it is drawn, 1/2, the second when that is and the first is not,
    /// 1/3, and the longest never.
    #[test]
    fn draws_are_different_and_uniform() {
        let (mut pick, mut counts) = (drill(2, 0), [0; 4]);
        (0..12_000).for_each(|_| counts[pick(&mut Queues(10, vec![4, 3, 2, 1]))] += 1);
        for (count, expected) in counts.into_iter().zip([0, 2_000, 4_000, 6_000]) {
            assert!(i32::abs(count - expected) < 180, "{counts:?}"); // 3.3 standard deviations
        }
    }

    #[test]
    fn of_equal_queues_each_is_taken_as_often() {
        let (mut pick, mut counts) = (drill(2, 1), [0; 4]);
        (0..12_000).for_each(|_| counts[pick(&mut Queues(10, vec![0; 4]))] += 1);
        assert!(counts.iter().all(|count| i32::abs(count - 3_000) < 160), "{counts:?}");
    }

    /// With one draw and one remembered, the shortest of many queues is found sooner or later, and kept as long as it is the shortest.
    #[test]
    fn the_best_link_is_remembered() {
        let mut pick = drill(1, 1);
        let mut queues = Queues(10, (0..32).rev().collect());
        let picks: Vec<usize> = (0..600).map(|_| pick(&mut queues)).collect();
        assert!(picks.windows(2).all(|two| two[1] >= two[0]) && picks[599] == 31, "{picks:?}");
        // Another destination, by other links: what is remembered leads elsewhere.
        let mut others = Queues(100, vec![5, 6]);
        let seen: Vec<usize> = (0..20).map(|_| pick(&mut others)).collect();
        assert!(seen.windows(2).all(|two| two[1] <= two[0]) && seen[19] == 0, "{seen:?}");
    }

    #[test]
    fn without_memory_one_draw_is_spraying() {
        let (mut pick, mut counts) = (drill(1, 0), [0; 4]);
        (0..12_000).for_each(|_| counts[pick(&mut Queues(10, vec![4, 3, 2, 1]))] += 1);
        assert!(counts.iter().all(|count| i32::abs(count - 3_000) < 160), "{counts:?}");
    }

    #[test]
    fn a_free_wire_is_shorter_than_an_empty_queue_behind_a_packet() {
        struct Two;
        impl Links for Two {
            fn count(&self) -> usize {
                2
            }
            fn number(&self, i: usize) -> u32 {
                i as u32
            }
            fn queue(&mut self, i: usize) -> PortView {
                let view = view(0);
                PortView { free_at: if i == 1 { Time::ZERO } else { view.now + Span::from_us(1) }, ..view }
            }
        }
        let (mut drill, mut rng) = (Drill::new(&DrillParams { d: 2, m: 0 }), Stream::new(5, Purpose::Spraying, 0));
        assert!((0..20).all(|_| drill.pick(Time::ZERO, &Envelope::default(), &mut Two, 0, &mut rng) == 1));
    }
}
