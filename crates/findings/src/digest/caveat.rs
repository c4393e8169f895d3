//! What limits the numbers of several runs, a few words each.

use iolab_spec::trial::CacheState;

use crate::{dependent_cells, drifting_cells};
use iolab_analysis::analysis::{Analysis, CellAnalysis, Flag, Response};
use iolab_record::RunStatus;
use iolab_spec::quantity::format_percent;
use iolab_spec::units::format_size;

/// A limit of the numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caveat {
    /// In words, without a full stop.
    pub text: String,
    /// Cells that it is about; 0 where it is about all of them.
    pub cells: usize,
}

/// Flags with their words, the worst first. Where a flag stands for what the experiment asked for it is not raised.
const FLAGS: [(Flag, &str); 17] = [
    (Flag::VerifyFailed, "wrong data was read back"),
    (Flag::Errors, "failed trials"),
    (Flag::NotStorage, "bytes that no storage served"),
    (Flag::Hole, "reads of data that was never written"),
    (Flag::PageCache, "bytes from the page cache"),
    (Flag::ExceedsCeiling, "values above a ceiling"),
    (Flag::Suspended, "the machine slept"),
    (Flag::OtherTraffic, "other traffic on the device"),
    (Flag::CpuContended, "CPUs shared with others"),
    (Flag::ToolBound, "limited by the CPU or by iolab"),
    (Flag::RateNotHeld, "rate not held"),
    (
        Flag::RequestsSplit,
        "requests split differently from trial to trial",
    ),
    (Flag::WriteBackOwed, "writes left in the page cache"),
    (Flag::ReadAhead, "read-ahead by the kernel"),
    (Flag::ClockCost, "time stamps above 1 % of a request"),
    (Flag::FewTrials, "too few trials for an interval"),
    (Flag::Gap, "not carried out by their tool"),
];

/// All caveats of these runs, the worst first.
pub(super) fn all(analyses: &[&Analysis]) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    let mut add = |text: String, cells: usize| caveats.push(Caveat { text, cells });
    let unfinished = analyses.iter().filter(|a| a.status != RunStatus::Done);
    for analysis in unfinished {
        add(
            format!("{} did not come to its end", analysis.experiment),
            0,
        );
    }
    for (flag, words) in FLAGS {
        match count(analyses, |cell| cell.flags.contains(&flag)) {
            0 => {}
            n => add(words.to_owned(), n),
        }
    }
    for analysis in analyses.iter().filter(|a| !a.timeline.over_run.is_empty()) {
        add(
            format!(
                "throughput changed its level during {}",
                analysis.experiment
            ),
            0,
        );
    }
    let bimodal = count(analyses, |cell| cell.course.modes.is_some());
    if bimodal > 0 {
        add("two groups of trials".to_owned(), bimodal);
    }
    let unsteady: usize = analyses
        .iter()
        .map(|a| drifting_cells(a).len() + dependent_cells(a).len())
        .sum();
    if unsteady > 0 {
        add(
            "trials that drift or depend on each other, so that intervals are too narrow"
                .to_owned(),
            unsteady,
        );
    }
    let imprecise = analyses.iter().map(|a| {
        let wide = |c: &&CellAnalysis| c.precision.is_some_and(|p| p > a.precision_goal);
        a.cells.iter().filter(wide).count()
    });
    let imprecise: usize = imprecise.sum();
    if imprecise > 0 {
        let goal = analyses
            .iter()
            .map(|a| a.precision_goal)
            .fold(0.0, f64::max);
        add(
            format!("intervals wider than the goal of {}", format_percent(goal)),
            imprecise,
        );
    }
    let short = count(analyses, |cell| {
        cell.latency.is_some() && cell.tail.is_none()
    });
    if short > 0 {
        add(
            "too few requests for a p99, which is close to the maximum".to_owned(),
            short,
        );
    }
    if let Some(text) = not_measured(analyses) {
        add(text, 0);
    }
    caveats
}

fn count(analyses: &[&Analysis], is: impl Fn(&CellAnalysis) -> bool) -> usize {
    let cells = analyses.iter().flat_map(|a| &a.cells);
    cells.filter(|cell| is(cell)).count()
}

/// What none of the runs asked: load, cache, larger regions.
fn not_measured(analyses: &[&Analysis]) -> Option<String> {
    let requests = |a: &&&Analysis| a.response != Response::Elapsed;
    let cells = || {
        let own = analyses.iter().filter(requests).flat_map(|a| &a.cells);
        own.filter(|cell| cell.n > 0 && !cell.cell.spec.runs_program())
    };
    let region = cells().map(|cell| cell.cell.trial().region).max()?;
    let mut parts = vec![format!("regions above {}", format_size(region))];
    if cells().all(|cell| cell.cell.trial().cache == CacheState::Direct) {
        parts.push("the page cache".to_owned());
    }
    if cells().all(|cell| cell.cell.trial().rate.is_none()) {
        parts.push("response time at a given load (--rate)".to_owned());
    }
    Some(format!("not measured: {}", parts.join(", ")))
}
