//! iolab-engine: issues storage I/O and times it. Knows nothing of experiments.

mod backend;
mod buffer;
pub mod clock;
pub mod counters;
pub mod error;
mod gate;
mod headroom;
pub mod histogram;
mod looks;
pub mod meminfo;
pub mod outcome;
pub mod pattern;
mod perf;
pub mod program;
pub mod schedule;
pub mod series;
pub mod spec;
pub mod target;
pub mod trial;
pub mod verify;
pub mod witness;
mod worker;

pub use error::{Error, Kind, Result};
