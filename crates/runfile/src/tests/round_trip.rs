//! Run files return what was written to them.

use iolab_record::tables::{ENVIRONMENT, Fact, RUN};
use iolab_record::{Asked, Fit, Question};
use iolab_workload::service_level::Need;

use super::*;

/// A cell with groups, one of which is idle.
fn cell_of_groups() -> Cell {
    let mut cell = cell_row(0);
    let rates = [Some(Rate::Bytes(50_000_000)), Some(Rate::ZERO), None];
    let groups = ["writer", "idle", "reader"].into_iter().zip(rates);
    let groups = groups.map(|(name, rate)| GroupSpec {
        name: name.to_owned(),
        spec: CellSpec {
            trial: TrialSpec {
                rate,
                ..TrialSpec::default()
            },
            ..CellSpec::default()
        },
    });
    cell.spec.groups = groups.collect();
    cell
}

/// A record with rows in every table of a run.
pub(super) fn whole_record() -> RunRecord {
    let with_drives = Sample {
        id: 1,
        drives: ["nvme0", "nvme1"]
            .map(|drive| DriveLog {
                sample: 1,
                drive: drive.to_owned(),
                throttle_events: None,
                ..filled(&DRIVE_LOG, &[])
            })
            .into(),
        ..sample_row(0, 0)
    };
    let group_samples = [1, 3].map(|group| {
        let mut own = Sample {
            id: 1,
            group,
            traced: filled(&STAGES, &[]).traced,
            ..filled(&GROUP_SAMPLE, &["hardware_missing"])
        };
        own.complete_from(&with_drives);
        own
    });
    let of_ranks = Sample {
        id: 2,
        ..sample_row(1, 1)
    };
    let client_samples = [0, 3].map(|client| {
        let mut own = Sample {
            id: 2,
            client,
            ..filled(&CLIENT_SAMPLE, &[])
        };
        own.take_place_of(&of_ranks);
        own
    });
    let parts = [(0, 0, 0), (0, 3, 1), (1, 0, 0)].map(|(group, rank, target)| Part {
        sample: 2,
        id: PartId {
            group,
            rank,
            target,
        },
        ..filled(&PART, &[])
    });
    let failed = Sample {
        id: 3,
        ..bare_sample(1, 2)
    };
    let changed = Cell {
        ended_by: Some(EndedBy::Precision),
        spec: CellSpec {
            trial: TrialSpec {
                batch: Batch::Percent(50),
                ..cell_row(1).spec.trial
            },
            batch_auto: false,
            ..cell_row(1).spec
        },
        ..cell_row(1)
    };
    RunRecord {
        run: Run {
            status: RunStatus::Failed,
            ended_utc: Some(ENDED.to_owned()),
            ..run_row()
        },
        environment: environment(),
        further_targets: vec![FurtherTarget {
            id: 1,
            ..filled(&TARGET, &[])
        }],
        ranks: vec![Rank {
            id: 1,
            ..filled(&RANK, &[])
        }],
        experiment: experiment_row(),
        cells: vec![cell_of_groups(), changed],
        samples: vec![with_drives, of_ranks, failed],
        group_samples: group_samples.into(),
        client_samples: client_samples.into(),
        parts: parts.into(),
        series: vec![SampleSeries {
            sample: 1,
            series: series(),
        }],
        preparation: vec![filled(&PREPARATION, &[])],
        events: vec![Event {
            cell: Some(1),
            ..filled(&EVENT, &[])
        }],
    }
}

/// The latencies of the samples of [`whole_record`], each with another value.
fn latencies(record: &RunRecord) -> Vec<(PartId, LatencyOf, LatencyHistogram)> {
    let ids = record.parts.iter().map(|part| part.id);
    let all = ids.flat_map(|id| Operation::ALL.iter().map(move |operation| (id, *operation)));
    let all = all.flat_map(|(id, operation)| {
        let quantities = RequestTime::ALL.iter();
        quantities.map(move |quantity| {
            (
                id,
                LatencyOf {
                    operation,
                    quantity: *quantity,
                },
            )
        })
    });
    let all = (1000..).zip(all);
    all.map(|(ns, (id, of))| (id, of, histogram(&[ns])))
        .collect()
}

/// Writes a record as a run does.
pub(super) fn write(path: &Path, record: &RunRecord) {
    let RunRecord { samples, cells, .. } = record;
    let planned = [cells[0].clone(), cell_row(1)];
    let (run, experiment) = (run_row(), &record.experiment);
    let mut file = RunFile::create(path, &run, &record.environment, experiment, &planned).unwrap();
    file.add_targets(&record.further_targets).unwrap();
    file.add_ranks(&record.ranks).unwrap();
    file.add_preparation(&record.preparation[0]).unwrap();
    file.add_event(&record.events[0]).unwrap();
    file.set_batch(1, Batch::Percent(50)).unwrap();
    let course = record.series[0].series.clone();
    let of_groups = SampleParts {
        groups: &record.group_samples,
        ..SampleParts::default()
    };
    let course = TrialCourse::from(&course);
    file.add_sample_of(&samples[0], of_groups, &[], course)
        .unwrap();
    let latencies = latencies(record);
    let latencies = latencies.iter().map(|(id, of, one)| (*id, *of, one));
    let latencies: Vec<_> = latencies.collect();
    let of_ranks = SampleParts {
        parts: &record.parts,
        clients: &record.client_samples,
        ..SampleParts::default()
    };
    let none = Series::default();
    file.add_sample_of(&samples[1], of_ranks, &latencies, (&none).into())
        .unwrap();
    let none = histogram(&[]);
    file.add_sample(&samples[2], &[(READS, &none)], &Series::default())
        .unwrap();
    file.set_ended_by(1, cells[1].ended_by).unwrap();
    file.finish(record.run.status, ENDED, None).unwrap();
    // Facts of another host are not read.
    let fact = Fact {
        host: 1,
        ..filled(&ENVIRONMENT, &[])
    };
    let connection = Connection::open(path).unwrap();
    let tables = Tables::new(&connection, path);
    tables.insert(&ENVIRONMENT, &fact).unwrap();
}

#[test]
fn everything_comes_back() {
    let bench = Fixture::new();
    let path = bench.path("a.iolab");
    let mut expected = whole_record();
    write(&path, &expected);
    expected.span_ranks();
    let record = read(&path).unwrap();
    assert_eq!(record, expected);
    let part = |group| PartId {
        group,
        ..PartId::default()
    };
    assert_eq!(record.group_of(1, part(3)), Some("reader"));
    assert_eq!(record.group_of(1, part(0)), None);
    let found = read_latency(&path).unwrap().map(|latency| {
        let SampleLatency {
            sample,
            part,
            of,
            histogram,
        } = latency.unwrap();
        assert_eq!(sample, 2);
        (histogram.max(), part, of)
    });
    let mut found: Vec<_> = found.collect();
    found.sort_unstable();
    let expected = latencies(&expected);
    let expected = expected
        .iter()
        .map(|(part, of, one)| (one.max(), *part, *of));
    assert!(found.into_iter().eq(expected));
}

/// A field of a table of its own, or of another kind of row, may stay empty.
#[test]
fn every_field_has_a_column() {
    let sample: Sample = filled(&SAMPLE, &["hardware_missing"]);
    let of_sample = [
        "id: 0,", "group: 0,", "client: 0,", "start_ns: 0,", "drives: [],", "traced: None,",
        // Of syncs and trims.
        "bytes: 0,", "short_transfers: 0,", "response: None,", "lateness: None,",
        // Of sizes of requests, which do not read alone.
        "reads: false,",
    ];
    for (empty, known) in [
        (empty_fields(&filled::<Run>(&RUN, &[])), &[][..]),
        (empty_fields(&sample), &of_sample),
        (empty_fields(&filled(&STAGES, &[]).traced), &[]),
        (empty_fields(&filled::<DriveLog>(&DRIVE_LOG, &[])), &[]),
        (empty_fields(&filled::<Part>(&PART, &[])), &["bytes: 0,"]),
    ] {
        let lost = empty.iter().find(|field| !known.contains(&field.as_str()));
        assert_eq!(lost, None, "{known:?}");
    }
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
