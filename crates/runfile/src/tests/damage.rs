//! Damaged, incomplete, foreign and newer files give an error, and never a panic.

use super::round_trip::{whole_record, write};
use super::*;
use iolab_record::SCHEMA_VERSION;
use iolab_record::column::{Access, Column, Table};
use iolab_record::tables::{
    CELL, CELL_GROUP, ENVIRONMENT, EXPERIMENT, OBSERVATION, QUESTION, QUESTION_LEVEL, RUN, SERIES,
};

#[test]
fn other_files_are_refused_by_kind() {
    let bench = Fixture::new();
    let mut told = Vec::new();
    let mut refuse = |path: &Path| {
        let errors = [read(path).unwrap_err(), read_latency(path).unwrap_err()];
        for error in &errors {
            assert_eq!(error.kind(), Kind::Usage, "{error}");
            assert!(error.remedy().is_some(), "{error}");
        }
        let [whole, of_latency] = errors.map(|error| error.message().to_owned());
        assert_eq!(whole, of_latency);
        let folder = bench.folder.path().display().to_string();
        told.push(whole.replace(&folder, "FOLDER"));
        assert!(RunFile::open_resume(path).is_err());
    };
    refuse(&bench.path("missing.iolab"));
    refuse(bench.folder.path());
    for (name, content) in [
        ("empty", &b""[..]),
        ("text", b"bs,iops\n4096,1000\n"),
        ("long text", &[b'x'; 9000]),
    ] {
        std::fs::write(bench.path(name), content).unwrap();
        refuse(&bench.path(name));
        assert_eq!(std::fs::read(bench.path(name)).unwrap(), content);
    }
    alter(
        &bench.path("other"),
        "CREATE TABLE run (id); INSERT INTO run VALUES (1)",
    );
    refuse(&bench.path("other"));
    for (name, version) in [("newer", SCHEMA_VERSION + 1), ("older", SCHEMA_VERSION - 1)] {
        let path = bench.finished(name);
        alter(&path, &format!("PRAGMA user_version = {version}"));
        refuse(&path);
    }
    let told = told.join("\n");
    insta::assert_snapshot!(told, @"
    cannot read FOLDER/missing.iolab: No such file or directory (os error 2)
    FOLDER is not a regular file
    FOLDER/empty is empty
    FOLDER/text is not a run file of iolab
    FOLDER/long text is not a run file of iolab
    FOLDER/other is not a run file of iolab
    FOLDER/newer was written by a newer iolab (schema 13, this one knows 12)
    FOLDER/older was written by an older iolab (schema 11, this one knows 12)
    ");
}

#[test]
fn rows_that_cannot_be_are_told() {
    let bench = Fixture::new();
    for (number, sql) in [
        "DELETE FROM run",
        "DELETE FROM experiment",
        "UPDATE experiment SET factors = '{'",
        "UPDATE experiment SET factors = '[\"bs\"]'",
        "UPDATE experiment SET name = '../../x'",
        "UPDATE cell SET levels = '{\"bs\": 1, \"pattern\": 2}'",
        "UPDATE cell SET levels = '[]'",
        "UPDATE cell SET backend = 'warp'",
        "UPDATE cell SET tool = 'bonnie++'",
        "UPDATE cell SET batch = '0%'",
        "UPDATE cell SET bs_bytes = 0",
        "UPDATE cell SET threads = 4294967296",
        "UPDATE cell SET read_percent = 101",
        "UPDATE cell SET id = id + 1 WHERE id = 1",
        "UPDATE sample SET cell_id = 5 WHERE id = 1",
        "UPDATE sample SET read_latency_p50_ns = NULL",
        "UPDATE cell SET rate = 0",
        "UPDATE cell SET arrivals = 'burst'",
        "UPDATE sample SET rate_achieved = NULL",
        "UPDATE sample SET write_response_p99_ns = NULL",
        "INSERT INTO event VALUES (1, '', 'note', 7, '')",
        "UPDATE stages SET sample_id = 99 WHERE sample_id = 1",
        "UPDATE stages SET group_id = 9 WHERE sample_id = 1",
        "UPDATE series SET start_ns = start_ns + 1",
        "UPDATE series SET length_ns = 7 WHERE start_ns = 0",
        "DELETE FROM series WHERE start_ns = 0",
        "DROP TABLE series",
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
    }
    for (number, sql) in [
        "UPDATE latency SET histogram = x'1c84930300'",
        "UPDATE latency SET histogram = 'text'",
        "UPDATE latency SET operation = 'up' WHERE operation = 'read'",
    ]
    .iter()
    .enumerate()
    {
        let path = bench.finished(&format!("latency {number}"));
        alter(&path, sql);
        let all: Result<Vec<_>> = read_latency(&path).and_then(Iterator::collect);
        assert_eq!(all.unwrap_err().kind(), Kind::Usage, "{sql}");
    }
}

/// Values that a column does not take, as SQL.
fn impossible<T>(column: &Column<T>) -> Vec<String> {
    let mut all = match column.access {
        Access::Number(..) => vec![match column.bounds.0 {
            0 => "-1".to_owned(),
            least => (least - 1).to_string(),
        }],
        Access::Real(..) if column.range.0 >= 0.0 => vec!["-1.0".to_owned()],
        Access::Flag(..) => vec!["2".to_owned()],
        Access::Text(..) if !column.words.is_empty() => vec!["'no such word'".to_owned()],
        Access::Bytes(..) => vec!["'text'".to_owned()],
        Access::Real(..) | Access::Text(..) | Access::Setting(..) => Vec::new(),
    };
    if matches!(column.access, Access::Number(..)) && column.bounds.1 < i64::MAX as u64 {
        all.push((column.bounds.1 + 1).to_string());
    }
    if matches!(column.access, Access::Real(..)) && column.range.1 <= 1.0 {
        all.push("1.5".to_owned());
    }
    if !matches!(column.access, Access::Bytes(..)) {
        all.push("x'00ff'".to_owned());
    }
    all
}

/// Statements that put an impossible value into a row of a table, one for each column.
fn mistakes<T>(table: &Table<T>) -> Vec<String> {
    let columns = table.stored().enumerate();
    // The answer is for queries only.
    let columns = columns.filter(|(_, column)| !column.key && column.name != "answer");
    let update = |(place, column): (usize, &Column<T>)| {
        let all = impossible(column);
        let (table, column, value) = (table.name, column.name, &all[place % all.len()]);
        format!("UPDATE OR REPLACE {table} SET {column} = {value}")
    };
    columns.map(update).collect()
}

#[test]
fn every_column_refuses_what_it_cannot_hold() {
    let bench = Fixture::new();
    let levels = "p99<2ms".parse().unwrap();
    let mut record = whole_record();
    record.experiment.asked = Some(iolab_record::Question::of_levels(
        iolab_record::Asked::Cells,
        &levels,
    ));
    let (run, observed) = (bench.path("run.iolab"), bench.path("observed.iolab"));
    write(&run, &record);
    create_observation(&observed, &observation::full()).unwrap();
    let of_run = [
        mistakes(&RUN),
        mistakes(&TARGET),
        mistakes(&RANK),
        mistakes(&ENVIRONMENT),
        mistakes(&EXPERIMENT),
        mistakes(&QUESTION),
        mistakes(&QUESTION_LEVEL),
        mistakes(&CELL),
        mistakes(&CELL_GROUP),
        mistakes(&SAMPLE),
        mistakes(&PART),
        mistakes(&SERIES),
        mistakes(&DRIVE_LOG),
        mistakes(&STAGES),
        mistakes(&PREPARATION),
        mistakes(&EVENT),
    ];
    let nowhere = Path::new("in memory");
    for (whole, mistakes) in [(run, of_run.concat()), (observed, mistakes(&OBSERVATION))] {
        read_content(&whole).unwrap();
        let content = std::fs::read(whole).unwrap();
        for sql in mistakes {
            let mut memory = Connection::open_in_memory().unwrap();
            let bytes = content.as_slice();
            memory
                .deserialize_read_exact("main", bytes, bytes.len(), false)
                .unwrap();
            break_rows(&memory, &sql);
            let error = read::content(&memory, nowhere).expect_err(&sql);
            assert_eq!(error.kind(), Kind::Usage, "{sql}: {error}");
        }
    }
}
