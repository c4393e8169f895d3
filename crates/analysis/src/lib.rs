//! iolab-analysis: cells, curves, time and comparisons: numbers, pure functions of a record.
//!
//! Files to begin with: `analysis.rs` cells, `compare.rs` two sides, `runs.rs` several runs of each, `gate.rs` a new
//! run against earlier ones, `history.rs` runs over time, `bends.rs` where a curve bends, `headline_numbers.rs` the numbers that
//! are compared most, `sparkline.rs` a run as one small curve, `snapshot.rs` a run under way, `claim.rs` what runs show, as data, `doubt.rs` what speaks against an
//! answer, `fitness.rs`
//! whether service levels hold, `slo.rs` the search for the greatest rate at which they do, `answer.rs` what a run answers to its
//! question, `witness.rs` what the observation of a program shows.

pub mod analysed_run;
pub mod analysis;
pub mod answer;
pub mod bends;
pub mod claim;
pub mod compare;
pub mod curve;
pub mod doubt;
pub mod equivalence;
pub mod fitness;
pub mod gate;
pub mod headline_numbers;
pub mod history;
pub mod imbalance;
pub mod latencies;
pub mod optimum;
pub mod preparation;
pub mod refine;
pub mod runs;
pub mod series_tests;
pub mod slo;
pub mod snapshot;
pub mod sparkline;
pub mod thresholds;
pub mod timeline;
pub mod witness;
