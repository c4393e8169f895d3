//! Methods that were compared with those in use and decide nothing: docs/VALIDATION.md, "Intervals",
//! says why. For the examples of `iolab-synthetic` that compare them.

use crate::describe::sorted;
use crate::interpolated::median_interpolated_of_sorted;
use crate::interval::Interval;

mod ratio_of_medians;
mod trimmed;

pub use ratio_of_medians::{ratio_of_medians, ratio_of_medians_recovered};
pub use trimmed::trimmed_test_dependent;

/// The interval of [`Summary::median_interpolated`](crate::Summary::median_interpolated) at any confidence.
pub fn median_interval_interpolated(data: &[f64], confidence: f64) -> Option<Interval> {
    median_interpolated_of_sorted(&sorted(data)?, confidence)
}
