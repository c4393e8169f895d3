//! iolab-workload: the settings of a trial and its results, the settings of experiments, the offsets and data of requests, sizes
//! and durations as users write them, and the error type. Plain data: no I/O, no clock.
//!
//! Files to begin with: `settings.rs` the table of settings, `trial.rs` the settings of a trial, `group.rs` its groups.
//! `pattern.rs` the offsets of requests, `outcome.rs` results, `response.rs` quantities, `units.rs` how sizes are written.

pub mod command_template;
pub mod counters;
mod error;
pub mod escape_control;
pub mod foreign_options;
pub mod group;
pub mod json;
pub mod names;
pub mod operation;
pub mod outcome;
pub mod pattern;
pub mod region_state;
pub mod response;
pub mod series;
pub mod service_level;
pub mod settings;
pub mod stages;
pub mod system_settings;
pub mod trial;
pub mod trial_description;
pub mod units;
pub mod virtual_disk;

pub use error::{Error, Kind, Result};
pub use iolab_latency as histogram;
#[doc(hidden)]
pub use {schemars, serde};

/// An array with one or two lines a row, for which rustfmt would use five.
#[macro_export]
macro_rules! table {
    ($($row:expr;)+) => {
        [$($row),+]
    };
}
