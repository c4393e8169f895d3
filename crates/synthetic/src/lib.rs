//! iolab-synthetic: run records with a known truth, so that claims about them can be graded. For tests; no I/O.
//!
//! Files to begin with: `scenario.rs` describes a run by a truth and the cells of an experiment,
//! `scenario_runs.rs` makes it. `truth.rs` has the truth of a run; `grade.rs` measures how often claims are
//! true. `made_up.rs` is the lower layer: records made trial by trial.

mod cell_selection;
mod curve;
mod disturbance;
mod grade;
mod made_up;
mod noise;
mod over_time;
pub mod ratio_coverage;
mod scenario;
mod scenario_runs;
mod traced_trials;
mod trial_course;
mod truth;

pub use cell_selection::At;
pub use curve::Curve;
pub use disturbance::{Disturbance, Disturber, Evidence};
pub use grade::{Outcome, Score, grade, grade_each};
pub use made_up::{
    STEADY_MB_S, add_cell, add_trial, around, by_ranks, daily_runs, latencies, later_run,
    rate_behind, rate_report, record, serve, size_curve, trial,
};
pub use noise::{Draws, Noise};
pub use over_time::OverTime;
pub use scenario::{Change, Common, Scenario, WarmUp};
pub use traced_trials::{LAYERS, LayerShares, Layers, SYNC_LAYERS, traced};
pub use trial_course::{latency_inside, throughput_inside};
pub use truth::{TrueCell, TrueChange, Truth};
