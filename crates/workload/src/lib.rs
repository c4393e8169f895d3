//! iolab-workload: what a trial can be asked and what it yields, the settings of experiments, the offsets and data of requests,
//! sizes and durations as users write them, and the one error type. Plain data: no I/O, no clock.
//!
//! Files to begin with: `trial.rs` what a trial is asked (`trial/check.rs` what it cannot be asked), `group.rs` groups
//! of a trial, `stripe.rs` one trial over several targets, `pattern.rs` which bytes requests go to, `outcome.rs` what it yields, `settings.rs` the one table of
//! settings (`settings/` its rows by topic), `units.rs` and `quantity.rs` sizes and values as people read and write
//! them, `named.rs` enums with one name per value.

pub mod access;
pub mod command_template;
pub mod counters;
pub mod cpus;
mod error;
pub mod escape_control;
pub mod foreign_options;
pub mod group;
pub mod linkage;
pub mod medium;
mod named;
pub mod names;
pub mod operation;
pub mod operation_summary;
pub mod outcome;
pub mod pattern;
pub mod quantity;
pub mod region_state;
pub mod request_sizes;
pub mod response;
pub mod series;
pub mod service_level;
pub mod settings;
pub mod stages;
pub mod stripe;
pub mod target;
pub mod tool;
pub mod trial;
pub mod units;
pub mod verify;
pub mod workload_code;

pub use error::{Error, Kind, Result};
pub use iolab_latency as histogram;
