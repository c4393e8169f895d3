//! Groups at once compared with each alone, in made-up records.

use iolab_analysis::analysis::analyse;
use iolab_analysis::claim::{CellId, Contrast, Difference, claims, headlines};
use iolab_record::{RateReport, RunRecord};
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

/// Claims about all groups at once.
fn limits(record: &RunRecord) -> Vec<Difference> {
    let run = analyse(record);
    let all = claims(&[&run]);
    let effects = all.iter().flat_map(|claim| match claim.comparison() {
        Some(one) if one.contrast == Contrast::Company => claim.points.as_slice(),
        _ => &[],
    });
    effects.map(|effect| effect.difference()).collect()
}

#[test]
fn shared_and_separate_limits_are_distinguished() {
    let mut told = Vec::new();
    for (all, of_pair, limit) in [
        (300.0, 200.0, Difference::Equivalent),
        (200.0, 200.0, Difference::Lower),
        (240.0, 200.0, Difference::Lower),
    ] {
        let cells = [
            ("a", 100.0),
            ("b", 100.0),
            ("c", 100.0),
            ("a+b", of_pair),
            ("all", all),
        ];
        let record = targets(&["a", "b", "c"], &cells);
        assert_eq!(limits(&record), std::slice::from_ref(&limit));
        // The claim about groups at once comes before those about single groups, whatever it shows.
        let run = analyse(&record);
        let claimed = claims(&[&run]);
        let first = headlines(&claimed).into_iter().next();
        assert!(
            first.is_some_and(|first| first.comparison().is_some()),
            "{first:?}"
        );
        told.push(text(&named("effect", &run)));
    }
    insta::assert_snapshot!(told.join("\n"));
}

/// Two groups alone and at once, in each of two sizes. If `paced`, group `a` keeps a rate of 100 MB/s.
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

/// Levels of `active` that are compared, and the factors for which a best size is claimed.
fn compared(record: &RunRecord) -> (Vec<(String, String)>, Vec<String>) {
    let run = analyse(record);
    let mut levels = Vec::new();
    let mut curves = Vec::new();
    for claim in claims(&[&run]) {
        match claim.comparison() {
            Some(one) if one.contrast == Contrast::Company => {}
            Some(one) => {
                let factor = one.contrast.topic();
                let level = |id: CellId| run.level(run.cell(id.cell).expect("a cell"), factor);
                levels.extend(claim.points.iter().map(|one| {
                    let [base, other] = [one.base, one.cell].map(|id| level(id.expect("an id")));
                    (base, other)
                }));
            }
            _ if claim.kind.name == "best-size" => {
                curves.extend(claim.held.into_iter().map(|(_, level)| level));
            }
            _ => {}
        }
    }
    (levels, curves)
}

#[test]
fn groups_are_compared_with_each_other() {
    let levels = ("a".to_owned(), "b".to_owned());
    let (found, curves) = compared(&two_groups(false));
    assert_eq!(found, [levels.clone(), levels]);
    assert_eq!(curves, ["a", "b", "all"]);
    // The rate of `a` limits what it reaches alone.
    let (found, curves) = compared(&two_groups(true));
    assert_eq!(found, []);
    assert_eq!(curves, ["b", "all"]);
}
