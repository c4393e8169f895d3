//! iolab-host: the clock, the counters of kernel and processor during a trial, and the description of the
//! machine and its devices. It issues none of a trial's own I/O.
//!
//! Files to begin with: `clock.rs` (time stamps), `observation.rs` (readings around the timed span),
//! `counters/` (one file per source), `perf.rs` (processor counters), `program.rs` (a program that runs as a
//! trial). `device.rs` describes a block device with the devices below it; `machine.rs` and `processor.rs` the
//! machine with its load; `cgroup.rs` limits of this process. `system_control.rs` changes kernel settings for
//! trials.

#![allow(unsafe_code)] // system calls that no safe crate has

pub mod cgroup;
pub mod clock;
pub mod counters;
pub mod device;
pub mod machine;
pub mod observation;
pub mod perf;
pub mod processor;
pub mod program;
pub mod system_control;
pub mod tracing;

use std::fs;
use std::path::Path;

use iolab_storage::sysfs::text_of;

/// Content of a file of `/proc` that may hold names that are not UTF-8; replacement characters mark them.
///
/// # Errors
/// The file cannot be read.
pub fn lossy_text_of(path: impl AsRef<Path>) -> std::io::Result<String> {
    let bytes = fs::read(path)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Entry in brackets of a list such as `none [mq-deadline] kyber`, or the whole text without brackets.
pub fn chosen(text: &str) -> String {
    let inside = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text, |(name, _)| name).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_in_brackets_is_chosen() {
        assert_eq!(chosen("none [mq-deadline] kyber bfq\n"), "mq-deadline");
        assert_eq!(chosen("none\n"), "none");
        assert_eq!(chosen("[none\n"), "[none");
    }
}
