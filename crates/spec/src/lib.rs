//! iolab-spec: the words. What a trial is asked and what it yields, the settings of experiments, sizes and durations
//! as users write them, and the one error type. Plain data: no I/O, no clock.

pub mod access;
pub mod command;
pub mod counters;
pub mod cpus;
mod error;
pub mod foreign;
pub mod group;
pub mod level;
pub mod linkage;
pub mod medium;
mod named;
pub mod names;
pub mod outcome;
pub mod plain;
pub mod quantity;
pub mod region;
pub mod request_sizes;
pub mod response;
pub mod series;
pub mod settings;
pub mod stripe;
pub mod summary;
pub mod target;
pub mod tool;
pub mod trial;
pub mod units;
pub mod verify;
pub mod workload;

pub use error::{Error, Kind, Result};
pub use iolab_latency as histogram;
