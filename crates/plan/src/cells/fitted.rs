//! A plan fitted to its target, this machine and the processes of the run.

use std::ops::Deref;
use std::time::Duration;

use iolab_workload::Result;
use iolab_workload::settings::{CellSpec, cell_label};
use iolab_workload::trial::Batch;

use super::{AddedCells, Plan, PlannedCell};

/// A plan whose cells are cut to the target and checked against it. Additions and choices of a run make a new one.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedPlan(Plan);

impl Deref for FittedPlan {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        &self.0
    }
}

impl FittedPlan {
    /// Fits every cell with `fit`, which cuts it to the target and checks it.
    ///
    /// # Errors
    ///
    /// Errors of `fit`, with the cell.
    pub fn of(mut plan: Plan, fit: &dyn Fn(&mut PlannedCell) -> Result<()>) -> Result<Self> {
        let factors = plan.factor_names();
        for cell in &mut plan.cells {
            fit(cell).map_err(|error| error.within(cell_label(&factors, &cell.levels)))?;
        }
        if plan.experiment.design.halves {
            split_region(&mut plan.cells);
        }
        Ok(Self(plan))
    }

    /// The plan with another budget, from which the length of trials for service levels follows.
    ///
    /// # Errors
    ///
    /// None for a plan of a checked experiment.
    pub fn with_budget(self, budget: Duration) -> Result<Self> {
        let mut plan = self.0;
        plan.set_budget(budget)?;
        Ok(Self(plan))
    }

    /// The plan with the regions and completion strategies with which a run began, cell by cell.
    #[must_use]
    pub fn as_begun<'a>(mut self, begun: impl Iterator<Item = &'a CellSpec>) -> Self {
        for (PlannedCell { spec, .. }, begun) in self.0.cells.iter_mut().zip(begun) {
            (spec.trial.offset, spec.trial.region) = (begun.trial.offset, begun.trial.region);
            for (group, begun) in spec.groups.iter_mut().zip(&begun.groups) {
                group.spec.trial.region = begun.spec.trial.region;
            }
            if !begun.batch_auto {
                spec.trial.batch = begun.trial.batch;
                spec.batch_auto = false;
            }
        }
        self
    }

    /// The plan with completion strategies for cells, given by index, that had none yet.
    #[must_use]
    pub fn with_batches(mut self, chosen: &[(usize, Batch)]) -> Self {
        for (cell, batch) in chosen {
            let spec = &mut self.0.cells[*cell].spec;
            spec.trial.batch = *batch;
            spec.batch_auto = false;
        }
        self
    }

    /// The plan with further cells, fitted with `fit` like the others.
    ///
    /// # Errors
    ///
    /// Errors of `fit`, with the cell.
    pub fn grown(
        mut self,
        AddedCells { experiment, cells }: AddedCells,
        fit: &dyn Fn(&mut PlannedCell) -> Result<()>,
    ) -> Result<Self> {
        let factors = super::factor_names(&experiment);
        self.0.experiment = experiment;
        for mut cell in cells {
            fit(&mut cell).map_err(|error| error.within(cell_label(&factors, &cell.levels)))?;
            self.0.cells.push(cell);
        }
        Ok(self)
    }
}

/// Gives cells with an ordered pattern the first half of their region and the others the second one, if there are both.
fn split_region(cells: &mut [PlannedCell]) {
    let is_ordered = |cell: &PlannedCell| cell.spec.trial.pattern.is_ordered();
    if cells.iter().all(is_ordered) || !cells.iter().any(is_ordered) {
        return;
    }
    let requests = cells.iter().map(|cell| cell.spec.trial.largest_request());
    let unit = requests.max().unwrap_or(1);
    for cell in cells {
        let is_ordered = is_ordered(cell);
        let trial = &mut cell.spec.trial;
        let half = trial.region / 2 / unit * unit;
        // A half holds a request of every cell.
        if half > 0 {
            trial.offset += if is_ordered { 0 } else { half };
            trial.region = half;
        }
    }
}
