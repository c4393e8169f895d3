//! Trials on files. One program, so that it is linked once; tests that need a process of their own start it anew.

mod busy_cpu;
mod files;
mod groups;
mod memory;
mod own_files;
mod reference;
mod sigbus;
mod trial;
mod trims;

use iolab_workload::trial::{Backend, CacheState, TrialSpec};
use needs::Need;

/// The feature that this machine lacks when a trial of a plain file is refused; `None` if every machine can run it.
fn lacking(spec: &TrialSpec) -> Option<Need> {
    match (spec.cache, spec.backend) {
        _ if spec.trim_percent > 0 => Some(Need::Trim),
        (CacheState::Direct, _) => Some(Need::DirectIo),
        (_, Backend::Libaio) => Some(Need::Libaio),
        (_, Backend::IoUring) => Some(Need::IoUring),
        _ => None,
    }
}

/// Records what the machine lacks.
///
/// # Panics
/// If the trial would be possible on any machine.
#[track_caller]
fn skip(spec: &TrialSpec, error: &iolab_workload::Error) {
    match lacking(spec) {
        Some(need) => needs::skip(need, error),
        None => panic!("{spec:?}: {error}"),
    }
}
