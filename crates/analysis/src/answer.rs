//! The answer of a run to its question: a pure function of its run file.

use iolab_record::question::Asked;
use iolab_record::{RunRecord, RunStatus, SampleLatency};
use iolab_workload::Result;

use crate::fitness::{Answer, CellAnswer, Verdicts};
use crate::slo::SearchAnswer;

/// The answer of a run to its question.
#[derive(Debug, Clone, PartialEq)]
pub struct RunAnswer {
    /// The basis of the answer.
    pub found: AnswerBasis,
    /// The state of the run: there is no answer unless it is done.
    pub status: RunStatus,
}

/// The result for the service levels of the question.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerBasis {
    /// Verdicts on each cell.
    Cells(Verdicts),
    /// The highest rate at which the levels hold.
    Limit(Box<SearchAnswer>),
    /// Answer for a workload of a requirement.
    Workload(CellAnswer),
}

impl RunAnswer {
    /// The answer of a run; `None` where it has no question.
    ///
    /// # Errors
    ///
    /// The first error of `latencies`.
    pub fn of(
        record: &RunRecord,
        latencies: impl IntoIterator<Item = Result<SampleLatency>>,
    ) -> Result<Option<Self>> {
        let Some(question) = &record.experiment.asked else {
            return Ok(None);
        };
        let levels = question.levels();
        let found = match &question.of {
            Asked::Cells => AnswerBasis::Cells(Verdicts::of(&levels, record, latencies)?),
            Asked::Limit => {
                AnswerBasis::Limit(Box::new(SearchAnswer::of(&levels, record, latencies)?))
            }
            Asked::Fit(_) => {
                // A workload has one cell.
                let cells = Verdicts::of(&levels, record, latencies)?.cells;
                AnswerBasis::Workload(cells.into_iter().next().unwrap_or_default())
            }
        };
        Ok(Some(Self {
            found,
            status: record.run.status,
        }))
    }

    /// Whether the run has measured everything planned.
    pub fn is_complete(&self) -> bool {
        self.status == RunStatus::Done
    }

    /// The answer; a search answers yes if it found the limit.
    pub fn answer(&self) -> Answer {
        match &self.found {
            _ if !self.is_complete() => Answer::CannotTell,
            AnswerBasis::Cells(verdicts) => verdicts.reasoned().answer(),
            AnswerBasis::Limit(found) => found.answer(),
            AnswerBasis::Workload(found) => found.answer(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_record::tables::ANSWERS;

    #[test]
    fn run_files_have_a_word_for_each_answer() {
        assert_eq!(Answer::NAMES, ANSWERS);
    }
}
