//! Two factors as rows and columns, the value as colour.

use iolab_analysis::analysis::Response;
use iolab_workload::units::significant;
use iolab_workload::{Error, Result};

use super::super::FigureRun;
use super::super::data::{Data, Parts};
use super::super::labels;
use super::super::model::{Field, FigureModel, step};
use super::super::options::{Center, Options};
use super::axis::{self, FactorAxis};
use super::response::center;

/// Makes the model.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage) when fewer than two factors vary.
pub(in super::super) fn model(runs: &[FigureRun<'_>], options: &Options) -> Result<FigureModel> {
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
