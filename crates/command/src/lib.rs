//! iolab-command: what the commands of iolab have in common: the run files that they read, their output, how they end.
//!
//! Files to begin with: `lists.rs` the lists of the program, `run_files.rs`, `output.rs`, `failure.rs` how they end.

pub mod escape_output;
pub mod exit;
pub mod failure;
pub mod lists;
pub mod output;
pub mod output_format;
pub mod run_files;
