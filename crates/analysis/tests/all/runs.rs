//! Comparison of runs with runs, on synthetic records.

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::compare::{CellVerdict, Comparison, Conclusion, Criteria};
use iolab_analysis::doubt::DoubtKind;
use iolab_analysis::runs::FiledRun;
use iolab_record::{Ended, RunRecord, Sample};
use iolab_synthetic::{STEADY_MB_S as STEADY, daily_runs as runs, later_run as later};
use iolab_workload::group::GroupSpec;
use iolab_workload::response::{Metric, Response};
use iolab_workload::trial::Rate;
use iolab_workload::{Kind, Result};

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

fn compared(base: &[RunRecord], new: &[RunRecord]) -> Result<Comparison> {
    let (base, new) = (analysed(base), analysed(new));
    let terms = Criteria {
        margin: 0.05,
        ..Criteria::default()
    };
    Comparison::of_several(&filed(&base), &filed(&new), terms)
}

#[test]
fn the_spread_of_the_runs_is_the_yardstick() {
    // Trials within a run differ by 1 %; the runs differ by far more.
    let base = runs(&[80.0, 120.0, 95.0, 110.0]);
    let mut new = runs(&[130.0, 90.0, 105.0, 140.0]);
    new.iter_mut().for_each(|run| run.run.seed += 100);
    let comparison = compared(&base, &new).unwrap();
    assert_eq!(
        comparison.count(CellVerdict::CannotTell(DoubtKind::WideInterval)),
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
    let few = CellVerdict::CannotTell(DoubtKind::FewRuns);
    assert_eq!(comparison.count(few), 2);
    assert_eq!(comparison.cells[0].estimate, None);
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
    let compared = compared(&history, &[of_writer(later(100.0))]).expect("comparable");
    assert_eq!(compared.without_requests, ["bs=4KiB"]);
    let judged: Vec<&str> = compared
        .cells
        .iter()
        .map(|c| c.levels[0].as_str())
        .collect();
    assert_eq!(judged, ["64KiB"]);
    assert_eq!(compared.conclusion(), Conclusion::Settled);
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
        let compared = compared(history, std::slice::from_ref(new)).expect("comparable");
        let verdicts: Vec<CellVerdict> = compared.cells.iter().map(|c| c.verdict).collect();
        (compared.conclusion(), verdicts)
    };
    let open = CellVerdict::CannotTell(DoubtKind::TimeLimit);
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
    let p50 = run.analysis().cells[0].of[Response::Latency].unwrap();
    assert!((p99.median / p50.median - 3.0).abs() < 1e-9);
    assert!(p99.median_interval.is_some());
    // 1000 requests have no 99.9th percentile with an interval.
    let run = AnalysedRun::by(runs(&[100.0]).remove(0), Some(&by(Response::P999)));
    assert_eq!(run.analysis().cells[0].response, None);
    let run = AnalysedRun::by(runs(&[100.0]).remove(0), Some(&by(Response::Cpu)));
    let cpu = run.analysis().cells[0].response.unwrap();
    assert_eq!(cpu.median, 1000.0);
}
