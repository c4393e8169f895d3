//! Trials on a real file system: the counts match what happened.

use std::fs;
use std::sync::atomic::AtomicBool;

use iolab_engine::trial;
use iolab_storage::{Need, Target};
use iolab_workload::counters::{Hardware, NoHardware};
use iolab_workload::operation::Moved;
use iolab_workload::outcome::{Ended, Failure, Outcome};
use iolab_workload::series::Interval;
use iolab_workload::trial::{Backend, SyncPolicy, TrialSpec};
use iolab_workload::{Kind, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::files::{self, clock, folder, scratch};
use needs::settings;

const SIZE: u64 = 4 << 20;
const BLOCK: u64 = 4096;

fn spec(sets: &str) -> TrialSpec {
    settings(&format!("region=4M cache=cold {sets}"))
}

pub(crate) fn run(spec: &TrialSpec, target: &Target) -> Result<Outcome> {
    let outcome = files::run(spec, target)?;
    // Also after short transfers and errors, the intervals add up to the totals.
    let mut done = outcome.operations.moved();
    if spec.sync == SyncPolicy::End {
        // Its syncs follow the last interval.
        done.sync = Moved::default();
    }
    assert_eq!(outcome.series.total(), done);
    let end_ns = outcome.series.intervals.last().map(Interval::end_ns);
    assert!(
        end_ns.expect("an interval") <= outcome.elapsed_ns,
        "{end_ns:?}"
    );
    Ok(outcome)
}

#[test]
fn tracing_without_a_tracer_is_refused() {
    let (_folder, target) = scratch(SIZE);
    let spec = settings("region=4M trace=true");
    let error = files::run(&spec, &target).expect_err("no tracer");
    assert_eq!(error.kind(), Kind::Usage);
    insta::assert_snapshot!(error.message(), @"trace=true needs a tracer of requests");
}

/// Buffers of the first threads leave no locked memory for the other rings. The limit applies to a process, so this test
/// runs itself in a process of its own; but memory is counted for a user, so that other tests may leave no room for the rings
/// until they end.
#[test]
fn buffers_beyond_the_locked_memory_are_not_registered() {
    if !needs::is_alone("trial::buffers_beyond_the_locked_memory_are_not_registered") {
        return;
    }
    needs::ordinary_user(|folder| {
        let maximum = getrlimit(Resource::Memlock).maximum;
        let current = Some(2 << 20);
        setrlimit(Resource::Memlock, Rlimit { current, maximum }).expect("a lower limit");
        let path = folder.join("data");
        fs::write(&path, vec![7; SIZE as usize]).expect("room");
        let target = Target::open(&path, &Need::reading(SIZE)).expect("an own file");
        let spec = spec("backend=io_uring threads=64 depth=64");
        let mut tries = (0..200).map(|_| run(&spec, &target));
        let first = tries.next().expect("200 tries");
        match first.or_else(|error| tries.find_map(Result::ok).ok_or(error)) {
            Ok(outcome) => {
                assert_eq!((outcome.bytes(), outcome.errors), (SIZE, 0));
                assert!(!outcome.effective.fixed_buffers);
                insta::assert_snapshot!(outcome.effective.note, @"buffers not registered: all threads together exceed the locked-memory limit (ulimit -l)");
            }
            Err(error) if iolab_engine::asynchronous() == Backend::IoUring => panic!("{error}"),
            Err(error) => needs::skip(needs::Need::IoUring, error),
        }
    });
}

#[test]
fn a_file_that_shrinks_is_a_counted_error() {
    let names = Backend::NAMES.iter().filter(|name| **name != "null");
    for (name, latency) in names.flat_map(|name| [(name, true), (name, false)]) {
        let spec = spec(&format!("backend={name} latency={latency}"));
        let backend = spec.backend;
        let directory = folder();
        let path = directory.path().join("data");
        fs::write(&path, vec![1u8; SIZE as usize]).expect("written");
        let need = Need::reading(SIZE);
        let target = Target::open(&path, &need).expect("opens");
        let file = fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .expect("opens");
        file.set_len(SIZE / 2 + 100).expect("cut");
        let outcome = match run(&spec, &target) {
            Ok(outcome) => outcome,
            Err(error) => {
                crate::skip(&spec, &error);
                continue;
            }
        };
        assert_eq!(
            (outcome.ended, outcome.errors),
            (Ended::Failed, 1),
            "{backend}"
        );
        let Some(Failure::Request(failure)) = outcome.failure else {
            panic!("{backend}: {:?}", outcome.failure);
        };
        let got = (
            failure.offset,
            failure.errno,
            outcome.operations.read.short_transfers,
        );
        // The first 100 bytes were there: a short read, continued, and then the end of the file. In a mapping
        // the kernel fills such a page with zeros, and the next one fails.
        let expected = match backend {
            Backend::Mmap => (SIZE / 2 + BLOCK, 0, 0),
            _ => (SIZE / 2 + 100, 0, 1),
        };
        assert_eq!(got, expected, "{backend}");
        let recorded = if latency {
            outcome.operations.read.requests
        } else {
            0
        };
        assert_eq!(outcome.operations.read.latency.len(), recorded);
    }
}

#[test]
fn the_stop_flag_ends_a_trial_early() {
    let (_directory, target) = scratch(SIZE);
    let raised = AtomicBool::new(true);
    for latency in [true, false] {
        let spec = spec(&format!("bytes=1T threads=2 latency={latency}"));
        let outcome = trial::run(&spec, &target, clock(), &raised).expect("runs");
        assert_eq!(outcome.ended, Ended::Interrupted);
        assert!(!latency || outcome.requests() == 2);
    }
}

#[test]
fn unfit_settings_are_refused_before_anything_happens() {
    let (_directory, target) = scratch(SIZE);
    // The target's bounds, the target's blocks, and one of the settings that no target takes.
    let wrong = [
        "region=4097k", "offset=4k", "bs=1000 cache=direct", "depth=2",
    ]
    .map(spec);
    let overflowing = TrialSpec {
        offset: u64::MAX,
        ..spec("")
    };
    for spec in wrong.into_iter().chain([overflowing]) {
        let error = run(&spec, &target).expect_err("refused");
        assert_eq!(error.kind(), Kind::Usage, "{spec:?}: {error}");
        assert!(error.remedy().is_some(), "{error}");
    }
}

/// Machines differ in the events that they count, and in the users who may count them.
#[test]
fn hardware_events_are_counted_or_explained() {
    let (_directory, target) = scratch(SIZE);
    let counted = |asked: &str| run(&spec(asked), &target).expect("runs").counters.hardware;
    let unasked = counted("threads=2 hardware_counters=false");
    assert_eq!(unasked, Hardware::Missing(NoHardware::NotAsked));
    match counted("threads=2 hardware_counters=true") {
        Hardware::Missing(reason) => {
            assert_ne!(reason, NoHardware::NotAsked);
            needs::skip(needs::Need::HardwareEvents, reason);
        }
        Hardware::Counted(events) => {
            let all = [
                events.cycles, events.instructions, events.llc_misses, events.dtlb_misses,
            ];
            assert!(all.into_iter().flatten().any(|count| count > 0), "{all:?}");
        }
    }
}
