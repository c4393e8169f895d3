//! The built-in experiments, collected from `experiments/` by the build.

/// Name and TOML text of every built-in experiment, in alphabetical order.
pub const BUILTIN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/experiments.rs"));
