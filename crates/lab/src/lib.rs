//! iolab-lab: experiment, plan, runner, evidence, environment, run file, analysis.

pub mod analysis;
pub mod curve;
pub mod findings;
pub mod quantity;
pub mod record;
pub mod settings;
pub mod units;

pub use iolab_engine::{Error, Kind, Result};
