//! Brings a target into the state of long use before the first trial.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::io::Errno;

use iolab_analysis::analysis::limits;
use iolab_record::{EventKind, PreparationKind, PreparationStep};
use iolab_stats::{Steadiness, steady_state};
use iolab_workload::outcome::{Ended, Failure};
use iolab_workload::response::mb_s;
use iolab_workload::trial::{
    Backend, BufferInit, CacheState, Pattern, SyncPolicy, TrialLimit, TrialSpec,
};
use iolab_workload::{Error, Kind, Result};

use super::{Session, check};
use crate::evidence::Origin;
use crate::executor::Executor;
use crate::{now_utc, sample};
use iolab_plan::cells::PlannedCell;
use iolab_plan::precondition::{Emptying, Precondition, RAND_BS, Round, SteadyRounds};
use iolab_workload::group::GroupSpec;
use iolab_workload::names::TargetName;
use iolab_workload::settings::CellSpec;
use iolab_workload::units::{exact_size, format_bytes, format_percent, significant};

/// The largest request that trims, bytes.
const TRIM_BS: u64 = 1 << 30;

impl Session<'_> {
    /// Carries out the design's preparation before the first trial, over the range that the cells use, for each target; also when a
    /// run is resumed: the target may have changed in between.
    ///
    /// # Errors
    /// A write that failed, or the user's interrupt.
    pub(super) fn precondition(
        &mut self,
        executor: &mut dyn Executor,
        stop: &AtomicBool,
    ) -> Result<()> {
        let cells = self.record.plan.cells().iter();
        let cells: Vec<PlannedCell> = cells.flat_map(groups_apart).collect();
        let mut targets: Vec<&Option<TargetName>> = cells.iter().map(|c| &c.spec.target).collect();
        targets.sort_unstable();
        targets.dedup();
        for target in targets {
            let own = cells.iter().filter(|cell| cell.spec.target == *target);
            let own: Vec<PlannedCell> = own.cloned().collect();
            if let Some(range) = Range::of(&own) {
                let steps = Steps {
                    range,
                    target: target.clone(),
                    seed: self.record.seed,
                    executor,
                    stop,
                    session: self,
                    is_refused: false,
                };
                steps.carry_out()?;
            }
        }
        Ok(())
    }
}

/// A cell for each group that has a target of its own, or shares one: preparation proceeds target by target.
fn groups_apart(cell: &PlannedCell) -> Vec<PlannedCell> {
    if !cell.spec.has_groups() {
        return vec![cell.clone()];
    }
    let of = |group: &GroupSpec| PlannedCell {
        spec: group.spec.clone(),
        ..cell.clone()
    };
    cell.spec.active().map(of).collect()
}

/// The steps over the range of one target.
struct Steps<'a, 'b> {
    range: Range,
    target: Option<TargetName>,
    seed: u64,
    executor: &'a mut dyn Executor,
    stop: &'a AtomicBool,
    session: &'a mut Session<'b>,
    /// Whether the target does not support the last trial at all.
    is_refused: bool,
}

impl Steps<'_, '_> {
    fn carry_out(mut self) -> Result<()> {
        let Precondition {
            emptying,
            seq,
            seq_bs,
            rand,
            steady,
        } = self.session.record.plan.experiment().design.precondition;
        match emptying {
            Emptying::Not => {}
            Emptying::Trim => self.trim(None)?,
            Emptying::Purge => self.purge()?,
        }
        let all = seq + rand;
        for pass in 1..=seq {
            let of_all = (pass, pass, all);
            self.pass(PreparationKind::Sequential, of_all, Pattern::Seq, seq_bs)?;
        }
        for pass in 1..=rand {
            let of_all = (pass, seq + pass, all);
            self.pass(PreparationKind::Random, of_all, Pattern::Rand, RAND_BS)?;
        }
        match steady {
            Some(rounds) => match rounds.round {
                Round::Writes(time) => self.until_steady(rounds, time),
                // Rounds of cells are the trials of the run.
                Round::Cells => Ok(()),
            },
            None => Ok(()),
        }
    }

    /// Stores a step, which ends now.
    fn keep(&mut self, step: PreparationStep) -> Result<()> {
        self.session.file.add_preparation(&PreparationStep {
            at_utc: now_utc(),
            target: self.target.as_ref().map(ToString::to_string),
            ..step
        })
    }

    /// Tells this of the preparation of the target.
    fn tell(&mut self, kind: EventKind, text: &str) -> Result<()> {
        let message = format!("precondition{}{text}", self.place());
        self.session.event(kind, &message)
    }

    /// ` on DISK`; nothing if there is one target.
    fn place(&self) -> String {
        let target = self.target.as_ref();
        target.map_or_else(String::new, |name| format!(" on {name}"))
    }

    fn cell(&self, trial: TrialSpec) -> CellSpec {
        CellSpec {
            trial,
            batch_auto: false,
            target: self.target.clone(),
            ..CellSpec::default()
        }
    }

    /// Makes one step of these trials, one after the other, and stores the step even if it did not end: the target has
    /// changed.
    fn make(
        &mut self,
        kind: PreparationKind,
        number: u32,
        name: &str,
        specs: Vec<TrialSpec>,
    ) -> Result<PreparationStep> {
        let place = self.place();
        let name = format!("precondition{place}: {name}");
        self.session.observer.step_starts(&name);
        let mut step = PreparationStep {
            kind,
            number,
            bs: specs.first().map(|spec| spec.bs),
            ..PreparationStep::default()
        };
        let made = specs
            .into_iter()
            .try_for_each(|spec| self.add(spec, &mut step));
        step.ok = made.is_ok();
        self.keep(step.clone())?;
        made.map(|()| step)
    }

    /// Carries out one trial of a step, and adds its result.
    fn add(&mut self, spec: TrialSpec, step: &mut PreparationStep) -> Result<()> {
        let cell = self.cell(TrialSpec {
            seed: self.seed,
            ..spec
        });
        self.seed = self.seed.wrapping_add(1);
        let outcome = self.executor.run(&cell, self.stop)?;
        step.requests += outcome.requests();
        step.bytes += outcome.bytes();
        step.elapsed_ns += outcome.elapsed_ns;
        if outcome.ended == Ended::Interrupted {
            return Err(Error::interrupted());
        }
        self.is_refused = outcome.failure.as_ref().is_some_and(is_refusal);
        match &outcome.failure {
            None => Ok(()),
            Some(failure) => Err(Error::failed(sample::describe(failure))
                .within("precondition")
                .hint(sample::remedy(failure))),
        }
    }

    /// Whether this is a new disk that is computed, which holds nothing.
    fn is_new(&self) -> bool {
        let origin = self.executor.origin(&self.cell(TrialSpec::default()));
        matches!(origin, Origin::Model)
    }

    /// Purges all of the device, if it offers that; else trims the range.
    fn purge(&mut self) -> Result<()> {
        if self.is_new() {
            return Ok(());
        }
        check(self.stop)?;
        let place = self.place();
        let cell = self.cell(TrialSpec::default());
        let session = &mut *self.session;
        let mut begins = |device: &str| {
            let name = format!("precondition{place}: purge");
            session.observer.step_starts(&name);
            let message = format!(
                "precondition: purge of {device} begins; it cannot be interrupted once it has begun"
            );
            session.event(EventKind::Note, &message)
        };
        let purged = self.executor.purge(&cell, self.stop, &mut begins);
        let (bytes, time) = match &purged {
            Ok(Ok(purged)) => *purged,
            Ok(Err(_)) | Err(_) => (0, Duration::ZERO),
        };
        let ok = matches!(purged, Ok(Ok(_)));
        self.keep(PreparationStep {
            kind: PreparationKind::Purge,
            number: 1,
            ok,
            requests: ok.into(),
            bytes,
            elapsed_ns: u64::try_from(time.as_nanos()).unwrap_or(u64::MAX),
            ..PreparationStep::default()
        })?;
        match purged.map_err(|error| error.within("precondition"))? {
            Ok(_) => {
                let bytes = format_bytes(bytes as f64);
                self.tell(
                    EventKind::Note,
                    &format!(": purged all {bytes} of the device"),
                )?;
                check(self.stop)
            }
            Err(why) => self.trim(Some(&why)),
        }
    }

    /// Trims the range, if the target can; instead of a purge, which the target does not offer for this reason.
    fn trim(&mut self, no_purge: Option<&str>) -> Result<()> {
        if self.is_new() {
            return Ok(());
        }
        let specs = self.range.trims();
        match self.make(PreparationKind::Trim, 1, "trim", specs) {
            Ok(step) => {
                let trimmed = format_bytes(step.bytes as f64);
                match no_purge {
                    None => {
                        let text = format!(": {trimmed} trimmed, which is not a purge");
                        self.tell(EventKind::Note, &text)
                    }
                    Some(why) => {
                        let text = format!(
                            ": {trimmed} trimmed instead of purged, because the target {why}"
                        );
                        self.tell(EventKind::Warning, &text)
                    }
                }
            }
            Err(error) if self.is_refused || was_checked(&error) => {
                let purged = match no_purge {
                    None => String::new(),
                    Some(why) => format!("not purged, because the target {why}, and "),
                };
                let text = format!(
                    ": {purged}not trimmed, so that what lies there stays: {}",
                    error.message()
                );
                self.tell(EventKind::Warning, &text)
            }
            Err(error) => {
                // The run file has a purge that was not made: why.
                let told = no_purge.map_or(Ok(()), |why| {
                    let text = format!(": not purged, because the target {why}");
                    self.tell(EventKind::Warning, &text)
                });
                Err(match told {
                    Ok(()) => error,
                    Err(more) => error.also(more.message()),
                })
            }
        }
    }

    /// One pass over the range: its number among its kind, its number among all passes, and the number of all passes.
    fn pass(
        &mut self,
        kind: PreparationKind,
        (number, of_all, all): (u32, u32, u32),
        pattern: Pattern,
        bs: u64,
    ) -> Result<()> {
        let name = format!("pass {of_all} of {all}, {pattern}");
        let specs = self.range.passes(pattern, bs);
        let used = specs.first().map_or(bs, |spec| spec.bs);
        let step = self.make(kind, number, &name, specs)?;
        let rate = mb_s(step.bytes, step.elapsed_ns);
        let size = match used == bs {
            true => format!("in requests of {}", exact_size(bs)),
            false => format!(
                "in one request of {}, because the range is smaller than {}",
                exact_size(used),
                exact_size(bs)
            ),
        };
        let text = format!(", {name}: {} MB/s {size}", significant(rate));
        self.tell(EventKind::Note, &text)
    }

    /// Makes rounds of random writes until the last of them are steady.
    fn until_steady(&mut self, steady: SteadyRounds, time: Duration) -> Result<()> {
        let mut rates = Vec::new();
        let mut last: Option<Steadiness> = None;
        while (rates.len() as u32) < steady.rounds && !last.is_some_and(|steady| steady.reached) {
            let number = rates.len() as u32 + 1;
            let name = format!("round {number}, random writes until steady");
            let specs = vec![self.range.round(time)];
            let step = self.make(PreparationKind::Round, number, &name, specs)?;
            rates.push(step.iops());
            last = steady_state(&rates, limits(&steady));
        }
        let rounds = rates.len();
        let rates: Vec<String> = rates.into_iter().map(significant).collect();
        let window = last.map_or_else(String::new, |found| {
            format!(
                ", the last {} lie within {} (at most {} allowed) with a slope of {} (at most {})",
                steady.window,
                format_percent(found.range),
                format_percent(steady.range),
                format_percent(found.slope),
                format_percent(steady.slope),
            )
        });
        let (kind, reached) = match last {
            Some(found) if found.reached => (EventKind::Note, "steady"),
            _ => (EventKind::Warning, "NOT steady"),
        };
        let text = format!(
            ": {reached} after {rounds} rounds of random writes{window}; IOPS {}",
            rates.join(", ")
        );
        self.tell(kind, &text)
    }
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

    /// The range in whole requests of this size, then the rest in one shorter request: first byte, length, and size of
    /// requests.
    fn parts(&self, bs: u64) -> impl Iterator<Item = (u64, u64, u64)> {
        let region = self.end - self.offset;
        let whole = region - region % bs;
        let parts = [
            (self.offset, whole, bs),
            (self.offset + whole, region - whole, region - whole),
        ];
        parts.into_iter().filter(|(_, length, _)| *length > 0)
    }

    /// One pass in requests of this size; durable at its end.
    fn passes(&self, pattern: Pattern, bs: u64) -> Vec<TrialSpec> {
        let parts = self.parts(bs);
        let spec = |part| self.writes(pattern, part, None);
        parts.map(spec).collect()
    }

    /// Random writes for this long; durable at their end.
    fn round(&self, time: Duration) -> TrialSpec {
        let region = self.end - self.offset;
        let part = (self.offset, region, RAND_BS.min(region));
        self.writes(Pattern::Rand, part, Some(time))
    }

    fn writes(
        &self,
        pattern: Pattern,
        (offset, region, bs): (u64, u64, u64),
        time: Option<Duration>,
    ) -> TrialSpec {
        TrialSpec {
            backend: Backend::Psync,
            pattern,
            bs,
            offset,
            region,
            read_percent: 0,
            sync: SyncPolicy::End,
            cache: self.cache,
            buffer_init: BufferInit::Random,
            limit: TrialLimit {
                time,
                ..TrialLimit::default()
            },
            latency: false,
            ..TrialSpec::default()
        }
    }

    /// One pass that trims. Requests need not be aligned to their size: the kernel splits them as the device wants.
    fn trims(&self) -> Vec<TrialSpec> {
        let trims = |(offset, region, bs)| TrialSpec {
            backend: Backend::Psync,
            pattern: Pattern::Seq,
            bs,
            offset,
            region,
            read_percent: 0,
            trim_percent: 100,
            cache: self.cache,
            latency: false,
            ..TrialSpec::default()
        };
        self.parts(TRIM_BS).map(trims).collect()
    }
}

/// Whether a check refused a trial before anything was touched.
fn was_checked(error: &Error) -> bool {
    error.kind() == Kind::Usage
}

/// Whether a failure says that the target does not support the operation, and nothing about the state of the target.
fn is_refusal(failure: &Failure) -> bool {
    let refusals = [Errno::OPNOTSUPP, Errno::INVAL, Errno::NOTTY].map(Errno::raw_os_error);
    failure
        .errno()
        .is_some_and(|errno| refusals.contains(&errno))
}

#[cfg(test)]
mod tests;
