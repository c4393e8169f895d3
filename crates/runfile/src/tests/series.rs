//! Time series of trials are stored and read.

use super::*;

#[test]
fn every_series_comes_back() {
    let bench = Fixture::new();
    let path = bench.finished("a.iolab");
    let expected = [1, 2].map(|sample| SampleSeries {
        sample,
        series: series(),
    });
    assert_eq!(read(&path).unwrap().series, expected);
    let found: Result<Vec<SampleSeries>> = read_series(&path).unwrap().collect();
    assert_eq!(found.unwrap(), expected);
}

#[test]
fn a_trial_without_a_series_has_none() {
    let bench = Fixture::new();
    let mut file = bench.create("a.iolab");
    file.add_sample(&bare_sample(0, 0), &[], &Series::default())
        .unwrap();
    drop(file);
    let path = bench.path("a.iolab");
    assert_eq!(read(&path).unwrap().series, []);
    assert_eq!(read_series(&path).unwrap().count(), 0);
}

#[test]
fn a_file_without_the_table_is_told() {
    let bench = Fixture::new();
    let path = bench.finished("a.iolab");
    alter(&path, "DROP TABLE series");
    for error in [read(&path).unwrap_err(), read_series(&path).unwrap_err()] {
        assert_eq!(error.kind(), Kind::Usage, "{error}");
    }
}

#[test]
fn intervals_that_cannot_be_are_told() {
    let bench = Fixture::new();
    let count = "WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)";
    let endless = format!(
        "{count} INSERT INTO series SELECT 1, i * 100000000, 100000000, 0, 0, 0, 0, 0, 0, 0, NULL FROM n;
         UPDATE series SET length_ns = 100000000"
    );
    for (number, (sql, part)) in [
        ("UPDATE series SET start_ns = start_ns + 1", "follow"),
        (
            "UPDATE series SET length_ns = 7 WHERE start_ns = 0",
            "follow",
        ),
        ("DELETE FROM series WHERE start_ns = 0", "follow"),
        (endless.as_str(), "follow"),
        ("UPDATE series SET length_ns = 0", "length_ns"),
        ("UPDATE series SET read_bytes = -1", "read_bytes"),
        ("UPDATE series SET trim_bytes = -1", "trim_bytes"),
        (
            "UPDATE series SET write_requests = 1 << 61",
            "write_requests",
        ),
        (
            "UPDATE series SET start_ns = 'soon' WHERE start_ns > 0",
            "start_ns",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let path = bench.finished(&format!("{number}"));
        alter(&path, sql);
        let lazily: Result<Vec<SampleSeries>> = read_series(&path).unwrap().collect();
        for error in [read(&path).expect_err(sql), lazily.expect_err(sql)] {
            assert_eq!(error.kind(), Kind::Usage, "{sql}: {error}");
            assert!(error.message().contains(part), "{sql}: {error}");
        }
    }
}
