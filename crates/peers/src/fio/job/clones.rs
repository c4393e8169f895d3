//! Clones of a job whose ranges are further apart than their size (`offset_increment`): a job each, side by side.

use iolab_workload::group::GROUPS_MAX;

use super::jobs::Job;
use crate::fio::options::size;

/// The jobs, with one for each clone of those whose ranges have gaps between them, or overlap. As many bytes apart as a job has, the clones
/// are the threads of one job.
pub(super) fn apart(jobs: Vec<Job>) -> Vec<Job> {
    jobs.into_iter().flat_map(clones).collect()
}

fn clones(job: Job) -> Vec<Job> {
    let bytes = |option: &'static str| {
        let text = job.options.get(option)?;
        size(option, text).ok()
    };
    let count = job.options.get("numjobs");
    let count = count.and_then(|text| text.parse::<u64>().ok());
    let count = count.filter(|count| (2..=GROUPS_MAX as u64).contains(count));
    let step = bytes("offset_increment").filter(|step| *step > 0 && bytes("size") != Some(*step));
    let first = match job.options.contains_key("offset") {
        true => bytes("offset"),
        false => Some(0),
    };
    let (Some(count), Some(step), Some(first)) = (count, step, first) else {
        return vec![job];
    };
    if !job.options.contains_key("filename") {
        return vec![job];
    }
    let of_clone =
        |number: u64| job.clone_at(number, first.saturating_add(step.saturating_mul(number)));
    (0..count).map(of_clone).collect()
}
