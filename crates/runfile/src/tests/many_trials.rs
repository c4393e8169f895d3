//! A file so large that several threads read it, and one checks it meanwhile.

use super::*;
use crate::opening::{CHECKED_BESIDE, opened_again};
use crate::system::FileIdentity;

/// A finished file with 4,500 samples of each cell.
fn large(bench: &Fixture, name: &str) -> PathBuf {
    let path = bench.finished(name);
    let connection = Connection::open(&path).unwrap();
    let mut columns = Vec::new();
    let column = |row: &rusqlite::Row<'_>| {
        columns.push(match row.get::<_, String>("name")?.as_str() {
            "id" => "sample.id + 2 * n.i".to_owned(),
            "block" => "sample.block + n.i".to_owned(),
            name => format!("sample.{name}"),
        });
        Ok(())
    };
    connection
        .pragma(None, "table_info", "sample", column)
        .unwrap();
    let copies = format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4499)
             INSERT INTO sample SELECT {} FROM n, sample ORDER BY n.i, sample.id",
        columns.join(", ")
    );
    connection.execute(&copies, []).unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() > CHECKED_BESIDE);
    path
}

#[test]
fn several_threads_read_the_same_as_one() {
    let bench = Fixture::new();
    let path = large(&bench, "a");
    let shared = read(&path).unwrap();
    let places = shared
        .samples
        .iter()
        .map(|sample| (sample.id, sample.block));
    assert!(places.eq((0..9000).map(|n| (n + 1, n as u32 / 2))));
    // The log of a run that goes on keeps it to one thread.
    let log = Connection::open(&path).unwrap();
    log.execute_batch("PRAGMA journal_mode = WAL; BEGIN IMMEDIATE; UPDATE run SET seed = seed;")
        .unwrap();
    assert_eq!(read(&path).unwrap(), shared);
}

/// Replacing a file while it is read does not mix two runs.
#[test]
fn no_thread_opens_a_replaced_file() {
    let bench = Fixture::new();
    let path = bench.finished("a");
    let Some(file) = FileIdentity::of(&path) else {
        return;
    };
    assert!(opened_again(file, &path).is_some());
    std::fs::rename(bench.finished("b"), &path).unwrap();
    assert!(opened_again(file, &path).is_none());
}

#[test]
fn any_thread_names_the_first_bad_value() {
    let bench = Fixture::new();
    let path = large(&bench, "a");
    alter(&path, "UPDATE sample SET cell_id = id WHERE id >= 4700");
    let error = read(&path).unwrap_err();
    let folder = bench.folder.path().display().to_string();
    insta::assert_snapshot!(error.message().replace(&folder, "DIR"), @"DIR/a is damaged or cut short: sample 4700 is of an unknown cell 4700");
}

#[test]
fn damage_found_while_reading_is_reported() {
    let bench = Fixture::new();
    let whole = std::fs::read(large(&bench, "whole")).unwrap();
    let page = usize::from(u16::from_be_bytes([whole[16], whole[17]]));
    let told = |name: &str, bytes: &[u8]| {
        let path = bench.path(name);
        std::fs::write(&path, bytes).unwrap();
        let error = read(&path).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage, "{error}");
        let folder = bench.folder.path().display().to_string();
        // SQLite's own words about the place follow.
        let (told, _) = error.message().split_once(": ").expect("a place");
        told.replace(&folder, "DIR")
    };
    let mut gone = whole.clone();
    let middle = whole.len() / page / 2 * page;
    gone[middle..middle + page].fill(0);
    insta::assert_snapshot!(told("a page of zeros", &gone), @"DIR/a page of zeros is damaged or cut short");
    // Interior pages of tables have type 5; their cells begin with the number of a page. All lead to the same one.
    let mut circle = whole.clone();
    let interior: Vec<usize> = (page..whole.len())
        .step_by(page)
        .filter(|at| whole[*at] == 5)
        .collect();
    let largest = interior
        .into_iter()
        .max_by_key(|at| u16::from_be_bytes([whole[at + 3], whole[at + 4]]));
    let at = largest.expect("a table of many pages");
    let cells = usize::from(u16::from_be_bytes([whole[at + 3], whole[at + 4]]));
    let cell = |n: usize| {
        at + usize::from(u16::from_be_bytes([
            whole[at + 12 + 2 * n],
            whole[at + 13 + 2 * n],
        ]))
    };
    let first: [u8; 4] = whole[cell(0)..cell(0) + 4].try_into().unwrap();
    for n in 0..cells {
        circle[cell(n)..cell(n) + 4].copy_from_slice(&first);
    }
    insta::assert_snapshot!(told("a page that all refer to", &circle), @"DIR/a page that all refer to is damaged or cut short");
}
