//! Groups at once against each alone, from records made up for it.

use iolab_analysis::analysis::analyse;
use iolab_analysis::claim::{Claim, SharedLimit, claims, headlines};
use iolab_record::{RateReport, RunRecord};
use iolab_report::findings::one_place;
use iolab_workload::group::GroupSpec;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::Rate;

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
    let mut told = Vec::new();
    for (all, pair, limit) in [
        (300.0, 200.0, SharedLimit::NotShown),
        (200.0, 200.0, SharedLimit::ReachedBy("a+b".to_owned())),
        (240.0, 200.0, SharedLimit::ReachedByAll),
    ] {
        let cells = [
            ("a", 100.0),
            ("b", 100.0),
            ("c", 100.0),
            ("a+b", pair),
            ("all", all),
        ];
        let run = analyse(&targets(&["a", "b", "c"], &cells));
        let claimed = claims(&[&run]);
        let found: Vec<_> = claimed
            .iter()
            .filter_map(|claim| match claim {
                Claim::Together(together) => Some((together.groups, &together.limit)),
                _ => None,
            })
            .collect();
        assert_eq!(found, [(3, &limit)]);
        // What a limit answers comes before what the groups do one by one.
        let first = headlines(&claimed).into_iter().next();
        let is_limit = matches!(first, Some(Claim::Together(_)));
        assert_eq!(is_limit, limit != SharedLimit::NotShown);
        told.push(text(&named("shared-limit", &run)));
    }
    insta::assert_snapshot!(told.join("\n"));
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
        insta::allow_duplicates! { insta::assert_snapshot!(told, @"2 targets were measured, in their state at that time: the intervals apply to repetitions on them, not to other devices, nor to a fuller, older or warmer one.") };
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

/// Two groups alone and at once, in each of two sizes; `paced`: the group `a` keeps a rate of 100 MB/s.
fn two_groups(paced: bool) -> RunRecord {
    let mut record = record("groups", &["bs", "active"]);
    for (bs, active, mb_s) in [
        ("4KiB", "a", 100.0),
        ("4KiB", "b", 200.0),
        ("4KiB", "all", 150.0),
        ("1MiB", "a", 100.0),
        ("1MiB", "b", 400.0),
        ("1MiB", "all", 390.0),
    ] {
        let levels = [format!("bs={bs}"), format!("active={active}")];
        let levels: Vec<&str> = levels.iter().map(String::as_str).collect();
        let cell = add_cell(&mut record, &levels, &[mb_s; 12]);
        let group = |name: &str| {
            let mut spec = CellSpec::default();
            let is_idle = active != "all" && active != name;
            spec.trial.rate = match (is_idle, paced && name == "a") {
                (true, _) => Some(Rate::Requests(0)),
                (false, true) => Some(Rate::Bytes(100_000_000)),
                (false, false) => None,
            };
            GroupSpec {
                name: name.to_owned(),
                spec,
            }
        };
        record.cells[cell].spec.groups = ["a", "b"].map(group).into();
        let own = record.cells[cell].clone();
        let trials: Vec<_> = record
            .samples
            .iter()
            .filter(|s| s.cell == own.id)
            .cloned()
            .collect();
        for (number, group) in (1..)
            .zip(&own.spec.groups)
            .filter(|(_, group)| !group.is_idle())
        {
            record.group_samples.extend(trials.iter().map(|trial| {
                let mut sample = trial.clone();
                sample.group = number;
                if group.spec.trial.rate.is_some() {
                    sample.rate_report = Some(RateReport {
                        rate_wanted: 1000.0,
                        rate_achieved: 1000.0,
                        backlog_max: 1,
                        backlog_end: 0,
                    });
                }
                sample
            }));
        }
    }
    record
}

/// Levels of `active` that are compared, and the factors that a best size is claimed at.
fn compared(record: &RunRecord) -> (Vec<(String, String)>, Vec<String>) {
    let run = analyse(record);
    let mut levels = Vec::new();
    let mut curves = Vec::new();
    for claim in claims(&[&run]) {
        match claim {
            Claim::Comparison(one) => levels.extend(one.effects.into_iter().map(|one| one.levels)),
            Claim::Best(all) => {
                let held = all.into_iter().flat_map(|best| best.held);
                curves.extend(held.map(|(_, level)| level));
            }
            _ => {}
        }
    }
    (levels, curves)
}

#[test]
fn groups_are_compared_with_each_other_and_not_with_their_sum() {
    let levels = ("a".to_owned(), "b".to_owned());
    let (found, curves) = compared(&two_groups(false));
    assert_eq!(found, [levels.clone(), levels]);
    assert_eq!(curves, ["a", "b", "all"]);
    // The rate of a decides what it reaches alone.
    let (found, curves) = compared(&two_groups(true));
    assert_eq!(found, []);
    assert_eq!(curves, ["b", "all"]);
}
