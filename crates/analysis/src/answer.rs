//! What a run answers to its question: a function of its run file, for whoever wants to know.

use std::collections::BTreeSet;
use std::time::Duration;

use iolab_record::question::Asked;
use iolab_record::{RunRecord, RunStatus, SampleLatency};
use iolab_spec::Result;
use iolab_spec::level::Levels;

use crate::fitness::{Answer, Evidence, Judged, Verdicts, doubts, doubts_of_run, judge, together};
use crate::slo::{Limit, limit};

/// What a run answers to its question.
#[derive(Debug, Clone, PartialEq)]
pub struct RunAnswer {
    /// What was found.
    pub found: Found,
    /// How the run stands: unless it is done, nothing is answered.
    pub status: RunStatus,
}

/// What the trials of a run say of the levels of its question.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// Whether they hold in every cell.
    Cells(Verdicts),
    /// Up to which rate they hold.
    Limit(FoundLimit),
    /// Whether they hold in a workload of a requirement.
    Workload(FoundWorkload),
}

/// What a search for a rate found.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundLimit {
    /// The levels.
    pub levels: Levels,
    /// Between which rates they cease to hold.
    pub limit: Limit,
    /// Why its times may say nothing of the storage.
    pub doubts: Vec<String>,
    /// How long the trials lasted, the shortest and the longest; `None` without trials.
    pub times: Option<(Duration, Duration)>,
}

/// What the run of a workload found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FoundWorkload {
    /// Each level, in the order of the question; none where nothing was measured.
    pub levels: Vec<Judged>,
    /// Why its times may say nothing of the storage.
    pub doubts: Vec<String>,
    /// Time under load, ns.
    pub load_ns: u64,
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
            Asked::Cells => Found::Cells(Verdicts::of(&levels, record, latencies)?),
            Asked::Limit => Found::Limit(FoundLimit {
                limit: limit(&levels, record, latencies)?,
                levels,
                doubts: doubts_of_run(record),
                times: times(record),
            }),
            Asked::Fit(_) => Found::Workload(FoundWorkload::of(&levels, record, latencies)?),
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
            Found::Cells(verdicts) => verdicts.answer,
            Found::Limit(found) if found.is_known() => Answer::Yes,
            Found::Limit(_) => Answer::CannotTell,
            Found::Workload(found) => found.answer(),
        }
    }
}

impl FoundLimit {
    fn is_known(&self) -> bool {
        self.limit.estimate.is_some() && self.doubts.is_empty()
    }
}

impl FoundWorkload {
    /// A workload has one cell.
    fn of(
        levels: &Levels,
        record: &RunRecord,
        latencies: impl IntoIterator<Item = Result<SampleLatency>>,
    ) -> Result<Self> {
        let evidence = Evidence::of_cells(record, latencies)?;
        let cells = record.cells.iter();
        let mut cells = cells.filter_map(|cell| Some((cell, evidence.get(&cell.id)?)));
        let Some((cell, evidence)) = cells.next() else {
            return Ok(Self::default());
        };
        let levels = levels.all().iter();
        Ok(Self {
            levels: levels.map(|level| judge(level, evidence)).collect(),
            doubts: doubts(cell, evidence.samples(), &record.environment),
            load_ns: evidence.load_ns(),
        })
    }

    /// All levels together.
    pub fn answer(&self) -> Answer {
        together(
            self.levels
                .iter()
                .map(|judged| judged.despite(&self.doubts)),
        )
    }
}

/// How long the trials of the cells that were visited lasted, the shortest and the longest.
fn times(record: &RunRecord) -> Option<(Duration, Duration)> {
    let visited: BTreeSet<i64> = record.samples.iter().map(|sample| sample.cell).collect();
    let cells = record
        .cells
        .iter()
        .filter(|cell| visited.contains(&cell.id));
    let times = || cells.clone().filter_map(|cell| cell.trial().limit.time);
    times().min().zip(times().max())
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
