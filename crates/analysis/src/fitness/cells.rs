//! Whether levels hold in the cells of a run.

use iolab_plan::cells::label;
use iolab_record::environment::Environment;
use iolab_record::{Cell, RunRecord, SampleLatency};
use iolab_spec::Result;
use iolab_spec::level::{Level, Levels};

use super::{Answer, Evidence, Judged, judge, together};
use crate::doubt::{Direction, Doubt, Doubts, ReachedLimit};

/// A level in a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelAnswer {
    /// The level with what was found, before any doubt.
    pub judged: Judged,
    /// What it comes to.
    pub answer: Answer,
    /// What turns a measured yes or no into "cannot tell"; none where it stands.
    pub turned_by: Vec<Doubt>,
}

/// Levels in a cell, and what they rest on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CellAnswer {
    /// The cell: its levels, or its rate where it is the only one.
    pub cell: String,
    /// Each level, in the order that they were asked in.
    pub levels: Vec<LevelAnswer>,
    /// What the evidence of the trials speaks against, whether or not it turns an answer.
    pub doubts: Doubts,
    /// Time under load, ns.
    pub load_ns: u64,
}

/// Every level in every cell of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdicts {
    /// In the order of the cells; none of cells that were not measured.
    pub cells: Vec<CellAnswer>,
    /// All of them together.
    pub answer: Answer,
}

impl CellAnswer {
    /// What the trials of a cell say of levels.
    pub fn of<'a>(
        name: String,
        cell: &Cell,
        evidence: &Evidence<'_>,
        environment: &Environment,
        levels: impl IntoIterator<Item = &'a Level>,
    ) -> Self {
        let doubts = Doubts::of_cell(cell, evidence.samples(), environment);
        let levels = levels.into_iter().map(|level| {
            let judged = judge(level, evidence);
            let turned_by = judged.answer.direction().map_or(Vec::new(), |direction| {
                doubts.turning(direction, |concerned| {
                    judge(level, &evidence.without(concerned)).answer == judged.answer
                })
            });
            LevelAnswer {
                answer: match turned_by.is_empty() {
                    true => judged.answer,
                    false => Answer::CannotTell,
                },
                turned_by: turned_by.into_iter().cloned().collect(),
                judged,
            }
        });
        Self {
            cell: name,
            levels: levels.collect(),
            load_ns: evidence.load_ns(),
            doubts,
        }
    }

    /// The limit that explains a level that fails, so that no other disk would keep it.
    pub fn cause(&self, level: &LevelAnswer) -> Option<ReachedLimit> {
        (level.answer == Answer::No).then_some(self.doubts.limit)?
    }

    /// What the reader must know of the trials: what turns an answer, and where a level is open by itself whatever could turn it.
    pub fn reasons(&self) -> Vec<&Doubt> {
        let mut open = self.levels.iter().map(|level| level.judged.answer);
        let of_open = match open.any(|answer| answer == Answer::CannotTell) {
            true => self.doubts.against(Direction::Equal),
            false => Vec::new(),
        };
        let told = |doubt: &&Doubt| {
            let mut turned = self.levels.iter().flat_map(|level| &level.turned_by);
            of_open.contains(doubt) || turned.any(|by| by == *doubt)
        };
        self.doubts.all.iter().filter(told).collect()
    }

    /// All levels together, before any doubt.
    pub fn measured(&self) -> Answer {
        together(self.levels.iter().map(|level| level.judged.answer))
    }

    /// All levels together.
    pub fn answer(&self) -> Answer {
        together(self.levels.iter().map(|level| level.answer))
    }
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
        let measured = record
            .cells
            .iter()
            .filter_map(|cell| Some((cell, evidence.get(&cell.id)?)));
        let cells = measured.map(|(cell, evidence)| {
            let name = match record.experiment.factors.as_slice() {
                [] => cell
                    .trial()
                    .rate
                    .map_or_else(String::new, |rate| format!("rate={rate}")),
                factors => label(factors, &cell.levels),
            };
            let environment = record.environment_of(cell);
            CellAnswer::of(name, cell, evidence, &environment, levels.all())
        });
        let cells: Vec<CellAnswer> = cells.collect();
        Ok(Self {
            answer: together(cells.iter().map(CellAnswer::answer)),
            cells,
        })
    }
}
