//! Reference lines of a response: the ceilings of its cells and, over I/O sizes, thresholds of the machine and bends of curves.

use iolab_analysis::analysis::{Analysis, Response};
use iolab_analysis::bends::{Bend as CurveBend, Bends, bendable};
use iolab_analysis::curve::Curve;
use iolab_analysis::io_limit::MachineThreshold;
use iolab_workload::trial::CacheState;
use iolab_workload::units::format_bytes;

use super::super::FigureRun;
use super::super::data::{CellValues, Data, Parts};
use super::super::model::{Along, Bend, FigureModel, ReferenceLine, Series};

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
pub(super) fn thresholds_and_bends(
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
