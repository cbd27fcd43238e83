//! DCQCN against the fluid model of its paper, where it rests and how it gets there, and over pauses.

use crate::common::*;
use crate::roce::{flow, flows, star, steady};
use fanin_units::{Span, Time};
use std::collections::VecDeque;

/// RED with the slope of the paper's, 1 % over 195 KB, and no step to 1 at the end of it. Source: DCQCN §5.2.
const RED: &str = "marking = { kind = \"red\", min = \"5KB\", max = \"2MB\", max_p = 0.1023, weight = 1.0, gentle = false, hard_drop = false, spacing = \"geometric\" }\n";

/// The fluid model of DCQCN §5.1, equations 5 to 9, by Euler's method, each flow with rates of its own.
struct Fluid {
    /// \[packets\].
    queue: f64,
    flows: Vec<Reaction>,
    /// Marking probabilities of the past, by which what happens now is decided.
    past: VecDeque<f64>,
}

/// What a flow does. Rates in packets per second.
#[derive(Clone)]
struct Reaction {
    /// Nothing has been marked yet: it sends at the rate of the line, and α is 1. Source: DCQCN §3.1.
    unmarked: bool,
    alpha: f64,
    target: f64,
    current: f64,
    /// As long as the marking probabilities.
    past: VecDeque<f64>,
}

/// The line \[packets/s\], a packet in the queue \[B\].
const LINE: f64 = 40e9 / 8.0 / 1_106.0;
const PACKET: f64 = 1_086.0;

impl Fluid {
    const STEP: f64 = 1e-6;
    /// Of the loop \[steps\].
    const DELAY: usize = 4;

    fn new() -> Fluid {
        Fluid { queue: 0.0, flows: Vec::new(), past: VecDeque::new() }
    }

    /// A flow begins: at the rate of the line, α = 1. Source: DCQCN §3.1.
    fn begin(&mut self) {
        let past = self.past.iter().map(|_| LINE).collect();
        self.flows.push(Reaction { unmarked: true, alpha: 1.0, target: LINE, current: LINE, past });
    }

    fn step(&mut self) {
        let p = ((self.queue * PACKET - 5e3) / 1_995e3 * 0.1023).clamp(0.0, 0.1023);
        self.past.push_back(p);
        self.flows.iter_mut().for_each(|flow| flow.past.push_back(flow.current));
        if self.past.len() > Self::DELAY {
            let p = self.past.pop_front().expect("a past");
            for flow in &mut self.flows {
                let rate = flow.past.pop_front().expect("a past");
                flow.react(p, rate);
            }
        }
        let sum: f64 = self.flows.iter().map(|flow| flow.current).sum();
        self.queue = (self.queue + Self::STEP * (sum - LINE)).max(0.0);
    }
}

impl Reaction {
    fn react(&mut self, p: f64, rate: f64) {
        self.unmarked &= p == 0.0;
        if self.unmarked {
            return;
        }
        // τ and τ' of CNPs and α, T; B and R_AI in packets; F, g.
        let (tau, alpha_timer, timer) = (50e-6, 55e-6, 55e-6);
        let (counter, increase, f, g) = (10e6 / PACKET, 40e6 / 8.0 / PACKET, 5.0, 1.0 / 256.0);
        let none = |packets: f64| libm::pow(1.0 - p, packets);
        // p / ((1 − p)^−n − 1), which is 1/n without marks.
        let events = |n: f64| if p < 1e-9 { 1.0 / n } else { p / (libm::pow(1.0 - p, -n) - 1.0) };
        let cut = 1.0 - none(tau * rate);
        let (by_bytes, by_time) = (rate * events(counter), rate * events(timer * rate));
        let gap = self.target - self.current;
        let alpha = g / alpha_timer * (1.0 - none(alpha_timer * rate) - self.alpha);
        let target = -gap / tau * cut + increase * (none(f * counter) * by_bytes + none(f * timer * rate) * by_time);
        let current = -self.current * self.alpha / (2.0 * tau) * cut + gap / 2.0 * (by_bytes + by_time);
        self.alpha += Fluid::STEP * alpha;
        self.target = (self.target + Fluid::STEP * target).min(LINE);
        self.current = (self.current + Fluid::STEP * current).clamp(1.0, LINE);
    }
}

/// DCQCN against the paper's model at 40 Gb/s: where its queue stands in the second half of 100 ms, and how equal the rates are.
#[test]
fn dcqcn_stands_where_its_fluid_model_does() {
    for n in [2_u32, 4, 10, 16] {
        let mut fluid = Fluid::new();
        (0..n).for_each(|_| fluid.begin());
        let mut sum = 0.0;
        for i in 0..100_000 {
            fluid.step();
            sum += if i >= 50_000 { fluid.queue * PACKET } else { 0.0 };
        }
        let model = sum / 50_000.0;
        let share = fluid.flows[0].current / LINE * f64::from(n);
        assert!((share - 1.0).abs() < 0.02, "the model's own fixed point: {share}");
        let ran = steady("congestion_control = \"dcqcn\"", RED, "40Gbps", n);
        println!("DCQCN, {n:2} flows: queue {:7.0} B, model {model:7.0} B; {ran:?}", ran.queue);
        assert!((ran.queue / model - 1.0).abs() < 0.25, "{n}: {} against {model}", ran.queue);
        assert!(ran.least > 0.8 && ran.most < 1.2 && ran.used > 0.9, "{n}: {ran:?}");
    }
}

/// One flow more every so many milliseconds; rates are watched for as long as that after the last began, too.
const APART_MS: u64 = 40;

/// Shares of the line by millisecond, of `n` flows.
fn staggered(n: u32, seed: u32) -> Vec<Vec<f64>> {
    let entry =
        |i: u32| format!("{{ src = \"h{i}\", dst = \"h{n}\", size = \"2GB\", start = \"{}ms\" }}", u64::from(i) * APART_MS);
    let all: Vec<String> = (0..n).map(entry).collect();
    let end = u64::from(n) * APART_MS;
    let text = format!(
        "seed = {seed}\nduration = \"{end}ms\"\n[topology]\nkind = \"single_switch\"\nhosts = {}\nlink = {{ rate = \"40Gbps\", delay = \"1us\" }}\n[telemetry]\nsample = \"off\"\n[transport]\nkind = \"roce\"\ncongestion_control = \"dcqcn\"\n[switch]\nbuffer = \"unlimited\"\n{RED}\n{}",
        n + 1,
        flows(&all)
    );
    let mut world = make(&text);
    let mut before = vec![0; n as usize];
    let millisecond = |ms: u64| {
        advance_to(&mut world, Time::ZERO + Span::from_ms(ms));
        let now: Vec<u64> = (0..n).map(|i| world.received(i).unwrap_or(0)).collect();
        let rates = now.iter().zip(&before).map(|(now, before)| (now - before) as f64 / 1_024.0 / (LINE / 1e3)).collect();
        before = now;
        rates
    };
    (1..=end).map(millisecond).collect()
}

/// The same in the model.
fn modelled(n: u32) -> Vec<Vec<f64>> {
    let mut fluid = Fluid::new();
    let millisecond = |ms: u64| {
        if ms % APART_MS == 0 {
            fluid.begin();
        }
        let mut sums = vec![0.0; n as usize];
        for _ in 0..1_000 {
            fluid.step();
            fluid.flows.iter().zip(&mut sums).for_each(|(flow, sum)| *sum += flow.current / LINE / 1e3);
        }
        sums
    };
    (0..u64::from(n) * APART_MS).map(millisecond).collect()
}

/// What a newcomer's share of the line does: when it is 80 % of a fair one \[ms after it began\], and its mean from 8 ms on.
fn newcomer(shares: &[Vec<f64>], i: usize) -> (f64, f64) {
    let began = i * APART_MS as usize;
    let own: Vec<f64> = shares[began..began + APART_MS as usize].iter().map(|shares| shares[i]).collect();
    let fair = 1.0 / (i + 1) as f64;
    // It begins above it, at the rate of the line.
    let low = own.iter().position(|share| *share < 0.8 * fair).expect("a cut");
    let up = own[low..].iter().position(|share| *share >= 0.8 * fair).expect("a fair share");
    ((low + up) as f64, mean(&own[8..]))
}

/// Flows that begin one after the other at 40 Gb/s, six runs on average: how fast two that have cut alike find back to the line, how fast a
/// third and a fourth get their share of those that were there before, and what those have meanwhile, all as in the model. Only the first
/// cuts are deeper: the model takes a half in steps that are as small as one likes, a queue pair at once.
#[test]
fn flows_that_begin_later_get_their_share_as_fast_as_in_the_model() {
    const RUNS: u32 = 6;
    let model = modelled(4);
    let runs: Vec<_> = (1..=RUNS).map(|seed| staggered(4, seed)).collect();
    let of = |ms: usize, i: usize| mean(&runs.iter().map(|run| run[ms][i]).collect::<Vec<_>>());
    let ran: Vec<Vec<f64>> = (0..model.len()).map(|ms| (0..4).map(|i| of(ms, i)).collect()).collect();
    // The second: per millisecond, R_AI for each flow at each expiry of the timer.
    let rise = |shares: &[Vec<f64>], from: usize, to: usize| (shares[to][0] - shares[from][0]) / (to - from) as f64;
    near("rise of two flows, of the line per ms", rise(&ran, 43, 55), 40e6 / 40e9 * 1e-3 / 55e-6, 0.1);
    near("in the model", rise(&model, 41, 44), 40e6 / 40e9 * 1e-3 / 55e-6, 0.1);
    println!("sum after the first cuts: {:.3}, model {:.3}", ran[41][0] + ran[41][1], model[41][0] + model[41][1]);
    for i in [2, 3] {
        let ((took, share), (model_took, model_share)) = (newcomer(&ran, i), newcomer(&model, i));
        near(&format!("flow {}: 80 % of its share after, ms", i + 1), took, model_took, 0.35);
        near("its mean share, 8 to 40 ms", share, model_share, 0.1);
        let before = |shares: &[Vec<f64>]| {
            let from = i * APART_MS as usize;
            mean(&(from + 8..from + 40).map(|ms| mean(&shares[ms][..i])).collect::<Vec<_>>())
        };
        near("the others'", before(&ran), before(&model), 0.05);
    }
}

/// With pauses behind it DCQCN loses nothing in an incast, and its rates are fair; without it, pauses do all the work.
#[test]
fn dcqcn_over_pauses_is_fair_and_pauses_seldom() {
    let pfc = "mechanisms.pfc = { memory = \"4MB\", classes = [0], xoff = { kind = \"static\", bytes = \"60KB\" } }\n";
    let ran = steady("congestion_control = \"dcqcn\"", &format!("{pfc}{RED}"), "40Gbps", 16);
    println!("DCQCN over pauses: {ran:?}");
    assert!(ran.dropped == 0 && ran.least > 0.8 && ran.most < 1.2 && ran.used > 0.9, "{ran:?}");
    let pauses = |control: &str, marking: &str| {
        let all: Vec<String> = (0..16).map(|h| flow(h, 16, "4MB")).collect();
        let text = format!(
            "[transport]\nkind = \"roce\"\ncongestion_control = \"{control}\"\n[switch]\nbuffer = \"unlimited\"\n{pfc}{marking}{}",
            flows(&all)
        );
        let ran = run(&star(17, &text));
        assert_eq!(ran.totals.dropped, 0);
        assert!(ran.kept.flows.iter().all(|f| f.status.to_string() == "complete" && f.retransmits == 0));
        ran.kept.pauses.len()
    };
    let (with, without) = (pauses("dcqcn", RED), pauses("none", ""));
    println!("pauses: {with} with DCQCN, {without} without");
    assert!(3 * with < without, "{with} {without}");
}
