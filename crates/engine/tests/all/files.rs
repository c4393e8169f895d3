//! Folders and scratch files that trials are carried out on.

use std::sync::atomic::AtomicBool;

use iolab_spec::trial::Limit;
use iolab_target::{Need, Target};

/// In the build folder, which lies on storage, where direct I/O has a chance; /tmp may be memory.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder")
}

/// A scratch file of so many bytes, and its folder.
pub(crate) fn scratch(size: u64) -> (tempfile::TempDir, Target) {
    let folder = folder();
    let target = Target::open(folder.path(), &Need::writing(size)).expect("a scratch file");
    target
        .fill(7, &AtomicBool::new(false), &mut |_| {})
        .expect("filled");
    (folder, target)
}

/// A trial of so many requests.
pub(crate) fn requests(count: u64) -> Limit {
    Limit {
        requests: Some(count),
        ..Limit::default()
    }
}
