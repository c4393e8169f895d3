//! A ratio as data: the fields of the JSON of claims and comparisons.

use iolab_analysis::claim::Estimate;
use iolab_analysis::doubt::RatioBound;
use schemars::JsonSchema;
use serde::Serialize;

/// One side over another, with the ends of the interval that decides.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Ratio {
    /// The one over the other: the median over the blocks that both share, or the ratio of the medians; `null` where there is none, or
    /// with `ratio_bound`.
    ratio: Option<f64>,
    /// Low end of the interval that decides, which holds in 95 % for all comparisons at once; `null` with too few trials. With `ratio_bound`
    /// `at_least` the bound, with `at_most` `null`.
    ratio_low: Option<f64>,
    /// High end of that interval. With `ratio_bound` `at_most` the bound, with `at_least` `null`.
    ratio_high: Option<f64>,
    /// `at_least` or `at_most` where one side did not hold its rate: its times grow with the length of a trial, so that the ratio is known
    /// to be beyond the bound, and not how far; otherwise `null`.
    ratio_bound: Option<&'static str>,
}

impl Ratio {
    /// Ratio of an estimate; all fields are `None` without one.
    pub(crate) fn of(estimate: Option<&Estimate>) -> Self {
        Self::new(
            estimate.map(|estimate| estimate.ratio),
            estimate.and_then(|estimate| estimate.interval),
            estimate.and_then(|estimate| estimate.bound),
        )
    }

    /// One with its interval, or as the bound that it is.
    pub(crate) fn new(
        ratio: Option<f64>,
        interval: Option<(f64, f64)>,
        bound: Option<RatioBound>,
    ) -> Self {
        let (ratio_low, ratio_high) = interval.unzip();
        let exact = Self {
            ratio,
            ratio_low,
            ratio_high,
            ratio_bound: None,
        };
        let Some((bound, ratio)) = bound.zip(ratio) else {
            return exact;
        };
        let end = Some(bound.of(ratio, interval));
        let (ratio_low, ratio_high) = match bound {
            RatioBound::AtLeast => (end, None),
            RatioBound::AtMost => (None, end),
        };
        Self {
            ratio: None,
            ratio_low,
            ratio_high,
            ratio_bound: Some(bound.name()),
        }
    }
}
