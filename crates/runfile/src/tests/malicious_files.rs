//! Malicious files: none of their code is run, and they are recognised in limited time and memory.

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
fn executable_objects_are_refused_by_name() {
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
            // Written elsewhere: the SQLite of iolab has no such module.
            "PRAGMA writable_schema = ON; INSERT INTO sqlite_schema VALUES \
             ('table', 'words', 'words', 0, 'CREATE VIRTUAL TABLE words USING unheard_of(word)')"
                .to_owned(),
            "\"words\"",
        ),
        (
            "CREATE VIRTUAL TABLE words USING fts5(word); INSERT INTO words VALUES ('a b c')".to_owned(),
            "\"words\"",
        ),
        (
            "CREATE VIRTUAL TABLE words USING fts4(word)".to_owned(),
            "\"words\"",
        ),
        (
            "CREATE VIRTUAL TABLE boxes USING rtree(id, low, high); INSERT INTO boxes VALUES (1, 2, 3)".to_owned(),
            "\"boxes\"",
        ),
        (
            "CREATE VIRTUAL TABLE pages USING dbstat".to_owned(),
            "\"pages\"",
        ),
        (
            "ALTER TABLE event RENAME TO old; CREATE VIRTUAL TABLE event USING rtree(id, low, high)".to_owned(),
            "\"event\"",
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

/// A connection without the check for virtual tables, views and triggers.
fn unlooked_at(path: &Path) -> Connection {
    let mut connection = Connection::open(path).unwrap();
    opening::restrain(&connection).unwrap();
    opening::distrust(&mut connection, path).unwrap();
    connection
}

/// Why a statement does not run to its end.
fn failure(connection: &Connection, sql: &str) -> Option<String> {
    let run = || {
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
        Ok(())
    };
    run().err().map(|error: rusqlite::Error| error.to_string())
}

#[test]
fn statements_beyond_a_run_files_needs_are_refused() {
    let bench = Fixture::new();
    let connection = unlooked_at(&bench.finished("a"));
    for needed in [
        "SELECT * FROM sample",
        "SELECT count(*) FROM sqlite_schema WHERE name LIKE 's%'",
        "UPDATE run SET target = target",
        "DELETE FROM event",
        "PRAGMA quick_check(1)",
    ] {
        assert_eq!(failure(&connection, needed), None, "{needed}");
    }
    let elsewhere = bench.path("elsewhere");
    let attach = format!("ATTACH '{}' AS other", elsewhere.display());
    let vacuum = format!("VACUUM INTO '{}'", elsewhere.display());
    for refused in [
        "SELECT * FROM dbstat",
        "SELECT * FROM pragma_table_info('sample')",
        "SELECT * FROM json_each('[1]')",
        "CREATE VIRTUAL TABLE words USING fts5(word)",
        "CREATE VIRTUAL TABLE temp.boxes USING rtree(id, low, high)",
        "CREATE TEMP TABLE mine (a)",
        "CREATE TABLE mine (a)",
        "CREATE VIEW mine AS SELECT 1",
        "CREATE TRIGGER mine AFTER DELETE ON event BEGIN SELECT 1; END",
        "ALTER TABLE event ADD COLUMN mine",
        "DROP TABLE event",
        "DELETE FROM sqlite_schema",
        "ANALYZE",
        "PRAGMA writable_schema = ON",
        "PRAGMA temp_store_directory = '/'",
        "SELECT load_extension('evil')",
        "SELECT hex(zeroblob(1000))",
        "WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id FROM n",
        &attach,
        &vacuum,
    ] {
        assert!(failure(&connection, refused).is_some(), "{refused}");
    }
    assert!(!elsewhere.exists());
}

#[test]
fn an_entry_of_the_wrong_kind_is_reported() {
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
fn a_users_own_tables_do_no_harm() {
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
        assert_eq!(error.kind(), Kind::Usage, "{sql}: {error}");
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
    }
    let path = bench.finished("latency");
    alter(&path, "UPDATE latency SET histogram = zeroblob(5000000)");
    let all: Result<Vec<_>> = read_latency(&path).and_then(Iterator::collect);
    assert_eq!(all.unwrap_err().kind(), Kind::Refused);
}

#[test]
fn a_small_file_with_much_text_is_refused() {
    let bench = Fixture::new();
    let path = bench.finished("a");
    // Each row has the column's text, which is in the file once.
    alter(
        &path,
        "INSERT INTO event (at_utc, kind, message)
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
             SELECT '', 'note', '' FROM n",
    );
    let text = "x".repeat(1 << 20);
    alter(&path, "ALTER TABLE event DROP COLUMN message");
    let more = format!("ALTER TABLE event ADD COLUMN message TEXT DEFAULT '{text}'");
    alter(&path, &more);
    assert!(std::fs::metadata(&path).unwrap().len() < 4 << 20);
    let error = read(&path).unwrap_err();
    assert_eq!(error.kind(), Kind::Refused);
}
