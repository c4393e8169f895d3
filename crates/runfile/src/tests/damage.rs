//! Damaged, incomplete, foreign and newer files give an error, and never a panic.

use super::*;
use iolab_record::SCHEMA_VERSION;

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
    FOLDER/newer was written by a newer iolab (schema 9, this one knows 8)
    FOLDER/older was written by an older iolab (schema 7, this one knows 8)
    ");
}

#[test]
fn values_that_cannot_be_are_told() {
    let bench = Fixture::new();
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
        "UPDATE cell SET tool = 'bonnie++'",
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
        "UPDATE series SET start_ns = start_ns + 1",
        "UPDATE series SET length_ns = 7 WHERE start_ns = 0",
        "UPDATE series SET length_ns = 0",
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
