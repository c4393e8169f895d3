//! Quantiles and means of values in clusters, such as the requests of several trials.

use std::borrow::Cow;

use crate::describe::quantile_of_sorted;
use crate::distributions;
use crate::distributions::Resampler;
use crate::interval::{is_confidence, last_within, quantile_ranks};

/// Fewest clusters from which their variation can be estimated, as for the interval of a median.
pub const CLUSTERS_MIN: usize = 6;

/// Most clusters drawn one by one. More are drawn as groups of neighbours of equal size: the interval hardly changes, and the
/// cost stays bounded.
const CLUSTERS_MAX: usize = 1000;

/// A quantity of pooled values, with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pooled {
    /// Value over all clusters.
    pub estimate: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval; `None` if there are too few values for one.
    pub high: Option<f64>,
}

/// The quantile `q` of the values of several clusters, with an interval that holds for values that depend on each other
/// within a cluster. A cluster is given as ascending values, each with how often it occurs.
///
/// The interval is the hull of two. One runs between the order statistics of [`crate::quantile_ranks`], which
/// is exact for independent values, and which no interval can be shorter than. The other is the expanded
/// percentile interval of the bootstrap over clusters. For it whole clusters are drawn with replacement. It
/// runs between two quantiles of the results, at `Φ(∓t sqrt(k / (k - 1)))`. There `k` is the number of clusters
/// and `t` the quantile of Student's t with `k - 1` degrees of freedom. Source: Davison and Hinkley, Bootstrap
/// Methods and their Application (1997), 3.8, for clusters; Hesterberg, "What Teachers Should Know About the
/// Bootstrap", The American Statistician 69 (2015), 4.5, for the expansion.
///
/// Equal seeds give equal intervals. `None` below 6 clusters with values, when the values are too few even for a lower end,
/// and when `q` or `confidence` is not between 0 and 1.
pub fn pooled_quantile(
    clusters: &[&[(f64, u64)]],
    q: f64,
    confidence: f64,
    resamples: usize,
    seed: u64,
) -> Option<Pooled> {
    let clusters = Table::new(clusters);
    let is_quantile = q > 0.0 && q < 1.0;
    if clusters.rows.len() < CLUSTERS_MIN || !is_confidence(confidence) || !is_quantile {
        return None;
    }
    let all = vec![1; clusters.rows.len()];
    let estimate = clusters.quantile(&all, q);
    let n = clusters.total(&all);
    let (low_rank, high_rank, _) = quantile_ranks(n, q, confidence);
    let drawn = clusters.resampled(resamples, seed, |weights| clusters.quantile(weights, q));
    let (low, high) = expanded(&drawn, clusters.rows.len(), confidence)?;
    Some(Pooled {
        estimate,
        low: clusters.at_rank(&all, low_rank?).min(low),
        high: high_rank.map(|rank| clusters.at_rank(&all, rank).max(high)),
    })
}

/// The mean of the values of several clusters, with its bootstrap interval over clusters; see [`pooled_quantile`].
pub fn pooled_mean(
    clusters: &[&[(f64, u64)]],
    confidence: f64,
    resamples: usize,
    seed: u64,
) -> Option<Pooled> {
    let clusters = Table::new(clusters);
    if clusters.rows.len() < CLUSTERS_MIN || !is_confidence(confidence) {
        return None;
    }
    let all = vec![1; clusters.rows.len()];
    let drawn = clusters.resampled(resamples, seed, |weights| clusters.mean(weights));
    let (low, high) = expanded(&drawn, clusters.rows.len(), confidence)?;
    Some(Pooled {
        estimate: clusters.mean(&all),
        low,
        high: Some(high),
    })
}

/// The expanded percentile interval of ascending bootstrap values of `clusters` clusters.
fn expanded(drawn: &[f64], clusters: usize, confidence: f64) -> Option<(f64, f64)> {
    let k = clusters as f64;
    let t = distributions::critical(1.0 - confidence, k - 1.0)?;
    let tail = distributions::cdf(-t * (k / (k - 1.0)).sqrt());
    (!drawn.is_empty()).then(|| {
        (
            quantile_of_sorted(drawn, tail),
            quantile_of_sorted(drawn, 1.0 - tail),
        )
    })
}

/// The values of neighbouring clusters, merged.
fn joined<'a>(clusters: &[&'a [(f64, u64)]]) -> Cow<'a, [(f64, u64)]> {
    if let [only] = clusters {
        return Cow::Borrowed(only);
    }
    let mut all = clusters.concat();
    all.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    all.dedup_by(|(value, n), (kept, count)| {
        let is_same = value == kept;
        if is_same {
            *count = count.saturating_add(*n);
        }
        is_same
    });
    Cow::Owned(all)
}

/// Clusters as counts over all distinct values.
struct Table {
    values: Vec<f64>,
    rows: Vec<Cluster>,
}

/// One cluster of the table.
struct Cluster {
    /// Number of the cluster's values up to each distinct value.
    cumulative: Vec<u64>,
    sum: f64,
}

impl Cluster {
    fn total(&self) -> u64 {
        self.cumulative.last().copied().unwrap_or(0)
    }
}

impl Table {
    fn new(clusters: &[&[(f64, u64)]]) -> Self {
        let filled = clusters.iter().filter(|c| c.iter().any(|(_, n)| *n > 0));
        let filled: Vec<&[(f64, u64)]> = filled.copied().collect();
        let together = filled.len().div_ceil(CLUSTERS_MAX).max(1);
        let joined: Vec<Cow<'_, [(f64, u64)]>> = filled.chunks(together).map(joined).collect();
        let mut values: Vec<f64> = joined
            .iter()
            .flat_map(|c| c.iter().map(|(v, _)| *v))
            .collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let row = |cluster: &Cow<'_, [(f64, u64)]>| {
            let mut left = cluster.iter().peekable();
            let mut count = 0_u64;
            let cumulative = values.iter().map(|value| {
                while let Some((_, n)) = left.next_if(|(v, _)| v <= value) {
                    count = count.saturating_add(*n);
                }
                count
            });
            Cluster {
                cumulative: cumulative.collect(),
                sum: cluster.iter().map(|(v, n)| v * *n as f64).sum(),
            }
        };
        let rows = joined.iter().map(row).collect();
        Self { values, rows }
    }

    /// Number of values in all clusters, each weighted.
    fn total(&self, weights: &[u64]) -> u64 {
        let rows = self.rows.iter().zip(weights);
        let totals = rows.map(|(row, weight)| row.total().saturating_mul(*weight));
        totals.fold(0, u64::saturating_add)
    }

    /// The value of this rank, from 1.
    fn at_rank(&self, weights: &[u64], rank: u64) -> f64 {
        let up_to = |place: usize| -> u64 {
            let rows = self.rows.iter().zip(weights);
            let counts = rows.map(|(row, weight)| row.cumulative[place].saturating_mul(*weight));
            counts.fold(0, u64::saturating_add)
        };
        let are_below = |places: usize| up_to(places - 1) < rank;
        self.values[last_within(0, self.values.len(), are_below)]
    }

    fn quantile(&self, weights: &[u64], q: f64) -> f64 {
        let total = self.total(weights);
        let rank = (total as f64 * q).ceil() as u64;
        self.at_rank(weights, rank.clamp(1, total.max(1)))
    }

    fn mean(&self, weights: &[u64]) -> f64 {
        let rows = self.rows.iter().zip(weights);
        let sum: f64 = rows.map(|(row, weight)| row.sum * *weight as f64).sum();
        sum / self.total(weights).max(1) as f64
    }

    /// The sorted values of a statistic over clusters drawn with replacement.
    fn resampled(
        &self,
        resamples: usize,
        seed: u64,
        statistic: impl Fn(&[u64]) -> f64,
    ) -> Vec<f64> {
        let mut draws = Resampler::new(seed);
        let mut weights = vec![0; self.rows.len()];
        let mut drawn: Vec<f64> = (0..resamples)
            .map(|_| {
                weights.fill(0);
                for _ in 0..self.rows.len() {
                    weights[draws.index(self.rows.len())] += 1;
                }
                statistic(&weights)
            })
            .collect();
        drawn.sort_by(f64::total_cmp);
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clusters of `size` exponential values with mean 1, each cluster slower by its own factor.
    fn clusters(seed: u64, count: usize, size: usize, spread: f64) -> Vec<Vec<(f64, u64)>> {
        let mut draws = Resampler::new(seed);
        let mut uniform = move || (draws.index(1 << 30) as f64 + 0.5) / f64::from(1 << 30);
        (0..count)
            .map(|_| {
                let factor = (spread * distributions::quantile(uniform())).exp();
                let mut values: Vec<f64> = (0..size).map(|_| -uniform().ln() * factor).collect();
                values.sort_by(f64::total_cmp);
                values.into_iter().map(|v| (v, 1)).collect()
            })
            .collect()
    }

    fn borrowed(clusters: &[Vec<(f64, u64)>]) -> Vec<&[(f64, u64)]> {
        clusters.iter().map(Vec::as_slice).collect()
    }

    #[test]
    fn counts_stand_for_as_many_values() {
        let counted: Vec<Vec<(f64, u64)>> = (0..8)
            .map(|i| vec![(1.0, 50), (2.0 + f64::from(i) / 10.0, 50)])
            .collect();
        let single: Vec<Vec<(f64, u64)>> = counted
            .iter()
            .map(|c| {
                c.iter()
                    .flat_map(|(v, n)| vec![(*v, 1); *n as usize])
                    .collect()
            })
            .collect();
        for q in [0.25, 0.5, 0.75, 0.9] {
            let of = |c: &[Vec<(f64, u64)>]| pooled_quantile(&borrowed(c), q, 0.95, 200, 3);
            assert_eq!(of(&counted), of(&single), "{q}");
        }
        let mean = pooled_mean(&borrowed(&counted), 0.95, 200, 3).expect("eight clusters");
        assert!((mean.estimate - 1.675).abs() < 1e-12, "{mean:?}");
    }

    #[test]
    fn interval_covers_the_quantile_as_stated() {
        // -ln(0.01) is the 99th percentile of an exponential; with a spread of 0.3, the mixture's percentile by
        // numerical integration.
        for (spread, truth) in [(0.0, 4.605), (0.3, 5.359)] {
            let mut held = 0;
            for seed in 0..200 {
                let data = clusters(seed, 20, 400, spread);
                let found = pooled_quantile(&borrowed(&data), 0.99, 0.95, 400, seed);
                let found = found.expect("enough values");
                held +=
                    u32::from(found.low <= truth && found.high.is_some_and(|high| truth <= high));
            }
            // 190 of 200 are expected; 0.1 % of experiments with a coverage of 95 % give less than 179.
            assert!(held >= 179, "spread {spread}: {held} of 200");
        }
    }

    #[test]
    fn clusters_that_differ_widen_the_interval() {
        let width = |spread| {
            let data = clusters(5, 20, 400, spread);
            let found = pooled_quantile(&borrowed(&data), 0.5, 0.95, 400, 1).expect("enough");
            found.high.expect("enough") - found.low
        };
        assert!(width(0.5) > 3.0 * width(0.0));
    }

    #[test]
    fn too_few_values_have_no_upper_end() {
        let few = clusters(1, 6, 40, 0.0);
        let found = pooled_quantile(&borrowed(&few), 0.99, 0.95, 100, 1).expect("six clusters");
        assert_eq!(found.high, None);
        assert!(found.low <= found.estimate);
        assert_eq!(
            pooled_quantile(&borrowed(&few[..5]), 0.5, 0.95, 100, 1),
            None
        );
        assert_eq!(pooled_mean(&borrowed(&few[..5]), 0.95, 100, 1), None);
        for q in [-0.1, 0.0, 1.0, f64::NAN] {
            assert_eq!(pooled_quantile(&borrowed(&few), q, 0.95, 100, 1), None);
        }
    }
}
