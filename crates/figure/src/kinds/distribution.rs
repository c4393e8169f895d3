//! The cumulative distribution of the trials of each cell.

use super::super::FigureRun;
use super::super::data::{CellValues, Data};
use super::super::model::{Axis, FigureModel, Look, Mark, Panel, Row, Ticks, marks_of, panels};
use super::super::options::Options;
use super::super::scale::Scale;
use super::axis;
use iolab_workload::Result;

/// Makes the model: a line for each cell that rises at each of its trials, marked at the median.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): no trial has a value, or more cells than can be distinguished.
pub(in super::super) fn model(runs: &[FigureRun<'_>], options: &Options) -> Result<FigureModel> {
    let quantity = super::quantity(runs, options);
    let data = Data::new(runs, quantity)?.with_roles(options, false)?;
    let rows = data.rows.iter().map(|row| data.row(row, steps(row, &data)));
    let rows: Vec<Row> = rows.collect();
    let values: Vec<f64> = marks_of(&rows).map(|mark| mark.x).collect();
    let noun = super::measured(runs, quantity);
    let x = axis::named((quantity, &noun), &values, false, options.log_x);
    let scale = Scale::Linear {
        low: 0.0,
        high: 100.0,
    };
    let y = Axis::new("Trials up to that value (%)", scale, Ticks::Number);
    Ok(FigureModel {
        description: format!(
            "{}, cumulative distribution of the trials",
            super::subject(runs, quantity)
        ),
        unit: "%".to_owned(),
        note: "A step for each trial; markers: medians.".to_owned(),
        ..data.figure(panels(rows, &Panel::new(x, y, Look::Curve)))
    })
}

/// The corners of the steps of a cell, in the order of its values, and its median.
fn steps(row: &CellValues<'_>, data: &Data<'_>) -> Vec<Mark> {
    let mut values = row.values.clone();
    values.sort_by(f64::total_cmp);
    let share = |trials: usize| 100.0 * trials as f64 / values.len() as f64;
    let corners = values.iter().enumerate().flat_map(|(place, value)| {
        [place, place + 1].map(|trials| Mark {
            x: *value,
            y: share(trials),
            ..Mark::default()
        })
    });
    let (median, n) = (row.summary.median, row.summary.n);
    let written = data.quantity.format(median);
    let text = format!(
        "{}: median {written}; n = {n}",
        super::cell_name(&row.levels)
    );
    let median = super::mark(row.cell, Some(n), (median, 50.0), written, &text);
    let mut marks: Vec<Mark> = corners.chain([median]).collect();
    marks.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
    marks
}
