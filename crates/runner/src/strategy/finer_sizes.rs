//! Finer sizes: adds sizes around the bends and best sizes that the grid has shown, and measures all sizes together.

use std::collections::VecDeque;

use iolab_analysis::analysis::analyse;
use iolab_analysis::refine::finer_sizes;
use iolab_plan::cells::PlannedCell;
use iolab_record::EventKind;
use iolab_workload::Result;
use iolab_workload::trial::CacheState;
use iolab_workload::units::format_size;

use super::super::record::{Record, Trial};
use super::blocks::Blocks;
use super::{Finding, Outlook, Step, Strategy};

/// Runs blocks over the grid, then over the grid and finer sizes.
pub(super) struct FinerSizes {
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
    pub(super) fn new(blocks: Blocks) -> Self {
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
        let analysis = analyse(&record.stored()?);
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
        let first_block = record.last_block().map_or(0, |last| last + 1);
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
            time: record.spent() + outlook.time.saturating_mul(2),
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
    let before = record.trials().iter().filter(before).count();
    let message = format!(
        "the {before} trials before block {first} chose the finer sizes, and are in no summary"
    );
    Some(Step::Keep(vec![
        Finding::LeftOutBefore(first),
        Finding::Event(EventKind::Note, None, message),
    ]))
}
