//! A new run against the last ones of the same experiment on the same machine and target: for a CI job that must fail when
//! storage got slower, and only then.

use iolab_workload::{Error, Result};

use crate::compare::Conclusion;
use crate::runs::comparable_runs::{Comparability, ExcludedRun};
use crate::runs::{FiledRun, HISTORY_MIN, RunCriteria, RunsCell, RunsComparison};
use iolab_record::RunStatus;

/// What is asked of a gate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GateTerms {
    /// How changes are judged.
    pub runs: RunCriteria,
    /// Which runs are of one line.
    pub kinship: Comparability,
    /// Most earlier runs that are used: the last ones.
    pub last: usize,
    /// The change, as a share, that the gate must be able to find in each cell; `None` where any will do.
    pub must_find: Option<f64>,
}

/// What a gate says.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// The file of the new run.
    pub file: String,
    /// The new run against the earlier ones; `None` where these are too few.
    pub compared: Option<RunsComparison>,
    /// How many earlier runs there are.
    pub history: usize,
    /// Why other runs are left out: a reason for each file.
    pub unused: Vec<ExcludedRun>,
    /// The change that it must be able to find.
    pub must_find: Option<f64>,
}

/// How small a change is found in a cell with a chance of [`GATE_POWER`](crate::runs::GATE_POWER), as a factor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sight {
    /// In the cell where the smallest change is found.
    pub best: f64,
    /// In the one where it takes the largest; infinite where a cell has none that would be found.
    pub worst: f64,
}

impl Gate {
    /// Holds a new run against those of `all` that are earlier runs of the same experiment, machine and target.
    ///
    /// # Errors
    /// Of kind usage: the new run is not finished, has no cell in common with the earlier ones, or a definition cannot be
    /// read.
    pub fn of(new: FiledRun<'_>, all: &[FiledRun<'_>], terms: &GateTerms) -> Result<Self> {
        if new.run.record().run.status != RunStatus::Done {
            return Err(
                Error::usage(format!("the run of {} is not finished", new.file))
                    .hint(format!("finish it: iolab resume {}", new.file)),
            );
        }
        let (history, unused) = terms.kinship.history(&new, all, terms.last)?;
        let compared = if history.len() < HISTORY_MIN {
            None
        } else {
            Some(RunsComparison::of(&history, &[new], terms.runs)?)
        };
        Ok(Self {
            file: new.file.to_owned(),
            compared,
            history: history.len(),
            unused,
            must_find: terms.must_find,
        })
    }

    /// How many earlier runs are missing; `None` where there are enough.
    pub fn missing(&self) -> Option<usize> {
        HISTORY_MIN
            .checked_sub(self.history)
            .filter(|missing| *missing > 0)
    }

    /// How small a change it would have found; `None` where nothing is compared.
    pub fn sight(&self) -> Option<Sight> {
        let cells = &self.compared.as_ref()?.cells;
        let found = cells.iter().map(|cell| {
            let detectable = cell.judged.detectable;
            detectable.map_or(f64::INFINITY, |share| 1.0 + share)
        });
        let found: Vec<f64> = found.collect();
        Some(Sight {
            best: found.iter().copied().reduce(f64::min)?,
            worst: found.iter().copied().reduce(f64::max)?,
        })
    }

    /// Cells in which the change that must be found would not have been.
    pub fn blind(&self) -> usize {
        let Some((compared, must_find)) = self.compared.as_ref().zip(self.must_find) else {
            return 0;
        };
        let sees = |cell: &&RunsCell| {
            let detectable = cell.judged.detectable;
            detectable.is_some_and(|share| share <= must_find)
        };
        compared.cells.len() - compared.cells.iter().filter(sees).count()
    }

    /// How it ends for a script: an alarm before everything else, and no answer where earlier runs are missing, a cell of
    /// theirs was not measured, a change may come from a disturbance, or the change that must be found would not have been.
    pub fn conclusion(&self) -> Conclusion {
        let compared = self.compared.as_ref();
        match compared.map_or(Conclusion::CannotTell, RunsComparison::conclusion) {
            Conclusion::Settled if self.blind() > 0 => Conclusion::CannotTell,
            conclusion => conclusion,
        }
    }
}
