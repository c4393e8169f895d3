//! Latencies of trials over time are stored and read.

use super::*;

/// All of a file.
fn all(path: &Path) -> Result<Vec<SampleLatencyOverTime>> {
    read_latency_over_time(path)?.collect()
}

#[test]
fn every_latency_over_time_comes_back() {
    let bench = Fixture::new();
    let expected = [1, 2].map(|sample| SampleLatencyOverTime {
        sample,
        group: 0,
        operation: Operation::Read,
        quantity: RequestTime::Service,
        latency: over_time(),
    });
    assert_eq!(all(&bench.finished("a.iolab")).unwrap(), expected);
}

/// A file takes a byte for an empty interval, and memory 32.
#[test]
fn reading_everything_keeps_to_the_memory_limit() {
    let bench = Fixture::new();
    let path = bench.finished("a.iolab");
    let whole = read_latency_over_time(&path).unwrap().read_all().unwrap();
    assert_eq!(whole, all(&path).unwrap());
    alter(
        &path,
        "UPDATE latency_over_time SET intervals = zeroblob(512), interval_ns = 1, span_ns = 512",
    );
    let read = |most| read_latency_over_time(&path)?.read_all_within(most);
    let lengths = |most| {
        let all = read(most).unwrap().into_iter();
        all.map(|one| (one.latency.intervals.len(), one.latency.interval_ns))
            .collect::<Vec<_>>()
    };
    assert_eq!(lengths(1 << 20), [(512, 1); 2]);
    assert_eq!(lengths(1 << 13), [(64, 8); 2]);
    let error = read(100).expect_err("no room");
    assert_eq!(error.kind(), Kind::Refused, "{error}");
    assert!(error.remedy().is_some(), "{error}");
}

#[test]
fn invalid_rows_are_reported() {
    let bench = Fixture::new();
    let mut told = String::new();
    for (number, sql) in [
        "intervals = x'01'", "intervals = x'016400FF'", "intervals = x'02640001'",
        "intervals = x'0164F07F01'", "intervals = zeroblob(513)", "intervals = 'text'",
        "interval_ns = 0", "interval_ns = 1 << 60", "span_ns = 1", "span_ns = -1",
        "quantity = 'age'", "operation = 'age'", "operation = x'00'", "group_id = 'first'",
    ]
    .into_iter()
    .enumerate()
    {
        let path = bench.finished(&format!("{number}"));
        alter(&path, &format!("UPDATE latency_over_time SET {sql}"));
        let error = all(&path).expect_err(sql);
        assert_eq!(error.kind(), Kind::Usage, "{sql}: {error}");
        let error = error
            .to_string()
            .replace(&path.display().to_string(), "FILE");
        told.push_str(&format!("{sql}\n{error}\n\n"));
    }
    insta::assert_snapshot!(told);
    let path = bench.finished("large");
    alter(
        &path,
        "UPDATE latency_over_time SET intervals = zeroblob(5 << 20)",
    );
    assert_eq!(all(&path).expect_err("large").kind(), Kind::Refused);
}
