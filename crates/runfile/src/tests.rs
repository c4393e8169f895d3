mod damage;
mod docs;
mod rows;
mod series;
mod stranger;
#[path = "../tests/support/unpack.rs"]
mod unpack;
mod upgrade;

use std::os::unix::fs::PermissionsExt;

pub(crate) use unpack::unpack;

use super::*;

use iolab_spec::Kind;
use iolab_spec::group::GroupSpec;
use iolab_spec::trial::{Limit, Rate, TrialSpec};
use std::time::Duration;

use iolab_record::environment::KEYS;
use iolab_record::{
    Done, EventKind, Interval, Operation, RequestTime, SampleLatency, SampleSeries, TargetKind,
};
use iolab_spec::settings::{CellSpec, SETTINGS};
use opening::immutable_uri;
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

    /// What would be on disk if the process that writes this file were killed now: the files as they are.
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
        file.finish(RunStatus::Done, ENDED).unwrap();
        self.path(name)
    }
}

const READS: LatencyOf = LatencyOf::service(Operation::Read);
const WRITES: LatencyOf = LatencyOf::service(Operation::Write);

fn add(file: &mut RunFile, sample: &Sample) -> i64 {
    let (reads, writes) = (histogram(&[100, 200]), histogram(&[5_000_000]));
    file.add_sample(sample, &[(READS, &reads), (WRITES, &writes)], &series())
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
    let bench = Fixture::new();
    let mut file = bench.create("a.iolab");
    let event = Event {
        at_utc: BEGAN.to_owned(),
        kind: EventKind::Choice,
        cell: Some(1),
        message: "one: 10, all: 20".to_owned(),
    };
    file.set_batch(1, Batch::Percent(50)).unwrap();
    file.add_event(&event).unwrap();
    assert_eq!(add(&mut file, &sample_row(0, 0)), 1);
    let none = histogram(&[]);
    assert_eq!(
        file.add_sample(&bare_sample(1, 0), &[(READS, &none)], &Series::default())
            .unwrap(),
        2
    );
    file.set_ended_by(0, EndedBy::Precision).unwrap();
    let pilot = Pilot {
        visits: 3,
        time_ns: Some(45_000_000),
    };
    file.set_pilot(1, pilot).unwrap();
    file.finish(RunStatus::Failed, ENDED).unwrap();

    let record = read(&bench.path("a.iolab")).unwrap();
    let expected = RunRecord {
        run: Run {
            status: RunStatus::Failed,
            ended_utc: Some(ENDED.to_owned()),
            ..run_row()
        },
        environment: environment(),
        experiment: experiment_row(),
        cells: vec![
            Cell {
                ended_by: Some(EndedBy::Precision),
                ..cell_row(0)
            },
            Cell {
                spec: CellSpec {
                    trial: TrialSpec {
                        batch: Batch::Percent(50),
                        ..cell_row(1).spec.trial
                    },
                    batch_auto: false,
                    ..cell_row(1).spec
                },
                pilot: Some(pilot),
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
        ..RunRecord::default()
    };
    assert_eq!(record, expected);

    let latencies: Vec<SampleLatency> = read_latency(&bench.path("a.iolab"))
        .unwrap()
        .collect::<Result<_>>()
        .unwrap();
    let found: Vec<_> = latencies.iter().map(|l| (l.sample, l.of)).collect();
    assert_eq!(found, [(1, READS), (1, WRITES)]);
    assert_eq!(latencies[0].histogram, histogram(&[100, 200]));
}

#[test]
fn a_sample_may_have_parts_with_latencies_of_every_kind() {
    let bench = Fixture::new();
    let mut file = bench.create("a.iolab");
    let ids = [(0, 0, 0), (0, 3, 1), (1, 0, 0)];
    let ids = ids.map(|(group, rank, target)| PartId {
        group,
        rank,
        target,
    });
    let mut all = Vec::new();
    for part in ids {
        for operation in Operation::ALL {
            for quantity in RequestTime::ALL {
                let of = LatencyOf {
                    operation: *operation,
                    quantity: *quantity,
                };
                all.push((part, of, histogram(&[1000 + all.len() as u64])));
            }
        }
    }
    let given: Vec<_> = all.iter().map(|(part, of, h)| (*part, *of, h)).collect();
    let part = |(number, id): (u64, PartId)| Part {
        sample: 1,
        id,
        start_ns: number,
        elapsed_ns: number + 10,
        read_requests: number + 20,
        write_requests: number + 30,
        sync_requests: number + 40,
        trim_requests: number + 50,
        metadata_requests: number + 60,
        read_bytes: number + 70,
        write_bytes: number + 80,
        trim_bytes: number + 90,
        errors: number + 100,
    };
    let parts: Vec<Part> = (0..).zip(ids).map(part).collect();
    let whole = sample_row(0, 0);
    let clients = [0, 3].map(|rank| Sample {
        client: rank,
        start_ns: u64::from(rank) + 5,
        ..whole.clone()
    });
    file.add_sample_in_parts(&whole, (&parts, &clients), &given, &Series::default())
        .unwrap();
    drop(file);
    let path = bench.path("a.iolab");
    let record = read(&path).unwrap();
    assert_eq!(record.parts, parts);
    let own = |sample: &Sample| {
        (
            (sample.id, sample.client, sample.start_ns, sample.elapsed_ns),
            (sample.cell, sample.block, sample.ok),
            (
                sample.reads.clone(),
                sample.writes.clone(),
                sample.trims.clone(),
            ),
            (sample.sync_latency, sample.region, sample.verdict.clone()),
            iolab_record::Counters {
                hardware: iolab_record::Hardware::default(),
                ..sample.counters
            },
        )
    };
    let mut wanted = clients;
    wanted
        .iter_mut()
        .for_each(|client| client.id = record.samples[0].id);
    let found = record.client_samples.iter().map(own);
    assert_eq!(found.collect::<Vec<_>>(), wanted.each_ref().map(own));
    let mut found: Vec<_> = read_latency(&path)
        .unwrap()
        .map(|latency| latency.map(|l| (l.histogram.max(), l.part, l.of)))
        .collect::<Result<_>>()
        .unwrap();
    found.sort_unstable();
    let expected = all.iter().map(|(part, of, h)| (h.max(), *part, *of));
    assert_eq!(found, expected.collect::<Vec<_>>());
}

#[test]
fn what_a_run_across_hosts_has_besides_comes_back() {
    let bench = Fixture::new();
    let path = bench.finished("a.iolab");
    let columns: Vec<&str> = SETTINGS.iter().map(|setting| setting.column).collect();
    let columns = columns.join(", ");
    alter(
        &path,
        &format!(
            "INSERT INTO target VALUES (1, '/b', 'file', 4096);
             INSERT INTO rank VALUES (0, 0, 'one'), (1, 1, 'two');
             INSERT INTO environment VALUES (1, 0, 'cpu_model', 'another CPU');
             INSERT INTO cell_group (cell_id, group_id, name, target_id, {columns})
                 SELECT 1, 1, 'writer', 1, {columns} FROM cell WHERE id = 1;
             UPDATE cell_group SET bs_bytes = 8192, bytes = NULL, requests = NULL, time_ns = NULL"
        ),
    );
    let record = read(&path).unwrap();
    let target = &record.further_targets[0];
    assert_eq!((target.id, target.kind), (1, TargetKind::File));
    let hosts: Vec<_> = record
        .ranks
        .iter()
        .map(|rank| (rank.host, &*rank.name))
        .collect();
    assert_eq!(hosts, [(0, "one"), (1, "two")]);
    assert_eq!(
        (
            record.environment.iter().count(),
            record.further_hosts.len()
        ),
        (2, 1)
    );
    let group = &record.cells[1].spec.groups[0];
    assert_eq!(&*group.name, "writer");
    assert_eq!((group.spec.trial.bs, group.spec.trial.threads), (8192, 2));
    assert_eq!(group.spec.trial.limit, Limit::default());
}

#[test]
fn what_groups_are_asked_and_did_comes_back() {
    let bench = Fixture::new();
    let mut cell = cell_row(0);
    let group = |name: &str, rate| GroupSpec {
        name: name.to_owned(),
        spec: CellSpec {
            trial: TrialSpec {
                rate,
                start_delay: Duration::from_millis(3),
                ..TrialSpec::default()
            },
            ..CellSpec::default()
        },
    };
    let rates = [Some(Rate::Bytes(50_000_000)), Some(Rate::ZERO), None];
    let names = ["writer", "idle", "reader"];
    let groups = names.into_iter().zip(rates);
    cell.spec.groups = groups.map(|(name, rate)| group(name, rate)).collect();
    let cells = [cell.clone(), cell_row(1)];
    let path = bench.path("a.iolab");
    let mut file =
        RunFile::create(&path, &run_row(), &environment(), &experiment_row(), &cells).unwrap();
    let whole = sample_row(0, 0);
    let own = [1, 3].map(|number| {
        let mut own = sample_row(0, 0);
        own.group = number;
        own.start_ns = u64::from(number) * 1000;
        own.complete_from(&whole);
        own
    });
    file.add_sample_of_groups(&whole, &own, &[], &Series::default())
        .unwrap();
    drop(file);
    let record = read(&path).unwrap();
    assert_eq!(record.cells[0].spec.groups, cell.spec.groups);
    assert!(record.cells[1].spec.groups.is_empty());
    let found = &record.group_samples;
    assert_eq!(found.iter().map(|s| s.group).collect::<Vec<_>>(), [1, 3]);
    for (found, own) in found.iter().zip(&own) {
        assert_eq!(
            (found.reads.clone(), found.writes.clone()),
            (own.reads.clone(), own.writes.clone())
        );
        assert_eq!(
            (found.rate_report, found.verified, found.start_ns),
            (own.rate_report, own.verified, own.start_ns)
        );
        assert_eq!(found.counters.usage, own.counters.usage);
        assert_eq!((found.block, found.ok), (own.block, own.ok));
    }
    let part = PartId {
        group: 3,
        ..PartId::default()
    };
    assert_eq!(record.group_of(1, part), Some("reader"));
    assert_eq!(record.group_of(1, PartId::default()), None);
    // A file of this version from before there were groups has no such table.
    alter(&path, "DROP TABLE group_sample");
    assert!(read(&path).unwrap().group_samples.is_empty());
}

#[test]
fn a_block_may_visit_a_cell_several_times() {
    let bench = Fixture::new();
    let mut file = bench.create("a.iolab");
    let visits = [0, 1].map(|visit| Sample {
        visit,
        ..sample_row(0, 1)
    });
    for sample in &visits {
        add(&mut file, sample);
    }
    drop(file);
    let record = read(&bench.path("a.iolab")).unwrap();
    let found: Vec<_> = record.samples.iter().map(|s| (s.block, s.visit)).collect();
    assert_eq!(found, [(1, 0), (1, 1)]);
}

#[test]
fn numbers_that_are_not_known_stay_unknown() {
    let bench = Fixture::new();
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
    let bench = Fixture::new();
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
    let bench = Fixture::new();
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
fn a_file_that_cannot_be_created_is_not_left_behind() {
    let bench = Fixture::new();
    let path = bench.path("a.iolab");
    let run = Run {
        seed: u64::MAX,
        ..run_row()
    };
    let error =
        RunFile::create(&path, &run, &Environment::default(), &experiment_row(), &[]).unwrap_err();
    assert!(error.message().contains("seed"), "{error}");
    assert_eq!(std::fs::read_dir(bench.folder.path()).unwrap().count(), 0);
    let error = RunFile::create(
        &bench.path("no/a.iolab"),
        &run_row(),
        &Environment::default(),
        &experiment_row(),
        &[],
    );
    assert!(error.unwrap_err().remedy().unwrap().contains("folder"));
}

#[test]
fn readers_look_on_while_a_run_is_measured() {
    let bench = Fixture::new();
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
    resumed.finish(RunStatus::Done, ENDED).unwrap();
    assert!(!beside(&path, "-wal").exists());
    assert_eq!(read(&path).unwrap().samples.len(), 4);
}

#[test]
fn what_is_left_of_a_run_that_was_killed_when_it_was_done_is_taken_in() {
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
    // Where nothing is left, nothing is touched; and what is still being written is left to who writes it.
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
    let bench = Fixture::new();
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
    // A refused sample leaves no half of itself.
    assert_eq!(read(&bench.path("a.iolab")).unwrap().samples.len(), 3);
    assert_eq!(read_latency(&bench.path("a.iolab")).unwrap().count(), 2);
}
