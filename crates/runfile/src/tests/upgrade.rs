//! Files of earlier schema versions are read unchanged, and continued as files of the current version.

use std::io::Read;

use flate2::read::GzDecoder;
use iolab_record::column::Table;
use iolab_record::tables::{
    CELL, CELL_GROUP, ENVIRONMENT, EXPERIMENT, LATENCY_OVER_TIME, PREPARATION, QUESTION,
    QUESTION_LEVEL, RUN, SERIES,
};

use super::*;

/// Stored files of version 5, made by its last writer.
const STORED: [&str; 4] = ["interrupted", "interference", "search", "verified"];

/// The columns of a table that an earlier version lacked.
fn later<T>(table: &Table<T>, version: i64) -> Vec<String> {
    let name = table.name;
    if table.since() > version {
        return vec![format!("DROP TABLE {name}")];
    }
    let later = table.stored().filter(|column| column.since > version);
    later
        .map(|column| format!("ALTER TABLE {name} DROP COLUMN {}", column.name))
        .collect()
}

/// Removes what later versions added.
fn take_later(path: &Path, version: i64) {
    let all = [
        later(&RUN, version),
        later(&TARGET, version),
        later(&RANK, version),
        later(&ENVIRONMENT, version),
        later(&EXPERIMENT, version),
        later(&QUESTION, version),
        later(&QUESTION_LEVEL, version),
        later(&CELL, version),
        later(&CELL_GROUP, version),
        later(&CLIENT_SAMPLE, version),
        later(&GROUP_SAMPLE, version),
        later(&SAMPLE, version),
        later(&PART, version),
        later(&LATENCY, version),
        later(&SERIES, version),
        later(&LATENCY_OVER_TIME, version),
        later(&PREPARATION, version),
        later(&EVENT, version),
    ];
    alter(path, &all.concat().join(";"));
}

/// The file of an interrupted run with rows in every table.
fn full(bench: &Fixture, name: &str) -> PathBuf {
    let path = bench.path(name);
    let mut cell = cell_row(0);
    let group = |name: &str| GroupSpec {
        name: name.to_owned(),
        spec: cell_row(1).spec,
    };
    cell.spec.groups = ["writer", "reader"].map(group).to_vec();
    let mut file = RunFile::create(
        &path,
        &run_row(),
        &environment(),
        &experiment_row(),
        &[cell, cell_row(1)],
    )
    .unwrap();
    let (times, whole) = (histogram(&[100, 200]), sample_row(0, 0));
    let own = Sample {
        group: 2,
        ..whole.clone()
    };
    let of = [(PartId::default(), READS, &times)];
    file.add_sample_of_groups(&whole, &[own], &of, &series())
        .unwrap();
    let (client, whole) = (sample_row(1, 0), sample_row(1, 0));
    let part = Part {
        errors: 7,
        ..Part::default()
    };
    file.add_sample_in_parts(&whole, (&[part], &[client]), &of, &series())
        .unwrap();
    file.add_targets(&[FurtherTarget {
        id: 3,
        target: "/b".to_owned(),
        ..FurtherTarget::default()
    }])
    .unwrap();
    file.add_ranks(&[Rank::default()]).unwrap();
    file.add_event(&Event {
        at_utc: BEGAN.to_owned(),
        kind: EventKind::Warning,
        cell: Some(1),
        message: "hot".to_owned(),
    })
    .unwrap();
    file.finish(RunStatus::Interrupted, ENDED, None).unwrap();
    alter(
        &path,
        "INSERT INTO environment VALUES (1, 0, 'cpu_model', 'another')",
    );
    path
}

/// The whole content of a run file.
fn all(path: &Path) -> (RunRecord, Vec<SampleLatency>, Vec<SampleSeries>) {
    let latencies: Result<_> = read_latency(path).unwrap().collect();
    let series: Result<_> = read_series(path).unwrap().collect();
    (read(path).unwrap(), latencies.unwrap(), series.unwrap())
}

#[test]
fn a_file_of_version_5_or_an_earlier_build_is_read_and_resumed_whatever_it_has_of_version_6() {
    let bench = Fixture::new();
    let written = full(&bench, "now.iolab");
    let now = all(&written);
    let earlier = bench.path("earlier.iolab");
    std::fs::copy(&written, &earlier).unwrap();
    take_later(&earlier, 5);
    // The last writers of version 5 already wrote columns and tables that are now of version 6; the first one wrote none of them,
    // nor did the first build that wrote version 6.
    for (name, is_first, version) in [("last", false, 5), ("first", true, 5), ("early", true, 6)] {
        let path = bench.path(name);
        let from = if is_first { &earlier } else { &written };
        std::fs::copy(from, &path).unwrap();
        alter(&path, &format!("PRAGMA user_version = {version}"));
        let before = all(&path);
        if is_first {
            let trial = &before.0.cells[1].spec.trial;
            assert!(now.0.cells[1].spec.trial.noatime && !trial.noatime);
            assert_eq!(trial.bs, now.0.cells[1].trial().bs);
            let mut reads = now.0.samples[0].operations.read.clone();
            for latency in [&mut reads.latency, &mut reads.response, &mut reads.lateness] {
                let latency = latency.as_mut().expect("all are known");
                (latency.p9999_ns, latency.p99999_ns) = (None, None);
            }
            assert_eq!(before.0.samples[0].operations.read, reads);
            assert!(before.0.group_samples.is_empty());
            assert_eq!(before.0.cells[0].spec.groups.len(), 2);
        } else {
            assert!(before == now);
        }
        let (mut file, record) = RunFile::open_resume(&path).unwrap();
        assert!(record == before.0);
        assert!(all(&path) == before, "{name}");
        assert_eq!(add(&mut file, &sample_row(0, 1)), 3);
        file.finish(RunStatus::Done, ENDED, None).unwrap();
        assert_eq!(read(&path).unwrap().samples.len(), 3);
        // The upgraded file has the schema of a new one.
        drop(RunFile::open_resume(&path).unwrap());
    }
}

#[test]
fn what_writers_of_version_5_have_left_is_resumed() {
    let bench = Fixture::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/version-5");
    for name in STORED {
        let packed = File::open(folder.join(format!("{name}.iolab.gz"))).unwrap();
        let mut bytes = Vec::new();
        GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
        let path = bench.path(name);
        std::fs::write(&path, bytes).unwrap();
        let before = all(&path);
        let (file, record) = RunFile::open_resume(&path).unwrap();
        assert!(record == before.0, "{name}");
        drop(file);
        assert!(all(&path) == before, "{name}");
        drop(RunFile::open_resume(&path).unwrap());
    }
}

#[test]
fn a_table_of_the_version_in_force_may_be_missing_and_an_earlier_one_may_not() {
    let bench = Fixture::new();
    let path = full(&bench, "a.iolab");
    alter(&path, "DROP TABLE group_sample");
    for version in [6, 5] {
        alter(&path, &format!("PRAGMA user_version = {version}"));
        assert!(read(&path).unwrap().group_samples.is_empty());
    }
    alter(&path, "DROP TABLE event");
    assert_eq!(read(&path).unwrap_err().kind(), Kind::Usage);
}

#[test]
fn a_strangers_file_of_version_5_is_left_alone() {
    let bench = Fixture::new();
    for (number, sql) in [
        "CREATE TABLE own (text)",
        "CREATE INDEX own ON event (abs(id))",
        "CREATE TABLE old_event (text)",
        "DROP INDEX sample_once",
    ]
    .into_iter()
    .enumerate()
    {
        let path = full(&bench, &format!("{number}.iolab"));
        alter(&path, &format!("PRAGMA user_version = 5; {sql}"));
        let before = std::fs::read(&path).unwrap();
        let resumed = RunFile::open_resume(&path);
        // Dropping a table drops its indexes, iolab's and foreign ones.
        if number == 1 {
            drop(resumed.unwrap());
            continue;
        }
        resumed.map(drop).expect_err(sql);
        assert_eq!(std::fs::read(&path).unwrap(), before, "{sql}");
        assert!(read(&path).is_ok(), "{sql}");
    }
}

#[test]
fn a_file_before_version_5_is_refused_and_left_alone() {
    let bench = Fixture::new();
    let path = full(&bench, "a.iolab");
    for version in [4, 1, 0, -1] {
        alter(&path, &format!("PRAGMA user_version = {version}"));
        let before = std::fs::read(&path).unwrap();
        for error in [
            read(&path).map(drop),
            read_latency(&path).map(drop),
            read_series(&path).map(drop),
            RunFile::open_resume(&path).map(drop),
        ]
        .map(Result::unwrap_err)
        {
            assert_eq!(error.kind(), Kind::Usage, "{error}");
            assert!(error.remedy().is_some(), "{error}");
        }
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}
