//! The response against a factor, with the lines that it is held against.

use super::super::data::{CellValues, Data, Parts};
use super::super::model::{FigureModel, Look, Mark, ReferenceLine, Series, all_marks};
use super::super::options::{Center, Options};
use super::super::{FigureRun, labels};
use super::axis;
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
    let parts = Parts::of(&data, options, true)?;
    let factor = parts.x.map(|x| (data.factors[x], data.levels(x)));
    let along = axis::along(factor, options);
    let lines = bounds(options);
    let mut panels = super::facets(&data, &parts, |panel, mut rows| {
        panel.lines.clone_from(&lines);
        panel.lines.extend(ceilings(&rows, quantity));
        let x = |row: &CellValues<'_>| along.place(level_of(row, &parts));
        rows.sort_by(|a, b| x(a).total_cmp(&x(b)));
        for row in rows {
            let mut mark = point(x(row), row, level_of(row, &parts), quantity, options);
            mark.quartiles = row.summary.quartiles().filter(|_| !along.is_names);
            let series = super::series_of(&data, &parts, row);
            super::add_mark(&mut panel.series, series, Look::Line, mark);
        }
        panel.series.sort_by_key(|series| series.place);
    });
    let ceilings = ceilings(&data.rows.iter().collect::<Vec<_>>(), quantity);
    let values: Vec<f64> = all_marks(&panels)
        .flat_map(Mark::reach)
        .chain(lines.iter().map(|line| line.at))
        .chain(ceilings.iter().map(|line| line.at * HEADROOM))
        .collect();
    let level = runs.first().and_then(|run| run.level);
    let noun = super::measured(runs, quantity);
    let y = axis::named((quantity, &noun), &values, true, options.log_y);
    super::set_axes(&mut panels, &along.axis, &y);
    let of = parts.series.map_or(1, |i| data.levels(i).len());
    let few = panels.iter().all(|panel| panel.series.len() <= BANDS_MAX);
    for series in panels.iter_mut().flat_map(|panel| &mut panel.series) {
        let place = series.place;
        series.look = match (along.is_names, y.scale.is_log()) {
            (false, _) => Look::Line,
            (true, true) => Look::Beside { place, of },
            (true, false) => Look::Bars { place, of },
        };
        // A band goes from one cell to the next, through all of them.
        let has_all = series.points.iter().all(|mark| mark.quartiles.is_some());
        if !few || !has_all || options.center != Center::Median {
            series
                .points
                .iter_mut()
                .for_each(|mark| mark.quartiles = None);
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

/// The level of a row along x; empty if nothing varies.
fn level_of<'a>(row: &CellValues<'a>, parts: &Parts) -> &'a str {
    parts.x.map_or("", |i| row.levels[i])
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

/// A value in words, with "at least" if it is a lower bound.
fn told(row: &CellValues<'_>, value: f64, quantity: Response) -> String {
    let is = if row.is_bound { "at least " } else { "" };
    format!("{is}{}", quantity.format(value))
}

fn point(x: f64, row: &CellValues<'_>, level: &str, quantity: Response, options: &Options) -> Mark {
    let value = options.center.of(&row.summary);
    let interval = options.center.bar(&row.summary);
    let between = interval.map_or_else(String::new, |(low, high)| {
        format!(", {} to {}", quantity.format(low), quantity.format(high))
    });
    let n = row.summary.n;
    let told = told(row, value, quantity);
    let text = format!("{}: {told}{between}; n = {n}", super::cell_name(row));
    Mark {
        interval,
        trials: match options.points {
            true => row.values.clone(),
            false => Vec::new(),
        },
        is_bound: row.is_bound,
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
    let marks = || all_marks(&model.panels);
    let (center, bar) = options.center.words();
    let bars = match marks().all(|point| point.interval.is_none()) {
        true => ", too few for an interval".to_owned(),
        false => format!("; bars: {bar}"),
    };
    let band = match marks().any(|point| point.quartiles.is_some()) {
        true => "; band: quartiles",
        false => "",
    };
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
