//! Fits a cell to the targets of a run, and checks it.

use std::path::Path;

use iolab_engine::trial;
use iolab_host::memory::{AvailableMemory, HugePages};
use iolab_plan::batch_probes;
use iolab_plan::cells::PlannedCell;
use iolab_storage::Target;
use iolab_workload::names::TargetName;
use iolab_workload::quantity::{counted, exact_size};
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{Batch, BufferInit, TrialSpec};
use iolab_workload::{Result, usage_errors};

use super::target_numbers::number_of;

/// A region is cut to whole multiples of this.
pub(super) const REGION_UNIT: u64 = 4096;

/// Cuts a cell's region to the size of the run's targets, and checks the cell against its own target and against the
/// present memory. Without groups no cell goes beyond the smallest target: cells that differ in the target must differ in
/// nothing else.
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
            trial::check_against(spec, target)
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
    trial::check_against(&cell.spec.trial, own)?;
    check_memory(&cell.spec, memory)
}

/// Fits each group of a cell, also idle ones, so that all have the same settings; their completions are collected as they come.
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
    // Cut ranges may overlap, or be too small, now.
    cell.check()
}

/// Truncates a region to the part within this many bytes.
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
    let own = trial::own_bytes(spec.threads);
    let need = own.saturating_add(buffers).saturating_add(table);
    usage_errors! {
        need > memory.bytes => format!("iolab takes {} MiB of memory for {threads} and buffers, more than the {memory}", need >> 20),
            "choose fewer threads, or allow more memory";
    }
    Ok(())
}
