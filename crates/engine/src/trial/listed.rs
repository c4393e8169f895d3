//! A trial of one group, whose requests may come from a list.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use crate::kept_memory::KeptMemory;
use crate::list::RequestList;

use super::rank_barrier::Alone;
use super::{Job, RankBarrier, Side, carry_out, merge, signed};
use iolab_host::clock::Clock;
use iolab_storage::Target;
use iolab_workload::outcome::Outcome;
use iolab_workload::trial::{Backend, FileLayout, TrialSpec};
use iolab_workload::{Error, Result};

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
    let side = Side::new(spec, target, stop)?;
    let kept = &mut KeptMemory::default();
    run_side(&side, Some(list), clock, &mut Alone, kept)
}

/// Carries the only group of a trial out, with the requests of a list if there is one.
pub(super) fn run_side(
    side: &Side<'_>,
    list: Option<&Mutex<dyn RequestList>>,
    clock: &Clock,
    meeting: &mut dyn RankBarrier,
    kept: &mut KeptMemory,
) -> Result<Outcome> {
    let stop = side.stop;
    let memory = kept.claim(&[side.spec])?;
    side.prepare(stop)?;
    let jobs = [Job {
        list,
        ..side.job(clock)
    }];
    let mut carried = carry_out(&jobs, stop, meeting, &memory)?;
    let workers = carried.workers.pop().unwrap_or_default();
    meeting.worked(workers.iter().map(|own| (own.start, own.end)).collect());
    let signed = signed(&workers);
    let spare = &memory.histograms;
    let mut outcome = merge(workers, clock, carried.seen, carried.drift_ppm, spare);
    kept.keep(memory);
    outcome.series.note_temperatures(&carried.temperatures);
    outcome.traced = carried.traced.all;
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
