//! Needs of plans for a target before it is opened.

use iolab_plan::cells::{Plan, PlannedCell};
use iolab_storage::{Consent, ExtraFiles, Need, PrivateFiles, Size};
use iolab_workload::names::TargetName;
use iolab_workload::trial::{Backend, FileLayout, TrialSpec};
use iolab_workload::{Error, Result};

use super::fit_cells::REGION_UNIT;

/// Needs of an experiment for a target. `exact` is set when the user named the region's size: then it is not cut.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): a cell that no target can serve, or whose tool is not a peer.
pub fn need(plan: &Plan, consent: Consent, exact: bool) -> Result<Need> {
    need_of(plan, &|_| true, consent, exact)
}

/// Needs of the cells of a plan for one of its targets, which `is_it` recognises by name.
pub(super) fn need_of(
    plan: &Plan,
    is_it: &dyn Fn(Option<&TargetName>) -> bool,
    consent: Consent,
    exact: bool,
) -> Result<Need> {
    let experiment = plan.experiment();
    // One whose groups all have the rate 0 uses none, and is refused below.
    let uses = |cell: &&PlannedCell| {
        let targets = cell.spec.targets();
        targets.is_empty() || targets.into_iter().any(is_it)
    };
    let cells: Vec<&PlannedCell> = plan.cells().iter().filter(uses).collect();
    if experiment.runs_programs() {
        return Err(Error::usage(format!(
            "{} runs programs on files made for them, and cannot share a target",
            experiment.name
        ))
        .hint("run it by itself with iolab run"));
    }
    for cell in &cells {
        if cell.spec.tool.is_peer() {
            iolab_peers::find(cell.spec.tool)?;
        }
        cell.spec
            .check()
            .map_err(|error| error.within(plan.describe(cell)))?;
    }
    let specs = || cells.iter().flat_map(|cell| cell.spec.trials_on(is_it));
    let most_of = |region: fn(&TrialSpec) -> u64| {
        let of_cell = |cell: &&PlannedCell| {
            let specs = cell.spec.trials_on(is_it).into_iter();
            specs
                .map(|spec| spec.offset.saturating_add(region(spec)))
                .max()
        };
        cells.iter().filter_map(of_cell).max().unwrap_or(0)
    };
    let most = most_of(|spec| spec.region);
    let least = most_of(smallest_region_of);
    Ok(Need {
        size: if exact {
            Size::Exactly(most)
        } else {
            Size::AtMost {
                most,
                least: least.min(most),
            }
        },
        write: specs().any(TrialSpec::writes) || experiment.design.precondition.writes(),
        consent,
        beside: beside(cells.iter().map(|cell| cell.spec.trials_on(is_it))),
        lends: cells.iter().any(|cell| cell.spec.tool.is_peer()),
    })
}

/// The combined needs of plans that run one after another on one target; `None` without plans.
pub(super) fn merge_needs(needs: impl IntoIterator<Item = Need>) -> Option<Need> {
    needs.into_iter().reduce(|all, need| Need {
        size: match (all.size, need.size) {
            (Size::Exactly(all), Size::Exactly(own)) => Size::Exactly(all.max(own)),
            (all, own) => {
                let ((most, least), (own_most, own_least)) = (bounds(&all), bounds(&own));
                Size::AtMost {
                    most: most.max(own_most),
                    least: least.max(own_least),
                }
            }
        },
        write: all.write || need.write,
        consent: all.consent,
        beside: all.beside.and(need.beside),
        lends: all.lends || need.lends,
    })
}

/// The most and the least that a size asks for, bytes.
fn bounds(size: &Size) -> (u64, u64) {
    match *size {
        Size::Exactly(bytes) => (bytes, bytes),
        Size::AtMost { most, least } => (most, least),
    }
}

/// The files that cells need in addition to the scratch file, from the groups of each cell.
fn beside<'a>(cells: impl Iterator<Item = Vec<&'a TrialSpec>>) -> ExtraFiles {
    let mut beside = ExtraFiles::default();
    for groups in cells {
        let mut fresh: u32 = 0;
        for spec in groups {
            if spec.backend == Backend::Null {
                continue;
            }
            let files = PrivateFiles {
                threads: spec.threads,
                bs: spec.bs,
                ranks: spec.workers() / spec.threads.max(1),
                files: spec.files,
            };
            if spec.layout == FileLayout::Private && !beside.private.contains(&files) {
                beside.private.push(files);
            }
            if spec.starts_fresh() {
                fresh = fresh.saturating_add(spec.files_of_all());
            }
        }
        beside.fresh = beside.fresh.max(fresh);
    }
    beside
}

/// Room for a request in each file of every thread.
fn smallest_region_of(spec: &TrialSpec) -> u64 {
    spec.smallest_region().next_multiple_of(REGION_UNIT)
}
