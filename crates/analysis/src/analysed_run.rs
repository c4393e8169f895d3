//! A run with its analysis, made once and shared by tables, figures, comparisons, findings and reports.

use crate::analysis::{Analysis, analyse};
use crate::answer::RunAnswer;
use iolab_record::{RunRecord, SampleLatency};
use iolab_workload::Result;
use iolab_workload::group::ALL;
use iolab_workload::response::Metric;

/// A record and its analysis.
#[derive(Debug, Clone, PartialEq)]
pub struct AnalysedRun {
    record: RunRecord,
    analysis: Analysis,
    answer: Option<RunAnswer>,
}

impl AnalysedRun {
    /// Analyses a record.
    pub fn of(record: RunRecord) -> Self {
        let analysis = analyse(&record);
        Self {
            record,
            analysis,
            answer: None,
        }
    }

    /// Analyses a record by another quantity than the response of its experiment, where one is given: of the group that it names,
    /// otherwise of the experiment's group.
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

    /// Its analysis.
    pub fn analysis(&self) -> &Analysis {
        &self.analysis
    }
}
