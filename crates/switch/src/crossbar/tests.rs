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

/// With uniform Bernoulli arrivals, in the second half of the slots: cells that cross in a slot and port; how many more wait at the
/// end than at half time, per cell that came.
fn uniform(kind: &Arbitration, ports: usize, load: f64, slots: u32) -> (f64, f64) {
    let mut switch = Slotted::new(kind, ports);
    let mut draws = Stream::new(7, Purpose::Sizes, 0);
    let (mut crossed, mut came, mut waited) = (0, 0, 0);
    for slot in 0..slots {
        if slot == slots / 2 {
            (crossed, came, waited) = (0, 0, switch.waiting());
        }
        for input in 0..ports {
            if draws.unit() < load {
                switch.arrive(input, draws.below(ports as u64) as usize);
                came += 1;
            }
        }
        crossed += switch.slot();
    }
    let growth = (switch.waiting() as f64 - waited as f64) / f64::from(came);
    (crossed as f64 / f64::from(slots / 2) / ports as f64, growth)
}

/// iSLIP with one round carries all of uniform i.i.d. Bernoulli traffic, up to a load of one; RRM is unstable above 63 %, and with full
/// queues its outputs grant in step: half of the throughput at two ports. Source: iSLIP §II.A and Fig. 5.
#[test]
fn islip_carries_all_of_uniform_traffic_and_plain_round_robin_63_percent() {
    for load in [0.9, 0.95] {
        let (carried, growth) = uniform(&islip(1), 16, load, 60_000);
        println!("iSLIP at {load}: {carried:.4}, growth {growth:.5}");
        assert!((carried / load - 1.0).abs() < 0.005 && growth.abs() < 0.002, "{load}: {carried}, {growth}");
    }
    let (all, _) = uniform(&islip(1), 16, 1.0, 400_000);
    println!("iSLIP at 1: {all:.4}");
    assert!(all > 0.99, "{all}");
    for load in [0.55, 0.6, 0.62, 0.64, 0.66, 0.7] {
        let (carried, growth) = uniform(&RRM, 16, load, 60_000);
        println!("RRM at {load}: {carried:.4}, growth {growth:.5}");
        assert!(if load < 0.61 { growth.abs() < 0.002 } else { load < 0.65 || growth > 0.05 }, "{load}: {carried}, {growth}");
    }
    // Two ports with full queues: both outputs grant the same input, over and over.
    let mut two = Slotted::new(&RRM, 2);
    (0..4).for_each(|pair| (0..2_000).for_each(|_| two.arrive(pair / 2, pair % 2)));
    assert_eq!((0..1_000).map(|_| two.slot()).sum::<usize>(), 1_000, "half of what could cross");
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
    for _ in 0..ports {
        switch.slot();
    }
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
        for _ in 0..ports * ports {
            switch.slot();
        }
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
