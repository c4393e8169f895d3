//! Finer sizes, measured in a second phase of a run.

use iolab_analysis::analysis::analyse;
use iolab_analysis::refine::finer_sizes;
use iolab_plan::cells::{PlannedCell, cells, factor_names};
use iolab_plan::experiment::{Experiment, Refined};
use iolab_record::EventKind;
use iolab_workload::Result;
use iolab_workload::settings::cell_label;
use iolab_workload::trial::CacheState;
use iolab_workload::units::format_size;

use super::super::executor::Executor;
use super::super::phase::Phase;
use super::super::{experiment_record, fit};
use super::Session;

impl Session<'_> {
    /// Adds finer sizes to the plan, once; false when there are none to add.
    pub(super) fn refine(&mut self, executor: &mut dyn Executor) -> Result<bool> {
        if self.plan.experiment().design.refine == 0 || self.plan.experiment().refined.is_some() {
            return Ok(false);
        }
        let analysis = analyse(&iolab_runfile::read(self.file.path())?);
        let direct = |cell: &PlannedCell| cell.spec.trial.cache == CacheState::Direct;
        let unit = match self.plan.cells.iter().any(direct) {
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
        let experiment = Experiment {
            refined: Some(Refined {
                block: self.phase.next_block(),
                bs: levels,
            }),
            ..self.plan.experiment().clone()
        };
        match cells(&experiment) {
            Ok(mut planned) => {
                self.event(EventKind::Choice, &message)?;
                let added = planned.split_off(self.plan.cells.len());
                self.enlarge(experiment, added, executor).map(|()| true)
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
    fn enlarge(
        &mut self,
        experiment: Experiment,
        mut added: Vec<PlannedCell>,
        executor: &mut dyn Executor,
    ) -> Result<()> {
        let mut rows = Vec::with_capacity(added.len());
        for (number, cell) in added.iter_mut().enumerate() {
            executor.fit(cell).map_err(|error| {
                error.within(cell_label(&factor_names(&experiment), &cell.levels))
            })?;
            rows.push(fit::record(self.plan.cells.len() + number, cell));
        }
        self.file
            .add_cells(&experiment_record(&experiment)?, &rows)?;
        self.trials_before += self.phase.trials() as u64;
        self.spent_before += self.phase.repetition.spent();
        self.plan.grow(experiment, added);
        self.phase = Phase::of(self.plan.experiment(), self.plan.cells.len());
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
