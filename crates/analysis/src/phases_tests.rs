//! Errors of the phase detection, counted: false bends, missed bends, coverage of intervals.

use crate::phases::find;
use crate::series::Point;

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

#[test]
#[ignore]
fn calibrate() {
    for n in [40, 80, 200, 1000, 4000] {
        for kind in KINDS {
            let (mut bent, mut covered, mut width) = (0, 0, 0.0);
            let runs = 400;
            for seed in 0..runs {
                let mut rng = Random(seed * 7919 + 13);
                let slope = if seed % 2 == 0 { 0.0 } else { 400_000.0 };
                let size = if matches!(kind, Noise::Walk | Noise::Missing) {
                    1500.0
                } else if kind == Noise::Both {
                    1000.0
                } else {
                    5000.0
                };
                let p = series(n, kind, &|x| 1_000_000.0 + slope * x, size, &mut rng);
                let found = find(&p, 0.95);
                bent += u32::from(found.len() > 1);
                let w = found.iter().find(|s| s.low <= slope / 1e9 && slope / 1e9 <= s.high).is_some() && found.len() == 1;
                covered += u32::from(w);
                width += (found[0].high - found[0].low) / 4e5 * 1e9;
            }
            println!(
                "{n:5} {kind:?}: bent {:.3} covered {:.3} mean width {:.3}",
                bent as f64 / runs as f64,
                covered as f64 / runs as f64,
                width / runs as f64
            );
        }
    }
}
