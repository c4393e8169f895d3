//! Files with a log: what SQLite makes of them is the oracle.

use super::*;
use crate::logged::{has_log, merged};

/// A file whose log has transactions that add, change and remove pages, and one that is not committed.
fn with_log(folder: &Path) -> (PathBuf, Connection) {
    let path = folder.join("a.iolab");
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "PRAGMA page_size = 512; PRAGMA auto_vacuum = FULL; PRAGMA locking_mode = EXCLUSIVE;
             PRAGMA journal_mode = WAL; PRAGMA cache_size = 5; CREATE TABLE t (id INTEGER PRIMARY KEY, content);",
        )
        .unwrap();
    for (number, sql) in [
        "INSERT INTO t VALUES (1, randomblob(3000)), (2, randomblob(900))",
        "UPDATE t SET content = randomblob(2000) WHERE id = 2",
        "PRAGMA wal_checkpoint(RESTART)",
        "INSERT INTO t SELECT id + 10, randomblob(1500) FROM t",
        "DELETE FROM t WHERE id < 10",
        "UPDATE t SET content = 'short' WHERE id = 11",
    ]
    .into_iter()
    .enumerate()
    {
        match number {
            2 => connection.query_row(sql, [], |_| Ok(())).unwrap(),
            _ => connection.execute_batch(sql).unwrap(),
        }
    }
    // More pages than the cache holds go to the log before the end.
    connection
        .execute_batch("BEGIN; INSERT INTO t SELECT id + 100, randomblob(9000) FROM t;")
        .unwrap();
    (path, connection)
}

type Row = (i64, Vec<u8>);

fn rows(connection: &Connection) -> Vec<Row> {
    let sql = "SELECT id, CAST(content AS BLOB) FROM t ORDER BY id";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.unwrap().map(|row| row.unwrap()).collect()
}

/// The rows of a file with this log, as iolab merges them.
fn by_iolab(path: &Path) -> Vec<Row> {
    let bytes = merged(path).unwrap();
    let mut connection = Connection::open_in_memory().unwrap();
    connection
        .deserialize_read_exact("main", &bytes[..], bytes.len(), true)
        .unwrap();
    rows(&connection)
}

#[test]
fn a_damaged_log_reads_as_in_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _open) = with_log(folder.path());
    let log = std::fs::read(beside(&path, "-wal")).unwrap();
    assert!(log.len() > 40 * (512 + 24), "the open transaction is there");
    let copy = folder.path().join("copy.iolab");
    std::fs::copy(&path, &copy).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for step in 0..=log.len() / 256 {
        let mut damaged = log.clone();
        match step % 2 {
            0 => damaged.truncate(256 * step),
            _ => damaged[256 * step] ^= 1 << (step % 8),
        }
        std::fs::write(beside(&copy, "-wal"), &damaged).unwrap();
        let own = by_iolab(&copy);
        let other = folder.path().join("other.iolab");
        std::fs::copy(&copy, &other).unwrap();
        std::fs::copy(beside(&copy, "-wal"), beside(&other, "-wal")).unwrap();
        let theirs = rows(&Connection::open(&other).unwrap());
        assert_eq!(own, theirs, "step {step}");
        seen.insert(own);
    }
    assert_eq!(seen.len(), 4, "each transaction of the log is an end");
}

#[test]
fn a_concurrent_reader_sees_every_stored_trial() {
    let bench = Fixture::new();
    let mut file = bench.create("a.iolab");
    let path = bench.path("a.iolab");
    let kept = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // More than the log holds before it is moved into the file.
            for block in 0..400 {
                add(&mut file, &sample_row(0, block));
                kept.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
            drop(file);
        });
        loop {
            let before = kept.load(std::sync::atomic::Ordering::SeqCst);
            let found = read(&path).unwrap().samples.len();
            assert!(found >= before, "{found} of {before}");
            if before == 400 {
                break;
            }
        }
    });
    assert_eq!(&std::fs::read(&path).unwrap()[18..20], [1, 1]);
}

#[test]
fn a_file_has_a_log_from_its_start() {
    let bench = Fixture::new();
    let path = bench.path("a.iolab");
    let cells = [cell_row(0), cell_row(1)];
    let content = laid_out(&run_row(), &environment(), &experiment_row(), &cells);
    std::fs::write(&path, content.unwrap()).unwrap();
    assert!(has_log(&path));
    assert_eq!(read(&path).unwrap().cells.len(), 2);
}
