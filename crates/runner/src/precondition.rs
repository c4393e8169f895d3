//! Brings a target into the state of long use before the first trial.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iolab_stats::{STEADY_RANGE_MAX, STEADY_SLOPE_MAX, STEADY_WINDOW, Steadiness, steady_state};
use iolab_workload::outcome::{Ended, Outcome};
use iolab_workload::trial::{
    Backend, BufferInit, CacheState, Content, Pattern, SyncPolicy, TrialLimit, TrialSpec,
};
use iolab_workload::{Error, Result};

use super::executor::Executor;
use super::sample;
use iolab_plan::cells::PlannedCell;
use iolab_plan::precondition::Precondition;
use iolab_workload::group::GroupSpec;
use iolab_workload::quantity::{format_percent, significant};
use iolab_workload::settings::CellSpec;
use iolab_workload::target::TargetName;

/// I/O size of sequential passes.
const SEQ_BS: u64 = 1 << 20;
/// I/O size of random passes.
const RAND_BS: u64 = 4096;
/// Length of a round on the way to the steady state.
const ROUND: Duration = Duration::from_secs(5);
/// Rounds after which a steady state is not waited for any longer; SNIA's tests end there too.
const ROUNDS_MAX: usize = 25;

/// What is reported on the way.
pub(super) trait StepReporter {
    /// A step begins.
    fn step(&mut self, name: &str);
    /// Something to keep.
    ///
    /// # Errors
    /// When it cannot be kept.
    fn done(&mut self, message: &str) -> Result<()>;
}

/// Writes what the plan says over the range that the cells use, of each target.
///
/// # Errors
/// A write that failed, or the user's interrupt.
pub(super) fn carry_out(
    plan: Precondition,
    cells: &[PlannedCell],
    seed: u64,
    executor: &mut dyn Executor,
    stop: &AtomicBool,
    report: &mut dyn StepReporter,
) -> Result<()> {
    let cells: Vec<PlannedCell> = cells.iter().flat_map(groups_apart).collect();
    let mut targets: Vec<&Option<TargetName>> = cells.iter().map(|c| &c.spec.target).collect();
    targets.sort_unstable();
    targets.dedup();
    for target in targets {
        let own = cells.iter().filter(|cell| cell.spec.target == *target);
        let own: Vec<PlannedCell> = own.cloned().collect();
        of_one(plan, &own, seed, executor, stop, report)?;
    }
    Ok(())
}

/// A cell for each group that has a target of its own, or shares one, and for each target of a stripe: what is written is
/// written target by target.
fn groups_apart(cell: &PlannedCell) -> Vec<PlannedCell> {
    if let Some(stripe) = cell.spec.striped() {
        let of = |target: Option<&TargetName>| {
            let mut own = cell.clone();
            let trial = &mut own.spec.trial;
            let range = stripe.on_each(trial.offset..trial.offset + trial.region);
            (trial.offset, trial.region) = (range.start, range.end - range.start);
            own.spec.target = target.cloned();
            own
        };
        return cell.spec.own_targets().into_iter().map(of).collect();
    }
    if !cell.spec.has_groups() {
        return vec![cell.clone()];
    }
    let of = |group: &GroupSpec| PlannedCell {
        spec: group.spec.clone(),
        ..cell.clone()
    };
    cell.spec.active().map(of).collect()
}

/// The same of the one target of these cells.
fn of_one(
    plan: Precondition,
    cells: &[PlannedCell],
    seed: u64,
    executor: &mut dyn Executor,
    stop: &AtomicBool,
    report: &mut dyn StepReporter,
) -> Result<()> {
    let Some(range) = Range::of(cells) else {
        return Ok(());
    };
    let target = cells.first().and_then(|cell| cell.spec.target.clone());
    let place = target
        .as_ref()
        .map_or_else(String::new, |name| format!(" on {name}"));
    let mut write =
        |name: &str, spec: TrialSpec, report: &mut dyn StepReporter| -> Result<Outcome> {
            report.step(&format!("precondition{place}: {name}"));
            let cell = CellSpec {
                trial: spec,
                batch_auto: false,
                target: target.clone(),
                ..CellSpec::default()
            };
            let outcome = executor.run(&cell, stop)?;
            if outcome.ended == Ended::Interrupted {
                return Err(Error::interrupted());
            }
            match &outcome.failure {
                Some(failure) => Err(Error::failed(sample::describe(failure))
                    .within("precondition")
                    .hint(sample::remedy(failure))),
                None => Ok(outcome),
            }
        };
    let (seq, rand) = match plan {
        Precondition::None => return Ok(()),
        Precondition::Passes { seq, rand } => (seq, rand),
        Precondition::Steady => (1, 0),
    };
    let passes = (0..seq)
        .map(|_| Pattern::Seq)
        .chain((0..rand).map(|_| Pattern::Rand));
    for (number, pattern) in passes.enumerate() {
        let name = format!("pass {} of {}, {pattern}", number + 1, seq + rand);
        let spec = range.writes(pattern, seed.wrapping_add(number as u64), None);
        let outcome = write(&name, spec, report)?;
        let mb_s = outcome.bytes() as f64 * 1e3 / outcome.elapsed_ns.max(1) as f64;
        report.done(&format!(
            "precondition{place}, {name}: {} MB/s",
            significant(mb_s)
        ))?;
    }
    if plan == Precondition::Steady {
        let round = |number: usize, report: &mut dyn StepReporter| -> Result<f64> {
            let name = format!("round {number}, random writes until steady");
            let spec = range.writes(Pattern::Rand, seed.wrapping_add(number as u64), Some(ROUND));
            let outcome = write(&name, spec, report)?;
            Ok(outcome.requests() as f64 * 1e9 / outcome.elapsed_ns.max(1) as f64)
        };
        until_steady(round, report)?;
    }
    Ok(())
}

fn until_steady(
    mut round: impl FnMut(usize, &mut dyn StepReporter) -> Result<f64>,
    report: &mut dyn StepReporter,
) -> Result<()> {
    let mut rates = Vec::new();
    let mut last: Option<Steadiness> = None;
    while rates.len() < ROUNDS_MAX && !last.is_some_and(|steady| steady.reached) {
        rates.push(round(rates.len() + 1, report)?);
        last = steady_state(&rates);
    }
    let rounds = rates.len();
    let rates: Vec<String> = rates.into_iter().map(significant).collect();
    let window = last.map_or_else(String::new, |steady| {
        format!(
            ", the last {STEADY_WINDOW} lie within {} (at most {} allowed) with a slope of {} (at most {})",
            format_percent(steady.range),
            format_percent(STEADY_RANGE_MAX),
            format_percent(steady.slope),
            format_percent(STEADY_SLOPE_MAX),
        )
    });
    let reached = match last {
        Some(steady) if steady.reached => "reached",
        _ => "NOT reached",
    };
    report.done(&format!(
        "precondition: steady state {reached} after {rounds} rounds of random writes{window}; IOPS {}",
        rates.join(", ")
    ))
}

/// The bytes that the cells use, and how they are written.
struct Range {
    offset: u64,
    end: u64,
    cache: CacheState,
}

impl Range {
    fn of(cells: &[PlannedCell]) -> Option<Self> {
        let specs = || cells.iter().flat_map(|cell| cell.spec.trials());
        let direct = specs().any(|spec| spec.cache == CacheState::Direct);
        Some(Self {
            offset: specs().map(|spec| spec.offset).min()?,
            end: specs().map(|spec| spec.offset + spec.region).max()?,
            cache: if direct {
                CacheState::Direct
            } else {
                CacheState::Cold
            },
        })
    }

    /// One pass, or as much of it as the time allows; durable at its end.
    fn writes(&self, pattern: Pattern, seed: u64, time: Option<Duration>) -> TrialSpec {
        let region = self.end - self.offset;
        let bs = if pattern == Pattern::Seq {
            SEQ_BS
        } else {
            RAND_BS
        };
        TrialSpec {
            backend: Backend::Psync,
            pattern,
            // A region may be smaller than a request, but is a multiple of what direct I/O wants.
            bs: if region.is_multiple_of(bs) {
                bs
            } else {
                RAND_BS.min(region)
            },
            offset: self.offset,
            region,
            read_percent: 0,
            sync: SyncPolicy::End,
            cache: self.cache,
            buffer_init: BufferInit::Random,
            content: Content::Unique,
            limit: TrialLimit {
                time,
                ..TrialLimit::default()
            },
            seed,
            latency: false,
            ..TrialSpec::default()
        }
    }
}
