//! A series of numbers as text: a summary, and warnings about it.

use iolab_analysis::trial_values::SeriesTests;
use iolab_stats::{Interval, Summary};
use iolab_workload::units::{digits, format_p, format_percent};
use serde_json::{Value, json};

use crate::findings::sentences::median_of_groups;
use crate::layout::none;

/// Level of the tests for dependence and drift.
const ALPHA: f64 = 0.05;

/// The series for a terminal.
pub fn text(s: &Summary, series_tests: &SeriesTests) -> String {
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
    out
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

/// All figures at full precision.
pub fn json(name: &str, summary: &Summary, series_tests: &SeriesTests) -> Value {
    json!({"name": name, "summary": summary, "tests": series_tests})
}
