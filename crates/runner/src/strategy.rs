//! Strategies decide the next measurement of a run from its record so far. The session carries out each step and knows no
//! strategy by name; a new one needs a module here and a line in [`of`].

mod rounds;

use std::collections::VecDeque;
use std::time::Duration;

use super::Basis;
use super::record::Record;
use super::sample::VisitPosition;
use super::stopping_rule::{Repetition, UnderWay};
use crate::peers::overhead;
use crate::record::Trial;
use iolab_analysis::analysis::analyse;
use iolab_analysis::bends::finer_sizes;
use iolab_plan::batch_probes;
use iolab_plan::blocks::block_order;
use iolab_plan::cells::{AddedCells, PlannedCell};
use iolab_plan::experiment::WarmUp;
use iolab_record::{EndedBy, EventKind};
use iolab_workload::Result;
use iolab_workload::trial::CacheState;
use iolab_workload::units::format_size;
use rounds::{RateSearch, Rounds};

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
///
/// # Errors
/// When a search cannot read the results of earlier sessions.
pub(super) fn of(record: &Record) -> Result<Box<dyn Strategy>> {
    let experiment = record.plan.experiment();
    if let Some(levels) = &experiment.seek {
        return Ok(Box::new(RateSearch::new(levels, record)?));
    }
    if let Some(steady) = experiment.design.precondition.rounds_of_cells() {
        return Ok(Box::new(Rounds::new(steady, record)));
    }
    let refined = experiment.refined.as_ref().map(|refined| refined.block);
    let blocks = Blocks::new(record, refined.unwrap_or(0));
    Ok(match refined.is_some() || experiment.design.refine > 0 {
        true => Box::new(FinerSizes::new(blocks)),
        false => Box::new(blocks),
    })
}

/// Visits every cell in each block, in random order.
struct Blocks {
    /// The number of the warm-up block; the block after it is the first if the design has no warm-up.
    first: u32,
    /// The number of the first block of trials.
    begin: u32,
    /// The number of the next block.
    next: u32,
    /// The remaining visits of the current block.
    order: VecDeque<VisitPosition>,
    /// Start of the first trial of the current block in this session.
    began: Option<Duration>,
    repetition: Repetition,
    /// Whether this session has still to begin a measured block. Each session measures at least one, because a run without any has no
    /// result; not so an explanation.
    granted: bool,
    /// Whether it has reported what ended it.
    is_over: bool,
}

impl Blocks {
    /// Starts with block `first`, the warm-up, or without one with the block after it.
    fn new(record: &Record, first: u32) -> Self {
        let design = record.plan.experiment().design;
        let begin = match design.warmup {
            WarmUp::First => first,
            WarmUp::None => first + 1,
        };
        Self {
            first,
            begin,
            next: begin,
            order: VecDeque::new(),
            began: None,
            repetition: Repetition::new(design, record.plan.cells().len()).from(first, record),
            // Without enough blocks an explanation is useless.
            granted: record.plan.experiment().inquiry.is_none(),
            is_over: false,
        }
    }

    /// The next trial of the current block.
    fn rest_of_block(&mut self, record: &Record) -> Option<VisitPosition> {
        let mut rest = std::iter::from_fn(|| self.order.pop_front());
        rest.find(|place| !record.has(place.cell, place.block))
    }

    /// Begins the next block. Returns the pause before it, or what ended the blocks; `None` if all trials of the block are
    /// done.
    fn begin_block(&mut self, record: &Record) -> Option<Step> {
        let (block, is_first) = (self.next, self.next == self.first);
        let mut order = block_order(record.seed, block, record.plan.cells().len());
        order.retain(|cell| !record.closed.contains(cell));
        let order: VecDeque<VisitPosition> = order
            .into_iter()
            .zip(0..)
            .map(|(cell, position)| VisitPosition {
                cell,
                block,
                position,
                warmup: is_first,
            })
            .collect();
        let has = |place: &&VisitPosition| record.has(place.cell, place.block);
        let done = order.iter().filter(has).count();
        let is_open = done < order.len();
        // Completes a block that an earlier session began, even if the stopping rule would end the run.
        if done == 0
            && !is_first
            && let Some(ended) = self.repetition.ends()
            && !(self.granted && ended == EndedBy::Budget && self.repetition.has_open_cells())
        {
            self.is_over = true;
            let found = record.open_cells();
            let found =
                found.map(|cell| Finding::Ended(cell, self.repetition.ended_by(cell, ended)));
            return Some(Step::Keep(found.collect()));
        }
        self.granted &= !is_open || is_first;
        self.order = order;
        self.next += 1;
        let settle = record.plan.experiment().design.settle;
        // Nothing comes before the first block of the run.
        (is_open && block > self.begin.min(1)).then_some(Step::Rest(settle))
    }
}

impl Strategy for Blocks {
    fn next(&mut self, record: &Record) -> Result<Step> {
        self.repetition.follow(record);
        if self.is_over {
            return Ok(Step::Done);
        }
        loop {
            if let Some(place) = self.rest_of_block(record) {
                self.began.get_or_insert(record.now);
                return Ok(Step::Visit(place));
            }
            if let Some(began) = self.began.take() {
                let took = record.now.saturating_sub(began);
                self.repetition.block_took(took);
            }
            if let Some(step) = self.begin_block(record) {
                return Ok(step);
            }
        }
    }

    fn outlook(&mut self, record: &Record) -> Outlook {
        self.repetition.follow(record);
        let last = record.last_block.filter(|last| *last >= self.begin);
        let block = last.unwrap_or(self.begin);
        let is_warmup = block == self.first;
        let mut now = UnderWay {
            rest: Duration::ZERO,
            is_measured: !is_warmup,
            block: Duration::ZERO,
        };
        let mut in_block = 0;
        for cell in record.open_cells() {
            let cost = record.costs.of(cell);
            now.block += cost;
            if !record.has(cell, block) {
                now.rest += cost;
                in_block += 1;
            }
        }
        // Part of the first block is too little for an estimate.
        if block == self.begin && in_block > 0 {
            // A warm-up and a measured block are made whatever they take.
            let granted = record.plan.experiment().design.granted();
            let granted = record
                .plan
                .block_at_most(&overhead(record.peers))
                .saturating_mul(granted);
            // Probes still to come; past ones are spent.
            let probes = batch_probes::time(record.plan.cells());
            let granted = granted.saturating_add(probes);
            let granted = granted.saturating_sub(self.repetition.spent());
            // The only trials of their cells end the run before its budget does, unless a cell has no time limit.
            let only = record
                .plan
                .experiment()
                .time_at_most()
                .saturating_sub(self.repetition.spent());
            return Outlook {
                time: self.repetition.left().min(only).max(granted).max(now.rest),
                basis: Basis::Budget,
            };
        }
        let further = self.repetition.blocks_after(&now);
        let settle = record.plan.experiment().design.settle;
        Outlook {
            time: now.rest + (now.block + settle).saturating_mul(further),
            basis: match self.repetition.is_bound_only() {
                true => Basis::AtMost,
                false => Basis::Trials,
            },
        }
    }
}

/// Runs blocks over the grid, then over the grid and finer sizes.
struct FinerSizes {
    /// The blocks over the present sizes.
    blocks: Blocks,
    /// Steps to take before the blocks continue.
    steps: VecDeque<Step>,
    /// Whether this session has looked for finer sizes.
    has_looked: bool,
    is_over: bool,
}

impl FinerSizes {
    /// Refines the sizes that `blocks` measures.
    fn new(blocks: Blocks) -> Self {
        Self {
            blocks,
            steps: VecDeque::new(),
            has_looked: false,
            is_over: false,
        }
    }

    /// Decides what follows when the blocks have ended.
    fn go_on(&mut self, record: &Record) -> Result<()> {
        let is_refined = record.plan.experiment().refined.is_some();
        if !is_refined && !std::mem::replace(&mut self.has_looked, true) {
            return self.look(record);
        }
        self.is_over = true;
        self.steps.extend(exploration_left_out(record));
        Ok(())
    }

    /// Adds finer sizes once, if there are any between the relevant ones.
    fn look(&mut self, record: &Record) -> Result<()> {
        let analysis = analyse(&iolab_runfile::read(&record.path)?);
        let is_direct = |cell: &PlannedCell| {
            let mut trials = cell.spec.trials().into_iter();
            trials.any(|trial| trial.cache == CacheState::Direct)
        };
        let unit = match record.plan.cells().iter().any(is_direct) {
            true => record.alignment,
            false => 1,
        };
        let refine = record.plan.experiment().design.refine;
        let sizes = finer_sizes(&analysis, refine, unit).into_iter();
        let levels: Vec<String> = sizes.map(format_size).collect();
        let tell = |kind, message| Step::Keep(vec![Finding::Told(kind, message)]);
        if levels.is_empty() {
            let message = "no finer size of bs lies between the sizes that matter".to_owned();
            self.steps.push_back(tell(EventKind::Note, message));
            return Ok(());
        }
        let message = format!(
            "{} finer sizes of bs around the bends and the best sizes, now measured together with the others: {}",
            levels.len(),
            levels.join(", ")
        );
        let first_block = record.last_block.map_or(0, |last| last + 1);
        match record.plan.finer(first_block, levels) {
            Ok(addition) => {
                self.steps.push_back(tell(EventKind::Choice, message));
                self.steps.push_back(Step::Add(Box::new(addition)));
                self.blocks = Blocks::new(record, first_block);
            }
            // The run keeps the results of the grid even if finer sizes fail.
            Err(error) => {
                let message = format!("no finer sizes: {}", error.message());
                self.steps.push_back(tell(EventKind::Warning, message));
            }
        }
        Ok(())
    }
}

impl Strategy for FinerSizes {
    fn next(&mut self, record: &Record) -> Result<Step> {
        loop {
            if let Some(step) = self.steps.pop_front() {
                return Ok(step);
            }
            if self.is_over {
                return Ok(Step::Done);
            }
            match self.blocks.next(record)? {
                Step::Done => self.go_on(record)?,
                step => return Ok(step),
            }
        }
    }

    fn outlook(&mut self, record: &Record) -> Outlook {
        let outlook = self.blocks.outlook(record);
        if record.plan.experiment().refined.is_some() {
            return outlook;
        }
        // Finer sizes take about as long as everything before them.
        Outlook {
            time: record.spent + outlook.time.saturating_mul(2),
            ..outlook
        }
    }
}

/// Excludes the trials of the grid that decided which sizes to add: the machine may have changed since, and trials that select a
/// size must not also judge it.
fn exploration_left_out(record: &Record) -> Option<Step> {
    let refined = record.plan.experiment().refined.as_ref()?;
    let first = Some(refined.block).filter(|first| *first > 0)?;
    let before = |trial: &&Trial| trial.ok && trial.place.block < first;
    let before = record.trials.iter().filter(before).count();
    let message = format!(
        "the {before} trials before block {first} chose the finer sizes, and are in no summary"
    );
    Some(Step::Keep(vec![
        Finding::LeftOutBefore(first),
        Finding::Event(EventKind::Note, None, message),
    ]))
}
