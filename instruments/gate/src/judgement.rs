//! Compares a new run with the last ones of the same experiment on the same machine and target: for a CI job that must fail if
//! and only if storage got slower.

use iolab_analysis::compare::{CellComparison, Comparison, Conclusion};
use iolab_analysis::consent::command_to_finish;
use iolab_analysis::runs::comparable_runs::{Comparability, ExcludedRun};
use iolab_analysis::runs::{FiledRun, RunCriteria};
use iolab_record::RunStatus;
use iolab_workload::{Error, Result};
use schemars::JsonSchema;
use serde::Serialize;

/// Fewest earlier runs for a comparison with a new one.
pub const HISTORY_MIN: usize = 5;

/// The parameters of a gate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GateTerms {
    /// Criteria for comparable runs.
    pub kinship: Comparability,
    /// Most earlier runs used, the latest ones.
    pub last: usize,
    /// The change, as a share, that the gate must be able to detect in each cell; `None` for any.
    pub must_find: Option<f64>,
}

/// The result of a gate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Gate {
    /// The file of the new run.
    pub file: String,
    /// The new run compared with the earlier ones; `null` if there are too few.
    pub compared: Option<Comparison>,
    /// Number of earlier runs.
    pub history: usize,
    /// Other runs, each with the reason for its exclusion.
    pub unused: Vec<ExcludedRun>,
    /// The change that it must be able to detect, a share; `null` for any.
    pub must_find: Option<f64>,
}

/// The changes detectable with probability [`GATE_POWER`](iolab_analysis::runs::GATE_POWER), as factors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DetectableChanges {
    /// The change, as a factor, that the most sensitive cell can detect.
    pub best: f64,
    /// The change, as a factor, that the least sensitive cell can detect; infinite if a cell cannot detect any.
    pub worst: f64,
}

impl Gate {
    /// Compares a new run with earlier runs in `all` of the same experiment, machine and target.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): the new run is not finished, has no cell in common with the earlier ones, or
    /// a definition cannot be read.
    pub fn of(new: FiledRun<'_>, all: &[FiledRun<'_>], terms: &GateTerms) -> Result<Self> {
        let record = new.run.record();
        if record.run.status != RunStatus::Done {
            let command = command_to_finish([(record, new.file)]);
            return Err(unfinished(new.file, command));
        }
        let (history, unused) = terms.kinship.history(&new, all, terms.last)?;
        let compared = if history.len() < HISTORY_MIN {
            None
        } else {
            let any = RunCriteria {
                margin: 0.0,
                gate: Some(HISTORY_MIN),
            };
            Some(Comparison::of_several(&history, &[new], any)?)
        };
        Ok(Self {
            file: new.file.to_owned(),
            compared,
            history: history.len(),
            unused,
            must_find: terms.must_find,
        })
    }

    /// The detectable changes; `None` without a comparison.
    pub fn detectable_changes(&self) -> Option<DetectableChanges> {
        let cells = &self.compared.as_ref()?.cells;
        let found = cells.iter().map(|cell| {
            let detectable = cell.detectable;
            detectable.map_or(f64::INFINITY, |share| 1.0 + share)
        });
        let found: Vec<f64> = found.collect();
        Some(DetectableChanges {
            best: found.iter().copied().reduce(f64::min)?,
            worst: found.iter().copied().reduce(f64::max)?,
        })
    }

    /// Number of cells that could not have detected the required change.
    pub fn blind(&self) -> usize {
        let Some((compared, must_find)) = self.compared.as_ref().zip(self.must_find) else {
            return 0;
        };
        let sees = |cell: &&CellComparison| {
            let detectable = cell.detectable;
            detectable.is_some_and(|share| share <= must_find)
        };
        compared.cells.len() - compared.cells.iter().filter(sees).count()
    }

    /// The conclusion for scripts. A regression takes precedence; otherwise undecided where earlier runs are missing, one of
    /// their cells was not measured, a disturbance may explain a change, or the required change was not detectable.
    pub fn conclusion(&self) -> Conclusion {
        let Some(compared) = &self.compared else {
            return Conclusion::CannotTell;
        };
        match compared.conclusion() {
            Conclusion::Settled if self.blind() > 0 || !compared.only_base.is_empty() => {
                Conclusion::CannotTell
            }
            conclusion => conclusion,
        }
    }
}

/// The error for an unfinished run, with the command that finishes it; `None` for runs on a model.
fn unfinished(file: &str, command: Option<String>) -> Error {
    Error::usage(format!("the run of {file} is not finished")).hint(match command {
        Some(command) => format!("finish it: {command}"),
        None => "run it again: the state of a model is not kept".to_owned(),
    })
}
