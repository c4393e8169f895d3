//! The definition and the identity of a run.

use schemars::JsonSchema;
use serde::Serialize;

use iolab_plan::experiment::Experiment;
use iolab_record::RunRecord;
use iolab_workload::Result;

/// The definition of a run.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage) if it cannot be read.
pub(crate) fn definition(record: &RunRecord) -> Result<Experiment> {
    Experiment::from_toml(&record.experiment.toml, "the run file")
}

/// The identity of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct RunName {
    /// The path as the user wrote it.
    pub file: String,
    /// The run: 16 hexadecimal digits, the same in every copy of its file.
    #[serde(rename = "run")]
    pub id: String,
    /// Start: RFC 3339, UTC.
    #[serde(rename = "run_started_utc")]
    pub started_utc: String,
    /// Host of the run; `null` where unknown.
    pub host: Option<String>,
}

impl RunName {
    /// The identity of a file's run.
    pub fn of(file: &str, record: &RunRecord) -> Self {
        Self {
            file: file.to_owned(),
            id: record.id(),
            started_utc: record.run.started_utc.clone(),
            host: record.host(),
        }
    }
}
