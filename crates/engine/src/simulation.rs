//! A trial in virtual time: the turns of all workers, in one thread, against a disk that is computed.
//!
//! The turns are the ones that measure (`worker.rs`). Only time differs: it jumps from one event of the disk to the next, and the
//! host's own work takes none. So a trial is a pure function of its settings and the state of the disk.

mod worker;

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::list::RequestList;
use crate::trial::{check_list, merge, merge_groups, outcome_of_group};
use iolab_diskmodel::{Completion, Model};
use iolab_host::clock::Clock;
use iolab_workload::group::GroupTrial;
use iolab_workload::outcome::{Ended, GroupOutcome, Outcome};
use iolab_workload::trial::TrialSpec;
use iolab_workload::units::exact_size;
use iolab_workload::{Error, Result};
use worker::{Machine, Worker};

/// Latest time of a disk, ns: 146 years. Times that a disk adds for requests in flight do not overflow.
const TIME_MAX: u64 = 1 << 62;
/// Most bytes in flight. They bound a disk's work between two looks at the stop flag, and its times.
const IN_FLIGHT_MAX: u64 = 64 << 30;
/// Requests completed at one moment, for each that can be in flight, from which a disk is said to take no time.
const AT_ONCE_PER_SLOT: u64 = 16;
/// Least number of requests for that.
const AT_ONCE_LEAST: u64 = 1 << 16;

/// Carries one trial out on `disk`, from `start_ns` of its clock on. Returns the outcome and the time at which the disk was
/// done. Raising `stop` ends the trial early.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): settings that contradict each other, or a disk that takes no time.
pub fn run(
    spec: &TrialSpec,
    disk: &mut dyn Model,
    start_ns: u64,
    stop: &AtomicBool,
) -> Result<(Outcome, u64)> {
    check(spec)?;
    check_in_flight([spec])?;
    let machine = machine(disk, start_ns, stop);
    run_workers(workers(spec, 0, &machine), &[], &machine)
}

/// As [`run`], with the requests of a list in place of a pattern: by its times if the trial has a rate, otherwise each as soon as
/// another completes.
///
/// # Errors
/// As [`run`]; also settings that a list has no use for.
pub fn run_list(
    spec: &TrialSpec,
    list: &mut dyn RequestList,
    disk: &mut dyn Model,
    start_ns: u64,
    stop: &AtomicBool,
) -> Result<(Outcome, u64)> {
    check(spec)?;
    check_list(spec)?;
    check_in_flight([spec])?;
    let machine = machine(disk, start_ns, stop);
    run_workers(vec![Worker::listed(spec, &machine, list)], &[], &machine)
}

/// Disk, clock and stop flag for the workers of a trial.
fn machine<'a>(disk: &'a mut dyn Model, start_ns: u64, stop: &'a AtomicBool) -> Machine<'a> {
    let clock = Clock::in_virtual_time();
    clock.set(start_ns);
    Machine {
        disk: RefCell::new(disk),
        clock,
        stop,
    }
}

/// Carries the workers of a trial out, which belong to these groups if there are several.
fn run_workers(
    mut workers: Vec<Worker<'_>>,
    groups: &[GroupTrial],
    machine: &Machine<'_>,
) -> Result<(Outcome, u64)> {
    let clock = &machine.clock;
    let now = carry_out(&mut workers, machine)?;
    let all: Vec<_> = workers.into_iter().map(Worker::into_outcome).collect();
    let start = all.iter().map(|worker| worker.start).min().unwrap_or(0);
    let mut rest = all.as_slice();
    let of_group = |group: &GroupTrial| {
        let own = rest.split_off(..group.trial.threads as usize);
        outcome_of_group(group, own.unwrap_or_default(), start, clock)
    };
    let apart: Vec<GroupOutcome> = groups.iter().map(of_group).collect();
    // No kernel counts the traffic of a modelled disk.
    let seen = Default::default();
    let mut outcome = merge(all, clock, seen, 0.0);
    if !apart.is_empty() {
        merge_groups(&mut outcome, &apart);
    }
    outcome.groups = apart;
    match outcome.elapsed_ns {
        0 if outcome.ended != Ended::Interrupted => Err(takes_no_time()),
        _ => Ok((outcome, now)),
    }
}

/// [`run`] for a trial of several groups; their results are in [`Outcome::groups`].
///
/// # Errors
/// As [`run`].
pub fn run_groups(
    groups: &[GroupTrial],
    disk: &mut dyn Model,
    start_ns: u64,
    stop: &AtomicBool,
) -> Result<(Outcome, u64)> {
    check_in_flight(groups.iter().map(|group| &group.trial))?;
    let machine = machine(disk, start_ns, stop);
    let mut all: Vec<Worker<'_>> = Vec::new();
    for group in groups {
        check(&group.trial)?;
        let first = all.len() as u32;
        let mut own = workers(&group.trial, first, &machine);
        for worker in &mut own {
            worker.follows = group.follows;
        }
        all.append(&mut own);
    }
    run_workers(all, groups, &machine)
}

/// Checks the settings of some workers.
fn check(spec: &TrialSpec) -> Result<()> {
    if spec.trims() {
        return Err(Error::usage("trims on a model, which has none")
            .hint("set trim_percent=0, or measure a file or a device"));
    }
    spec.check()
}

/// Refuses more bytes in flight than a disk is asked for at a time.
fn check_in_flight<'a>(trials: impl IntoIterator<Item = &'a TrialSpec>) -> Result<()> {
    let bytes = |spec: &TrialSpec| spec.in_flight().saturating_mul(spec.largest_request());
    let all = trials.into_iter().map(bytes);
    let all = all.fold(0, u64::saturating_add);
    match all > IN_FLIGHT_MAX {
        true => Err(Error::usage(format!(
            "{} bytes in flight on a model, more than {}",
            all,
            exact_size(IN_FLIGHT_MAX)
        ))
        .hint("choose a smaller bs, depth or number of threads")),
        false => Ok(()),
    }
}

/// The workers of a group, of which the first gets this number.
fn workers<'a>(spec: &TrialSpec, first: u32, machine: &'a Machine<'a>) -> Vec<Worker<'a>> {
    let worker = |number| Worker::new(spec, (number, first + number), machine);
    (0..spec.threads).map(worker).collect()
}

/// Advances time until all workers are done; returns the disk's time then.
fn carry_out(workers: &mut [Worker<'_>], machine: &Machine<'_>) -> Result<u64> {
    let wakes = workers.iter().any(|worker| worker.wakes);
    let followed = workers.iter().any(|worker| worker.follows);
    let mut now = machine.clock.now();
    let mut done = Vec::new();
    let in_flight: u64 = workers.iter().map(|worker| u64::from(worker.depth)).sum();
    let at_once_max = (AT_ONCE_PER_SLOT * in_flight).max(AT_ONCE_LEAST);
    let mut at_once = 0;
    for worker in workers.iter_mut() {
        worker.turn();
    }
    while !machine.stop.load(Ordering::Relaxed) {
        let wake = match wakes {
            true => workers.iter().filter_map(Worker::wake).min(),
            false => None,
        };
        let event = machine.disk.borrow().next_event();
        let Some(next) = event.into_iter().chain(wake).min() else {
            break;
        };
        if next > TIME_MAX {
            return Err(takes_too_long());
        }
        if next > now {
            (now, at_once) = (next, 0);
            machine.clock.set(now);
        }
        machine.disk.borrow_mut().advance(now, &mut done);
        at_once += done.len() as u64;
        for Completion { tag, .. } in done.drain(..) {
            let worker = &mut workers[(tag >> 32) as usize];
            worker.completed(tag as u32);
            // With a rate or pauses, all workers are examined anyway.
            if !wakes {
                worker.turn_if_due();
            }
        }
        if wakes {
            workers.iter_mut().for_each(Worker::turn_if_due);
        }
        if followed && workers.iter().all(|w| w.follows || w.is_over()) {
            let following = workers.iter_mut().filter(|worker| worker.follows);
            following.for_each(Worker::end_with_others);
        }
        if workers.iter().all(Worker::is_over) {
            break;
        }
        if at_once > at_once_max {
            return Err(takes_no_time());
        }
    }
    if machine.stop.load(Ordering::Relaxed) {
        workers.iter_mut().for_each(Worker::cut_off);
    }
    Ok(now)
}

fn takes_too_long() -> Error {
    Error::usage("requests take longer on this model than its clock counts, 146 years")
        .hint("shorten the times in its definition")
}

fn takes_no_time() -> Error {
    Error::usage("requests take no time on this model, so it has no throughput")
        .hint("put latency, limit or server around it in its definition")
}

#[cfg(test)]
mod tests;
