//! RoCEv2 in a network: completion as the closed form has it, nothing lost where pauses are, repair where they are not.

use crate::common::*;
use fanin_telemetry::FlowRow;
use fanin_units::{Span, Time};

fn star(hosts: u32, more: &str) -> String {
    format!(
        "[topology]\nkind = \"single_switch\"\nhosts = {hosts}\nlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n[telemetry]\nsample = \"off\"\n{more}\n"
    )
}

fn flow(src: u32, dst: u32, size: &str) -> String {
    format!("{{ src = \"h{src}\", dst = \"h{dst}\", size = \"{size}\" }}")
}

fn flows(all: &[String]) -> String {
    format!("[[traffic]]\nkind = \"flows\"\nflows = [{}]\n", all.join(", "))
}

fn fct(flow: &FlowRow) -> u64 {
    flow.finish_ps.expect("complete") - flow.start_ps
}

const PFC: &str = "[switch]\nbuffer = \"unlimited\"\nmechanisms.pfc = { memory = \"4MB\", classes = [0] }\n";

/// Alone, a flow takes what its packets take on the wire.
#[test]
fn a_lone_flow_takes_its_ideal_time() {
    for (size, recovery) in [("4B", "go_back_n"), ("1MB", "go_back_n"), ("1MB", "selective_repeat"), ("10MB", "go_back_n")] {
        let text =
            star(2, &format!("[transport]\nkind = \"roce\"\nrecovery = \"{recovery}\"\n{PFC}{}", flows(&[flow(0, 1, size)])));
        let ran = run(&text);
        let flow = &ran.kept.flows[0];
        assert_eq!(
            (flow.status.to_string().as_str(), flow.retransmits, flow.transport.to_string().as_str()),
            ("complete", 0, "default")
        );
        assert_eq!(fct(flow), flow.ideal_ps, "{size} {recovery}");
        assert_eq!(flow.acked_ps.expect("acked") - flow.finish_ps.expect("complete"), 2_000_000 + 2 * (66 + 20) * 80);
    }
}

/// Sixteen at line rate into one port: pauses keep all, and each gets its share.
#[test]
fn an_incast_over_pauses_loses_nothing() {
    let all: Vec<String> = (0..16).map(|h| flow(h, 16, "1MB")).collect();
    let ran = run(&star(17, &format!("[transport]\nkind = \"roce\"\n{PFC}{}", flows(&all))));
    assert_eq!(ran.totals.dropped, 0);
    assert!(ran.kept.flows.iter().all(|f| f.status.to_string() == "complete" && f.retransmits == 0 && f.timeouts == 0));
    let last = ran.kept.flows.iter().map(fct).max().unwrap() as f64;
    let busy = 16.0 * 977.0 * (1_024.0 + 24.0 + 38.0 + 20.0) * 80.0;
    assert!(last < 1.02 * busy + 5e6, "{last} against {busy}");
}

const LOSSY: &str = "[switch]\nbuffer = \"150KB\"\n";

/// Eight into one port of 150 KB: both kinds of repair bring all, and selective repeat with a window of one bandwidth-delay product sends
/// far less again.
#[test]
fn a_lossy_class_costs_go_back_n_far_more() {
    let all: Vec<String> = (0..8).map(|h| flow(h, 8, "500KB")).collect();
    let transport = |rest: &str| format!("[transport]\nkind = \"roce\"\n{rest}\n{LOSSY}{}", flows(&all));
    let back = run(&star(9, &transport("recovery = { kind = \"go_back_n\", ack_timeout = 6 }")));
    let repeat = run(&star(9, &transport("recovery = \"selective_repeat\"\nwindow = \"bdp\"")));
    let sums = |ran: &Ran| {
        assert!(ran.kept.flows.iter().all(|f| f.status.to_string() == "complete" && f.delivered_bytes == 500_000));
        assert!(ran.totals.dropped > 0);
        (ran.kept.flows.iter().map(|f| f.retransmits).sum::<u64>(), ran.kept.flows.iter().map(fct).max().unwrap())
    };
    let ((again_back, last_back), (again, last)) = (sums(&back), sums(&repeat));
    println!("go-back-N: {again_back} packets again, {last_back} ps; selective repeat: {again}, {last} ps");
    assert_eq!(again, repeat.totals.dropped, "nothing but what was lost");
    assert!(again_back > 3 * again && last_back > last, "{again_back} {again} {last_back} {last}");
}

/// RED as the paper has it. Source: DCQCN §5.2.
const RED: &str = "marking = { kind = \"red\", min = \"5KB\", max = \"200KB\", max_p = 0.01, weight = 1.0, gentle = false, hard_drop = false, spacing = \"geometric\" }\n";

/// The fluid model of DCQCN §5.1, equations 5 to 9, integrated by Euler's method in steps of a microsecond. Rates in packets per second.
struct Fluid {
    queue: f64,
    alpha: Vec<f64>,
    target: Vec<f64>,
    current: Vec<f64>,
    /// Marking probabilities and rates of the past, by which what happens now is decided.
    past: std::collections::VecDeque<(f64, Vec<f64>)>,
}

impl Fluid {
    const STEP: f64 = 1e-6;
    const G: f64 = 1.0 / 256.0;
    const F: f64 = 5.0;

    fn new(rates: Vec<f64>) -> Self {
        let n = rates.len();
        Fluid { queue: 0.0, alpha: vec![1.0; n], target: rates.clone(), current: rates, past: Default::default() }
    }

    /// `link` \[packets/s\], `packet` \[B in the queue\], delay of the loop \[s\].
    fn step(&mut self, link: f64, packet: f64, delay: f64) {
        let bytes = self.queue * packet;
        let p = if bytes <= 5e3 {
            0.0
        } else if bytes <= 200e3 {
            (bytes - 5e3) / 195e3 * 0.01
        } else {
            1.0
        };
        self.past.push_back((p, self.current.clone()));
        if self.past.len() as f64 * Self::STEP <= delay {
            self.queue = (self.queue + Self::STEP * (self.current.iter().sum::<f64>() - link)).max(0.0);
            return;
        }
        let (p, rates) = self.past.pop_front().unwrap();
        let (tau, alpha_timer, timer) = (50e-6, 55e-6, 55e-6);
        let counter = 10e6 / packet;
        let increase = 40e6 / 8.0 / packet;
        for (i, rate) in rates.into_iter().enumerate() {
            let none = |packets: f64| libm::pow(1.0 - p, packets);
            // p / ((1 − p)^−n − 1), which is 1/n without marks.
            let events = |n: f64| if p < 1e-12 { 1.0 / n } else { p / (libm::pow(1.0 - p, -n) - 1.0) };
            let cut = 1.0 - none(tau * rate);
            let (by_bytes, by_time) = (rate * events(counter), rate * events(timer * rate));
            let gap = self.target[i] - self.current[i];
            let alpha = Self::G / alpha_timer * (1.0 - none(alpha_timer * rate) - self.alpha[i]);
            let target =
                -gap / tau * cut + increase * (none(Self::F * counter) * by_bytes + none(Self::F * timer * rate) * by_time);
            let current = -self.current[i] * self.alpha[i] / (2.0 * tau) * cut + gap / 2.0 * (by_bytes + by_time);
            self.alpha[i] += Self::STEP * alpha;
            self.target[i] = (self.target[i] + Self::STEP * target).min(link);
            self.current[i] = (self.current[i] + Self::STEP * current).clamp(1.0, link);
        }
        self.queue = (self.queue + Self::STEP * (self.current.iter().sum::<f64>() - link)).max(0.0);
    }
}

/// DCQCN against the paper's model, 40 Gb/s: the mean queue of the last part, and how equal the shares are.
#[test]
fn dcqcn_stands_where_its_fluid_model_does() {
    let link = 40e9 / 8.0 / 1_106.0;
    for n in [2_u32, 4, 10, 16] {
        let mut fluid = Fluid::new(vec![link; n as usize]);
        let (mut sum, mut count) = (0.0, 0.0);
        for i in 0..100_000 {
            fluid.step(link, 1_086.0, 4e-6);
            if i >= 50_000 {
                (sum, count) = (sum + fluid.queue * 1_086.0, count + 1.0);
            }
        }
        let model = sum / count;
        let share = fluid.current[0] / link * f64::from(n);
        let (mean, least, most) = simulated(n);
        println!("{n:2} flows: queue {mean:7.0} B, model {model:7.0} B; rates {least:.3} to {most:.3} of the fair share, model {share:.3}");
    }
}

/// Mean queue, and the least and largest rate relative to the fair share, in the second half of 100 ms.
fn simulated(n: u32) -> (f64, f64, f64) {
    let all: Vec<String> = (0..n).map(|h| flow(h, n, "1GB")).collect();
    let text = format!(
        "duration = \"100ms\"\n[topology]\nkind = \"single_switch\"\nhosts = {}\nlink = {{ rate = \"40Gbps\", delay = \"1us\" }}\n[telemetry]\nsample = \"10us\"\n[transport]\nkind = \"roce\"\ncongestion_control = \"dcqcn\"\n[switch]\nbuffer = \"unlimited\"\n{RED}{}",
        n + 1,
        flows(&all)
    );
    let mut world = make(&text);
    advance_to(&mut world, Time::ZERO + Span::from_ms(50));
    let before: Vec<u64> = (0..n).map(|i| world.received(i).expect("open")).collect();
    advance_to(&mut world, Time::ZERO + Span::from_ms(100));
    let rates: Vec<f64> = (0..n).map(|i| (world.received(i).expect("open") - before[i as usize]) as f64).collect();
    let fair = rates.iter().sum::<f64>() / f64::from(n);
    let ran = finish(world);
    let port = format!("switch0->h{n}");
    let queue: Vec<f64> = ran
        .kept
        .ports
        .iter()
        .filter(|row| row.port.to_string() == port && row.time_ps > 50_000_000_000)
        .map(|row| row.queue_bytes as f64)
        .collect();
    let bound = |f: fn(f64, f64) -> f64| rates.iter().copied().reduce(f).unwrap() / fair;
    (queue.iter().sum::<f64>() / 5_000.0, bound(f64::min), bound(f64::max))
}
