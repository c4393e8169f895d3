//! A run with its analysis and its answer, made once and shared by all outputs.

use std::sync::OnceLock;

use crate::analysis::{Analysis, analyse, analyse_timed};
use crate::fitness::{Answer, CellAnswer, answers_of_cells, reasoned};
use crate::slo::SearchAnswer;
use iolab_record::{Asked, RunRecord, RunStatus, SampleLatency, ShownLatency};
use iolab_workload::Result;
use iolab_workload::group::ALL;
use iolab_workload::operation::Operation;
use iolab_workload::response::Metric;

/// A record and its analysis.
#[derive(Debug, Clone, PartialEq)]
pub struct AnalysedRun {
    record: RunRecord,
    analysis: Analysis,
    answer: Option<RunAnswer>,
    by_operation: OnceLock<Vec<(Operation, Analysis)>>,
}

impl AnalysedRun {
    /// Analyses a record.
    pub fn of(record: RunRecord) -> Self {
        let analysis = analyse(&record);
        Self {
            record,
            analysis,
            answer: None,
            by_operation: OnceLock::new(),
        }
    }

    /// Analyses a record by `metric` in place of its own response, for the group that the metric names,
    /// otherwise for the experiment's group. Without a metric, as [`AnalysedRun::of`].
    pub fn by(mut record: RunRecord, metric: Option<&Metric>) -> Self {
        if let Some(metric) = metric {
            record.experiment.response = metric.response;
            // The group `all` is the whole trial.
            match metric.group.as_deref() {
                None => {}
                Some(ALL) => record.experiment.response_group = None,
                group => record.experiment.response_group = group.map(str::to_owned),
            }
        }
        Self::of(record)
    }

    /// Adds the answer of the run to its question, where it has one.
    ///
    /// # Errors
    ///
    /// The first error of `latencies`.
    pub fn answered(
        mut self,
        latencies: impl IntoIterator<Item = Result<SampleLatency>>,
    ) -> Result<Self> {
        self.answer = RunAnswer::of(&self.record, latencies)?;
        Ok(self)
    }

    /// The answer of the run to its question.
    pub fn answer(&self) -> Option<&RunAnswer> {
        self.answer.as_ref()
    }

    /// The content of the run file.
    pub fn record(&self) -> &RunRecord {
        &self.record
    }

    /// The analysis of the run.
    pub fn analysis(&self) -> &Analysis {
        &self.analysis
    }

    /// The analysis by the latency of each operation, starting with the one that [`AnalysedRun::analysis`]
    /// shows. Empty unless the response is a latency and a cell asks for several operations.
    pub fn by_operation(&self) -> &[(Operation, Analysis)] {
        self.by_operation.get_or_init(|| {
            let is_of_one = matches!(self.analysis.timed, ShownLatency::Of(_));
            if !is_of_one || !self.analysis.response.is_latency() {
                return Vec::new();
            }
            let asked = Operation::ALL.iter().filter(|operation| {
                let mut cells = self.analysis.cells.iter();
                cells.any(|cell| self.analysis.asks(cell, **operation))
            });
            let each = asked.map(|operation| {
                let timed = |number| match self.record.timed(number) {
                    ShownLatency::Own => ShownLatency::Own,
                    ShownLatency::Of(_) => ShownLatency::Of(*operation),
                };
                (*operation, analyse_timed(&self.record, timed))
            });
            each.collect()
        })
    }
}

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
    /// Answers of each cell: one for a workload of a requirement.
    Cells(Vec<CellAnswer>),
    /// The highest rate at which the levels hold.
    Limit(Box<SearchAnswer>),
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
            Asked::Cells | Asked::Fit(_) => {
                AnswerBasis::Cells(answers_of_cells(&levels, record, latencies)?)
            }
            Asked::Limit => {
                AnswerBasis::Limit(Box::new(SearchAnswer::of(&levels, record, latencies)?))
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
            AnswerBasis::Cells(cells) => reasoned(cells).answer(),
            AnswerBasis::Limit(found) => found.answer(),
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
