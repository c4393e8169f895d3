//! A trial of several groups: different workers side by side, started at one barrier and counted apart.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::kept_memory::KeptMemory;

use super::rank_barrier::Alone;
use super::{GroupRole, Side, carry_out, merge, signed, sum};
use iolab_host::clock::Clock;
use iolab_storage::Target;
use iolab_workload::group::GroupTrial;
use iolab_workload::operation::Operation;
use iolab_workload::outcome::{Ended, GroupOutcome, Outcome, Tally};
use iolab_workload::trial::{CacheState, TrialSpec};
use iolab_workload::verify::Verified;
use iolab_workload::{Error, Result};

/// Carries a trial of several groups out, each on its own of the `targets`; their results are in [`Outcome::groups`].
/// Following groups end when the others are over. Raising `stop` ends the trial early. Uses the memory that an earlier
/// trial left, as far as it can.
///
/// # Errors
/// As [`super::run`].
pub fn run_groups(
    groups: &[GroupTrial],
    targets: &[&Target],
    clock: &Clock,
    stop: &AtomicBool,
    kept: &mut KeptMemory,
) -> Result<Outcome> {
    let halt = AtomicBool::new(false);
    let flag = |group: &GroupTrial| if group.follows { &halt } else { stop };
    let sides: Vec<Side<'_>> = groups
        .iter()
        .zip(targets)
        .map(|(group, target)| Side::new(&group.trial, target, flag(group)))
        .collect::<Result<_>>()?;
    let specs: Vec<&TrialSpec> = sides.iter().map(|side| side.spec).collect();
    let memory = kept.claim(&specs)?;
    // A group may have dropped pages from the page cache that another one wants in it.
    let (hot, others): (Vec<_>, Vec<_>) = sides
        .iter()
        .partition(|side| side.spec.cache == CacheState::Hot);
    for side in others.into_iter().chain(hot) {
        side.prepare(stop)?;
    }
    if stop.load(Ordering::Relaxed) {
        return Err(Error::interrupted());
    }
    let jobs: Vec<_> = sides
        .iter()
        .zip(groups)
        .map(|(side, group)| {
            let mut job = side.job(clock);
            job.side = match group.follows {
                true => GroupRole::Follows,
                false => GroupRole::Leads,
            };
            job
        })
        .collect();
    let mut carried = carry_out(&jobs, &halt, &mut Alone, &memory)?;
    let interrupted = stop.load(Ordering::Relaxed);
    for (workers, group) in carried.workers.iter_mut().zip(groups) {
        // A group that was ended with the others has reached its end.
        let cut = workers
            .iter_mut()
            .filter(|worker| worker.account.ended == Ended::Interrupted);
        cut.filter(|_| group.follows && !interrupted)
            .for_each(|worker| worker.account.ended = Ended::Time);
    }
    let starts = carried.workers.iter().flatten().map(|worker| worker.start);
    let start = starts.min().unwrap_or(0);
    let mut apart = Vec::with_capacity(groups.len());
    let each = sides.iter().zip(groups).zip(&carried.workers);
    for (((side, group), workers), traced) in each.zip(carried.traced.each) {
        let mut outcome = sum(workers, clock);
        outcome.traced = traced;
        side.settle(&mut outcome, &signed(workers), stop)?;
        let first = workers.iter().map(|worker| worker.start).min();
        apart.push(GroupOutcome {
            group: group.group,
            start_ns: clock.ns_between(start, first.unwrap_or(start)),
            outcome,
        });
    }
    let workers = carried.workers.into_iter().flatten().collect();
    let spare = &memory.histograms;
    let mut outcome = merge(workers, clock, carried.seen, carried.drift_ppm, spare);
    outcome.series.note_temperatures(&carried.temperatures);
    merge_groups(&mut outcome, &apart);
    kept.keep(memory);
    outcome.traced = carried.traced.all;
    outcome.groups = apart;
    Ok(outcome)
}

/// Adds to the outcome of all groups what followed the timed span, and leaves out values that are defined for all groups
/// only if each has them.
pub(crate) fn merge_groups(outcome: &mut Outcome, groups: &[GroupOutcome]) {
    let parts = || groups.iter().map(|group| &group.outcome);
    outcome.errors = parts().map(|part| part.errors).sum();
    outcome.failure = parts().find_map(|part| part.failure.clone());
    outcome.ended = parts().map(|part| part.ended).max().unwrap_or(Ended::Done);
    outcome.verified = parts()
        .filter_map(|part| part.verified)
        .reduce(Verified::plus);
    let owed: Vec<u64> = parts()
        .filter_map(|part| part.region.owed_sync_ns)
        .collect();
    outcome.region.owed_sync_ns = (!owed.is_empty()).then(|| owed.iter().sum());
    outcome.effective.polled = parts().any(|part| part.effective.polled);
    if parts().any(|part| part.rate_report.is_none()) {
        outcome.rate_report = None;
    }
    let closed = |tally: &Tally| tally.requests > 0 && tally.waits.is_none();
    for operation in Operation::ALL {
        if parts().any(|part| closed(&part.operations[*operation])) {
            outcome.operations[*operation].waits = None;
        }
    }
}
