//! The answer of a run to its question: a pure function of its run file.

use iolab_record::question::Asked;
use iolab_record::{RunRecord, RunStatus, SampleLatency};
use iolab_workload::Result;
use iolab_workload::service_level::ServiceLevels;

use crate::fitness::{Answer, CellAnswer, Evidence, Verdicts};
use crate::slo::SearchAnswer;

/// What a run answers to its question.
#[derive(Debug, Clone, PartialEq)]
pub struct RunAnswer {
    /// What was found.
    pub found: AnswerBasis,
    /// How the run stands: unless it is done, nothing is answered.
    pub status: RunStatus,
}

/// What the trials of a run say of the levels of its question.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerBasis {
    /// Whether they hold in every cell.
    Cells(Verdicts),
    /// Up to which rate they hold.
    Limit(Box<SearchAnswer>),
    /// Whether they hold in a workload of a requirement.
    Workload(CellAnswer),
}

impl RunAnswer {
    /// What a run answers; `None` where it was asked nothing.
    ///
    /// # Errors
    /// The first of `latencies`.
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
            Asked::Fit(_) => AnswerBasis::Workload(of_workload(&levels, record, latencies)?),
        };
        Ok(Some(Self {
            found,
            status: record.run.status,
        }))
    }

    /// Whether the run has measured all that it was to measure.
    pub fn is_complete(&self) -> bool {
        self.status == RunStatus::Done
    }

    /// The answer itself; of a search yes where it found the limit.
    pub fn answer(&self) -> Answer {
        match &self.found {
            _ if !self.is_complete() => Answer::CannotTell,
            AnswerBasis::Cells(verdicts) => verdicts.answer,
            AnswerBasis::Limit(found) => found.answer(),
            AnswerBasis::Workload(found) => found.answer(),
        }
    }
}

/// What the run of a workload found; a workload has one cell. Nothing where nothing was measured.
fn of_workload(
    levels: &ServiceLevels,
    record: &RunRecord,
    latencies: impl IntoIterator<Item = Result<SampleLatency>>,
) -> Result<CellAnswer> {
    let evidence = Evidence::of_cells(record, latencies)?;
    let cells = record.cells.iter();
    let mut cells = cells.filter_map(|cell| Some((cell, evidence.get(&cell.id)?)));
    Ok(cells
        .next()
        .map_or_else(CellAnswer::default, |(cell, evidence)| {
            let environment = record.environment_of(cell);
            CellAnswer::of(String::new(), cell, evidence, &environment, levels.all())
        }))
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
