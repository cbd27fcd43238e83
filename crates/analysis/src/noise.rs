//! Lines through a queue whose noise may be of two kinds.
//!
//! A queue is the sum of what arrived less what left, so randomness of arrivals accumulates: the noise around a line is a random
//! walk. Coarse stamps, frames, batches of a sender add noise that does not accumulate. Which of the two prevails decides how well a
//! slope is known, by orders of magnitude, and whether a bend is one. So both are in the model, per bin of equal time:
//!
//! y_i = a + b·x_i + Σ c_m·max(0, x_i − κ_m) + n_i,   n_i = l_{i−1} + u_i,   l_i = l_{i−1} + K·u_i,   u white.
//!
//! K = 0 is level noise only; K = 1 a random walk; between them a sum of both; K = 1.27 is a random walk whose bins are time averages, as
//! they are here, and more where gaps between records span bins. For a given K this is a regression on one-step innovations. K is not
//! estimated: the likelihood weighs a grid, so that an interval covers what the data cannot decide.

use crate::student::{normal, student};

/// Most columns: constant, slope, knots, and the data.
pub const COLUMNS: usize = 10;

/// The grid of K for intervals, and what is thought of each beforehand: most of the time, noise is level noise or a random walk.
const FINE: [(f64, f64); 10] = [
    (0.0, 0.5),
    (0.05, 0.03),
    (0.1, 0.03),
    (0.2, 0.03),
    (0.35, 0.03),
    (0.5, 0.03),
    (0.75, 0.05),
    (1.0, 0.05),
    (1.27, 0.15),
    (1.5, 0.1),
];
/// The grid for comparing partitions.
pub const COARSE: [f64; 7] = [0.0, 0.05, 0.15, 0.4, 0.8, 1.2, 1.5];

/// A grid for a first look.
pub const ROUGH: [f64; 3] = [0.0, 0.3, 1.2];

type Matrix = [[f64; COLUMNS]; COLUMNS];

/// A whitened regression for one K.
struct Fit {
    /// Rows, and columns without the data.
    n: usize,
    p: usize,
    /// The Cholesky factor of the columns' products, and the pivots before their roots were taken.
    l: Matrix,
    pivots: [f64; COLUMNS],
    beta: [f64; COLUMNS],
    /// Sum of squares that is left.
    rest: f64,
    floor: f64,
}

impl Fit {
    /// Log-likelihood, profiled over σ², up to a constant.
    fn likelihood(&self) -> f64 {
        let all = self.n as f64;
        -0.5 * all * libm::log(self.rest / all + self.floor)
    }

    fn dof(&self) -> f64 {
        (self.n - self.p) as f64
    }

    fn sigma_restricted(&self) -> f64 {
        self.rest / self.dof() + self.floor
    }

    /// The likelihood with the coefficients integrated out.
    fn restricted(&self) -> f64 {
        let information = self.pivots[..self.p].iter().fold(0.0, |sum, d| sum + libm::log(*d));
        -0.5 * (self.dof() * libm::log(self.sigma_restricted()) + information)
    }

    /// Slope by row (second coefficient), and its variance.
    fn slope(&self) -> (f64, f64) {
        let scale = 1.0 / self.n as f64;
        let mut unit = [0.0; COLUMNS];
        unit[1] = 1.0;
        solve(&self.l, self.p, &mut unit);
        (self.beta[1] * scale, self.sigma_restricted() * unit[1] * scale * scale)
    }
}

/// Cholesky factor of the leading `p` × `p` block, in place; its pivots.
fn factor(a: &mut Matrix, p: usize) -> Option<[f64; COLUMNS]> {
    let mut pivots = [0.0; COLUMNS];
    for j in 0..p {
        for k in 0..j {
            let l = a[j][k];
            for row in a.iter_mut().take(p).skip(j) {
                row[j] -= row[k] * l;
            }
        }
        let d = a[j][j];
        if d.is_nan() || d <= 1e-12 {
            return None;
        }
        pivots[j] = d;
        let root = d.sqrt();
        for row in a.iter_mut().take(p).skip(j) {
            row[j] /= root;
        }
    }
    Some(pivots)
}

/// Solves L·Lᵀ·x = b.
fn solve(l: &Matrix, p: usize, b: &mut [f64; COLUMNS]) {
    for i in 0..p {
        let sum: f64 = (0..i).map(|k| l[i][k] * b[k]).sum();
        b[i] = (b[i] - sum) / l[i][i];
    }
    for i in (0..p).rev() {
        let sum: f64 = (i + 1..p).map(|k| l[k][i] * b[k]).sum();
        b[i] = (b[i] - sum) / l[i][i];
    }
}

/// Products of the whitened columns for several K at once: 1, x, the data, then a hinge for each knot. By pair of columns, the larger
/// first, and by K. A hinge is 0 up to its knot and adds nothing before.
fn products<const N: usize>(y: &[f64], knots: &[f64], gains: &[f64; N]) -> [[[f64; N]; COLUMNS]; COLUMNS] {
    let middle = (y.len() - 1) as f64 / 2.0;
    let scale = 1.0 / y.len() as f64;
    let mut sums = [[[0.0; N]; COLUMNS]; COLUMNS];
    let mut levels = [[0.0; N]; COLUMNS];
    let mut row = [[0.0; N]; COLUMNS];
    let mut begun = 0;
    for (i, &value) in y.iter().enumerate() {
        let x = i as f64;
        while begun < knots.len() && x > knots[begun] {
            begun += 1;
        }
        let hinges = knots[..begun].iter().map(|knot| (x - knot) * scale);
        let columns = [1.0, (x - middle) * scale, value].into_iter().chain(hinges);
        for ((column, row), level) in columns.zip(&mut row).zip(&mut levels) {
            for k in 0..N {
                row[k] = column - level[k];
                level[k] += gains[k] * row[k];
            }
        }
        for (j, sums) in sums.iter_mut().enumerate().take(3 + begun) {
            let larger = row[j];
            for (sum, smaller) in sums.iter_mut().zip(&row[..=j]) {
                for k in 0..N {
                    sum[k] += larger[k] * smaller[k];
                }
            }
        }
    }
    sums
}

/// Regressions for several K. `knots` in order; `floor`: least variance of e, so that an exact line has a likelihood.
fn fits<const N: usize>(y: &[f64], knots: &[f64], gains: &[f64; N], floor: f64) -> impl Iterator<Item = Option<Fit>> {
    debug_assert!(knots.is_sorted());
    let (n, p) = (y.len(), 2 + knots.len());
    let products = products(y, knots, gains);
    (0..N).map(move |k| {
        // The data come last here.
        let of = |i: usize, j: usize| products[i.max(j)][i.min(j)][k];
        let place = |column: usize| column + usize::from(column >= 2);
        let mut l: Matrix = [[0.0; COLUMNS]; COLUMNS];
        let mut right = [0.0; COLUMNS];
        for (i, row) in l.iter_mut().enumerate().take(p) {
            right[i] = of(2, place(i));
            for (j, product) in row.iter_mut().enumerate().take(i + 1) {
                *product = of(place(i), place(j));
            }
        }
        let pivots = factor(&mut l, p)?;
        let mut beta = right;
        solve(&l, p, &mut beta);
        let explained: f64 = (0..p).map(|i| beta[i] * right[i]).sum();
        Some(Fit { n, p, l, pivots, beta, rest: (of(2, 2) - explained).max(0.0), floor })
    })
}

/// The largest log-likelihood of a line with these knots (positions in bins, in order), over a grid of K.
pub fn likelihood<const N: usize>(y: &[f64], knots: &[f64], floor: f64, gains: &[f64; N]) -> f64 {
    if y.len() < knots.len() + 4 {
        return f64::NEG_INFINITY;
    }
    fits(y, knots, gains, floor).flatten().map(|fit| fit.likelihood()).fold(f64::NEG_INFINITY, f64::max)
}

/// A slope in bytes per bin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    pub slope: f64,
    /// Half width of its confidence interval.
    pub half: f64,
}

/// The slope of a line through `y`, over all kinds of noise as the data weigh them: half width such that the mixture of the fits'
/// distributions of Student has `confidence` within.
pub fn slope(y: &[f64], floor: f64, confidence: f64) -> Option<Slope> {
    if y.len() < 3 {
        return None;
    }
    let gains = FINE.map(|(gain, _)| gain);
    let priors = FINE.iter().map(|(_, prior)| *prior);
    // Likelihood, slope, its variance and prior.
    let fits: Vec<(f64, (f64, f64), f64)> = fits(y, &[], &gains, floor)
        .zip(priors)
        .filter_map(|(fit, prior)| fit.map(|fit| (fit.restricted(), fit.slope(), prior)))
        .collect();
    let best = fits.iter().map(|f| f.0).fold(f64::NEG_INFINITY, f64::max);
    // Weight, slope and standard error, the last widened from normal to Student.
    let tails = student(confidence, (y.len() - 2) as f64) / -normal((1.0 - confidence) / 2.0);
    let parts: Vec<(f64, f64, f64)> = fits
        .iter()
        .map(|(likelihood, (slope, variance), prior)| {
            (prior * libm::exp(likelihood - best), *slope, variance.max(0.0).sqrt() * tails)
        })
        .filter(|part| part.0 > 1e-6)
        .collect();
    let weights: f64 = parts.iter().map(|p| p.0).sum();
    if weights.is_nan() || weights <= 0.0 {
        return None;
    }
    let slope = parts.iter().map(|p| p.0 * p.1).sum::<f64>() / weights;
    let outside = |half: f64| {
        let tail = |distance: f64, error: f64| {
            if error > 0.0 {
                0.5 * libm::erfc(distance / error * std::f64::consts::FRAC_1_SQRT_2)
            } else {
                f64::from(u8::from(distance < 0.0))
            }
        };
        parts.iter().map(|&(w, b, e)| w * (tail(half - (b - slope), e) + tail(half + (b - slope), e))).sum::<f64>() / weights
    };
    let widest = parts.iter().map(|p| (p.1 - slope).abs() + p.2).fold(0.0, f64::max);
    let (mut low, mut high) = (0.0, widest);
    while high > 0.0 && high < f64::MAX / 4.0 && outside(high) > 1.0 - confidence {
        high *= 2.0;
    }
    for _ in 0..24 {
        let middle = (low + high) / 2.0;
        if outside(middle) > 1.0 - confidence {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(Slope { slope, half: high })
}
