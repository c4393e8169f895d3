//! What a run measures next: a strategy decides that from what was measured so far. The session carries each step out, and knows
//! no strategy by its name; another one takes a module here and a line in [`of`].

mod blocks;
mod finer;
mod pilot;
mod search;

use std::time::Duration;

use iolab_plan::cells::Addition;
use iolab_record::{EndedBy, EventKind, Pilot};
use iolab_workload::Result;

use super::Basis;
use super::record::Record;
use super::sample::VisitPosition;
use super::stopping_rule::{Ended, Repetition};
use blocks::Blocks;
use finer::FinerSizes;
use search::RateSearch;

/// Decides what is measured next.
pub(super) trait Strategy {
    /// The next step, given the record so far. Each step is carried out before the next is requested.
    ///
    /// # Errors
    /// What ends the run: the record cannot be read, or nothing can follow from it.
    fn next(&mut self, record: &Record) -> Result<Step>;

    /// What is left, as far as can be foreseen after all that the record holds.
    fn outlook(&mut self, record: &Record) -> Outlook;
}

/// What a strategy has the session do.
#[derive(Debug)]
pub(super) enum Step {
    /// A trial.
    Visit(Visit),
    /// A pause of this length without I/O; not part of the budget.
    Rest(Duration),
    /// The plan gets further cells.
    Add(Box<Addition>),
    /// The run file gets what was found or chosen.
    Keep(Vec<Finding>),
    /// Nothing is left to be measured.
    Done,
}

/// A trial that is to be made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visit {
    /// Its cell, and its place in the plan.
    pub(super) place: VisitPosition,
    /// The time that ends it, where that is not the cell's.
    pub(super) time: Option<Duration>,
    /// The length of the intervals of its series, ns, where they are to be finer than those that are kept.
    pub(super) series_ns: Option<u64>,
}

impl Visit {
    /// A trial that is as its cell says.
    fn of(place: VisitPosition) -> Self {
        Self {
            place,
            time: None,
            series_ns: None,
        }
    }
}

/// Something that the run file keeps.
#[derive(Debug)]
pub(super) enum Finding {
    /// An event of the run, shown to the user.
    Told(EventKind, String),
    /// An event of the run or of a cell, which the run file alone keeps.
    Event(EventKind, Option<usize>, String),
    /// How often and for how long a cell is visited from now on.
    Visits(usize, Pilot),
    /// What ended the repetition of a cell.
    Ended(usize, EndedBy),
    /// The trials before this block are in no summary.
    LeftOutBefore(u32),
}

/// What is left of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outlook {
    /// The time that it takes.
    pub(super) time: Duration,
    /// What that rests on.
    pub(super) basis: Basis,
}

/// The strategy of the experiment whose record this is.
pub(super) fn of(record: &Record) -> Box<dyn Strategy> {
    let experiment = record.plan.experiment();
    if let Some(levels) = &experiment.seek {
        return Box::new(RateSearch::new(levels.clone(), record));
    }
    let refined = experiment.refined.as_ref().map(|refined| refined.block);
    let blocks = of_blocks(record, refined.unwrap_or(0));
    match refined.is_some() || experiment.design.refine > 0 {
        true => Box::new(FinerSizes::new(blocks)),
        false => blocks,
    }
}

/// Blocks over all cells, from this one on.
fn of_blocks(record: &Record, first_block: u32) -> Box<dyn Strategy> {
    let blocks = Blocks::new(record, first_block);
    match record.plan.experiment().design.pilot == Some(true) {
        true => Box::new(pilot::PilotBlocks::new(blocks, record)),
        false => Box::new(blocks),
    }
}

/// What ended the repetition of a cell, where all of it `ended` so; none of one that was given up.
fn ending(record: &Record, repetition: &Repetition, ended: Ended, cell: usize) -> Option<Finding> {
    let ended_by = || Finding::Ended(cell, repetition.ended_by(cell, ended));
    (!record.is_closed(cell)).then(ended_by)
}
