//! Run files return what was written to them.

use iolab_record::Question;
use iolab_record::question::{Asked, Fit};
use iolab_workload::service_level::Need;

use super::*;

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
    // The number of the sample is set when it is stored.
    let with_drives = |sample: i64| Sample {
        drives: ["nvme0", "nvme1"]
            .map(|name| drive_row(sample, name))
            .into(),
        ..sample_row(0, 0)
    };
    assert_eq!(add(&mut file, &with_drives(0)), 1);
    let none = histogram(&[]);
    assert_eq!(
        file.add_sample(&bare_sample(1, 0), &[(READS, &none)], &Series::default())
            .unwrap(),
        2
    );
    file.set_ended_by(0, Some(EndedBy::Precision)).unwrap();
    file.finish(RunStatus::Failed, ENDED, None).unwrap();

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
                ..cell_row(1)
            },
        ],
        samples: vec![
            Sample {
                id: 1,
                ..with_drives(1)
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
fn questions_round_trip_and_answers_can_be_queried() {
    let bench = Fixture::new();
    let level = |text: &str| text.parse().unwrap();
    let fit = Fit {
        id: "1f".to_owned(),
        requirement: "etcd".to_owned(),
        not: "etcd itself".to_owned(),
        hold: Duration::from_secs(30),
        limits: vec!["in place".to_owned(), "\"".to_owned()],
        workloads: vec!["wal".to_owned(), "reads".to_owned()],
        workload: "reads".to_owned(),
    };
    let need = Need {
        source: "FAQ".to_owned(),
        wording: "p99".to_owned(),
        remedy: "a disk".to_owned(),
        ..Need::of(level("syncs.p99.9<10ms"))
    };
    let levels = "p99<2ms,iops>500".parse().unwrap();
    for (number, asked) in [
        Question::of_levels(Asked::Cells, &levels),
        Question::of_levels(Asked::Limit, &levels),
        Question {
            of: Asked::Fit(fit),
            needs: vec![need, Need::of(level("max<1s"))],
        },
    ]
    .into_iter()
    .enumerate()
    {
        let path = bench.path(&format!("{number}.iolab"));
        asking(&path, asked.clone())
            .finish(RunStatus::Interrupted, ENDED, Some("cannot tell"))
            .unwrap();
        let answer_in = |connection: &Connection| -> Option<String> {
            let sql = "SELECT answer FROM question";
            connection.query_row(sql, [], |row| row.get(0)).unwrap()
        };
        let answer = || answer_in(&Connection::open(&path).unwrap());
        assert_eq!(read(&path).unwrap().experiment.asked, Some(asked));
        assert_eq!(answer().as_deref(), Some("cannot tell"));
        let (mut file, _) = RunFile::open_resume(&path).unwrap();
        add(&mut file, &sample_row(0, 0));
        assert_eq!(answer_in(&file.connection), None, "it is measured again");
        file.finish(RunStatus::Done, ENDED, Some("yes")).unwrap();
        assert_eq!(answer().as_deref(), Some("yes"));
    }
}

/// A new file of a run with this question.
fn asking(path: &Path, asked: Question) -> RunFile {
    let experiment = ExperimentRecord {
        asked: Some(asked),
        ..experiment_row()
    };
    let cells = [cell_row(0)];
    RunFile::create(path, &run_row(), &environment(), &experiment, &cells).unwrap()
}

#[test]
fn a_question_that_cannot_be_is_told() {
    let bench = Fixture::new();
    let fit = |workloads: &str| {
        format!(
            "UPDATE question SET kind = 'fit', fit_id = 'x', requirement = 'x', workload = 'x',
                 workloads = '{workloads}', hold_ns = 1, not_covered = '', limits = '[]'"
        )
    };
    for (number, sql) in [
        "UPDATE question SET kind = 'run'",
        "UPDATE question SET kind = 'fit'",
        "UPDATE question SET fit_id = 'x'",
        &fit("[]"),
        &fit("[\"x\", 1]"),
        &fit("[\"x\", \"a/b\"]"),
        &fit("[\"x\", \"$(rm -rf .)\"]"),
        "UPDATE question_level SET level = 'p99<\u{1b}[31m'",
        "DELETE FROM question_level",
        "DELETE FROM question",
        "WITH RECURSIVE n(id) AS (VALUES (1) UNION ALL SELECT id + 1 FROM n LIMIT 200)
             INSERT INTO question_level SELECT id, 'p99<1s', '', '', '' FROM n",
    ]
    .into_iter()
    .enumerate()
    {
        let path = bench.path(&format!("{number}.iolab"));
        let levels = "p99<2ms".parse().unwrap();
        drop(asking(&path, Question::of_levels(Asked::Limit, &levels)));
        alter(&path, sql);
        let error = read(&path).expect_err(sql);
        assert_eq!(error.kind(), Kind::Usage, "{sql}: {error}");
        assert!(RunFile::open_resume(&path).is_err(), "{sql}");
    }
}

#[test]
fn a_sample_may_have_parts_with_all_latencies() {
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
        done: PerOperation::from_fn(|operation| Moved {
            requests: number + 20 + operation as u64,
            bytes: match operation {
                Operation::Sync => 0,
                _ => number + 70 + operation as u64,
            },
        }),
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
            sample.operations.clone(),
            (sample.region, sample.verdict.clone()),
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
fn records_of_runs_across_hosts_round_trip() {
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
             UPDATE cell_group SET bs_bytes = 8192, bytes = NULL, time_ns = NULL"
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
    assert_eq!(group.spec.trial.limit, TrialLimit::default());
}

#[test]
fn groups_and_their_samples_round_trip() {
    let bench = Fixture::new();
    let mut cell = cell_row(0);
    let group = |name: &str, rate| GroupSpec {
        name: name.to_owned(),
        spec: CellSpec {
            trial: TrialSpec {
                rate,
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
            (
                found.operations.read.clone(),
                found.operations.write.clone()
            ),
            (own.operations.read.clone(), own.operations.write.clone())
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
}
