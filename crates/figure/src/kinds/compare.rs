//! Two sides: both with their ratio below, or the p values of their difference.

use iolab_analysis::analysis::Response;
use iolab_analysis::compare::{CellComparison, Comparison, Side};
use iolab_analysis::equivalence::{FIRST_TRIALS, MARGINS};
use iolab_analysis::trial_values::distinct;
use iolab_workload::units::{format_p, significant};
use iolab_workload::{Error, Result};

use super::super::labels;
use super::super::model::{
    Arrangement, Axis, FigureModel, Look, Mark, Origin, Panel, Series, Ticks, all_marks, marks,
};
use super::super::options::Options;
use super::super::scale::Scale;
use super::axis::{self, FactorAxis};
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

/// A cell of a comparison: its place and level along x, and its levels of the other factors.
struct Row<'a> {
    x: f64,
    level: &'a str,
    others: Vec<&'a str>,
    cell: &'a CellComparison,
}

/// The cells of a comparison, in ascending x, and what distinguishes cells at one position.
struct Cells<'a> {
    comparison: &'a Comparison,
    along: FactorAxis<'a>,
    rows: Vec<Row<'a>>,
    /// The combinations of the other factors' levels in order, each with its name.
    lines: Vec<(Vec<&'a str>, String)>,
}

impl<'a> Cells<'a> {
    fn new(comparison: &'a Comparison, options: &Options) -> Result<Self> {
        let factors = &comparison.factors;
        let level = |cell: &'a CellComparison, i: usize| {
            let level = cell.levels.get(i);
            level.map_or("", String::as_str)
        };
        let levels = |i: usize| distinct(comparison.cells.iter().map(|cell| level(cell, i)));
        let worth = |i: &usize| {
            let numeric = labels::number_kind(&factors[*i]).is_some();
            (numeric, levels(*i).len())
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
        let row = |cell| {
            let own = x.map_or("", |i| level(cell, i));
            Row {
                x: along.place(own),
                level: own,
                others: rest.iter().map(|i| level(cell, *i)).collect(),
                cell,
            }
        };
        let mut rows: Vec<Row<'_>> = comparison.cells.iter().map(row).collect();
        let others = distinct(rows.iter().map(|row| row.others.clone()));
        rows.sort_by(|a, b| a.x.total_cmp(&b.x));
        if others.len() > LINES_MAX {
            return Err(Error::usage(format!("{} lines are too many", others.len()))
                .hint("choose the factor with the most levels with --x"));
        }
        let named = |others: Vec<&'a str>| {
            let levels = rest.iter().zip(&others);
            let name = labels::levels(levels.map(|(i, level)| (&*factors[*i], *level)));
            (others, name)
        };
        Ok(Self {
            comparison,
            lines: others.into_iter().map(named).collect(),
            along,
            rows,
        })
    }

    /// The marks of one line.
    fn series(
        &self,
        (place, name): (usize, String),
        others: &[&str],
        mark: impl Fn(&Row<'a>) -> Option<Mark>,
    ) -> Series {
        let look = match self.along.is_names {
            true => Look::Dots,
            false => Look::Line,
        };
        let rows = self.rows.iter().filter(|row| row.others == others);
        Series::of_points(name, place, look, rows.filter_map(mark).collect())
    }

    fn description(&self, what: &str) -> String {
        let comparison = self.comparison;
        format!("{what} of {} over {}", comparison.new, comparison.base)
    }
}

impl Row<'_> {
    fn mark(&self, y: f64, n: Option<usize>, what: &str) -> Mark {
        let place = match self.cell.levels.is_empty() {
            true => "all trials".to_owned(),
            false => self.cell.levels.join(", "),
        };
        let verdict = self.cell.verdict.to_string();
        Mark {
            x: self.x,
            y,
            origin: Origin {
                cell: None,
                n,
                x: self.level.to_owned(),
                text: format!("{place}: {what}; {verdict}"),
                verdict,
            },
            ..Mark::default()
        }
    }
}

/// Both sides above, where only x distinguishes cells, and their ratio below.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage) when no cell has a ratio.
pub(in super::super) fn ratio(comparison: &Comparison, options: &Options) -> Result<FigureModel> {
    let cells = Cells::new(comparison, options)?;
    let ratios = ratio_panel(&cells, options)?;
    let mut panels = Vec::new();
    let quantity = comparison.response;
    if let (1, Some(quantity)) = (cells.lines.len(), quantity) {
        panels.push(sides_panel(&cells, quantity, options));
    }
    panels.push(ratios);
    let intervals = if all_marks(&panels).all(|point| point.interval.is_none()) {
        ", too few trials for an interval".to_owned()
    } else if comparison.intervals > 1 {
        format!(
            "; bars: 95 % interval, of the ratios simultaneous over {} cells",
            comparison.intervals
        )
    } else {
        "; bars: 95 % interval".to_owned()
    };
    let margins = if is_programs(comparison) {
        String::new()
    } else {
        format!(
            "; shaded: within {}",
            labels::share(comparison.terms.margin)
        )
    };
    let is_bound = |cell: &CellComparison| cell.estimate.is_some_and(|ratio| ratio.bound.is_some());
    let hollow = match comparison.cells.iter().any(is_bound) {
        true => "a bound, since one side did not hold its rate".to_owned(),
        false => String::new(),
    };
    Ok(FigureModel {
        hollow,
        description: cells.description("Ratio"),
        unit: quantity.map_or("", Response::unit).to_owned(),
        arrangement: Arrangement::Stack,
        note: format!("Medians{intervals}{margins}."),
        ..FigureModel::of(panels)
    })
}

/// Whether the sides are two programs, for which the margins of the linkage study are drawn.
fn is_programs(comparison: &Comparison) -> bool {
    comparison.response == Some(Response::Elapsed)
}

fn sides_panel(cells: &Cells<'_>, quantity: Response, options: &Options) -> Panel {
    let comparison = cells.comparison;
    let side = |place: usize, name: &str, of: fn(&CellComparison) -> &Side| {
        cells.series((place, name.to_owned()), &cells.lines[0].0, |row| {
            let side = of(row.cell);
            let y = side.centre?;
            let told = format!("{name}, {}", quantity.format(y));
            Some(Mark {
                interval: side.interval,
                ..row.mark(y, Some(side.values.len()), &told)
            })
        })
    };
    let series = vec![
        side(0, &comparison.base.name, |cell| &cell.base),
        side(1, &comparison.new.name, |cell| &cell.new),
    ];
    let values: Vec<f64> = marks(&series).flat_map(Mark::reach).collect();
    let y = axis::of_quantity(quantity, &values, true, options);
    let mut panel = Panel::new(cells.along.axis.clone(), y);
    panel.series = series;
    panel
}

fn ratio_panel(cells: &Cells<'_>, options: &Options) -> Result<Panel> {
    let comparison = cells.comparison;
    let single = cells.lines.len() == 1;
    let lines = cells.lines.iter().enumerate().map(|(i, (others, name))| {
        // The ratio has a third colour besides the two sides.
        let line = match single {
            true => (2, String::new()),
            false => (i, name.clone()),
        };
        cells.series(line, others, |row| {
            let cell = row.cell;
            let ratio = cell.estimate?;
            // Where one side did not hold its rate, the place of the mark is a bound.
            let bound = ratio.bound.map(|bound| {
                let end = bound.of(ratio.ratio, ratio.interval);
                (end, format!("{} ", labels::bound(bound)))
            });
            let (y, is) = bound.unwrap_or((ratio.ratio, String::new()));
            let interval = ratio.interval.filter(|_| ratio.bound.is_none());
            let between = interval.map_or_else(String::new, |(low, high)| {
                format!(", {} to {}", significant(low), significant(high))
            });
            let n = cell.base.values.len().min(cell.new.values.len());
            let told = format!("ratio {is}{}{between}", significant(y));
            Some(Mark {
                interval,
                hollow: ratio.bound.is_some(),
                ..row.mark(y, Some(n), &told)
            })
        })
    });
    let series: Vec<Series> = lines.filter(|line| !line.points.is_empty()).collect();
    if series.is_empty() {
        return Err(Error::usage("no cell has a ratio")
            .hint("a ratio needs positive values on both sides; try --kind response"));
    }
    let margin = comparison.terms.margin;
    let held = [1.0, 1.0 + margin, 1.0 / (1.0 + margin)];
    let values: Vec<f64> = marks(&series).flat_map(Mark::reach).chain(held).collect();
    let far = values
        .iter()
        .any(|v| *v > RATIO_LINEAR_MAX || *v < 1.0 / RATIO_LINEAR_MAX);
    let scale = Scale::either(options.log_y.unwrap_or(far), &values);
    let sides = format!("{} / {}", comparison.new, comparison.base);
    let label = match sides.chars().count() <= RATIO_LABEL_MAX {
        true => sides,
        false => "Ratio, new / base".to_owned(),
    };
    let y = Axis::new(label, scale, Ticks::Number);
    let mut panel = Panel::new(cells.along.axis.clone(), y);
    panel.weight = if single { 0.7 } else { 1.0 };
    panel.lines.push(line_across(1.0, ""));
    if is_programs(comparison) {
        let line = |margin: &f64| line_across(1.0 + margin, &labels::share(*margin));
        panel.lines.extend(MARGINS.iter().map(line));
    } else {
        panel.band = Some((1.0 / (1.0 + margin), 1.0 + margin));
    }
    panel.series = series;
    Ok(panel)
}

/// The p values of each test in panels of its own, for the first trials of both sides and for all of them.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage) when no cell has one.
pub(in super::super) fn p_values(
    comparison: &Comparison,
    options: &Options,
) -> Result<FigureModel> {
    let cells = Cells::new(comparison, options)?;
    let x = &cells.along.axis;
    let scale = Scale::Log {
        low: P_MIN * 0.8,
        high: 1.25,
    };
    let y = Axis::new("p", scale, Ticks::Number);
    let mut panels = Vec::new();
    let tests = comparison.terms.tests.iter().copied();
    for (test, (others, name)) in tests.flat_map(|test| cells.lines.iter().map(move |o| (test, o)))
    {
        let mut panel = Panel::new(x.clone(), y.clone());
        panel.title = match name.as_str() {
            "" => format!("{test}'s test"),
            name => format!("{test}'s test, {name}"),
        };
        panel.lines.push(line_across(ALPHA, "0.05"));
        let mut add = |name: String, of: &dyn Fn(&CellComparison) -> Option<f64>| {
            let line = (panel.series.len(), name.clone());
            let line = cells.series(line, others, |row| {
                let p = of(row.cell)?;
                let told = format!("{test}'s test, {name}, p {}", format_p(p));
                Some(row.mark(p.max(P_MIN), None, &told))
            });
            if !line.points.is_empty() {
                panel.series.push(line);
            }
        };
        for n in FIRST_TRIALS {
            add(format!("first {n} trials"), &|cell| {
                test.p(cell.base.values.get(..n)?, cell.new.values.get(..n)?)
            });
        }
        add("all trials".to_owned(), &|cell| cell.p(test));
        if !panel.series.is_empty() {
            panels.push(panel);
        }
    }
    if panels.is_empty() {
        return Err(Error::usage("no cell has a p value")
            .hint("a test needs two trials on each side at least"));
    }
    Ok(FigureModel {
        description: cells.description("p values of the difference"),
        note: format!(
            "Not adjusted for the number of cells; smaller values are drawn at {P_MIN}. A small p shows that there is a difference, not that it matters."
        ),
        ..FigureModel::of(panels)
    })
}
