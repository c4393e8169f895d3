//! Fields that identify the run and the cell of an exported row.

use iolab_analysis::analysed_run::RunAnswer;
use iolab_analysis::runs::RunName;
use iolab_record::{Cell, RunRecord};
use iolab_workload::escape_control::escape_control;

use crate::data_column::DataColumn;
use crate::rows::{Field, text};

/// A run with its answer.
pub type Exported<'a> = (RunName, &'a RunRecord, Option<&'a RunAnswer>);

/// The columns that identify the run of a row.
pub(crate) fn run_columns<'c, R: 'c>(of: fn(&R) -> &RunName) -> Vec<DataColumn<'c, R>> {
    let text = |name, doc, value: fn(&RunName) -> Option<&str>| {
        DataColumn::text(name, doc, move |row: &R| value(of(row)).map(str::to_owned))
    };
    vec![
        text(
            "run",
            "the run: 16 hexadecimal digits, the same in every copy of its file",
            |run| Some(&run.id),
        )
        .known(),
        text("file", "its file, as it was named", |run| Some(&run.file)).known(),
        text(
            "host",
            "the host that planned it, where that is known",
            |run| run.host.as_deref(),
        ),
        text("run_started_utc", "when it began: RFC 3339, UTC", |run| {
            Some(&run.started_utc)
        })
        .known(),
    ]
}

/// Fields that identify the run of a row: `run`, `file`, `host` and `run_started_utc`.
pub fn run_fields(run: &RunName) -> Vec<Field> {
    let columns = run_columns(|run: &RunName| run);
    columns
        .iter()
        .filter_map(|column| column.field(run))
        .collect()
}

pub(crate) fn level_fields(factors: &[String], cell: &Cell) -> Vec<Field> {
    factors
        .iter()
        .zip(&cell.levels)
        .map(|(factor, level)| text(&format!("level_{}", escape_control(factor)), level))
        .collect()
}
