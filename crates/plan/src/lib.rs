//! iolab-plan: experiments, suites and the plan of their cells, without I/O.
//!
//! Files to begin with: `experiment.rs`, `suite.rs`, `cells.rs` (a `Plan`, and the `FittedPlan` that follows from it),
//! `blocks.rs` randomised blocks. `experiment/inquiry.rs` the difference that an experiment explains, `suspect.rs` possible causes.
//! `experiments/*.toml` and `suites/*.toml` are the built-in ones.

/// Definitions in a folder, each by its name with its TOML text.
#[macro_export]
macro_rules! definitions {
    ($folder:literal, $($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!($folder, $name, ".toml")))),*]
    };
}

pub mod batch_probes;
pub mod blocks;
pub mod cells;
pub mod experiment;
pub mod forecast;
pub mod precondition;
pub mod read_user_file;
pub mod standard;
pub mod suite;
pub mod suspect;
