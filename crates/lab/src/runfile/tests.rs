mod series;
mod stranger;

use super::*;
use std::os::unix::fs::PermissionsExt;

use iolab_engine::Kind;
use iolab_engine::histogram::new_latency_histogram;
use proptest::prelude::*;

use crate::record::{
    Bottom, Counters, DeviceStat, Direction, Done, Extents, Faults, Hardware, HardwareEvents,
    Interval, LatencySummary, NoHardware, Pace, Pressure, ProcessIo, Region, Residency,
    ResourceUse, ServedBy, Verdict, Verified,
};

const BEGAN: &str = "2025-11-21T10:00:00Z";
const ENDED: &str = "2025-11-21T10:02:00Z";

fn run_row() -> Run {
    Run {
        status: RunStatus::Running,
        tool_version: "0.1.0".to_owned(),
        started_utc: BEGAN.to_owned(),
        ended_utc: None,
        target: "/somewhere".to_owned(),
        target_kind: "scratch".to_owned(),
        target_bytes: 1 << 30,
        seed: 42,
        clock_cost_ns: 11.5,
        clock_source: "tsc: invariant".to_owned(),
        floor_ns: 30.25,
    }
}

fn experiment_row() -> ExperimentRecord {
    ExperimentRecord {
        name: "mine".to_owned(),
        question: "Why?".to_owned(),
        response: "iops".to_owned(),
        toml: "name = 'mine'\n".to_owned(),
        factors: vec!["pattern".to_owned(), "bs".to_owned()],
        precision: 0.05,
        budget_ns: 60_000_000_000,
        trials_min: 5,
        trials_max: 30,
    }
}

fn cell_row(id: i64) -> Cell {
    Cell {
        id,
        levels: vec!["rand".to_owned(), format!("{}KiB", 4 << id)],
        command: None,
        tool: "iolab".to_owned(),
        backend: "io_uring".to_owned(),
        pattern: "zipf:1.2".to_owned(),
        bs_bytes: 4096 << id,
        skip_bytes: 0,
        offset_bytes: 4096,
        region_bytes: 1 << 29,
        threads: 2,
        depth: 32,
        batch: "auto".to_owned(),
        read_percent: 70,
        layout: "shared".to_owned(),
        descriptors: "private".to_owned(),
        fresh: false,
        sync: "end".to_owned(),
        cache: "direct".to_owned(),
        buffer_init: "random".to_owned(),
        content: "unique".to_owned(),
        verify: id == 1,
        rate: Some(5000 + id as u64),
        arrivals: Some("poisson".to_owned()),
        ended_by: None,
    }
}

/// A sample in which no two numbers are the same, so that swapped columns show.
fn sample_row(cell: i64, block: u32) -> Sample {
    let latency = |from: u64| LatencySummary {
        mean_ns: from as f64 + 0.5,
        p50_ns: from + 1,
        p90_ns: from + 2,
        p99_ns: from + 3,
        p999_ns: from + 4,
        max_ns: from + 5,
    };
    let residency = |from: u64| Residency {
        looked_bytes: from,
        resident_bytes: from + 1,
        dirty_bytes: Some(from + 2),
        writeback_bytes: Some(from + 3),
    };
    Sample {
        id: 0,
        cell,
        block,
        position: 7,
        warmup: block == 0,
        ok: true,
        started_utc: BEGAN.to_owned(),
        reads: Direction {
            requests: 1001,
            bytes: 1002,
            short_transfers: 1003,
            latency: Some(latency(1010)),
            response: Some(latency(1020)),
            lateness: Some(latency(1030)),
        },
        writes: Direction {
            requests: 2001,
            bytes: 2002,
            short_transfers: 2003,
            latency: Some(latency(2010)),
            response: Some(latency(2020)),
            lateness: Some(latency(2030)),
        },
        syncs: 1,
        errors: 2,
        failure: None,
        ended: "time".to_owned(),
        elapsed_ns: 3001,
        all_active_ns: 3002,
        end_sync_ns: 3003,
        wall_ns: 3004,
        clock_drift_ppm: -1.5,
        seed: i64::MAX as u64,
        counters: Counters {
            usage: ResourceUse {
                user_ns: 4001,
                system_ns: 4002,
                minor_faults: 4003,
                major_faults: 4004,
                voluntary_switches: 4005,
                involuntary_switches: 4006,
            },
            process_io: Some(ProcessIo {
                rchar: 5001,
                wchar: 5002,
                syscr: 5003,
                syscw: 5004,
                read_bytes: 5005,
                write_bytes: 5006,
            }),
            device: Some(DeviceStat {
                read_ios: 6001,
                read_merges: 6002,
                read_bytes: 6003,
                write_ios: 6004,
                write_merges: 6005,
                write_bytes: 6006,
                flush_ios: 6007,
                busy_ms: 6008,
                queue_ms: Some(6009),
            }),
            hardware: Hardware::Counted(HardwareEvents {
                cycles: Some(7001),
                instructions: Some(7002),
                llc_misses: None,
                dtlb_misses: Some(7004),
            }),
            bottom: Some(Bottom {
                stat: DeviceStat {
                    read_ios: 8001,
                    read_merges: 8002,
                    read_bytes: 8003,
                    write_ios: 8004,
                    write_merges: 8005,
                    write_bytes: 8006,
                    flush_ios: 8007,
                    busy_ms: 8008,
                    queue_ms: Some(8009),
                },
                in_file: true,
            }),
            pressure: Pressure {
                cpu_stall_ns: Some(9001),
                io_stall_ns: Some(9002),
                memory_stall_ns: None,
                steal_ns: Some(9004),
                suspended_ns: Some(9005),
                cpu_khz: Some(9006),
            },
        },
        region: Region {
            before: Some(residency(10_001)),
            after: Some(residency(10_011)),
            extents: Some(Extents {
                looked_bytes: 10_021,
                hole_bytes: 10_022,
                unwritten_bytes: Some(10_023),
            }),
            owed_sync_ns: Some(10_031),
            evidence_ns: 10_032,
        },
        pace: Some(Pace {
            rate_wanted: 7001.5,
            rate_achieved: 7002.5,
            backlog_max: 7003,
            backlog_end: 7004,
        }),
        verified: Some(Verified {
            blocks: 11_001,
            bytes: 11_002,
            cached_bytes: Some(11_003),
            faults: std::array::from_fn(|kind| Faults {
                blocks: 10_900 + kind as u64,
                first_offset: 11_020 + kind as u64,
            }),
        }),
        effective: "fixed_file; no ring".to_owned(),
        verdict: Verdict {
            served_by: ServedBy::Mixed,
            device_fraction: Some(0.75),
            reason: "read-ahead".to_owned(),
        },
    }
}

/// What a failed trial without any account looks like.
fn bare_sample(cell: i64, block: u32) -> Sample {
    Sample {
        ok: false,
        reads: Direction::default(),
        failure: Some("pwrite of 4096 bytes at offset 0 failed".to_owned()),
        ended: "failed".to_owned(),
        counters: Counters::default(),
        region: Region::default(),
        pace: None,
        verified: None,
        verdict: Verdict {
            served_by: ServedBy::Unknown,
            device_fraction: None,
            reason: "nothing was transferred".to_owned(),
        },
        ..sample_row(cell, block)
    }
}

fn histogram(values: &[u64]) -> LatencyHistogram {
    let mut histogram = new_latency_histogram();
    values
        .iter()
        .for_each(|value| histogram.record(*value).unwrap());
    histogram
}

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn create(&self, name: &str) -> RunFile {
        let environment = [
            ("memory_bytes".to_owned(), "1024".to_owned()),
            ("cpu_model".to_owned(), "a CPU".to_owned()),
        ];
        let cells = [cell_row(0), cell_row(1)];
        RunFile::create(
            &self.path(name),
            &run_row(),
            &environment,
            &experiment_row(),
            &cells,
        )
        .unwrap()
    }

    /// A finished file with one sample per cell.
    fn finished(&self, name: &str) -> PathBuf {
        let mut file = self.create(name);
        for cell in 0..2 {
            add(&mut file, &sample_row(cell, 0));
        }
        file.finish(RunStatus::Done, ENDED).unwrap();
        self.path(name)
    }
}

fn add(file: &mut RunFile, sample: &Sample) -> i64 {
    let (reads, writes) = (histogram(&[100, 200]), histogram(&[5_000_000]));
    file.add_sample(sample, &[("read", &reads), ("write", &writes)], &series())
        .unwrap()
}

fn series() -> Series {
    let interval = |start_ns, length_ns, requests| Interval {
        start_ns,
        length_ns,
        done: Done {
            read_requests: requests,
            read_bytes: 4096 * requests,
            write_requests: 2 * requests,
            write_bytes: 8192 * requests,
        },
    };
    let intervals = vec![
        interval(0, 100_000_000, 7),
        interval(100_000_000, 56_000_000, 0),
    ];
    Series { intervals }
}

fn alter(path: &Path, sql: &str) {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch("PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF")
        .unwrap();
    connection.execute_batch(sql).unwrap();
}

#[test]
fn everything_comes_back() {
    let bench = Bench::new();
    let mut file = bench.create("a.iolab");
    let event = Event {
        at_utc: BEGAN.to_owned(),
        kind: "choice".to_owned(),
        cell: Some(1),
        message: "one: 10, all: 20".to_owned(),
    };
    file.set_batch(1, "50%").unwrap();
    file.add_event(&event).unwrap();
    assert_eq!(add(&mut file, &sample_row(0, 0)), 1);
    let none = histogram(&[]);
    assert_eq!(
        file.add_sample(&bare_sample(1, 0), &[("read", &none)], &Series::default())
            .unwrap(),
        2
    );
    file.set_ended_by(0, "precision").unwrap();
    file.finish(RunStatus::Failed, ENDED).unwrap();

    let record = read(&bench.path("a.iolab")).unwrap();
    let expected = RunRecord {
        run: Run {
            status: RunStatus::Failed,
            ended_utc: Some(ENDED.to_owned()),
            ..run_row()
        },
        environment: vec![
            ("memory_bytes".to_owned(), "1024".to_owned()),
            ("cpu_model".to_owned(), "a CPU".to_owned()),
        ],
        experiment: experiment_row(),
        cells: vec![
            Cell {
                ended_by: Some("precision".to_owned()),
                ..cell_row(0)
            },
            Cell {
                batch: "50%".to_owned(),
                ..cell_row(1)
            },
        ],
        samples: vec![
            Sample {
                id: 1,
                ..sample_row(0, 0)
            },
            Sample {
                id: 2,
                ..bare_sample(1, 0)
            },
        ],
        series: vec![SampleSeries {
            sample: 1,
            series: series(),
        }],
        events: vec![event],
    };
    assert_eq!(record, expected);

    let latencies: Vec<SampleLatency> = read_latency(&bench.path("a.iolab"))
        .unwrap()
        .collect::<Result<_>>()
        .unwrap();
    let found: Vec<_> = latencies.iter().map(|l| (l.sample, l.direction)).collect();
    assert_eq!(found, [(1, "read"), (1, "write")]);
    assert_eq!(latencies[0].histogram, histogram(&[100, 200]));
}

#[test]
fn every_latency_comes_back_under_its_name() {
    let bench = Bench::new();
    let mut file = bench.create("a.iolab");
    let all: Vec<(&str, LatencyHistogram)> = schema::DIRECTIONS
        .into_iter()
        .zip(1..)
        .map(|(direction, ns)| (direction, histogram(&[ns * 1000])))
        .collect();
    let given: Vec<_> = all.iter().map(|(d, h)| (*d, h)).collect();
    file.add_sample(&sample_row(0, 0), &given, &Series::default())
        .unwrap();
    drop(file);
    let mut found: Vec<(&str, u64)> = read_latency(&bench.path("a.iolab"))
        .unwrap()
        .map(|latency| latency.map(|l| (l.direction, l.histogram.max())))
        .collect::<Result<_>>()
        .unwrap();
    found.sort_by_key(|(_, max)| *max);
    let expected: Vec<(&str, u64)> = all.iter().map(|(d, h)| (*d, h.max())).collect();
    assert_eq!(found, expected);
}

#[test]
fn numbers_that_are_not_known_stay_unknown() {
    let bench = Bench::new();
    let mut file = bench.create("a.iolab");
    let sample = Sample {
        clock_drift_ppm: f64::NAN,
        ..sample_row(0, 0)
    };
    add(&mut file, &sample);
    drop(file);
    let record = read(&bench.path("a.iolab")).unwrap();
    assert!(record.samples[0].clock_drift_ppm.is_nan());
}

#[test]
fn a_finished_run_is_one_plain_file_that_reading_leaves_alone() {
    let bench = Bench::new();
    let path = bench.finished("a.iolab");
    let names = || -> Vec<_> {
        let entries = std::fs::read_dir(bench.folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    };
    assert_eq!(names(), ["a.iolab"]);
    let before = std::fs::read(&path).unwrap();
    // Bytes 18 and 19 of the header tell WAL mode (2) from a plain file (1).
    assert_eq!(&before[18..20], [1, 1]);
    read(&path).unwrap();
    assert_eq!(read_latency(&path).unwrap().count(), 4);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(names(), ["a.iolab"]);
}

#[test]
fn a_read_only_folder_can_be_read_from() {
    let bench = Bench::new();
    let path = bench.finished("a file%20with?odd#name.iolab");
    // As a crash on another machine may leave it: WAL mode by its header, but without a -wal.
    let copied = bench.path("wal mode.iolab");
    std::fs::copy(&path, &copied).unwrap();
    alter(&copied, "PRAGMA journal_mode = WAL");
    let set_mode = |mode: u32| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(bench.folder.path(), permissions).unwrap();
    };
    set_mode(0o500);
    let results = [read(&path), read(&copied)];
    set_mode(0o700);
    for result in results {
        assert_eq!(result.unwrap().samples.len(), 2);
    }
    // Root writes anywhere, so the way around is tried by itself too.
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(immutable_uri(&path), flags).unwrap();
    assert_eq!(
        read::record(&connection, &path, SCHEMA_VERSION)
            .unwrap()
            .samples
            .len(),
        2
    );
}

#[test]
fn results_are_never_overwritten() {
    let bench = Bench::new();
    let path = bench.finished("a.iolab");
    let before = std::fs::read(&path).unwrap();
    let error =
        RunFile::create(&path, &run_row(), &[], &experiment_row(), &[cell_row(0)]).unwrap_err();
    assert_eq!(error.kind(), Kind::Refused);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let place = NewFile::In {
        folder: bench.folder.path(),
        name: "a",
    };
    let file = RunFile::create(place, &run_row(), &[], &experiment_row(), &[]).unwrap();
    assert_eq!(file.path(), bench.path("a-2.iolab"));
}

#[test]
fn a_file_that_cannot_be_created_is_not_left_behind() {
    let bench = Bench::new();
    let path = bench.path("a.iolab");
    let run = Run {
        seed: u64::MAX,
        ..run_row()
    };
    let error = RunFile::create(&path, &run, &[], &experiment_row(), &[]).unwrap_err();
    assert!(error.message().contains("seed"), "{error}");
    assert_eq!(std::fs::read_dir(bench.folder.path()).unwrap().count(), 0);
    let error = RunFile::create(
        &bench.path("no/a.iolab"),
        &run_row(),
        &[],
        &experiment_row(),
        &[],
    );
    assert!(error.unwrap_err().remedy().unwrap().contains("folder"));
}

#[test]
fn readers_look_on_while_a_run_is_measured() {
    let bench = Bench::new();
    let mut file = bench.create("a.iolab");
    for block in 0..5 {
        add(&mut file, &sample_row(0, block));
        let record = read(&bench.path("a.iolab")).unwrap();
        assert_eq!(record.samples.len(), block as usize + 1);
        assert_eq!(record.run.status, RunStatus::Running);
    }
}

#[test]
fn a_killed_process_loses_nothing_that_was_added() {
    let bench = Bench::new();
    let mut file = bench.create("a.iolab");
    for block in 0..3 {
        add(&mut file, &sample_row(0, block));
    }
    // What a kill would leave on disk: the files as they are now.
    for suffix in ["", "-wal"] {
        let (from, to) = (bench.path("a.iolab"), bench.path("killed.iolab"));
        std::fs::copy(beside(&from, suffix), beside(&to, suffix)).unwrap();
    }
    let path = bench.path("killed.iolab");
    let before = std::fs::read(&path).unwrap();
    assert_eq!(read(&path).unwrap().samples.len(), 3);
    assert_eq!(std::fs::read(&path).unwrap(), before);

    let (mut resumed, record) = RunFile::open_resume(&path).unwrap();
    assert_eq!(record.run.status, RunStatus::Running);
    assert_eq!(record.samples.len(), 3);
    assert_eq!(add(&mut resumed, &sample_row(0, 3)), 4);
    resumed.finish(RunStatus::Done, ENDED).unwrap();
    assert!(!beside(&path, "-wal").exists());
    assert_eq!(read(&path).unwrap().samples.len(), 4);
}

#[test]
fn only_one_process_writes() {
    let bench = Bench::new();
    let path = bench.path("a.iolab");
    let file = bench.create("a.iolab");
    assert_eq!(
        RunFile::open_resume(&path).unwrap_err().kind(),
        Kind::Refused
    );
    file.finish(RunStatus::Interrupted, ENDED).unwrap();
    let (first, _) = RunFile::open_resume(&path).unwrap();
    let error = RunFile::open_resume(&path).unwrap_err();
    assert_eq!(error.kind(), Kind::Refused);
    assert!(error.message().contains("another iolab"), "{error}");
    drop(first);
    RunFile::open_resume(&path).unwrap();
}

#[test]
fn the_status_changes_with_the_first_sample_of_a_session() {
    let bench = Bench::new();
    let path = bench.path("a.iolab");
    bench
        .create("a.iolab")
        .finish(RunStatus::Interrupted, ENDED)
        .unwrap();
    drop(RunFile::open_resume(&path).unwrap());
    assert_eq!(read(&path).unwrap().run.status, RunStatus::Interrupted);
    let (mut file, _) = RunFile::open_resume(&path).unwrap();
    add(&mut file, &sample_row(0, 0));
    let run = read(&path).unwrap().run;
    assert_eq!((run.status, run.ended_utc), (RunStatus::Running, None));
}

#[test]
fn a_trial_is_kept_once_unless_it_failed() {
    let bench = Bench::new();
    let mut file = bench.create("a.iolab");
    file.add_sample(&bare_sample(0, 1), &[], &Series::default())
        .unwrap();
    file.add_sample(&bare_sample(0, 1), &[], &Series::default())
        .unwrap();
    add(&mut file, &sample_row(0, 1));
    assert!(
        file.add_sample(&sample_row(0, 1), &[], &Series::default())
            .is_err()
    );
    assert!(
        file.add_sample(&sample_row(9, 1), &[], &Series::default())
            .is_err(),
        "no such cell"
    );
    assert!(file.set_batch(9, "one").is_err());
    drop(file);
    // A refused sample leaves no half of itself.
    assert_eq!(read(&bench.path("a.iolab")).unwrap().samples.len(), 3);
    assert_eq!(read_latency(&bench.path("a.iolab")).unwrap().count(), 2);
}

#[test]
fn what_is_no_run_file_is_told() {
    let bench = Bench::new();
    let expect = |path: &Path, part: &str| {
        for error in [read(path).unwrap_err(), read_latency(path).unwrap_err()] {
            assert_eq!(error.kind(), Kind::Usage, "{error}");
            assert!(error.message().contains(part), "{error}");
            assert!(error.remedy().is_some(), "{error}");
        }
        assert!(RunFile::open_resume(path).is_err());
    };
    expect(&bench.path("missing.iolab"), "missing.iolab");
    expect(bench.folder.path(), "is no file");
    for (name, content) in [
        ("empty", &b""[..]),
        ("text", b"bs,iops\n4096,1000\n"),
        ("long text", &[b'x'; 9000]),
    ] {
        std::fs::write(bench.path(name), content).unwrap();
        expect(&bench.path(name), "not a run file");
        assert_eq!(std::fs::read(bench.path(name)).unwrap(), content);
    }
    alter(
        &bench.path("other"),
        "CREATE TABLE run (id); INSERT INTO run VALUES (1)",
    );
    expect(&bench.path("other"), "not a run file");
    let newer = bench.finished("newer");
    let next = SCHEMA_VERSION + 1;
    alter(&newer, &format!("PRAGMA user_version = {next}"));
    expect(&newer, "newer iolab");
    let older = bench.finished("older");
    alter(&older, "PRAGMA user_version = 0");
    expect(&older, "schema version 0");
}

/// What each schema version brought to the table of samples.
const ADDED: [(i64, &[&str]); 3] = [
    (
        2,
        &[
            "cycles",
            "instructions",
            "llc_misses",
            "dtlb_misses",
            "hardware_missing",
        ],
    ),
    (
        3,
        &[
            "bottom_read_ios",
            "bottom_read_merges",
            "bottom_read_bytes",
            "bottom_write_ios",
            "bottom_write_merges",
            "bottom_write_bytes",
            "bottom_flush_ios",
            "bottom_busy_ms",
            "bottom_in_file",
            "cpu_stall_ns",
            "io_stall_ns",
            "memory_stall_ns",
            "steal_ns",
            "suspended_ns",
            "cpu_khz",
            "cache_before_looked_bytes",
            "cache_before_bytes",
            "cache_before_dirty_bytes",
            "cache_before_writeback_bytes",
            "cache_after_looked_bytes",
            "cache_after_bytes",
            "cache_after_dirty_bytes",
            "cache_after_writeback_bytes",
            "extents_looked_bytes",
            "hole_bytes",
            "unwritten_bytes",
            "owed_sync_ns",
            "evidence_ns",
            "rate_wanted",
            "rate_achieved",
            "backlog_max",
            "backlog_end",
        ],
    ),
    (
        4,
        &[
            "verified_blocks",
            "verified_bytes",
            "verified_cached_bytes",
            "corrupted_blocks",
            "corrupted_first_offset",
            "misplaced_blocks",
            "misplaced_first_offset",
            "stale_blocks",
            "stale_first_offset",
            "torn_blocks",
            "torn_first_offset",
            "lost_blocks",
            "lost_first_offset",
            "device_queue_ms",
            "bottom_queue_ms",
        ],
    ),
];

/// Takes away what later schema versions brought.
fn make_older(path: &Path, version: i64) {
    alter(path, "DROP TABLE IF EXISTS series");
    let later = ADDED.into_iter().filter(|(since, _)| *since > version);
    for column in later.flat_map(|(_, columns)| columns) {
        alter(path, &format!("ALTER TABLE sample DROP COLUMN {column}"));
    }
    if version < 4 {
        for column in ["tool", "layout", "descriptors", "fresh", "verify"] {
            alter(path, &format!("ALTER TABLE cell DROP COLUMN {column}"));
        }
    }
    if version < 3 {
        for direction in ["read", "write"] {
            for what in ["response", "lateness"] {
                for part in ["mean", "p50", "p90", "p99", "p999", "max"] {
                    let column = format!("{direction}_{what}_{part}_ns");
                    alter(path, &format!("ALTER TABLE sample DROP COLUMN {column}"));
                }
            }
        }
        alter(path, "ALTER TABLE cell DROP COLUMN rate");
        alter(path, "ALTER TABLE cell DROP COLUMN arrivals");
    }
    if version < 2 {
        alter(path, "ALTER TABLE cell DROP COLUMN command");
    }
}

#[test]
fn a_file_of_an_earlier_schema_is_read_but_not_gone_on_with() {
    let bench = Bench::new();
    for version in 1..SCHEMA_VERSION {
        let path = bench.finished(&format!("of version {version}"));
        let before = read(&path).unwrap();
        make_older(&path, version);
        let error = read(&path).unwrap_err();
        assert!(error.message().contains("no column"), "{error}");
        alter(&path, &format!("PRAGMA user_version = {version}"));
        let read_back = read(&path).unwrap();
        let (was, is) = (&before.samples[0], &read_back.samples[0]);
        assert_eq!(
            (is.reads.latency, is.counters.usage),
            (was.reads.latency, was.counters.usage)
        );
        let cell = &read_back.cells[0];
        assert_eq!(cell.tool, "iolab");
        assert_eq!((is.verified, cell.verify), (None, false));
        if version < 3 {
            assert_eq!((is.reads.response, is.pace), (None, None));
            assert_eq!((cell.rate, &cell.arrivals), (None, &None));
        }
        assert_eq!((&*cell.layout, &*cell.descriptors), ("shared", "private"));
        let device = was.counters.device.map(|device| DeviceStat {
            queue_ms: None,
            ..device
        });
        assert_eq!(is.counters.device, device);
        if version < 3 {
            assert_eq!((is.region, is.counters.bottom), (Region::default(), None));
        } else {
            assert_eq!((is.region, is.pace), (was.region, was.pace));
        }
        let hardware = match version {
            1 => Hardware::Missing(NoHardware::NotAsked),
            _ => was.counters.hardware,
        };
        assert_eq!(is.counters.hardware, hardware);
        let error = RunFile::open_resume(&path).unwrap_err();
        assert_eq!(error.kind(), Kind::Refused);
        assert!(error.message().contains("older iolab"), "{error}");
    }
}

#[test]
fn a_file_cut_short_anywhere_is_told() {
    let bench = Bench::new();
    let whole = std::fs::read(bench.finished("whole")).unwrap();
    let path = bench.path("cut");
    for cut in (1..whole.len()).step_by(997) {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let error = read(&path).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage, "{cut}: {error}");
        let told = error.message();
        assert!(
            told.contains("cut short") || told.contains("not a run file"),
            "{cut}: {error}"
        );
    }
}

#[test]
fn values_that_cannot_be_are_told() {
    let bench = Bench::new();
    for (number, sql) in [
        "UPDATE run SET status = 'finished'",
        "UPDATE run SET seed = -1",
        "UPDATE run SET target_bytes = 'many'",
        "UPDATE run SET target = x'00ff'",
        "DELETE FROM run",
        "DELETE FROM experiment",
        "UPDATE experiment SET response = 'speed'",
        "UPDATE experiment SET precision = 7",
        "UPDATE experiment SET factors = '{'",
        "UPDATE experiment SET factors = '[\"bs\"]'",
        "UPDATE experiment SET trials_min = 0",
        "UPDATE experiment SET name = '../../x'",
        "UPDATE cell SET levels = '{\"bs\": 1, \"pattern\": 2}'",
        "UPDATE cell SET levels = '[]'",
        "UPDATE cell SET backend = 'warp'",
        "UPDATE cell SET tool = 'bonnie'",
        "UPDATE cell SET batch = '0%'",
        "UPDATE cell SET bs_bytes = 0",
        "UPDATE cell SET threads = 4294967296",
        "UPDATE cell SET read_percent = 101",
        "UPDATE cell SET ended_by = 'luck'",
        "UPDATE cell SET id = id + 1 WHERE id = 1",
        "UPDATE sample SET cell_id = 5 WHERE id = 1",
        "UPDATE sample SET elapsed_ns = -5",
        "UPDATE sample SET block = 99999999999",
        "UPDATE sample SET warmup = 2",
        "UPDATE sample SET ended = 'never'",
        "UPDATE sample SET served_by = 'magic'",
        "UPDATE sample SET device_fraction = 1.5",
        "UPDATE sample SET read_latency_mean_ns = -1.0",
        "UPDATE sample SET read_latency_p50_ns = NULL",
        "UPDATE sample SET device_busy_ms = -1",
        "UPDATE cell SET rate = 0",
        "UPDATE cell SET arrivals = 'burst'",
        "UPDATE sample SET rate_wanted = -1.0",
        "UPDATE sample SET rate_achieved = NULL",
        "UPDATE sample SET backlog_end = -1",
        "UPDATE sample SET write_response_p99_ns = NULL",
        "UPDATE sample SET user_ns = 1.5",
        "UPDATE sample SET involuntary_switches = 1152921504606846977",
        "UPDATE sample SET suspended_ns = 9223372036854775807",
        "INSERT INTO event VALUES (1, '', 'rumour', NULL, '')",
        "INSERT INTO event VALUES (1, '', 'note', 7, '')",
        "ALTER TABLE sample DROP COLUMN syncs",
        "DROP TABLE event",
    ]
    .iter()
    .enumerate()
    {
        let path = bench.finished(&format!("{number}"));
        alter(&path, sql);
        let error = read(&path).expect_err(sql);
        assert_eq!(error.kind(), Kind::Usage, "{sql}: {error}");
        assert!(error.message().contains("damaged"), "{sql}: {error}");
    }
    for (number, sql) in [
        "UPDATE latency SET histogram = x'1c84930300'",
        "UPDATE latency SET histogram = 'text'",
        "UPDATE latency SET direction = 'up' WHERE direction = 'read'",
    ]
    .iter()
    .enumerate()
    {
        let path = bench.finished(&format!("latency {number}"));
        alter(&path, sql);
        let all: Result<Vec<_>> = read_latency(&path).and_then(Iterator::collect);
        assert!(all.unwrap_err().message().contains("damaged"), "{sql}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_damage_panics(places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..30)) {
        let bench = Bench::new();
        let path = bench.finished("whole");
        let mut bytes = std::fs::read(&path).unwrap();
        for (place, byte) in places {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        std::fs::write(&path, &bytes).unwrap();
        let _ = read(&path);
        if let Ok(latencies) = read_latency(&path) {
            latencies.for_each(drop);
        }
    }
}
