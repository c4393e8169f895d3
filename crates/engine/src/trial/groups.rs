//! A trial of several groups: different workers side by side, started at one barrier and counted apart.
//!
//! A trial of one group, whose requests may come from a list.
//!
//! Merges the results of a trial's workers into one outcome.

use std::mem;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::barrier::Alone;
use super::{Carried, GroupRole, Job, RankBarrier, Side, TrialMemory, carry_out, signed};
use crate::buffer::Pieces;
use crate::list::RequestList;
use crate::request_tracer::Tracing;
use crate::worker::WorkerOutcome;
use iolab_host::clock::Clock;
use iolab_storage::Target;
use iolab_workload::counters::{Counters, Hardware, ProcessIo, either};
use iolab_workload::group::GroupTrial;
use iolab_workload::histogram::over_time::LatencyOverTime;
use iolab_workload::operation::{Operation, PerOperation};
use iolab_workload::outcome::{Ended, GroupOutcome, Outcome, Tally};
use iolab_workload::region_state::{Region, Verified};
use iolab_workload::trial::{Backend, CacheState, FileLayout, TrialSpec};
use iolab_workload::{Error, Result};

/// Carries a trial of several groups out, each on its own of the `targets`, in a program that can trace requests with `tracing`; their
/// results are in [`Outcome::groups`].
/// Following groups end when the others are over. Raising `stop` ends the trial early.
///
/// # Errors
/// As [`super::run`].
pub fn run_groups(
    groups: &[GroupTrial],
    targets: &[&Target],
    clock: &Clock,
    stop: &AtomicBool,
    tracing: Tracing,
) -> Result<Outcome> {
    let halt = AtomicBool::new(false);
    let flag = |group: &GroupTrial| if group.follows { &halt } else { stop };
    let sides: Vec<Side<'_>> = groups
        .iter()
        .zip(targets)
        .map(|(group, target)| Side::new(&group.trial, target, flag(group), tracing))
        .collect::<Result<_>>()?;
    let specs: Vec<&TrialSpec> = sides.iter().map(|side| side.spec).collect();
    let memory = TrialMemory::new(&specs)?;
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
    let mut carried = carry_out(&jobs, &halt, &mut Alone, &memory, tracing)?;
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
    let mut traced = mem::take(&mut carried.traced.each).into_iter();
    for ((side, group), workers) in sides.iter().zip(groups).zip(&carried.workers) {
        let mut own = outcome_of_group(group, workers, start, clock);
        own.outcome.traced = traced.next().flatten();
        side.settle(&mut own.outcome, &signed(workers.iter()), stop)?;
        apart.push(own);
    }
    let mut outcome = carried.merged(clock);
    merge_groups(&mut outcome, &apart);
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

/// As [`run`](super::run), with the requests of a list in place of a pattern: by its times if the trial has a rate, otherwise each as
/// soon as another completes. The rate only goes into the report.
///
/// # Errors
/// As [`run`](super::run); also settings that a list has no use for.
pub fn run_list(
    spec: &TrialSpec,
    list: &Mutex<dyn RequestList>,
    target: &Target,
    clock: &Clock,
    stop: &AtomicBool,
) -> Result<Outcome> {
    check_list(spec)?;
    let side = Side::new(spec, target, stop, None)?;
    run_side(&side, Some(list), clock, &mut Alone, None)
}

/// Carries the only group of a trial out, with the requests of a list if there is one.
pub(super) fn run_side(
    side: &Side<'_>,
    list: Option<&Mutex<dyn RequestList>>,
    clock: &Clock,
    meeting: &mut dyn RankBarrier,
    tracing: Tracing,
) -> Result<Outcome> {
    let stop = side.stop;
    let memory = TrialMemory::new(&[side.spec])?;
    side.prepare(stop)?;
    let jobs = [Job {
        list,
        ..side.job(clock)
    }];
    let carried = carry_out(&jobs, stop, meeting, &memory, tracing)?;
    let workers = || carried.workers.iter().flatten();
    meeting.worked(workers().map(|own| (own.start, own.end)).collect());
    let signed = signed(workers());
    let mut outcome = carried.merged(clock);
    side.settle(&mut outcome, &signed, stop)?;
    Ok(outcome)
}

/// Refuses settings that a list has no use for.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): the setting.
pub(crate) fn check_list(spec: &TrialSpec) -> Result<()> {
    let refused = [
        ("threads", spec.threads > 1),
        ("bs_mix", spec.bs_mix.is_some()),
        ("thinktime", spec.thinktime.is_some()),
        ("trim_percent", spec.trims()),
        ("verify", spec.verify),
        ("trace", spec.trace),
        ("latency_over_time", spec.latency_over_time),
        ("layout", spec.layout != FileLayout::Shared),
        (
            "backend",
            matches!(spec.backend, Backend::Sync | Backend::Mmap),
        ),
    ];
    match refused.iter().find(|(_, is_set)| *is_set) {
        None => Ok(()),
        Some((name, _)) => Err(Error::usage(format!(
            "a list of requests cannot be issued with this {name}"
        ))
        .hint("leave the setting out")),
    }
}

impl Carried {
    /// The outcome of all workers.
    pub(super) fn merged(self, clock: &Clock) -> Outcome {
        let workers = self.workers.into_iter().flatten().collect();
        let mut merged = merge(workers, clock, self.seen, self.drift_ppm);
        merged.series.note_temperatures(&self.temperatures);
        merged.traced = self.traced.all;
        merged
    }
}

/// The outcome of all workers of a trial.
pub(crate) fn merge(
    workers: Vec<WorkerOutcome>,
    clock: &Clock,
    (counters, region): (Counters, Region),
    clock_drift_ppm: f64,
) -> Outcome {
    let mut merged = sum(&workers, clock);
    merged.counters = Counters {
        hardware: merged.counters.hardware,
        buffer_piece_bytes: merged.counters.buffer_piece_bytes,
        ..counters
    };
    merged.region = region;
    merged.clock_drift_ppm = clock_drift_ppm;
    let series = workers.into_iter().map(|worker| worker.series);
    merged.series = crate::series::merged(series, clock);
    merged
}

/// The outcome of a group's workers, in a trial that began at the stamp `start`.
pub(crate) fn outcome_of_group(
    group: &GroupTrial,
    workers: &[WorkerOutcome],
    start: u64,
    clock: &Clock,
) -> GroupOutcome {
    let first = workers.iter().map(|worker| worker.start).min();
    GroupOutcome {
        group: group.group,
        start_ns: clock.ns_between(start, first.unwrap_or(start)),
        outcome: sum(workers, clock),
    }
}

/// The outcome of some workers, with the kernel's counters of their threads; without a series.
fn sum(workers: &[WorkerOutcome], clock: &Clock) -> Outcome {
    let mut merged = Outcome::default();
    let mut in_flight = Some(0.0);
    let mut pieces: Option<Pieces> = None;
    for worker in workers {
        pieces = either(Pieces::plus)(pieces, worker.pieces);
        let (counters, own) = (&mut merged.counters, &worker.account.counters);
        counters.process_io = either(ProcessIo::plus)(counters.process_io, own.process_io);
        counters.usage = counters.usage.plus(own.usage);
        let times_ns = merged.add(&worker.account);
        merged.effective = worker.account.effective.clone();
        in_flight = in_flight
            .zip(own_in_flight(worker, times_ns, clock))
            .map(|(sum, own)| sum + own);
    }
    let spans = workers.iter().map(|worker| worker.series.span_ns(clock));
    let span_ns = spans.max().unwrap_or(0);
    let ended = |own: LatencyOverTime| match own.intervals.is_empty() {
        true => own,
        false => own.ended_at(span_ns),
    };
    merged.latency_over_time = merged.latency_over_time.map(|all| all.map(ended));
    let hardware = workers.iter().map(|own| own.account.counters.hardware);
    merged.counters.hardware = hardware.reduce(Hardware::plus).unwrap_or_default();
    merged.counters.buffer_piece_bytes = pieces.map(|pieces| pieces.bytes / pieces.count);
    merged.in_flight = in_flight;
    let starts = || workers.iter().map(|worker| worker.start);
    let ends = || workers.iter().map(|worker| worker.end);
    let between = |from: Option<u64>, to: Option<u64>| {
        let span = from.zip(to);
        span.map_or(0, |(from, to)| clock.ns_between(from, to))
    };
    merged.elapsed_ns = between(starts().min(), ends().max());
    merged.all_active_ns = between(starts().max(), ends().min());
    merged
}

/// Requests that a worker had in flight on average, whose times add up to `times_ns`; `None` if it did not record them.
fn own_in_flight(
    worker: &WorkerOutcome,
    times_ns: PerOperation<f64>,
    clock: &Clock,
) -> Option<f64> {
    let span_ns = clock
        .ns_between(worker.start, worker.end)
        .checked_sub(worker.account.end_sync_ns)?;
    let requests = || {
        worker
            .account
            .operations
            .iter()
            .filter(|(o, _)| o.is_request())
    };
    let is_timed = requests().all(|(_, tally)| tally.latency.len() >= tally.requests);
    let time_ns: f64 = requests().map(|(o, _)| times_ns[o]).sum();
    (is_timed && span_ns > 0).then(|| time_ns / span_ns as f64)
}
