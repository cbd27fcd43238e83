//! Errors of the phase detection, counted: false bends, missed bends, coverage of intervals.

use crate::bursts::phases::{cut, drain, find};
use crate::bursts::series::Point;

/// SplitMix64, and a normal draw.
pub struct Random(pub u64);

impl Random {
    pub fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn normal(&mut self) -> f64 {
        let r = (-2.0 * libm::log(1.0 - self.unit())).sqrt();
        r * libm::cos(2.0 * std::f64::consts::PI * self.unit())
    }
}

/// Kinds of noise around a line of queue; times of arrivals vary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    White,
    Ar(f64),
    Walk,
    Both,
    /// Batches of 64 KB that arrive at once and drain.
    Batches,
    /// White noise seen through ticks of 800 ns and units of 8 B.
    Quantised,
    /// A random walk of which one in five records is missing.
    Missing,
}

/// A queue of `n` arrivals over 1 ms that follows `mean` (fraction of the time → bytes).
pub fn series(n: usize, noise: Noise, mean: &dyn Fn(f64) -> f64, size: f64, rng: &mut Random) -> Vec<Point> {
    const LENGTH: f64 = 1e9;
    let mut points = Vec::new();
    let (mut t, mut ar, mut walk) = (0.0, 0.0, 0.0);
    let step = LENGTH / n as f64;
    let phase = rng.unit();
    for _ in 0..n {
        let dt = -libm::log(1.0 - rng.unit()) * step;
        t += dt;
        if t > LENGTH {
            break;
        }
        let e = rng.normal();
        walk += rng.normal() * size * (dt / step).sqrt();
        let level = match noise {
            Noise::White | Noise::Quantised => e * size,
            Noise::Ar(rho) => {
                ar = rho * ar + e * size * (1.0 - rho * rho).sqrt();
                ar
            }
            Noise::Walk | Noise::Missing => walk,
            Noise::Both => walk + e * size * 5.0,
            Noise::Batches => {
                // At 1 Gb/s 64 KB drain in 512 us; here 20 batches over the stretch.
                let x = (t / LENGTH * 20.0 + phase).fract();
                65_536.0 * (1.0 - x) + e * 500.0
            }
        };
        let mut q = (mean(t / LENGTH) + level).max(0.0) as u64;
        let mut time = t as u64;
        if noise == Noise::Quantised {
            q = q / 8 * 8;
            time = time / 800_000 * 800_000;
        }
        if noise == Noise::Missing && rng.unit() < 0.2 {
            continue;
        }
        points.push(Point { time, queue: q });
    }
    points
}

const KINDS: [Noise; 9] = [
    Noise::White,
    Noise::Ar(0.5),
    Noise::Ar(0.9),
    Noise::Ar(0.99),
    Noise::Walk,
    Noise::Both,
    Noise::Batches,
    Noise::Quantised,
    Noise::Missing,
];

/// Size of the noise: typical of a burst whose line rises by 400 KB.
fn size(kind: Noise) -> f64 {
    match kind {
        Noise::Walk | Noise::Missing => 1500.0,
        Noise::Both => 1000.0,
        _ => 5000.0,
    }
}

/// How often a line bends, and how often the interval of an unbent one holds its slope (share of `runs`).
fn errors(kind: Noise, n: usize, runs: u64) -> (f64, f64) {
    let (mut bent, mut covered) = (0u32, 0u32);
    for seed in 0..runs {
        let mut rng = Random(seed * 7919 + 13);
        let slope = if seed % 2 == 0 { 0.0 } else { 400_000.0 };
        let points = series(n, kind, &|x| 1_000_000.0 + slope * x, size(kind), &mut rng);
        let found = find(&points, None, 0.95);
        bent += u32::from(found.len() > 1);
        covered += u32::from(found.len() == 1 && found[0].low <= slope / 1e9 && slope / 1e9 <= found[0].high);
    }
    (f64::from(bent) / runs as f64, f64::from(covered) / runs as f64)
}

/// 1350 lines and constants, 9 kinds of noise: at most 1 % bend, and at most 4 % of any kind.
#[test]
fn noise_makes_no_phases() {
    let mut all = 0.0;
    for kind in KINDS {
        let (bent, _) = errors(kind, 300, 150);
        assert!(bent <= 0.04, "{kind:?}: {bent}");
        all += bent / KINDS.len() as f64;
    }
    assert!(all <= 0.01, "{all}");
}

/// The interval of 95 % holds the truth in 90 … 99.5 % of 400 lines each, for noise that accumulates and noise that does not. (A walk whose
/// records are partly missing, a sum of both and strongly correlated levels are in the ignored table.)
#[test]
fn intervals_hold_what_they_promise() {
    for kind in [Noise::White, Noise::Quantised, Noise::Walk] {
        let (_, covered) = errors(kind, 300, 400);
        assert!((0.90..=0.995).contains(&covered), "{kind:?}: {covered}");
    }
}

/// Steep, gentle, plateau: the bends are found where they are, in each kind of noise.
#[test]
fn bends_are_found_where_they_are() {
    let mean = |x: f64| if x < 0.15 { 2_000_000.0 * x } else { (300_000.0 + 500_000.0 * (x - 0.15)).min(512_000.0) };
    for (kind, size) in [
        (Noise::White, 2000.0),
        (Noise::Ar(0.5), 2000.0),
        (Noise::Walk, 400.0),
        (Noise::Quantised, 2000.0),
        (Noise::Missing, 400.0),
    ] {
        let mut right = 0;
        for seed in 0..40 {
            let found = find(&series(1000, kind, &mean, size, &mut Random(seed + 99)), None, 0.95);
            let at = |i: usize, x: f64| (found[i].end as f64 / 1e9 - x).abs() < 0.05;
            right += u32::from(found.len() >= 3 && at(0, 0.15) && found[0].slope > 1.5 * found[1].slope);
        }
        assert!(right >= 36, "{kind:?}: {right} of 40");
    }
}

/// An exact line, and a step pattern, without any noise.
#[test]
fn exact_queues_are_described_exactly() {
    let line: Vec<Point> = (0..500).map(|i| Point { time: i * 1000, queue: 100 + 7 * i }).collect();
    let found = find(&line, None, 0.95);
    assert_eq!(found.len(), 1);
    assert!((found[0].slope - 0.007).abs() < 1e-6, "{found:?}");
    let steps: Vec<Point> =
        (0..600u64).map(|i| Point { time: i * 1000, queue: (i / 200) * 100_000 + (i % 200).min(100) * 1000 }).collect();
    let found = find(&steps, None, 0.95);
    assert_eq!(found.len(), 6, "{found:?}");
}

/// A slope that changes by too little for a bend: each part has its own when the time between them is known.
#[test]
fn a_drain_after_a_short_plateau_has_the_slope_of_the_drain() {
    let flat = |end: u64| {
        let points: Vec<Point> = (0..=200).map(|i| Point { time: i * end / 200, queue: 300_000 }).collect();
        find(&points, None, 0.95)
    };
    // 12 us full, then 2.4 ms until it is empty.
    let mut phases = flat(12_000_000);
    drain(&mut phases, (12_000_000, 300_000), 2_412_000_000);
    let [phase] = phases[..] else { panic!("{phases:?}") };
    let slope = -300_000.0 / 2.4e9;
    assert_eq!((phase.start, phase.end, phase.slope, phase.low, phase.high), (0, 2_412_000_000, slope, slope, slope));
    assert!((phase.start_queue - 300_000.0).abs() < 1e-6 && phase.end_queue == 0.0, "{phase:?}");
    // The other way round it is the plateau's.
    let mut phases = flat(2_400_000_000);
    drain(&mut phases, (2_400_000_000, 2_000), 2_401_000_000);
    let [phase] = phases[..] else { panic!("{phases:?}") };
    assert!(phase.slope.abs() < 1e-9 && phase.end == 2_401_000_000, "{phase:?}");
}

#[test]
fn a_rise_is_cut_where_it_is_known_to_change_and_only_in_its_third_quarter() {
    let queue = |i: u64| if i < 250 { 1_100 * i } else { 275_000 + 1_000 * (i - 250) };
    let points: Vec<Point> = (0..500).map(|i| Point { time: i * 1000, queue: queue(i) + (i * 7919 % 40) * 500 }).collect();
    let whole = find(&points, None, 0.95);
    assert_eq!(whole.len(), 1, "{whole:?}");
    let cut_at = |at: u64| {
        let mut parts = whole.clone();
        cut(&mut parts, &points, at, 0.95);
        parts
    };
    let parts = cut_at(250_000);
    assert_eq!(parts.iter().map(|p| (p.start, p.end)).collect::<Vec<_>>(), [(0, 250_000), (250_000, 499_000)]);
    assert!((parts[0].slope - 1.1).abs() < 0.05 && (parts[1].slope - 1.0).abs() < 0.05, "{parts:?}");
    assert_eq!((cut_at(200_000).len(), cut_at(400_000).len(), cut_at(900_000).len()), (1, 1, 1));
}

/// First windows, a pause, a ramp at the port's speed, and then a sawtooth whose steps are larger than those of the ramp, as losses make it:
/// time [us] and queue; 100 Mb/s, 1514 B each 121 us.
fn before_a_sawtooth(rng: &mut Random) -> Vec<Point> {
    let mut points = Vec::new();
    let mut add = |us: f64, queue: f64| points.push(Point { time: (us * 1e6) as u64, queue: queue.max(0.0) as u64 });
    for i in 0..150 {
        add(14.0 * f64::from(i), 1300.0 * f64::from(i));
    }
    // Nothing arrives for 8 ms.
    for i in 0..180 {
        add(10_000.0 + 61.0 * f64::from(i), 95_000.0 + 760.0 * f64::from(i) + 800.0 * rng.normal());
    }
    // The buffer is full until senders have learnt of it.
    let (mut us, mut queue) = (21_000.0, 232_000.0);
    while us < 45_000.0 {
        us += 80.0 + 60.0 * rng.unit();
        add(us, queue - 1514.0 * f64::from(u8::from(rng.unit() < 0.3)));
    }
    while us < 200_000.0 {
        let up = rng.unit() < 0.6;
        let steps = 5.0 + 30.0 * rng.unit();
        for _ in 0..steps as u32 {
            us += 80.0 + 60.0 * rng.unit();
            queue = (queue + if up { 1514.0 } else { -3500.0 } + 2000.0 * rng.normal()).clamp(60_000.0, 232_000.0);
            add(us, queue);
        }
    }
    points
}

#[test]
fn a_ramp_before_a_sawtooth_is_found_with_the_pause_before_it() {
    for seed in 0..20 {
        let points = before_a_sawtooth(&mut Random(seed * 11 + 3));
        // Senders learn of the first loss after the queue and a round trip.
        for learnt in [None, Some(50_000_000_000)] {
            let found = find(&points, learnt, 0.95);
            let near = |time: u64, us: f64| (time as f64 / 1e6 - us).abs() < 700.0;
            let slope = |p: &crate::bursts::phases::Stretch| p.slope * fanin_units::BPS;
            let ramp = found.iter().position(|p| near(p.start, 10_000.0) && near(p.end, 21_000.0));
            let Some(ramp) = ramp else { panic!("{seed} {learnt:?}: {found:?}") };
            assert!((slope(&found[ramp]) / 99.7e6 - 1.0).abs() < 0.05, "{seed} {learnt:?}: {found:?}");
            let pause = &found[ramp - 1];
            assert!(near(pause.start, 2_100.0) && (slope(pause) / -99.7e6 - 1.0).abs() < 0.08, "{seed} {learnt:?}: {found:?}");
            assert!(found[ramp + 1..].iter().map(|p| p.end).max() == Some(points[points.len() - 1].time));
        }
    }
}

/// The table behind the penalty and the docs: `cargo test --release -p fanin-analysis calibrate -- --ignored --nocapture`.
#[test]
#[ignore = "a table to read, not a judgement"]
fn calibrate() {
    for n in [40, 80, 200, 1000, 4000] {
        for kind in KINDS {
            let (bent, covered) = errors(kind, n, 400);
            println!("{n:5} {kind:?}: bent {bent:.4}, covered {covered:.4}");
        }
    }
}

/// A congestion of 1 s: from `at` on (a share of the time) the queue rises by 400 KB within `ramp` of the time, and wanders around that.
/// `records` arrivals, of which a burst keeps what it keeps.
fn congestion(records: usize, (at, ramp): (f64, f64), wander: f64, rng: &mut Random) -> Vec<Point> {
    let mut kept = crate::bursts::series::Series::default();
    let (mut t, mut level, mut walk) = (0.0, 0.0, 0.0);
    let step = 1e12 / records as f64;
    for _ in 0..records {
        let up = ((t / 1e12 - at) / ramp).clamp(0.0, 1.0);
        // Twice as many arrive while the queue grows.
        let here = if up > 0.0 && up < 1.0 { step / 2.0 } else { step };
        let dt = -libm::log(1.0 - rng.unit()) * here;
        t += dt;
        // A level that is forgotten in a tenth of the time, and packets' noise.
        let keep = libm::exp(-dt / 1e11);
        level = level * keep + rng.normal() * wander * (1.0 - keep * keep).sqrt();
        walk = walk * 0.99 + rng.normal() * 500.0;
        let queue = (400_000.0 * up + level * up + walk + 20_000.0).max(0.0) as u64;
        let record = crate::Record { time: fanin_units::Time::from_ps(t as u64), queue, frame: 1500, flow: 1, flags: 0 };
        kept.push(&record, 1);
    }
    kept.points(u64::MAX)
}

/// How often the ramp is found: its slope to 10 %, its ends to a quarter of its length.
fn ramps_found(records: usize, (at, ramp): (f64, f64), wander: f64, runs: u64) -> u32 {
    let found = |seed: u64| {
        let points = congestion(records, (at, ramp), wander, &mut Random(seed * 31 + 7));
        let slope = 400_000.0 / (ramp * 1e12);
        let near = |time: u64, place: f64| (time as f64 / 1e12 - place).abs() < 0.25 * ramp;
        find(&points, None, 0.95)
            .iter()
            .any(|p| (p.slope / slope - 1.0).abs() < 0.1 && near(p.start, at) && near(p.end, at + ramp))
    };
    (0..runs).map(|seed| u32::from(found(seed))).sum()
}

/// A ramp of a hundredth, of three thousandths, of a thousandth of a congestion that then wanders by 12 % of its height.
#[test]
fn short_ramps_of_long_congestions_are_found() {
    for (records, ramp) in [(6_000, 0.01), (6_000, 0.003), (100_000, 0.003), (100_000, 0.001)] {
        let found = ramps_found(records, (0.0, ramp), 50_000.0, 5);
        assert!(found >= 4, "{records} records, ramp {ramp}: {found} of 5");
    }
}

#[test]
#[ignore = "a table to read, not a judgement"]
fn ramps() {
    for records in [2_000, 6_000, 100_000, 1_000_000] {
        for ramp in [0.1, 0.03, 0.01, 0.003, 0.001] {
            for at in [0.0, 0.4] {
                let found = [10_000.0, 50_000.0].map(|wander| ramps_found(records, (at, ramp), wander, 10));
                println!("{records:8} records, ramp {ramp:6} at {at}: {found:?} of 10");
            }
        }
    }
}

/// A queue in front of 1 Gb/s that two frames join for each that leaves, one after the other, but for `pause` frame times in which none
/// comes: as odd segments that wait for their acknowledgment make it at the end of a round.
fn rounds_with_a_pause(before: u64, pause: u64, after: u64) -> Vec<Point> {
    const FRAME: u64 = 12_304_000;
    let mut points = Vec::new();
    let mut queue = 60_000;
    let mut round = |slots: std::ops::Range<u64>| {
        for slot in slots {
            for half in [0, 1] {
                points.push(Point { time: slot * FRAME + half * FRAME / 2, queue });
                queue += if half == 0 { 1518 } else { 0 };
            }
        }
        queue -= 1518 * pause;
    };
    round(0..before);
    round(before + pause..before + pause + after);
    points
}

/// What phases say together is how far the queue went: a phase that holds a pause and packets beside it has the slope of both, and one that
/// has the slope of the pause is no longer than it.
#[test]
fn phases_beside_a_pause_add_up_to_the_way_of_the_queue() {
    for pause in 8..=50 {
        for (before, after) in [(20, 250), (36, 250), (60, 120)] {
            let points = rounds_with_a_pause(before.max(pause), pause, after);
            let found = find(&points, None, 0.95);
            let (first, last) = (points[0], points[points.len() - 1]);
            let went: f64 = found.iter().map(|p| p.slope * (p.end - p.start) as f64).sum();
            let of = last.queue as f64 - first.queue as f64;
            assert!((went - of).abs() < 2.5 * 1518.0, "{before} {pause} {after}: {went} of {of}, {found:?}");
        }
    }
}

/// A buffer [frames of 1514 B], the time that a frame takes to leave [us], and a time [us].
type Port = (f64, f64, f64);
const SLOW: Port = (338.0, 121.1, 559_000.0);
const FAST: Port = (84.0, 1.2, 1_500.0);

/// Senders fill the buffer within `fill` us by windows of ten frames, and a sawtooth follows for the rest of the time: time and queue.
fn fill_and_sawtooth((buffer, frame, end): Port, fill: f64, teeth: f64, rng: &mut Random) -> Vec<Point> {
    let full = 1514.0 * buffer;
    let mut kept = crate::bursts::series::Series::default();
    let mut add = |us: f64, queue: f64| {
        let (time, queue) = (fanin_units::Time::from_ps((us * 1e6) as u64), queue.max(0.0) as u64);
        kept.push(&crate::Record { time, queue, frame: 1514, flow: 1, flags: 0 }, 1);
    };
    // Senders whose windows meet: in steps of some frames.
    let (mut us, mut queue) = (0.0, 0.0);
    while queue < full - 1514.0 {
        add(us, queue);
        queue += 1514.0;
        us += if rng.unit() < 0.15 { 5.0 } else { 0.4 } * fill / buffer / 1.09 * 2.0 * rng.unit();
    }
    let begin = us;
    while us < end {
        us += 2.0 * frame * rng.unit();
        // Between 60 and 100 % of the buffer.
        let tooth = ((us - begin) / (end - begin) * teeth).fract();
        let level = if tooth < 0.15 { 1.0 - tooth / 0.15 * 0.4 } else { 0.6 + (tooth - 0.15) / 0.85 * 0.4 };
        add(us, ((full - 1514.0) * level + 3_000.0 * rng.normal()).min(full));
    }
    kept.points(u64::MAX)
}

#[test]
fn a_buffer_that_is_filled_at_once_before_a_long_sawtooth_is_a_phase_of_its_own() {
    // 512 KB at 100 Mb/s, and 128 KB at 10 Gb/s, where a few dozen frames fill it.
    let slow = [500.0, 1_000.0, 1_800.0].map(|fill| (SLOW, fill));
    let fast = [20.0, 50.0, 100.0, 200.0].map(|fill| (FAST, fill));
    for (port, fill) in slow.into_iter().chain(fast) {
        for teeth in [0.0, 4.0, 12.0, 40.0] {
            for seed in 0..3 {
                let points = fill_and_sawtooth(port, fill, teeth, &mut Random(seed * 17 + 5));
                let found = find(&points, None, 0.95);
                let peak = points.iter().map(|p| p.queue).max().unwrap() as f64;
                let full = points.iter().find(|p| p.queue as f64 >= 0.9 * peak).unwrap().time;
                // It rose within phases that end near to where it was full, and steeply.
                let near = |time: u64| time as f64 > 0.6 * full as f64 && (time as f64) < 1.6 * full as f64;
                let place = found.iter().position(|p| near(p.end));
                let Some(last) = place else { panic!("{fill} {teeth} {seed}: {found:?}") };
                assert!(found[..=last].iter().any(|p| p.low > 0.0), "{fill} {teeth} {seed}: {found:?}");
                for p in &found {
                    assert!((0.0..=peak).contains(&p.start_queue) && (0.0..=peak).contains(&p.end_queue), "{p:?}");
                }
                if port == SLOW && teeth >= 12.0 {
                    // The sawtooth is many phases, or one that is called so.
                    let named: u32 = found[last + 1..].iter().filter_map(|p| p.teeth).map(|t| t.count).sum();
                    assert!(found.len() > 6 || f64::from(named) > 0.5 * teeth, "{fill} {teeth} {seed}: {found:?}");
                }
            }
        }
    }
}

#[test]
fn no_line_leaves_what_was_seen() {
    // A staircase up to 512 KB, and a plateau with a few dips.
    for seed in 0..20 {
        let mut rng = Random(seed * 3 + 1);
        let points: Vec<Point> = (0..800_u64)
            .map(|i| {
                let x = i as f64 / 800.0;
                let up = 512_000.0 * (1.0 - libm::exp(-12.0 * x));
                let dip = if rng.unit() < 0.02 { 200_000.0 * rng.unit() } else { 0.0 };
                Point { time: i * 100_000_000, queue: (up - dip).max(0.0) as u64 }
            })
            .collect();
        let peak = points.iter().map(|p| p.queue).max().unwrap() as f64;
        for p in find(&points, None, 0.95) {
            assert!((0.0..=peak).contains(&p.start_queue) && (0.0..=peak).contains(&p.end_queue), "{p:?}");
        }
    }
}
