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
    /// Log-likelihood, profiled over σ², up to a constant.
    likelihood: f64,
    /// The same, with the coefficients integrated out.
    restricted: f64,
    beta: [f64; COLUMNS],
    /// Variance of the slope (second coefficient).
    slope_variance: f64,
}

/// Cholesky factor of the leading `p` × `p` block, in place; the logarithm of its determinant.
fn factor(a: &mut Matrix, p: usize) -> Option<f64> {
    let mut log_det = 0.0;
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
        log_det += libm::log(d);
        let root = d.sqrt();
        for row in a.iter_mut().take(p).skip(j) {
            row[j] /= root;
        }
    }
    Some(log_det)
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

/// `floor`: least variance of e, so that an exact line has a likelihood.
fn fit(y: &[f64], knots: &[f64], gain: f64, floor: f64) -> Option<Fit> {
    let n = y.len();
    let p = 2 + knots.len();
    let middle = (n - 1) as f64 / 2.0;
    let scale = 1.0 / n as f64;
    let mut sums: Matrix = [[0.0; COLUMNS]; COLUMNS];
    let mut state = [0.0; COLUMNS];
    let mut row = [0.0; COLUMNS];
    for (i, &value) in y.iter().enumerate() {
        let x = i as f64;
        row[0] = 1.0;
        row[1] = (x - middle) * scale;
        for (column, knot) in row[2..].iter_mut().zip(knots) {
            *column = (x - knot).max(0.0) * scale;
        }
        row[p] = value;
        for (column, level) in row.iter_mut().zip(state.iter_mut()).take(p + 1) {
            let innovation = *column - *level;
            *level += gain * innovation;
            *column = innovation;
        }
        for j in 0..=p {
            for k in 0..=j {
                sums[j][k] += row[j] * row[k];
            }
        }
    }
    let mut beta = sums[p];
    let right = beta;
    let square = sums[p][p];
    let mut l = sums;
    let information = factor(&mut l, p)?;
    solve(&l, p, &mut beta);
    let explained: f64 = (0..p).map(|i| beta[i] * right[i]).sum();
    let rest = (square - explained).max(0.0);
    let (all, dof) = (n as f64, (n - p) as f64);
    let sigma = rest / all + floor;
    let sigma_restricted = rest / dof + floor;
    let mut unit = [0.0; COLUMNS];
    unit[1] = 1.0;
    solve(&l, p, &mut unit);
    beta[1] *= scale;
    Some(Fit {
        likelihood: -0.5 * all * libm::log(sigma),
        restricted: -0.5 * (dof * libm::log(sigma_restricted) + information),
        beta,
        slope_variance: sigma_restricted * unit[1] * scale * scale,
    })
}

/// The largest log-likelihood of a line with these knots (positions in bins), over a grid of K.
pub fn likelihood(y: &[f64], knots: &[f64], floor: f64, gains: &[f64]) -> f64 {
    if y.len() < knots.len() + 4 {
        return f64::NEG_INFINITY;
    }
    let best = gains.iter().filter_map(|&gain| fit(y, knots, gain, floor)).map(|fit| fit.likelihood);
    best.fold(f64::NEG_INFINITY, f64::max)
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
    let fits: Vec<(Fit, f64)> = FINE.iter().filter_map(|&(gain, prior)| Some((fit(y, &[], gain, floor)?, prior))).collect();
    let best = fits.iter().map(|f| f.0.restricted).fold(f64::NEG_INFINITY, f64::max);
    // Weight, slope and standard error, the last widened from normal to Student.
    let tails = student(confidence, (y.len() - 2) as f64) / -normal((1.0 - confidence) / 2.0);
    let parts: Vec<(f64, f64, f64)> = fits
        .iter()
        .map(|(f, prior)| (prior * libm::exp(f.restricted - best), f.beta[1], f.slope_variance.max(0.0).sqrt() * tails))
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
