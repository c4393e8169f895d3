//! A series of numbers as text: a summary, warnings about it, a histogram.

use iolab_analysis::trial_values::SeriesTests;
use iolab_stats::{Interval, Summary};
use iolab_workload::units::{digits, format_p, format_percent};
use serde_json::{Value, json};

use crate::chart::{Style, solid_bar};
use crate::findings::sentences::median_of_groups;
use crate::layout::none;

/// Most bins of a histogram on a screen.
const BINS_MAX: usize = 20;
/// Level of the tests for dependence and drift.
const ALPHA: f64 = 0.05;

/// The series for a terminal.
pub fn text(s: &Summary, series_tests: &SeriesTests, values: &[f64], style: Style) -> String {
    let interval = |interval: Option<Interval>| match interval {
        Some(Interval {
            low, high, ranks, ..
        }) => {
            let ranks = ranks.map_or_else(String::new, |(a, b)| {
                format!(", values {a} and {b} in order")
            });
            format!("  95 % interval {} to {}{ranks}", number(low), number(high))
        }
        None => "  too few values for a 95 % interval".to_owned(),
    };
    let optional = |value: Option<f64>| value.map_or_else(none, number);
    let lines = [
        ("n", s.n.to_string()),
        ("median", number(s.median) + &interval(s.median_interval)),
        ("mean", optional(s.mean) + &interval(s.mean_interval)),
        (
            "sd",
            format!(
                "{}  cv {}",
                optional(s.sd),
                s.cv.map_or_else(none, format_percent)
            ),
        ),
        ("MAD", number(s.mad)),
        (
            "range",
            format!(
                "{} to {}  quartiles {} and {}",
                number(s.min),
                number(s.max),
                number(s.q1),
                number(s.q3)
            ),
        ),
    ];
    let mut out = String::new();
    for (name, text) in lines {
        out.push_str(&format!("{name:<8}{text}\n"));
    }
    for warning in warnings(series_tests) {
        out.push_str(&format!("note    {warning}\n"));
    }
    out.push('\n');
    out + &histogram(values, style)
}

/// More digits than for a measured value, since the resolution of a plain number is unknown.
fn number(value: f64) -> String {
    digits(value, 5)
}

/// Warnings about the intervals.
fn warnings(series_tests: &SeriesTests) -> Vec<String> {
    let mut warnings = Vec::new();
    let dependent = series_tests.ljung_box.filter(|test| test.p < ALPHA);
    if let (Some(test), Some(lag1)) = (dependent, series_tests.lag1) {
        let worth = series_tests
            .effective_sample_size
            .map_or_else(String::new, |n| {
                format!(", worth about {n:.0} independent ones")
            });
        warnings.push(format!(
            "the values depend on each other (lag-1 correlation {lag1:.2}, Ljung-Box p {}){worth}",
            format_p(test.p)
        ));
    }
    if let Some(trend) = series_tests.trend.filter(|trend| trend.p < ALPHA) {
        let p = format_p(trend.p);
        // The test assumes independent values: others wander far enough for a small p.
        let wander = match dependent.is_some() {
            true => ", or wander: this p holds for independent values",
            false => "",
        };
        warnings.push(match trend.slope_per_trial {
            // Most pairs of values are equal.
            0.0 => {
                let later = if trend.tau > 0.0 { "higher" } else { "lower" };
                format!("later values are {later} (Mann-Kendall p {p}){wander}")
            }
            slope => format!(
                "the values drift by {} from one to the next (Theil-Sen; Mann-Kendall p {p}){wander}",
                number(slope)
            ),
        });
    }
    if let Some(groups) = &series_tests.groups {
        warnings.push(format!(
            "two groups: {} of the values around {}, the others around {}; the median {}",
            format_percent(groups.low_share),
            number(groups.low_median),
            number(groups.high_median),
            median_of_groups(groups.low_share),
        ));
    }
    warnings
}

/// Number of values in each of several equal parts of the range.
fn histogram(values: &[f64], style: Style) -> String {
    let bins = Bins::of(values);
    let counts = bins.counts(values);
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let labels: Vec<String> = (0..counts.len()).map(|i| number(bins.from(i))).collect();
    let widest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
    let label = widest(&mut labels.iter().map(String::len));
    let number = widest(&mut counts.iter().map(|n| n.to_string().len()));
    let room = usize::from(style.width)
        .saturating_sub(label + number + 4)
        .max(8);
    let mut out = String::new();
    for (from, n) in labels.iter().zip(&counts) {
        let bar = solid_bar(*n as f64 / most as f64, room, style.ascii);
        out.push_str(&format!("{from:>label$}  {n:>number$} {bar}"));
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}

/// Equal parts of a range; a single one when all values are equal.
struct Bins {
    least: f64,
    width: f64,
    count: usize,
}

impl Bins {
    /// Bins as wide as Freedman and Diaconis advise, `2 IQR / n^(1/3)` (Z. Wahrscheinlichkeitstheorie 57 (1981)
    /// 453-476). At least as many as Sturges advises, `log2 n + 1` (JASA 21 (1926) 65), which show two groups,
    /// and at most as many as fit a screen.
    fn of(values: &[f64]) -> Self {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (range, iqr) = (
            most - least,
            iolab_stats::quartiles(values).map_or(0.0, |(q1, q3)| q3 - q1),
        );
        if !(range > 0.0 && range.is_finite()) {
            return Self {
                least,
                width: 0.0,
                count: 1,
            };
        }
        let n = values.len() as f64;
        // Without an IQR the quotient is infinite: uses as many parts as permitted.
        let wanted = (range / (2.0 * iqr / n.cbrt())).max(n.log2() + 1.0);
        let count = wanted.ceil().clamp(2.0, BINS_MAX as f64) as usize;
        Self {
            least,
            width: range / count as f64,
            count,
        }
    }

    fn from(&self, index: usize) -> f64 {
        self.least + self.width * index as f64
    }

    fn counts(&self, values: &[f64]) -> Vec<usize> {
        let mut counts = vec![0; self.count];
        for value in values {
            let index = if self.width > 0.0 {
                ((value - self.least) / self.width) as usize
            } else {
                0
            };
            counts[index.min(self.count - 1)] += 1;
        }
        counts
    }
}

/// All figures at full precision.
pub fn json(name: &str, summary: &Summary, series_tests: &SeriesTests) -> Value {
    json!({"name": name, "summary": summary, "tests": series_tests})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_one_bin() {
        for values in [
            vec![1.0],
            vec![2.0; 50],
            vec![0.0, 1.0],
            (0..1000).map(f64::from).collect(),
            vec![1.0, 1.0, 1.0, 1.0, 1e9],
            vec![-f64::MAX, f64::MAX],
        ] {
            let bins = Bins::of(&values);
            let counts = bins.counts(&values);
            assert_eq!(counts.iter().sum::<usize>(), values.len());
            assert!(counts.len() <= BINS_MAX);
        }
    }
}
