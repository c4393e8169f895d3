//! Rows of traced trials: what tracing counted, and the stages of their requests and syncs.

use iolab_analysis::runs::RunName;
use iolab_record::tables::{self, SAMPLE};
use iolab_record::{RunRecord, Sample};
use serde_json::Value;

use super::{level_fields, run_columns};
use crate::data_column::{DataColumn, row_schema};
use crate::document_header::LEVEL;
use crate::rows::Field;

/// What the columns of one row are computed from.
struct StagesRow<'a> {
    name: &'a RunName,
    record: &'a RunRecord,
    sample: &'a Sample,
}

/// The columns of the rows: those before the levels of the factors, and those behind them.
struct Columns<'a> {
    before: Vec<DataColumn<'a, StagesRow<'a>>>,
    behind: Vec<DataColumn<'a, StagesRow<'a>>>,
}

fn columns<'a>() -> Columns<'a> {
    let mut before = run_columns(|row: &StagesRow<'_>| row.name);
    before.extend([
        DataColumn::text(
            "experiment",
            "name of the experiment",
            |row: &StagesRow<'_>| Some(&row.record.experiment.name),
        )
        .known(),
        DataColumn::whole(
            "sample",
            "id of the trial in its run file",
            |row: &StagesRow<'_>| Some(row.sample.id),
        )
        .known(),
        DataColumn::whole(
            "cell",
            "id of the cell in its run file, as in `table`",
            |row: &StagesRow<'_>| Some(row.sample.cell),
        )
        .known(),
    ]);
    let traced: Vec<&str> = tables::stages().iter().map(|column| column.name).collect();
    let of_trial = ["block", "warmup", "ok"];
    let shown = SAMPLE
        .columns
        .iter()
        .filter(|column| of_trial.contains(&column.name) || traced.contains(&column.name));
    let behind = shown
        .map(|column| DataColumn::stored(column, |row: &StagesRow<'_>| row.sample))
        .collect();
    Columns { before, behind }
}

/// The rows of the traced trials of a run.
pub(super) fn rows(name: &RunName, record: &RunRecord) -> Vec<Vec<Field>> {
    let Columns { before, behind } = columns();
    let traced = record.samples.iter();
    let traced = traced.filter(|sample| sample.traced.is_some());
    let rows = traced.filter_map(|sample| {
        let cell = record.cells.iter().find(|cell| cell.id == sample.cell)?;
        let row = StagesRow {
            name,
            record,
            sample,
        };
        let mut fields: Vec<Field> = before.iter().filter_map(|c| c.field(&row)).collect();
        fields.extend(level_fields(&record.experiment.factors, cell));
        fields.extend(behind.iter().filter_map(|c| c.field(&row)));
        Some(fields)
    });
    rows.collect()
}

/// What JSON Schema says of a row.
pub(crate) fn schema() -> Value {
    let Columns { mut before, behind } = columns();
    before.extend(behind);
    row_schema(&before, &[("level_", LEVEL)])
}

#[cfg(test)]
mod tests {
    use iolab_synthetic::{LayerShares, Layers, traced};

    use super::*;

    #[test]
    fn rows_have_the_names_that_the_schema_has() {
        let division = LayerShares {
            first: 0.5,
            second: 0.5,
            sigma: 0.1,
        };
        let layers = Layers {
            mean: division,
            tail: division,
            sync: division,
            sync_tail: division,
        };
        let record = traced(1, 3, &[layers]);
        let name = RunName::of("traced.iolab", &record);
        let rows = rows(&name, &record);
        assert_eq!(rows.len(), 3);
        let schema = schema();
        let named = schema["properties"].as_object().expect("an object");
        let level = |name: &str| name.starts_with("level_");
        for row in &rows {
            let unnamed = row
                .iter()
                .filter(|(name, _)| !level(name) && !named.contains_key(name));
            assert_eq!(unnamed.map(|(name, _)| name).collect::<Vec<_>>(), [""; 0]);
            let flush = row
                .iter()
                .find(|(name, _)| name == "stage_sync_flush_mean_ns");
            assert!(
                flush.is_some_and(|(_, value)| value.is_number()),
                "{flush:?}"
            );
        }
    }
}
