//! Trials of several groups, on a real file system.

use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicBool;

use iolab_engine::trial;
use iolab_host::counters::{FileRange, residency};
use iolab_host::observation;
use iolab_storage::Target;
use iolab_workload::group::GroupSpec;
use iolab_workload::operation::Operation;
use iolab_workload::outcome::{Ended, Outcome};
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{Backend, CacheState, TrialSpec};

use crate::files::{clock, scratch};
use crate::reference::{specs, with_backend};
use needs::settings;
use proptest::prelude::*;

const SIZE: u64 = 4 << 20;
const BS: u64 = 4096;

fn spec(sets: &str) -> TrialSpec {
    settings(&format!("region=4M cache=cold {sets}"))
}

/// A cell whose groups have the names g1, g2, ...
fn cell(trials: Vec<TrialSpec>) -> CellSpec {
    let group = |(number, trial)| GroupSpec {
        name: format!("g{number}"),
        spec: CellSpec {
            trial,
            ..CellSpec::default()
        },
    };
    let mut cell = CellSpec {
        groups: (1..).zip(trials).map(group).collect(),
        ..CellSpec::default()
    };
    cell.trial = cell.merge_trials();
    cell.check().expect("a trial");
    cell
}

fn run(cell: &CellSpec, target: &Target) -> Outcome {
    let stop = AtomicBool::new(false);
    let trials = cell.group_trials();
    let targets = vec![target; trials.len()];
    trial::run_groups(&trials, &targets, clock(), &stop, None).expect("it runs")
}

#[test]
fn waits_of_one_group_are_left_out_overall() {
    let (_folder, target) = scratch(SIZE);
    if let Err(error) = trial::check_trims(&target) {
        return needs::skip(needs::Need::Trim, error);
    }
    let common = "read_percent=40 pattern=rand trim_percent=50 bytes=800k";
    let (paced, unpaced) = (spec(&format!("{common} rate=20000")), spec(common));
    let outcome = run(&cell(vec![paced, unpaced]), &target);
    let [paced, unpaced] = outcome.groups.as_slice() else {
        panic!("two groups");
    };
    for operation in [Operation::Read, Operation::Write, Operation::Trim] {
        let waits = |outcome: &Outcome| outcome.operations[operation].waits.is_some();
        let in_turn = [&paced.outcome, &unpaced.outcome, &outcome].map(waits);
        assert_eq!(in_turn, [true, false, false], "{operation}");
    }
}

#[test]
fn an_unbounded_group_ends_with_the_others() {
    let (_folder, target) = scratch(SIZE);
    let reader = spec("bytes=800k");
    for rate in ["none", "500"] {
        let writer = spec(&format!("read_percent=0 rate={rate}"));
        let outcome = run(&cell(vec![reader.clone(), writer]), &target);
        let writer = &outcome.groups[1].outcome;
        assert_eq!(outcome.groups[0].outcome.ended, Ended::Done);
        assert_eq!(writer.ended, Ended::Time);
        assert_eq!(outcome.ended, Ended::Time);
        assert_eq!(outcome.errors, 0);
    }
    // Bound by time, both end by it.
    let groups = vec![spec("time=30ms"), spec("read_percent=0")];
    let outcome = run(&cell(groups), &target);
    assert!(
        outcome
            .groups
            .iter()
            .all(|group| group.outcome.ended == Ended::Time)
    );
    assert!(outcome.groups[1].outcome.operations.write.requests > 0);
}

const ENDLESS: &str = "time=1h";

#[test]
fn an_interrupt_ends_all_groups() {
    let (_folder, target) = scratch(SIZE);
    for other in ["read_percent=0", ENDLESS] {
        let stop = AtomicBool::new(false);
        let cell = cell(vec![spec(ENDLESS), spec(other)]);
        let outcome = std::thread::scope(|scope| {
            let run = scope.spawn(|| {
                trial::run_groups(
                    &cell.group_trials(),
                    &[&target, &target],
                    clock(),
                    &stop,
                    None,
                )
            });
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            run.join().expect("no panic")
        });
        match outcome {
            Ok(outcome) => assert_eq!(outcome.ended, Ended::Interrupted),
            Err(error) => assert_eq!(error.kind(), iolab_workload::Kind::Interrupted),
        }
    }
}

/// Settings that a writing group may have.
fn writer() -> impl Strategy<Value = TrialSpec> {
    let backends = prop::sample::select(vec![Backend::Psync, Backend::Sync, Backend::Mmap]);
    let writers = (specs(), backends).prop_map(|(spec, backend)| {
        let spec = TrialSpec {
            // Copies of several threads into a mapping of the same block cannot be verified.
            threads: if backend == Backend::Mmap {
                1
            } else {
                spec.threads
            },
            read_percent: spec.read_percent.min(99),
            trim_percent: 0,
            compressible: 0,
            cache: CacheState::Cold,
            verify: true,
            ..spec
        };
        with_backend(&spec, backend)
    });
    writers.prop_filter("possible", |spec| spec.check().is_ok())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn each_groups_bytes_are_where_they_should_be(
        one in writer(), other in writer(), blocks in 64..512_u64, gap in 0..64_u64,
    ) {
        let (_folder, target) = scratch(SIZE);
        let first = TrialSpec { offset: gap * BS, region: blocks * BS, ..one };
        let second = TrialSpec { offset: (gap + blocks) * BS, region: 400 * BS, ..other };
        let ends = (first.offset, second.offset + second.region);
        // Readers may go over all of it.
        let reader = spec("threads=2");
        let mut before = vec![0; SIZE as usize];
        target.file().read_exact_at(&mut before, 0).expect("the file");
        let outcome = run(&cell(vec![first, reader, second]), &target);
        prop_assert_eq!(&outcome.failure, &None);
        let mut sum = 0;
        for number in [0, 2] {
            let own = &outcome.groups[number].outcome;
            let verified = own.verified.expect("it was read back");
            prop_assert_eq!(verified.faulty_blocks(), 0);
            prop_assert!(verified.blocks <= own.operations.write.requests);
            sum += verified.blocks;
        }
        prop_assert_eq!(outcome.verified.expect("of all").blocks, sum);
        prop_assert!(outcome.groups[1].outcome.verified.is_none());
        let mut after = vec![0; SIZE as usize];
        target.file().read_exact_at(&mut after, 0).expect("the file");
        prop_assert!(before[..ends.0 as usize] == after[..ends.0 as usize]);
        prop_assert!(before[ends.1 as usize..] == after[ends.1 as usize..]);
    }
}

#[test]
fn an_interrupt_ends_the_preparation_of_groups() {
    let (_folder, target) = scratch(SIZE);
    let held = || {
        let range = FileRange {
            file: target.file(),
            offset: 0,
            length: SIZE,
        };
        residency(&[range]).map_or(SIZE, |seen| seen.resident_bytes)
    };
    observation::drop_pages(&target, 0..SIZE);
    if held() > 0 {
        return needs::skip(needs::Need::ColdCache, "the page cache keeps this file");
    }
    let hot = spec("time=1h cache=hot");
    let cell = cell(vec![hot.clone(), hot]);
    let interrupted = trial::run_groups(
        &cell.group_trials(),
        &[&target, &target],
        clock(),
        &AtomicBool::new(true),
        None,
    );
    let error = interrupted.expect_err("interrupted");
    assert_eq!(error.kind(), iolab_workload::Kind::Interrupted);
    assert_eq!(held(), 0, "the file was read before the flag was looked at");
}
