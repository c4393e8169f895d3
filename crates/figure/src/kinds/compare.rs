//! Two sides: both with their ratio below, or the p values of their difference.

use iolab_analysis::analysis::Response;
use iolab_analysis::compare::{CellComparison, Comparison, HypothesisTest, Side};
use iolab_analysis::equivalence::{FIRST_TRIALS, MARGINS};
use iolab_analysis::trial_values::distinct;
use iolab_workload::units::{format_p, significant};
use iolab_workload::{Error, Result};

use super::super::labels;
use super::super::model::{
    self, Axis, FigureModel, Look, Mark, Panel, Row, Scale, Ticks, all_marks, reach,
};
use super::super::options::Options;
use super::axis;
use super::line_across;

/// Level of the tests.
const ALPHA: f64 = 0.05;
/// Edge at which lower p values are drawn.
const P_MIN: f64 = 1e-4;
/// Ratio, or end of its interval, in either direction, beyond which the axis is logarithmic.
const RATIO_LINEAR_MAX: f64 = 3.0;
/// Longest label of a ratio that names its sides, characters.
const RATIO_LABEL_MAX: usize = 20;
/// Most lines of ratios.
const LINES_MAX: usize = 12;

/// A cell of a comparison: its place and level along x, and place and name of its line.
struct Cell<'a> {
    x: f64,
    level: &'a str,
    line: (usize, String),
    cell: &'a CellComparison,
}

/// The axis that all figures of a comparison share, and its cells in ascending x: a line for each combination of the levels of the
/// other factors.
fn cells<'a>(comparison: &'a Comparison, options: &Options) -> Result<(Axis, Look, Vec<Cell<'a>>)> {
    let factors = &comparison.factors;
    let level = |cell: &'a CellComparison, i: usize| cell.levels.get(i).map_or("", String::as_str);
    let levels = |i: usize| distinct(comparison.cells.iter().map(|cell| level(cell, i)));
    let worth = |i: &usize| {
        (
            labels::number_kind(&factors[*i]).is_some(),
            levels(*i).len(),
        )
    };
    let x = match &options.x {
        Some(name) => Some(factors.iter().position(|f| f == name).ok_or_else(|| {
            Error::usage(format!("the sides do not share a factor {name:?}"))
                .hint(format!("they share: {}", factors.join(", ")))
        })?),
        None => (0..factors.len()).rev().max_by_key(worth),
    };
    let along = axis::along(x.map(|i| (&*factors[i], levels(i))), options);
    let rest: Vec<usize> = (0..factors.len()).filter(|i| Some(*i) != x).collect();
    let others = |cell| rest.iter().map(|i| level(cell, *i)).collect::<Vec<_>>();
    let lines = distinct(comparison.cells.iter().map(others));
    if lines.len() > LINES_MAX {
        return Err(Error::usage(format!("{} lines are too many", lines.len()))
            .hint("choose the factor with the most levels with --x"));
    }
    let cell = |cell| {
        let (level, own) = (x.map_or("", |i| level(cell, i)), others(cell));
        let names = rest.iter().map(|i| &*factors[*i]);
        let place = lines.iter().position(|line| *line == own);
        Cell {
            x: along.place(level),
            level,
            line: (place.unwrap_or(0), labels::levels(names.zip(own))),
            cell,
        }
    };
    let mut cells: Vec<Cell<'_>> = comparison.cells.iter().map(cell).collect();
    cells.sort_by(|a, b| a.x.total_cmp(&b.x));
    let look = match along.is_names {
        true => Look::Dots(1),
        false => Look::Line,
    };
    Ok((along.axis, look, cells))
}

impl Cell<'_> {
    fn mark(&self, y: f64, n: Option<usize>, what: &str) -> Mark {
        let place = super::cell_name(&self.cell.levels);
        let verdict = self.cell.verdict.to_string();
        Mark {
            x: self.x,
            y,
            n,
            written_x: self.level.to_owned(),
            text: format!("{place}: {what}; {verdict}"),
            verdict,
            ..Mark::default()
        }
    }

    /// The values of a side of that name.
    fn side(&self, side: &Side, place: usize, name: &str, quantity: Response) -> Option<Row> {
        let y = side.centre?;
        let told = format!("{name}, {}", quantity.format(y));
        let mark = Mark {
            interval: side.interval,
            ..self.mark(y, Some(side.values.len()), &told)
        };
        let series = (place, name.to_owned());
        Some(Row::new(Default::default(), series, vec![mark]))
    }

    /// The ratio of both sides.
    fn ratio(&self) -> Option<Mark> {
        let ratio = self.cell.estimate?;
        // Where one side did not hold its rate, the place of the mark is a bound.
        let (y, is) = match ratio.bound {
            Some(bound) => {
                let end = bound.of(ratio.ratio, ratio.interval);
                (end, format!("{} ", labels::bound(bound)))
            }
            None => (ratio.ratio, String::new()),
        };
        let interval = ratio.interval.filter(|_| ratio.bound.is_none());
        let between = interval.map_or_else(String::new, |(low, high)| {
            format!(", {} to {}", significant(low), significant(high))
        });
        let n = self.cell.base.values.len().min(self.cell.new.values.len());
        let told = format!("ratio {is}{}{between}", significant(y));
        Some(Mark {
            interval,
            hollow: ratio.bound.is_some(),
            ..self.mark(y, Some(n), &told)
        })
    }
}

/// Both sides above, where only x distinguishes cells, and their ratio below.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage) when no cell has a ratio.
pub(in super::super) fn ratio(comparison: &Comparison, options: &Options) -> Result<FigureModel> {
    let (x, look, cells) = cells(comparison, options)?;
    let single = cells.iter().all(|cell| cell.line.0 == 0);
    let ratios = cells.iter().filter_map(|cell| {
        // The ratio has a third colour besides the two sides.
        let line = match single {
            true => (2, String::new()),
            false => cell.line.clone(),
        };
        Some(Row::new(Default::default(), line, vec![cell.ratio()?]))
    });
    let ratios: Vec<Row> = ratios.collect();
    if ratios.is_empty() {
        return Err(Error::usage("no cell has a ratio")
            .hint("a ratio needs positive values on both sides; try --kind response"));
    }
    let margin = comparison.terms.margin;
    let mut values = reach(&ratios);
    values.extend([1.0, 1.0 + margin, 1.0 / (1.0 + margin)]);
    let is_far = |v: &f64| *v > RATIO_LINEAR_MAX || *v < 1.0 / RATIO_LINEAR_MAX;
    let is_log = options.log_y.unwrap_or_else(|| values.iter().any(is_far));
    let sides = format!("{} / {}", comparison.new, comparison.base);
    let label = match sides.chars().count() <= RATIO_LABEL_MAX {
        true => sides,
        false => "Ratio, new / base".to_owned(),
    };
    let y = Axis::new(label, Scale::either(is_log, &values), Ticks::Number);
    // The margins of the linkage study are drawn for two programs.
    let is_programs = comparison.response == Some(Response::Elapsed);
    let mut lines = vec![line_across(1.0, "")];
    let line = |margin: &f64| line_across(1.0 + margin, &labels::share(*margin));
    lines.extend(MARGINS.iter().filter(|_| is_programs).map(line));
    let below = Panel {
        lines,
        band: (!is_programs).then_some((1.0 / (1.0 + margin), 1.0 + margin)),
        weight: if single { 0.7 } else { 1.0 },
        ..Panel::new(x.clone(), y, look)
    };
    let mut panels = Vec::new();
    if let (true, Some(quantity)) = (single, comparison.response) {
        let (base, new) = (&comparison.base.name, &comparison.new.name);
        let base = cells
            .iter()
            .filter_map(|one| one.side(&one.cell.base, 0, base, quantity));
        let new = cells
            .iter()
            .filter_map(|one| one.side(&one.cell.new, 1, new, quantity));
        let rows: Vec<Row> = base.chain(new).collect();
        let y = axis::of_quantity(quantity, &reach(&rows), true, options);
        panels = model::panels(rows, &Panel::new(x, y, look));
    }
    panels.extend(model::panels(ratios, &below));
    let intervals = match comparison.intervals {
        _ if all_marks(&panels).all(|point| point.interval.is_none()) => {
            ", too few trials for an interval".to_owned()
        }
        0 | 1 => "; bars: 95 % interval".to_owned(),
        all => {
            format!("; bars: 95 % interval, of the ratios simultaneous over {all} cells")
        }
    };
    let margins = match is_programs {
        true => String::new(),
        false => format!("; shaded: within {}", labels::share(margin)),
    };
    let is_bound = |cell: &CellComparison| cell.estimate.is_some_and(|ratio| ratio.bound.is_some());
    Ok(FigureModel {
        hollow: match comparison.cells.iter().any(is_bound) {
            true => "a bound, since one side did not hold its rate".to_owned(),
            false => String::new(),
        },
        description: format!("Ratio of {} over {}", comparison.new, comparison.base),
        unit: comparison.response.map_or("", Response::unit).to_owned(),
        note: format!("Medians{intervals}{margins}."),
        ..FigureModel::of(panels)
    })
}

/// The p values of each test in panels of its own, for the first trials of both sides and for all of them.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage) when no cell has one.
pub(in super::super) fn p_values(
    comparison: &Comparison,
    options: &Options,
) -> Result<FigureModel> {
    let (x, look, cells) = cells(comparison, options)?;
    let mut rows = Vec::new();
    for (place, test) in comparison.terms.tests.iter().copied().enumerate() {
        let panel = |cell: &Cell<'_>| match &cell.line {
            (line, name) if name.is_empty() => (place * LINES_MAX + line, format!("{test}'s test")),
            (line, name) => (place * LINES_MAX + line, format!("{test}'s test, {name}")),
        };
        let first = FIRST_TRIALS.map(Some).into_iter().chain([None]);
        let has_some = |first: &Option<usize>| {
            cells
                .iter()
                .any(|cell| p(cell.cell, test, *first).is_some())
        };
        for (at, first) in first.filter(has_some).enumerate() {
            let name = first.map_or("all trials".to_owned(), |n| format!("first {n} trials"));
            rows.extend(cells.iter().filter_map(|cell| {
                let p = p(cell.cell, test, first)?;
                let told = format!("{test}'s test, {name}, p {}", format_p(p));
                let mark = cell.mark(p.max(P_MIN), None, &told);
                Some(Row::new(panel(cell), (at, name.clone()), vec![mark]))
            }));
        }
    }
    if rows.is_empty() {
        return Err(Error::usage("no cell has a p value")
            .hint("a test needs two trials on each side at least"));
    }
    let (low, high) = (P_MIN * 0.8, 1.25);
    let scale = Scale::Log { low, high };
    let like = Panel {
        lines: vec![line_across(ALPHA, "0.05")],
        ..Panel::new(x, Axis::new("p", scale, Ticks::Number), look)
    };
    Ok(FigureModel {
        description: format!(
            "p values of the difference of {} over {}",
            comparison.new, comparison.base
        ),
        note: format!(
            "Not adjusted for the number of cells; smaller values are drawn at {P_MIN}. A small p shows that there is a difference, not that it matters."
        ),
        ..FigureModel::of(model::panels(rows, &like))
    })
}

/// The p value of a test for the first trials of both sides, or for all.
fn p(cell: &CellComparison, test: HypothesisTest, first: Option<usize>) -> Option<f64> {
    match first {
        Some(n) => test.p(cell.base.values.get(..n)?, cell.new.values.get(..n)?),
        None => cell.p(test),
    }
}
