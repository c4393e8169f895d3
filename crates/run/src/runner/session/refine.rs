//! Finer sizes, measured in a second phase of a run.

use iolab_analysis::analysis::analyse;
use iolab_analysis::refine::finer_sizes;
use iolab_plan::cells::{Addition, PlannedCell};
use iolab_record::EventKind;
use iolab_spec::Result;
use iolab_spec::trial::CacheState;
use iolab_spec::units::format_size;

use super::super::execute::Executor;
use super::super::phase::Phase;
use super::Session;

impl Session<'_> {
    /// Adds finer sizes to the plan, once; false when there are none to add.
    pub(super) fn refine(&mut self, executor: &mut dyn Executor) -> Result<bool> {
        if self.plan.experiment().design.refine == 0 || self.plan.experiment().refined.is_some() {
            return Ok(false);
        }
        let analysis = analyse(&iolab_runfile::read(self.file.path())?);
        let direct = |cell: &PlannedCell| cell.spec.trial.cache == CacheState::Direct;
        let unit = match self.plan.cells().iter().any(direct) {
            true => executor.alignment(),
            false => 1,
        };
        let sizes = finer_sizes(&analysis, self.plan.experiment().design.refine, unit);
        let levels: Vec<String> = sizes.into_iter().map(format_size).collect();
        if levels.is_empty() {
            self.event(
                EventKind::Note,
                "no finer size lies between those of bs that matter",
            )?;
            return Ok(false);
        }
        let message = format!(
            "{} finer sizes of bs around the bends and the best sizes, now measured together with the others: {}",
            levels.len(),
            levels.join(", ")
        );
        match self.plan.finer(self.phase.next_block(), levels) {
            Ok(addition) => {
                self.event(EventKind::Choice, &message)?;
                self.enlarge(addition, executor).map(|()| true)
            }
            // What the grid has shown is worth having all the same.
            Err(error) => {
                self.event(
                    EventKind::Warning,
                    &format!("no finer sizes: {}", error.message()),
                )?;
                Ok(false)
            }
        }
    }

    /// Takes further cells into the plan and the file, and enters the phase that measures them.
    fn enlarge(&mut self, addition: Addition, executor: &mut dyn Executor) -> Result<()> {
        self.trials_before += self.phase.trials() as u64;
        self.spent_before += self.phase.repetition.spent();
        self.take_in(addition, executor)?;
        self.phase = Phase::of(self.plan.experiment(), self.plan.cells().len());
        self.leave_gaps(executor)
    }

    /// The trials that have shown where finer sizes are worth it are left out in the end: the machine may have been
    /// another one then, and what is chosen by some trials has to be judged by others.
    pub(super) fn leave_out_exploration(&mut self) -> Result<()> {
        let first = self.phase.first_block;
        if first == 0 {
            return Ok(());
        }
        self.file.leave_out_before(first)?;
        let message = format!(
            "the {} trials before block {first} chose the finer sizes, and are in no summary",
            self.trials_before
        );
        self.keep(EventKind::Note, None, &message)
    }
}
