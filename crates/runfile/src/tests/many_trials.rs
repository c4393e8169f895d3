//! A file with thousands of trials.

use super::*;

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
    path
}

#[test]
fn columns_that_one_late_trial_fills_are_read() {
    let bench = Fixture::new();
    let path = large(&bench, "a");
    alter(
        &path,
        "UPDATE sample SET failure = NULL, trim_requests = NULL",
    );
    let without = read(&path).unwrap();
    assert!(without.samples.iter().all(|one| one.failure.is_none()));
    alter(&path, "UPDATE sample SET failure = 'late' WHERE id >= 8999");
    alter(&path, "UPDATE sample SET trim_requests = 7 WHERE id = 9000");
    let mut expected = without;
    for sample in &mut expected.samples[8998..] {
        sample.failure = Some("late".to_owned());
    }
    expected.samples[8999].operations.trim.requests = 7;
    assert_eq!(read(&path).unwrap(), expected);
}

#[test]
fn wrong_values_in_many_rows_are_named() {
    let bench = Fixture::new();
    let folder = bench.folder.path().display().to_string();
    let told = |sql: &str| {
        let path = large(&bench, "a");
        alter(&path, sql);
        let error = read(&path).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        error.message().replace(&folder, "DIR")
    };
    insta::assert_snapshot!(told("UPDATE sample SET device_read_ios = NULL"), @"DIR/a holds a value that iolab cannot read: device_read_ios in table sample is NULL");
    insta::assert_snapshot!(told("UPDATE sample SET cell_id = id WHERE id >= 4700"), @"DIR/a is damaged or cut short: sample 4700 is of an unknown cell 4700");
}

#[test]
fn damage_in_the_middle_is_reported() {
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
