//! A trial in virtual time: the loops of the workers, against a disk that is computed.
//!
//! Offsets, read-write mix, bounds, sync policies, intended starts, intervals and histograms are those of the real
//! loops (`worker.rs`). Only time is another: it goes from one event of the disk to the next, and what the host
//! does takes none. So a trial is a pure function of its settings and the state of the disk.

mod worker;

use std::sync::atomic::{AtomicBool, Ordering};

use crate::trial::merge;
use iolab_observe::clock::Clock;
use iolab_spec::counters::Counters;
use iolab_spec::outcome::{Ended, Outcome};
use iolab_spec::region::Region;
use iolab_spec::trial::TrialSpec;
use iolab_spec::{Error, Result};
use worker::Worker;

/// What is asked of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// So many bytes at an offset.
    Read {
        /// First byte.
        offset: u64,
        /// Bytes.
        bytes: u64,
    },
    /// The same, to the disk.
    Write {
        /// First byte.
        offset: u64,
        /// Bytes.
        bytes: u64,
    },
    /// That all that was written before becomes durable.
    Flush,
}

/// A disk that is computed. Times are ns of its own clock and never decrease.
pub trait Disk {
    /// Takes a request at `now_ns`; `tag` names it when it completes.
    fn submit(&mut self, now_ns: u64, tag: u64, ask: Ask);

    /// When something happens next; `None` when no request is under way.
    fn next_event(&self) -> Option<u64>;

    /// Lets happen what happens up to and including `until_ns`; tags of requests that have completed go to `done`.
    fn advance(&mut self, until_ns: u64, done: &mut Vec<u64>);
}

/// Events between two looks at the stop flag.
const LOOK_EVERY: u32 = 4096;
/// Requests completed at one moment from which a disk is said to take no time: more than can be in flight.
const AT_ONCE_MAX: u64 = 1 << 23;

/// Carries one trial out on `disk`, from `start_ns` of its clock on, and gives what was done and when the disk was done
/// with it. Raising `stop` ends it early.
///
/// # Errors
/// Of kind usage: settings that contradict each other, or a disk that takes no time.
pub fn run(
    spec: &TrialSpec,
    disk: &mut dyn Disk,
    start_ns: u64,
    stop: &AtomicBool,
) -> Result<(Outcome, u64)> {
    spec.check()?;
    if spec.trims() {
        return Err(Error::usage("trims on a model, which has none")
            .hint("set trim_percent=0, or measure a file or a device"));
    }
    let clock = Clock::of_rate(1.0);
    let mut workers: Vec<Worker<'_>> = (0..spec.threads)
        .map(|number| Worker::new(spec, number, &clock, start_ns))
        .collect();
    // Whether workers issue requests at times of their own, not only when one completes.
    let paced = spec.rate.is_some() || spec.pauses();
    let mut now = start_ns;
    let mut done = Vec::new();
    let mut at_once = 0;
    let mut until_look = LOOK_EVERY;
    for worker in &mut workers {
        worker.turn(now, disk);
    }
    loop {
        let wakes = workers.iter().filter_map(Worker::wake);
        let wake = if paced { wakes.min() } else { None };
        let Some(next) = disk.next_event().into_iter().chain(wake).min() else {
            break;
        };
        if next > now {
            (now, at_once) = (next, 0);
        }
        disk.advance(now, &mut done);
        at_once += done.len() as u64;
        for tag in done.drain(..) {
            let (number, slot) = ((tag >> 32) as usize, tag as u32);
            workers[number].completed(slot, now, disk);
            // With starts of their own all workers are looked at anyway.
            if !paced {
                workers[number].turn_if_due(now, disk);
            }
        }
        if paced {
            for worker in &mut workers {
                worker.turn_if_due(now, disk);
            }
        }
        if workers.iter().all(Worker::is_over) {
            break;
        }
        if at_once > AT_ONCE_MAX {
            return Err(takes_no_time());
        }
        until_look -= 1;
        if until_look == 0 {
            until_look = LOOK_EVERY;
            if stop.load(Ordering::Relaxed) {
                workers.iter_mut().for_each(|worker| worker.cut_off(now));
                break;
            }
        }
    }
    let outcomes = workers.into_iter().map(Worker::into_outcome).collect();
    let seen = (Counters::default(), Region::default());
    let outcome = merge(outcomes, &clock, seen, 0.0);
    if outcome.elapsed_ns == 0 && outcome.ended != Ended::Interrupted {
        return Err(takes_no_time());
    }
    Ok((outcome, now))
}

fn takes_no_time() -> Error {
    Error::usage("requests take no time on this model, so it has no throughput")
        .hint("put latency, limit or server around it in its definition")
}

#[cfg(test)]
mod tests;
