//! All summary statistics of one sample.

use serde::Serialize;

use crate::describe::{
    cv_of, mad_of_sorted, mean_of_sorted, median_of_sorted, quartiles_of_sorted, sd_of_sorted,
    sorted,
};
use crate::interpolated::median_interpolated_of_sorted;
use crate::interval::{Interval, mean_interval_of, median_interval_of_sorted};

/// The confidence of every interval in a [`Summary`].
pub const CONFIDENCE: f64 = 0.95;

/// Summary statistics of one sample, in the unit of the data unless noted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// Number of values.
    pub n: usize,
    /// Least value.
    pub min: f64,
    /// First quartile.
    pub q1: f64,
    /// Median.
    pub median: f64,
    /// Third quartile.
    pub q3: f64,
    /// Greatest value.
    pub max: f64,
    /// Order-statistic interval of the median; `None` below 6 values.
    pub median_interval: Option<Interval>,
    /// Interpolated order-statistic interval of the median; `None` below 6 values.
    pub median_interpolated: Option<Interval>,
    /// Median absolute deviation, not scaled; see [`mad`](crate::mad()).
    pub mad: f64,
    /// Mean; `None` when the sum overflows.
    pub mean: Option<f64>,
    /// Standard deviation with `n - 1`; `None` below 2 values.
    pub sd: Option<f64>,
    /// Coefficient of variation, `sd / |mean|`, without unit; `None` below 2 values or for a mean of 0.
    pub cv: Option<f64>,
    /// Student's t interval of the mean; `None` below 2 values.
    pub mean_interval: Option<Interval>,
}

impl Summary {
    /// The first and the third quartile; `None` below 2 values, which have no spread.
    pub fn quartiles(&self) -> Option<(f64, f64)> {
        (self.n > 1).then_some((self.q1, self.q3))
    }

    /// Half the width of the median's interval over the median; `None` below 6 values.
    pub fn precision(&self) -> Option<f64> {
        self.median_interval?.relative_half_width(self.median)
    }
}

/// Summarises the data, with intervals at [`CONFIDENCE`]. Sorts it only once.
///
/// `None` when the data is empty or contains a value that is not finite.
pub fn summary(data: &[f64]) -> Option<Summary> {
    let x = sorted(data)?;
    let (q1, q3) = quartiles_of_sorted(&x);
    let (mean, sd) = (mean_of_sorted(&x), sd_of_sorted(&x));
    Some(Summary {
        n: x.len(),
        min: x[0],
        q1,
        median: median_of_sorted(&x),
        q3,
        max: x[x.len() - 1],
        median_interval: median_interval_of_sorted(&x, CONFIDENCE),
        median_interpolated: median_interpolated_of_sorted(&x, CONFIDENCE),
        mad: mad_of_sorted(&x),
        mean,
        sd,
        cv: mean.zip(sd).and_then(|(mean, sd)| cv_of(mean, sd)),
        mean_interval: mean
            .zip(sd)
            .and_then(|(mean, sd)| mean_interval_of(x.len(), mean, sd, CONFIDENCE)),
    })
}
