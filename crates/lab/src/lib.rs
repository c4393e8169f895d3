//! iolab-lab: experiment, plan, runner, evidence, environment, run file, analysis.

pub mod record;
pub mod units;

pub use iolab_engine::{Error, Kind, Result};
