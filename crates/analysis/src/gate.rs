//! A new run against the last ones of the same experiment on the same machine and target: for a CI job that must fail when
//! storage got slower, and only then.

use iolab_spec::{Error, Result};

use crate::compare::Conclusion;
use crate::runs::kin::{Kinship, LeftOut};
use crate::runs::{FiledRun, HISTORY_MIN, RunCriteria, RunsComparison};
use iolab_record::RunStatus;

/// What is asked of a gate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GateTerms {
    /// How changes are judged.
    pub runs: RunCriteria,
    /// Which runs are of one line.
    pub kinship: Kinship,
    /// Most earlier runs that are used: the last ones.
    pub last: usize,
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
    pub unused: Vec<LeftOut>,
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
        })
    }

    /// How many earlier runs are missing; `None` where there are enough.
    pub fn missing(&self) -> Option<usize> {
        HISTORY_MIN
            .checked_sub(self.history)
            .filter(|missing| *missing > 0)
    }

    /// How it ends for a script: an alarm before everything else, and no answer where earlier runs are missing, a cell of
    /// theirs was not measured, or a change may come from a disturbance.
    pub fn conclusion(&self) -> Conclusion {
        let compared = self.compared.as_ref();
        compared.map_or(Conclusion::CannotTell, RunsComparison::conclusion)
    }
}
