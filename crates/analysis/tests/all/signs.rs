//! Counts of a run that point to the mechanism of a difference.

use iolab_analysis::analysis::{
    Analysis, CellAnalysis, CellStages, Response, StageNumbers, analyse,
};
use iolab_analysis::claim::phenomena;
use iolab_plan::suspect::{Sign, Signs};
use iolab_synthetic::size_curve;
use iolab_workload::stages::{CarriedBy, PerStage, Stage, SyncCounts};

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
