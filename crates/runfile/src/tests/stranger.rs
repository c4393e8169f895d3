//! Files made to do harm: nothing of theirs is run, and they are distinguished in bounded time and memory.

use super::*;

/// A view that never ends.
const ENDLESS: &str =
    "WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id FROM n";

fn refused(bench: &Fixture, name: &str, sql: &str, part: &str) {
    let path = bench.finished(name);
    alter(&path, sql);
    let before = std::fs::read(&path).unwrap();
    let errors = [
        read(&path).expect_err(sql),
        read_latency(&path).expect_err(sql),
        RunFile::open_resume(&path).expect_err(sql),
    ];
    for error in errors {
        assert_eq!(error.kind(), Kind::Refused, "{sql}: {error}");
        assert!(error.message().contains(part), "{sql}: {error}");
        assert!(error.remedy().is_some(), "{sql}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), before, "{sql}");
}

#[test]
fn whatever_would_run_is_refused_by_name() {
    let bench = Fixture::new();
    for (number, (sql, part)) in [
        (
            format!("ALTER TABLE sample RENAME TO old; CREATE VIEW sample AS {ENDLESS}"),
            "\"sample\"",
        ),
        (format!("CREATE VIEW beside AS {ENDLESS}"), "\"beside\""),
        (
            "CREATE TRIGGER late AFTER UPDATE ON run BEGIN DELETE FROM sample; END".to_owned(),
            "\"late\"",
        ),
        (
            // Made elsewhere: this build of SQLite has no such module.
            "PRAGMA writable_schema = ON; INSERT INTO sqlite_schema VALUES \
             ('table', 'words', 'words', 0, 'CREATE VIRTUAL TABLE words USING fts5(word)')"
                .to_owned(),
            "\"words\"",
        ),
        (
            "ALTER TABLE event ADD COLUMN big AS (hex(zeroblob(400000000)))".to_owned(),
            "\"event.big\"",
        ),
        (
            "CREATE TABLE own (a, b AS (a + 1) STORED)".to_owned(),
            "\"own.b\"",
        ),
    ]
    .iter()
    .enumerate()
    {
        refused(&bench, &format!("{number}"), sql, part);
    }
}

#[test]
fn an_entry_that_lies_about_its_kind_is_told() {
    let bench = Fixture::new();
    for (number, sql) in [
        format!("CREATE VIEW sample AS {ENDLESS}"),
        "CREATE VIRTUAL TABLE sample USING fts5(id)".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        let path = bench.finished(&format!("{number}"));
        alter(
            &path,
            &format!(
                "DROP INDEX sample_once; PRAGMA writable_schema = ON;
                 UPDATE sqlite_schema SET sql = '{sql}' WHERE name = 'sample'"
            ),
        );
        for error in [
            read(&path).expect_err(sql),
            read_latency(&path).expect_err(sql),
        ] {
            assert!(error.message().contains("sample"), "{sql}: {error}");
        }
    }
}

#[test]
fn plain_tables_and_indexes_of_a_users_own_do_no_harm() {
    let bench = Fixture::new();
    let path = bench.finished("a");
    alter(
        &path,
        "CREATE TABLE remark (text); INSERT INTO remark VALUES ('mine');
         CREATE INDEX by_time ON sample (elapsed_ns); ANALYZE;",
    );
    assert_eq!(read(&path).unwrap().samples.len(), 2);
    assert_eq!(read_latency(&path).unwrap().count(), 4);
}

#[test]
fn only_tables_of_our_own_making_are_written() {
    let bench = Fixture::new();
    for (name, sql) in [
        (
            "check",
            "ALTER TABLE event ADD COLUMN more TEXT CHECK (more LIKE '%a%b%c%d%')",
        ),
        ("index", "CREATE INDEX lengths ON event (length(message))"),
        (
            "default",
            "ALTER TABLE event ADD COLUMN more TEXT DEFAULT (1)",
        ),
    ] {
        let path = bench.finished(name);
        alter(&path, "DELETE FROM event");
        alter(&path, sql);
        read(&path).expect(sql);
        let error = RunFile::open_resume(&path).expect_err(sql);
        assert!(error.message().contains("not the ones"), "{sql}: {error}");
    }
}

#[test]
fn values_too_long_are_refused() {
    let bench = Fixture::new();
    for (number, sql) in [
        "UPDATE run SET target = hex(zeroblob(5000000))",
        "UPDATE sample SET note = hex(zeroblob(5000000)) WHERE id = 1",
        "UPDATE experiment SET toml = zeroblob(5000000)",
    ]
    .iter()
    .enumerate()
    {
        let path = bench.finished(&format!("{number}"));
        alter(&path, sql);
        let error = read(&path).expect_err(sql);
        assert_eq!(error.kind(), Kind::Refused, "{sql}: {error}");
        assert!(error.message().contains("too l"), "{sql}: {error}");
    }
    let path = bench.finished("latency");
    alter(&path, "UPDATE latency SET histogram = zeroblob(5000000)");
    let all: Result<Vec<_>> = read_latency(&path).and_then(Iterator::collect);
    assert!(all.unwrap_err().message().contains("too l"));
}

#[test]
fn a_small_file_with_much_text_is_refused() {
    let bench = Fixture::new();
    let path = bench.finished("a");
    // Each row has the column's text, which the file holds once.
    alter(
        &path,
        "INSERT INTO event (at_utc, kind, message)
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
             SELECT '', 'note', '' FROM n",
    );
    let text = "x".repeat(1 << 20);
    alter(
        &path,
        &format!("ALTER TABLE event ADD COLUMN more TEXT DEFAULT '{text}'"),
    );
    assert!(std::fs::metadata(&path).unwrap().len() < 4 << 20);
    let error = read(&path).unwrap_err();
    assert_eq!(error.kind(), Kind::Refused);
    assert!(error.message().contains("256 MiB of text"), "{error}");
}
