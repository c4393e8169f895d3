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
