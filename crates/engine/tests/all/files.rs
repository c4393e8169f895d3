//! Folders and scratch files that trials are carried out on.

use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use iolab_engine::trial;
use iolab_host::clock::Clock;
use iolab_storage::{Need, Target};
use iolab_workload::Result;
use iolab_workload::outcome::Outcome;
use iolab_workload::trial::TrialSpec;

/// In the build folder, which lies on storage, where direct I/O has a chance; /tmp may be memory.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder")
}

/// A scratch file of `size` bytes, and its folder.
pub(crate) fn scratch(size: u64) -> (tempfile::TempDir, Target) {
    let folder = folder();
    let target = Target::open(folder.path(), &Need::writing(size)).expect("a scratch file");
    target
        .fill(7, &AtomicBool::new(false), &mut |_| {})
        .expect("filled");
    (folder, target)
}

/// The clock of all trials here: measuring it takes longer than most of them.
pub(crate) fn clock() -> &'static Clock {
    static CLOCK: LazyLock<Clock> = LazyLock::new(Clock::calibrate);
    &CLOCK
}

/// Carries a trial out to its end.
pub(crate) fn run(spec: &TrialSpec, target: &Target) -> Result<Outcome> {
    trial::run(spec, target, clock(), &AtomicBool::new(false))
}
