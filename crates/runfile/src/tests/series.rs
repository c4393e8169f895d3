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
    let mut told = Vec::new();
    for (number, sql) in [
        "UPDATE series SET start_ns = start_ns + 1",
        "UPDATE series SET length_ns = 7 WHERE start_ns = 0",
        "DELETE FROM series WHERE start_ns = 0",
        endless.as_str(),
        "UPDATE series SET length_ns = 0",
        "UPDATE series SET read_bytes = -1",
        "UPDATE series SET trim_bytes = -1",
        "UPDATE series SET write_requests = 1 << 61",
        "UPDATE series SET start_ns = 'soon' WHERE start_ns > 0",
    ]
    .into_iter()
    .enumerate()
    {
        let path = bench.finished(&format!("{number}"));
        alter(&path, sql);
        let lazily: Result<Vec<SampleSeries>> = read_series(&path).unwrap().collect();
        let errors = [read(&path).expect_err(sql), lazily.expect_err(sql)];
        for error in &errors {
            assert_eq!(error.kind(), Kind::Usage, "{sql}: {error}");
        }
        let [at_once, lazily] = errors.map(|error| error.message().to_owned());
        assert_eq!(at_once, lazily, "{sql}");
        told.push(at_once.replace(&path.display().to_string(), "FILE"));
    }
    insta::assert_snapshot!(told.join("\n"), @r#"
    FILE is damaged or cut short: the intervals of sample 1 do not follow each other
    FILE is damaged or cut short: the intervals of sample 1 do not follow each other
    FILE is damaged or cut short: the intervals of sample 1 do not follow each other
    FILE is damaged or cut short: the intervals of sample 1 do not follow each other
    FILE holds a value that iolab cannot read: length_ns in table series is 0
    FILE holds a value that iolab cannot read: read_bytes in table series is -1
    FILE holds a value that iolab cannot read: trim_bytes in table series is -1
    FILE holds a value that iolab cannot read: write_requests in table series is 2305843009213693952
    FILE holds a value that iolab cannot read: start_ns in table series is "soon"
    "#);
}
