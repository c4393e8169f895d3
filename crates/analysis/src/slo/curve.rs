//! Where the share of trials that keep the levels falls through one half: Bayes' rule over curves that fall with the rate.
//!
//! The share of trials that keep the levels at a place `x` on the logarithmic grid of rates is modelled as
//! `(1 - l) Φ((m - x) / s)`: it falls over about `s` places, and a share `l` of the trials misses the levels at any rate,
//! because the machine or the storage stalls. The limit is where it is one half. Sources: Kontsevich and Tyler, Vision Research
//! 39 (1999) 2729-2737, for the posterior of threshold and slope from trials at places that earlier trials chose; Wichmann and
//! Hill, Perception & Psychophysics 63 (2001) 1293-1313, for the lapses.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use iolab_stats::{normal_cdf, normal_quantile};

/// Kept trials and all trials by the place of their rate.
pub(super) type Visits = BTreeMap<i32, (u32, u32)>;

/// Candidates for the limit per place.
const FINER: i32 = 2;
/// Over how many places the share falls: from 1 % of the rate to a doubling, equally likely.
const SLOPES: [f64; 7] = [0.3, 0.6, 1.2, 2.4, 4.8, 9.6, 16.0];
/// Which share of the trials misses the levels at any rate, and how likely that is.
const LAPSES: [(f64, f64); 6] = [
    (0.01, 0.35),
    (0.05, 0.2),
    (0.1, 0.15),
    (0.2, 0.15),
    (0.3, 0.1),
    (0.4, 0.05),
];
/// No single trial is impossible: whatever the rate, one in so many turns out the other way.
const SURPRISE: f64 = 0.002;
/// Candidates farther away than this from a place count as this far: nothing changes there.
const FAR: i32 = 120 * FINER;
/// How many places beyond the rates that were visited the limit may lie.
const BEYOND: i32 = 20;

/// Which limits are how likely after the trials.
#[derive(Debug, Clone)]
pub(super) struct Posterior {
    /// The first candidate.
    first: i32,
    /// Cumulative probability, by candidate.
    cumulative: Vec<f64>,
}

impl Posterior {
    /// After these trials; equally likely everywhere without any.
    pub(super) fn of(visits: &Visits, ends: (i32, i32)) -> Self {
        let least = visits.keys().next().copied().unwrap_or(ends.0);
        let greatest = visits.keys().last().copied().unwrap_or(ends.1);
        let first = (least - BEYOND) * FINER;
        let last = (greatest + BEYOND) * FINER;
        let curves = curves();
        let evidence: Vec<Vec<f64>> = (first..=last)
            .map(|candidate| curves.evidence(candidate, visits))
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
        Self { first, cumulative }
    }

    /// The place below which the limit lies with this probability.
    pub(super) fn quantile(&self, probability: f64) -> f64 {
        let at = self.cumulative.partition_point(|sum| *sum < probability);
        f64::from(self.first + at as i32) / f64::from(FINER)
    }
}

/// Every slope with every share of lapses.
struct Curves {
    /// Logarithms of the prior probabilities.
    prior: Vec<f64>,
    /// By the distance from candidate to place: for each curve the logarithms of the shares kept and missed.
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
                // One half at the limit itself.
                let middle = normal_quantile(0.5 / (1.0 - lapses));
                let above = f64::from(distance) / f64::from(FINER);
                let share = (1.0 - lapses) * normal_cdf(middle + above / slope);
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
    /// The logarithm of the probability of a limit with each curve, up to a constant.
    fn evidence(&self, candidate: i32, visits: &Visits) -> Vec<f64> {
        let mut evidence = self.prior.clone();
        for (place, (kept, trials)) in visits {
            let distance = (candidate - place * FINER).clamp(-FAR, FAR) + FAR;
            let (kept, missed) = (f64::from(*kept), f64::from(trials - kept));
            for (sum, (log_kept, log_missed)) in
                evidence.iter_mut().zip(&self.logs[distance as usize])
            {
                *sum += kept * log_kept + missed * log_missed;
            }
        }
        evidence
    }
}
