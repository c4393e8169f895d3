//! The definition and the identity of a run.

use std::cell::RefCell;
use std::rc::Rc;

use schemars::JsonSchema;
use serde::Serialize;

use iolab_plan::experiment::Experiment;
use iolab_record::RunRecord;
use iolab_workload::Result;

/// Text and content of a definition.
type Read = (String, Rc<Experiment>);

thread_local! {
    static LAST: RefCell<Option<Read>> = const { RefCell::new(None) };
}

/// The definition of a run. Keeps the last one, because a run is analysed for each of its operations, and the
/// runs of a series share it.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage) if it cannot be read.
pub(crate) fn definition(record: &RunRecord) -> Result<Rc<Experiment>> {
    let text = &record.experiment.toml;
    let kept = LAST.with_borrow(|last| {
        let same = last.as_ref().filter(|(of, _)| of == text);
        same.map(|(_, definition)| Rc::clone(definition))
    });
    if let Some(kept) = kept {
        return Ok(kept);
    }
    let read = Rc::new(Experiment::from_toml(text, "the run file")?);
    LAST.set(Some((text.clone(), Rc::clone(&read))));
    Ok(read)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str) -> RunRecord {
        let definition = Experiment::find(name).expect("built in");
        let mut record = RunRecord::default();
        record.experiment.toml = definition.to_toml().expect("TOML");
        record
    }

    #[test]
    fn each_run_has_its_own_definition() {
        for name in ["read-size", "read-size", "disk-grid", "read-size"] {
            assert_eq!(definition(&record(name)).expect("readable").name, name);
        }
        assert!(definition(&RunRecord::default()).is_err());
    }
}
