//! The response against a factor, with the lines that it is held against.

use super::super::data::{CellValues, Data};
use super::super::model::{
    FigureModel, Look, Mark, Panel, ReferenceLine, Row, Series, all_marks, panels, reach,
};
use super::super::options::{Center, Options};
use super::super::{FigureRun, labels};
use super::axis;
use iolab_analysis::analysis::{Analysis, Efficiency, Response};
use iolab_analysis::bends::{Bend, Bends, bendable};
use iolab_analysis::curve::Curve;
use iolab_analysis::io_limit::MachineThreshold;
use iolab_analysis::slo::LevelValues;
use iolab_workload::Result;
use iolab_workload::trial::CacheState;
use iolab_workload::units::{counted, format_bytes};

/// Most lines of a panel with a band.
const BANDS_MAX: usize = 3;

/// Factor by which an axis extends beyond a ceiling, so that the name of the ceiling stands above it, not on the
/// curves.
const HEADROOM: f64 = 1.12;

/// The note of a figure with lower bounds.
const ARROWS: &str =
    " Arrows: at least; requests that were due and never issued count as long as their trial.";

/// Makes the model.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): nothing to draw, or factors that do not suit.
pub(in super::super) fn model(runs: &[FigureRun<'_>], options: &Options) -> Result<FigureModel> {
    let quantity = super::quantity(runs, options);
    let data = Data::new(runs, quantity)?.with_roles(options, true)?;
    let along = axis::along(data.x.map(|x| (data.factors[x], data.levels(x))), options);
    let mut cells: Vec<&CellValues<'_>> = data.rows.iter().collect();
    let x = |row: &CellValues<'_>| along.place(data.x_of(row));
    cells.sort_by(|a, b| x(a).total_cmp(&x(b)));
    let point = |row: &CellValues<'_>| Mark {
        quartiles: row.summary.quartiles().filter(|_| !along.is_names),
        ..point(x(row), row, data.x_of(row), quantity, options)
    };
    let rows = cells.iter().map(|row| data.row(row, vec![point(row)]));
    let rows: Vec<Row> = rows.collect();
    let lines = bounds(options);
    let mut values = reach(&rows);
    values.extend(lines.iter().map(|line| line.at));
    let limits = ceilings(&cells, quantity);
    values.extend(limits.iter().map(|line| line.at * HEADROOM));
    let noun = super::measured(runs, quantity);
    let y = axis::named((quantity, &noun), &values, true, options.log_y);
    let of = data.series.map_or(1, |i| data.levels(i).len());
    let look = match (along.is_names, y.scale.is_log()) {
        (false, _) => Look::Line,
        (true, true) => Look::Dots(of),
        (true, false) => Look::Bars(of),
    };
    let like = Panel {
        lines,
        ..Panel::new(along.axis.clone(), y, look)
    };
    let mut panels = panels(rows, &like);
    for (place, panel) in panels.iter_mut().enumerate() {
        let own = cells.iter().filter(|row| data.panel(row).0 == place);
        let own: Vec<&CellValues<'_>> = own.copied().collect();
        panel.lines.extend(ceilings(&own, quantity));
    }
    let few = panels.iter().all(|panel| panel.series.len() <= BANDS_MAX);
    for series in panels.iter_mut().flat_map(|panel| &mut panel.series) {
        // A band goes from one cell to the next, through all of them.
        let has_all = series.points.iter().all(|mark| mark.quartiles.is_some());
        if !few || !has_all || options.center != Center::Median {
            let points = series.points.iter_mut();
            points.for_each(|mark| mark.quartiles = None);
        }
    }
    if let ([run], Some("bs")) = (runs, data.x.map(|x| data.factors[x])) {
        uprights(&mut panels, run.analysis(), &data);
    }
    let level = runs.first().and_then(|run| run.level);
    Ok(FigureModel {
        description: description(runs, &data, options.center),
        note: note(&panels, &data, options) + &level.map_or_else(String::new, of_few_requests),
        ..data.figure(panels)
    })
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

/// A line at the bound of each service level.
pub(super) fn bounds(options: &Options) -> Vec<ReferenceLine> {
    let levels = options.levels.iter();
    levels
        .map(|level| super::line_across(level.limit(), &level.to_string()))
        .collect()
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
    let text = format!(
        "{}: {told}{between}; n = {n}",
        super::cell_name(&row.levels)
    );
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
fn note(panels: &[Panel], data: &Data<'_>, options: &Options) -> String {
    let counts = data.rows.iter().map(|row| row.summary.n);
    let (least, most) = counts.fold((usize::MAX, 0), |(a, b), n| (a.min(n), b.max(n)));
    let n = match least == most {
        true => format!("{most}"),
        false => format!("{least} to {most}"),
    };
    let marks = || all_marks(panels);
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
    let is_bound = data.rows.iter().any(|row| row.is_bound);
    let bounds = if is_bound { ARROWS } else { "" };
    format!("{center} of n = {n} trials{bars}{band}{trials}.{bounds}")
}

fn description(runs: &[FigureRun<'_>], data: &Data<'_>, center: Center) -> String {
    let mut text = super::subject(runs, data.quantity);
    if let Some(x) = data.x {
        text.push_str(&format!(" against {}", labels::noun(data.factors[x])));
    }
    if let Some(series) = data.series {
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
    let rows = || data.rows.iter();
    let ends = rows().min_by(by_value).zip(rows().max_by(by_value));
    if let Some((least, most)) = ends {
        let end = |row: &CellValues<'_>| {
            let value = told(row, center.of(&row.summary), data.quantity);
            format!("{value} ({})", super::cell_name(&row.levels))
        };
        text.push_str(&format!(". From {} to {}.", end(least), end(most)));
    }
    text
}

/// Most curves whose bends are searched: each takes time, and more would clutter the figure.
const CURVES_MAX: usize = 3;

/// A line for each ceiling that limits one of these cells in this quantity.
fn ceilings(rows: &[&CellValues<'_>], quantity: Response) -> Vec<ReferenceLine> {
    let mut lines: Vec<ReferenceLine> = Vec::new();
    let is_iops = [(Response::Iops, true), (Response::Throughput, false)];
    for row in rows {
        let suits = |limit: &Efficiency| is_iops.contains(&(quantity, limit.is_iops));
        let Some(limit) = row.cell.efficiency.filter(suits) else {
            continue;
        };
        let trial = row.cell.cell.trial();
        let what = match (trial.reads(), trial.writes()) {
            (true, false) => "reads",
            (false, true) => "writes",
            _ => "mixed",
        };
        let at = limit.ceiling;
        match lines.iter_mut().find(|line| line.at == at) {
            // A ceiling of several directions is labelled without one.
            Some(line) if !line.label.ends_with(what) => line.label = "ceiling".to_owned(),
            Some(_) => {}
            None => lines.push(super::line_across(at, &format!("ceiling, {what}"))),
        }
    }
    lines
}

/// Adds the bends of the curves of a run, and thresholds: all of them where memory was read instead of a device, otherwise
/// those that coincide with a bend.
fn uprights(panels: &mut [Panel], analysis: &Analysis, data: &Data<'_>) {
    let mut suspects: Vec<MachineThreshold> = Vec::new();
    let curves: usize = panels.iter().map(|panel| panel.series.len()).sum();
    if curves <= CURVES_MAX && data.quantity == analysis.response {
        let bends = Bends::of(analysis);
        for curve in bendable(analysis) {
            let first = curve.points.first().map(|point| point.cell.cell.id);
            for panel in &mut *panels {
                let mut series = panel.series.iter();
                let has = |own: &&Series| own.points.iter().any(|mark| mark.cell == first);
                let Some(series) = series.find(has) else {
                    continue;
                };
                for bend in bends.placed_on(&curve) {
                    panel.uprights.push(ReferenceLine {
                        at: bend.size,
                        label: bend_name(&curve, bend),
                        bend: Some((series.place, height(&series.points, bend.size))),
                    });
                    suspects.extend(&bend.thresholds);
                }
            }
        }
    }
    let trials = data.rows.iter().flat_map(|row| row.cell.cell.spec.trials());
    let mut trials = trials.into_iter();
    let from_memory = trials.all(|trial| trial.cache == CacheState::Hot);
    let thresholds = analysis.machine_thresholds.iter();
    for threshold in thresholds.filter(|own| from_memory || suspects.contains(own)) {
        for panel in &mut *panels {
            panel.uprights.push(ReferenceLine {
                at: threshold.bytes as f64,
                label: short(threshold.name).to_owned(),
                bend: None,
            });
        }
    }
}

/// A bend with the measured sizes around its interval: no size between these is known.
fn bend_name(curve: &Curve<'_>, bend: &Bend) -> String {
    let interval = bend.interval.map(|own| (own.low, own.high));
    let (low, high) = interval.unwrap_or((bend.size, bend.size));
    let points = &curve.points;
    let below = points.partition_point(|point| point.size as f64 <= low);
    let above = points.partition_point(|point| (point.size as f64) < high);
    let ends = [below.saturating_sub(1), above.min(points.len() - 1)];
    let [low, high] = ends.map(|place| format_bytes(points[place].size as f64));
    match low == high {
        true => format!("bend {low}"),
        false => format!("bend {low} to {high}"),
    }
}

/// Height of the line between its points at x, on logarithmic axes.
fn height(points: &[Mark], x: f64) -> f64 {
    let after = points.partition_point(|point| point.x < x).max(1);
    match (points.get(after - 1), points.get(after)) {
        (Some(a), Some(b)) => a.y + (b.y - a.y) * ((x / a.x).ln() / (b.x / a.x).ln()),
        _ => points.last().map_or(0.0, |point| point.y),
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
