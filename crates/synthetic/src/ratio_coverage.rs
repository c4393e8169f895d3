//! Coverage and power of the interval of a ratio of medians of two separate samples.

use crate::noise::{Draws, Noise};

/// The interval of the ratio of two samples, new over base, at a confidence; `None` with too few trials.
pub type RatioInterval = fn(&[f64], &[f64], f64) -> Option<(f64, f64)>;

/// Sizes of families of comparisons with simultaneous 95 % intervals.
pub const FAMILIES: [usize; 3] = [1, 4, 12];

/// Scatter of two samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shapes {
    /// Scatter of the base sample.
    pub base: Noise,
    /// Scatter of the new sample.
    pub new: Noise,
}

/// Lowest coverage found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeastCoverage {
    /// Probability that all intervals of a family hold their ratios.
    pub coverage: f64,
    /// Standard error of the coverage.
    pub error: f64,
    /// Shapes with the lowest coverage.
    pub shapes: Shapes,
    /// Number of trials with the lowest coverage.
    pub trials: usize,
}

/// All pairs of shapes: normal, lognormal, exponential, stalls, and two groups in one sample or in both.
pub fn shapes() -> Vec<Shapes> {
    let lognormal = |sigma| Noise::Lognormal { sigma };
    let stalls = |share| Noise::Stalls {
        share,
        ratio: 0.4,
        sigma: 0.05,
    };
    let pair = |base, new| Shapes { base, new };
    let alike = |noise| pair(noise, noise);
    let mut all = vec![
        alike(Noise::Normal { cv: 0.1 }),
        alike(lognormal(0.05)),
        alike(lognormal(0.5)),
        pair(lognormal(0.02), lognormal(0.5)),
        alike(Noise::Exponential),
        pair(lognormal(0.05), Noise::Exponential),
        alike(stalls(0.1)),
        alike(stalls(0.3)),
        pair(lognormal(0.05), stalls(0.1)),
        pair(lognormal(0.05), stalls(0.3)),
    ];
    for upper in [0.48, 0.4, 0.3] {
        for ratio in [1.1, 1.2, 1.5, 3.0] {
            for (sigma, other) in [(0.005, 0.05), (0.02, 0.005), (0.02, 0.1)] {
                let groups = Noise::TwoGroups {
                    upper,
                    ratio,
                    sigma,
                };
                all.extend([alike(groups), pair(lognormal(other), groups)]);
            }
        }
    }
    all
}

/// Confidence of each interval of a family.
fn confidence(family: usize) -> f64 {
    1.0 - 0.05 / family as f64
}

fn sample(draws: &mut Draws, trials: usize, shift: f64) -> Vec<f64> {
    (0..trials)
        .map(|_| (shift + draws.next_log()).exp())
        .collect()
}

/// Share of `pairs` pairs of samples whose interval excludes 1, for a ratio `ratio` of their medians; `None` if
/// this number of trials has no interval.
pub fn share_apart(
    interval: RatioInterval,
    shapes: Shapes,
    ratio: f64,
    (trials, family): (usize, usize),
    pairs: usize,
) -> Option<f64> {
    let (mut base, mut new) = (shapes.base.draws(1), shapes.new.draws(2));
    let mut apart = 0;
    for _ in 0..pairs {
        let (base, new) = (
            sample(&mut base, trials, 0.0),
            sample(&mut new, trials, ratio.ln()),
        );
        let (low, high) = interval(&base, &new, confidence(family))?;
        apart += usize::from(low > 1.0 || high < 1.0);
    }
    Some(apart as f64 / pairs as f64)
}

/// Lowest coverage over all pairs of shapes and these numbers of trials, for a family of this size.
pub fn least_coverage(
    interval: RatioInterval,
    family: usize,
    trials: &[usize],
    pairs: usize,
) -> Option<LeastCoverage> {
    let all = shapes()
        .into_iter()
        .flat_map(|shapes| trials.iter().map(move |trials| (shapes, *trials)));
    let found = all.filter_map(|(shapes, trials)| {
        let missed = share_apart(interval, shapes, 1.0, (trials, family), pairs)?;
        let coverage = (1.0 - missed).powi(family as i32);
        let error = family as f64 * (missed * (1.0 - missed) / pairs as f64).sqrt();
        Some(LeastCoverage {
            coverage,
            error,
            shapes,
            trials,
        })
    });
    found.min_by(|a, b| a.coverage.total_cmp(&b.coverage))
}
