//! The runner with a stand-in for the engine: no disk, no timing.

mod bench;
mod observers;
mod rounds;
mod strategies;
mod time_left;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use iolab_workload::Kind;
use iolab_workload::settings::Tool;
use iolab_workload::trial::{Batch, TrialSpec};

use super::*;
use bench::*;
use iolab_plan::blocks::block_order;
use iolab_record::EndedBy;
use iolab_runfile::NewFile;

/// A built-in experiment with these settings.
pub(crate) fn experiment(name: &str, sets: &[&str]) -> Experiment {
    let mut experiment = Experiment::find(name).expect("built in");
    for set in sets {
        experiment.apply_set(set).expect("a valid setting");
    }
    experiment
}

/// The record of a run in this place, whose file is made in a folder.
pub(crate) fn run_in(
    folder: &Path,
    place: SystemUnderTest,
    plan: FittedPlan,
    seed: u64,
    observers: &'static [NewObserver],
) -> RunRecord {
    let setup = Setup {
        place,
        clock: Clock::calibrate(),
        stop: StopFlags::default(),
        preflight: Vec::new(),
        known: Environment::default(),
        ranks: None,
        system: None,
        peers: &[],
        observers,
        tracing: None,
        end: |error| panic!("{error}"),
    };
    let path = folder.join("run.iolab");
    let prepared = PreparedRun::new(plan, None, seed, NewFile::At(&path), &setup);
    prepared
        .and_then(|run| run.carry_out(&mut Silent))
        .expect("done");
    iolab_runfile::read(&path).expect("a run file")
}

#[test]
fn preconditioning_writes_before_the_first_trial() {
    let bench = bench(&["precondition=seq:2+rand:1"]);
    let written = std::cell::RefCell::new(Vec::new());
    let elapsed = |spec: &TrialSpec, number: u64| {
        if spec.writes() {
            written
                .borrow_mut()
                .push((spec.pattern.to_string(), number));
        }
        100_000_000
    };
    bench.start(&mut mock(&elapsed)).expect("done");
    let order = [("seq", 0), ("seq", 1), ("rand", 2)].map(|(p, n)| (p.to_owned(), n));
    assert_eq!(*written.borrow(), order);
    let record = bench.record();
    assert_eq!(record.samples.iter().filter(|s| s.cell > 2).count(), 0);
    let told = record.events.iter().map(|event| event.message.as_str());
    let of_passes: Vec<&str> = told
        .filter(|text| text.starts_with("precondition"))
        .collect();
    insta::assert_snapshot!(of_passes.join("\n"), @r"
    precondition, pass 1 of 3, seq: 1049 MB/s in requests of 1 MiB
    precondition, pass 2 of 3, seq: 1049 MB/s in requests of 1 MiB
    precondition, pass 3 of 3, rand: 4.10 MB/s in requests of 4 KiB
    ");
}

/// On storage of any speed, and however imprecise the cells stay.
#[test]
fn writes_stay_within_their_budget_over_all_sessions() {
    let bench = bench(&[
        "read_percent=0,100", "region=64MiB", "bytes=none", "trials_max=60", "writes=1GiB",
    ]);
    let mut cut = cut_at(30, Cut::Interrupt, &wild);
    bench.start(&mut cut).expect_err("interrupted");
    bench.take_up(&mut mock(&wild)).expect("done");
    let record = bench.record();
    let written = record.samples.iter().map(|one| one.operations.write.bytes);
    let written = written.sum::<u64>();
    let of_cell = |cell: &iolab_record::Cell| {
        let own = record.samples.iter().filter(|one| one.cell == cell.id);
        (own.count(), cell.ended_by, cell.spec.trial.limit.bytes)
    };
    let (mut writers, mut readers) = (Vec::new(), Vec::new());
    for cell in &record.cells {
        match cell.spec.trial.writes() {
            true => writers.push(of_cell(cell)),
            false => readers.push(of_cell(cell)),
        }
    }
    let most = writers.iter().filter_map(|(_, _, bytes)| *bytes).max();
    let cut_off = most.expect("every cell that writes has a cap");
    assert!(written + cut_off <= 1 << 30, "{written}");
    for (trials, ended_by, _) in writers {
        assert!(trials >= 8, "{trials}");
        assert_eq!(ended_by, Some(EndedBy::Writes));
    }
    for (trials, ended_by, bytes) in readers {
        assert_eq!((trials, ended_by), (61, Some(EndedBy::TrialsMax)));
        assert_eq!(bytes, None);
    }
}

#[test]
fn cells_end_by_trials_or_budget() {
    for (set, blocks, by) in [
        ("trials_max=9", 10, EndedBy::TrialsMax),
        // A warm-up, and one measured block at least.
        ("budget=1ns", 2, EndedBy::Budget),
    ] {
        let record = recorded(&[set], &wild);
        assert_eq!(record.samples.len(), 3 * blocks);
        let mut cells = record.cells.iter();
        assert!(cells.all(|cell| cell.ended_by == Some(by)), "{set}");
    }
}

/// Whether a run that is cut at each of these trials, and continues with the executor as it was, equals the whole run.
fn resumes_as_if_whole(sets: &[&str], elapsed: &dyn Fn(&TrialSpec, u64) -> u64, cuts: &[u64]) {
    let whole = bench(sets);
    whole.start(&mut mock(elapsed)).expect("done");
    let expected = trials(&whole.record());
    let last = expected.len() as u64 - 1;
    for at in cuts.iter().copied().chain([last]) {
        let bench = bench(sets);
        let mut cut = cut_at(at, Cut::Interrupt, elapsed);
        bench.start(&mut cut).expect_err("cut");
        assert_eq!(trials(&bench.record()), expected[..at as usize], "{at}");
        let mut rest = Mock {
            trials: at,
            ..mock(elapsed)
        };
        bench.take_up(&mut rest).expect("done");
        let record = bench.record();
        assert_eq!(trials(&record), expected, "cut at {at}");
        assert_eq!(record.cells, whole.record().cells, "cut at {at}");
    }
}

#[test]
fn plain_and_refined_runs_resume_wherever_cut() {
    resumes_as_if_whole(&[], &wild, &[0, 1, 4, 17]);
    // In the grid, at its end, at the first trial after it, and in the first block of the finer sizes.
    resumes_as_if_whole(&REFINE, &knee, &[20, 62, 63, 64, 74]);
}

#[test]
fn steady_cells_end_after_seven_measured_blocks() {
    let bench = bench(&["settle=2s"]);
    let mut mock = mock(&steady);
    let finished = bench.start(&mut mock).expect("done");
    assert_eq!(finished.trials, 24);
    assert_eq!(mock.paused, [Duration::from_secs(2); 7], "between blocks");
    let record = bench.record();
    assert_eq!(record.run.status, RunStatus::Done);
    let mut cells = record.cells.iter();
    assert!(cells.all(|cell| cell.ended_by == Some(EndedBy::Precision)));
    assert_eq!(record.samples.iter().filter(|s| s.warmup).count(), 3);
    for (index, sample) in record.samples.iter().enumerate() {
        let order = block_order(42, sample.block, 3);
        assert_eq!(sample.block as usize, index / 3);
        assert_eq!(sample.cell as usize, order[index % 3]);
        assert_eq!(sample.position as usize, index % 3);
    }
}

#[test]
fn a_failure_ends_the_run_keeping_its_measurements() {
    let told = [28, 5, 0].map(|errno| {
        let bench = bench(&[]);
        let mut failing = cut_at(7, Cut::Fail(errno), &wild);
        let error = bench.start(&mut failing).expect_err("failed");
        assert_eq!(error.kind(), Kind::Failed);
        let record = bench.record();
        assert_eq!(record.run.status, RunStatus::Failed);
        assert_eq!(record.samples.len(), 8);
        let last = record.samples.last().expect("samples");
        assert_eq!((last.ok, last.errors), (false, 1));
        let failure = last.failure.as_deref().expect("why");
        assert!(error.message().contains(failure), "{failure}: {error}");
        let mut events = record.events.iter();
        assert!(events.any(|event| event.kind == EventKind::Error));
        error.to_string()
    });
    insta::assert_snapshot!(told.join("\n"), @r"
    bs=1MiB: pwrite of 1048576 bytes at offset 8192 failed: No space left on device (os error 28)
      free some space, then resume the run; or start a new run with a smaller --size
    bs=1MiB: pwrite of 1048576 bytes at offset 8192 failed: Input/output error (os error 5)
      look into the kernel's log (dmesg): the device or its connection reports errors
    bs=1MiB: pwrite of 1048576 bytes at offset 8192 failed: unexpected end of the file or device
      the target was cut short while it was measured: leave it alone, then resume
    ");
}

#[test]
fn the_completion_strategy_is_measured_and_kept() {
    let bench = bench(&["backend=io_uring", "depth=1,8"]);
    let all_is_best = |spec: &TrialSpec, _| match spec.batch {
        Batch::All => 1_000_000,
        _ => 1_800_000,
    };
    let mut cut = cut_at(40, Cut::Interrupt, &all_is_best);
    bench.start(&mut cut).expect_err("interrupted");
    bench.take_up(&mut mock(&all_is_best)).expect("done");
    let record = bench.record();
    for cell in &record.cells {
        let wanted = if cell.trial().depth == 1 {
            "one"
        } else {
            "all"
        };
        assert_eq!(cell.spec.batch_name(), wanted);
    }
    let events = record.events.iter();
    let choices: Vec<_> = events.filter(|e| e.kind == EventKind::Choice).collect();
    assert_eq!(choices.len(), 3, "once per cell, also after the resume");
    insta::assert_snapshot!(choices[0].message, @"batch=all chosen by 3 probes of 40 ms each, median IOPS: one 55556, 25% 55556, 50% 55556, all 100000");
}

/// A mock trial has 100 requests: fewer than twice as many as are in flight at depth 64, and many more than at depth 8.
#[test]
fn probes_end_for_long_requests_not_for_stalls() {
    let probe = Duration::from_millis(40);
    let is_probe = |spec: &TrialSpec| spec.limit.time == Some(probe) && spec.limit.bytes.is_none();
    let run = |depth: &str, probe_ns: &dyn Fn(Batch, u32) -> u64| {
        let bench = bench(&["backend=io_uring", depth]);
        let probes = std::cell::Cell::new(0);
        let elapsed_ns = |spec: &TrialSpec, _| match is_probe(spec) {
            true => {
                probes.set(probes.get() + 1);
                probe_ns(spec.batch, probes.get())
            }
            false => 1_000_000,
        };
        bench.start(&mut mock(&elapsed_ns)).expect("done");
        (probes.get() as usize, bench.record())
    };
    let note = |record: &RunRecord| {
        let mut events = record.events.iter();
        let choice = events.find(|event| event.kind == EventKind::Choice);
        choice.expect("a choice").message.clone()
    };
    let all_are = |record: &RunRecord, name: &str| {
        let mut cells = record.cells.iter();
        cells.all(|cell| cell.spec.batch_name() == name)
    };

    let (probes, record) = run("depth=64", &|_, _| 500_000_000);
    assert_eq!(probes, record.cells.len(), "one of each cell");
    assert!(all_are(&record, "one"));
    insta::assert_snapshot!(note(&record), @"batch=one not chosen by probes: the requests in flight outlast a probe of 40 ms more than 3 times");

    let (probes, record) = run("depth=8", &|batch, _| match batch {
        Batch::All => 90_000_000,
        _ => 100_000_000,
    });
    assert_eq!(probes, 4 * record.cells.len(), "one round");
    insta::assert_snapshot!(note(&record), @"batch=all chosen by 1 probe of 40 ms, IOPS: one 1000, 25% 1000, 50% 1000, all 1111");

    // The sixth probe of a cell, in the second of three rounds, stalls.
    let (probes, record) = run("depth=8", &|batch, number| match (batch, number % 12) {
        (_, 6) => 500_000_000,
        (Batch::All, _) => 1_000_000,
        _ => 2_000_000,
    });
    assert_eq!(probes, 12 * record.cells.len(), "all of each cell");
    assert!(all_are(&record, "all"));
    insta::assert_snapshot!(note(&record), @"batch=all chosen by 3 probes of 40 ms each, median IOPS: one 50000, 25% 50000, 50% 50000, all 100000");
}

#[test]
fn an_interrupted_run_keeps_its_trial_and_resumes() {
    /// Presses Ctrl-C while a trial is in flight.
    struct User<'a>(u64, &'a AtomicBool);
    impl Observer for User<'_> {
        fn trial_starts(&mut self, _snapshot: &dyn Fn() -> RunSnapshot) {
            self.0 -= 1;
            self.1.store(self.0 == 0, Ordering::Relaxed);
        }
    }
    let whole = bench(&[]);
    whole.start(&mut mock(&wild)).expect("done");
    let expected = trials(&whole.record());
    let bench = bench(&[]);
    let stop = StopFlags::default();
    let mut user = User(5, &stop.after_trial);
    let session = bench.session(&mut user).expect("a session");
    let error = session
        .carry_out(&mut mock(&wild), &stop)
        .expect_err("ends");
    assert_eq!(error.kind(), Kind::Interrupted);
    let record = bench.record();
    assert_eq!(record.run.status, RunStatus::Interrupted);
    assert_eq!(trials(&record), expected[..5]);
    let by_user = |cell: &iolab_record::Cell| cell.ended_by == Some(EndedBy::User);
    assert!(record.cells.iter().all(by_user));
    let mut again = cut_at(0, Cut::Fail(5), &wild);
    bench.take_up(&mut again).expect_err("fails");
    assert!(!bench.record().cells.iter().any(by_user), "it went on");
    bench.take_up(&mut mock(&wild)).expect("done");
    assert_eq!(trials(&bench.record()), expected);
}

#[test]
fn a_snapshot_holds_the_tables_values() {
    #[derive(Default)]
    struct Watch(Option<RunSnapshot>);
    impl Observer for Watch {
        fn trial_starts(&mut self, snapshot: &dyn Fn() -> RunSnapshot) {
            self.0 = Some(snapshot());
        }
    }
    let throughput = |sets| (sets, Response::Throughput);
    // A trial of the stand-in has too few requests for the 99th percentile.
    let lacking = (&["trials_max=7"][..], Response::P99);
    for (sets, response) in [throughput(&[][..]), throughput(&REFINE[..]), lacking] {
        let mut bench = bench(sets);
        bench.experiment.response = response;
        let mut watch = Watch::default();
        bench.watched(&mut mock(&knee), &mut watch).expect("done");
        let seen = watch.0.expect("trials");
        // The snapshot was taken before the last trial.
        let mut record = bench.record();
        let last = record.samples.pop().expect("trials");
        assert_eq!(seen.now as i64, last.cell);
        let analysis = iolab_analysis::analysis::analyse(&record);
        assert_eq!(
            seen.goal,
            RepetitionGoal::Precision(analysis.precision_goal)
        );
        assert_eq!(seen.cells.len(), analysis.cells.len());
        for cell in &analysis.cells {
            let own = &seen.cells[cell.cell.id as usize];
            let expected = (&cell.cell.levels, cell.n, cell.response, cell.precision);
            let given = (&own.levels, own.n, own.response, own.precision());
            assert_eq!(given, expected, "{sets:?}");
        }
    }
}

/// Eleven sizes whose throughput rises up to 64 KiB and stays: a bend there, and a best size.
fn knee(spec: &TrialSpec, number: u64) -> u64 {
    let bytes = 100 * spec.bs;
    let reached = spec.bs.min(64 << 10);
    // MB/s are bytes per microsecond; the last digits differ from trial to trial.
    bytes * 1_000_000 / reached + number * 7919 % 13 * (bytes / 1_000)
}

const REFINE: [&str; 4] = [
    "bs=4k,8k,16k,32k,64k,128k,256k,512k,1M",
    "refine=2",
    "trials_min=6",
    "precision=0.5",
];

#[test]
fn finer_sizes_are_further_blocks_of_a_run() {
    let record = recorded(&REFINE, &knee);
    assert_eq!(record.run.status, RunStatus::Done);
    let experiment = Experiment::from_toml(&record.experiment.toml, "run").expect("readable");
    let refined = experiment.refined.as_ref().expect("refined");
    assert!(!refined.bs.is_empty());
    assert_eq!(record.cells.len(), 9 + refined.bs.len());
    for cell in &record.cells {
        let of_cell = || record.samples.iter().filter(|s| s.cell == cell.id);
        let early = of_cell().filter(|s| s.block < refined.block).count();
        assert_eq!(early > 0, cell.id < 9, "{}", cell.trial().bs);
        // All cells share the later blocks, the first of which is a warm-up; what came before is left out.
        let counted: Vec<u32> = of_cell().filter(|s| !s.warmup).map(|s| s.block).collect();
        let expected: Vec<u32> = (refined.block + 1..).take(counted.len()).collect();
        assert_eq!(counted, expected);
        assert!(counted.len() >= 6);
        assert_eq!(cell.trial().bs % 4096, 0, "direct I/O keeps its alignment");
        assert_eq!(cell.ended_by, Some(EndedBy::Precision));
    }
    let choice = record.events.iter().find(|e| e.kind == EventKind::Choice);
    insta::assert_snapshot!(choice.expect("chosen").message, @"4 finer sizes of bs around the bends and the best sizes, now measured together with the others: 40KiB, 52KiB, 92KiB, 180KiB");
}

#[test]
fn an_impossible_cell_is_a_gap_among_others() {
    let bench = bench(&["bs=4k,8k", "tool=iolab,iozone"]);
    let mut mock = mock(&steady);
    let finished = bench.start(&mut mock).expect("runs");
    let record = bench.record();
    assert_eq!(record.run.status, RunStatus::Done);
    assert_eq!(finished.trials, record.samples.len() as u64);
    let open = |cell: &i64| record.cells[*cell as usize].spec.tool == Tool::IOLAB;
    assert!(record.samples.iter().all(|s| open(&s.cell)));
    let gaps = record.events.iter().filter(|e| e.kind == EventKind::Gap);
    let gaps: Vec<Option<i64>> = gaps.map(|gap| gap.cell).collect();
    assert_eq!(gaps.len(), 2);
    assert!(gaps.iter().flatten().all(|cell| !open(cell)));
    let run = iolab_analysis::analysed_run::AnalysedRun::of(record);
    assert!(iolab_analysis::compare::with_peers(&run).is_empty());
    let gap = &run.analysis().cells[1];
    assert_eq!((gap.n, gap.cell.ended_by), (0, None));
    let doubt = iolab_analysis::analysis::DoubtKind::Gap;
    assert!(gap.flags.contains(&doubt));
}

#[test]
fn a_failing_peer_is_given_up_without_stopping() {
    let bench = bench(&["bs=4k", "tool=iolab,fio"]);
    // Place of fio's trial in the first block: a failure of iolab's own trial would end the run.
    let first = block_order(42, 0, 2)[0];
    let of_fio = if first == 1 { 0 } else { 1 };
    let mut mock = mock(&steady);
    mock.cut = Some((of_fio, Cut::Fail(5)));
    let error = bench.start(&mut mock).expect_err("fio never worked");
    assert_eq!(error.kind(), Kind::Failed);
    insta::assert_snapshot!(error.message(), @"fio never worked: pwrite of 4096 bytes at offset 8192 failed: Input/output error (os error 5)");
    let record = bench.record();
    assert_eq!(record.run.status, RunStatus::Failed);
    let failed: Vec<_> = record.samples.iter().filter(|s| !s.ok).collect();
    assert_eq!((failed.len(), failed[0].cell), (1, 1));
    assert_eq!(record.samples.iter().filter(|s| s.cell == 1).count(), 1);
    assert!(record.samples.iter().filter(|s| s.cell == 0).count() > 6);
    let mut events = record.events.iter();
    let gap = events.find(|event| event.kind == EventKind::Gap);
    assert_eq!(gap.expect("told").cell, Some(1));
}
