//! Clones of a job whose ranges are further apart than their size (`offset_increment`): a job each, side by side.

use std::collections::BTreeSet;

use iolab_workload::group::GROUPS_MAX;
use iolab_workload::quantity::exact_size;
use iolab_workload::{Error, Result};

use super::jobs::{JOBS_MAX, Job};
use crate::options::size;

/// The clones of a job.
#[derive(Clone, Copy)]
struct Clones {
    count: u64,
    /// Start of the first range, bytes.
    first: u64,
    /// Distance from the start of a range to the start of the next, bytes.
    step: u64,
}

/// The jobs, with a job of its own for each clone whose ranges have gaps between them, or overlap. Clones exactly one job
/// size apart stay threads of one job.
///
/// # Errors
/// If a trial has no room for the clones; then none of them is made.
pub(super) fn apart(jobs: Vec<Job>) -> Result<Vec<Job>> {
    let clones: Vec<Option<Clones>> = jobs.iter().map(of_job).collect();
    check_count(&jobs, &clones)?;
    let mut taken: BTreeSet<String> = jobs.iter().map(|job| job.name.clone()).collect();
    let mut all = Vec::with_capacity(jobs.len());
    for (job, clones) in jobs.into_iter().zip(clones) {
        let Some(Clones { count, first, step }) = clones else {
            all.push(job);
            continue;
        };
        let (from, further) = (exact_size(first), exact_size(step));
        let came_to = [
            ("numjobs", format!("{count} groups with threads=1 each")),
            ("offset", format!("the first group begins at {from}")),
            (
                "offset_increment",
                format!("the groups begin at {from}, each {further} after the one before"),
            ),
        ];
        for number in 0..count {
            let mut name = format!("{}-{}", job.name, number + 1);
            while !taken.insert(name.clone()) {
                name.push('_');
            }
            let offset = first.saturating_add(step.saturating_mul(number));
            all.push(job.clone_at(name, number, offset, &came_to));
        }
    }
    Ok(all)
}

/// Refuses more clones side by side than a trial has groups, and more in the file than it may have jobs.
fn check_count(jobs: &[Job], clones: &[Option<Clones>]) -> Result<()> {
    let (mut of_stage, mut of_file) = (0_u64, 0_u64);
    let mut before: Option<&Job> = None;
    for (job, clones) in jobs.iter().zip(clones) {
        if before.is_some_and(|before| job.waits(before)) {
            of_stage = 0;
        }
        before = Some(job);
        of_file = of_file.saturating_add(clones.map_or(1, |clones| clones.count));
        of_stage = of_stage.saturating_add(clones.map_or(0, |clones| clones.count));
        let error = if of_stage > GROUPS_MAX as u64 {
            let what = format!(
                "{of_stage} clones with offset_increment run side by side, more than {GROUPS_MAX}"
            );
            Error::usage(what).hint("give a smaller numjobs, or make offset_increment the size of the job: its clones are then threads of one group")
        } else if of_file > JOBS_MAX as u64 {
            let what = format!(
                "there are more than {JOBS_MAX} jobs, with clones that have offset_increment"
            );
            Error::usage(what).hint("give fewer jobs, or a smaller numjobs")
        } else {
            continue;
        };
        return Err(job.place_of("numjobs").error(error));
    }
    Ok(())
}

/// The clones of a job that have ranges of their own; `None` if they are threads of one range, or if the options have a
/// fault.
fn of_job(job: &Job) -> Option<Clones> {
    let bytes = |option: &'static str| {
        let text = job.options.get(option)?;
        size(option, text).ok()
    };
    let count = job.options.get("numjobs")?.parse::<u64>().ok();
    let count = count.filter(|count| *count > 1)?;
    let step =
        bytes("offset_increment").filter(|step| *step > 0 && bytes("size") != Some(*step))?;
    let first = match job.options.contains_key("offset") {
        true => bytes("offset")?,
        false => 0,
    };
    let is_in_file = job.options.contains_key("filename");
    is_in_file.then_some(Clones { count, first, step })
}
