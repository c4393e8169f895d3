//! Fits an experiment's cells to a target, each checked before anything is written.

use iolab_plan::cells::{FittedPlan, Plan, PlannedCell, Processes};
use iolab_record::Cell;
use iolab_workload::quantity::exact_size;
use iolab_workload::{Error, Result};

use super::SystemUnderTest;

/// Plans that are fitted to their targets.
#[derive(Debug)]
pub struct Fitted {
    /// The fitted plans, in the order of the given ones.
    pub plans: Vec<FittedPlan>,
    /// The changes made to fit, in words.
    pub notes: Vec<String>,
}

/// Fits plans to a place, all of them before anything is written. If a target does not allow direct I/O, they go through
/// its page cache, unless `keeps_cache` says to carry them out as they are. `processes` are the processes that the plans
/// were made for.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage), naming the cell and what would fit.
pub fn fit_all(
    plans: Vec<Plan>,
    place: SystemUnderTest<'_>,
    processes: &dyn Processes,
    keeps_cache: bool,
) -> Result<Fitted> {
    let refusal = match keeps_cache {
        true => None,
        false => refusal_of_direct(place),
    };
    let is_changed = refusal.is_some() && plans.iter().any(Plan::can_be_buffered);
    let fitted = |plan: Plan| match refusal.is_some() && plan.can_be_buffered() {
        true => fit_to(plan.buffered(processes)?, place),
        false => fit_to(plan, place),
    };
    let wanted = plans.iter().filter_map(widest_region).max();
    let plans: Vec<FittedPlan> = plans.into_iter().map(fitted).collect::<Result<_>>()?;
    let note = refusal.filter(|_| is_changed).map(|reason| {
        format!(
            "{}; measuring through the page cache instead (cache=cold)",
            reason.message()
        )
    });
    let region = plans.iter().filter_map(|plan| widest_region(plan)).max();
    let cut = wanted
        .zip(region)
        .filter(|(wanted, region)| region < wanted);
    let cut = cut.and_then(|(_, region)| common_region(place, region));
    Ok(Fitted {
        plans,
        notes: note.into_iter().chain(cut).collect(),
    })
}

/// The widest region that the cells of a plan ask for, bytes; `None` of groups, which have their own.
fn widest_region(plan: &Plan) -> Option<u64> {
    let cells = plan.cells().iter().filter(|cell| !cell.spec.has_groups());
    cells.map(|cell| cell.spec.trial.region).max()
}

/// Names the one of several targets that limits the region to this size, bytes, or says that a model is measured so. `None`
/// for a single target, which reports it itself.
fn common_region(place: SystemUnderTest<'_>, region: u64) -> Option<String> {
    if let SystemUnderTest::Model(disk) = place {
        return Some(format!(
            "{} is measured in regions of up to {}, because {} has no more",
            disk.name(),
            exact_size(region),
            match disk.room() < disk.bytes() {
                true => "another disk next to it",
                false => "it",
            }
        ));
    }
    let targets = place.targets();
    let (smallest, _) = targets
        .iter()
        .filter(|_| targets.len() > 1)
        .min_by_key(|(_, target)| target.size())?;
    Some(format!(
        "all targets are measured in regions of up to {}, because {} has no more",
        exact_size(region),
        smallest.display()
    ))
}

/// Why the first of the targets that allow no direct I/O does not.
fn refusal_of_direct(place: SystemUnderTest<'_>) -> Option<Error> {
    let targets = place.targets().into_iter();
    let mut refused = targets.filter_map(|(_, target)| target.direct_alignment().err());
    refused.next()
}

/// Cuts the regions of a plan to the size of the target, and checks each cell against it. Nothing is written.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage), naming the cell and a fitting setting.
pub(super) fn fit_to(plan: Plan, place: SystemUnderTest<'_>) -> Result<FittedPlan> {
    FittedPlan::of(plan, &|cell| place.fit(cell))
}

/// The rows of a run file for these cells, which are its first.
pub(crate) fn records(cells: &[PlannedCell]) -> Vec<Cell> {
    let numbered = cells.iter().enumerate();
    numbered.map(|(id, cell)| record(id, cell)).collect()
}

/// The cell as the run file keeps it.
pub(crate) fn record(id: usize, cell: &PlannedCell) -> Cell {
    Cell {
        id: id as i64,
        levels: cell.levels.clone(),
        spec: cell.spec.clone(),
        ended_by: None,
        pilot: None,
    }
}
