//! Gates and histories, on synthetic records.

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::compare::{ALPHA, CellVerdict, Conclusion};
use iolab_analysis::runs::FiledRun;
use iolab_analysis::runs::comparable_runs::{Comparability, ExclusionReason};
use iolab_gate::judgement::{Gate, GateTerms};
use iolab_gate::line::History;
use iolab_record::environment::KEYS;
use iolab_record::{RunRecord, RunStatus};
use iolab_synthetic::{STEADY_MB_S as STEADY, daily_runs as runs, later_run as later};

fn analysed(records: &[RunRecord]) -> Vec<(String, AnalysedRun)> {
    let named = |(place, record): (usize, &RunRecord)| {
        (format!("{place}.iolab"), AnalysedRun::of(record.clone()))
    };
    records.iter().enumerate().map(named).collect()
}

fn filed(runs: &[(String, AnalysedRun)]) -> Vec<FiledRun<'_>> {
    runs.iter()
        .map(|(file, run)| FiledRun { file, run })
        .collect()
}

fn gate_that_finds(new: &RunRecord, all: &[RunRecord], must_find: Option<f64>) -> Gate {
    let (run, all) = (AnalysedRun::of(new.clone()), analysed(all));
    let new = FiledRun {
        file: "new.iolab",
        run: &run,
    };
    let terms = GateTerms {
        kinship: Comparability { any_host: false },
        last: 20,
        must_find,
    };
    Gate::of(new, &filed(&all), &terms).unwrap()
}

fn gate(new: &RunRecord, all: &[RunRecord]) -> Gate {
    gate_that_finds(new, all, None)
}

#[test]
fn gate_states_if_it_cannot_find_a_change() {
    let narrow = runs(&[100.0, 100.5, 99.8, 100.3, 99.9, 100.1]);
    let wide = runs(&[70.0, 140.0, 95.0, 125.0, 80.0, 110.0]);
    let asked = |all: &[RunRecord], must_find: Option<f64>, new: f64| {
        gate_that_finds(&later(new), all, must_find)
    };
    // Without a required change, a wide history is not a reason to doubt.
    let gate = asked(&wide, None, 100.0);
    assert_eq!((gate.conclusion(), gate.blind()), (Conclusion::Settled, 0));
    assert!(
        gate.detectable_changes()
            .is_some_and(|sight| sight.worst > 1.5),
        "{gate:?}"
    );
    let gate = asked(&wide, Some(0.2), 100.0);
    assert_eq!(gate.conclusion(), Conclusion::CannotTell);
    assert!(gate.blind() > 0);
    let gate = asked(&narrow, Some(0.2), 100.0);
    assert_eq!((gate.conclusion(), gate.blind()), (Conclusion::Settled, 0));
    assert!(
        gate.detectable_changes()
            .is_some_and(|sight| sight.worst < 1.2),
        "{gate:?}"
    );
    // A regression is reported even if a smaller one was not detectable.
    let gate = asked(&wide, Some(0.2), 5.0);
    assert_eq!(gate.conclusion(), Conclusion::Regression);
}

#[test]
fn gate_alarms_only_for_a_slow_run() {
    let history = runs(&STEADY);
    let slow = gate(&later(85.0), &history);
    assert_eq!(slow.conclusion(), Conclusion::Regression);
    let same = gate(&later(100.5), &history);
    assert_eq!(same.conclusion(), Conclusion::Settled);
    assert_eq!(same.compared.unwrap().count(CellVerdict::NoChange), 2);
    let fast = gate(&later(115.0), &history);
    assert_eq!(fast.conclusion(), Conclusion::Settled);
    assert_eq!(fast.compared.unwrap().count(CellVerdict::Faster), 2);
}

#[test]
fn cell_without_new_measurement_is_not_success() {
    let history = runs(&STEADY);
    let mut new = later(100.0);
    new.cells.truncate(1);
    new.samples.retain(|sample| sample.cell == 0);
    let gate = gate(&new, &history);
    assert_eq!(gate.conclusion(), Conclusion::CannotTell);
    assert_eq!(gate.compared.unwrap().only_base, ["bs=64KiB"]);
}

#[test]
fn verdict_follows_from_the_shown_interval() {
    for mb_s in [60.0, 96.0, 98.0, 100.0, 102.0, 104.0, 160.0] {
        let gate = gate(&later(mb_s), &runs(&STEADY));
        for cell in &gate.compared.expect("enough runs").cells {
            let estimate = cell.estimate.expect("enough runs");
            let (low, high) = estimate.interval.expect("enough runs");
            let shown = match cell.verdict {
                CellVerdict::Slower => high < 1.0,
                CellVerdict::Faster => low > 1.0,
                _ => low <= 1.0 && high >= 1.0,
            };
            assert!(shown, "{cell:?}");
            let p = cell.p_adjusted.expect("enough runs");
            assert_eq!(p < ALPHA, low > 1.0 || high < 1.0);
        }
    }
}

#[test]
fn only_runs_of_the_same_kind_are_history() {
    type Change = fn(&mut RunRecord);
    let cases: [(Change, ExclusionReason); 6] = [
        (
            |run| run.run.status = RunStatus::Interrupted,
            ExclusionReason::Unfinished,
        ),
        (
            |run| run.run.started_utc = "2027-01-01T00:00:00Z".to_owned(),
            ExclusionReason::Later,
        ),
        (
            |run| run.experiment.name = "other".to_owned(),
            ExclusionReason::Experiment,
        ),
        (
            |run| run.experiment.budget_ns *= 2,
            ExclusionReason::Settings("budget".to_owned()),
        ),
        (
            |run| run.cells[1].spec.trial.threads = 4,
            ExclusionReason::Settings("threads".to_owned()),
        ),
        (
            |run| run.run.target = "/other".to_owned(),
            ExclusionReason::Target("path"),
        ),
    ];
    let facts = [
        (&KEYS.host_name, ExclusionReason::Machine("host_name")),
        (&KEYS.cpu_model, ExclusionReason::Machine("cpu_model")),
        (&KEYS.device_model, ExclusionReason::Target("device_model")),
    ];
    let (mut new, old) = (later(100.0), runs(&[100.0]).remove(0));
    for (key, _) in &facts {
        new.environment.put(key, "new".to_owned());
    }
    let changed = cases.into_iter().map(|(change, expected)| {
        let mut old = old.clone();
        change(&mut old);
        (old, expected)
    });
    let differing = facts.into_iter().map(|(key, expected)| {
        let mut old = old.clone();
        old.environment.put(key, "old".to_owned());
        (old, expected)
    });
    for (old, expected) in changed.chain(differing) {
        let gate = gate(&new, &[old]);
        assert_eq!(gate.unused, [("0.iolab".to_owned(), expected)]);
    }
    assert_eq!(
        gate(&new, &[new.clone()]).unused[0].1,
        ExclusionReason::Itself
    );
    // A fact missing in the older run is not a difference.
    assert_eq!(gate(&new, &runs(&[100.0])).history, 1);
}

#[test]
fn only_the_last_runs_count() {
    let history = runs(&[100.0; 25]);
    let gate = gate(&later(100.0), &history);
    assert_eq!(gate.history, 20);
    assert_eq!(gate.unused.len(), 5);
    assert_eq!(
        gate.unused[0],
        ("0.iolab".to_owned(), ExclusionReason::Older)
    );
}

#[test]
fn history_finds_shift_and_what_changed_there() {
    let mut all = runs(&[&STEADY[..], &STEADY.map(|mb_s| 0.7 * mb_s)].concat());
    for run in &mut all[10..] {
        run.environment.put(&KEYS.kernel_release, "6.2".to_owned());
    }
    for run in &mut all[..10] {
        run.environment.put(&KEYS.kernel_release, "6.1".to_owned());
    }
    all.push({
        let mut other = later(100.0);
        other.experiment.name = "other".to_owned();
        other
    });
    let all = analysed(&all);
    let history = History::of(&filed(&all), Comparability { any_host: false }).unwrap();
    let sizes: Vec<usize> = history.lines.iter().map(|line| line.runs.len()).collect();
    assert_eq!(sizes, [20, 1]);
    let line = &history.lines[0];
    assert_eq!(line.shifted_at(), [10]);
    for trajectory in line.trajectories() {
        let ratio = trajectory.shifts[0].ratio;
        assert!((ratio - 0.7).abs() < 0.01, "{ratio}");
        assert_eq!(
            (trajectory.shifts[0].after, trajectory.shifts[0].at),
            (9, 10)
        );
        // Scatter within the levels only.
        assert!(trajectory.sd.unwrap() < 0.02, "{:?}", trajectory.sd);
    }
    let changed: Vec<(usize, &str)> = line
        .changes
        .iter()
        .map(|change| (change.at, change.what.as_str()))
        .collect();
    assert_eq!(changed, [(10, "kernel_release")]);
}
