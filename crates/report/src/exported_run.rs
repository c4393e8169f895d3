//! Fields that identify the run and the cell of an exported row.

use iolab_analysis::answer::RunAnswer;
use iolab_analysis::runs::RunName;
use iolab_record::{Cell, RunRecord};
use iolab_workload::escape_control::escape_control;
use serde_json::Value;

use crate::rows::{Field, field, text};

/// A run with its answer.
pub type Exported<'a> = (RunName, &'a RunRecord, Option<&'a RunAnswer>);

/// A column that identifies the run of a row.
pub(crate) struct RunColumn {
    pub(super) name: &'static str,
    pub(super) doc: &'static str,
    /// Whether every run has a value.
    pub(super) is_known: bool,
    pub(super) value: fn(&RunName) -> Option<&str>,
}

/// The columns that identify the run of a row.
pub(crate) const RUN_COLUMNS: [RunColumn; 4] = [
    RunColumn {
        name: "run",
        doc: "the run: 16 hexadecimal digits, the same in every copy of its file",
        is_known: true,
        value: |run| Some(&run.id),
    },
    RunColumn {
        name: "file",
        doc: "its file, as it was named",
        is_known: true,
        value: |run| Some(&run.file),
    },
    RunColumn {
        name: "host",
        doc: "the host that planned it, where that is known",
        is_known: false,
        value: |run| run.host.as_deref(),
    },
    RunColumn {
        name: "run_started_utc",
        doc: "when it began: RFC 3339, UTC",
        is_known: true,
        value: |run| Some(&run.started_utc),
    },
];

/// Fields that identify the run of a row: `run`, `file`, `host` and `run_started_utc`.
pub fn run_fields(run: &RunName) -> [Field; 4] {
    RUN_COLUMNS.map(|column| optional_text(column.name, (column.value)(run)))
}

pub(crate) fn level_fields(factors: &[String], cell: &Cell) -> Vec<Field> {
    factors
        .iter()
        .zip(&cell.levels)
        .map(|(factor, level)| text(&format!("level_{}", escape_control(factor)), level))
        .collect()
}

pub(super) fn optional_text(name: &str, value: Option<&str>) -> Field {
    value.map_or_else(|| field(name, Value::Null), |value| text(name, value))
}
