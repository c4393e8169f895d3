//! The cells of one or several runs as rows, and the role of each factor in a figure.

use iolab_analysis::analysis::{CellAnalysis, Response};
use iolab_analysis::trial_values::distinct;
use iolab_record::{Sample, ServedBy, TargetKind};
use iolab_stats::{Summary, summary};
use iolab_workload::{Error, Result};

use super::model::{FigureModel, Mark, Panel, Row};
use super::options::Options;
use super::{FigureRun, RUN, labels};

/// Most panels of one figure.
const PANELS_MAX: usize = 30;
/// Most series of one figure: colour, dash and marker cannot distinguish more.
const SERIES_MAX: usize = 28;

/// One cell with the values of its measured trials.
#[derive(Debug, Clone)]
pub(super) struct CellValues<'a> {
    /// Index of its run.
    pub(super) run: usize,
    pub(super) cell: &'a CellAnalysis,
    /// Its level of each of [`Data::factors`]; empty if its run has no such factor.
    pub(super) levels: Vec<&'a str>,
    /// Values in the order of time.
    pub(super) values: Vec<f64>,
    pub(super) summary: Summary,
    /// Whether the median of a service level is a lower bound.
    pub(super) is_bound: bool,
}

/// All cells with a value, and the role of each factor in the figure.
#[derive(Debug)]
pub(super) struct Data<'a> {
    pub(super) quantity: Response,
    /// The factors that vary, including the run if there are several.
    pub(super) factors: Vec<&'a str>,
    pub(super) rows: Vec<CellValues<'a>>,
    /// The factor along the x axis, as an index; `None` when nothing varies.
    pub(super) x: Option<usize>,
    /// The factor with a line for each level.
    pub(super) series: Option<usize>,
    /// The factors with a panel for each combination of levels.
    facets: Vec<usize>,
}

/// The measured trials of a run: successful ones other than warm-ups, as in the analysis.
pub(super) fn measured<'a>(run: &FigureRun<'a>) -> impl Iterator<Item = &'a Sample> {
    let samples = run.record().asked_samples();
    samples.filter(|sample| sample.is_measured())
}

/// The values of a quantity in the measured trials of a cell, in the order of time; or values of the service level that the run shows.
fn values(run: &FigureRun<'_>, cell: &CellAnalysis, quantity: Response) -> Vec<f64> {
    let (id, timed) = (cell.cell.id, run.analysis().timed);
    match run.level {
        Some(level) => level.by_cell.get(&id).cloned().unwrap_or_default(),
        // Some trials alone would give the quantiles of the fast ones.
        None if cell.of[quantity].is_none() => Vec::new(),
        None => {
            let samples = measured(run).filter(|sample| sample.cell == id);
            samples
                .filter_map(|sample| sample.value(quantity, timed))
                .collect()
        }
    }
}

impl<'a> Data<'a> {
    /// The cells of all runs; no factor has a role yet.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage) when no cell has a value.
    pub(super) fn new(runs: &'a [FigureRun<'a>], quantity: Response) -> Result<Self> {
        let mut rows = Vec::new();
        for (place, run) in runs.iter().enumerate() {
            rows.extend(run.analysis().cells.iter().filter_map(|cell| {
                let values = values(run, cell, quantity);
                let bounds = run.level.map(|level| &level.bounds);
                Some(CellValues {
                    run: place,
                    cell,
                    levels: Vec::new(),
                    summary: summary(&values)?,
                    values,
                    is_bound: bounds.is_some_and(|own| own.contains(&cell.cell.id)),
                })
            }));
        }
        if rows.is_empty() {
            return Err(no_values(runs, quantity));
        }
        let level = |row: &CellValues<'a>, factor: &str| match factor {
            RUN => runs[row.run].name,
            _ => {
                let own = runs[row.run].analysis().factors.iter();
                let mut own = own.zip(&row.cell.cell.levels);
                let found = own.find(|(name, _)| *name == factor);
                found.map_or("", |(_, level)| level)
            }
        };
        let factors = runs.iter().flat_map(|run| &run.analysis().factors);
        let mut factors = distinct(factors.map(String::as_str).chain([RUN]));
        factors.retain(|factor| distinct(rows.iter().map(|row| level(row, factor))).len() > 1);
        for row in &mut rows {
            row.levels = factors.iter().map(|factor| level(row, factor)).collect();
        }
        Ok(Self {
            quantity,
            factors,
            rows,
            x: None,
            series: None,
            facets: Vec::new(),
        })
    }

    /// The levels of a factor, in order.
    pub(super) fn levels(&self, factor: usize) -> Vec<&'a str> {
        distinct(self.rows.iter().map(|row| row.levels[factor]))
    }

    fn find(&self, name: &str) -> Result<usize> {
        let found = self.factors.iter().position(|factor| *factor == name);
        found.ok_or_else(|| {
            Error::usage(format!("there is no factor {name:?} that varies")).hint(
                match self.factors.as_slice() {
                    [] => "nothing varies in the data; try --kind order".to_owned(),
                    some => format!("there is: {}", some.join(", ")),
                },
            )
        })
    }

    /// Assigns the factors as requested. Otherwise x is the numeric factor with the most levels, the series are
    /// the remaining factor with the most levels, and the rest are panels. Tools, targets and runs are series.
    /// Workloads are panels if another factor can be the series. No factor is along x unless `with_x`.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage) when a requested factor does not exist, or has too many
    /// levels.
    pub(super) fn with_roles(mut self, options: &Options, with_x: bool) -> Result<Self> {
        let asked = |name: &Option<String>| name.as_deref().map(|n| self.find(n)).transpose();
        let x = if with_x { asked(&options.x)? } else { None };
        let facet = asked(&options.facet)?;
        let no_series = options.series.as_deref() == Some("none");
        let series = match no_series {
            true => None,
            false => asked(&options.series)?,
        };
        let mut left: Vec<usize> = (0..self.factors.len())
            .filter(|i| ![x, series, facet].contains(&Some(*i)))
            .collect();
        self.x = x.or_else(|| {
            let free = |i: &usize| left.contains(i);
            let best = iolab_analysis::curve::axis_of_workloads(&self.factors)
                .filter(free)
                .or_else(|| left.iter().copied().max_by_key(|i| x_worth(&self, *i)));
            best.filter(|_| with_x)
        });
        left.retain(|i| Some(*i) != self.x);
        self.series = series.or_else(|| {
            let fits = |i: &usize| !no_series && self.levels(*i).len() <= SERIES_MAX;
            let candidates = left.iter().copied().filter(fits);
            // The first of equals, where max_by_key alone gives the last.
            candidates.rev().max_by_key(|i| series_worth(&self, *i))
        });
        left.retain(|i| Some(*i) != self.series);
        self.facets = facet.into_iter().chain(left).collect();
        let lines = self.series.map_or(1, |i| self.levels(i).len());
        if lines > SERIES_MAX {
            return Err(
                Error::usage(format!("{lines} lines are too many to distinguish"))
                    .hint("choose another factor with --series"),
            );
        }
        let panels = distinct(self.rows.iter().map(|row| self.panel_of(row))).len();
        if panels > PANELS_MAX {
            return Err(
                Error::usage(format!("{panels} panels are too many for a figure"))
                    .hint("choose the factors with --x, --series and --facet"),
            );
        }
        Ok(self)
    }

    /// The levels that decide the panel of a cell.
    fn panel_of(&self, row: &CellValues<'a>) -> Vec<&'a str> {
        self.facets.iter().map(|i| row.levels[*i]).collect()
    }

    /// The level of a cell along x; empty if nothing varies.
    pub(super) fn x_of(&self, row: &CellValues<'a>) -> &'a str {
        self.x.map_or("", |i| row.levels[i])
    }

    /// Place and title of the panel of a cell.
    pub(super) fn panel(&self, of: &CellValues<'a>) -> (usize, String) {
        let own = self.panel_of(of);
        let mut all = distinct(self.rows.iter().map(|row| self.panel_of(row))).into_iter();
        let facets = self.facets.iter().map(|factor| self.factors[*factor]);
        (
            all.position(|panel| panel == own).unwrap_or(0),
            labels::levels(facets.zip(own)),
        )
    }

    /// Marks of a cell, in the panel and the series of its levels.
    pub(super) fn row(&self, of: &CellValues<'a>, marks: Vec<Mark>) -> Row {
        let series = self.series.map(|factor| {
            let mut levels = self.levels(factor).into_iter();
            let (name, level) = (self.factors[factor], of.levels[factor]);
            let place = levels.position(|own| own == level);
            (place.unwrap_or(0), labels::level(name, level))
        });
        Row::new(self.panel(of), series.unwrap_or_default(), marks)
    }

    /// The figure of these panels, with the words that follow from the data.
    pub(super) fn figure(&self, panels: Vec<Panel>) -> FigureModel {
        FigureModel {
            // Most levels explain themselves.
            legend: match self.series.map(|factor| self.factors[factor]) {
                Some(
                    factor @ ("bs" | "region" | "buffer_init" | "cache" | "content" | "pattern"),
                ) => labels::noun(factor),
                _ => String::new(),
            },
            unit: self.quantity.unit().to_owned(),
            hollow: hollow(self.rows.iter().map(|row| row.cell)),
            ..FigureModel::of(panels)
        }
    }
}

fn no_values(runs: &[FigureRun<'_>], quantity: Response) -> Error {
    if runs.iter().all(|run| measured(run).next().is_none()) {
        return nothing_measured(runs);
    }
    let what = labels::of_response(quantity);
    Error::usage(format!("no trial has a value of the {what}"))
        .hint("choose another quantity with --y: throughput, elapsed")
}

/// Error for runs without a measured trial. Runs on a model cannot be finished.
pub(super) fn nothing_measured(runs: &[FigureRun<'_>]) -> Error {
    let kind = |run: &FigureRun<'_>| run.run.record().run.target_kind;
    let on_models = runs.iter().all(|run| kind(run) == TargetKind::Model);
    Error::usage("there is no measured trial to draw").hint(match on_models {
        true => "measure again: the state of a model is not kept",
        false => "finish the run with 'iolab resume FILE', or measure again",
    })
}

/// Suitability of a factor as series: tools, targets and runs should share axes, workloads not; otherwise factors with more levels are
/// preferred.
fn series_worth(data: &Data<'_>, factor: usize) -> (bool, bool, usize) {
    let name = data.factors[factor];
    (
        matches!(name, "tool" | "target" | RUN),
        name != "workload",
        data.levels(factor).len(),
    )
}

/// Suitability of a factor as x axis: numbers before names, more levels before fewer, the first of equals.
fn x_worth(data: &Data<'_>, factor: usize) -> (bool, usize, std::cmp::Reverse<usize>) {
    let (name, levels) = (data.factors[factor], data.levels(factor));
    let has_place = |level: &&str| labels::position(name, level).is_some();
    let numeric = labels::number_kind(name).is_some() && levels.iter().all(has_place);
    (
        // Two numbers do not make a curve, and are preferred to names only if there are as few of these.
        numeric && levels.len() > 2,
        levels.len(),
        std::cmp::Reverse(factor),
    )
}

/// Origin of the bytes of a cell, in the words of run files.
pub(super) fn verdict(cell: &CellAnalysis) -> String {
    match &cell.served {
        Some(served) => match served.unanimous() {
            Some(only) => only.to_string(),
            None => labels::served(served),
        },
        None => "unknown".to_owned(),
    }
}

/// The meaning of a hollow mark; empty where all cells were served by the device.
pub(super) fn hollow<'a>(cells: impl Iterator<Item = &'a CellAnalysis>) -> String {
    let cells: Vec<&CellAnalysis> = cells.filter(|cell| !cell.is_target()).collect();
    // Some of the bytes, or some of the trials of a cell, may have been the device's.
    let is_part = cells.iter().any(|cell| {
        let served = cell.served.as_ref();
        served.is_some_and(|all| all.unanimous().is_none_or(|only| only == ServedBy::Mixed))
    });
    let verdicts = distinct(cells.into_iter().map(verdict));
    match verdicts.as_slice() {
        [] => String::new(),
        [only] if !is_part => format!("not served by the device: {only}"),
        _ => "not, or not only, served by the device".to_owned(),
    }
}
