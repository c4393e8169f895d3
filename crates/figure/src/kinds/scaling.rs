//! Throughput as a function of parallelism, with proportional growth for comparison.

use iolab_analysis::analysis::Response;
use iolab_analysis::claim::{self, Trials};
use iolab_workload::{Error, Result};

use super::super::FigureRun;
use super::super::data::{CellValues, Data, Parts, verdict};
use super::super::labels;
use super::super::model::{Axis, FigureModel, Look, Mark, Origin, Panel, Series, Ticks};
use super::super::options::Options;
use super::super::scale::Scale;

/// Factors of parallelism; the first that varies is used.
const PARALLEL: [&str; 4] = ["threads", "depth", "ranks", "hosts"];

/// Makes the model: the ratio of each cell to that with the lowest level, a line for each level of the series, and the line of
/// proportional growth.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): no factor of parallelism varies, or the quantity is a time.
pub(in super::super) fn model(runs: &[FigureRun<'_>], options: &Options) -> Result<FigureModel> {
    let quantity = options.y.unwrap_or(Response::Throughput);
    if quantity.is_time() {
        return Err(
            Error::usage(format!("{quantity} does not grow in proportion"))
                .hint("choose --y throughput or iops, or --kind load for times"),
        );
    }
    let data = Data::new(runs, quantity)?;
    let factor = parallel(&data, options)?;
    let name = data.factors[factor];
    let asked = Options {
        x: Some(name.to_owned()),
        log_x: Some(options.log_x.unwrap_or(true)),
        ..options.clone()
    };
    let parts = Parts::of(&data, &asked)?;
    let x = super::axis::along(&data, Some(factor), &asked);
    let series_levels = parts.series.map_or_else(Vec::new, |i| data.levels(i));
    let mut panels = Vec::new();
    for key in parts.panels(&data) {
        let rows = || data.rows.iter().filter(|row| parts.panel(row) == key);
        let place = |row: &CellValues<'_>| {
            let level = parts.series.map(|i| row.levels[i]);
            let found = series_levels.iter().position(|other| Some(*other) == level);
            found.unwrap_or(0)
        };
        let mut panel = Panel::new(x.axis.clone(), x.axis.clone());
        panel.title = super::panel_title(&data, &parts.facets, &key);
        let count = series_levels.len().max(1);
        for number in 0..count {
            let mut line: Vec<&CellValues<'_>> =
                rows().filter(|row| place(row) == number).collect();
            line.sort_by(|a, b| {
                x.place(a.levels[factor])
                    .total_cmp(&x.place(b.levels[factor]))
            });
            let Some((least, _)) = line.split_first() else {
                continue;
            };
            let points = line.iter().filter_map(|row| {
                let at = x.place(row.levels[factor]);
                point(&data, row, least, factor, at)
            });
            let label = series_levels.get(number).zip(parts.series);
            panel.series.push(Series::of_points(
                label.map_or_else(String::new, |(level, i)| {
                    labels::level(data.factors[i], level)
                }),
                number,
                Look::Line,
                points.collect(),
            ));
        }
        let places = rows().map(|row| x.place(row.levels[factor]));
        panel.series.push(in_proportion(places, count));
        panels.push(panel);
    }
    let y = y_axis(&panels, quantity, options);
    for panel in &mut panels {
        panel.y = y.clone();
    }
    Ok(FigureModel {
        description: format!(
            "{} over that of the least number of {}",
            super::subject(runs, quantity),
            labels::noun(name)
        ),
        legend: super::legend(&data, parts.series),
        hollow: super::hollow(data.rows.iter().map(|row| row.cell)),
        note: "Ratios to the least level, within the blocks that both share; bars: 95 % interval of the ratio.".to_owned(),
        ..FigureModel::of(panels)
    })
}

fn parallel(data: &Data<'_>, options: &Options) -> Result<usize> {
    let named = |name: &str| data.factors.iter().position(|factor| *factor == name);
    let found = match &options.x {
        Some(x) => named(x).filter(|i| data.positions(*i).is_some()),
        None => PARALLEL.into_iter().find_map(named),
    };
    found.ok_or_else(|| {
        Error::usage("nothing that makes the workload more parallel varies in the data").hint(
            "sweep threads or depth (--set threads=1,2,4), name a factor of numbers with --x, or choose another figure with --kind",
        )
    })
}

fn point(
    data: &Data<'_>,
    row: &CellValues<'_>,
    least: &CellValues<'_>,
    factor: usize,
    x: f64,
) -> Option<Mark> {
    let ratio = claim::ratio(trials(least, row), trials(row, least))?;
    let is_least = std::ptr::eq(row, least);
    let verdict = verdict(row.cell);
    let level = labels::level(data.factors[factor], row.levels[factor]);
    Some(Mark {
        x,
        y: ratio.ratio,
        interval: ratio.interval.filter(|_| !is_least),
        hollow: !row.cell.is_target(),
        origin: Origin {
            cell: Some(row.cell.cell.id),
            n: Some(row.summary.n),
            x: level.clone(),
            text: format!(
                "{level}: {} times {}; n = {}; {verdict}",
                labels::number(ratio.ratio),
                labels::level(data.factors[factor], least.levels[factor]),
                row.summary.n
            ),
            verdict,
        },
    })
}

/// The values of a row, with the blocks that it can share with another.
fn trials<'a>(row: &'a CellValues<'_>, beside: &CellValues<'_>) -> Trials<'a> {
    // A trial may lack a value of a quantity other than the response.
    let has_blocks = row.run == beside.run && row.values.len() == row.cell.blocks.len();
    let blocks: &[u32] = if has_blocks { &row.cell.blocks } else { &[] };
    (&row.values, blocks)
}

/// The line of proportional growth.
fn in_proportion(places: impl Iterator<Item = f64>, place: usize) -> Series {
    let mut places: Vec<f64> = places.collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let least = places.first().copied().unwrap_or(1.0);
    let points = places.iter().map(|x| Mark {
        x: *x,
        y: x / least,
        interval: None,
        hollow: false,
        origin: Origin::default(),
    });
    Series::of_points(
        "in proportion".to_owned(),
        place,
        Look::Curve,
        points.collect(),
    )
}

fn y_axis(panels: &[Panel], quantity: Response, options: &Options) -> Axis {
    let points = panels
        .iter()
        .flat_map(|p| &p.series)
        .flat_map(|s| &s.points);
    let values: Vec<f64> = points
        .flat_map(|point| {
            let (low, high) = point.interval.unwrap_or((point.y, point.y));
            [point.y, low, high]
        })
        .collect();
    Axis {
        label: format!(
            "{} over that of the least",
            labels::capital(&labels::of_response(quantity))
        ),
        scale: match options.log_y.unwrap_or(true) {
            true => Scale::log(values.iter().copied()),
            false => Scale::linear(values.iter().copied(), true),
        },
        ticks: Ticks::Number,
    }
}
