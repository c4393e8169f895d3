//! A kernel without the system calls that Linux has since 5.1, and a container that forbids them.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::Path;
use std::thread;

use needs::Need;
use rustix::io::Errno;

use crate::support::{Done, TINY, exported, folder, iolab};

/// The system calls that Linux has since 5.1, whose numbers are the same on every architecture: io_uring, `pidfd_open`, `clone3`,
/// `openat2`, `cachestat` and others.
const SINCE_5_1: RangeInclusive<i64> = 425..=470;

/// Runs the binary on a kernel that does not know these calls; a skip where the kernel takes no filters.
#[track_caller]
fn run_without_new_calls(folder: &Path, arguments: &[&[&str]]) -> Option<Done> {
    let arguments = arguments.concat();
    // A seccomp filter stays with the thread, so that a thread of its own runs the command.
    let run = || {
        let calls: Vec<i64> = SINCE_5_1.collect();
        needs::refuse_system_calls(&calls, Errno::NOSYS.raw_os_error())?;
        iolab(folder, &arguments).output()
    };
    match thread::scope(|scope| scope.spawn(run).join()).expect("no panic") {
        Ok(output) => Some(output.into()),
        Err(error) => {
            needs::skip(Need::Seccomp, error);
            None
        }
    }
}

#[test]
fn experiment_omits_and_reports_settings_without_kernel_support() {
    let folder = folder();
    let arguments: [&[&str]; 3] = [
        &["run", "in-flight", "-o", "r.iolab", "--set", "bs=4k"],
        &["--size", "4MiB", "--time", "10ms", "--budget", "2s"],
        &["--set", "trials_max=6"],
    ];
    let Some(done) = run_without_new_calls(folder.path(), &arguments) else {
        return;
    };
    if done.stderr.contains("Linux AIO cannot") {
        return needs::skip(Need::Libaio, &done.stderr);
    }
    let done = done.expect(0);
    let rows = exported(folder.path(), "r.iolab");
    let levels: BTreeSet<_> = rows
        .iter()
        .map(|row| row["level_backend"].as_str())
        .collect();
    assert_eq!(levels, BTreeSet::from([Some("libaio"), Some("psync")]));
    let noted = done.stderr.lines().find(|line| line.contains("io_uring"));
    insta::assert_snapshot!(noted.expect("a note"), @"note: in-flight: left out backend=io_uring: the system refuses io_uring: Function not implemented (os error 38)");
}

#[test]
fn requested_backend_without_support_is_refused_before_writing() {
    let folder = folder();
    let named: [&[&str]; 3] = [
        &["run", "read-random", "-o", "r.iolab"],
        &["--set", "backend=io_uring"],
        &TINY,
    ];
    if let Some(done) = run_without_new_calls(folder.path(), &named) {
        let done = done.expect(2);
        insta::assert_snapshot!(done.stderr, @r"
        error: bs=4KiB: io_uring cannot be set up: Function not implemented (os error 38)
          set backend=libaio or backend=psync
        ");
        let left = std::fs::read_dir(folder.path()).expect("the folder");
        assert_eq!(left.count(), 0);
    }
}
