//! The runs of a report: the tables, figures, settings and events of one, and the runs of one experiment over
//! time.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use super::summary::moment;
use super::{Input, StudyReport, clean, id};
use crate::block::Table;
use crate::fact::setting_value;
use crate::layout::Column;
use crate::{run_text, table};
use iolab_analysis::analysis::{Analysis, Response};
use iolab_analysis::runs::FiledRun;
use iolab_analysis::runs::comparable_runs::Comparability;
use iolab_figure::{Figure, FigureKind, FigureRun, Options, default_kind, draw};
use iolab_record::{Cell, Event, RunRecord, exported_settings};
use iolab_workload::settings::{DESCRIBING, Value, cell_label};
use iolab_workload::units::counted;

/// Whether each cell has a row of its own in the first table.
pub(super) fn has_row_of_each_cell(analysis: &Analysis) -> bool {
    let rows = table::columns(analysis).first().map_or(0, Column::rows);
    rows == analysis.cells.len()
}

/// The id of a cell's row in the first table of the run at this place.
pub(super) fn row_id(place: usize, cell: i64) -> String {
    format!("{}-c{cell}", id(place))
}

/// Removes control characters from each line of a text.
pub(super) fn lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(clean).collect();
    lines.join("\n") + "\n"
}

/// The number of trials that findings are based on, and the source of their bytes.
pub(super) fn trials(analysis: &Analysis) -> String {
    let cells = analysis.cells.iter().filter(|c| c.n > 0);
    let (mut n, mut count, mut device, mut asked) = (0, 0, 0, 0);
    for cell in cells {
        n += cell.n;
        count += 1;
        device += usize::from(cell.is_device());
        asked += usize::from(cell.served.is_some());
    }
    let source = match device {
        _ if analysis.model.is_some() => format!(", all computed by {}", clean(&analysis.target)),
        _ if asked == 0 => String::new(),
        all if all == count => ", all served by the device".to_owned(),
        0 => ", none served by the device alone".to_owned(),
        some => format!(", {some} of them served by the device alone"),
    };
    format!(
        "{} in {}{source}",
        counted(n, "trial"),
        counted(count, "cell")
    )
}

/// The tables of the run at this place; each row of the first one has an id.
pub(super) fn tables(place: usize, input: &Input) -> Vec<Table> {
    let analysis = input.run.analysis();
    let mut tables = run_text::tables(analysis, &input.interpretation);
    if let Some(cells) = tables.first_mut()
        && has_row_of_each_cell(analysis)
    {
        let ids = analysis
            .cells
            .iter()
            .map(|cell| row_id(place, cell.cell.id));
        cells.ids = ids.collect();
    }
    tables
}

/// Name and value of the settings that are the same in every cell.
pub(super) fn settings(record: &RunRecord) -> Vec<(String, String)> {
    let Some((first, rest)) = record.cells.split_first() else {
        return Vec::new();
    };
    if !first.spec.has_groups() {
        return settings_of(first, &rest.iter().collect::<Vec<_>>());
    }
    let of_group = |(name, own): (&str, Cell)| {
        let others = rest.iter().flat_map(Cell::groups);
        let others: Vec<Cell> = others
            .filter_map(|(other, cell)| (other == name).then_some(cell))
            .collect();
        let settings = settings_of(&own, &others.iter().collect::<Vec<_>>());
        let named = settings.into_iter();
        named
            .map(|(setting, value)| (format!("{name}.{setting}"), value))
            .collect::<Vec<_>>()
    };
    first.groups().flat_map(of_group).collect()
}

/// The settings of a cell that all of `rest` share.
fn settings_of(first: &Cell, rest: &[&Cell]) -> Vec<(String, String)> {
    let own = exported_settings().into_iter();
    let own = own.map(|setting| (setting, first.value_in_force(setting)));
    let shared = own.filter(|(setting, value)| {
        let is_same = |cell: &&Cell| cell.value_in_force(setting) == *value;
        let is_told = *value != Value::Unknown || DESCRIBING.contains(&setting.name);
        *value != Value::None && is_told && rest.iter().all(is_same)
    });
    shared
        .map(|(setting, value)| (setting.name.to_owned(), setting_value(setting, &value)))
        .collect()
}

/// Warnings, errors and decisions of a run, a line each.
pub(super) fn events(record: &RunRecord) -> Vec<String> {
    let place = |cell: i64| {
        let cell = record.cells.iter().find(|c| c.id == cell)?;
        let label = cell_label(&record.experiment.factors, &cell.levels);
        (!label.is_empty()).then(|| format!("{}: ", clean(&label)))
    };
    let line = |event: &Event| {
        let of = event.cell.and_then(place).unwrap_or_default();
        let (at, kind) = (moment(&event.at_utc), event.kind);
        format!("{at} {kind}: {of}{}", clean(&event.message))
    };
    record.events.iter().map(line).collect()
}

/// Indices of the runs of one experiment among the inputs, in the order of time; the last one is the latest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunSequence(pub(super) Vec<usize>);

impl RunSequence {
    /// Groups runs as `iolab history` does, finished or not, in the order of their first runs: by experiment, settings, machine and
    /// target.
    pub(super) fn all(inputs: &[Input]) -> Vec<Self> {
        let kinship = Comparability { any_host: false };
        let same = |a: &Input, b: &Input| matches!(kinship.difference(&a.run, &b.run), Ok(None));
        let mut sequences: Vec<Self> = Vec::new();
        for (place, input) in inputs.iter().enumerate() {
            let first = |sequence: &&mut RunSequence| {
                let first = sequence.0.first().and_then(|first| inputs.get(*first));
                first.is_some_and(|first| same(first, input))
            };
            match sequences.iter_mut().find(first) {
                Some(sequence) => sequence.0.push(place),
                None => sequences.push(Self(vec![place])),
            }
        }
        for sequence in &mut sequences {
            let started =
                |place: &usize| inputs.get(*place).map(|i| &i.run.record().run.started_utc);
            sequence.0.sort_by(|a, b| started(a).cmp(&started(b)));
        }
        sequences
    }

    /// Figures of the runs, each with its name; none of a single run.
    pub(super) fn figures(
        &self,
        report: &StudyReport<'_>,
        options: impl Fn(&str) -> Options,
    ) -> Vec<(&'static str, Figure)> {
        let inputs = report.inputs;
        let runs: Vec<&Input> = self.0.iter().filter_map(|i| inputs.get(*i)).collect();
        if runs.len() < 2 {
            return Vec::new();
        }
        let filed = runs.iter().map(|input| FiledRun {
            file: input.path.to_str().unwrap_or_default(),
            run: &input.run,
        });
        let filed: Vec<FiledRun<'_>> = filed.collect();
        let drawn = report.sequence_figures.iter().filter_map(|row| {
            let figure = (row.draw)(&filed, &options(row.name));
            Some((row.name, figure.ok()?))
        });
        drawn.collect()
    }

    /// The latest runs of the same experiment on all targets that `all` have, where these begin with this one: they are drawn on the
    /// same axes. Else the own latest run alone.
    pub(super) fn on_all_targets<'a>(&self, all: &[Self], inputs: &'a [Input]) -> Vec<&'a Input> {
        let latest = |sequence: &Self| inputs.get(sequence.latest()?);
        let Some(own) = latest(self) else {
            return Vec::new();
        };
        let alike = || {
            all.iter()
                .filter(|other| latest(other).is_some_and(|other| own.asks_the_same(other)))
        };
        match alike().next() == Some(self) {
            true => alike().filter_map(latest).collect(),
            false => vec![own],
        }
    }

    /// The latest run.
    pub(super) fn latest(&self) -> Option<usize> {
        self.0.last().copied()
    }
}

/// Width and text size on a page, points: 640 pixels, and 12 pixels for labels.
const PAGE: (f64, f64) = (480.0, 9.0);

/// Width and text size on paper, points: about five inches.
const PAPER: (f64, f64) = (370.0, 8.0);

/// Place of a figure, which decides its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Medium {
    Page,
    Paper,
}

impl Medium {
    /// Options for figures, whose ids on a page begin with `id`.
    pub(super) fn options(self, id: &str) -> Options {
        let (width_pt, text_pt) = match self {
            Self::Page => PAGE,
            Self::Paper => PAPER,
        };
        Options {
            id: id.to_owned(),
            width_pt,
            text_pt,
            ..Options::default()
        }
    }
}

/// The figure of a run, or of one experiment on several targets; `None` if the data makes none.
pub(super) fn of_runs(id: &str, inputs: &[&Input], medium: Medium) -> Option<Figure> {
    let runs = runs(inputs);
    let kind = other_kind(&runs);
    let options = Options {
        kind,
        ..medium.options(id)
    };
    draw(&runs, &options).ok()
}

/// The kind of figure of these runs if it is not the default. Ratios of runs with several factors would lack the
/// curves that they compare.
fn other_kind(runs: &[FigureRun<'_>]) -> Option<FigureKind> {
    let mut factors = runs.iter().map(|run| run.run.analysis().factors.len());
    let has_curves = runs.len() > 1 && factors.any(|count| count > 1);
    (has_curves && default_kind(runs) == FigureKind::Ratio).then_some(FigureKind::Response)
}

/// Further figures of runs, each with a name of its own. These are the latency inside the trials (the tail, or
/// the median if intervals have too few requests), rounds until they are steady, and the stages of traced
/// requests. The stages are of `own` alone, since each run has a chapter. `options` gives the options of a
/// figure by its name.
pub(super) fn further(
    inputs: &[&Input],
    own: &Input,
    options: impl Fn(&str) -> Options,
) -> Vec<(&'static str, Figure)> {
    let (own, runs) = (runs(&[own]), runs(inputs));
    let drawn = |runs: &[FigureRun<'_>], name: &'static str, kind, quantity| {
        let options = Options {
            kind: Some(kind),
            y: quantity,
            ..options(name)
        };
        draw(runs, &options).ok().map(|figure| (name, figure))
    };
    let latency = |quantity| drawn(&runs, "latency", FigureKind::Course, Some(quantity));
    let is_course = default_kind(&runs) == FigureKind::Course;
    let inside = [Response::P99, Response::Latency];
    let inside = inside.into_iter().filter(|_| is_course).find_map(latency);
    let stages = drawn(&own, "stages", FigureKind::Stages, None);
    let is_first = default_kind(&runs) == FigureKind::Rounds;
    let rounds = (!is_first).then(|| drawn(&runs, "rounds", FigureKind::Rounds, None));
    let rounds = rounds.flatten();
    inside.into_iter().chain(rounds).chain(stages).collect()
}

/// One run under the name of its experiment, several under the names of their targets. If the target is a
/// factor, which would be named twice, several under the names of their files.
fn runs<'a>(inputs: &[&'a Input]) -> Vec<FigureRun<'a>> {
    let compares_targets = |input: &&Input| {
        let mut factors = input.run.analysis().factors.iter();
        factors.any(|factor| factor == "target")
    };
    let files: BTreeSet<&str> = inputs.iter().filter_map(|input| file(input)).collect();
    let by_file = inputs.iter().any(compares_targets) && files.len() == inputs.len();
    let named = |input: &&'a Input| {
        let analysis = input.run.analysis();
        let name = match inputs.len() {
            1 => &analysis.experiment,
            _ => file(input).filter(|_| by_file).unwrap_or(&analysis.target),
        };
        FigureRun {
            series: &input.series,
            over_time: &input.over_time,
            ..FigureRun::new(name, &input.run)
        }
    };
    inputs.iter().map(named).collect()
}

/// The name of the file of a run, without its extension.
fn file(input: &Input) -> Option<&str> {
    input.path.file_stem().and_then(OsStr::to_str)
}
