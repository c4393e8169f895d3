//! The cells of one or several runs as rows, and the role of each factor in a figure.

use std::collections::{BTreeMap, BTreeSet};

use iolab_analysis::analysis::{CellAnalysis, Response};
use iolab_analysis::trial_values::distinct;
use iolab_record::{Sample, TargetKind};
use iolab_stats::{Summary, summary};
use iolab_workload::{Error, Result};

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

/// All cells with a value.
#[derive(Debug, Clone)]
pub(super) struct Data<'a> {
    pub(super) quantity: Response,
    /// The factors that vary, including the run if there are several.
    pub(super) factors: Vec<&'a str>,
    pub(super) rows: Vec<CellValues<'a>>,
}

/// The measured trials of a run: successful ones other than warm-ups, as in the analysis.
pub(super) fn measured<'a>(run: &FigureRun<'a>) -> impl Iterator<Item = &'a Sample> {
    let samples = run.record().asked_samples();
    samples.filter(|sample| sample.is_measured())
}

/// The values of a quantity in the measured trials of each cell, in the order of time. Values of a service level
/// if the run shows one.
pub(super) struct Values(BTreeMap<i64, Vec<f64>>);

impl Values {
    /// The values of a run.
    pub(super) fn of(run: &FigureRun<'_>, quantity: Response) -> Self {
        if let Some(level) = run.level {
            return Self(level.by_cell.clone());
        }
        let mut all: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
        let timed = run.analysis().timed;
        let cells = run.analysis().cells.iter();
        let with = cells.filter(|cell| cell.of[quantity].is_some());
        // Some trials alone would give the quantiles of the fast ones.
        let with: BTreeSet<i64> = with.map(|cell| cell.cell.id).collect();
        for sample in measured(run).filter(|sample| with.contains(&sample.cell)) {
            if let Some(value) = sample.value(quantity, timed) {
                all.entry(sample.cell).or_default().push(value);
            }
        }
        Self(all)
    }

    /// The values of a cell; empty for none.
    pub(super) fn of_cell(&self, cell: i64) -> &[f64] {
        self.0.get(&cell).map_or(&[], Vec::as_slice)
    }
}

impl<'a> Data<'a> {
    /// The cells of all runs.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage) when no cell has a value.
    pub(super) fn new(runs: &'a [FigureRun<'a>], quantity: Response) -> Result<Self> {
        let factors = runs.iter().flat_map(|run| &run.analysis().factors);
        let mut factors = distinct(factors.map(String::as_str));
        if runs.len() > 1 {
            factors.push(RUN);
        }
        let rows: Vec<CellValues<'a>> = runs
            .iter()
            .enumerate()
            .flat_map(|(place, run)| rows(place, run, &factors, quantity))
            .collect();
        if rows.is_empty() {
            return Err(no_values(runs, quantity));
        }
        let mut data = Self {
            quantity,
            factors,
            rows,
        };
        data.drop_constant();
        Ok(data)
    }

    /// The data with the values of another quantity, without cells that have none. Factors and their indices
    /// stay the same.
    pub(super) fn of_quantity(&self, runs: &[FigureRun<'_>], quantity: Response) -> Self {
        let all: Vec<Values> = runs.iter().map(|run| Values::of(run, quantity)).collect();
        let with = |row: &CellValues<'a>| {
            let values = all[row.run].of_cell(row.cell.cell.id);
            Some(CellValues {
                summary: summary(values)?,
                values: values.to_vec(),
                ..row.clone()
            })
        };
        Self {
            quantity,
            factors: self.factors.clone(),
            rows: self.rows.iter().filter_map(with).collect(),
        }
    }

    /// Removes the factors that have a single level.
    fn drop_constant(&mut self) {
        let factors = 0..self.factors.len();
        let varies: Vec<bool> = factors.map(|i| self.levels(i).len() > 1).collect();
        let keep = |all: &mut Vec<&'a str>| {
            let mut varies = varies.iter();
            all.retain(|_| varies.next() == Some(&true));
        };
        keep(&mut self.factors);
        self.rows.iter_mut().for_each(|row| keep(&mut row.levels));
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
}

fn rows<'a>(
    place: usize,
    run: &'a FigureRun<'a>,
    factors: &[&str],
    quantity: Response,
) -> Vec<CellValues<'a>> {
    let own = &run.analysis().factors;
    let level = |cell: &'a CellAnalysis, factor: &str| match factor {
        RUN => run.name,
        _ => {
            let found = own.iter().position(|name| name == factor);
            found.map_or("", |i| cell.cell.levels.get(i).map_or("", String::as_str))
        }
    };
    let all = Values::of(run, quantity);
    let row = |cell: &'a CellAnalysis| {
        let id = cell.cell.id;
        let values = all.of_cell(id);
        Some(CellValues {
            run: place,
            cell,
            levels: factors.iter().map(|factor| level(cell, factor)).collect(),
            summary: summary(values)?,
            values: values.to_vec(),
            is_bound: run.level.is_some_and(|level| level.bounds.contains(&id)),
        })
    };
    run.analysis().cells.iter().filter_map(row).collect()
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

/// The role of each factor, as an index in [`Data::factors`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parts {
    /// The x axis; `None` when nothing varies.
    pub(super) x: Option<usize>,
    /// The factor with a line for each level.
    pub(super) series: Option<usize>,
    /// The factors with a panel for each combination of levels.
    pub(super) facets: Vec<usize>,
}

impl Parts {
    /// Assigns the factors as requested. Otherwise x is the numeric factor with the most levels, the series are
    /// the remaining factor with the most levels, and the rest are panels. Tools, targets and runs are series.
    /// Workloads are panels if another factor can be the series. No factor is along x unless `with_x`.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage) when a requested factor does not exist, or has too many
    /// levels.
    pub(super) fn of(data: &Data<'_>, options: &Options, with_x: bool) -> Result<Self> {
        let asked = |name: &Option<String>| name.as_deref().map(|n| data.find(n)).transpose();
        let x = if with_x { asked(&options.x)? } else { None };
        let facet = asked(&options.facet)?;
        let no_series = options.series.as_deref() == Some("none");
        let series = match no_series {
            true => None,
            false => asked(&options.series)?,
        };
        let mut left: Vec<usize> = (0..data.factors.len())
            .filter(|i| ![x, series, facet].contains(&Some(*i)))
            .collect();
        let x = x.or_else(|| {
            let free = |i: &usize| left.contains(i);
            let best = iolab_analysis::curve::axis_of_workloads(&data.factors)
                .filter(free)
                .or_else(|| left.iter().copied().max_by_key(|i| x_worth(data, *i)));
            let best = best.filter(|_| with_x)?;
            left.retain(|i| *i != best);
            Some(best)
        });
        let series = series.or_else(|| {
            let fits = |i: &usize| !no_series && data.levels(*i).len() <= SERIES_MAX;
            let candidates = left.iter().copied().filter(fits);
            // The first of equals, where max_by_key alone gives the last.
            let best = candidates.rev().max_by_key(|i| series_worth(data, *i))?;
            left.retain(|i| *i != best);
            Some(best)
        });
        let parts = Self {
            x,
            series,
            facets: facet.into_iter().chain(left).collect(),
        };
        parts.check(data)?;
        Ok(parts)
    }

    fn check(&self, data: &Data<'_>) -> Result<()> {
        let lines = self.series.map_or(1, |i| data.levels(i).len());
        if lines > SERIES_MAX {
            return Err(
                Error::usage(format!("{lines} lines are too many to distinguish"))
                    .hint("choose another factor with --series"),
            );
        }
        let panels = self.panels(data).len();
        if panels > PANELS_MAX {
            return Err(
                Error::usage(format!("{panels} panels are too many for a figure"))
                    .hint("choose the factors with --x, --series and --facet"),
            );
        }
        Ok(())
    }

    /// The combinations of the facets' levels that occur, in their order.
    pub(super) fn panels<'a>(&self, data: &Data<'a>) -> Vec<Vec<&'a str>> {
        distinct(data.rows.iter().map(|row| self.panel(row)))
    }

    /// The panel that a row belongs to.
    pub(super) fn panel<'a>(&self, row: &CellValues<'a>) -> Vec<&'a str> {
        self.facets.iter().map(|i| row.levels[*i]).collect()
    }
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
