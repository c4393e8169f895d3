//! One trial of a run: carried out, made a sample, stored, and judged by how it ended.

use std::time::Duration;

use iolab_analysis::snapshot::LastTrial;
use iolab_plan::blocks::{group_seed, trial_seed};
use iolab_record::{EndedBy, RankReport, Sample};
use iolab_runfile::{SampleParts, TrialCourse};
use iolab_workload::outcome::{Ended, Failure, Outcome, ProgramEnd};
use iolab_workload::settings::CellSpec;
use iolab_workload::{Error, Kind, Result};

use super::super::executor::Executor;
use super::super::fit;
use super::super::now_utc;
use super::super::record::Last;
use super::super::sample::{self, Accessed, VisitPosition};
use super::{Session, Stop, check, snapshot};

/// A trial that came to an end.
struct Made {
    place: VisitPosition,
    cell: CellSpec,
    outcome: Outcome,
    started_utc: String,
    wall: Duration,
}

/// The samples of a trial.
struct Samples {
    whole: Sample,
    groups: Vec<Sample>,
}

impl Session<'_> {
    /// Performs a trial and returns whether it succeeded. A failed trial of another tool does not fail the run.
    pub(super) fn trial(
        &mut self,
        place: VisitPosition,
        executor: &mut dyn Executor,
        stop: Stop<'_>,
    ) -> Result<bool> {
        self.follow()?;
        self.record.set_last(None);
        let cell = place.cell;
        let filled = executor.filled(&self.record.plan.cells()[cell].spec);
        if !self.record.pays_writes(cell, filled) {
            self.record.close(cell);
            self.file.set_ended_by(cell as i64, Some(EndedBy::Writes))?;
            return Ok(false);
        }
        let Some(made) = self.make(place, executor, stop)? else {
            return Ok(false);
        };
        let (samples, kept) = self.store(&made, executor);
        let (whole, groups) = (&samples.whole, &samples.groups);
        let planned = &self.record.plan.cells()[place.cell];
        let cell = fit::record(place.cell, planned);
        self.last_trial = Some(LastTrial::of(&cell, whole, self.around));
        self.record.add(place, made.wall, whole, groups);
        self.trials += 1;
        if let Some(failure) = &made.outcome.failure {
            return self.fail(&made, failure, kept).map(|()| false);
        }
        kept?;
        self.tool_failures.worked(made.cell.tool);
        self.record.set_last(Some(Last {
            sample: samples.whole,
            outcome: made.outcome,
        }));
        Ok(true)
    }

    /// Carries a trial out; `None` if another tool could not begin with it, which is then given up.
    fn make(
        &mut self,
        place: VisitPosition,
        executor: &mut dyn Executor,
        stop: Stop<'_>,
    ) -> Result<Option<Made>> {
        let cell = self.cell_of(place);
        self.tell_next(place);
        let began = executor.now();
        if !cell.idle.is_zero() {
            executor.pause(cell.idle, stop.after_trial);
            check(stop.after_trial)?;
        }
        let started_utc = now_utc();
        // The path changes if the file was moved.
        executor.keeps_in(self.file.path(), self.consent);
        let outcome = match executor.run(&cell, stop.now) {
            Err(error) if is_of_peer(&cell, &error) => {
                self.give_up(place.cell, &error, false)?;
                return Ok(None);
            }
            outcome => outcome?,
        };
        if outcome.ended == Ended::Interrupted {
            return Err(Error::interrupted());
        }
        Ok(Some(Made {
            place,
            cell,
            outcome,
            started_utc,
            wall: executor.now().saturating_sub(began),
        }))
    }

    /// Tells the user which cell is measured next.
    fn tell_next(&mut self, place: VisitPosition) {
        let next = (place.cell, place.warmup);
        let snapshot = || snapshot(&self.record, next, self.last_trial);
        self.observer.trial_starts(&snapshot);
    }

    /// The cell of a trial, with the seeds of its place.
    fn cell_of(&self, VisitPosition { cell, block, .. }: VisitPosition) -> CellSpec {
        let mut spec = self.record.plan.cells()[cell].spec.clone();
        spec.trial.seed = trial_seed(self.record.seed, cell, block);
        for (number, group) in (1..).zip(&mut spec.groups) {
            group.spec.trial.seed = group_seed(spec.trial.seed, number);
        }
        spec
    }

    /// The cell of a place in words.
    fn name_of(&self, place: &VisitPosition) -> String {
        let plan = &self.record.plan;
        plan.describe(&plan.cells()[place.cell])
    }

    /// Makes samples of a trial and stores them; the result of storing is returned alongside.
    fn store(&mut self, made: &Made, executor: &mut dyn Executor) -> (Samples, Result<()>) {
        let Made { cell, outcome, .. } = made;
        let RankReport {
            parts,
            clients,
            region_bytes,
            together,
        } = executor.by_ranks();
        let mut whole = sample::sample(
            cell,
            made.place,
            outcome,
            Accessed {
                origin: sample::origin_of_clients(&clients).unwrap_or(executor.origin(cell)),
                region_bytes: region_bytes.unwrap_or_else(|| cell.bytes_used()),
            },
            made.started_utc.clone(),
            made.wall,
        );
        whole.together = together;
        whole.drives = executor.drives();
        sample::tell_mixed_media(&mut whole, &clients);
        let groups = sample::of_groups(cell, &whole, outcome);
        let clients = sample::of_clients(&cell.trial, &whole, clients);
        let histograms = sample::histograms_by_group(outcome);
        let latency = sample::over_time(outcome);
        let course = TrialCourse {
            series: &outcome.series,
            latency: &latency,
        };
        // Ranks have no groups.
        let stored = SampleParts {
            groups: if parts.is_empty() { &groups } else { &[] },
            parts: &parts,
            clients: &clients,
        };
        let kept = (self.file).add_sample_of(&whole, stored, &histograms, course);
        (Samples { whole, groups }, kept.map(drop))
    }

    /// Handles a failed trial: it ends the run, unless another tool carried it out.
    fn fail(&mut self, made: &Made, failure: &Failure, kept: Result<()>) -> Result<()> {
        let error = Error::failed(sample::describe(failure));
        if made.cell.tool.is_peer() {
            kept?;
            return self.give_up(made.place.cell, &error, has_hung(failure));
        }
        // If nothing varies, a cell has no name but "every trial", and this one has failed.
        let error = match self.record.plan.factor_names().is_empty() {
            true => error,
            false => error.within(self.name_of(&made.place)),
        };
        let error = error.hint(sample::remedy(failure));
        // The failed request comes first: its cause may have hit the run file too.
        Err(match kept {
            Ok(()) => error,
            Err(trouble) => error.also(trouble.message()),
        })
    }
}

/// Whether an error is of another tool, and not the user's interrupt or a refusal.
fn is_of_peer(cell: &CellSpec, error: &Error) -> bool {
    cell.tool.is_peer() && !matches!(error.kind(), Kind::Interrupted | Kind::Refused)
}

/// Whether a tool had to be ended.
fn has_hung(failure: &Failure) -> bool {
    matches!(failure, Failure::Program(program) if matches!(program.end, ProgramEnd::Time(_)))
}
