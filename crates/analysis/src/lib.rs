//! iolab-analysis: cells, curves, time and comparisons, as pure functions of a record.
//!
//! Files to begin with:
//! - `analysis.rs`: the cells of a run, `bends.rs`: bends of curves, `disturbance.rs`: disturbances around
//!   trials, `io_limit.rs`: limits that were reached.
//! - `compare.rs`: two sides, `runs.rs`: several runs of each side.
//! - `claim.rs`: claims of runs as data, `doubt.rs`: evidence against a claim, `trust.rs`: how far an output can
//!   be trusted.
//! - `analysed_run.rs`: a run with the answer to its question, `fitness.rs`: whether service levels hold, `slo.rs`: the
//!   search for the highest rate at which they do.
//! - `headline_numbers.rs`: the most commonly compared numbers, `snapshot.rs`: a run in progress.

// Sentences are made in `report`: the macros that make them are denied here, except in tests and in
// `refusal.rs`. See clippy.toml.
#![cfg_attr(not(test), deny(clippy::disallowed_macros))]
#![cfg_attr(test, allow(clippy::disallowed_macros, clippy::disallowed_fields))]

pub mod analysed_run;
pub mod analysis;
pub mod bends;
pub mod carried_below;
pub mod claim;
pub mod compare;
pub mod consent;
pub mod curve;
pub mod disturbance;
pub mod doubt;
pub mod equivalence;
pub mod fitness;
pub mod headline_numbers;
pub mod io_limit;
mod refusal;
pub mod runs;
pub mod slo;
pub mod snapshot;
pub mod timeline;
pub mod trial_values;
pub mod trust;
