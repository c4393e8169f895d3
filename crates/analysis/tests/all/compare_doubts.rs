//! Comparison of runs with doubts about a side: disturbed, from another source, or measured by a coarse clock.

use iolab_analysis::compare::CellVerdict;
use iolab_analysis::doubt::{Doubt, DoubtKind};
use iolab_record::RunRecord;
use iolab_workload::response::Response;

use iolab_synthetic::size_curve;

use crate::compare::of;

/// A run in which the device transferred four times as many bytes for others.
fn disturbed(mut record: RunRecord) -> RunRecord {
    for sample in &mut record.samples {
        if let Some(device) = &mut sample.counters.device {
            device.read_bytes *= 5;
        }
    }
    record
}

#[test]
fn disturbed_side_doubts_what_it_may_have_caused() {
    let quiet = |mb_s| size_curve("read-size", &[("4KiB", mb_s)]);
    let verdict = |base: &RunRecord, new: &RunRecord| of(base, new, None).unwrap().cells[0].verdict;
    let (slow, fast) = (50.0, 100.0);
    for (base, new, expected) in [
        (
            disturbed(quiet(slow)),
            quiet(fast),
            CellVerdict::CannotTell(DoubtKind::OtherTraffic),
        ),
        (disturbed(quiet(fast)), quiet(slow), CellVerdict::Slower),
        (
            quiet(fast),
            disturbed(quiet(slow)),
            CellVerdict::CannotTell(DoubtKind::OtherTraffic),
        ),
        (quiet(slow), disturbed(quiet(fast)), CellVerdict::Faster),
        (
            quiet(fast),
            disturbed(quiet(fast)),
            CellVerdict::CannotTell(DoubtKind::OtherTraffic),
        ),
        (
            disturbed(quiet(fast)),
            quiet(fast),
            CellVerdict::CannotTell(DoubtKind::OtherTraffic),
        ),
        (quiet(fast), quiet(slow), CellVerdict::Slower),
        (quiet(slow), quiet(fast), CellVerdict::Faster),
        (quiet(fast), quiet(fast), CellVerdict::Identical),
    ] {
        assert_eq!(verdict(&base, &new), expected);
    }
    // If both are equally disturbed, four fifths of the device explain a factor of at most 5.
    let (both, other) = (disturbed(quiet(100.0)), disturbed(quiet(50.0)));
    assert_eq!(
        verdict(&both, &other),
        CellVerdict::CannotTell(DoubtKind::OtherTraffic)
    );
    let far = disturbed(quiet(10.0));
    assert_eq!(verdict(&both, &far), CellVerdict::Slower);
}

#[test]
fn latencies_within_a_clock_step_are_equal() {
    let verdict = |step_ns: f64| {
        let side = |mb_s: f64| {
            let mut one = size_curve("read-size", &[("4KiB", mb_s)]);
            one.experiment.response = Response::Latency;
            one.run.clock_resolution_ns = Some(step_ns);
            one
        };
        // 4 KiB at these rates take 4.1 and 3.7 us.
        let comparison = of(&side(1_000.0), &side(1_100.0), None).unwrap();
        (
            comparison.cells[0].verdict,
            comparison.cells[0].doubts.len(),
        )
    };
    assert_eq!(verdict(1.0), (CellVerdict::Faster, 0));
    assert_eq!(
        verdict(500.0),
        (CellVerdict::CannotTell(DoubtKind::ClockResolution), 2)
    );
}

#[test]
fn busy_neighbour_is_named_without_blame() {
    let base = size_curve("read-size", &[("4KiB", 100.0), ("64KiB", 400.0)]);
    let mut new = size_curve("read-size", &[("4KiB", 50.0), ("64KiB", 200.0)]);
    for sample in new.samples.iter_mut().filter(|s| s.cell == 0) {
        if let Some(device) = &mut sample.counters.device {
            device.read_bytes *= 5;
        }
    }
    let comparison = of(&base, &new, None).unwrap();
    let verdicts: Vec<CellVerdict> = comparison.cells.iter().map(|c| c.verdict).collect();
    assert_eq!(
        verdicts,
        [
            CellVerdict::CannotTell(DoubtKind::OtherTraffic),
            CellVerdict::Slower
        ]
    );
    let is_imbalance = |doubt: &&Doubt| doubt.levels.is_some();
    let doubts = &comparison.cells[0].doubts;
    assert_eq!(doubts.iter().filter(is_imbalance).count(), 1);
    // A program reads few bytes for its time, so that any traffic is much in comparison.
    let program = |record: &RunRecord| {
        let mut record = record.clone();
        for cell in &mut record.cells {
            cell.spec.command = Some("cat {file}".parse().expect("a command"));
        }
        record
    };
    let comparison = of(&program(&base), &program(&new), None).unwrap();
    assert_eq!(comparison.cells[0].verdict, CellVerdict::Slower);
}
