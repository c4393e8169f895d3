//! Fits an experiment's cells to a target, each checked before anything is written.

use std::path::Path;

use iolab_engine::trial;
use iolab_storage::{Consent, ExtraFiles, Need, PrivateFiles, Size, Target};
use iolab_workload::Error;
use iolab_workload::Result;
use iolab_workload::quantity::{counted, exact_size};
use iolab_workload::trial::{Backend, Batch, FileLayout, TrialSpec};

use super::SystemUnderTest;
use super::targets::number_of;
use iolab_host::memory::AvailableMemory;
use iolab_plan::cells::{FittedPlan, Plan, PlannedCell, Processes};
use iolab_record::Cell;
use iolab_workload::settings::CellSpec;
use iolab_workload::target::TargetName;

/// A region is cut to whole multiples of this.
const REGION_UNIT: u64 = 4096;

/// What an experiment needs of a target. `exact` is set when the user named the region's size: then it is not cut.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): a cell that no target could serve, or whose tool is no peer.
pub fn need(plan: &Plan, consent: Consent, exact: bool) -> Result<Need> {
    need_of(plan, &|_| true, consent, exact)
}

/// What the cells of a plan need of one of its targets, which `is_it` knows by its name.
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
    // Of a striped trial each target holds a part.
    let end = |cell: &CellSpec, spec: &TrialSpec, region: u64| {
        let end = spec.offset.saturating_add(region);
        cell.striped()
            .map_or(end, |stripe| stripe.on_each(0..end).end)
    };
    let most_of = |region: fn(&TrialSpec) -> u64| {
        let of_cell = |cell: &&PlannedCell| {
            let specs = cell.spec.trials_on(is_it).into_iter();
            specs.map(|spec| end(&cell.spec, spec, region(spec))).max()
        };
        cells.iter().filter_map(of_cell).max().unwrap_or(0)
    };
    let most = most_of(|spec| spec.region);
    let least = most_of(smallest_region);
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
        beside: beside(specs()),
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

/// The files that cells need beside the scratch file.
fn beside<'a>(specs: impl Iterator<Item = &'a TrialSpec>) -> ExtraFiles {
    let mut beside = ExtraFiles::default();
    for spec in specs.filter(|spec| spec.backend != Backend::Null) {
        let files = PrivateFiles {
            threads: spec.threads,
            bs: spec.bs,
            ranks: spec.workers() / spec.threads.max(1),
        };
        if spec.layout == FileLayout::Private && !beside.private.contains(&files) {
            beside.private.push(files);
        }
        beside.fresh |= spec.starts_fresh();
    }
    beside
}

/// One request for every thread.
fn smallest_region(spec: &TrialSpec) -> u64 {
    spec.largest_request()
        .saturating_mul(u64::from(spec.workers()))
        .next_multiple_of(REGION_UNIT)
}

/// Plans that are fitted to where they are carried out.
#[derive(Debug)]
pub struct Fitted {
    /// In the order of those that they were made of.
    pub plans: Vec<FittedPlan>,
    /// What was changed for that, in words.
    pub notes: Vec<String>,
}

/// Fits plans to a place, all of them before anything is written. Where a target does not allow direct I/O, they go through its
/// page cache, unless `keeps_cache` says that they are to be carried out as they are. `processes` are those that they were made
/// for.
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

/// Says which of several targets has room for no more than this region, bytes, or that a model is measured so; `None` of a single
/// target, which says so itself.
fn common_region(place: SystemUnderTest<'_>, region: u64) -> Option<String> {
    if let SystemUnderTest::Model(disk) = place {
        return Some(format!(
            "{} is measured in regions of up to {}, because {} has no more",
            disk.name(),
            exact_size(region),
            match disk.room() < disk.bytes() {
                true => "another disk beside it",
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

/// Cuts the regions of a plan to what the target has, and checks each cell against it. Nothing is written.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage), naming the cell and what would fit.
pub(super) fn fit_to(plan: Plan, place: SystemUnderTest<'_>) -> Result<FittedPlan> {
    FittedPlan::of(plan, &|cell| place.fit(cell))
}

/// Cuts a cell's region to what the targets of the run have, and checks it against its own and against the memory that there is now.
/// Without groups no cell goes beyond the smallest target: cells that differ in the target differ in nothing else.
pub(super) fn fit(cell: &mut PlannedCell, targets: &[(&Path, &Target)]) -> Result<()> {
    let memory = AvailableMemory::read();
    let find = |name: Option<&TargetName>| {
        let names = targets.iter().map(|(named, _)| *named);
        number_of(names, name).map(|number| targets[number].1)
    };
    if cell.spec.runs_program() {
        cell.spec.trial.batch = Batch::One;
        cell.spec.batch_auto = false;
        // A program has its one buffer.
        return check_memory(&cell.spec, memory);
    }
    if cell.spec.has_groups() {
        // One that names the run's own target uses the same bytes as those that name none.
        let run = find(None)?;
        for group in &mut cell.spec.groups {
            let named = group.spec.target.as_ref().map(|name| find(Some(name)));
            if named.transpose()?.is_some_and(|own| std::ptr::eq(own, run)) {
                group.spec.target = None;
            }
        }
        let own = |name: Option<&TargetName>, spec: &mut TrialSpec| {
            let target = find(name)?;
            cut_region(spec, target.size());
            trial::check_against(spec, target)
        };
        fit_groups(&mut cell.spec, own)?;
        return check_memory(&cell.spec, memory);
    }
    let sizes = targets.iter().map(|(_, target)| target.size());
    let smallest = sizes.min().unwrap_or(0);
    let own = cell.spec.own_targets().into_iter().map(find);
    let own = own.collect::<Result<Vec<&Target>>>()?;
    let striped = cell.spec.striped();
    cut_region(
        &mut cell.spec.trial,
        striped.map_or(smallest, |stripe| stripe.capacity(smallest)),
    );
    let spec = &mut cell.spec.trial;
    if cell.spec.batch_auto && (spec.depth == 1 || !spec.backend.is_asynchronous()) {
        spec.batch = Batch::One;
        cell.spec.batch_auto = false;
    }
    // At a given rate completions are taken as they come: there is nothing to choose.
    if cell.spec.batch_auto && spec.rate.is_some() {
        spec.batch = Batch::One;
        cell.spec.batch_auto = false;
    }
    trial::check_over(&cell.spec.trial, &own)?;
    check_memory(&cell.spec, memory)
}

/// Fits each group of a cell, idle ones too, so that all are told alike; their completions are taken as they come.
pub(super) fn fit_groups(
    cell: &mut CellSpec,
    own: impl Fn(Option<&TargetName>, &mut TrialSpec) -> Result<()>,
) -> Result<()> {
    cell.check()?;
    cell.batch_auto = false;
    for group in &mut cell.groups {
        if group.spec.batch_auto {
            group.spec.trial.batch = Batch::One;
            group.spec.batch_auto = false;
        }
        let idle = group.is_idle();
        match own(group.spec.target.as_ref(), &mut group.spec.trial) {
            Err(_) if idle => {}
            fitted => fitted.map_err(|error| error.within(format!("group {}", group.name)))?,
        }
    }
    cell.trial = cell.merge_trials();
    // What was cut may overlap, or be too small, now.
    cell.check()
}

/// Cuts a region to what lies within so many bytes.
pub(super) fn cut_region(spec: &mut TrialSpec, bytes: u64) {
    let room = bytes.saturating_sub(spec.offset);
    if spec.region > room {
        spec.region = room - room % REGION_UNIT.min(room.max(1));
    }
}

/// Refuses buffers, or a table to verify by, that would take most of the memory: the page cache and other people live
/// there too. And what leaves no room for iolab itself.
fn check_memory(cell: &CellSpec, memory: Option<AvailableMemory>) -> Result<()> {
    let Some(memory) = memory else {
        return Ok(());
    };
    let half = memory.bytes / 2;
    let spec = &cell.trial;
    let sum = |of: fn(&TrialSpec) -> u64| -> u64 { cell.trials().into_iter().map(of).sum() };
    let buffers = sum(trial::buffer_bytes);
    let table = sum(iolab_workload::trial::verify_table_bytes);
    if table > half {
        return Err(Error::usage(format!(
            "to verify blocks of {} takes {} MiB, more than half of the {memory}",
            exact_size(spec.bs),
            table >> 20,
        ))
        .hint("choose a larger bs or a smaller region, or leave verify out"));
    }
    if buffers > half {
        return Err(Error::usage(format!(
            "the buffers of {} at depth {} with {} each take {} MiB, more than half of the {memory}",
            counted(spec.threads, "thread"),
            spec.depth,
            exact_size(spec.bs),
            buffers >> 20,
        ))
        .hint("choose fewer threads, a smaller depth or a smaller bs"));
    }
    let own = trial::own_bytes(spec.threads);
    let need = own.saturating_add(buffers).saturating_add(table);
    if need > memory.bytes {
        return Err(Error::usage(format!(
            "iolab takes {} MiB of memory for {} and buffers, more than the {memory}",
            need >> 20,
            counted(spec.threads, "thread"),
        ))
        .hint("choose fewer threads, or allow more memory"));
    }
    Ok(())
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
