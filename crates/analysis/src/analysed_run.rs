//! A run with its analysis: the one value that tables, figures, comparisons, findings and reports share, so that a record
//! is analysed once.

use crate::analysis::{Analysis, analyse};
use crate::answer::RunAnswer;
use iolab_record::{RunRecord, SampleLatency};
use iolab_workload::Result;
use iolab_workload::group::ALL;
use iolab_workload::response::Metric;

/// A record and what [`analyse`] makes of it. The two always belong together.
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

    /// Analyses a record by another quantity than the response of its experiment, where there is one: of the group that it
    /// names, or else of the one that the experiment asks about.
    pub fn by(mut record: RunRecord, metric: Option<&Metric>) -> Self {
        if let Some(metric) = metric {
            record.experiment.response = metric.response;
            // All groups together are the trial as a whole.
            match metric.group.as_deref() {
                None => {}
                Some(ALL) => record.experiment.response_group = None,
                group => record.experiment.response_group = group.map(str::to_owned),
            }
        }
        Self::of(record)
    }

    /// With what the run answers to its question, where it has one.
    ///
    /// # Errors
    /// The first of `latencies`.
    pub fn answered(
        mut self,
        latencies: impl IntoIterator<Item = Result<SampleLatency>>,
    ) -> Result<Self> {
        self.answer = RunAnswer::of(&self.record, latencies)?;
        Ok(self)
    }

    /// What the run answers to its question.
    pub fn answer(&self) -> Option<&RunAnswer> {
        self.answer.as_ref()
    }

    /// What the run file holds.
    pub fn record(&self) -> &RunRecord {
        &self.record
    }

    /// Its analysis.
    pub fn analysis(&self) -> &Analysis {
        &self.analysis
    }
}
