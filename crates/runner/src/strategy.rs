//! Strategies decide the next measurement of a run from its record so far. The session carries out each step and knows no
//! strategy by name; a new one needs a module here and a line in [`of`].

mod blocks;
mod rounds;
mod search;

use std::time::Duration;

use iolab_plan::cells::AddedCells;
use iolab_record::{EndedBy, EventKind};
use iolab_workload::Result;

use super::Basis;
use super::record::Record;
use super::sample::VisitPosition;
use super::stopping_rule::{Ended, Repetition};
use blocks::{Blocks, FinerSizes};
use rounds::Rounds;
use search::RateSearch;

/// Decides the next measurement.
pub(super) trait Strategy {
    /// The next step, given the record so far. Each step is carried out before the next is requested.
    ///
    /// # Errors
    /// What ends the run: the record cannot be read, or nothing can follow from it.
    fn next(&mut self, record: &Record) -> Result<Step>;

    /// Forecast of the rest of the run from the record.
    fn outlook(&mut self, record: &Record) -> Outlook;
}

/// Request of a strategy to the session.
#[derive(Debug)]
pub(super) enum Step {
    /// Make a trial at this position of the plan.
    Visit(VisitPosition),
    /// Pause for this long without I/O; not part of the budget.
    Rest(Duration),
    /// Add cells to the plan.
    Add(Box<AddedCells>),
    /// Store findings in the run file.
    Keep(Vec<Finding>),
    /// Nothing is left to measure.
    Done,
}

/// A finding for the run file.
#[derive(Debug)]
pub(super) enum Finding {
    /// An event of the run that is also shown to the user.
    Told(EventKind, String),
    /// An event of the run or of a cell that is only stored.
    Event(EventKind, Option<usize>, String),
    /// Reason for the end of the repetition of a cell.
    Ended(usize, EndedBy),
    /// Summaries exclude the trials before this block.
    LeftOutBefore(u32),
}

/// The forecast of the rest of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outlook {
    /// Duration of the rest of the run.
    pub(super) time: Duration,
    /// The basis of the forecast.
    pub(super) basis: Basis,
}

/// The strategy for the experiment of this record.
pub(super) fn of(record: &Record) -> Box<dyn Strategy> {
    let experiment = record.plan.experiment();
    if let Some(levels) = &experiment.seek {
        return Box::new(RateSearch::new(levels.clone(), record));
    }
    if let Some(steady) = experiment.design.precondition.rounds_of_cells() {
        return Box::new(Rounds::new(steady, record));
    }
    let refined = experiment.refined.as_ref().map(|refined| refined.block);
    let blocks = Blocks::new(record, refined.unwrap_or(0));
    match refined.is_some() || experiment.design.refine > 0 {
        true => Box::new(FinerSizes::new(blocks)),
        false => Box::new(blocks),
    }
}

/// Reason for the end of the repetition of a cell when the blocks ended with `ended`; `None` for a cell that was given up.
fn ending(record: &Record, repetition: &Repetition, ended: Ended, cell: usize) -> Option<Finding> {
    let ended_by = || Finding::Ended(cell, repetition.ended_by(cell, ended));
    (!record.is_closed(cell)).then(ended_by)
}
