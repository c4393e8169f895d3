//! Time series of a trial.

use iolab_workload::operation::{Moved, PerOperation};
use iolab_workload::series::{Interval, Series, TemperatureReading};

/// Intervals of these lengths one after another, with requests of 400 bytes.
fn series(intervals: impl IntoIterator<Item = (u64, u64)>) -> Series {
    let mut start_ns = 0;
    let interval = |(length_ns, requests)| {
        let read = Moved {
            requests,
            bytes: 400 * requests,
        };
        let interval = Interval {
            start_ns,
            length_ns,
            done: PerOperation {
                read,
                ..PerOperation::default()
            },
            drive_millidegrees: None,
        };
        start_ns += length_ns;
        interval
    };
    Series {
        intervals: intervals.into_iter().map(interval).collect(),
    }
}

#[test]
fn temperatures_stand_in_the_intervals_of_their_readings() {
    let mut series = series([(100, 0); 4]);
    let readings = [(0, 41_000), (250, 44_000), (299, 43_000), (400, 50_000)];
    let readings = readings.map(|(at_ns, millidegrees)| TemperatureReading {
        at_ns,
        millidegrees,
    });
    series.note_temperatures(&readings);
    let kept = |series: &Series| -> Vec<Option<u64>> {
        let intervals = series.intervals.iter();
        intervals.map(|own| own.drive_millidegrees).collect()
    };
    assert_eq!(kept(&series), [Some(41_000), None, Some(44_000), None]);
    assert_eq!(kept(&series.folded(2)), [Some(41_000), Some(44_000)]);
    Series::default().note_temperatures(&readings);
}

/// Large requests that end in a fourth of the intervals, the last one in a short rest.
#[test]
fn intervals_of_few_requests_are_merged() {
    let series = series((0..41).map(|number| {
        let length = if number == 40 { 60 } else { 100 };
        (length, u64::from(number % 4 == 0))
    }));
    let mb_s = |least, most| -> Vec<f64> {
        let merged = series.of_requests(least, most);
        assert_eq!(merged.total(), series.total());
        let own = merged.intervals.iter();
        own.map(|interval| interval.throughput_mb_s().round())
            .collect()
    };
    assert_eq!(mb_s(5, 41), [1143.0, 1020.0]);
    assert_eq!(mb_s(1, 2), [1143.0, 1020.0]);
    assert_eq!(mb_s(12, 41).len(), 1, "fewer than for two");
    assert_eq!(Series::default().of_requests(5, 41), Series::default());
}

#[test]
fn coarser_intervals_keep_sums_and_absorb_the_rest() {
    for (fine, coarse) in [
        (&[10; 18][..], &[100, 80][..]),
        (&[10; 14], &[140]),
        (&[10; 20], &[100, 100]),
        (&[10, 10, 3], &[23]),
        (&[100, 100, 40], &[100, 100, 40]),
    ] {
        let fine = series(fine.iter().map(|length| (*length, 1)));
        let found = fine.coarsened(100);
        let lengths: Vec<u64> = found.intervals.iter().map(|i| i.length_ns).collect();
        assert_eq!(lengths, coarse);
        assert_eq!(found.total(), fine.total());
    }
    assert_eq!(Series::default().coarsened(100), Series::default());
}
