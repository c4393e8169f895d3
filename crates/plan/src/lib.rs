//! iolab-plan: Experiments, suites and the plan of their cells, without I/O
//!
//! Files to begin with: `experiment.rs`, `suite.rs`, `cells.rs` (a `Plan`, and the `FittedPlan` that follows from it),
//! `blocks.rs` randomised blocks; `requirement.rs` what a purpose asks of storage; `experiment/inquiry.rs` one that finds a cause,
//! `suspect.rs` and `suspects/` what may be one; `experiments/*.toml`,
//! `suites/*.toml` and `requirements/*.toml`, found by the build.

pub mod batch_probes;
pub mod blocks;
pub mod carry_over;
pub mod cells;
pub mod experiment;
pub mod forecast;
pub mod precondition;
pub mod read_user_file;
pub mod requirement;
pub mod standard;
pub mod suite;
pub mod suspect;
pub mod untried_suspect;
