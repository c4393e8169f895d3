//! What limits the numbers of several runs, a few words each.

use iolab_workload::trial::CacheState;

use crate::findings::disturbance::in_words_of;
use crate::findings::run_status::is_by_user;
use crate::findings::sentences::{in_words_of_standard, state_in_short};
use crate::flag::in_words;
use iolab_analysis::analysis::{Analysis, Caution, CellAnalysis, Flag, Response, WriteOut};
use iolab_analysis::claim::{Claim, RoundsState, dependent_cells, drifting_cells, groups};
use iolab_record::{RunStatus, ServedBy};
use iolab_workload::quantity::{format_bytes, format_percent};

/// A limit of the numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caveat {
    /// In words, without a full stop.
    pub text: String,
    /// Cells that it is about; 0 where it is about all of them.
    pub cells: usize,
}

/// All caveats of these runs, the worst first.
pub(super) fn all(analyses: &[&Analysis], claims: &[Claim]) -> Vec<Caveat> {
    let mut caveats = unfinished(analyses);
    caveats.extend(undefined(analyses));
    caveats.extend(ordered(analyses));
    caveats.extend(flagged(analyses));
    let after_writes = analyses.iter().map(|a| a.reads_after_writes()).sum();
    caveats.extend(about(
        after_writes,
        "the drive may still write for other cells during reads",
    ));
    caveats.extend(written_out(analyses));
    let is_unjoined = |cell: &CellAnalysis| {
        let stages = cell.stages.as_ref();
        stages.is_some_and(|stages| stages.known < stages.traced)
    };
    caveats.extend(about(
        count(analyses, is_unjoined),
        "traced trials whose requests were not split by layer",
    ));
    caveats.extend(of_rounds(analyses));
    caveats.extend(unsteady(analyses));
    // The levels of an inquiry are no answer: what it compares has intervals of its own.
    if analyses.iter().all(|run| run.inquiry.is_some()) {
        return caveats;
    }
    caveats.extend(imprecise(analyses));
    caveats.extend(not_measured(analyses));
    caveats.extend(undecided(claims));
    caveats
}

/// A caveat about this number of cells; `None` for 0.
fn about(cells: usize, text: impl Into<String>) -> Option<Caveat> {
    (cells > 0).then(|| Caveat {
        text: text.into(),
        cells,
    })
}

/// One about a run as a whole.
fn of_run(text: String) -> Caveat {
    Caveat { text, cells: 0 }
}

fn unfinished(analyses: &[&Analysis]) -> Vec<Caveat> {
    let unfinished = analyses.iter().filter(|a| a.status != RunStatus::Done);
    unfinished
        .map(|a| match is_by_user(a) {
            true => of_run(format!("{} was ended by the user", a.experiment)),
            false => of_run(format!("{} did not finish", a.experiment)),
        })
        .collect()
}

/// Runs of which it is not known what they were made for.
fn undefined(analyses: &[&Analysis]) -> Vec<Caveat> {
    let without = analyses.iter().filter(|a| !a.has_definition);
    let text = |a: &&Analysis| {
        of_run(format!(
            "the definition in the run file of {} cannot be read",
            a.experiment
        ))
    };
    without.map(text).collect()
}

/// Cells that find what others have left.
fn ordered(analyses: &[&Analysis]) -> Vec<Caveat> {
    let ordered = analyses.iter().filter(|a| a.depends_on_order);
    let text = |a: &&Analysis| {
        of_run(format!(
            "each cell of {} finds what others left before, so their order may decide",
            a.experiment
        ))
    };
    ordered.map(text).collect()
}

fn flagged(analyses: &[&Analysis]) -> Vec<Caveat> {
    let flags = Flag::ALL.iter();
    let mut cautions: Vec<(Caution, &Flag)> = flags
        .filter_map(|flag| Some((flag.caution()?, flag)))
        .collect();
    cautions.sort_by_key(|(caution, _)| caution.rank);
    let raised = cautions.into_iter().filter_map(|(_, flag)| {
        about(
            count(analyses, |cell| cell.flags.contains(flag)),
            in_words(*flag),
        )
    });
    raised.collect()
}

/// Runs of which writing out what trials left in caches took much, together.
fn written_out(analyses: &[&Analysis]) -> Option<Caveat> {
    let all = analyses.iter().filter_map(|analysis| analysis.write_out);
    let together = all.reduce(|a, b| WriteOut {
        took_ns: a.took_ns.saturating_add(b.took_ns),
        trials_ns: a.trials_ns.saturating_add(b.trials_ns),
        cut_short: a.cut_short || b.cut_short,
        is_unpaid: a.is_unpaid && b.is_unpaid,
    });
    together.map(|write_out| of_run(in_words_of(write_out)))
}

/// Rounds that are not shown to have come to a steady state, and tests of a standard that are smaller than it.
fn of_rounds(analyses: &[&Analysis]) -> Vec<Caveat> {
    let of_one = |analysis: &&Analysis| {
        let name = &analysis.experiment;
        let unsteady = analysis.steady.as_ref();
        let unsteady =
            unsteady.filter(|steady| RoundsState::of(analysis, steady) != RoundsState::Steady);
        let parts = [
            unsteady.map(|steady| state_in_short(analysis, steady)),
            analysis.standard.as_ref().and_then(in_words_of_standard),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| of_run(format!("{name} is {}", parts.join(", and "))))
    };
    analyses.iter().filter_map(of_one).collect()
}

/// Levels, groups and trends among the trials.
fn unsteady(analyses: &[&Analysis]) -> Vec<Caveat> {
    let shifted = analyses.iter().filter(|a| !a.timeline.over_run.is_empty());
    let mut caveats: Vec<Caveat> = shifted
        .map(|a| {
            of_run(format!(
                "throughput changed its level during {}",
                a.experiment
            ))
        })
        .collect();
    let bimodal = analyses.iter().map(|analysis| {
        let cells = analysis.cells.iter();
        cells
            .filter(|cell| groups(analysis, cell).is_some())
            .count()
    });
    caveats.extend(about(bimodal.sum(), "two groups of trials"));
    let trends = analyses
        .iter()
        .map(|a| drifting_cells(a).len() + dependent_cells(a).len());
    caveats.extend(about(
        trends.sum(),
        "trials that drift or depend on each other, so that intervals are too narrow",
    ));
    caveats
}

/// Intervals and quantiles that rest on too little.
fn imprecise(analyses: &[&Analysis]) -> Vec<Caveat> {
    let seeking = || analyses.iter().filter(|a| a.seeks_precision);
    let wide = seeking().map(|a| {
        let wide = |c: &&CellAnalysis| c.precision.is_some_and(|p| p > a.precision_goal);
        a.cells.iter().filter(wide).count()
    });
    let goals = seeking().map(|a| a.precision_goal);
    let goal = format_percent(goals.fold(0.0, f64::max));
    let short = count(analyses, |cell| {
        cell.latency.is_some() && cell.tail.is_none()
    });
    let wide = about(
        wide.sum(),
        format!("intervals wider than the goal of {goal}"),
    );
    let short = about(
        short,
        "too few requests for a p99, which may be far from the true one",
    );
    wide.into_iter().chain(short).collect()
}

fn count(analyses: &[&Analysis], is: impl Fn(&CellAnalysis) -> bool) -> usize {
    let cells = analyses.iter().flat_map(|a| &a.cells);
    cells.filter(|cell| is(cell)).count()
}

/// Comparisons of targets that show nothing, where there are several; one alone is a headline.
fn undecided(claims: &[Claim]) -> Option<Caveat> {
    let all = claims.iter().filter(|claim| claim.is_undecided());
    let effects = all.clone().filter_map(|claim| match claim {
        Claim::Comparison(comparison) => Some(comparison.effects.len()),
        _ => None,
    });
    let effects: usize = effects.sum();
    (all.count() > 1).then(|| {
        of_run(format!(
            "{effects} comparisons of targets are undecided: too few trials, or disturbed ones"
        ))
    })
}

/// What none of the runs asked: load, cache, larger regions.
fn not_measured(analyses: &[&Analysis]) -> Option<Caveat> {
    let requests = |a: &&&Analysis| a.response != Response::Elapsed;
    let cells = || {
        let own = analyses.iter().filter(requests).flat_map(|a| &a.cells);
        let asked = own.filter(|cell| !cell.cell.spec.unknown.contains("region"));
        asked.filter(|cell| cell.n > 0 && !cell.cell.spec.runs_program())
    };
    let region = cells().map(|cell| cell.cell.trial().region).max()?;
    let mut parts = Vec::new();
    if !analyses.iter().any(|analysis| is_whole(analysis, region)) {
        parts.push(format!("regions above {}", format_bytes(region as f64)));
    }
    // What the page cache served all the same was measured, and is told of as such.
    let is_direct = |cell: &CellAnalysis| {
        let served = cell.served.as_ref();
        cell.cell.spec.shared(|trial| trial.cache) == Some(CacheState::Direct)
            && !served.is_some_and(|served| {
                served.any(ServedBy::PageCache) || served.any(ServedBy::NotStorage)
            })
    };
    if cells().all(is_direct) {
        parts.push("the page cache".to_owned());
    }
    if cells().all(|cell| !cell.cell.trial().has_rate()) {
        parts.push("response time at a given load (--rate)".to_owned());
    }
    (!parts.is_empty()).then(|| of_run(format!("not measured: {}", parts.join(", "))))
}

/// Whether a region of this many bytes covers a target up to less than one request: regions are truncated to whole requests.
fn is_whole(analysis: &Analysis, region: u64) -> bool {
    let cells = analysis.cells.iter();
    let longest = cells.map(|cell| cell.cell.trial().bs).max().unwrap_or(0);
    let mut sizes = analysis.targets.iter().filter_map(|target| target.bytes);
    sizes.any(|bytes| bytes > 0 && bytes.saturating_sub(region) < longest)
}
