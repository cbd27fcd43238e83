//! Stretches of constant slope.
//!
//! 1. The queue over a stretch is averaged in at most 128 bins of equal time (of the line that joins its points).
//! 2. Two exact optimal partitions into 1 … 8 segments by dynamic programming: least squares of the increments around their mean
//!    (best where noise accumulates) and least squares of the levels around a line (best where it does not).
//! 3. Of these, the partition with the largest likelihood under the model of [`crate::bursts::noise`], less a penalty for each bend, is taken.
//! 4. Each part is divided again in the same way, with bins of its own, until nothing more is found.
//! 5. A part without bends whose bins hold many points is looked at closely at both ends, with an eighth of its time, an eighth of
//!    that, and so on: a short ramp may lie within one bin.
//! 6. What comes before the queue is close to its peak, and before senders can have learnt of a drop or a mark, is divided alone, with the
//!    noise that it has: steps of the sawtooth that follows are larger than a ramp's.
//! 7. Where a queue was filled quickly and no bend is near the time at which it first was 90 % of its peak, that is one: a short steep rise
//!    before a long restless time is, to the model of noise, a step of that noise.
//! 8. Bends move to where they fit the points best, and those beside a pause to where it begins and ends; those that are not significant,
//!    or that move the fitted queue by less than 1 % of its peak, are removed.
//! 9. No line leaves the queues that were found in its stretch; one that goes up and down again and again is a sawtooth.

use crate::bursts::noise;
use crate::bursts::quantiles::normal;
use crate::bursts::series::Point;

/// Largest number of bins of a stretch.
const BINS: usize = noise::ROWS;
/// Least bins in which a bend is sought.
const LEAST_BINS: usize = 10;
/// Smallest number of points in a bin.
const POINTS: usize = 4;
/// Most parts of a stretch in one step.
const PARTS: usize = 8;
/// Candidates that are compared at all kinds of noise.
const CLOSELY: usize = 3;
/// Part of a stretch without bends that is looked at alone at either end.
const FINER: u64 = 8;
/// Distance outside the levels of the rest at which an end is an outlier, as a part of their range.
const OUTSIDE: f64 = 0.25;
/// Number of times that parts are divided again.
const DEPTH: u32 = 4;
/// Noise below this part of the range of the queue does not count: an exact line stays a line.
const FLOOR: f64 = 1e-3;
/// Part of the peak below which a bend does not count: it moves the fitted queue by less.
const RELEVANT: f64 = 0.01;
/// Least strength of a bend where one is expected: no likelihood test has found its place.
const EXPECTED: f64 = 2.0;
/// Part of the peak from which the queue counts as filled.
pub const FILLED: f64 = 0.9;
/// Part of a stretch above which a beginning is not looked at alone: it has made most of the noise in it.
const BEGINNING: f64 = 0.5;
/// Part of a stretch above which a time without records, in which the queue fell, gives the slope.
const PAUSE: f64 = 0.5;
/// Part of the peak by which the queue must have fallen in a pause.
const FELL: f64 = 0.05;
/// Factor by which a line through a queue that varies may be steeper than from the smallest to the largest queue of its stretch.
const STEEPER: f64 = 1.25;
/// Part of the peak by which a tooth rises and falls; and the number of teeth that make a sawtooth.
pub const TOOTH: f64 = 0.1;
const SAWTOOTH: u32 = 3;
/// Part of the peak by which a queue must rise until it is [`FILLED`], in less than this part of its time, to have been filled:
/// that is a phase, whatever the noise afterwards. A bend this near to the place (in times of the filling before it and after it)
/// is the end of it.
const ROSE: f64 = 0.5;
const QUICKLY: f64 = 0.5;
const NEAR_BEFORE: f64 = 0.25;
const NEAR_AFTER: f64 = 0.5;
/// Points of a phase, at least.
const LEAST_POINTS: usize = 6;

/// A phase, slopes in bytes per ps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    pub start: u64,
    pub end: u64,
    pub slope: f64,
    pub low: f64,
    pub high: f64,
    pub points: usize,
    pub start_queue: f64,
    pub end_queue: f64,
    pub teeth: Option<Teeth>,
    error: f64,
}

/// Up and down again and again within a stretch that no line describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Teeth {
    /// Number of times that the queue fell by [`TOOTH`] of its peak after it had risen by as much.
    pub count: u32,
    /// Smallest and largest queue.
    pub low: u64,
    pub high: u64,
}

/// Log-likelihood that a bend must add; by simulation (tests/phases.rs).
fn penalty(bins: usize) -> f64 {
    let n = bins as f64;
    PENALTY + libm::log(n) * (0.8 + 20.0 / n)
}
const PENALTY: f64 = 4.0;

/// Time averages of the queue in `n` equal bins from `from` to `to`, the points joined by lines.
fn bins(points: &[Point], from: u64, to: u64, n: usize) -> Vec<f64> {
    let width = (to - from) as f64 / n as f64;
    let mut area = vec![0.0; n];
    let x = |p: &Point| (p.time.saturating_sub(from) as f64 / width).min(n as f64);
    let mut add = |x0: f64, q0: f64, x1: f64, q1: f64| {
        // The trapezoid from x0 to x1, cut at the borders of bins.
        let slope = if x1 > x0 { (q1 - q0) / (x1 - x0) } else { 0.0 };
        let (mut left, mut height) = (x0, q0);
        while left < x1 {
            let bin = (left as usize).min(n - 1);
            let right = if bin + 1 == n { x1 } else { x1.min((bin + 1) as f64) };
            let next = q0 + slope * (right - x0);
            area[bin] += (right - left) * (height + next) / 2.0;
            if right <= left {
                break;
            }
            (left, height) = (right, next);
        }
    };
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return area };
    add(0.0, first.queue as f64, x(first), first.queue as f64);
    for pair in points.windows(2) {
        add(x(&pair[0]), pair[0].queue as f64, x(&pair[1]), pair[1].queue as f64);
    }
    add(x(last), last.queue as f64, n as f64, last.queue as f64);
    area
}

fn range(y: &[f64]) -> f64 {
    let low = y.iter().copied().fold(f64::INFINITY, f64::min);
    y.iter().copied().fold(f64::NEG_INFINITY, f64::max) - low
}

/// Numbers that are handled together.
const LANES: usize = 8;
/// Costs by border, or sums of them; infinity beyond the borders.
type Row = [f64; (BINS + 1).next_multiple_of(LANES)];
const NONE: Row = [f64::INFINITY; (BINS + 1).next_multiple_of(LANES)];

/// Least sum of two rows' entries of the same place, of the first `count` or some more. In lanes, as the compiler keeps the order of
/// floating-point operations: the least of all is the same in any.
#[inline(always)]
fn least_sum(a: &Row, b: &Row, count: usize) -> f64 {
    let mut least = [f64::INFINITY; LANES];
    for (a, b) in a.chunks_exact(LANES).zip(b.chunks_exact(LANES)).take(count.div_ceil(LANES)) {
        for k in 0..LANES {
            let sum = a[k] + b[k];
            least[k] = if sum < least[k] { sum } else { least[k] };
        }
    }
    least.into_iter().fold(f64::INFINITY, |least, sum| if sum < least { sum } else { least })
}

/// Least sums of squares of partitions of `0..n` into 1 … [`PARTS`] parts of at least `least`, with the inner borders of each; of
/// equal ones those that come first. `costs(end, row)` gives the costs of parts that begin at 0, 1 … `row.len() - 1` and stop at
/// `end`.
fn partitions(n: usize, least: usize, costs: impl Fn(usize, &mut [f64])) -> Vec<Vec<usize>> {
    let most = PARTS.min(n / least.max(1));
    let last_parts = |end: usize| {
        let mut row = NONE;
        if let Some(last) = end.checked_sub(least) {
            costs(end, &mut row[..=last]);
        }
        row
    };
    // By parts less one, then by end.
    let mut best = [NONE; PARTS];
    for end in least..=n {
        let row = last_parts(end);
        best[0][end] = row[0];
        // As many parts as there may be are wanted of the whole only.
        let parts = if end == n { most } else { most - 1 };
        for part in 1..parts {
            best[part][end] = least_sum(&best[part - 1], &row, end - least + 1);
        }
    }
    // Where the last parts begin is found again on the way back, which few of all ends are on.
    (2..=most)
        .filter(|&parts| best[parts - 1][n].is_finite())
        .map(|parts| {
            let mut end = n;
            let mut borders = Vec::with_capacity(parts - 1);
            for part in (1..parts).rev() {
                let (row, before, sum) = (last_parts(end), &best[part - 1], best[part][end]);
                end = (0..end).find(|start| before[*start] + row[*start] <= sum).unwrap_or(0);
                borders.push(end);
            }
            borders.reverse();
            borders
        })
        .collect()
}

/// Candidates for bends, in bins from the centre of the first.
fn candidates(y: &[f64]) -> Vec<Vec<f64>> {
    let n = y.len();
    // Whole numbers as floating point: converting them takes longer than reading them.
    let whole: [f64; BINS + 1] = std::array::from_fn(|i| i as f64);
    // Increments around their means: sums, and sums of squares.
    let mut sums = [[0.0; BINS]; 2];
    for i in 1..n {
        let d = y[i] - y[i - 1];
        sums[0][i] = sums[0][i - 1] + d;
        sums[1][i] = sums[1][i - 1] + d * d;
    }
    let increments = |j: usize, row: &mut [f64]| {
        let to = (sums[0][j], sums[1][j], whole[j]);
        for (((cost, s), q), i) in row.iter_mut().zip(&sums[0]).zip(&sums[1]).zip(&whole) {
            let (s, q) = (to.0 - s, to.1 - q);
            *cost = (q - s * s / (to.2 - i)).max(0.0);
        }
    };
    let mut all: Vec<Vec<f64>> =
        partitions(n - 1, 2, increments).into_iter().map(|borders| borders.into_iter().map(|b| b as f64).collect()).collect();
    // Levels around lines: sums of levels, of their squares, and of their products with the place.
    let mut sums = [[0.0; BINS + 1]; 3];
    let middle = y.iter().sum::<f64>() / n as f64;
    for i in 0..n {
        let (x, v) = (i as f64, y[i] - middle);
        sums[0][i + 1] = sums[0][i] + v;
        sums[1][i + 1] = sums[1][i] + v * v;
        sums[2][i + 1] = sums[2][i] + x * v;
    }
    let lines = |j: usize, row: &mut [f64]| {
        let to = [0, 1, 2].map(|k| sums[k][j]);
        for ((((cost, v), vv), xv), i) in row.iter_mut().zip(&sums[0]).zip(&sums[1]).zip(&sums[2]).zip(&whole) {
            let (m, x) = (whole[j] - i, (i + whole[j] - 1.0) / 2.0);
            let (v, vv, xv) = (to[0] - v, to[1] - vv, to[2] - xv);
            let (sxx, sxv) = (m * (m * m - 1.0) / 12.0, xv - x * v);
            *cost = (vv - v * v / m - sxv * sxv / sxx).max(0.0);
        }
    };
    all.extend(
        partitions(n, 4, lines).into_iter().map(|borders| borders.into_iter().map(|b| b as f64 - 0.5).collect::<Vec<_>>()),
    );
    all.dedup();
    all
}

/// Bends of `y`, in bins from the centre of the first; none is the usual answer. `more`: beyond the penalty for each.
fn bends(y: &[f64], more: f64) -> Vec<f64> {
    let floor = FLOOR * range(y);
    let floor = floor * floor;
    if floor <= 0.0 {
        return Vec::new();
    }
    let each = penalty(y.len()) + more;
    let lines = noise::Lines::new(y, floor);
    let (mut few, mut many) = (noise::matrix(), noise::matrix());
    // All are compared roughly, the best of them closely.
    let mut rough: Vec<(f64, Vec<f64>)> = candidates(y)
        .into_iter()
        .map(|knots| (lines.likelihood(&knots, &noise::ROUGH, &mut few) - each * knots.len() as f64, knots))
        .collect();
    rough.sort_by(|a, b| b.0.total_cmp(&a.0));
    rough.truncate(CLOSELY);
    let mut best = (lines.likelihood(&[], &noise::COARSE, &mut many), Vec::new());
    for (_, knots) in rough {
        let score = lines.likelihood(&knots, &noise::COARSE, &mut many) - each * knots.len() as f64;
        if score > best.0 {
            best = (score, knots);
        }
    }
    best.1
}

/// Points of a stretch, with one more at each side to join to.
fn inside(points: &[Point], from: u64, to: u64) -> &[Point] {
    let first = points.partition_point(|p| p.time < from);
    let last = points.partition_point(|p| p.time <= to);
    &points[first..last.max(first)]
}

/// Averages of a stretch in as many bins as its points allow, and the bins' width; `None` where there are too few.
fn binned(points: &[Point], from: u64, to: u64) -> Option<(Vec<f64>, f64)> {
    let part = inside(points, from, to);
    let n = BINS.min(part.len() / POINTS);
    if n < LEAST_BINS || to - from < n as u64 {
        return None;
    }
    Some((bins(part, from, to, n), (to - from) as f64 / n as f64))
}

/// Bends of a stretch, as times. `more`: what each must add to the log-likelihood beyond the penalty.
fn bends_between(points: &[Point], (from, to): (u64, u64), (y, width): &(Vec<f64>, f64), more: f64) -> Vec<u64> {
    bends(y, more).into_iter().map(|knot| refine(points, (from, to), knot + 0.5, *width)).collect()
}

fn split(points: &[Point], from: u64, to: u64, depth: u32, borders: &mut Vec<u64>) {
    if depth == 0 {
        return;
    }
    let Some(whole) = binned(points, from, to) else { return };
    let mut found = bends_between(points, (from, to), &whole, 0.0);
    if found.is_empty() {
        found = at_the_ends(points, (from, to), &whole);
    }
    if found.is_empty() {
        return;
    }
    let mut left = from;
    for border in found.into_iter().chain([to]) {
        if border <= left || border > to {
            continue;
        }
        split(points, left, border, depth - 1, borders);
        if border < to {
            borders.push(border);
        }
        left = border;
    }
}

/// Finds bends close to the ends of a stretch for which its bins are too coarse: a ramp within one bin has no level before it by
/// which it would be seen. So the beginning and the end are looked at alone, an eighth of the time, an eighth of that, and so on,
/// as long as there are points for finer bins, where the queue comes from outside the levels that it then stays at, or goes
/// there. (Inside them it is noise that is looked at ever more closely: batches, sawteeth.) The bends that are found first, with
/// the part that they leave, are divided further.
fn at_the_ends(points: &[Point], (from, to): (u64, u64), (y, width): &(Vec<f64>, f64)) -> Vec<u64> {
    let levels = |y: &[f64]| {
        let low = y.iter().copied().fold(f64::INFINITY, f64::min);
        (low - OUTSIDE * range(y), low + (1.0 + OUTSIDE) * range(y))
    };
    let outside = |level: f64, (low, high): (f64, f64)| level < low || level > high;
    let last = y.len() - 1;
    let mut found = Vec::new();
    let mut span = to - from;
    let mut more = 0.0;
    let (mut head, mut tail) = (true, true);
    while head || tail {
        span /= FINER;
        more += libm::log(FINER as f64);
        let mut look = |from: u64, to: u64, leaves: &dyn Fn(&[f64]) -> bool| -> bool {
            let Some(part) = binned(points, from, to).filter(|part| part.1 * 2.0 <= *width) else { return false };
            if leaves(&part.0) {
                found.extend(bends_between(points, (from, to), &part, more));
            }
            found.is_empty()
        };
        head = head && look(from, from + span, &|part| outside(part[0], levels(&y[1..])));
        tail = tail && look(to - span, to, &|part| outside(part[part.len() - 1], levels(&y[..last])));
    }
    found.sort_unstable();
    found
}

/// The bend near `at` bins that fits the points best: two lines that meet, least squares.
fn refine(points: &[Point], (from, to): (u64, u64), at: f64, width: f64) -> u64 {
    let time = |x: f64| from.saturating_add(libm::round((x * width).max(0.0)) as u64).min(to);
    let (left, right) = (time(at - 4.0), time(at + 4.0).min(to));
    let near = inside(points, left, right);
    let guess = time(at);
    if near.len() < 8 {
        return guess;
    }
    let scale = 1.0 / (right - left).max(1) as f64;
    let level = near[0].queue as f64;
    let mut best = (f64::INFINITY, guess);
    const STEPS: u32 = 48;
    // Sums from each point to the end, for the column max(0, x - knot).
    let xy: Vec<(f64, f64)> = near.iter().map(|p| ((p.time - left) as f64 * scale, p.queue as f64 - level)).collect();
    let mut after = vec![[0.0; 5]; xy.len() + 1];
    for (i, &(x, y)) in xy.iter().enumerate().rev() {
        let s = after[i + 1];
        after[i] = [s[0] + 1.0, s[1] + x, s[2] + x * x, s[3] + y, s[4] + x * y];
    }
    let [n, sx, sxx, sy, sxy] = after[0];
    for step in 0..=STEPS {
        let knot_time = time(at - 1.5 + 3.0 * f64::from(step) / f64::from(STEPS));
        if knot_time <= left || knot_time >= right {
            continue;
        }
        let k = (knot_time - left) as f64 * scale;
        let [m, rx, rxx, ry, rxy] = after[near.partition_point(|p| p.time < knot_time)];
        let (h, hx, hh, hy) = (rx - k * m, rxx - k * rx, rxx - 2.0 * k * rx + k * k * m, rxy - k * ry);
        // Explained sum of squares of columns 1, x, hinge.
        let a = [[n, sx, h], [sx, sxx, hx], [h, hx, hh]];
        let b = [sy, sxy, hy];
        if let Some(explained) = explained(a, b) {
            if -explained < best.0 {
                best = (-explained, knot_time);
            }
        }
    }
    best.1
}

/// bᵀ·A⁻¹·b for three columns.
fn explained(a: [[f64; 3]; 3], b: [f64; 3]) -> Option<f64> {
    let det2 = |i: usize, j: usize, k: usize, l: usize| a[i][k] * a[j][l] - a[i][l] * a[j][k];
    let det = a[0][0] * det2(1, 2, 1, 2) - a[0][1] * det2(1, 2, 0, 2) + a[0][2] * det2(1, 2, 0, 1);
    if det.is_nan() || det <= 1e-12 * a[0][0] * a[1][1] * a[2][2] {
        return None;
    }
    let cofactors = [
        [det2(1, 2, 1, 2), -det2(1, 2, 0, 2), det2(1, 2, 0, 1)],
        [-det2(0, 2, 1, 2), det2(0, 2, 0, 2), -det2(0, 2, 0, 1)],
        [det2(0, 1, 1, 2), -det2(0, 1, 0, 2), det2(0, 1, 0, 1)],
    ];
    let sum: f64 = (0..3).map(|i| b[i] * (0..3).map(|j| cofactors[j][i] * b[j]).sum::<f64>()).sum();
    Some(sum / det)
}

/// Longest time between two records within a stretch, where it is most of the stretch: nothing arrived, so the queue fell as it
/// was served, whatever the few records around it say.
fn pause(points: &[Point], from: u64, to: u64) -> Option<(Point, Point)> {
    let first = points.partition_point(|p| p.time <= from).saturating_sub(1);
    let last = (points.partition_point(|p| p.time < to) + 1).min(points.len());
    let length = |pair: &[Point]| pair[1].time.min(to).saturating_sub(pair[0].time.max(from));
    let longest = points[first..last].windows(2).max_by_key(|pair| length(pair))?;
    (length(longest) as f64 > PAUSE * (to - from) as f64).then(|| (longest[0], longest[1]))
}

/// True if the queue fell by more than noise in a pause.
fn fell((p, q): (Point, Point), peak: f64) -> bool {
    p.queue.saturating_sub(q.queue) as f64 > FELL * peak
}

/// True if a stretch has enough records to be one, or is a pause in which the queue fell by more than noise.
fn counts(points: &[Point], from: u64, to: u64, peak: f64) -> bool {
    inside(points, from, to).len() >= LEAST_POINTS || pause(points, from, to).is_some_and(|pair| fell(pair, peak))
}

/// Moves the borders of a pause to the records that it lies between, if what is beside it still counts: its slope is that of its fall, and
/// would else be said of packets that arrived before and after it.
fn fit_pauses(points: &[Point], peak: f64, borders: &mut [u64]) {
    let last = borders.len() - 1;
    for i in 0..last {
        let Some((p, q)) = pause(points, borders[i], borders[i + 1]).filter(|pair| fell(*pair, peak)) else { continue };
        if i > 0 && p.time > borders[i - 1] && counts(points, borders[i - 1], p.time, peak) {
            borders[i] = p.time;
        }
        if i + 1 < last && q.time < borders[i + 2] && counts(points, q.time, borders[i + 2], peak) {
            borders[i + 1] = q.time;
        }
    }
}

fn measure(points: &[Point], from: u64, to: u64, confidence: f64, peak: f64) -> Option<Stretch> {
    let part = inside(points, from, to);
    if let Some((p, q)) = pause(points, from, to).filter(|pair| fell(*pair, peak)) {
        // Two levels, each known to a frame or so.
        let time = (q.time - p.time) as f64;
        let (slope, half) = ((q.queue as f64 - p.queue as f64) / time, RELEVANT * peak / time);
        let level = |at: u64| (p.queue as f64 + slope * (at as f64 - p.time as f64)).max(0.0);
        let (start_queue, end_queue) = (level(from), level(to));
        let error = half / -normal((1.0 - confidence) / 2.0);
        let (low, high) = (slope - half, slope + half);
        let (points, teeth) = (part.len(), None);
        return Some(Stretch { start: from, end: to, slope, low, high, points, start_queue, end_queue, teeth, error });
    }
    let n = 48.min((part.len() / 4).max(24.min(part.len() / 2)));
    if n < 3 || to - from < n as u64 {
        return None;
    }
    let y = bins(part, from, to, n);
    let width = (to - from) as f64 / n as f64;
    let floor = (FLOOR * FLOOR * range(&y) * range(&y)).max(1e-12 * peak * peak).max(1e-12);
    let s = noise::slope(&y, floor, confidence)?;
    let half = s.half / width;
    let mean = y.iter().sum::<f64>() / n as f64;
    // What was seen, with the points that the stretch begins and ends between.
    let first = points.partition_point(|p| p.time < from).saturating_sub(1);
    let last = (points.partition_point(|p| p.time <= to) + 1).min(points.len());
    let (lowest, highest) = seen(&points[first..last]);
    let most = STEEPER * (highest - lowest) / 2.0;
    let reach = (s.slope * n as f64 / 2.0).clamp(-most, most);
    let slope = 2.0 * reach / (to - from) as f64;
    // A line within what was seen keeps its slope: it is moved, not bent.
    let room = ((highest - lowest) / 2.0 - reach.abs()).max(0.0);
    let middle = (highest + lowest) / 2.0;
    let mean = mean.clamp(middle - room, middle + room);
    Some(Stretch {
        start: from,
        end: to,
        slope,
        low: slope - half,
        high: slope + half,
        points: part.len(),
        start_queue: (mean - reach).clamp(lowest, highest),
        end_queue: (mean + reach).clamp(lowest, highest),
        teeth: teeth(part, peak),
        error: half / -normal((1.0 - confidence) / 2.0),
    })
}

/// The smallest and the largest queue of some points.
fn seen(part: &[Point]) -> (f64, f64) {
    let low = part.iter().map(|p| p.queue).min().unwrap_or(0);
    (low as f64, part.iter().map(|p| p.queue).max().unwrap_or(low) as f64)
}

/// Teeth of a sawtooth; `None` where there are too few.
fn teeth(part: &[Point], peak: f64) -> Option<Teeth> {
    let least = (TOOTH * peak).max(1.0) as u64;
    let first = part.first()?.queue;
    // Since the last turn: the lowest where it rises, the highest where it falls.
    let (mut low, mut high, mut rises) = (first, first, None);
    let (mut ups, mut downs) = (0_u32, 0_u32);
    for p in part {
        (low, high) = (low.min(p.queue), high.max(p.queue));
        if rises != Some(true) && p.queue >= low.saturating_add(least) {
            (rises, high) = (Some(true), p.queue);
            ups += 1;
        } else if rises != Some(false) && p.queue.saturating_add(least) <= high {
            (rises, low) = (Some(false), p.queue);
            downs += 1;
        }
    }
    let count = ups.min(downs);
    let (low, high) = seen(part);
    (count >= SAWTOOTH).then_some(Teeth { count, low: low as u64, high: high as u64 })
}

/// Time at which the queue had been filled, where that took a small part of the time and none of the borders is near.
fn filled(points: &[Point], peak: f64, borders: &[u64]) -> Option<u64> {
    let (first, last) = (points.first()?, points.last()?);
    let full = points.iter().find(|p| p.queue as f64 >= FILLED * peak)?;
    let time = full.time - first.time;
    let quickly = (time as f64) < QUICKLY * (last.time - first.time) as f64;
    let rose = (full.queue - first.queue.min(full.queue)) as f64 >= ROSE * peak;
    let known =
        inside(points, first.time, full.time).len() >= LEAST_POINTS && inside(points, full.time, last.time).len() >= LEAST_POINTS;
    let near = |border: &u64| {
        let at = *border as f64 - full.time as f64;
        at >= -NEAR_BEFORE * time as f64 && at <= NEAR_AFTER * time as f64
    };
    let inner = borders.len() > 2 && borders[1..borders.len() - 1].iter().any(near);
    (quickly && rose && known && time > 0 && !inner).then_some(full.time)
}

/// Divides the part before `until` by itself, where that is in one stretch with a longer time after it. Near `until` it may bend
/// as well.
fn beginning(points: &[Point], until: u64, (confidence, peak): (f64, f64), borders: &mut Vec<u64>) {
    let i = borders.partition_point(|border| *border < until);
    if i == 0 || i == borders.len() {
        return;
    }
    let (from, to) = (borders[i - 1], borders[i]);
    if (until - from) as f64 > BEGINNING * (to - from) as f64 {
        return;
    }
    let mut found = Vec::new();
    split(points, from, until, DEPTH, &mut found);
    // Lines from both sides meet where it bends.
    let left = found.last().copied().unwrap_or(from);
    let side = (until - left).min(to - until);
    let enough = |from: u64, to: u64| inside(points, from, to).len() >= 2 * LEAST_POINTS;
    let known = enough(until - side, until) && enough(until, until + side);
    let bend = if known { refine(points, (until - side, until + side), 4.0, side as f64 / 4.0) } else { until };
    let sides = measure(points, left, bend, confidence, peak).zip(measure(points, bend, to, confidence, peak));
    if sides.is_some_and(|(before, after)| strength(&before, &after, peak) >= EXPECTED) {
        found.push(bend);
    }
    borders.splice(i..i, found);
}

/// Phases of a queue; empty where there are too few points for a slope. `learnt`: when senders could first have learnt of a drop
/// or a mark.
pub fn find(points: &[Point], learnt: Option<u64>, confidence: f64) -> Vec<Stretch> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    if last.time <= first.time {
        return Vec::new();
    }
    let peak = points.iter().map(|p| p.queue).max().unwrap_or(0) as f64;
    let mut borders = vec![first.time];
    split(points, first.time, last.time, DEPTH, &mut borders);
    borders.push(last.time);
    borders.dedup();
    let close = points.iter().find(|p| p.queue as f64 >= FILLED * peak).map(|p| p.time);
    for until in [close, learnt].into_iter().flatten() {
        beginning(points, until, (confidence, peak), &mut borders);
        borders.dedup();
    }
    let measured = |from: u64, to: u64| measure(points, from, to, confidence, peak);
    // Parts with too few points join the shorter neighbour; then the least bend goes, until all count.
    let mut i = 0;
    while borders.len() > 2 && i + 1 < borders.len() {
        if !counts(points, borders[i], borders[i + 1], peak) {
            borders.remove(if i == 0 { 1 } else { i });
            i = i.saturating_sub(1);
        } else {
            i += 1;
        }
    }
    let fill = filled(points, peak, &borders);
    if let Some(at) = fill {
        borders.push(at);
        borders.sort_unstable();
        borders.dedup();
    }
    let mut parts: Vec<Option<Stretch>> = borders.windows(2).map(|b| measured(b[0], b[1])).collect();
    loop {
        let weakest = (1..parts.len())
            .filter(|i| Some(borders[*i]) != fill)
            .filter_map(|i| {
                let bend = parts[i - 1].zip(parts[i]).map_or(0.0, |(a, b)| strength(&a, &b, peak));
                (bend < 1.0).then_some((i, bend))
            })
            .min_by(|a, b| a.1.total_cmp(&b.1));
        let Some((i, _)) = weakest else { break };
        borders.remove(i);
        parts[i - 1] = measured(borders[i - 1], borders[i]);
        parts.remove(i);
    }
    fit_pauses(points, peak, &mut borders);
    borders.windows(2).filter_map(|b| measured(b[0], b[1])).collect()
}

/// The queue drained from what the last packet found, at `(time, queue)`, until it was empty at `end`: a phase of its own, without records
/// and known exactly, where it bends away from the phase before.
pub fn drain(stretches: &mut Vec<Stretch>, (time, queue): (u64, u64), end: u64) {
    let Some(before) = stretches.last().copied().filter(|before| before.end <= time && time < end) else { return };
    let slope = -(queue as f64) / (end - time) as f64;
    let (start_queue, end_queue) = (queue as f64, 0.0);
    let (low, high) = (slope, slope);
    let drained = Stretch { start: time, end, slope, low, high, points: 0, start_queue, end_queue, teeth: None, error: 0.0 };
    let peak = stretches.iter().flat_map(|s| [s.start_queue, s.end_queue]).fold(start_queue, f64::max);
    if strength(&before, &drained, peak) >= 1.0 {
        stretches.push(drained);
    } else if let Some(last) = stretches.last_mut() {
        // They are one phase, with the slope of its longer part.
        if end - time > before.end - before.start {
            *last = Stretch { start: before.start, points: before.points, start_queue: before.start_queue, ..drained };
        } else {
            (last.end, last.end_queue) = (end, 0.0);
        }
    }
}

/// Cuts the rising stretch that holds `at` in two, where less than half of it and at least a quarter comes after: that part is
/// then judged by itself, though no bend shows. Both must rise: else the noise is too large for it.
pub fn cut(stretches: &mut Vec<Stretch>, points: &[Point], at: u64, confidence: f64) {
    let late = |s: &Stretch| {
        let quarter = (s.end - s.start) / 4;
        s.low > 0.0 && at >= s.start + 2 * quarter && at < s.end - quarter
    };
    let Some(i) = stretches.iter().position(late) else { return };
    let (from, to) = (stretches[i].start, stretches[i].end);
    let peak = points.iter().map(|p| p.queue).max().unwrap_or(0) as f64;
    let part = |from, to| (inside(points, from, to).len() >= LEAST_POINTS).then(|| measure(points, from, to, confidence, peak));
    if let (Some(Some(before)), Some(Some(after))) = (part(from, at), part(at, to)) {
        if before.low > 0.0 && after.low > 0.0 {
            stretches.splice(i..=i, [before, after]);
        }
    }
}

/// Strength of the bend between two stretches: below 1 there is none.
fn strength(a: &Stretch, b: &Stretch, peak: f64) -> f64 {
    let change = (a.slope - b.slope).abs();
    let error = (a.error * a.error + b.error * b.error).sqrt();
    let significant = if error > 0.0 { change / (3.0 * error) } else { f64::INFINITY };
    let (left, right) = ((a.end - a.start) as f64, (b.end - b.start) as f64);
    let moved = change * left * right / (left + right);
    let relevant = if peak > 0.0 { moved / (RELEVANT * peak) } else { 0.0 };
    significant.min(relevant)
}
