//! Methods that were compared with those in use and decide nothing: docs/VALIDATION.md, "Intervals",
//! says why. For the examples of `iolab-synthetic` that compare them.

mod trimmed;

pub use trimmed::trimmed_test_dependent;
