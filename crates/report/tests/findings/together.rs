//! Groups at once against each alone, from records made up for it.

use iolab_analysis::analysis::analyse;
use iolab_record::RunRecord;
use iolab_report::findings::one_place;
use iolab_workload::group::GroupSpec;
use iolab_workload::settings::CellSpec;

use crate::{named, text};
use iolab_synthetic::{add_cell, record};

/// Cells of these active groups and throughputs, which vary by 1 %.
fn targets(names: &[&str], cells: &[(&str, f64)]) -> RunRecord {
    let mut record = record("together", &["active"]);
    for (active, mb_s) in cells {
        let values: Vec<f64> = (0..12)
            .map(|n| mb_s * (1.0 + f64::from(n % 3) / 100.0))
            .collect();
        let level = format!("active={active}");
        let cell = add_cell(&mut record, &["bs=4KiB", &level], &values);
        let group = |name: &&str| GroupSpec {
            name: (*name).to_owned(),
            spec: CellSpec::default(),
        };
        record.cells[cell].spec.groups = names.iter().map(group).collect();
    }
    record
}

#[test]
fn targets_that_share_a_limit_are_told_from_those_that_do_not() {
    for (all, pair, part) in [
        (300.0, 200.0, "no limit that they share"),
        (
            200.0,
            200.0,
            "they share a limit; a and b already reach it.",
        ),
        (240.0, 200.0, "which fewer of them do not reach"),
    ] {
        let cells = [
            ("a", 100.0),
            ("b", 100.0),
            ("c", 100.0),
            ("a+b", pair),
            ("all", all),
        ];
        let findings = named("shared-limit", &analyse(&targets(&["a", "b", "c"], &cells)));
        let told = text(&findings);
        assert!(told.starts_with("3 groups at once reach"), "{told}");
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn targets_that_are_used_at_once_are_counted_each() {
    let cells = [("a", 100.0), ("all", 150.0)];
    let mut together = targets(&["a", "b"], &cells);
    for group in together
        .cells
        .iter_mut()
        .flat_map(|cell| &mut cell.spec.groups)
    {
        group.spec.target = format!("/{}", group.name).parse().ok();
    }
    let mut striped = targets(&[], &cells);
    striped.cells[0].spec.target = "/a:/b".parse().ok();
    striped.cells[1].spec.target = "/b".parse().ok();
    for record in [together, striped] {
        let told = one_place(&[&analyse(&record)]).expect("a limit").text;
        assert!(told.starts_with("2 targets were measured"), "{told}");
    }
}

#[test]
fn nothing_is_said_of_groups_that_keep_a_proportion() {
    let cells = [("a", 100.0), ("b", 100.0), ("all", 120.0)];
    let mut record = targets(&["a", "b"], &cells);
    let all = record.cells.last_mut().expect("all");
    all.spec.groups[0].spec.trial.flow = Some(2);
    assert_eq!(named("shared-limit", &analyse(&record)), []);
}

#[test]
fn nothing_is_said_where_one_was_not_measured_alone() {
    let cells = [("a", 100.0), ("all", 150.0)];
    assert_eq!(
        named("shared-limit", &analyse(&targets(&["a", "b"], &cells))),
        []
    );
}
