//! Whether levels hold in the cells of a run.

use iolab_plan::cells::label;
use iolab_record::{RunRecord, SampleLatency};
use iolab_spec::Result;
use iolab_spec::level::Levels;

use super::{Answer, Evidence, Judged, doubts_of_run, judge, together};

/// A level in a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The cell: its levels, or its rate where it is the only one.
    pub cell: String,
    /// The level with what was found.
    pub judged: Judged,
    /// The answer, doubts considered.
    pub answer: Answer,
}

/// Every level in every cell of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdicts {
    /// In the order of the cells and the levels; none of cells that were not measured.
    pub all: Vec<Verdict>,
    /// Why the times may say nothing of the storage.
    pub doubts: Vec<String>,
    /// All of them together.
    pub answer: Answer,
}

impl Verdicts {
    /// What a run says of levels.
    ///
    /// # Errors
    /// The first of `latencies`.
    pub fn of(
        levels: &Levels,
        record: &RunRecord,
        latencies: impl IntoIterator<Item = Result<SampleLatency>>,
    ) -> Result<Self> {
        let evidence = Evidence::of_cells(record, latencies)?;
        let doubts = doubts_of_run(record);
        let mut all = Vec::new();
        for cell in &record.cells {
            let Some(evidence) = evidence.get(&cell.id) else {
                continue;
            };
            let name = match record.experiment.factors.as_slice() {
                [] => cell
                    .trial()
                    .rate
                    .map_or_else(String::new, |rate| format!("rate={rate}")),
                factors => label(factors, &cell.levels),
            };
            all.extend(levels.all().iter().map(|level| {
                let judged = judge(level, evidence);
                Verdict {
                    cell: name.clone(),
                    answer: judged.despite(&doubts),
                    judged,
                }
            }));
        }
        Ok(Self {
            answer: together(all.iter().map(|verdict| verdict.answer)),
            all,
            doubts,
        })
    }
}
