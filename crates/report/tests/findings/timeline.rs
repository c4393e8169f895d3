//! Changes of the level of throughput, over the run and within trials: reported if they exist, and only then.

use iolab_analysis::analysis::analyse;
use iolab_analysis::claim::{Standing, claims};
use iolab_analysis::timeline::{moments, profile};
use iolab_record::{Interval, Moved, PerOperation, RunRecord, SampleSeries, Series};
use iolab_report::findings::{Finding, conclusions};
use iolab_workload::trial::Rate;

use crate::named;
use iolab_synthetic::{add_cell, add_trial, record};

const MS: u64 = 1_000_000;
const GIB: f64 = (1 << 30) as f64;

/// Noise of this share of the value, the same in every test: a multiplicative walk through all of 0 to 1.
pub(crate) fn noise(i: usize, share: f64) -> f64 {
    let at = (i as f64 * 0.618_033_988_75).fract();
    1.0 + share * (2.0 * at - 1.0)
}

/// Blocks of one trial in each of `sizes`, which writes at `mb_s(block, size)`.
pub(crate) fn writing(
    sizes: &[&str],
    blocks: usize,
    mb_s: impl Fn(usize, usize) -> f64,
) -> RunRecord {
    let mut record = record("write-size", &["bs"]);
    for size in sizes {
        add_cell(&mut record, &[&format!("bs={size}"), "read_percent=0"], &[]);
    }
    for block in 0..blocks {
        for size in 0..sizes.len() {
            let rate = mb_s(block, size);
            add_trial(&mut record, size, rate, false);
        }
    }
    record
}

/// Gives a sample intervals of 100 ms, each with these bytes written.
pub(crate) fn over_time(record: &mut RunRecord, sample: usize, bytes: &[u64]) {
    let intervals = bytes.iter().zip(0..).map(|(bytes, i)| Interval {
        start_ns: i * 100 * MS,
        length_ns: 100 * MS,
        done: PerOperation {
            write: Moved {
                requests: bytes >> 20,
                bytes: *bytes,
            },
            ..PerOperation::default()
        },
        drive_millidegrees: None,
    });
    let series = Series {
        intervals: intervals.collect(),
    };
    let sample = &mut record.samples[sample];
    sample.elapsed_ns = bytes.len() as u64 * 100 * MS;
    sample.operations.write.bytes = bytes.iter().sum();
    record.series.push(SampleSeries {
        sample: sample.id,
        series,
    });
}

fn over_run(record: &RunRecord) -> Vec<Finding> {
    named("level-over-run", &analyse(record))
}

pub(crate) fn only(findings: Vec<Finding>) -> String {
    let [finding] = <[Finding; 1]>::try_from(findings).expect("one finding");
    finding.text
}

/// Other programs that come in the middle of a run look like a full cache. The finding names them, and no
/// typical cause.
#[test]
fn a_fall_beside_others_names_them() {
    let mut record = writing(&["1MiB"], 12, |block, _| {
        let speed = 1000.0 * noise(block, 0.05);
        if block < 6 { speed } else { 0.4 * speed }
    });
    let beside = |record: &mut RunRecord, blocks: std::ops::RangeInclusive<u32>| {
        let own = record.samples.iter_mut();
        for sample in own.filter(|sample| blocks.contains(&sample.block)) {
            let device = sample.counters.device.as_mut().expect("counted");
            device.read_bytes = device.write_bytes;
        }
    };
    let disturbed = |record: &RunRecord| {
        let all = claims(&[&analyse(record)]);
        let changes = all
            .iter()
            .filter(|claim| claim.kind.name == "level-over-run");
        let disturbed = changes.map(|claim| {
            let points = claim.points.iter();
            let mut own = points.filter(|point| {
                [Standing::Disturbed, Standing::Suspended].contains(&point.standing)
            });
            own.next().map(|point| (point.value, point.of))
        });
        disturbed.collect::<Vec<_>>()
    };
    assert_eq!(disturbed(&record), [None]);
    beside(&mut record, 7..=12);
    assert_eq!(disturbed(&record), [Some((6.0, Some(6.0)))]);
    insta::assert_snapshot!(only(over_run(&record)), @"Over the run throughput fell 2.43× with 1 MiB: 985 MB/s, then 405 MB/s from 6.38 s (6.84 GiB written) on. Each seen for: 6 trials. Disturbed from outside at the lower level, which may have made the change: 6 of 6 trials. Medians over the run may mix both levels: --precondition or --settle may avoid it.");
    // Programs that were there all the time did not make the change.
    beside(&mut record, 1..=6);
    assert_eq!(disturbed(&record), [None]);
    // If the machine slept only in trials at the lower level, the finding says so.
    for sample in &mut record.samples {
        let device = sample.counters.device.as_mut().expect("counted");
        device.read_bytes = 0;
        if sample.block > 6 {
            sample.counters.pressure.suspended_ns = Some(sample.elapsed_ns);
        }
    }
    assert_eq!(disturbed(&record), [Some((6.0, Some(6.0)))]);
    insta::assert_snapshot!(only(over_run(&record)), @"Over the run throughput fell 2.43× with 1 MiB: 985 MB/s, then 405 MB/s from 6.38 s (6.84 GiB written) on. Each seen for: 6 trials. Disturbed at the lower level, or the machine or iolab was suspended, which may have made the change: 6 of 6 trials. Medians over the run may mix both levels: --precondition or --settle may avoid it.");
}

#[test]
fn reading_cells_are_named_rate_cells_left_out() {
    let falling = |block: usize, _| if block < 10 { 1000.0 } else { 100.0 };
    let mut reading = writing(&["1MiB"], 20, falling);
    assert_eq!(over_run(&reading).len(), 1);
    reading.cells[0].spec.trial.read_percent = 100;
    insta::assert_snapshot!(only(over_run(&reading)), @"Over the run throughput fell 10.0× with 1 MiB: 1000 MB/s, then 100 MB/s from 10.5 s (0 B read) on. Each seen for: 10 trials. Medians over the run may mix both levels: --precondition or --settle may avoid it.");
    let mut given = writing(&["1MiB"], 20, falling);
    given.cells[0].spec.trial.rate = Some(Rate::Requests(5));
    assert_eq!(over_run(&given), []);
}

#[test]
fn run_over_time_has_intervals_in_order() {
    let mut record = writing(&["1MiB"], 2, |_, _| 1000.0);
    over_time(&mut record, 1, &[30 << 20, 10 << 20]);
    let moments = moments(&record);
    let before = &record.samples[0];
    let bytes = before.operations.write.bytes;
    // The warm-up has no series: it is one moment.
    assert_eq!(moments.len(), 4);
    assert_eq!((moments[0].start_ns, moments[0].written_bytes), (0, 0));
    assert_eq!(moments[0].sample, before.id);
    assert!(before.warmup);
    assert_eq!(moments[2].start_ns, before.elapsed_ns + 100 * MS);
    assert_eq!(moments[2].written_bytes, bytes + (30 << 20));
    assert_eq!(moments[3].start_ns, before.elapsed_ns + 200 * MS);
    assert_eq!(moments[3].written_bytes, bytes + (40 << 20));
    assert!((moments[1].throughput_mb_s - 314.6).abs() < 0.1);
}

#[test]
fn a_profile_is_the_median_of_the_trials() {
    let mut record = writing(&["1MiB"], 3, |_, _| 1000.0);
    for (trial, bytes) in [
        (1, [10, 20, 90].as_slice()),
        (2, &[30, 20]),
        (3, &[20, 70, 10, 10]),
    ] {
        let bytes: Vec<u64> = bytes.iter().map(|mb| mb * 1_000_000).collect();
        over_time(&mut record, trial, &bytes);
    }
    let profile = profile(&record, 0);
    let rates: Vec<f64> = profile.points.iter().map(|p| p.throughput_mb_s).collect();
    assert_eq!((profile.trials, rates), (3, vec![200.0, 200.0]));
    let moved: Vec<f64> = profile.points.iter().map(|p| p.moved_bytes).collect();
    assert_eq!(moved, [0.0, 2e7]);
    let long: Vec<u64> = vec![1 << 20; 1000];
    record.series.clear();
    over_time(&mut record, 1, &long);
    let long = iolab_analysis::timeline::profile(&record, 0);
    assert_eq!(long.points.len(), 200);
    assert_eq!(long.points[1].start_ns, 500 * MS);
    assert!((long.points[199].moved_bytes / GIB - 0.972).abs() < 0.001);
    assert_eq!(iolab_analysis::timeline::profile(&record, 5).points, []);
}

/// One trial that writes 100 MB per interval, and a tenth of that from the 12th on. `reads` times as many bytes
/// are read meanwhile.
fn falling(reads: u64) -> RunRecord {
    let mut record = writing(&["1MiB"], 1, |_, _| 500.0);
    let bytes: Vec<u64> = (0..40)
        .map(|i| {
            let speed = if i < 12 { 1e8 } else { 1e7 };
            (speed * noise(i, 0.1)) as u64
        })
        .collect();
    over_time(&mut record, 1, &bytes);
    for interval in &mut record.series[0].series.intervals {
        interval.done.read.bytes = reads * interval.done.write.bytes;
    }
    record
}

#[test]
fn falling_behind_rate_is_change_catching_up_not() {
    let mut record = falling(0);
    record.cells[0].spec.trial.rate = Some(Rate::Requests(1000));
    let text = only(named("level-within-trials", &analyse(&record)));
    insta::assert_snapshot!(text, @"Within a trial throughput fell 10.1× with 1 MiB: 1003 MB/s, then 99.4 MB/s from 1.20 s (1.11 GiB written) on. Shorter or longer trials would give other results.");
    let done: Vec<_> = record.series[0]
        .series
        .intervals
        .iter()
        .map(|one| one.done)
        .collect();
    for (interval, done) in record.series[0]
        .series
        .intervals
        .iter_mut()
        .zip(done.iter().rev())
    {
        interval.done = *done;
    }
    assert_eq!(named("level-within-trials", &analyse(&record)), []);
}

/// The first line is for pasting: its median mixes both levels, or has only the later one.
#[test]
fn the_answer_names_a_change_over_the_run() {
    let told = [3.0, 1.0].map(|factor| {
        let record = writing(&["1MiB"], 12, |block, _| {
            let speed = 1200.0 * noise(block, 0.02);
            if block < 6 { speed } else { speed / factor }
        });
        conclusions(&analyse(&record), &[])[0].text.clone()
    });
    insta::assert_snapshot!(told.join("\n"), @"
    write-size on /data: throughput 792 MB/s (1 MiB) +/- 51 %, from the device; throughput changed its level during the run, two groups, the precision goal was missed
    write-size on /data: throughput 1201 MB/s (1 MiB) +/- 1.3 %, from the device
    ");
}
