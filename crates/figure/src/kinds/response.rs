//! The response against a factor, as lines, or against two, as colours.

use super::super::data::{CellValues, Data, Parts};
use super::super::model::{FigureModel, Look, Mark, ReferenceLine, Series, all_marks};
use super::super::options::{Center, Options, Spread};
use super::super::{FigureRun, labels};
use super::axis::{self, FactorAxis};
use super::reference_lines;
use crate::model::{Field, step};
use iolab_analysis::analysis::Response;
use iolab_analysis::slo::LevelValues;
use iolab_stats::Summary;
use iolab_workload::units::{counted, significant};
use iolab_workload::{Error, Result};

/// Most lines of a panel with a band.
const BANDS_MAX: usize = 3;

/// Factor by which an axis extends beyond a ceiling, so that the name of the ceiling stands above it, not on the
/// curves.
const HEADROOM: f64 = 1.12;

/// Makes the model.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): nothing to draw, or factors that do not suit.
pub(in super::super) fn model(runs: &[FigureRun<'_>], options: &Options) -> Result<FigureModel> {
    let quantity = super::quantity(runs, options);
    let data = Data::new(runs, quantity)?;
    let parts = Parts::of(&data, options)?;
    let along = axis::along(&data, parts.x, options);
    let lines = references(options, quantity)?;
    let values: Vec<f64> = data
        .rows
        .iter()
        .flat_map(|row| shown(row, along.is_names, options))
        .chain(lines.iter().map(|line| line.at))
        .chain(
            data.rows
                .iter()
                .filter_map(|row| reference_lines::ceiling(row, quantity))
                .map(|ceiling| ceiling * HEADROOM),
        )
        .collect();
    let level = runs.first().and_then(|run| run.level);
    let noun = super::measured(runs, quantity);
    let y = axis::named((quantity, &noun), &values, true, options);
    let is_log = y.scale.is_log();
    let names = series_levels(&data, &parts);
    let mut panels = super::facets(&data, &parts, (&along.axis, &y), |panel, rows| {
        panel.lines.clone_from(&lines);
        panel
            .lines
            .extend(reference_lines::ceilings(rows, quantity));
        for (place, level) in names.iter().enumerate() {
            let of_series =
                |row: &&&CellValues<'_>| parts.series.is_none_or(|i| row.levels[i] == *level);
            let own: Vec<&CellValues<'_>> = rows.iter().filter(of_series).copied().collect();
            let Some(first) = own.first() else { continue };
            let of = names.len();
            let look = match (along.is_names, is_log) {
                (false, _) => Look::Line,
                (true, true) => Look::Beside { place, of },
                (true, false) => Look::Bars { place, of },
            };
            let mut series = series(&data, &own, &along, parts.x, options);
            series.name = super::series_of(&data, &parts, first).1;
            series.place = place;
            series.look = look;
            panel.series.push(series);
        }
    });
    let few = panels.iter().all(|panel| panel.series.len() <= BANDS_MAX);
    for series in panels.iter_mut().flat_map(|panel| &mut panel.series) {
        if !few || series.look != Look::Line {
            series.band.clear();
        }
    }
    let mut model = FigureModel {
        description: description(runs, &data, &parts, options),
        legend: super::legend(&data, parts.series),
        unit: quantity.unit().to_owned(),
        hollow: super::hollow(data.rows.iter().map(|row| row.cell)),
        ..FigureModel::of(panels)
    };
    reference_lines::thresholds_and_bends(&mut model, runs, &data, &parts);
    model.note = note(&model, &data, options);
    if let Some(level) = level {
        model.note.push_str(&of_few_requests(level));
    }
    Ok(model)
}

/// A note where the trials of a search have too few requests; empty otherwise.
fn of_few_requests(level: &LevelValues) -> String {
    let subject = level.level.subject();
    let mut text = String::new();
    if level.uncertain > 0 {
        text.push_str(&format!(
            " {} of {} rates: trials of fewer than {} requests, {subject} is uncertain.",
            level.uncertain,
            level.by_cell.len(),
            level.level.requests_enough()
        ));
    }
    if level.without > 0 {
        text.push_str(&format!(
            " Not drawn: {} of fewer than {} requests per trial.",
            counted(level.without, "rate"),
            level.level.requests_min()
        ));
    }
    text
}

/// The levels of the series in order; a single one without a name where there is no such factor.
fn series_levels<'a>(data: &Data<'a>, parts: &Parts) -> Vec<&'a str> {
    parts.series.map_or_else(|| vec![""], |i| data.levels(i))
}

/// The requested reference lines, on an axis of this quantity.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): one of another quantity.
pub(super) fn references(options: &Options, quantity: Response) -> Result<Vec<ReferenceLine>> {
    let lines = options.references.iter().map(|reference| {
        let at = reference.value.on_axis(quantity)?;
        Ok(super::line_across(at, &reference.label))
    });
    lines.collect()
}

/// The location measure of a cell.
pub(super) fn center(summary: &Summary, options: &Options) -> f64 {
    match options.center {
        Center::Median => summary.median,
        Center::Mean => summary.mean.unwrap_or(summary.median),
    }
}

/// The ends of the error bar.
pub(super) fn interval(summary: &Summary, options: &Options) -> Option<(f64, f64)> {
    let ends = |interval: Option<iolab_stats::Interval>| interval.map(|i| (i.low, i.high));
    match (options.spread, options.center) {
        (Spread::None, _) => None,
        (Spread::Interval, Center::Median) => ends(summary.median_interval),
        (Spread::Interval, Center::Mean) => ends(summary.mean_interval),
        (Spread::Quartiles, _) => summary.quartiles(),
        (Spread::Deviation, _) => {
            let (mean, sd) = summary.mean.zip(summary.sd)?;
            Some((mean - sd, mean + sd))
        }
    }
}

/// All values of a row that are drawn.
fn shown(row: &CellValues<'_>, over_names: bool, options: &Options) -> Vec<f64> {
    let mut shown = vec![center(&row.summary, options)];
    shown.extend(
        interval(&row.summary, options)
            .into_iter()
            .flat_map(|(low, high)| [low, high]),
    );
    if options.points {
        shown.extend(&row.values);
    }
    if options.spread == Spread::Interval && !over_names {
        let ends = row.summary.quartiles().into_iter();
        shown.extend(ends.flat_map(|(q1, q3)| [q1, q3]));
    }
    shown
}

fn series(
    data: &Data<'_>,
    rows: &[&CellValues<'_>],
    along: &FactorAxis<'_>,
    x: Option<usize>,
    options: &Options,
) -> Series {
    let level = |row: &CellValues<'_>| x.map_or("", |i| row.levels[i]).to_owned();
    let mut rows: Vec<(f64, &CellValues<'_>)> = rows
        .iter()
        .map(|row| (along.place(&level(row)), *row))
        .collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let of_row = |(x, row): &(f64, &CellValues<'_>)| {
        let (q1, q3) = row.summary.quartiles()?;
        Some((*x, q1, q3))
    };
    let band = || rows.iter().map(of_row).collect::<Option<Vec<_>>>();
    let trials = |(x, row): &(f64, &CellValues<'_>)| {
        let x = *x;
        row.values
            .iter()
            .map(move |value| (x, *value))
            .collect::<Vec<_>>()
    };
    Series {
        name: String::new(),
        place: 0,
        look: Look::Line,
        points: rows
            .iter()
            .map(|(x, row)| point(*x, row, &level(row), data.quantity, options))
            .collect(),
        band: match options.spread {
            // A band goes from one cell to the next, through all of them.
            Spread::Interval => band().unwrap_or_default(),
            _ => Vec::new(),
        },
        trials: if options.points {
            rows.iter().flat_map(trials).collect()
        } else {
            Vec::new()
        },
        bends: Vec::new(),
        bounds: rows
            .iter()
            .filter(|(_, row)| row.is_bound)
            .map(|(x, row)| (*x, center(&row.summary, options)))
            .collect(),
    }
}

/// A value in words, with "at least" if it is a lower bound.
fn told(row: &CellValues<'_>, value: f64, quantity: Response) -> String {
    let is = if row.is_bound { "at least " } else { "" };
    format!("{is}{}", quantity.format(value))
}

fn point(x: f64, row: &CellValues<'_>, level: &str, quantity: Response, options: &Options) -> Mark {
    let value = center(&row.summary, options);
    let interval = interval(&row.summary, options);
    let between = interval.map_or_else(String::new, |(low, high)| {
        format!(", {} to {}", quantity.format(low), quantity.format(high))
    });
    let n = row.summary.n;
    let told = told(row, value, quantity);
    let text = format!("{}: {told}{between}; n = {n}", super::cell_name(row));
    Mark {
        interval,
        ..super::mark(row.cell, Some(n), (x, value), level, &text)
    }
}

/// A description of the marks, below the figure.
fn note(model: &FigureModel, data: &Data<'_>, options: &Options) -> String {
    let counts = data.rows.iter().map(|row| row.summary.n);
    let (least, most) = counts.fold((usize::MAX, 0), |(a, b), n| (a.min(n), b.max(n)));
    let n = if least == most {
        format!("{most}")
    } else {
        format!("{least} to {most}")
    };
    let center = match options.center {
        Center::Median => "Median",
        Center::Mean => "Mean",
    };
    let bars = match options.spread {
        Spread::None => "",
        _ if all_marks(&model.panels).all(|point| point.interval.is_none()) => {
            ", too few for an interval"
        }
        Spread::Interval => "; bars: 95 % interval",
        Spread::Quartiles => "; bars: quartiles",
        Spread::Deviation => "; bars: one standard deviation",
    };
    let banded = model
        .panels
        .iter()
        .flat_map(|p| &p.series)
        .any(|s| !s.band.is_empty());
    let band = if banded { "; band: quartiles" } else { "" };
    let trials = if options.points { "; dots: trials" } else { "" };
    let bounds = match data.rows.iter().any(|row| row.is_bound) {
        true => {
            " Arrows: at least; requests that were due and never issued count as long as their trial."
        }
        false => "",
    };
    format!("{center} of n = {n} trials{bars}{band}{trials}.{bounds}")
}

fn description(
    runs: &[FigureRun<'_>],
    data: &Data<'_>,
    parts: &Parts,
    options: &Options,
) -> String {
    let mut text = super::subject(runs, data.quantity);
    if let Some(x) = parts.x {
        text.push_str(&format!(" against {}", labels::noun(data.factors[x])));
    }
    if let Some(series) = parts.series {
        // Another run need not have this factor.
        let levels = data.levels(series).into_iter();
        let levels = levels.filter(|level| !level.is_empty()).count();
        text.push_str(&format!(
            ", {levels} levels of {}",
            labels::noun(data.factors[series])
        ));
    }
    let by_value = |a: &&CellValues<'_>, b: &&CellValues<'_>| {
        center(&a.summary, options).total_cmp(&center(&b.summary, options))
    };
    let ends = data
        .rows
        .iter()
        .min_by(by_value)
        .zip(data.rows.iter().max_by(by_value));
    if let Some((least, most)) = ends {
        let end = |row: &CellValues<'_>| {
            let value = told(row, center(&row.summary, options), data.quantity);
            format!("{value} ({})", super::cell_name(row))
        };
        text.push_str(&format!(". From {} to {}.", end(least), end(most)));
    }
    text
}

/// Makes the model.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage) when fewer than two factors vary.
pub(crate) fn model_of_heat(runs: &[FigureRun<'_>], options: &Options) -> Result<FigureModel> {
    let quantity = super::quantity(runs, options);
    let data = Data::new(runs, quantity)?;
    let parts = Parts::of(&data, options)?;
    let (Some(x), Some(y)) = (parts.x, parts.series) else {
        return Err(Error::usage("a heat map needs two factors that vary")
            .hint("sweep two with --set, or choose another figure with --kind response"));
    };
    let (columns, rows) = (steps(&data, x), steps(&data, y));
    let values = data.rows.iter().map(|row| center(&row.summary, options));
    let values: Vec<f64> = values.collect();
    let noun = super::measured(runs, quantity);
    let colours = axis::named((quantity, &noun), &values, true, options);
    let scale = colours.scale;
    let axes = (&columns.axis, &rows.axis);
    let panels = super::facets(&data, &parts, axes, |panel, own| {
        let fields = own.iter().map(|row| {
            let value = center(&row.summary, options);
            let n = row.summary.n;
            let shown = quantity.format(value);
            let text = format!("{}: {shown}; n = {n}", super::cell_name(row));
            Field {
                x: step(columns.place(row.levels[x]) as usize),
                y: step(rows.place(row.levels[y]) as usize),
                value,
                label: short(quantity, value),
                hollow: !row.cell.is_target(),
                origin: super::origin(row.cell, Some(n), row.levels[x], &text),
            }
        });
        panel.heat = Some((fields.collect(), scale));
    });
    let corner = super::corner(data.rows.iter().map(|row| row.cell));
    Ok(FigureModel {
        description: format!(
            "{} by {} and {}",
            super::subject(runs, quantity),
            labels::noun(data.factors[x]),
            labels::noun(data.factors[y])
        ),
        unit: quantity.unit().to_owned(),
        heat_label: colours.label,
        note: format!(
            "{} of trials{corner}.",
            match options.center {
                Center::Median => "Medians",
                Center::Mean => "Means",
            }
        ),
        ..FigureModel::of(panels)
    })
}

/// The levels of a factor one step apart.
fn steps<'a>(data: &Data<'a>, factor: usize) -> FactorAxis<'a> {
    let name = data.factors[factor];
    let written = |level: &str| labels::level(name, level);
    axis::in_steps(name, data.levels(factor), written, true)
}

/// A value as a field has room for it.
fn short(quantity: Response, value: f64) -> String {
    if quantity.is_time() {
        return quantity.format(value);
    }
    match value {
        v if v >= 99_950.0 => format!("{:.0}k", v / 1e3),
        v if v >= 9_995.0 => format!("{:.1}k", v / 1e3),
        v if v >= 100.0 => format!("{v:.0}"),
        v => significant(v),
    }
}
