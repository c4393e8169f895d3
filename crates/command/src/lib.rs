//! iolab-command: common parts of iolab's commands: reading run files, output, exit codes.
//!
//! Files to begin with: `lists.rs`: the lists of the program, `run_files.rs`: reading runs, `output.rs`: output,
//! `failure.rs`: the end of a command.

pub mod definition_format;
pub mod escape_output;
pub mod failure;
pub mod lists;
pub mod output;
pub mod output_format;
pub mod run_files;
#[cfg(target_os = "linux")]
pub mod signals;
