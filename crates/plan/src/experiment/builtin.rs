//! The experiments that are compiled in: the build finds them in `experiments/`.

/// Name and TOML text of every built-in experiment, in alphabetical order.
pub const BUILTIN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/experiments.rs"));
