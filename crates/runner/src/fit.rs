//! Fits an experiment's cells to a target, each checked before anything is written.

use std::path::Path;

use iolab_engine::request_tracer::Tracing;
use iolab_engine::trial;
use iolab_host::machine::{AvailableMemory, HugePages};
use iolab_plan::batch_probes;
use iolab_plan::cells::{FittedPlan, Plan, PlannedCell, Processes};
use iolab_plan::experiment::{Experiment, LevelChange};
use iolab_record::Cell;
use iolab_storage::{Target, procfs};
use iolab_workload::names::TargetName;
use iolab_workload::settings::{CellSpec, Setting};
use iolab_workload::trial::{Batch, BufferInit, TrialSpec};
use iolab_workload::units::{counted, exact_size};
use iolab_workload::{Error, Result, usage_errors};

use super::SystemUnderTest;
use super::targets::{REGION_UNIT, number_of};

/// Fits plans to a place, all of them before anything is written, and returns the changes made to fit in words. If a target
/// does not allow direct I/O, they go through its page cache, unless `keeps_cache` says to carry them out as they are.
/// `processes` are the processes that the plans were made for, and `tracing` traces requests, if the program can.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage), naming the cell and what would fit.
pub fn fit_all(
    plans: Vec<Plan>,
    place: &SystemUnderTest,
    processes: &dyn Processes,
    keeps_cache: bool,
    tracing: Tracing,
) -> Result<(Vec<FittedPlan>, Vec<String>)> {
    let refusal = match keeps_cache {
        true => None,
        false => refusal_of_direct(place),
    };
    let is_changed = refusal.is_some() && plans.iter().any(Plan::can_be_buffered);
    let fitted = |plan: Plan| match refusal.is_some() && plan.can_be_buffered() {
        true => fit_to(plan.buffered(processes)?, place, tracing),
        false => fit_to(plan, place, tracing),
    };
    let wanted = plans.iter().filter_map(measured_end).max();
    let plans: Vec<FittedPlan> = plans.into_iter().map(fitted).collect::<Result<_>>()?;
    let note = refusal.filter(|_| is_changed).map(|reason| {
        format!(
            "{}; measuring through the page cache instead (cache=cold)",
            reason.message()
        )
    });
    let end = plans.iter().filter_map(|plan| measured_end(plan)).max();
    let cut = wanted.zip(end).filter(|(wanted, end)| end < wanted);
    let cut = cut.and_then(|(_, end)| shared_limit(place, end));
    Ok((plans, note.into_iter().chain(cut).collect()))
}

/// The end of the farthest region that the cells of a plan ask for, bytes; `None` of groups, which have their own.
fn measured_end(plan: &Plan) -> Option<u64> {
    let cells = plan.cells().iter().filter(|cell| !cell.spec.has_groups());
    let trials = cells.map(|cell| &cell.spec.trial);
    trials
        .map(|trial| trial.offset.saturating_add(trial.region))
        .max()
}

/// Names the one of several targets that limits what is measured to these bytes, or says that a model does. `None`
/// for a single target, which reports it itself.
fn shared_limit(place: &SystemUnderTest, end: u64) -> Option<String> {
    if let SystemUnderTest::Model(disk) = place {
        return Some(format!(
            "{} is measured in its first {}, because {} has no more",
            disk.name(),
            exact_size(end),
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
        "all targets are measured in their first {}, because {} has no more",
        exact_size(end),
        smallest.display()
    ))
}

/// Why the first of the targets that allow no direct I/O does not.
fn refusal_of_direct(place: &SystemUnderTest) -> Option<Error> {
    let targets = place.targets().into_iter();
    let mut refused = targets.filter_map(|(_, target)| target.direct_alignment().err());
    refused.next()
}

/// Cuts the regions of a plan to the size of the target, and checks each cell against it. Nothing is written.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage), naming the cell and a fitting setting.
pub(super) fn fit_to(plan: Plan, place: &SystemUnderTest, tracing: Tracing) -> Result<FittedPlan> {
    FittedPlan::of(plan, &|cell| place.fit(cell, tracing))
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
    }
}

/// Changes an experiment so that it does without the levels that this system refuses to every trial, and returns a sentence
/// for each. Settings that the user has chosen, for which `is_chosen` holds, stay: the trial then reports the missing
/// feature.
///
/// # Errors
///
/// As [`Experiment::do_without`].
pub fn adapt_to_system(
    experiment: &mut Experiment,
    is_chosen: &dyn Fn(&str) -> bool,
) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    for missing in iolab_engine::missing_levels() {
        let Some(setting) = Setting::find(missing.setting) else {
            continue;
        };
        if is_chosen(missing.setting) {
            continue;
        }
        let done = experiment.do_without(setting, missing.level, missing.instead)?;
        let (name, why) = (&experiment.name, &missing.why);
        let change = match (done, missing.instead) {
            (LevelChange::Unchanged, _) => continue,
            (LevelChange::Replaced, Some(instead)) => {
                format!("{}={instead} instead of {}", missing.setting, missing.level)
            }
            (LevelChange::LeftOut | LevelChange::Replaced, _) => {
                format!("left out {}={}", missing.setting, missing.level)
            }
        };
        notes.push(format!("{name}: {change}: {why}"));
    }
    Ok(notes)
}

/// Cuts a cell's region to the size of the run's targets, and checks the cell against its own target and against the
/// present memory. Without groups no cell goes beyond the smallest target: cells that differ in the target must differ in
/// nothing else.
pub(super) fn fit(
    cell: &mut PlannedCell,
    targets: &[(&Path, &Target)],
    tracing: Tracing,
) -> Result<()> {
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
        // A group that names the run's own target uses the same bytes as groups that name none.
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
            trial::check_against(spec, target, tracing)
        };
        fit_groups(&mut cell.spec, own)?;
        return check_memory(&cell.spec, memory);
    }
    let sizes = targets.iter().map(|(_, target)| target.size());
    let smallest = sizes.min().unwrap_or(0);
    let own = find(cell.spec.target.as_ref())?;
    cut_region(&mut cell.spec.trial, smallest);
    if cell.spec.batch_auto && !batch_probes::is_open(&cell.spec) {
        cell.spec.trial.batch = Batch::One;
        cell.spec.batch_auto = false;
    }
    trial::check_against(&cell.spec.trial, own, tracing)?;
    check_memory(&cell.spec, memory)
}

/// Fits each group of a cell, also idle ones, so that all have the same settings; their completions are collected as they come.
pub fn fit_groups(
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
    // Cut ranges may overlap, or be too small, now.
    cell.check()
}

/// Truncates a region to the part within this many bytes.
pub fn cut_region(spec: &mut TrialSpec, bytes: u64) {
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
    let (threads, bs) = (counted(spec.threads, "thread"), exact_size(spec.bs));
    usage_errors! {
        table > half => format!("to verify blocks of {bs} takes {} MiB, more than half of the {memory}", table >> 20),
            "choose a larger bs or a smaller region, or leave verify out";
        buffers > half =>
            format!("the buffers of {threads} at depth {} with {bs} each take {} MiB, more than half of the {memory}", spec.depth, buffers >> 20),
            match spec.buffer_init {
                BufferInit::Huge => format!("choose fewer threads, or another buffer_init: huge pages have {} here", exact_size(HugePages::of_kernel().bytes)),
                _ => "choose fewer threads, a smaller depth or a smaller bs".to_owned(),
            };
    }
    let own = procfs::resident(spec.threads);
    let need = own.saturating_add(buffers).saturating_add(table);
    usage_errors! {
        need > memory.bytes => format!("iolab takes {} MiB of memory for {threads} and buffers, more than the {memory}", need >> 20),
            "choose fewer threads, or allow more memory";
    }
    Ok(())
}
