mod damage;
mod logged;
mod malicious_files;
mod many_trials;
mod observation;
mod over_time;
mod round_trip;
mod rows;
mod stored;

use std::os::unix::fs::PermissionsExt;

use super::*;

use iolab_workload::Kind;
use iolab_workload::group::GroupSpec;
use iolab_workload::trial::{Rate, TrialSpec};
use std::time::Duration;

use iolab_record::environment::KEYS;
use iolab_record::{
    Interval, Moved, Operation, PerOperation, RequestTime, SampleLatency, SampleLatencyOverTime,
    SampleSeries, Series,
};
use iolab_workload::histogram::over_time::{BUCKETS, IntervalLatency, LatencyOverTime, bucket};
use iolab_workload::settings::CellSpec;
use rows::*;

struct Fixture {
    folder: tempfile::TempDir,
}

fn environment() -> Environment {
    let mut list = Environment::default();
    list.put(&KEYS.memory_bytes, 1024);
    list.put(&KEYS.cpu_model, "a CPU".to_owned());
    list
}

impl Fixture {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn create(&self, name: &str) -> RunFile {
        let cells = [cell_row(0), cell_row(1)];
        RunFile::create(
            &self.path(name),
            &run_row(),
            &environment(),
            &experiment_row(),
            &cells,
        )
        .unwrap()
    }

    /// A copy of the files as they would be on disk if the writing process were killed now.
    fn killed(&self, name: &str) -> PathBuf {
        let (from, to) = (self.path(name), self.path("killed.iolab"));
        for suffix in ["", "-wal"] {
            std::fs::copy(beside(&from, suffix), beside(&to, suffix)).unwrap();
        }
        to
    }

    /// A finished file with one sample per cell.
    fn finished(&self, name: &str) -> PathBuf {
        let mut file = self.create(name);
        for cell in 0..2 {
            add(&mut file, &sample_row(cell, 0));
        }
        file.finish(RunStatus::Done, ENDED, None).unwrap();
        self.path(name)
    }
}

const READS: LatencyOf = LatencyOf::service(Operation::Read);
const WRITES: LatencyOf = LatencyOf::service(Operation::Write);

fn add(file: &mut RunFile, sample: &Sample) -> i64 {
    let (reads, writes) = (histogram(&[100, 200]), histogram(&[5_000_000]));
    let (series, latency) = (series(), over_time());
    let course = TrialCourse {
        series: &series,
        latency: &[(0, Operation::Read, RequestTime::Service, &latency)],
    };
    file.add_sample(sample, &[(READS, &reads), (WRITES, &writes)], course)
        .unwrap()
}

/// Two intervals of reads, and one of writes whose latencies are not kept.
fn over_time() -> LatencyOverTime {
    let interval = |latencies: &[u64]| {
        let mut counts = vec![0; BUCKETS];
        latencies.iter().for_each(|ns| counts[bucket(*ns)] += 1);
        IntervalLatency::new(&counts, latencies.iter().copied().max().unwrap_or(0))
    };
    LatencyOverTime {
        interval_ns: 100_000_000,
        span_ns: 150_000_000,
        intervals: vec![interval(&[100, 200, 200]), interval(&[5_000_000])],
    }
}

fn series() -> Series {
    let interval = |start_ns, length_ns, requests| Interval {
        start_ns,
        length_ns,
        done: PerOperation {
            read: Moved {
                requests,
                bytes: 4096 * requests,
            },
            write: Moved {
                requests: 2 * requests,
                bytes: 8192 * requests,
            },
            sync: Moved {
                requests: 3 * requests,
                bytes: 0,
            },
            trim: Moved {
                requests: 4 * requests,
                bytes: 16_384 * requests,
            },
        },
        drive_millidegrees: (requests > 0).then_some(41_000),
    };
    let intervals = vec![
        interval(0, 100_000_000, 7),
        interval(100_000_000, 56_000_000, 0),
    ];
    Series { intervals }
}

fn alter(path: &Path, sql: &str) {
    break_rows(&Connection::open(path).unwrap(), sql);
}

/// Executes a statement that the constraints of a run file do not allow.
fn break_rows(connection: &Connection, sql: &str) {
    connection
        .execute_batch("PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF")
        .unwrap();
    connection.execute_batch(sql).unwrap();
}

#[test]
fn reading_a_finished_run_leaves_one_file() {
    let bench = Fixture::new();
    let path = bench.finished("a.iolab");
    let names = || -> Vec<_> {
        let entries = std::fs::read_dir(bench.folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    };
    assert_eq!(names(), ["a.iolab"]);
    let before = std::fs::read(&path).unwrap();
    // Bytes 18 and 19 of the header say WAL mode (2) or plain (1).
    assert_eq!(&before[18..20], [1, 1]);
    read(&path).unwrap();
    assert_eq!(read_latency(&path).unwrap().count(), 4);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(names(), ["a.iolab"]);
}

#[test]
fn a_read_only_folder_can_be_read_from() {
    let bench = Fixture::new();
    let path = bench.finished("a file%20with?odd#name.iolab");
    // A file as a crash on another machine may leave it: WAL mode in its header, but without a -wal.
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
}

/// In a folder like `/tmp` others can put the link there before the first run.
#[test]
fn a_link_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return needs::skip(needs::Need::Root, "only root gives a link away");
    }
    let shared = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let all = std::fs::Permissions::from_mode(0o1777);
    std::fs::set_permissions(shared.path(), all).unwrap();
    let link = shared.path().join("iolab-results");
    std::os::unix::fs::symlink(elsewhere.path(), &link).unwrap();
    Folder::make(&link).expect("an own link is followed");
    std::os::unix::fs::lchown(&link, Some(65534), Some(65534)).unwrap();
    let error = Folder::make(&link).unwrap_err();
    assert_eq!(error.kind(), Kind::Refused, "{error}");
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn results_are_never_overwritten() {
    let bench = Fixture::new();
    let path = bench.finished("a.iolab");
    let before = std::fs::read(&path).unwrap();
    let error = RunFile::create(
        &path,
        &run_row(),
        &Environment::default(),
        &experiment_row(),
        &[cell_row(0)],
    )
    .unwrap_err();
    assert_eq!(error.kind(), Kind::Refused);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let place = NewFile::In {
        folder: bench.folder.path(),
        name: "a",
    };
    let file = RunFile::create(
        place,
        &run_row(),
        &Environment::default(),
        &experiment_row(),
        &[],
    )
    .unwrap();
    assert_eq!(file.path(), bench.path("a-2.iolab"));
}

#[test]
fn an_impossible_file_leaves_nothing_behind() {
    let bench = Fixture::new();
    let path = bench.path("a.iolab");
    let run = Run {
        seed: u64::MAX,
        ..run_row()
    };
    let error =
        RunFile::create(&path, &run, &Environment::default(), &experiment_row(), &[]).unwrap_err();
    insta::assert_snapshot!(error.message(), @"seed is 2^63 or more and does not fit a run file");
    assert_eq!(std::fs::read_dir(bench.folder.path()).unwrap().count(), 0);
    let error = RunFile::create(
        &bench.path("no/a.iolab"),
        &run_row(),
        &Environment::default(),
        &experiment_row(),
        &[],
    );
    insta::assert_snapshot!(error.unwrap_err().remedy().unwrap(), @"its folder does not exist: create it, or name another");
}

#[test]
fn a_killed_process_loses_nothing_that_was_added() {
    let bench = Fixture::new();
    let mut file = bench.create("a.iolab");
    for block in 0..3 {
        add(&mut file, &sample_row(0, block));
    }
    let path = bench.killed("a.iolab");
    let before = std::fs::read(&path).unwrap();
    assert_eq!(read(&path).unwrap().samples.len(), 3);
    assert_eq!(std::fs::read(&path).unwrap(), before);

    let (mut resumed, record) = RunFile::open_resume(&path).unwrap();
    assert_eq!(record.run.status, RunStatus::Running);
    assert_eq!(record.samples.len(), 3);
    assert_eq!(add(&mut resumed, &sample_row(0, 3)), 4);
    resumed.finish(RunStatus::Done, ENDED, None).unwrap();
    assert!(!beside(&path, "-wal").exists());
    assert_eq!(read(&path).unwrap().samples.len(), 4);
}

#[test]
fn a_log_that_cannot_be_merged_is_reported() {
    let bench = Fixture::new();
    let mut file = bench.create("a.iolab");
    add(&mut file, &sample_row(0, 0));
    let path = bench.path("a.iolab");
    let log = log_beside(&path).expect("a log");
    assert_eq!(log, beside(&path, "-wal"));
    // Data outside of all files cannot be moved.
    let log = File::options().write(true).open(log).unwrap();
    log.set_len(32).unwrap();
    let error = file.merge().expect_err("there is nothing");
    assert_eq!(error.kind(), Kind::Failed);
    let told = error
        .message()
        .replace(&path.display().to_string(), "a.iolab");
    let (begin, _) = told.split_once(" (").unwrap();
    assert_eq!(
        begin,
        "a.iolab is complete only together with a.iolab-wal: merging them failed"
    );
    assert!(error.remedy().is_some());
}

#[test]
fn a_run_in_progress_locks_its_file() {
    let bench = Fixture::new();
    let mut file = bench.create("a.iolab");
    add(&mut file, &sample_row(0, 0));
    let path = bench.path("a.iolab");
    let other = Connection::open(&path).unwrap();
    other.busy_timeout(Duration::ZERO).unwrap();
    let count = |other: &Connection| {
        other.query_row("SELECT count(*) FROM sample", [], |row| {
            row.get::<_, i64>(0)
        })
    };
    let error = count(&other).unwrap_err();
    assert_eq!(
        error.sqlite_error_code(),
        Some(rusqlite::ErrorCode::DatabaseBusy)
    );
    assert!(!beside(&path, "-shm").exists());
    file.finish(RunStatus::Done, ENDED, None).unwrap();
    assert_eq!(count(&other), Ok(1));
}

#[test]
fn the_log_of_a_killed_run_is_merged() {
    let bench = Fixture::new();
    let mut file = bench.create("a.iolab");
    add(&mut file, &sample_row(0, 0));
    file.execute("UPDATE run SET status = 'done'").unwrap();
    let path = bench.killed("a.iolab");
    let told = read(&path).unwrap();
    assert_eq!(told.run.status, RunStatus::Done);
    settle(&path).unwrap();
    for suffix in ["-wal", "-shm", "-journal"] {
        assert!(!beside(&path, suffix).exists(), "{suffix}");
    }
    assert_eq!(read(&path).unwrap(), told);
    // A file without a left-over -wal is not changed, nor is one that is being written.
    let before = std::fs::read(&path).unwrap();
    settle(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let error = settle(&bench.path("a.iolab")).unwrap_err();
    assert_eq!(error.kind(), Kind::Refused);
}

#[test]
fn only_one_process_writes() {
    let bench = Fixture::new();
    let path = bench.path("a.iolab");
    let file = bench.create("a.iolab");
    assert_eq!(
        RunFile::open_resume(&path).unwrap_err().kind(),
        Kind::Refused
    );
    file.finish(RunStatus::Interrupted, ENDED, None).unwrap();
    let (first, _) = RunFile::open_resume(&path).unwrap();
    let error = RunFile::open_resume(&path).unwrap_err();
    assert_eq!(error.kind(), Kind::Refused);
    drop(first);
    RunFile::open_resume(&path).unwrap();
}

#[test]
fn status_changes_with_a_sessions_first_sample() {
    let bench = Fixture::new();
    let path = bench.path("a.iolab");
    bench
        .create("a.iolab")
        .finish(RunStatus::Interrupted, ENDED, None)
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
    let bench = Fixture::new();
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
    assert!(file.set_batch(9, Batch::One).is_err());
    drop(file);
    // A refused sample is not stored in part.
    assert_eq!(read(&bench.path("a.iolab")).unwrap().samples.len(), 3);
    assert_eq!(read_latency(&bench.path("a.iolab")).unwrap().count(), 2);
}
