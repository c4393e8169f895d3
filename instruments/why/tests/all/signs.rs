//! Counts of a run that point to the mechanism of a difference.

use iolab_analysis::analysis::{
    Analysis, CellAnalysis, CellStages, Response, StageNumbers, analyse,
};
use iolab_analysis::timeline::{Access, RunShift};
use iolab_plan::suspect::{Leftover, Sign, Signs};
use iolab_synthetic::{add_cell, around, record, size_curve};
use iolab_why::phenomena::phenomena;
use iolab_why::signs::leftover;
use iolab_workload::stages::{CarriedBy, PerStage, Stage, SyncCounts};

use crate::phenomena::falling;

/// Signs of a difference between 64 KiB and 1 MiB, of twice the throughput. `change` sets the sides, the better
/// one first.
fn of_change(change: impl Fn(&mut [&mut CellAnalysis; 2])) -> Signs {
    let mut analysis: Analysis = analyse(&size_curve(
        "read-size",
        &[("64KiB", 500.0), ("1MiB", 1000.0)],
    ));
    let found = phenomena(&analysis).expect("trials that can be explained");
    let [first, second] = &mut analysis.cells[..] else {
        panic!("two cells");
    };
    change(&mut [second, first]);
    found[0].sides(&analysis).expect("its cells").signs
}

fn traced(device_ns: f64) -> CellStages {
    let mut stages = PerStage::default();
    stages[Stage::Device] = Some(StageNumbers {
        mean_ns: device_ns,
        ..StageNumbers::default()
    });
    CellStages {
        traced: 10,
        known: 10,
        least: [1000, 0],
        syncs: SyncCounts::default(),
        carried_by: CarriedBy::default(),
        journal: None,
        unjoined_share: 0.0,
        note: None,
        mean_ns: [None, None],
        stages,
    }
}

#[test]
fn uncounted_quantities_are_no_sign() {
    let unknown = of_change(|cells| {
        for cell in cells {
            cell.minor_faults = None;
            cell.disturbance.ios_per_request = None;
        }
    });
    assert_eq!(unknown, Signs::default());
}

/// A request of 1 MiB moves the bytes of 16 requests of 64 KiB.
#[test]
fn faults_count_for_each_byte() {
    let of = |better: f64, worse: f64| {
        let signs = of_change(|[good, bad]| {
            let requests = |cell: &CellAnalysis| {
                let (iops, elapsed) = (
                    cell.of[Response::Iops].expect("known"),
                    cell.of[Response::Elapsed].expect("known"),
                );
                iops.median * elapsed.median * 1e-9
            };
            good.minor_faults = Some(better * requests(good));
            bad.minor_faults = Some(worse * requests(bad));
        });
        signs.page_faults
    };
    assert_eq!(of(0.0, 16.0), Sign::OnWorseSide);
    assert_eq!(of(0.0, 0.05), Sign::NotThere);
    assert_eq!(of(256.0, 16.0), Sign::NotThere);
    assert_eq!(of(128.0, 16.0), Sign::OnWorseSide);
    assert_eq!(of(16.0, 0.0), Sign::NotThere);
}

#[test]
fn counts_of_worse_side_are_signs() {
    let of = |better: f64, worse: f64| {
        of_change(|[good, bad]| {
            for (cell, count) in [(good, better), (bad, worse)] {
                cell.disturbance.ios_per_request = Some(1.0 + count);
                cell.disturbance.wait_for_others = Some(count);
                // A request of the better side has 16 times the bytes.
                let bytes = cell.of[Response::Throughput].expect("known").median
                    / cell.of[Response::Iops].expect("known").median;
                cell.stages = Some(traced(1e9 * count * bytes));
            }
        })
    };
    let all = |signs: Signs| {
        [
            signs.device_ios,
            signs.cpu_wait,
            signs.stages[Stage::Device],
        ]
    };
    assert_eq!(all(of(0.1, 0.4)), [Sign::OnWorseSide; 3]);
    assert_eq!(all(of(0.4, 0.4)), [Sign::NotThere; 3]);
    assert_eq!(all(of(0.4, 0.1)), [Sign::NotThere; 3]);
    assert_eq!(of(0.1, 0.4).stages[Stage::Queue], Sign::Unknown);
}

/// A change over the run, at its cell 0.
fn shift(of: Access, factor: f64) -> RunShift {
    RunShift {
        of,
        factor,
        ..falling(0, &[0])
    }
}

/// A change over the run concerns all cells of its kind, whichever of them shows it.
#[test]
fn leftover_of_trials_shows_in_their_level() {
    let mut analysis = analyse(&size_curve(
        "read-size",
        &[("4KiB", 1000.0), ("64KiB", 500.0)],
    ));
    let found = phenomena(&analysis).expect("plain trials")[0];
    assert_eq!(leftover(&analysis, &found), Leftover::Nothing);
    let mut with = |shifts: &[RunShift]| {
        analysis.timeline.over_run = shifts.to_vec();
        leftover(&analysis, &found)
    };
    let falls = [shift(Access::Reads, 0.5), shift(Access::Reads, 0.1)];
    assert_eq!(with(&falls), Leftover::Drained(10.0));
    assert_eq!(with(&[shift(Access::Writes, 0.1)]), Leftover::Nothing);
    let rises = [shift(Access::Reads, 0.5), shift(Access::Reads, 1.5)];
    assert_eq!(with(&rises), Leftover::Lasting);
}

/// Credits that only one side uses up. The other side is below the limit anyway, and no level of the run as a
/// whole changes.
fn drained() -> Analysis {
    let fast = [
        174.0, 178.0, 190.0, 178.0, 170.0, 78.0, 113.0, 86.0, 63.0, 120.0, 62.0, 89.0, 114.0, 58.0,
        109.0, 79.0, 55.0, 81.0, 110.0, 86.0,
    ];
    let mut record = record("read-size", &["bs"]);
    add_cell(&mut record, &["bs=4KiB"], &fast);
    let slow = [around(31.0), around(31.0), around(31.0)].concat();
    add_cell(&mut record, &["bs=64KiB"], &slow[..fast.len()]);
    analyse(&record)
}

#[test]
fn credits_that_one_side_uses_up_are_seen() {
    let analysis = drained();
    assert!(analysis.timeline.over_run.is_empty());
    let found = phenomena(&analysis).expect("plain trials")[0];
    let Leftover::Drained(factor) = leftover(&analysis, &found) else {
        panic!("{:?}", leftover(&analysis, &found));
    };
    assert!((1.5..3.0).contains(&factor), "{factor}");
}
