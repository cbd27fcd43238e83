//! Arbiters in slotted time, as the papers have them: cells of one size, Bernoulli arrivals, one arbitration a slot.

use super::*;
use fanin_units::{Purpose, Stream};
use std::collections::VecDeque;

/// A switch of `ports` with virtual output queues of cells.
struct Slotted {
    ports: usize,
    arbiter: CrossbarArbiter,
    /// By input and output.
    voqs: Vec<Vec<u64>>,
    waiting: Vec<Inputs>,
    requests: Requests,
    matches: Vec<Match>,
}

impl Slotted {
    fn new(kind: &Arbitration, ports: usize) -> Self {
        Slotted {
            ports,
            arbiter: CrossbarArbiter::new(kind, ports, ports),
            voqs: vec![vec![0; ports]; ports],
            waiting: vec![Inputs::none(ports); ports],
            requests: Requests::new(ports, ports),
            matches: Vec::new(),
        }
    }

    fn arrive(&mut self, input: usize, output: usize) {
        self.voqs[input][output] += 1;
        self.waiting[output].set(input, true);
    }

    /// One slot; cells that have crossed.
    fn slot(&mut self) -> usize {
        let all = {
            let mut all = Inputs::none(self.ports);
            (0..self.ports).for_each(|input| all.set(input, true));
            all
        };
        self.requests.clear();
        for output in 0..self.ports {
            let row = &self.waiting[output];
            self.requests.add(output, |requests| requests.set_any_of(std::iter::once(row), &all));
        }
        self.arbiter.arbitrate(&self.requests, &mut self.matches);
        let (mut inputs, mut outputs) = (Inputs::none(self.ports), Inputs::none(self.ports));
        for Match { input, output } in &self.matches {
            let (input, output) = (usize::from(*input), usize::from(*output));
            assert!(!inputs.has(input) && !outputs.has(output), "one connection each");
            inputs.set(input, true);
            outputs.set(output, true);
            assert!(self.voqs[input][output] > 0, "a match without a request");
            self.voqs[input][output] -= 1;
            self.waiting[output].set(input, self.voqs[input][output] > 0);
        }
        self.matches.len()
    }

    fn waiting(&self) -> u64 {
        self.voqs.iter().flatten().sum()
    }
}

fn islip(iterations: u32) -> Arbitration {
    Arbitration::Islip(IslipParams { iterations })
}

const RRM: Arbitration = Arbitration::RoundRobin(RoundRobinArbiterParams {});

/// Cells that cross in a slot and port, with uniform Bernoulli arrivals; cells that wait at the end.
fn uniform(kind: &Arbitration, ports: usize, load: f64, slots: u32) -> (f64, u64) {
    let mut switch = Slotted::new(kind, ports);
    let mut draws = Stream::new(7, Purpose::Sizes, 0);
    let (mut crossed, warm) = (0, slots / 2);
    for slot in 0..slots {
        for input in 0..ports {
            if draws.unit() < load {
                switch.arrive(input, draws.below(ports as u64) as usize);
            }
        }
        let now = switch.slot();
        crossed += if slot >= warm { now } else { 0 };
    }
    (crossed as f64 / f64::from(slots - warm) / ports as f64, switch.waiting())
}

/// iSLIP with one round carries all of uniform i.i.d. Bernoulli traffic; RRM stops near 63 %: of N grants to inputs as if at random,
/// 1 - (1 - 1/N)^N of the inputs get one. Source: iSLIP §II (Fig. 5 and 7).
#[test]
fn islip_carries_all_of_uniform_traffic_and_plain_round_robin_63_percent() {
    let (carried, waiting) = uniform(&islip(1), 16, 0.99, 60_000);
    assert!((carried - 0.99).abs() < 0.005, "{carried}");
    assert!(waiting < 16 * 400, "{waiting} cells wait: more than a queue in balance has");
    let (all, _) = uniform(&islip(1), 16, 1.0, 60_000);
    assert!(all > 0.99, "{all}");
    let (rrm, waiting) = uniform(&RRM, 16, 1.0, 20_000);
    assert!((0.60..0.68).contains(&rrm), "{rrm}");
    assert!(waiting > 16 * 20_000 / 4, "and the rest waits");
}

/// With one queue for each input the head of line blocks: throughput of large N is 2 - sqrt(2), 58.6 %; of N = 8 it is 0.618 and of N = 2
/// 0.75. Source: Karol, Table I. The same arbiter serves it: an input requests what its first cell is for.
#[test]
fn one_queue_for_an_input_reaches_what_karol_found() {
    for (ports, expected, within) in [(2, 0.75, 0.01), (4, 0.6553, 0.01), (8, 0.6184, 0.01), (64, 0.5858, 0.02)] {
        let mut switch = Slotted::new(&islip(1), ports);
        let mut draws = Stream::new(3, Purpose::Sizes, ports as u64);
        // Saturated: behind each cell is another for an output drawn anew.
        let mut heads: VecDeque<usize> = (0..ports).map(|_| draws.below(ports as u64) as usize).collect();
        heads.iter().enumerate().for_each(|(input, output)| switch.arrive(input, *output));
        let (slots, mut crossed) = (20_000, 0);
        for _ in 0..slots {
            crossed += switch.slot();
            for Match { input, .. } in switch.matches.clone() {
                let output = draws.below(ports as u64) as usize;
                heads[usize::from(input)] = output;
                switch.arrive(usize::from(input), output);
            }
        }
        let carried = crossed as f64 / f64::from(slots) / ports as f64;
        assert!((carried - expected).abs() < within, "{ports}: {carried}");
    }
}

/// The pointers of outputs come apart: from a start in step, within N slots of full queues each slot has N matches, and each pair
/// then has every N-th. Source: iSLIP §III.
#[test]
fn islip_pointers_come_apart_and_become_a_time_division() {
    let ports = 12;
    let mut switch = Slotted::new(&islip(1), ports);
    for (input, output) in (0..ports).flat_map(|i| (0..ports).map(move |o| (i, o))) {
        (0..200).for_each(|_| switch.arrive(input, output));
    }
    assert_eq!(switch.slot(), 1, "all outputs grant input 0, which accepts output 0");
    (0..ports).for_each(|_| drop(switch.slot()));
    let before = switch.voqs.clone();
    for _ in 0..ports {
        assert_eq!(switch.slot(), ports);
    }
    for (before, after) in before.iter().flatten().zip(switch.voqs.iter().flatten()) {
        assert_eq!(before - after, 1, "each pair once in N slots");
    }
}

/// As many rounds as ports make a match to which nothing can be added; one round does not.
#[test]
fn rounds_make_a_match_maximal() {
    let ports = 16;
    let mut draws = Stream::new(11, Purpose::Sizes, 0);
    let mut lacking = 0;
    for iterations in [1, ports as u32] {
        let mut switch = Slotted::new(&islip(iterations), ports);
        for _ in 0..500 {
            for (input, output) in (0..ports).flat_map(|i| (0..ports).map(move |o| (i, o))) {
                if draws.unit() < 0.15 {
                    switch.arrive(input, output);
                }
            }
            let before = switch.voqs.clone();
            switch.slot();
            let (mut inputs, mut outputs) = (vec![false; ports], vec![false; ports]);
            for m in &switch.matches {
                (inputs[usize::from(m.input)], outputs[usize::from(m.output)]) = (true, true);
            }
            let free = (0..ports)
                .flat_map(|i| (0..ports).map(move |o| (i, o)))
                .any(|(i, o)| before[i][o] > 0 && !inputs[i] && !outputs[o]);
            assert!(!free || iterations == 1, "a free input has a packet for a free output");
            lacking += u32::from(free);
            switch.voqs.iter_mut().flatten().for_each(|n| *n = 0);
            switch.waiting.fill(Inputs::none(ports));
        }
    }
    assert!(lacking > 300, "one round leaves something: {lacking}");
}

/// An input whose request an output grants no sooner waits N turns at most, whoever else asks. Source: iSLIP §II.B.
#[test]
fn nobody_starves() {
    let ports = 8;
    for kind in [islip(1), islip(4), RRM] {
        let mut switch = Slotted::new(&kind, ports);
        // Everybody has more than enough for output 0; input 5 for output 3 too.
        (0..ports).for_each(|input| (0..4_000).for_each(|_| switch.arrive(input, 0)));
        (0..500).for_each(|_| switch.arrive(5, 3));
        (0..ports * ports).for_each(|_| drop(switch.slot()));
        let before = switch.voqs.clone();
        for _ in 0..10 * ports {
            switch.slot();
        }
        for (input, rows) in before.iter().enumerate() {
            let served = rows[0] - switch.voqs[input][0];
            assert!((9..=11).contains(&served), "{kind:?}: input {input} was served {served} times in 10 turns");
        }
        assert!(before[5][3] - switch.voqs[5][3] >= 10, "{kind:?}");
    }
}

#[test]
fn sets_of_inputs_go_around_in_words() {
    for inputs in [5, 64, 65, 200] {
        let (mut set, mut but) = (Inputs::none(inputs), Inputs::none(inputs));
        assert_eq!(set.next_from(0, &but), None);
        let mut draws = Stream::new(5, Purpose::Sizes, inputs as u64);
        for _ in 0..300 {
            let n = draws.below(inputs as u64) as usize;
            set.set(n, draws.unit() < 0.4);
            but.set(draws.below(inputs as u64) as usize, draws.unit() < 0.3);
            let start = draws.below(inputs as u64) as usize;
            let expected = (0..inputs).map(|i| (start + i) % inputs).find(|i| set.has(*i) && !but.has(*i));
            assert_eq!(set.next_from(start, &but), expected);
        }
    }
}
