//! iolab-engine: issues storage I/O and times it. Knows nothing of experiments.

pub mod counters;
pub mod error;
pub mod outcome;
pub mod spec;
pub mod target;

pub use error::{Error, Kind, Result};
