//! Search for the best positions of the breakpoints.
//!
//! A place counts points from the first one, so that "one point apart" is a distance of 1
//! however uneven the curve's x are.
//!
//! The best straight pieces for given breakpoints.

use super::Points;

/// The places of the breakpoints, ascending, each at least 1 from the next and from both ends.
pub(super) type Breakpoints = Vec<f64>;

/// Distance of two candidates, as long as there are at most [`CANDIDATES_MAX`].
const STEP: f64 = 0.25;

const CANDIDATES_MAX: f64 = 100.0;

/// Distance of starts of the search for a further breakpoint, in candidates.
const STARTS_APART: usize = 4;

/// Most rounds of moving each breakpoint in turn; the search settles in far fewer.
const ROUNDS_MAX: usize = 30;

/// The best places with one breakpoint more than `fewer`; `None` when the points have no room for it.
///
/// A single breakpoint may have settled in the middle of two bends, and moving one breakpoint at a time
/// does not always leave such a place. So the search starts from the new breakpoint at each of the
/// places in turn, and from even spacing.
pub(super) fn best_places(points: &Points, fewer: &Breakpoints) -> Option<Breakpoints> {
    let grown = candidates(points)
        .step_by(STARTS_APART)
        .filter_map(|place| inserted(points, fewer, place));
    let starts = grown.chain(even(points, fewer.len() + 1));
    let settled = starts.map(|places| settle(points, places));
    least(settled).map(|best| refine(points, best))
}

/// Moves each breakpoint to its best place in turn until none moves, then finely.
pub(super) fn improve(points: &Points, places: Breakpoints) -> Breakpoints {
    refine(points, settle(points, places))
}

/// Moves each breakpoint to the best of the candidates in turn until none moves.
fn settle(points: &Points, places: Breakpoints) -> (f64, Breakpoints) {
    let mut best = (rss(points, &places), places);
    for _ in 0..ROUNDS_MAX {
        let before = best.0;
        for breakpoint in 0..best.1.len() {
            best = moved(points, best, breakpoint);
        }
        if best.0 >= before {
            break;
        }
    }
    best
}

fn rss(points: &Points, places: &[f64]) -> f64 {
    Spline::fit(points, &points.places_to_x(places)).rss
}

fn candidates(points: &Points) -> impl Iterator<Item = f64> + use<> {
    let (first, last) = (1.0, points.len() as f64 - 2.0);
    let step = STEP.max((last - first) / CANDIDATES_MAX);
    let count = ((last - first) / step).floor().max(-1.0) + 1.0;
    (0..count as u32).map(move |i| first + f64::from(i) * step)
}

fn least(sets: impl Iterator<Item = (f64, Breakpoints)>) -> Option<(f64, Breakpoints)> {
    // Two breakpoints between x that are equal but for the last digit have no fit.
    sets.filter(|set| set.0.is_finite())
        .min_by(|a, b| a.0.total_cmp(&b.0))
}

/// The places with one more; `None` when it is too close to another.
fn inserted(points: &Points, places: &[f64], place: f64) -> Option<Breakpoints> {
    let index = places.partition_point(|other| *other < place);
    let mut more = places.to_vec();
    more.insert(index, place);
    let (low, high) = room(points, &more, index);
    (low <= place && place <= high).then_some(more)
}

/// Range in which a breakpoint may move while the others stay.
fn room(points: &Points, places: &[f64], breakpoint: usize) -> (f64, f64) {
    let low = if breakpoint == 0 {
        0.0
    } else {
        places[breakpoint - 1]
    };
    let end = points.len() as f64 - 1.0;
    let high = places.get(breakpoint + 1).copied().unwrap_or(end);
    (low + 1.0, high - 1.0)
}

/// Evenly spaced places, or `None` when that is too close.
fn even(points: &Points, count: usize) -> Option<Breakpoints> {
    let gap = (points.len() as f64 - 1.0) / (count as f64 + 1.0);
    (gap >= 1.0).then(|| (1..=count).map(|i| gap * i as f64).collect())
}

/// The best of all candidates for one breakpoint, which may pass the others.
fn moved(points: &Points, best: (f64, Breakpoints), breakpoint: usize) -> (f64, Breakpoints) {
    let mut others = best.1.clone();
    others.remove(breakpoint);
    candidates(points)
        .filter_map(|place| inserted(points, &others, place))
        .map(|places| (rss(points, &places), places))
        .fold(best, |best, next| if next.0 < best.0 { next } else { best })
}

/// Golden sections between the neighbouring candidates of each breakpoint, in turn.
fn refine(points: &Points, mut best: (f64, Breakpoints)) -> Breakpoints {
    /// The share of the sum of squares that is not worth another round.
    const ENOUGH: f64 = 1e-9;
    let span = points.len() as f64 - 3.0;
    let step = STEP.max(span / CANDIDATES_MAX);
    for _ in 0..ROUNDS_MAX {
        let before = best.0;
        for breakpoint in 0..best.1.len() {
            let (low, high) = room(points, &best.1, breakpoint);
            let place = best.1[breakpoint];
            let around = ((place - step).max(low), (place + step).min(high));
            best = golden_section(points, best, breakpoint, around);
        }
        if before - best.0 <= ENOUGH * before {
            break;
        }
    }
    best.1
}

/// Minimum by golden sections: Kiefer, "Sequential minimax search for a maximum", Proceedings of the AMS 4
/// (1953) 502-506.
fn golden_section(
    points: &Points,
    best: (f64, Breakpoints),
    breakpoint: usize,
    (mut low, mut high): (f64, f64),
) -> (f64, Breakpoints) {
    const RATIO: f64 = 0.618_033_988_749_894_8;
    /// Precision in points; far below what the bootstrap intervals resolve.
    const FINE: f64 = 1e-5;
    let at = |place: f64| {
        let mut places = best.1.clone();
        places[breakpoint] = place;
        (rss(points, &places), places)
    };
    let mut left = at(high - RATIO * (high - low));
    let mut right = at(low + RATIO * (high - low));
    while high - low > FINE {
        if left.0 <= right.0 {
            high = right.1[breakpoint];
            right = left;
            left = at(high - RATIO * (high - low));
        } else {
            low = left.1[breakpoint];
            left = right;
            right = at(low + RATIO * (high - low));
        }
    }
    [left, right].into_iter().fold(
        best.clone(),
        |best, next| {
            if next.0 < best.0 { next } else { best }
        },
    )
}

/// A continuous piecewise linear function, fitted by weighted least squares.
pub(super) struct Spline {
    /// Both ends and the breakpoints, with the fitted values.
    pub(super) nodes: Vec<(f64, f64)>,
    /// The weighted sum of squared residuals.
    pub(super) rss: f64,
}

impl Spline {
    /// Fits the values at both ends and at the breakpoints, which are ascending.
    ///
    /// Each point depends on the two nodes around it only, so that the normal equations are tridiagonal. They
    /// are regular if a point lies between any two breakpoints, or at one of them, and between breakpoints and
    /// ends. Source: Schoenberg and Whitney, Transactions of the AMS 74 (1953) 246-259.
    pub(super) fn fit(points: &Points, breakpoints: &[f64]) -> Self {
        let ends = (points.x[0], points.x[points.len() - 1]);
        let mut nodes = vec![(ends.0, 0.0)];
        nodes.extend(breakpoints.iter().map(|x| (*x, 0.0)));
        nodes.push((ends.1, 0.0));
        let values = Equations::of(points, &nodes).solve();
        for (node, value) in nodes.iter_mut().zip(values) {
            node.1 = value;
        }
        let rss = pieces(points, &nodes)
            .map(|(i, piece, share)| {
                let fitted = nodes[piece].1 * (1.0 - share) + nodes[piece + 1].1 * share;
                points.weights[i] * (points.y[i] - fitted).powi(2)
            })
            .sum();
        Self { nodes, rss }
    }
}

/// For each point its index, its piece, and its position along that.
fn pieces(points: &Points, nodes: &[(f64, f64)]) -> impl Iterator<Item = (usize, usize, f64)> {
    let mut piece = 0;
    points.x.iter().enumerate().map(move |(i, x)| {
        while piece + 2 < nodes.len() && nodes[piece + 1].0 < *x {
            piece += 1;
        }
        let (from, to) = (nodes[piece].0, nodes[piece + 1].0);
        (i, piece, (x - from) / (to - from))
    })
}

/// Symmetric tridiagonal normal equations.
struct Equations {
    diagonal: Vec<f64>,
    /// Coefficients between a node and the next.
    beside: Vec<f64>,
    right: Vec<f64>,
}

impl Equations {
    fn of(points: &Points, nodes: &[(f64, f64)]) -> Self {
        let zero = vec![0.0; nodes.len()];
        let mut equations = Self {
            diagonal: zero.clone(),
            beside: zero.clone(),
            right: zero,
        };
        for (i, piece, share) in pieces(points, nodes) {
            let (weight, rest) = (points.weights[i], 1.0 - share);
            equations.diagonal[piece] += weight * rest * rest;
            equations.diagonal[piece + 1] += weight * share * share;
            equations.beside[piece] += weight * rest * share;
            equations.right[piece] += weight * rest * points.y[i];
            equations.right[piece + 1] += weight * share * points.y[i];
        }
        equations
    }

    /// Elimination downwards, then substitution upwards.
    fn solve(mut self) -> Vec<f64> {
        let n = self.diagonal.len();
        for i in 1..n {
            let factor = self.beside[i - 1] / self.diagonal[i - 1];
            self.diagonal[i] -= factor * self.beside[i - 1];
            self.right[i] -= factor * self.right[i - 1];
        }
        let mut values = self.right;
        for i in (0..n).rev() {
            let above = if i + 1 < n {
                self.beside[i] * values[i + 1]
            } else {
                0.0
            };
            values[i] = (values[i] - above) / self.diagonal[i];
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::Resampler;

    /// Fifteen points that wander, evenly spaced or not.
    fn wandering(seed: u64) -> Points {
        let mut draws = Resampler::new(seed);
        let mut walk = |scale: f64, least: f64| {
            let mut at = 0.0;
            let mut step = || {
                at += least + scale * draws.index(1000) as f64 / 1000.0;
                at
            };
            (0..15).map(|_| step()).collect::<Vec<f64>>()
        };
        Points {
            x: walk(1.0, 0.5),
            y: walk(2.0, -1.0),
            weights: vec![1.0; 15],
            noise: 0.0,
        }
    }

    /// The least sum of squares of all pairs of candidates.
    fn best_pair(points: &Points) -> f64 {
        let all: Vec<f64> = candidates(points).collect();
        let pair = |a: f64| all.iter().map(move |b| vec![a, *b]);
        all.iter()
            .flat_map(|a| pair(*a))
            .filter(|pair| pair[1] - pair[0] >= 1.0)
            .map(|pair| rss(points, &pair))
            .fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn the_search_rarely_misses_the_best_pair() {
        let found = (0..60)
            .filter(|seed| {
                let points = wandering(*seed);
                let one = best_places(&points, &Breakpoints::new()).unwrap();
                let two = best_places(&points, &one).unwrap();
                rss(&points, &two) <= best_pair(&points) * (1.0 + 1e-9)
            })
            .count();
        assert!(found >= 57, "{found} of 60");
    }

    #[test]
    fn a_knot_more_never_fits_worse() {
        for seed in 0..20 {
            let points = wandering(seed);
            let mut places = Breakpoints::new();
            for _ in 0..4 {
                let more = best_places(&points, &places).unwrap();
                assert!(rss(&points, &more) <= rss(&points, &places) * (1.0 + 1e-9));
                places = more;
            }
        }
    }

    #[test]
    fn knots_have_a_point_of_room() {
        let points = wandering(3);
        assert_eq!(inserted(&points, &[], 0.5), None);
        assert_eq!(inserted(&points, &[5.0], 5.5), None);
        assert_eq!(inserted(&points, &[5.0], 6.0), Some(vec![5.0, 6.0]));
        assert_eq!(inserted(&points, &[5.0], 13.25), None);
    }
}
