//! The response against a factor, with the lines that it is held against.

use super::super::data::{CellValues, Data, Parts};
use super::super::model::{FigureModel, Look, Mark, ReferenceLine, Series, all_marks};
use super::super::options::{Center, Options};
use super::super::{FigureRun, labels};
use super::axis::{self, FactorAxis};
use crate::model::{Along, Bend};
use iolab_analysis::analysis::{Analysis, Response};
use iolab_analysis::bends::{Bend as CurveBend, Bends, bendable};
use iolab_analysis::curve::Curve;
use iolab_analysis::io_limit::MachineThreshold;
use iolab_analysis::slo::LevelValues;
use iolab_stats::Summary;
use iolab_workload::Result;
use iolab_workload::trial::CacheState;
use iolab_workload::units::{counted, format_bytes};

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
    let lines = bounds(options);
    let values: Vec<f64> = data
        .rows
        .iter()
        .flat_map(|row| shown(row, along.is_names, options))
        .chain(lines.iter().map(|line| line.at))
        .chain(
            data.rows
                .iter()
                .filter_map(|row| ceiling(row, quantity))
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
        panel.lines.extend(ceilings(rows, quantity));
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
        description: description(runs, &data, &parts, options.center),
        legend: super::legend(&data, parts.series),
        unit: quantity.unit().to_owned(),
        hollow: super::hollow(data.rows.iter().map(|row| row.cell)),
        ..FigureModel::of(panels)
    };
    thresholds_and_bends(&mut model, runs, &data, &parts);
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

/// A line at the bound of each service level.
pub(super) fn bounds(options: &Options) -> Vec<ReferenceLine> {
    let levels = options.levels.iter();
    levels
        .map(|level| super::line_across(level.limit(), &level.to_string()))
        .collect()
}

/// The ends of the error bar.
pub(super) fn interval(summary: &Summary) -> Option<(f64, f64)> {
    summary.median_interval.map(|ends| (ends.low, ends.high))
}

/// All values of a row that are drawn.
fn shown(row: &CellValues<'_>, over_names: bool, options: &Options) -> Vec<f64> {
    let mut shown = vec![options.center.of(&row.summary)];
    let ends = options.center.bar(&row.summary).into_iter();
    let quartiles = row.summary.quartiles().into_iter();
    let ends = ends.chain(quartiles.filter(|_| !over_names));
    shown.extend(ends.flat_map(|(low, high)| [low, high]));
    if options.points {
        shown.extend(&row.values);
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
    let band: Option<Vec<_>> = rows.iter().map(of_row).collect();
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
            .map(|(x, row)| point(*x, row, &level(row), data.quantity, options.center))
            .collect(),
        // A band goes from one cell to the next, through all of them.
        band: match options.center {
            Center::Median => band.unwrap_or_default(),
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
            .map(|(x, row)| (*x, options.center.of(&row.summary)))
            .collect(),
    }
}

/// A value in words, with "at least" if it is a lower bound.
fn told(row: &CellValues<'_>, value: f64, quantity: Response) -> String {
    let is = if row.is_bound { "at least " } else { "" };
    format!("{is}{}", quantity.format(value))
}

fn point(x: f64, row: &CellValues<'_>, level: &str, quantity: Response, center: Center) -> Mark {
    let value = center.of(&row.summary);
    let interval = center.bar(&row.summary);
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
    let marks = all_marks(&model.panels);
    let (center, bar) = options.center.words();
    let bars = match marks.into_iter().all(|point| point.interval.is_none()) {
        true => ", too few for an interval".to_owned(),
        false => format!("; bars: {bar}"),
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

fn description(runs: &[FigureRun<'_>], data: &Data<'_>, parts: &Parts, center: Center) -> String {
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
        center.of(&a.summary).total_cmp(&center.of(&b.summary))
    };
    let ends = data
        .rows
        .iter()
        .min_by(by_value)
        .zip(data.rows.iter().max_by(by_value));
    if let Some((least, most)) = ends {
        let end = |row: &CellValues<'_>| {
            let value = told(row, center.of(&row.summary), data.quantity);
            format!("{value} ({})", super::cell_name(row))
        };
        text.push_str(&format!(". From {} to {}.", end(least), end(most)));
    }
    text
}

/// Most curves whose bends are searched: each takes time, and more would clutter the figure.
const CURVES_MAX: usize = 3;

/// A line for each ceiling that limits one of these cells in this quantity.
pub(super) fn ceilings(rows: &[&CellValues<'_>], quantity: Response) -> Vec<ReferenceLine> {
    let mut lines: Vec<ReferenceLine> = Vec::new();
    for row in rows {
        let Some(at) = ceiling(row, quantity) else {
            continue;
        };
        let trial = row.cell.cell.trial();
        let what = match (trial.reads(), trial.writes()) {
            (true, false) => "reads",
            (false, true) => "writes",
            _ => "mixed",
        };
        match lines.iter_mut().find(|line| line.at == at) {
            // A ceiling of several directions is labelled without one.
            Some(line) if !line.label.ends_with(what) => line.label = "ceiling".to_owned(),
            Some(_) => {}
            None => lines.push(super::line_across(at, &format!("ceiling, {what}"))),
        }
    }
    lines
}

/// The ceiling of a cell, if it is in the quantity drawn.
pub(super) fn ceiling(row: &CellValues<'_>, quantity: Response) -> Option<f64> {
    let is_iops = match quantity {
        Response::Throughput => false,
        Response::Iops => true,
        _ => return None,
    };
    let efficiency = row.cell.efficiency.filter(|e| e.is_iops == is_iops)?;
    Some(efficiency.ceiling)
}

/// Adds the bends of the curves of one run, and thresholds: all of them where memory was read instead of a device, otherwise
/// those that coincide with a bend.
fn thresholds_and_bends(
    model: &mut FigureModel,
    runs: &[FigureRun<'_>],
    data: &Data<'_>,
    parts: &Parts,
) {
    let over_sizes = parts.x.is_some_and(|x| data.factors[x] == "bs");
    let ([run], true) = (runs, over_sizes) else {
        return;
    };
    let mut suspects: Vec<MachineThreshold> = Vec::new();
    let curves: usize = model.panels.iter().map(|panel| panel.series.len()).sum();
    if curves <= CURVES_MAX && data.quantity == run.analysis().response {
        suspects = add_bends(model, run.analysis());
    }
    let trials = data.rows.iter().flat_map(|row| row.cell.cell.spec.trials());
    let from_memory = trials
        .into_iter()
        .all(|trial| trial.cache == CacheState::Hot);
    for threshold in &run.analysis().machine_thresholds {
        if from_memory || suspects.contains(threshold) {
            for panel in &mut model.panels {
                panel.lines.push(ReferenceLine {
                    along: Along::Y,
                    at: threshold.bytes as f64,
                    label: short(threshold.name).to_owned(),
                });
            }
        }
    }
}

/// Adds the bends to their series; returns the thresholds that they coincide with.
fn add_bends(model: &mut FigureModel, analysis: &Analysis) -> Vec<MachineThreshold> {
    let bends = Bends::of(analysis);
    let mut suspects = Vec::new();
    for curve in bendable(analysis) {
        let Some(first) = curve.points.first().map(|point| point.cell.cell.id) else {
            continue;
        };
        let belongs =
            |series: &&mut Series| series.points.iter().any(|p| p.origin.cell == Some(first));
        let mut all = model.panels.iter_mut().flat_map(|panel| &mut panel.series);
        let Some(series) = all.find(belongs) else {
            continue;
        };
        for bend in bends.placed_on(&curve) {
            series.bends.push(Bend {
                x: bend.size,
                y: height(series, bend.size),
                name: bend_name(&curve, bend),
            });
            suspects.extend(&bend.thresholds);
        }
    }
    suspects
}

/// A bend with the measured sizes around its interval: no size between these is known.
fn bend_name(curve: &Curve<'_>, bend: &CurveBend) -> String {
    let ends = bend
        .interval
        .map_or((bend.size, bend.size), |own| (own.low, own.high));
    let mut sizes = curve.points.iter().map(|point| point.size as f64);
    let ends_at = |size: &f64| *size <= ends.0;
    let low = sizes.clone().rfind(ends_at).or(sizes.clone().next());
    let high = sizes
        .clone()
        .find(|size| *size >= ends.1)
        .or(sizes.next_back());
    match low.zip(high) {
        Some((low, high)) if low < high => {
            format!("bend {} to {}", format_bytes(low), format_bytes(high))
        }
        _ => format!("bend {}", format_bytes(low.unwrap_or(bend.size))),
    }
}

/// Height of the line between its points at x, on logarithmic axes.
fn height(series: &Series, x: f64) -> f64 {
    let around = series
        .points
        .windows(2)
        .find(|pair| pair[0].x <= x && x <= pair[1].x);
    let Some([a, b]) = around else {
        return series.points.last().map_or(0.0, |point| point.y);
    };
    let share = (x / a.x).ln() / (b.x / a.x).ln();
    if share.is_finite() {
        a.y + (b.y - a.y) * share
    } else {
        a.y
    }
}

/// A short name of a threshold.
fn short(name: &'static str) -> &'static str {
    match name {
        "L1d cache" => "L1d",
        "L2 cache" => "L2",
        "L3 cache" => "L3",
        "reach of the L1 data TLB" => "L1 TLB reach",
        "reach of the L2 TLB" => "L2 TLB reach",
        other => other,
    }
}
