//! Differences whose cause can be asked for.

use std::time::Duration;

use iolab_analysis::analysis::{Analysis, analyse};
use iolab_analysis::timeline::{Access, DisturbedTrials, Levels, RunShift, TrialShift};
use iolab_record::{RunRecord, ServedBy};
use iolab_synthetic::{add_cell, around, record, size_curve};
use iolab_why::phenomena::{Unexplainable, Unpaired, phenomena, unpaired};
use iolab_why::phenomenon::{PhenomenonKind, Unclaimed, WhyUnpaired};
use iolab_workload::command_template::Linkage;
use iolab_workload::trial::TrialSpec;

/// The sizes of base and other of each phenomenon, in their order.
fn pairs(record: &RunRecord) -> Vec<(String, String)> {
    let found = phenomena(&analyse(record)).expect("plain trials");
    let size = |cell: i64| record.cells[cell as usize].levels.join(", ");
    let both = found
        .iter()
        .map(|one| (size(one.base.cell), size(one.other.cell)));
    both.collect()
}

fn pair(base: &str, other: &str) -> (String, String) {
    (base.to_owned(), other.to_owned())
}

#[test]
fn each_side_of_best_size_is_a_difference() {
    let record = size_curve(
        "read-size",
        &[
            ("4KiB", 100.0),
            ("64KiB", 1000.0),
            ("1MiB", 900.0),
            ("16MiB", 500.0),
        ],
    );
    assert_eq!(
        pairs(&record),
        [pair("64KiB", "4KiB"), pair("64KiB", "16MiB")]
    );
}

#[test]
fn dip_is_compared_with_its_lower_shoulder() {
    let record = size_curve(
        "read-size",
        &[
            ("4KiB", 100.0),
            ("64KiB", 800.0),
            ("1MiB", 400.0),
            ("4MiB", 600.0),
            ("16MiB", 1000.0),
        ],
    );
    assert_eq!(
        pairs(&record),
        [pair("16MiB", "4KiB"), pair("64KiB", "1MiB")]
    );
}

#[test]
fn a_flat_curve_has_none() {
    let record = size_curve(
        "read-size",
        &[("4KiB", 100.0), ("64KiB", 100.0), ("1MiB", 100.0)],
    );
    assert_eq!(pairs(&record), []);
}

/// Reads that come from the device against writes that the page cache takes.
fn reads_against_writes(sync: &str) -> RunRecord {
    let mut record = record("write-vs-read", &["workload"]);
    let sync = format!("sync={sync}");
    for (workload, mb_s) in [("workload=RR", 100.0), ("workload=WR", 1000.0)] {
        add_cell(&mut record, &[workload, "cache=cold", &sync], &around(mb_s));
    }
    for sample in record.samples.iter_mut().filter(|one| one.cell == 1) {
        sample.verdict.served_by = ServedBy::PageCache;
    }
    record
}

/// Cells with different sources of bytes are not compared in speed. They are something to explain if a suspect
/// is the source.
#[test]
fn different_sources_are_explained_if_removable() {
    let found = |sync| phenomena(&analyse(&reads_against_writes(sync))).expect("plain trials");
    let unclaimed: Vec<_> = found("none").iter().map(|one| one.unclaimed).collect();
    assert_eq!(unclaimed, [Some(Unclaimed::OtherSource)]);
    // Writes that wait for storage leave nothing to remove.
    assert_eq!(found("odsync"), []);
}

#[test]
fn a_run_of_programs_cannot_be_explained() {
    let mut record = size_curve("read-size", &[("4KiB", 100.0), ("64KiB", 1000.0)]);
    for cell in &mut record.cells {
        cell.spec.linkage = Some(Linkage::Static);
    }
    assert_eq!(phenomena(&analyse(&record)), Err(Unexplainable::Programs));
}

/// A fall to a tenth, or a rise, within each trial of the first cell.
fn changed(record: &RunRecord, factor: f64) -> Analysis {
    let mut analysis = analyse(record);
    analysis.timeline.within = vec![TrialShift {
        cell: 0,
        trials: 10,
        after_ns: 1_000_000_000,
        moved_bytes: 100.0 * MIB,
        of: Access::Reads,
        before_mb_s: 10.0 * MIB / 1e6,
        after_mb_s: factor * 10.0 * MIB / 1e6,
        levels: Vec::new(),
    }];
    analysis
}

const MIB: f64 = 1_048_576.0;

/// Half of the bytes before the fall are compared with twice their time. Differences between cells come first.
#[test]
fn fall_compares_a_shorter_and_longer_load() {
    let one = size_curve("read-size", &[("4KiB", 100.0)]);
    let analysis = changed(&one, 0.1);
    let found = phenomena(&analysis).expect("plain trials");
    let [fall] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert!((fall.seen.ratio - 0.55).abs() < 1e-9, "{fall:?}");
    let sides = fall.sides(&analysis).expect("its cell");
    let (short, long) = (sides.base, sides.other);
    assert_eq!(short.trial.limit.bytes, Some(50 << 20));
    assert_eq!(short.trial.limit.time, None);
    assert_eq!(long.trial.limit.time, Some(Duration::from_secs(20)));
    assert_eq!(long.trial.limit.bytes, Some(110 << 20));
    assert_eq!(unpaired(&analysis), []);
    let two = size_curve("read-size", &[("4KiB", 100.0), ("64KiB", 1000.0)]);
    let found = phenomena(&changed(&two, 0.1)).expect("plain trials");
    let are_falls: Vec<bool> = found
        .iter()
        .map(|one| matches!(one.kind, PhenomenonKind::Loads(_)))
        .collect();
    assert_eq!(are_falls, [false, true]);
}

#[test]
fn a_change_without_two_sides_has_its_reason() {
    let record = size_curve("read-size", &[("4KiB", 100.0)]);
    let why = |analysis: &Analysis| {
        assert_eq!(phenomena(analysis), Ok(Vec::new()));
        match unpaired(analysis).as_slice() {
            [Unpaired::Claim(_, why)] => *why,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(why(&changed(&record, 2.0)), WhyUnpaired::Rises);
    let mut prepared = changed(&record, 0.1);
    prepared.is_preconditioned = true;
    assert_eq!(why(&prepared), WhyUnpaired::Preconditioned);
    let of_trial = |change: &dyn Fn(&mut TrialSpec)| {
        let mut record = record.clone();
        change(&mut record.cells[0].spec.trial);
        why(&changed(&record, 0.1))
    };
    let mixed = of_trial(&|trial| trial.read_percent = 70);
    assert_eq!(mixed, WhyUnpaired::ReadsAndWrites);
    let paced = of_trial(&|trial| trial.rate = Some("1000".parse().expect("a rate")));
    assert_eq!(paced, WhyUnpaired::HasRate);
}

/// 30 trials of a cell, one group of them twice as fast as the other.
fn add_groups(record: &mut RunRecord, name: &str) {
    let values: Vec<f64> = (0..30)
        .map(|n| [100.0, 200.0][n * 7 % 10 / 5] + n as f64 / 10.0)
        .collect();
    add_cell(record, &[name], &values);
}

/// A fall to a half over the run, which these cells show.
pub(crate) fn falling(cell: i64, cells: &[i64]) -> RunShift {
    let undisturbed = DisturbedTrials {
        disturbed: 0,
        suspended: 0,
        all: 15,
    };
    RunShift {
        of: Access::Reads,
        moved_bytes: 1 << 30,
        after_ns: 1_000_000_000,
        factor: 0.5,
        cells: cells.to_vec(),
        levels: Levels::Trials {
            before: 15,
            after: 15,
        },
        disturbed_before: undisturbed,
        disturbed_after: undisturbed,
        cell,
        before_mb_s: 200.0,
        after_mb_s: 100.0,
    }
}

#[test]
fn two_groups_are_named_unless_the_run_changed() {
    let mut record = record("read-size", &["bs"]);
    add_groups(&mut record, "bs=4KiB");
    let mut analysis = analyse(&record);
    let found = unpaired(&analysis);
    assert!(
        matches!(found.as_slice(), [Unpaired::TwoGroups(_)]),
        "{found:?}"
    );
    analysis.timeline.over_run = vec![falling(0, &[0])];
    assert_eq!(unpaired(&analysis), []);
    assert_eq!(phenomena(&analysis).expect("plain trials").len(), 1);
}

/// All cells moved the bytes before a change over the run; the groups of a cell that did not change are its own.
#[test]
fn change_over_several_cells_hides_no_groups() {
    let mut record = record("read-size", &["bs"]);
    add_groups(&mut record, "bs=4KiB");
    add_groups(&mut record, "bs=64KiB");
    let mut analysis = analyse(&record);
    let mut of = |cells: &[i64]| {
        analysis.timeline.over_run = vec![falling(0, cells)];
        assert_eq!(phenomena(&analysis), Ok(Vec::new()));
        unpaired(&analysis)
    };
    match of(&[0]).as_slice() {
        [
            Unpaired::Claim(_, WhyUnpaired::SeveralCells),
            Unpaired::TwoGroups(groups),
        ] => {
            let cells: Vec<i64> = groups.cells.iter().map(|one| one.cell).collect();
            assert_eq!((cells, groups.most.cell), (vec![1], 1));
        }
        other => panic!("{other:?}"),
    }
    let together = of(&[0, 1]);
    assert!(
        matches!(
            together.as_slice(),
            [Unpaired::Claim(_, WhyUnpaired::SeveralCells)]
        ),
        "{together:?}"
    );
}
