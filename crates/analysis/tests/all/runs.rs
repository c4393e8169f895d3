//! Comparison of runs with runs, gates and histories, on synthetic records.

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::compare::{ALPHA, CellVerdict, Comparison, Conclusion, WhyUndecided};
use iolab_analysis::doubt::{Reason, ReasonKind};
use iolab_analysis::gate::{Gate, GateTerms};
use iolab_analysis::history::History;
use iolab_analysis::imbalance::Disturber;
use iolab_analysis::runs::comparable_runs::{Comparability, ExclusionReason};
use iolab_analysis::runs::{FiledRun, HISTORY_MIN, ReportedChanges, RunCriteria};
use iolab_record::environment::KEYS;
use iolab_record::{Ended, RunRecord, RunStatus, Sample, ServedBy};
use iolab_workload::group::GroupSpec;
use iolab_workload::response::{Metric, Response};
use iolab_workload::trial::Rate;
use iolab_workload::{Kind, Result};

use iolab_synthetic::{add_cell, around, record, serve};

/// Runs of two cells around these throughputs, one a day.
fn runs(mb_s: &[f64]) -> Vec<RunRecord> {
    let run = |(day, mb_s): (usize, &f64)| {
        let mut run = record("read-size", &["bs"]);
        add_cell(&mut run, &["bs=4KiB"], &around(*mb_s));
        // The second cell has its own scatter.
        let other = 5.0 * mb_s * (1.0 + 0.01 * (day as f64 * 2.4).sin());
        add_cell(&mut run, &["bs=64KiB"], &around(other));
        run.run.started_utc = format!("2026-01-{:02}T03:04:05Z", day + 1);
        run.run.seed = day as u64;
        run
    };
    mb_s.iter().enumerate().map(run).collect()
}

/// Ten runs within 2 % of 100 MB/s.
const STEADY: [f64; 10] = [
    100.0, 101.2, 99.1, 100.4, 98.9, 101.8, 99.6, 100.9, 98.4, 100.2,
];

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

fn terms(looks_for: ReportedChanges) -> RunCriteria {
    RunCriteria {
        margin: 0.05,
        looks_for,
        base_min: 1,
    }
}

fn compared(base: &[RunRecord], new: &[RunRecord]) -> Result<Comparison> {
    let (base, new) = (analysed(base), analysed(new));
    Comparison::of_several(&filed(&base), &filed(&new), terms(ReportedChanges::Changes))
}

fn gate_with(new: &RunRecord, all: &[RunRecord], looks_for: ReportedChanges) -> Result<Gate> {
    gate_that_finds(new, all, looks_for, None)
}

fn gate_that_finds(
    new: &RunRecord,
    all: &[RunRecord],
    looks_for: ReportedChanges,
    must_find: Option<f64>,
) -> Result<Gate> {
    let (run, all) = (AnalysedRun::of(new.clone()), analysed(all));
    let new = FiledRun {
        file: "new.iolab",
        run: &run,
    };
    let terms = GateTerms {
        runs: RunCriteria {
            base_min: HISTORY_MIN,
            ..terms(looks_for)
        },
        kinship: Comparability { any_host: false },
        last: 20,
        must_find,
    };
    Gate::of(new, &filed(&all), &terms)
}

fn gate(new: &RunRecord, all: &[RunRecord]) -> Gate {
    gate_with(new, all, ReportedChanges::AnyChange).unwrap()
}

/// A run later than all others.
fn later(mb_s: f64) -> RunRecord {
    let mut run = runs(&[mb_s]).remove(0);
    run.run.started_utc = "2026-02-01T00:00:00Z".to_owned();
    run
}

#[test]
fn gate_states_if_it_cannot_find_a_change() {
    let narrow = runs(&[100.0, 100.5, 99.8, 100.3, 99.9, 100.1]);
    let wide = runs(&[70.0, 140.0, 95.0, 125.0, 80.0, 110.0]);
    let asked = |all: &[RunRecord], must_find: Option<f64>, new: f64| {
        gate_that_finds(&later(new), all, ReportedChanges::AnyChange, must_find).unwrap()
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
fn the_spread_of_the_runs_is_the_yardstick() {
    // Trials within a run differ by 1 %; the runs differ by far more.
    let base = runs(&[80.0, 120.0, 95.0, 110.0]);
    let mut new = runs(&[130.0, 90.0, 105.0, 140.0]);
    new.iter_mut().for_each(|run| run.run.seed += 100);
    let comparison = compared(&base, &new).unwrap();
    assert_eq!(
        comparison.count(CellVerdict::CannotTell(WhyUndecided::WideInterval)),
        2,
        "{comparison:?}"
    );
    assert_eq!(comparison.conclusion(), Conclusion::CannotTell);
    let mut slow = runs(&STEADY.map(|mb_s| 0.8 * mb_s));
    slow.iter_mut().for_each(|run| run.run.seed += 100);
    let comparison = compared(&runs(&STEADY), &slow).unwrap();
    assert_eq!(comparison.count(CellVerdict::Slower), 2);
    assert_eq!(
        comparison.overall.as_ref().unwrap().verdict,
        CellVerdict::Slower
    );
    assert_eq!(comparison.conclusion(), Conclusion::Regression);
    let mut same = runs(&STEADY);
    same.reverse();
    same.iter_mut().for_each(|run| run.run.seed += 100);
    let comparison = compared(&runs(&STEADY), &same).unwrap();
    assert_eq!(comparison.count(CellVerdict::Equivalent), 2);
    assert_eq!(comparison.conclusion(), Conclusion::Settled);
}

#[test]
fn run_is_on_one_side_and_counts_once() {
    let base = runs(&STEADY);
    assert_eq!(compared(&base, &base[..1]).unwrap_err().kind(), Kind::Usage);
    assert_eq!(compared(&base, &[]).unwrap_err().kind(), Kind::Usage);
    let twice = [&base[..4], &base[..4]].concat();
    let comparison = compared(&twice, &base[4..]).unwrap();
    assert_eq!(comparison.base.runs.len(), 4);
}

#[test]
fn two_runs_do_not_show_run_scatter() {
    let base = runs(&STEADY);
    let comparison = compared(&base[..1], &base[1..2]).unwrap();
    let few = CellVerdict::CannotTell(WhyUndecided::FewRuns);
    assert_eq!(comparison.count(few), 2);
    assert_eq!(comparison.cells[0].estimate, None);
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
    // A strict gate requires equivalence, which ten runs within 2 % show within 5 %.
    let strict = gate_with(
        &later(100.5),
        &history,
        ReportedChanges::AnyChangeOrEquivalence,
    )
    .unwrap();
    assert_eq!(strict.compared.unwrap().count(CellVerdict::Equivalent), 2);
    let unsure = gate_with(
        &later(97.5),
        &history,
        ReportedChanges::AnyChangeOrEquivalence,
    )
    .unwrap();
    assert_eq!(unsure.conclusion(), Conclusion::CannotTell);
}

#[test]
fn too_few_runs_are_counted() {
    let history = runs(&STEADY[..3]);
    let gate = gate(&later(50.0), &history);
    assert_eq!((gate.history, gate.missing()), (3, Some(2)));
    assert_eq!(gate.conclusion(), Conclusion::CannotTell);
    assert_eq!(gate.compared, None);
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

/// At a rate of 0 the group in question does not run, so its cells do not lack a value.
#[test]
fn cells_without_requests_of_group_are_not_judged() {
    let of_writer = |mut run: RunRecord| {
        run.experiment.response_group = Some("writer".to_owned());
        for (place, cell) in run.cells.iter_mut().enumerate() {
            let mut spec = cell.spec.clone();
            spec.trial.rate = (place == 0).then_some(Rate::ZERO);
            let name = "writer".to_owned();
            cell.spec.groups = vec![GroupSpec { name, spec }];
        }
        let own = run.samples.iter().filter(|sample| sample.cell == 1);
        let own = own.map(|sample| Sample {
            group: 1,
            ..sample.clone()
        });
        run.group_samples = own.collect();
        run
    };
    let history: Vec<RunRecord> = runs(&STEADY).into_iter().map(of_writer).collect();
    let gate = gate(&of_writer(later(100.0)), &history);
    let compared = gate.compared.as_ref().expect("enough runs");
    assert_eq!(compared.without_requests, ["bs=4KiB"]);
    let judged: Vec<&str> = compared
        .cells
        .iter()
        .map(|c| c.levels[0].as_str())
        .collect();
    assert_eq!(judged, ["64KiB"]);
    assert_eq!(gate.conclusion(), Conclusion::Settled);
    let two = crate::compare::of(&history[0], &history[1], None).expect("comparable");
    assert_eq!(two.without_requests, ["bs=4KiB"]);
    assert_eq!(two.cells.len(), 1);
}

/// Trials last as long as the limit allows, so no disk is slower.
#[test]
fn trials_ended_by_time_limit_skip_elapsed_comparison() {
    let of_time = |mut run: RunRecord, ended: Ended| {
        run.experiment.response = Response::Elapsed;
        for sample in &mut run.samples {
            sample.ended = ended;
        }
        run
    };
    let history = |ended| -> Vec<RunRecord> {
        let all = runs(&STEADY).into_iter();
        all.map(|run| of_time(run, ended)).collect()
    };
    let judged = |new: &RunRecord, history: &[RunRecord]| {
        let gate = gate(new, history);
        let compared = gate.compared.as_ref().expect("enough runs");
        let verdicts: Vec<CellVerdict> = compared.cells.iter().map(|c| c.verdict).collect();
        (gate.conclusion(), verdicts)
    };
    let open = CellVerdict::CannotTell(WhyUndecided::Doubted(ReasonKind::TimeLimit));
    let ends = [Ended::Time, Ended::Done];
    let [limited, free] = ends.map(history);
    let [alike, slower] = [100.0, 50.0].map(later);
    assert_eq!(
        judged(&of_time(alike.clone(), Ended::Time), &limited),
        (Conclusion::CannotTell, vec![open; 2])
    );
    let settled = judged(&of_time(alike, Ended::Done), &free);
    assert_eq!(settled.0, Conclusion::Settled);
    // Trials that the limit cut short are longer than those that ended by themselves.
    let regression = judged(&of_time(slower, Ended::Time), &free);
    assert_eq!(regression.0, Conclusion::Regression);
    let two = crate::compare::of(&limited[0], &limited[1], None).expect("comparable");
    assert!(two.cells.iter().all(|cell| cell.verdict == open));
}

#[test]
fn a_disturbed_run_accuses_nobody() {
    let history = runs(&STEADY);
    let mut new = later(60.0);
    for sample in new.samples.iter_mut().filter(|s| s.cell == 0) {
        let device = sample.counters.device.as_mut().unwrap();
        device.read_bytes *= 4;
    }
    let gate = gate(&new, &history);
    let compared = gate.compared.as_ref().unwrap();
    assert_eq!(
        compared.cells[0].verdict,
        CellVerdict::CannotTell(WhyUndecided::Doubted(ReasonKind::Disturbed))
    );
    let what = compared.cells[0]
        .doubts
        .iter()
        .find_map(|doubt| match doubt.reason {
            Reason::Imbalance(found) => Some(found.what),
            _ => None,
        });
    assert_eq!(what, Some(Disturber::OtherTraffic));
    // The other cell was not disturbed.
    assert_eq!(compared.cells[1].verdict, CellVerdict::Slower);
    assert_eq!(gate.conclusion(), Conclusion::Regression);
    new.samples.retain(|sample| sample.cell == 0);
    let alone: Vec<RunRecord> = history
        .into_iter()
        .map(|mut run| {
            run.cells.truncate(1);
            run.samples.retain(|sample| sample.cell == 0);
            run
        })
        .collect();
    new.cells.truncate(1);
    let gate = self::gate(&new, &alone);
    assert_eq!(gate.conclusion(), Conclusion::CannotTell);
}

/// Runs in whose trials the device transferred three times as many bytes for others.
fn disturbed(mut runs: Vec<RunRecord>) -> Vec<RunRecord> {
    for sample in runs.iter_mut().flat_map(|run| &mut run.samples) {
        let device = sample.counters.device.as_mut().expect("a device");
        device.read_bytes *= 4;
    }
    runs
}

#[test]
fn disturbed_side_doubts_what_it_may_have_caused() {
    let verdict = |history: &[RunRecord], new: &RunRecord| {
        let gate = gate(new, history);
        gate.compared.expect("enough runs").cells[0].verdict
    };
    let (quiet, busy) = (runs(&STEADY), disturbed(runs(&STEADY)));
    let alone = |mb_s: f64| disturbed(vec![later(mb_s)]).remove(0);
    for (history, new, expected) in [
        (
            &quiet,
            alone(60.0),
            CellVerdict::CannotTell(WhyUndecided::Doubted(ReasonKind::Disturbed)),
        ),
        (&quiet, alone(160.0), CellVerdict::Faster),
        (&quiet, alone(100.0), CellVerdict::NoChange),
        (
            &busy,
            later(160.0),
            CellVerdict::CannotTell(WhyUndecided::Doubted(ReasonKind::Disturbed)),
        ),
        (&busy, later(60.0), CellVerdict::Slower),
        // As disturbed as before.
        (&busy, alone(60.0), CellVerdict::Slower),
    ] {
        assert_eq!(verdict(history, &new), expected);
    }
    let mut cached = later(100.0);
    serve(&mut cached, 0, ServedBy::PageCache, "all from memory");
    assert_eq!(
        verdict(&quiet, &cached),
        CellVerdict::CannotTell(WhyUndecided::Doubted(ReasonKind::OtherSource))
    );
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
    let cases: [(Change, ExclusionReason); 9] = [
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
        (
            |run| run.environment.put(&KEYS.host_name, "b".to_owned()),
            ExclusionReason::Machine("host_name"),
        ),
        (
            |run| run.environment.put(&KEYS.cpu_model, "Z80".to_owned()),
            ExclusionReason::Machine("cpu_model"),
        ),
        (
            |run| run.environment.put(&KEYS.device_model, "Old".to_owned()),
            ExclusionReason::Target("device_model"),
        ),
    ];
    let mut new = later(100.0);
    new.environment.put(&KEYS.host_name, "a".to_owned());
    new.environment.put(&KEYS.cpu_model, "6502".to_owned());
    new.environment.put(&KEYS.device_model, "New".to_owned());
    for (change, expected) in cases {
        let mut old = runs(&[100.0]).remove(0);
        change(&mut old);
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

fn by(response: Response) -> Metric {
    Metric {
        group: None,
        response,
    }
}

#[test]
fn tails_are_compared_where_there_are_requests_enough() {
    let run = AnalysedRun::by(runs(&[100.0]).remove(0), Some(&by(Response::P99)));
    let p99 = run.analysis().cells[0].response.unwrap();
    let p50 = run.analysis().cells[0].latency_p50.unwrap();
    assert!((p99.median / p50.median - 3.0).abs() < 1e-9);
    assert!(p99.median_interval.is_some());
    // 1000 requests have no 99.9th percentile with an interval.
    let run = AnalysedRun::by(runs(&[100.0]).remove(0), Some(&by(Response::P999)));
    assert_eq!(run.analysis().cells[0].response, None);
    let run = AnalysedRun::by(runs(&[100.0]).remove(0), Some(&by(Response::Cpu)));
    let cpu = run.analysis().cells[0].response.unwrap();
    assert_eq!(cpu.median, 1000.0);
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
        // The scatter within the levels.
        assert!(trajectory.sd.unwrap() < 0.02, "{:?}", trajectory.sd);
    }
    let changed: Vec<(usize, &str)> = line
        .changes
        .iter()
        .map(|change| (change.at, change.what.as_str()))
        .collect();
    assert_eq!(changed, [(10, "kernel_release")]);
}
