//! Methods that were compared with those in use and are not used: docs/METHODS.md, "Which interval for a ratio" and
//! "Interpolated intervals and the stopping rule", says why. For the examples of `iolab-synthetic` that make its tables.

mod ratio_of_medians;
mod trimmed;

pub use ratio_of_medians::{ratio_of_medians, ratio_of_medians_recovered};
pub use trimmed::trimmed_test_dependent;
