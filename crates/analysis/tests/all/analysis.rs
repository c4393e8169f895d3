//! The analysis of synthetic run records.

use iolab_analysis::analysis::{CellAnalysis, ClientAnalysis, DoubtKind, Response, analyse};
use iolab_plan::experiment::Experiment;
use iolab_record::{FurtherTarget, OperationSummary, RunRecord, ServedBy};

use iolab_synthetic::{add_cell, add_trial, around, by_ranks, record, serve};

fn only_cell(record: &RunRecord) -> CellAnalysis {
    analyse(record).cells.remove(0)
}

fn one_cell(mb_s: &[f64]) -> RunRecord {
    let mut record = record("read-size", &["bs"]);
    add_cell(&mut record, &["bs=4KiB"], mb_s);
    record
}

#[test]
fn the_warm_up_is_left_out() {
    let cell = only_cell(&one_cell(&around(100.0)));
    assert_eq!(cell.n, 8);
    let throughput = cell.of[Response::Throughput].unwrap();
    assert!((throughput.median - 100.0).abs() < 0.1);
    assert!(throughput.max < 102.0);
}

#[test]
fn a_failed_trial_is_left_out_and_flagged() {
    let mut record = one_cell(&around(100.0));
    add_trial(&mut record, 0, 5.0, false).ok = false;
    let cell = only_cell(&record);
    assert_eq!((cell.n, cell.failed), (8, 1));
    assert!(cell.of[Response::Throughput].unwrap().min > 90.0);
    assert_eq!(cell.flags, [DoubtKind::Errors]);
}

#[test]
fn response_is_named_by_the_experiment() {
    let mut record = one_cell(&around(100.0));
    for (name, expected) in [
        ("throughput", 100.0),
        ("iops", 100e6 / 4096.0),
        ("latency", 40960.0),
    ] {
        record.experiment.response = name.parse().expect("a response");
        let median = only_cell(&record).response.unwrap().median;
        assert!((median / expected - 1.0).abs() < 0.01, "{name}: {median}");
    }
}

#[test]
fn latency_is_median_of_trials_and_greatest_maximum() {
    let mut record = one_cell(&around(100.0));
    let slow = add_trial(&mut record, 0, 100.0, false);
    slow.operations.read.latency.as_mut().unwrap()[Response::Max] = Some(123_456_789.0);
    let latency = only_cell(&record).latency.unwrap();
    assert_eq!(latency[Response::Max], Some(123_456_789.0));
    let [p50, p99] = [Response::Latency, Response::P99].map(|of| latency[of].unwrap());
    assert!((p50 - 40_960.0).abs() < 50.0);
    assert!((p99 - 3.0 * p50).abs() < 3.0);
}

#[test]
fn equal_verdicts_are_one_and_others_are_counted() {
    let mut record = one_cell(&around(100.0));
    let served = only_cell(&record).served.unwrap();
    assert_eq!(served.unanimous(), Some(ServedBy::Device));
    serve(&mut record, 0, ServedBy::Mixed, "half of it");
    let served = only_cell(&record).served.unwrap();
    assert_eq!(served.unanimous(), Some(ServedBy::Mixed));
    assert_eq!(served.device_fraction, Some(0.37));
    serve(&mut record, 0, ServedBy::PageCache, "hot");
    record.samples[3].verdict.served_by = ServedBy::Device;
    let cell = only_cell(&record);
    let served = cell.served.clone().unwrap();
    assert_eq!(served.unanimous(), None);
    assert_eq!(
        served.trials,
        [(ServedBy::Device, 1), (ServedBy::PageCache, 7)]
    );
    assert!(!cell.is_device());
    assert_eq!(cell.flags, [DoubtKind::PageCache]);
}

#[test]
fn the_workers_of_all_ranks_count() {
    // 68 ns a request of one worker, and 273 ns of each of four; the floor is 30 ns.
    let mut record = one_cell(&around(60_000.0));
    serve(&mut record, 0, ServedBy::PageCache, "hot");
    by_ranks(&mut record, &[1.0; 4]);
    let cell = only_cell(&record);
    assert!(
        !cell.flags.contains(&DoubtKind::ToolBound),
        "{:?}",
        cell.flags
    );
    assert_eq!(cell.concurrency.map(|own| own.asked), Some(4));
    // Each client has the concurrency of its own ranks.
    let clients = cell.ranks.expect("four").clients;
    let asked = |client: &ClientAnalysis| client.cell.concurrency.map(|own| own.asked);
    let asked: Vec<_> = clients.iter().map(asked).collect();
    assert_eq!(asked, [Some(1); 4]);
    for (tenths, is_bound) in [(19, false), (38, true)] {
        let mut record = one_cell(&around(100.0));
        by_ranks(&mut record, &[1.0; 4]);
        for sample in &mut record.samples {
            sample.counters.usage.user_ns = sample.elapsed_ns * tenths / 10;
        }
        let flags = only_cell(&record).flags;
        assert_eq!(flags.contains(&DoubtKind::ToolBound), is_bound, "{flags:?}");
    }
}

/// A cache can hold what a budget of writes leaves to a trial.
#[test]
fn plain_writes_within_a_budget_are_flagged() {
    let is_flagged = |sync: &str, budget: &str| {
        let mut definition = Experiment::find("write-size").expect("built in");
        definition.apply_set(budget).expect("a budget");
        let mut record = record("write-size", &["bs"]);
        record.experiment.toml = definition.to_toml().expect("TOML");
        let levels = ["bs=64KiB", "read_percent=0", sync];
        let cell = add_cell(&mut record, &levels, &around(100.0));
        record.cells[cell].spec.trial.limit.bytes = Some(64 << 20);
        let flags = only_cell(&record).flags;
        flags.contains(&DoubtKind::CappedWrites)
    };
    assert!(is_flagged("sync=none", "writes=4GiB"));
    assert!(!is_flagged("sync=each", "writes=4GiB"));
    assert!(!is_flagged("sync=none", "writes=none"));
}

#[test]
fn precision_is_the_farther_end_of_the_interval() {
    let cell = only_cell(&one_cell(&[98.0, 99.0, 100.0, 100.0, 101.0, 103.0]));
    assert!((cell.precision.unwrap() - 0.03).abs() < 1e-4);
    assert_eq!(only_cell(&one_cell(&[100.0; 5])).precision, None);
}

#[test]
fn trials_without_requests_do_not_upset_it() {
    let mut record = one_cell(&[]);
    for _ in 0..7 {
        let sample = add_trial(&mut record, 0, 100.0, false);
        sample.operations.read = OperationSummary::default();
        sample.elapsed_ns = 0;
    }
    let cell = only_cell(&record);
    assert_eq!(cell.of[Response::Throughput].unwrap().median, 0.0);
    assert_eq!(
        (cell.latency, cell.median(Response::Cpu), cell.precision),
        (None, None, None)
    );
}

/// Changes to the only cell, which is quiet at 60 MB/s and 68 µs a request, and its flags.
type Row = (&'static str, fn(&mut RunRecord), &'static [DoubtKind]);

const ROWS: [Row; 19] = [
    ("nothing", |_| (), &[]),
    (
        "a trial fails",
        |r| add_trial(r, 0, 5.0, false).ok = false,
        &[DoubtKind::Errors],
    ),
    (
        "the warm-up fails",
        |r| {
            r.samples.clear();
            add_trial(r, 0, 5.0, true).ok = false;
        },
        &[DoubtKind::Errors, DoubtKind::FewTrials],
    ),
    (
        "five trials",
        |r| r.samples.truncate(6),
        &[DoubtKind::FewTrials],
    ),
    ("no trial", |r| r.samples.clear(), &[DoubtKind::FewTrials]),
    (
        "memory serves it",
        |r| serve(r, 0, ServedBy::NotStorage, "a character device"),
        &[DoubtKind::NotStorage],
    ),
    (
        "a floor of half a request",
        |r| r.run.floor_ns = Some(34_000.0),
        &[DoubtKind::ToolBound],
    ),
    (
        "a floor of a tenth",
        |r| r.run.floor_ns = Some(6_800.0),
        &[],
    ),
    (
        "stamps cost 0.9 %",
        |r| r.run.clock_cost_ns = Some(600.0),
        &[],
    ),
    (
        "stamps cost 1.2 %",
        |r| r.run.clock_cost_ns = Some(800.0),
        &[DoubtKind::ClockCost],
    ),
    (
        "steps of 0.9 %",
        |r| r.run.clock_resolution_ns = Some(600.0),
        &[],
    ),
    (
        "steps of 1.2 %",
        |r| r.run.clock_resolution_ns = Some(800.0),
        &[DoubtKind::ClockResolution],
    ),
    (
        "its thread uses 95 % of a CPU",
        |r| used(r, 0.95),
        &[DoubtKind::ToolBound],
    ),
    (
        "its thread polls",
        |r| {
            used(r, 0.95);
            r.samples
                .iter_mut()
                .for_each(|sample| sample.effective.polled = true);
        },
        &[],
    ),
    (
        "48 threads use 1.9 of two CPUs",
        |r| {
            used(r, 1.9);
            r.cells[0].spec.trial.threads = 48;
        },
        &[DoubtKind::ToolBound, DoubtKind::FewInFlight],
    ),
    (
        "80 % of a link below the disk's best",
        |r| link(r, "6.0 Gbps", "75"),
        &[DoubtKind::SlowLink],
    ),
    (
        "120 % of a link below the disk's best",
        |r| link(r, "6.0 Gbps", "50"),
        &[DoubtKind::ExceedsCeiling],
    ),
    (
        "20 % of a link below the disk's best",
        |r| link(r, "6.0 Gbps", "300"),
        &[],
    ),
    (
        "a transfer is short",
        |r| r.samples[2].operations.read.short_transfers = 1,
        &[DoubtKind::ShortTransfers],
    ),
];

/// CPU time of a cell's threads, CPUs.
fn used(record: &mut RunRecord, cpus: f64) {
    for sample in &mut record.samples {
        sample.counters.usage.user_ns = (sample.elapsed_ns as f64 * cpus) as u64;
    }
}

/// A link of 3.0 Gbps, the best of the disk, and what the link carries, MB/s.
fn link(record: &mut RunRecord, best: &str, mb_s: &str) {
    let facts = [
        ("device_link", "3.0 Gbps"),
        ("device_link_best", best),
        ("device_link_mb_s", mb_s),
    ];
    let facts = facts.map(|(key, value)| (key.to_owned(), value.to_owned()));
    record.environment.extend(facts);
}

#[test]
fn each_event_of_a_cell_has_its_flags() {
    for (what, change, flags) in ROWS {
        let mut record = one_cell(&around(60.0));
        change(&mut record);
        assert_eq!(only_cell(&record).flags, flags, "{what}");
    }
}

fn reads_after_writes(record: &RunRecord) -> usize {
    let run = analyse(record);
    let cells = run.cells.iter();
    cells.filter(|cell| cell.reads_after_writes).count()
}

#[test]
fn reads_after_writes_need_a_volatile_cache() {
    // One cell of each target writes, one reads.
    let made = || {
        let mut record = record("disk-grid", &["bs"]);
        record.run.target = "/a".to_owned();
        record.further_targets = vec![FurtherTarget {
            id: 1,
            target: "/b".to_owned(),
            ..FurtherTarget::default()
        }];
        for (target, read_percent) in [("/a", 0), ("/a", 100), ("/b", 0), ("/b", 100)] {
            let cell = add_cell(&mut record, &["bs=4KiB"], &[]);
            record.cells[cell].spec.target = target.parse().ok();
            record.cells[cell].spec.trial.read_percent = read_percent;
            for mb_s in around(100.0) {
                add_trial(&mut record, cell, mb_s, false);
            }
        }
        record
    };
    let count = |facts: &[(&str, &str)], served: &[(usize, ServedBy)]| {
        let mut record = made();
        let facts = facts.iter();
        record
            .environment
            .extend(facts.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        for (cell, served_by) in served {
            serve(&mut record, *cell, *served_by, "");
        }
        reads_after_writes(&record)
    };
    // Bytes that a trial writes out afterwards are not left for another trial.
    let written_out = |cells: &[i64]| {
        let mut record = made();
        for sample in &mut record.samples {
            let own = cells.contains(&sample.cell);
            sample.region.owed_sync_ns = own.then_some(1_000_000);
        }
        reads_after_writes(&record)
    };
    assert_eq!(written_out(&[0, 2]), 0);
    assert_eq!(written_out(&[0]), 1, "of /b nothing is written out");
    let with_a_failed_trial = {
        let mut record = made();
        for sample in &mut record.samples {
            sample.region.owed_sync_ns = [0, 2].contains(&sample.cell).then_some(1_000_000);
        }
        let mut writes = record.samples.iter_mut().filter(|sample| sample.cell == 0);
        let failed = writes.next().expect("it has trials");
        failed.ok = false;
        failed.region.owed_sync_ns = None;
        reads_after_writes(&record)
    };
    assert_eq!(with_a_failed_trial, 0);
    // Reads before any write find nothing in the cache, such as the first jobs of an imported file.
    let before = {
        let mut record = made();
        let last = record.samples.len() as i64;
        for sample in &mut record.samples {
            sample.id = match sample.cell {
                1 => sample.id - 2 * last,
                _ => sample.id,
            };
        }
        record.samples.sort_by_key(|sample| sample.id);
        reads_after_writes(&record)
    };
    assert_eq!(before, 1, "of /b the reads follow");
    let through = "write through";
    let (of_a, of_b) = ("device_write_cache", "target_1_device_write_cache");
    assert_eq!(count(&[], &[]), 2, "not known");
    assert_eq!(count(&[(of_a, through)], &[]), 1);
    assert_eq!(count(&[(of_a, "write back"), (of_b, through)], &[]), 1);
    assert_eq!(count(&[(of_a, through), (of_b, through)], &[]), 0);
    for elsewhere in [ServedBy::NotStorage, ServedBy::PageCache, ServedBy::Network] {
        assert_eq!(count(&[], &[(0, elsewhere)]), 1, "the writes of /a");
        assert_eq!(count(&[], &[(3, elsewhere)]), 1, "the reads of /b");
    }
}
