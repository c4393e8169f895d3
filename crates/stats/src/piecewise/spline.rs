//! The best straight pieces for given breakpoints.

use super::points::Points;

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
