//! One file per kind of figure: makes panels from data.

pub(super) mod axis;
pub(super) mod compare;
pub(super) mod course;
pub(super) mod latency;
pub(super) mod order;
pub(super) mod response;
pub(super) mod stages;

use std::borrow::Cow;

use super::data::verdict;
use super::model::{Mark, ReferenceLine, Row, marks_of};
use super::options::Options;
use super::{FigureKind, FigureRun, labels};
use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::analysis::{CellAnalysis, Response, SteadyAnalysis};
use iolab_analysis::compare::{Comparison, Criteria, HypothesisTest, RunSide, SideName};
use iolab_analysis::trial_values::distinct;
use iolab_workload::escape_control::escape_control;
use iolab_workload::response::Metric;
use iolab_workload::units::counted;
use iolab_workload::{Error, Result};

/// The two sides to compare: two runs, or two levels of a factor of one run.
pub(super) fn compared(runs: &[FigureRun<'_>], options: &Options) -> Result<Comparison> {
    let terms = Criteria {
        margin: options.margin,
        tests: vec![HypothesisTest::Welch, HypothesisTest::Student],
        ..Criteria::default()
    };
    let by = options.by.as_deref().or_else(|| programs(runs));
    let analysed: Vec<Cow<'_, AnalysedRun>> =
        runs.iter().map(|run| of_quantity(run, options)).collect();
    let source = |run| RunSide { run, held: None };
    match (runs, by) {
        ([_], Some(by)) => {
            let mut compared = Comparison::of_levels(&analysed[0], by, "", terms)?;
            for SideName { name, .. } in [&mut compared.base, &mut compared.new] {
                let level = name
                    .split_once('=')
                    .map(|(factor, level)| labels::level(factor, level));
                *name = level.unwrap_or_default();
            }
            Ok(compared)
        }
        ([base, new], None) => {
            let names = [base.name, new.name].map(|name| escape_control(name).into_owned().into());
            Comparison::of_runs(names, source(&analysed[0]), source(&analysed[1]), terms)
        }
        _ => Err(Error::usage("two sides are compared").hint(
            "name two run files, or one and two levels of a factor: --by FACTOR=LEVEL,LEVEL",
        )),
    }
}

/// A run as it answers for the quantity that is asked for.
fn of_quantity<'a>(run: &FigureRun<'a>, options: &Options) -> Cow<'a, AnalysedRun> {
    let Some(response) = options.y.filter(|y| *y != run.analysis().response) else {
        return Cow::Borrowed(run.run);
    };
    let metric = Metric {
        group: run.analysis().response_group.clone(),
        response,
    };
    Cow::Owned(AnalysedRun::by(run.record().clone(), Some(&metric)))
}

/// The factor of the only run whose two levels are programs.
pub(super) fn programs<'a>(runs: &'a [FigureRun<'a>]) -> Option<&'a str> {
    let [run] = runs else {
        return None;
    };
    let factors = run.analysis().factors.iter().enumerate();
    let mut programs = factors.filter(|(_, name)| ["linkage", "command"].contains(&name.as_str()));
    let (place, factor) = programs.next()?;
    let levels = run.analysis().levels(place).len();
    (run.analysis().response == Response::Elapsed && levels == 2).then_some(factor)
}

/// The quantity shown: the requested one, otherwise the response of the first run.
pub(super) fn quantity(runs: &[FigureRun<'_>], options: &Options) -> Response {
    let response = || runs.first().map(|run| run.analysis().response);
    options.y.or_else(response).unwrap_or(Response::Throughput)
}

/// The highest x of all marks; at least 0.
fn most_x(rows: &[Row]) -> f64 {
    marks_of(rows).map(|mark| mark.x).fold(0.0, f64::max)
}

/// Place and title of a panel for each run, which has a name where there are several.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage) for more runs than have room.
fn panels_of_runs(runs: &[FigureRun<'_>]) -> Result<Vec<(usize, String)>> {
    const RUNS_MAX: usize = 12;
    if runs.len() > RUNS_MAX {
        return Err(
            Error::usage(format!("{} runs are too many for a figure", runs.len()))
                .hint("name fewer run files"),
        );
    }
    let several = runs.len() > 1;
    let name = |run: &FigureRun<'_>| escape_control(run.name).into_owned();
    let named = runs
        .iter()
        .map(|run| if several { name(run) } else { String::new() });
    Ok(named.enumerate().collect())
}

/// A mark, whose words end with the origin of the bytes of its cell if it has one.
fn mark<'a>(
    cell: impl Into<Option<&'a CellAnalysis>>,
    n: Option<usize>,
    (x, y): (f64, f64),
    written_x: impl Into<String>,
    text: &str,
) -> Mark {
    let cell = cell.into();
    let verdict = cell.map(verdict).unwrap_or_default();
    let origin = cell.map_or_else(String::new, |_| format!("; {verdict}"));
    Mark {
        x,
        y,
        hollow: cell.is_some_and(|cell| !cell.is_target()),
        cell: cell.map(|cell| cell.cell.id),
        n,
        written_x: written_x.into(),
        text: format!("{text}{origin}"),
        verdict,
        ..Mark::default()
    }
}

/// The name of a cell with these levels: `64 KiB, 4 threads`.
fn cell_name(levels: &[impl AsRef<str>]) -> String {
    let levels = levels.iter().map(AsRef::as_ref);
    let levels: Vec<&str> = levels.filter(|level| !level.is_empty()).collect();
    match levels.is_empty() {
        true => "all trials".to_owned(),
        false => levels.join(", "),
    }
}

/// The subject of a figure: `read-size: throughput`.
fn subject(runs: &[FigureRun<'_>], quantity: Response) -> String {
    let first = runs.first().map(FigureRun::analysis);
    let group = first.and_then(|analysis| analysis.response_group.as_deref());
    let group = group.map_or_else(String::new, |group| format!(" of {group}"));
    let quantity = measured(runs, quantity);
    format!("{}: {quantity}{group}", experiments(runs))
}

/// The names of the experiments of the runs.
fn experiments(runs: &[FigureRun<'_>]) -> String {
    let names = runs.iter().map(|run| run.analysis().experiment.as_str());
    distinct(names).join(", ")
}

/// Name of the quantity in the first run: of a service level, or with the operation whose latency a mix shows.
fn measured(runs: &[FigureRun<'_>], quantity: Response) -> String {
    let timed = runs.first().map(|run| run.analysis().timed);
    let timed = timed.filter(|_| quantity.is_latency()).unwrap_or_default();
    let level = runs.first().and_then(|run| run.level);
    level.map_or_else(
        || timed.subject(&labels::of_response(quantity)),
        |level| labels::of_level(&level.level),
    )
}

/// The models that computed the runs; `None` where only devices were measured.
pub(super) fn computed(runs: &[FigureRun<'_>]) -> Option<String> {
    let is_model = |run: &&FigureRun<'_>| run.analysis().model.is_some();
    let computed: Vec<&FigureRun<'_>> = runs.iter().filter(is_model).collect();
    let model = |run: &FigureRun<'_>| run.analysis().target.clone();
    let first = model(computed.first()?);
    let is_one = computed.len() == runs.len() && computed.iter().all(|run| model(run) == first);
    let text = match is_one {
        true => format!("Computed by {first}"),
        false => {
            let each = computed.iter().map(|run| match model(run) {
                model if model == run.name => format!("{model} is computed"),
                model => format!("{} is computed by {model}", run.name),
            });
            each.collect::<Vec<String>>().join("; ")
        }
    };
    Some(escape_control(&text).into_owned())
}

/// Runs whose rounds did not become steady; `None` if there are none.
pub(super) fn not_steady(runs: &[FigureRun<'_>]) -> Option<String> {
    let failed = |run: &&FigureRun<'_>| {
        let steady = run.analysis().steady.as_ref();
        steady.is_some_and(SteadyAnalysis::is_missed)
    };
    let names: Vec<&str> = runs.iter().filter(failed).map(|run| run.name).collect();
    let text = match (names.len(), runs.len()) {
        (0, _) => return None,
        (_, 1) => "The rounds did NOT become steady".to_owned(),
        _ => format!("NOT steady: the rounds of {}", names.join(", ")),
    };
    Some(escape_control(&text).into_owned())
}

/// Number of measured cells that were disturbed from outside, since their marks look like all others; `None` if
/// there are none.
pub(super) fn disturbed(runs: &[FigureRun<'_>]) -> Option<String> {
    let cells = runs.iter().flat_map(|run| &run.analysis().cells);
    let cells: Vec<&CellAnalysis> = cells.filter(|cell| cell.n > 0).collect();
    let disturbed = cells.iter().filter(|cell| cell.is_disturbed()).count();
    let of = counted(cells.len() as u64, "cell");
    (disturbed > 0).then(|| format!("Disturbed: {disturbed} of {of}"))
}

/// A horizontal reference line.
fn line_across(at: f64, label: &str) -> ReferenceLine {
    ReferenceLine {
        at,
        label: escape_control(label).into_owned(),
        bend: None,
    }
}

/// Most cells that are named.
const NAMED_MAX: usize = 4;

/// The cells that were measured and have no value of what a figure of this kind shows, by name and with the reason; `None` where all
/// have one, and of kinds that show no cells.
pub(crate) fn left_out(
    kind: FigureKind,
    runs: &[FigureRun<'_>],
    options: &Options,
) -> Option<String> {
    let quantity = kind.cells(runs, options)?;
    let mut names = Vec::new();
    let shown = runs.iter().enumerate();
    for (place, run) in shown.filter(|(_, run)| run.level.is_none()) {
        let is_drawn = |cell: &CellAnalysis| match kind.needs_latencies() {
            true => latency::together(runs, place, cell.cell.id).is_some(),
            false => cell.of[quantity].is_some(),
        };
        let cells = run.analysis().cells.iter().filter(|cell| cell.n > 0);
        let without = cells.filter(|cell| !is_drawn(cell));
        names.extend(without.map(|cell| {
            let levels = run.analysis().factors.iter().zip(&cell.cell.levels);
            labels::levels(levels.map(|(factor, level)| (&**factor, &**level)))
        }));
    }
    let why = match quantity.requests_min() {
        0 | 1 if kind.needs_latencies() => format!("no {}", course::requests_of(runs)),
        0 | 1 => format!("no value of the {}", labels::of_response(quantity)),
        least => format!("fewer than {least} {} per trial", course::requests_of(runs)),
    };
    let more = match names.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let is_any = !names.is_empty();
    names.truncate(NAMED_MAX);
    is_any.then(|| format!("Not drawn, {why}: {}{more}", names.join("; ")))
}
