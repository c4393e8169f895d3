//! Position on a grid at which the share of successes falls through one half: Bayes' rule over falling curves.
//!
//! The share of successes at a position `x` is modelled as `(1 - l) Φ((m - x) / s)`: it falls over about `s`
//! positions, and a share `l` of the trials fails at any position. Sources: Kontsevich and Tyler, Vision
//! Research 39 (1999) 2729-2737, for the posterior of threshold and slope from trials at positions that earlier
//! trials chose; Wichmann and Hill, Perception & Psychophysics 63 (2001) 1293-1313, for the lapses.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::distributions::{cdf, quantile};

/// Successes and trials, by position.
pub type Outcomes = BTreeMap<i32, (u32, u32)>;

/// Candidates for the threshold per position.
const FINER: i32 = 2;
/// Widths of the fall, in positions; equally likely a priori.
const SLOPES: [f64; 7] = [0.3, 0.6, 1.2, 2.4, 4.8, 9.6, 16.0];
/// Shares of trials that fail at any position, with their prior probabilities.
const LAPSES: [(f64, f64); 6] = [
    (0.01, 0.35),
    (0.05, 0.2),
    (0.1, 0.15),
    (0.2, 0.15),
    (0.3, 0.1),
    (0.4, 0.05),
];
/// The probability that a trial contradicts the model, at any position, so that no outcome is impossible.
const SURPRISE: f64 = 0.002;
/// Distances of a candidate from a position are capped at this; the curve is flat beyond.
const FAR: i32 = 120 * FINER;
/// The threshold may lie this many positions beyond those with trials.
const BEYOND: i32 = 20;
/// Highest absolute position, since each takes memory.
const PLACE_MAX: u32 = 1 << 12;

/// The posterior distribution of the threshold.
#[derive(Debug, Clone)]
pub struct Threshold {
    /// The first candidate.
    first: i32,
    /// Cumulative probability, by candidate.
    cumulative: Vec<f64>,
}

impl Threshold {
    /// The posterior after these trials. Without any, every position between the ends and up to 20 beyond is equally likely.
    /// `None` where a position has more successes than trials, or is farther than 4,096 from 0.
    pub fn of(outcomes: &Outcomes, ends: (i32, i32)) -> Option<Self> {
        let least = outcomes.keys().next().copied().unwrap_or(ends.0);
        let greatest = outcomes.keys().last().copied().unwrap_or(ends.1);
        let is_near = |place: i32| place.unsigned_abs() <= PLACE_MAX;
        let possible = |(successes, trials): &(u32, u32)| successes <= trials;
        if !is_near(least) || !is_near(greatest) || !outcomes.values().all(possible) {
            return None;
        }
        let first = (least - BEYOND) * FINER;
        let last = (greatest + BEYOND) * FINER;
        let curves = curves();
        let counted: Vec<(i32, f64, f64)> = outcomes
            .iter()
            .map(|(place, (successes, trials))| {
                (*place, f64::from(*successes), f64::from(trials - successes))
            })
            .collect();
        let evidence: Vec<Vec<f64>> = (first..=last)
            .map(|candidate| curves.evidence(candidate, &counted))
            .collect();
        let best = evidence.iter().flatten().copied().fold(f64::MIN, f64::max);
        let weigh = |of: &Vec<f64>| of.iter().map(|log| (log - best).exp()).sum::<f64>();
        let mut cumulative: Vec<f64> = evidence
            .iter()
            .map(weigh)
            .scan(0.0, |sum, weight| {
                *sum += weight;
                Some(*sum)
            })
            .collect();
        let all = cumulative.last().copied().unwrap_or(1.0);
        cumulative.iter_mut().for_each(|sum| *sum /= all);
        Some(Self { first, cumulative })
    }

    /// Position below which the threshold lies with this probability.
    pub fn quantile(&self, probability: f64) -> f64 {
        let at = self.cumulative.partition_point(|sum| *sum < probability);
        f64::from(self.first + at as i32) / f64::from(FINER)
    }
}

/// Every width combined with every share of lapses.
struct Curves {
    /// Logarithms of the prior probabilities.
    prior: Vec<f64>,
    /// By the distance from candidate to position: for each curve the logarithms of the probabilities of success and failure.
    logs: Vec<Vec<(f64, f64)>>,
}

fn curves() -> &'static Curves {
    static CURVES: OnceLock<Curves> = OnceLock::new();
    CURVES.get_or_init(|| {
        let all = || {
            SLOPES.iter().flat_map(|slope| {
                LAPSES
                    .iter()
                    .map(move |(lapses, prior)| (*slope, *lapses, *prior))
            })
        };
        let at = |distance: i32| {
            all().map(move |(slope, lapses, _)| {
                // One half at the threshold itself.
                let middle = quantile(0.5 / (1.0 - lapses));
                let above = f64::from(distance) / f64::from(FINER);
                let share = (1.0 - lapses) * cdf(middle + above / slope);
                let share = share.clamp(SURPRISE, 1.0 - SURPRISE);
                (share.ln(), (1.0 - share).ln())
            })
        };
        Curves {
            prior: all().map(|(_, _, prior)| prior.ln()).collect(),
            logs: (-FAR..=FAR)
                .map(|distance| at(distance).collect())
                .collect(),
        }
    })
}

impl Curves {
    /// For each curve, the logarithm of the posterior of a threshold up to a constant, after the successes and failures at each
    /// position.
    fn evidence(&self, candidate: i32, counted: &[(i32, f64, f64)]) -> Vec<f64> {
        let mut evidence = self.prior.clone();
        for (place, successes, failures) in counted {
            let distance = (candidate - place * FINER).clamp(-FAR, FAR) + FAR;
            let logs = &self.logs[distance as usize];
            for (sum, (log_success, log_failure)) in evidence.iter_mut().zip(logs) {
                *sum += successes * log_success + failures * log_failure;
            }
        }
        evidence
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_trial_it_lies_anywhere() {
        let known = Threshold::of(&Outcomes::new(), (-10, 30)).unwrap();
        // From 20 places below the first end to 20 above the second.
        for (probability, place) in [(0.0, -30.0), (0.5, 10.0), (1.0, 50.0)] {
            assert_eq!(known.quantile(probability), place, "{probability}");
        }
    }

    #[test]
    fn what_cannot_be_has_none() {
        let with = |place, outcome| Threshold::of(&Outcomes::from([(place, outcome)]), (0, 10));
        assert!(with(3, (2, 2)).is_some());
        assert!(with(3, (3, 2)).is_none());
        assert!(with(i32::MIN, (1, 2)).is_none());
        assert!(Threshold::of(&Outcomes::new(), (0, i32::MAX)).is_none());
    }
}
