//! Executors carry trials out: the engine, or a simulated one in tests of the runner.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{iter, slice};

use crate::peers::Peers;
use iolab_analysis::consent::NeededConsent;
use iolab_engine::request_tracer::Tracing;
use iolab_engine::trial;
use iolab_host::clock::Clock;
use iolab_host::system_control::{Changed, SystemControl};
use iolab_plan::cells::PlannedCell;
use iolab_record::DriveLog;
use iolab_storage::{PURGE_MAX, Stack, Target};
use iolab_workload::names::TargetName;
use iolab_workload::outcome::Outcome;
use iolab_workload::region_state::Medium;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::TrialSpec;
use iolab_workload::{Error, Result};

use super::fit;
use super::targets::{devices_of, number_of};
use crate::Programs;
use crate::evidence::Origin;
use crate::hung_storage::{Allowance, Watch};
use crate::ranks::{RankReport, Ranks};
use crate::timeouts::ANSWER;

/// Interval at which a pause checks whether it is to end early.
const LOOK: Duration = Duration::from_millis(50);

/// Reads what drives count of themselves, around each trial of a run.
pub trait DriveObserver {
    /// Reads the drives at these disks (major, minor) before a trial.
    fn before(&mut self, disks: &BTreeSet<(u32, u32)>);

    /// Counts of the drives since then.
    fn after(&mut self) -> Vec<DriveLog>;
}

/// Makes an observer for a run.
pub type NewObserver = fn() -> Box<dyn DriveObserver>;

/// Carries trials out, one after the other.
pub trait Executor {
    /// Receives the run file of the trials, and the consent that the command to finish the run needs. Both are named if
    /// storage or a rank does not answer.
    fn keeps_in(&mut self, _run_file: &Path, _consent: NeededConsent) {}

    /// One trial of a cell; its `trial` has the trial's seed.
    ///
    /// # Errors
    /// When it could not be set up; a request that failed is counted in the outcome instead.
    fn run(&mut self, cell: &CellSpec, stop: &AtomicBool) -> Result<Outcome>;

    /// Purges all of the device of the target that a cell names; bytes of the device, and how long it took. `begins` hears which device,
    /// before anything is sent to it.
    ///
    /// # Errors
    /// Of the outer result: a purge that failed, what `begins` meets, or the user's interrupt before the purge. Of the inner one: why there
    /// is none, in words that follow the name of the target.
    fn purge(
        &mut self,
        _cell: &CellSpec,
        _stop: &AtomicBool,
        _begins: &mut dyn FnMut(&str) -> Result<()>,
    ) -> Result<std::result::Result<(u64, Duration), String>> {
        Ok(Err("is not a device".to_owned()))
    }

    /// Work of each process in the last trial, if several carried it out.
    fn by_ranks(&mut self) -> RankReport {
        RankReport::default()
    }

    /// Counts of the drives below its targets in the last trial.
    fn drives(&mut self) -> Vec<DriveLog> {
        Vec::new()
    }

    /// Number of processes that carry trials out together.
    fn processes(&self) -> usize {
        1
    }

    /// Why a cell cannot be carried out by the tool that it asks for; `None` if it can.
    fn gap(&self, _cell: &CellSpec) -> Option<String> {
        None
    }

    /// Lets the time pass, unless `stop` is raised.
    fn pause(&mut self, time: Duration, stop: &AtomicBool);

    /// Fits a cell that is added in mid-run to the targets, as the others were before.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a setting that does not fit.
    fn fit(&self, _cell: &mut PlannedCell) -> Result<()> {
        Ok(())
    }

    /// Bytes written to the target of a cell to fill it before the first trial.
    fn filled(&self, _cell: &CellSpec) -> u64 {
        0
    }

    /// Alignment of direct requests, bytes.
    fn alignment(&self) -> u64 {
        1
    }

    /// Source of the bytes of a cell.
    fn origin(&self, cell: &CellSpec) -> Origin;

    /// Time since some moment before the first trial, by the clock that budgets count.
    fn now(&self) -> Duration;
}

/// The engine on targets, or on files made for programs.
pub(super) struct Engine<'a> {
    /// The targets, each with its path; for programs, targets that represent the directories of their files.
    pub(super) targets: Vec<(&'a Path, &'a Target)>,
    pub(super) programs: Option<&'a dyn Programs>,
    pub(super) peers: Peers,
    pub(super) clock: &'a Clock,
    pub(super) ranks: Option<&'a dyn Ranks>,
    pub(super) system: Option<&'a SystemControl>,
    pub(super) watch: Watch,
    /// The observers; none if other processes have targets too.
    pub(super) observers: Vec<Box<dyn DriveObserver>>,
    /// Counts of the drives in the last trial.
    pub(super) drives: Vec<DriveLog>,
    /// The tracer of requests, if the program has one.
    pub(super) tracing: Tracing,
    pub(super) began: Instant,
}

impl<'a> Engine<'a> {
    /// The target of a name.
    fn target(&self, name: Option<&TargetName>) -> Result<&'a Target> {
        self.number(name).map(|number| self.targets[number].1)
    }

    /// The number of that target.
    fn number(&self, name: Option<&TargetName>) -> Result<usize> {
        number_of(self.targets.iter().map(|(named, _)| *named), name)
    }

    /// The targets of a cell.
    fn measured(&self, cell: &CellSpec) -> Result<Vec<&'a Target>> {
        let names = cell.targets().into_iter();
        names.map(|name| self.target(name)).collect()
    }

    /// One trial of several groups, each on its own target.
    fn run_groups(&self, cell: &CellSpec, stop: &AtomicBool) -> Result<Outcome> {
        let groups = cell.group_trials();
        let targets = groups
            .iter()
            .map(|group| self.target(group.target.as_ref()));
        let targets = targets.collect::<Result<Vec<&Target>>>()?;
        trial::run_groups(&groups, &targets, self.clock, stop, self.tracing)
    }

    /// Changes the settings of the kernel that a cell asks for, until the returned value is dropped.
    fn change_system(&self, cell: &CellSpec) -> Result<Option<Changed<'a>>> {
        if cell.system.is_none() {
            return Ok(None);
        }
        let control = self.system.ok_or_else(|| {
            Error::refused(format!("system={}: settings of the kernel", cell.system))
                .hint("allow it with --change-system, as root")
        })?;
        let devices = devices_of(&self.targets, cell)?;
        control.change(&cell.system, &devices).map(Some)
    }

    /// Time for which a trial of a cell may show no activity.
    fn allowance(&self, cell: &CellSpec) -> Allowance {
        let of_program = |time| Allowance::of_program(time, cell.trial.region);
        match (self.ranks, self.programs) {
            (None, _) if cell.has_groups() => {
                Allowance::of(cell.group_trials().iter().map(|group| &group.trial))
            }
            (Some(ranks), _) => Allowance::of_ranks(&cell.trial, ranks.count()),
            (None, Some(_)) => of_program(cell.trial.limit.time),
            (None, None) if cell.tool.is_peer() => of_program(self.peers.time_limit(cell)),
            (None, None) => Allowance::of(iter::once(&cell.trial)),
        }
    }

    /// One trial, with the settings of the kernel as they are.
    fn carry_out(&self, cell: &CellSpec, stop: &AtomicBool) -> Result<Outcome> {
        let _trial = self.watch.during(self.allowance(cell));
        if cell.has_groups() && self.ranks.is_none() {
            return self.run_groups(cell, stop);
        }
        let name = cell.target.as_ref();
        let target = self.target(name)?;
        if let Some(ranks) = self.ranks {
            return ranks.run(&cell.trial, self.number(name)?, target, stop);
        }
        match self.programs {
            Some(programs) => programs.run(cell, target, self.clock, stop),
            None if cell.tool.is_peer() => self.peers.run(cell, target, self.clock, stop),
            None => trial::run_with(
                &cell.trial,
                target,
                self.clock,
                stop,
                &mut trial::Alone,
                self.tracing,
            ),
        }
    }
}

impl Executor for Engine<'_> {
    fn keeps_in(&mut self, run_file: &Path, consent: NeededConsent) {
        let resume = advice_after_silence(run_file, self.processes(), consent);
        if let Some(ranks) = self.ranks {
            ranks.keeps_trials(&resume);
        }
        self.watch.advises(resume);
    }

    fn run(&mut self, cell: &CellSpec, stop: &AtomicBool) -> Result<Outcome> {
        let _in_use = self.watch.use_targets();
        let targets = self.measured(cell)?;
        let trims = cell.trials().into_iter().any(TrialSpec::trims);
        let before = targets.iter().map(|target| target.standing(trims));
        let before = before.collect::<Result<Vec<_>>>()?;
        let changed = self.change_system(cell)?;
        let stacks = targets.iter().flat_map(|target| target.stack().each());
        let disks = stacks.filter_map(Stack::disks).flatten().collect();
        for observer in &mut self.observers {
            observer.before(&disks);
        }
        let carried_out = self.carry_out(cell, stop);
        let observers = self.observers.iter_mut();
        self.drives = observers.flat_map(|observer| observer.after()).collect();
        let mut outcome = carried_out.and_then(|outcome| {
            let mut after = targets.iter().zip(before);
            after.try_for_each(|(target, before)| target.check_standing(before))?;
            Ok(outcome)
        });
        if let (Some(changed), Ok(outcome)) = (&changed, &mut outcome) {
            outcome.effective.add_note(&changed.adapted().join(", "));
        }
        match (outcome, changed.map_or(Ok(()), Changed::restore)) {
            (Err(error), Err(kept)) => Err(error.hint(kept.message())),
            (outcome, restored) => restored.and(outcome),
        }
    }

    fn purge(
        &mut self,
        cell: &CellSpec,
        stop: &AtomicBool,
        begins: &mut dyn FnMut(&str) -> Result<()>,
    ) -> Result<std::result::Result<(u64, Duration), String>> {
        if self.ranks.is_some() || self.programs.is_some() {
            return Ok(Err("is used by other processes of this run".to_owned()));
        }
        let target = self.target(cell.target.as_ref())?;
        let purge = match target.purge() {
            Ok(purge) => purge,
            Err(why) => return Ok(Err(why)),
        };
        begins(&purge.subject(target))?;
        if stop.load(Ordering::Relaxed) {
            return Err(Error::interrupted());
        }
        let _in_use = self.watch.use_targets();
        let _purge = self.watch.during(Allowance {
            time: Some(PURGE_MAX),
            patience: ANSWER,
        });
        let took = purge.carry_out(target)?;
        Ok(Ok((purge.bytes(), took)))
    }

    fn by_ranks(&mut self) -> RankReport {
        self.ranks
            .map_or_else(RankReport::default, |ranks| ranks.take_report())
    }

    fn drives(&mut self) -> Vec<DriveLog> {
        std::mem::take(&mut self.drives)
    }

    fn processes(&self) -> usize {
        self.ranks.map_or(1, |ranks| ranks.count())
    }

    fn gap(&self, cell: &CellSpec) -> Option<String> {
        match self.target(cell.target.as_ref()) {
            Ok(target) => self.peers.gap(cell, target),
            Err(error) => Some(error.message().to_owned()),
        }
    }

    fn pause(&mut self, time: Duration, stop: &AtomicBool) {
        if let Some(ranks) = self.ranks.filter(|_| !time.is_zero()) {
            // The next trial finds a rank that is lost.
            let _ = ranks.rest(time);
        }
        let end = Instant::now() + time;
        while !stop.load(Ordering::Relaxed) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(LOOK));
        }
    }

    fn fit(&self, cell: &mut PlannedCell) -> Result<()> {
        if let Some(ranks) = self.ranks {
            ranks.span(slice::from_mut(cell))?;
        }
        fit::fit(cell, &self.targets, self.tracing)
    }

    fn filled(&self, cell: &CellSpec) -> u64 {
        let own = self.target(cell.target.as_ref());
        let own = own.map_or(0, Target::fill_bytes);
        // The files of the other ranks are at most as large as the root's.
        own.saturating_mul(self.processes() as u64)
    }

    fn alignment(&self) -> u64 {
        let of = |(_, target): &(&Path, &Target)| {
            let alignment = target.direct_alignment();
            alignment.map_or(1, |alignment| alignment.offset)
        };
        // Powers of two: what suits the greatest suits all.
        self.targets.iter().map(of).max().unwrap_or(1)
    }

    fn origin(&self, cell: &CellSpec) -> Origin {
        let named = cell.targets().into_iter();
        let targets: Vec<&Target> = named.filter_map(|name| self.target(name).ok()).collect();
        let medium = Medium::of_all(targets.iter().map(|target| target.medium()));
        let medium = medium.or_else(|| self.targets.first().map(|(_, target)| target.medium()));
        medium.map_or(Origin::Model, Origin::Medium)
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }
}

/// Advice for storage that has not answered, after its repair. A device that comes back may have another name, and its
/// former name another disk. So no command to paste contains the consent to the loss of data.
pub(super) fn advice_after_silence(
    run_file: &Path,
    processes: usize,
    consent: NeededConsent,
) -> String {
    let harmless = NeededConsent {
        destroys_data: false,
        ..consent
    };
    let check = match consent.destroys_data {
        true => {
            "Check with lsblk that the target is still the same disk; then add --destroy-data to this command, which finishes the run: "
        }
        false => "Finish the run with: ",
    };
    let command = harmless.resume_command(&[&run_file.to_string_lossy()], processes);
    format!("{check}{command}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: NeededConsent = NeededConsent {
        destroys_data: true,
        changes_system: true,
        runs_programs: false,
    };

    #[test]
    fn a_shell_reads_run_files_as_single_words() {
        let command = |file: &str| NeededConsent::default().resume_command(&[file], 1);
        assert_eq!(command("old run.iolab"), "iolab resume 'old run.iolab'");
        assert_eq!(command("$(touch X)"), "iolab resume '$(touch X)'");
        assert_eq!(
            ALL.resume_command(&["r.iolab"], 2),
            "mpirun -n 2 iolab resume r.iolab --destroy-data --change-system"
        );
    }

    #[test]
    fn no_command_to_paste_after_silence_destroys_data() {
        let advice = |consent| advice_after_silence(Path::new("r.iolab"), 1, consent);
        assert_eq!(
            advice(ALL),
            "Check with lsblk that the target is still the same disk; then add --destroy-data to this command, which finishes the run: iolab resume r.iolab --change-system"
        );
        assert_eq!(
            advice(NeededConsent::default()),
            "Finish the run with: iolab resume r.iolab"
        );
    }
}
