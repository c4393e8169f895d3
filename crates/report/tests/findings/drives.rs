//! Claims from the counts of drives: the write amplification of a soak, and throttling.

use iolab_analysis::analysis::{DoubtKind, analyse};
use iolab_record::{DriveLog, RunRecord};
use iolab_report::findings::conclusions;

use crate::{named, text};
use iolab_synthetic::{add_cell, add_trial, around, record};

const UNIT: u64 = DriveLog::UNIT;

/// A log that counts throttling, of which there was none.
fn quiet() -> DriveLog {
    DriveLog {
        light_throttles: Some(0),
        heavy_throttles: Some(0),
        light_throttle_s: Some(0),
        heavy_throttle_s: Some(0),
        ..DriveLog::default()
    }
}

/// A soak that writes 1000 blocks of 1 MiB, on drives with these bytes from hosts and to flash memory.
fn soak(drives: &[(u64, Option<u64>)]) -> RunRecord {
    let mut record = record("write-size", &["bs"]);
    add_cell(&mut record, &["bs=1MiB", "read_percent=0"], &[]);
    record.samples.clear();
    let sample = add_trial(&mut record, 0, 200.0, false);
    sample.drives = drives
        .iter()
        .map(|(host, media)| DriveLog {
            host_write_bytes: Some(*host),
            media_write_bytes: *media,
            ..quiet()
        })
        .collect();
    record
}

fn amplification(record: &RunRecord) -> String {
    text(&named("write-amplification", &analyse(record)))
}

#[test]
fn soak_has_the_ratio_of_both_counts() {
    let written = 2048 * UNIT;
    let all = [
        amplification(&soak(&[(written, Some(3 * written))])),
        // Two drives below one target.
        amplification(&soak(&[
            (written, Some(written)),
            (written, Some(2 * written)),
        ])),
        // Others wrote as much.
        amplification(&soak(&[(2 * written, Some(written))])),
        amplification(&soak(&[(100 * UNIT, Some(UNIT))])),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn counts_that_are_too_small_decide_nothing() {
    for small in [(50 * UNIT, Some(UNIT)), (2048 * UNIT, Some(0))] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(amplification(&soak(&[small])), @"Cannot tell the write amplification with 1 MiB: the drive's counts of bytes to its flash memory and from hosts have to grow, the second by at least 48.8 MiB.");
        }
    }
    for without in [
        soak(&[]),
        soak(&[(2048 * UNIT, None)]),
        soak(&[(2048 * UNIT, Some(UNIT)), (2048 * UNIT, None)]),
    ] {
        assert_eq!(amplification(&without), "");
    }
}

#[test]
fn repeated_trials_have_no_amplification() {
    let mut record = soak(&[(2048 * UNIT, Some(4096 * UNIT))]);
    record.samples[0].warmup = true;
    add_trial(&mut record, 0, 200.0, false).drives = record.samples[0].drives.clone();
    assert_eq!(amplification(&record), "");
}

/// A run with trials of 10 s, in which the drive throttled itself: seconds, and times.
fn throttled(seconds: u64, times: u64) -> RunRecord {
    let mut record = record("read-size", &["bs"]);
    add_cell(&mut record, &["bs=4KiB"], &around(100.0));
    for sample in &mut record.samples {
        sample.elapsed_ns = 10_000_000_000;
        sample.drives = vec![DriveLog {
            light_throttle_s: Some(seconds),
            throttle_events: Some(times),
            ..quiet()
        }];
    }
    record
}

#[test]
fn throttling_is_a_claim_and_a_doubt() {
    let hot = analyse(&throttled(4, 1));
    insta::assert_snapshot!(text(&named("throttled", &hot)), @"The drive throttled itself because of its temperature for 32.0 s of 80.0 s with 4 KiB. Cool the drive, then repeat the run.");
    insta::assert_snapshot!(conclusions(&hot, &[])[0].text, @"read-size on /data: throughput 0.410 MB/s (4 KiB) +/- 0.0 %, from the device; throttled");
    assert!(hot.cells[0].flags.contains(&DoubtKind::Throttled));
    // A drive that counts no time.
    let counted = analyse(&throttled(0, 1));
    insta::assert_snapshot!(text(&named("throttled", &counted)), @"The drive throttled itself because of its temperature 8 times with 4 KiB. Cool the drive, then repeat the run.");
    let cool = analyse(&throttled(0, 0));
    assert_eq!(text(&named("throttled", &cool)), "");
    assert!(!cool.cells[0].flags.contains(&DoubtKind::Throttled));
}

#[test]
fn counts_that_went_back_tell_nothing() {
    let mut media = soak(&[(2048 * UNIT, None)]);
    media.samples[0].drives[0].throttle_events = Some(0);
    let mut host = soak(&[(0, Some(UNIT))]);
    host.samples[0].drives[0].host_write_bytes = None;
    let mut times = throttled(0, 0);
    times.samples[2].drives[0].heavy_throttles = None;
    let all = [
        amplification(&media),
        amplification(&host),
        text(&named("throttled", &analyse(&times))),
    ];
    insta::assert_snapshot!(all.join("\n"), @"
    Cannot tell the write amplification with 1 MiB: the drive's counts of bytes to its flash memory and from hosts have to grow, the second by at least 48.8 MiB.
    Cannot tell the write amplification with 1 MiB: the drive's counts of bytes to its flash memory and from hosts have to grow, the second by at least 48.8 MiB.
    Cannot tell whether the drive throttled itself with 4 KiB: counts of its log are missing or went back.
    ");
}
