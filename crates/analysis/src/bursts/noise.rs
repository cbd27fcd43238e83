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

use crate::bursts::quantiles::{normal, student};

/// Most rows of a comparison.
pub const ROWS: usize = 128;

/// Most columns: constant, slope, knots, and the data.
const COLUMNS: usize = 10;

/// Grid of K for intervals, with prior weights: most of the time, noise is level noise or a random walk.
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
const GRID: usize = 8;
const GAINS: [f64; GRID] = [0.0, 0.05, 0.15, 0.3, 0.4, 0.8, 1.2, 1.5];
/// Places of the grid for a first look, and for a closer one: some twice, as so many are computed at once.
pub const ROUGH: [usize; 4] = [0, 3, 6, 6];
pub const COARSE: [usize; 8] = [0, 1, 2, 2, 4, 5, 6, 7];

/// One number for each K of the grid.
type Kinds = [f64; GRID];

/// First value of a hinge in bins: hinges begin at a bin's centre or half a bin before.
const FIRST: [f64; 2] = [1.0, 0.5];

/// Hinges after whitening, and sums of it, by number of rows; row 0 is none.
struct Hinges {
    /// The t-th row of a whitened hinge: h(1) is the first value, h(t + 1) = 1 + (1 − K)·h(t).
    values: [[Kinds; ROWS + 1]; 2],
    /// Σ h(t)².
    squares: [[Kinds; ROWS + 1]; 2],
    /// Σ h(t)·(1 − K)^(t − 1).
    decayed: [[Kinds; ROWS + 1]; 2],
}

const HINGES: &Hinges = &Hinges::new();

impl Hinges {
    const fn new() -> Self {
        let zero = [[[0.0; GRID]; ROWS + 1]; 2];
        let mut table = Hinges { values: zero, squares: zero, decayed: zero };
        let mut first = 0;
        while first < 2 {
            let mut k = 0;
            while k < GRID {
                let (mut value, mut decay, mut t) = (FIRST[first], 1.0, 1);
                while t <= ROWS {
                    table.values[first][t][k] = value;
                    table.squares[first][t][k] = table.squares[first][t - 1][k] + value * value;
                    table.decayed[first][t][k] = table.decayed[first][t - 1][k] + value * decay;
                    value = 1.0 + (1.0 - GAINS[k]) * value;
                    decay *= 1.0 - GAINS[k];
                    t += 1;
                }
                k += 1;
            }
            first += 1;
        }
        table
    }
}

/// The whitened columns 1, x and the data, row by row, for several K at once.
fn whiten<const N: usize>(y: &[f64], gains: &[f64; N], mut each: impl FnMut(usize, &[[f64; N]; 3])) {
    let middle = (y.len() - 1) as f64 / 2.0;
    let scale = 1.0 / y.len() as f64;
    let mut levels = [[0.0; N]; 3];
    let mut row = [[0.0; N]; 3];
    for (i, &value) in y.iter().enumerate() {
        let columns = [1.0, (i as f64 - middle) * scale, value];
        for ((column, row), level) in columns.into_iter().zip(&mut row).zip(&mut levels) {
            for k in 0..N {
                row[k] = column - level[k];
                level[k] += gains[k] * row[k];
            }
        }
        each(i, &row);
    }
}

/// Sums of products of the whitened columns 1, x and the data: by pair of columns, the larger first, and by K.
type Products<const N: usize> = [[[f64; N]; 3]; 3];

fn add_products<const N: usize>(sums: &mut Products<N>, row: &[[f64; N]; 3]) {
    for (j, sums) in sums.iter_mut().enumerate() {
        for (sum, smaller) in sums.iter_mut().zip(&row[..=j]) {
            for k in 0..N {
                sum[k] += row[j][k] * smaller[k];
            }
        }
    }
}

/// Products of the columns of a regression, the larger first, for several K: of use for one after another.
pub type Matrix<const N: usize> = [[[f64; N]; COLUMNS]; COLUMNS];

/// Room for a regression.
pub fn matrix<const N: usize>() -> Matrix<N> {
    [[[0.0; N]; COLUMNS]; COLUMNS]
}

/// Regressions of one set of data on lines with any knots: sums that all of them need are made once.
///
/// A whitened hinge that begins at row i is h(1), h(2) … ([`Hinges`]). So its products with a column w come from those of the next one:
/// P(i) = h(1)·w_i + (1 − K)·P(i + 1) + Σ_{j > i} w_j. And of two hinges the earlier is, from where the later begins, the later plus
/// what it is more there times (1 − K)^(t − 1).
pub struct Lines {
    rows: usize,
    floor: f64,
    products: Products<GRID>,
    /// Products of a hinge with 1, x and the data, by its first row and first value.
    hinges: Vec<[[Kinds; 3]; 2]>,
}

impl Lines {
    /// Fits at most [`ROWS`] data. `floor`: least variance of e, so that an exact line has a likelihood.
    pub fn new(y: &[f64], floor: f64) -> Self {
        assert!(y.len() <= ROWS, "{} rows", y.len());
        let mut products = [[[0.0; GRID]; 3]; 3];
        let mut columns = [[[0.0; GRID]; 3]; ROWS];
        whiten(y, &GAINS, |i, row| {
            add_products(&mut products, row);
            columns[i] = *row;
        });
        let mut hinges = vec![[[[0.0; GRID]; 3]; 2]; y.len()];
        let mut next = [[[0.0; GRID]; 3]; 2];
        let mut after = [[0.0; GRID]; 3];
        for (row, hinge) in columns[..y.len()].iter().zip(&mut hinges).rev() {
            for (next, first) in next.iter_mut().zip(FIRST) {
                for column in 0..3 {
                    for k in 0..GRID {
                        let decayed = (1.0 - GAINS[k]) * next[column][k];
                        next[column][k] = first * row[column][k] + (decayed + after[column][k]);
                    }
                }
            }
            *hinge = next;
            for (after, row) in after.iter_mut().zip(row) {
                for k in 0..GRID {
                    after[k] += row[k];
                }
            }
        }
        Lines { rows: y.len(), floor, products, hinges }
    }

    /// Largest log-likelihood, up to a constant, of a line with these knots (in bins from the centre of the first, whole or half
    /// ones, in order), over some places of the grid. Profiled over σ².
    pub fn likelihood<const N: usize>(&self, knots: &[f64], kinds: &[usize; N], a: &mut Matrix<N>) -> f64 {
        let n = self.rows;
        if n < knots.len() + 4 {
            return f64::NEG_INFINITY;
        }
        debug_assert!(knots.is_sorted() && knots.iter().all(|knot| (2.0 * knot).fract() == 0.0 && *knot < (n - 1) as f64));
        let pick = |all: &Kinds| kinds.map(|kind| all[kind]);
        let scale = 1.0 / n as f64;
        // First row, and which of the first values.
        let begin = |knot: f64| (knot as usize + 1, usize::from(knot.fract() != 0.0));
        // Products of columns, the larger first; the data come last.
        let data = 2 + knots.len();
        for (column, place) in [(0, 0), (1, 1), (2, data)] {
            a[place][0] = pick(&self.products[column][0]);
            if column > 0 {
                a[place][1] = pick(&self.products[column][1]);
            }
        }
        a[data][data] = pick(&self.products[2][2]);
        for (j, knot) in knots.iter().enumerate() {
            let (row, first) = begin(*knot);
            let [one, x, value] = self.hinges[row][first].each_ref().map(|all| pick(all).map(|product| product * scale));
            (a[2 + j][0], a[2 + j][1], a[data][2 + j]) = (one, x, value);
            let rows = n - row;
            let (squares, decayed) = (pick(&HINGES.squares[first][rows]), pick(&HINGES.decayed[first][rows]));
            for (i, earlier) in knots[..=j].iter().enumerate() {
                let (before, its_first) = begin(*earlier);
                let there = pick(&HINGES.values[its_first][1 + row - before]);
                for k in 0..N {
                    a[2 + j][2 + i][k] = (squares[k] + (there[k] - FIRST[first]) * decayed[k]) * scale * scale;
                }
            }
        }
        let rest = eliminate(a, data);
        let least = rest.into_iter().flatten().fold(f64::INFINITY, |least, rest| least.min(rest.max(0.0) / n as f64));
        if least.is_finite() {
            -0.5 * n as f64 * libm::log(least + self.floor)
        } else {
            f64::NEG_INFINITY
        }
    }
}

/// Sums of squares that columns 0 … `last` - 1 leave of column `last`, from the products of the columns; `None` where the columns
/// cannot be told apart.
fn eliminate<const N: usize>(a: &mut Matrix<N>, last: usize) -> [Option<f64>; N] {
    let mut apart = [true; N];
    for j in 0..last {
        let pivot = a[j][j];
        for k in 0..N {
            apart[k] &= pivot[k] > 1e-12;
        }
        let column: [[f64; N]; COLUMNS] = std::array::from_fn(|i| a[i][j]);
        for i in j + 1..=last {
            let mut part = column[i];
            for k in 0..N {
                part[k] /= pivot[k];
            }
            for (product, other) in a[i][j + 1..=i].iter_mut().zip(&column[j + 1..]) {
                for k in 0..N {
                    product[k] -= part[k] * other[k];
                }
            }
        }
    }
    std::array::from_fn(|k| apart[k].then_some(a[last][last][k]))
}

/// A whitened regression on a line for one K.
struct Fit {
    n: usize,
    /// The Cholesky factor of the columns' products, and the pivots before their roots were taken.
    l: [[f64; 2]; 2],
    pivots: [f64; 2],
    slope: f64,
    /// Sum of squares that is left.
    rest: f64,
    floor: f64,
}

impl Fit {
    fn dof(&self) -> f64 {
        (self.n - 2) as f64
    }

    fn sigma_restricted(&self) -> f64 {
        self.rest / self.dof() + self.floor
    }

    /// The likelihood with the coefficients integrated out.
    fn restricted(&self) -> f64 {
        let information = self.pivots.iter().fold(0.0, |sum, d| sum + libm::log(*d));
        -0.5 * (self.dof() * libm::log(self.sigma_restricted()) + information)
    }

    /// Slope by row (second coefficient), and its variance.
    fn slope(&self) -> (f64, f64) {
        let scale = 1.0 / self.n as f64;
        let unit = solve(&self.l, [0.0, 1.0]);
        (self.slope * scale, self.sigma_restricted() * unit[1] * scale * scale)
    }
}

/// Solves L·Lᵀ·x = b.
fn solve(l: &[[f64; 2]; 2], [b0, b1]: [f64; 2]) -> [f64; 2] {
    let z0 = b0 / l[0][0];
    let z1 = (b1 - l[1][0] * z0) / l[1][1];
    let x1 = z1 / l[1][1];
    [(z0 - l[1][0] * x1) / l[0][0], x1]
}

/// Regressions on a line for several K. `floor`: least variance of e, so that an exact line has a likelihood.
fn fits<const N: usize>(y: &[f64], gains: &[f64; N], floor: f64) -> impl Iterator<Item = Option<Fit>> {
    let n = y.len();
    let mut products = [[[0.0; N]; 3]; 3];
    whiten(y, gains, |_, row| add_products(&mut products, row));
    (0..N).map(move |k| {
        let of = |i: usize, j: usize| products[i][j][k];
        let right = [of(2, 0), of(2, 1)];
        let positive = |d: f64| (d > 1e-12).then_some(d);
        let first = positive(of(0, 0))?;
        let lower = of(1, 0) / first.sqrt();
        let second = positive(of(1, 1) - lower * lower)?;
        let l = [[first / first.sqrt(), 0.0], [lower, second / second.sqrt()]];
        let beta = solve(&l, right);
        let explained = beta[0] * right[0] + beta[1] * right[1];
        Some(Fit { n, l, pivots: [first, second], slope: beta[1], rest: (of(2, 2) - explained).max(0.0), floor })
    })
}

/// A slope in bytes per bin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    pub slope: f64,
    /// Half width of the slope's confidence interval.
    pub half: f64,
}

/// Bounds of the place where a falling function comes down to `beyond`: above `beyond` up to `under`, below from `over` on.
struct Sides {
    under: f64,
    over: f64,
    beyond: f64,
}

impl Sides {
    fn is_under(&mut self, at: f64, falling: impl Fn(f64) -> f64) -> bool {
        if at > self.under && at < self.over {
            self.learn(at, falling(at));
        }
        at <= self.under
    }

    fn learn(&mut self, at: f64, value: f64) {
        *(if value > self.beyond { &mut self.under } else { &mut self.over }) = at;
    }

    /// Comes close to both sides by few values: in quantiles of the normal distribution, tails of nearly normal ones are nearly a line.
    /// `falling` is 1 at 0; `last`: a place and the value there.
    fn narrow(&mut self, falling: impl Fn(f64) -> f64, last: (f64, f64)) {
        const CLOSE: f64 = 1.0 / (1 << 27) as f64;
        let quantile = |value: f64| -normal(value / 2.0);
        let (close, wanted) = (CLOSE * last.0, quantile(self.beyond));
        let mut last = (last.0, quantile(last.1));
        let mut at = last.0 * wanted / last.1;
        for _ in 0..6 {
            if at.is_nan() || at <= self.under || at >= self.over {
                return;
            }
            let value = falling(at);
            self.learn(at, value);
            let here = (at, quantile(value));
            at += (wanted - here.1) * (here.0 - last.0) / (here.1 - last.1);
            if (at - here.0).abs() < close {
                self.is_under(at - close, &falling);
                self.is_under(at + close, &falling);
                return;
            }
            last = here;
        }
    }
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
    let fits: Vec<(f64, (f64, f64), f64)> = fits(y, &gains, floor)
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
    let beyond = 1.0 - confidence;
    let (mut low, mut high, mut value) = (0.0, widest, outside(widest));
    while high > 0.0 && high < f64::MAX / 4.0 && value > beyond {
        high *= 2.0;
        value = outside(high);
    }
    let mut sides = Sides { under: 0.0, over: if value > beyond { f64::INFINITY } else { high }, beyond };
    sides.narrow(outside, (high, value));
    for _ in 0..24 {
        let middle = (low + high) / 2.0;
        if sides.is_under(middle, outside) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(Slope { slope, half: high })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bursts::phases_tests::Random;

    /// The log-likelihood by whitening every column row by row.
    fn plain(y: &[f64], knots: &[f64], floor: f64, gain: f64) -> f64 {
        let (n, scale) = (y.len(), 1.0 / y.len() as f64);
        let middle = (n - 1) as f64 / 2.0;
        let row = |i: usize| -> Vec<f64> {
            let x = i as f64;
            let hinges = knots.iter().map(|knot| (x - knot).max(0.0) * scale);
            [1.0, (x - middle) * scale].into_iter().chain(hinges).chain([y[i]]).collect()
        };
        let columns = knots.len() + 3;
        let mut levels = vec![0.0; columns];
        let mut a = matrix::<1>();
        for i in 0..n {
            let white: Vec<f64> = row(i).iter().zip(&levels).map(|(v, l)| v - l).collect();
            for (j, w) in white.iter().enumerate() {
                levels[j] += gain * w;
                for (k, other) in white[..=j].iter().enumerate() {
                    a[j][k][0] += w * other;
                }
            }
        }
        let rest = eliminate(&mut a, columns - 1)[0].unwrap();
        -0.5 * n as f64 * libm::log(rest / n as f64 + floor)
    }

    #[test]
    fn sums_give_the_likelihoods_that_row_by_row_whitening_gives() {
        let mut rng = Random(5);
        for n in [10, 37, ROWS] {
            let mut walk = 1e6;
            let y: Vec<f64> = (0..n)
                .map(|i| {
                    walk += 3e3 * rng.normal();
                    walk + 1e3 * rng.normal() + if i > n / 2 { 2e3 * (i - n / 2) as f64 } else { 0.0 }
                })
                .collect();
            let lines = Lines::new(&y, 100.0);
            let many: Vec<f64> = (1..8).map(|k| (n * k / 8) as f64).filter(|knot| *knot >= 1.0).collect();
            let halves: Vec<f64> = many.iter().map(|knot| knot - 0.5).collect();
            for knots in
                [&[], &[1.0][..], &[(n - 2) as f64], &[0.5, 4.5], &many[..n.min(14) / 2 - 3], &halves[..n.min(14) / 2 - 3]]
            {
                for (kind, gain) in GAINS.into_iter().enumerate() {
                    let (sums, rows) = (lines.likelihood(knots, &[kind], &mut matrix()), plain(&y, knots, 100.0, gain));
                    assert!((sums - rows).abs() < 1e-7, "{n} rows, {knots:?}, K = {gain}: {sums}, {rows}");
                }
                let best = |kinds: &[usize]| {
                    kinds.iter().map(|k| lines.likelihood(knots, &[*k], &mut matrix())).fold(f64::MIN, f64::max)
                };
                assert_eq!(lines.likelihood(knots, &ROUGH, &mut matrix()), best(&ROUGH));
                assert_eq!(lines.likelihood(knots, &COARSE, &mut matrix()), best(&COARSE));
            }
            assert_eq!(lines.likelihood(&vec![1.0; n - 3], &ROUGH, &mut matrix()), f64::NEG_INFINITY, "too few rows");
        }
    }

    #[test]
    fn the_sides_of_a_fall_are_those_of_asking_everywhere() {
        let tail = |x: f64| 0.5 * libm::erfc(x * std::f64::consts::FRAC_1_SQRT_2);
        let asked = std::cell::Cell::new(0);
        for (width, shift) in [(1.0, 0.0), (0.1, 2.0), (30.0, 0.5)] {
            let mixture = |x: f64| {
                asked.set(asked.get() + 1);
                tail(x - shift) * 0.3 + tail(x + shift) * 0.3 + 1.4 * tail(x / width)
            };
            for beyond in [0.3, 0.05, 0.001] {
                let high = 200.0;
                let mut sides = Sides { under: 0.0, over: high, beyond };
                asked.set(0);
                sides.narrow(mixture, (high, mixture(high)));
                let few = asked.get();
                let grid: Vec<bool> = (1..4000).map(|i| sides.is_under(f64::from(i) * 0.05, mixture)).collect();
                assert_eq!(grid, (1..4000).map(|i| mixture(f64::from(i) * 0.05) > beyond).collect::<Vec<_>>());
                assert!(few < 12, "{few}");
            }
        }
    }
}
