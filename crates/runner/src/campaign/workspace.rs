//! Opened targets of a campaign: filled, measured on, removed.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::peers::overhead;
use iolab_host::clock::Clock;
use iolab_host::system_control::SystemControl;
use iolab_plan::cells::{FittedPlan, Plan};
use iolab_plan::forecast::Forecast;
use iolab_plan::standard::Medium;
use iolab_record::environment::{KEYS, PeakSource, Peaks};
use iolab_storage::{Need, TargetKind};
use iolab_workload::settings::CellSpec;
use iolab_workload::units::exact_size;
use iolab_workload::{Error, Result, launchers, usage_errors};

use super::{Made, Program, Site, Writes};
use crate::ranks::Ranks;
use crate::{Setup, StopFlags, SystemUnderTest, Watch, prepared_run};

/// The ceilings of `--peak`.
pub enum AskedPeaks {
    /// Ceilings that the user states.
    Stated(Peaks),
    /// Ceilings to be found by probes.
    Measured,
}

impl AskedPeaks {
    /// Reads the option of a run that carries these plans out.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): an invalid ceiling, or a target that has none or is not probed.
    pub fn read(text: &str, planned: &[(Site, Plan)]) -> Result<Self> {
        let asked = match text {
            "measure" => Self::Measured,
            stated => Self::Stated(Peaks::parse(stated)?),
        };
        for (site, plan) in planned {
            let ranks = site.terms.ranks.as_ref().map_or(1, |ranks| ranks.count());
            let is_measured = matches!(asked, Self::Measured);
            usage_errors! {
                site.model.is_none() && plan.experiment().runs_programs() => "--peak does not apply to programs", "leave it out";
                ranks > 1 && is_measured => format!("--peak measure probes the target with one process, and {ranks} measure"),
                    "state the ceilings of all ranks together: --peak read=3200MB/s,iops=95000";
                site.model.is_some() && is_measured => "the ceilings of a model are not measured",
                    "state them: --peak read=200MB/s,iops=100";
            }
        }
        Ok(asked)
    }
}

/// Opened targets that are not changed yet.
pub struct Opened {
    /// Name of the model, for messages.
    pub place: Option<String>,
    pub(super) workspace: Workspace,
    /// The watch of the site, until the targets are prepared, or removed.
    pub(super) watch: Option<Watch>,
}

impl Opened {
    /// Fills scratch files, finds the ceilings that `peak` asks for, and examines target and machine, for what is left of
    /// plans after the trials of an earlier session.
    ///
    /// # Errors
    /// A failed write, a failed probe, or the user's interrupt.
    pub fn prepare(
        self,
        seed: u64,
        plans: &[FittedPlan],
        made: Made,
        peak: Option<&AskedPeaks>,
    ) -> Result<Workspace> {
        // In this order: the watch is dropped last.
        let Self {
            watch,
            mut workspace,
            ..
        } = self;
        workspace.announce_writes(plans, made);
        workspace.check_writes(plans)?;
        let mut probed = plans.iter();
        let writes = probed.any(|plan| plan.writes() && plan.experiment().design.writes.is_none());
        let probes_write = writes && matches!(peak, Some(AskedPeaks::Measured));
        workspace.tell(watch.as_ref(), probes_write);
        workspace.fill(seed)?;
        if let Some(peak) = peak {
            workspace.determine_peaks(peak, writes)?;
        }
        workspace.check_before_run(plans);
        Ok(workspace)
    }
}

/// An opened target with everything needed to measure on it. Dropping it removes temporary files.
pub struct Workspace {
    pub(super) setup: Setup,
    program: Program,
}

impl Workspace {
    /// A workspace on this system; reports notes about opening it.
    pub(super) fn at(place: SystemUnderTest, site: &Site, stop: StopFlags) -> Self {
        let program = site.terms.program;
        let setup = Setup {
            place,
            clock: Clock::calibrate(),
            stop,
            preflight: Vec::new(),
            known: site.names.clone(),
            ranks: None,
            system: None,
            peers: program.peers,
            observers: program.observers,
            tracing: program.tracing,
            end: program.end,
        };
        let workspace = Self { setup, program };
        for remark in workspace.setup.place.notes() {
            (workspace.program.note)(&remark);
        }
        workspace
    }

    /// Takes the right to change settings of the kernel, if plans ask for it, and restores settings that a killed run left
    /// changed.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused): this is not root, or another process changes them; of kind
    /// [`Usage`](iolab_workload::Kind::Usage): a setting that kernel or devices do not have.
    pub(super) fn control_system(
        &mut self,
        plans: &[Plan],
        has_ranks: bool,
        watch: Option<&Watch>,
    ) -> Result<()> {
        if self.is_virtual() {
            return Ok(());
        }
        let cells = plans.iter().flat_map(Plan::cells).map(|cell| &cell.spec);
        let asking: Vec<&CellSpec> = cells.filter(|cell| !cell.system.is_none()).collect();
        if asking.is_empty() {
            // This run changes no settings: leftovers of another run are reported, and do not stop it.
            self.program.restore_leftovers();
            return Ok(());
        }
        usage_errors! {
            has_ranks => "settings of the kernel (system) in a run of several processes",
                concat!("one process changes them: start iolab without ", launchers!());
        }
        let (control, restored) = SystemControl::take()?;
        self.program.tell_restored(&restored);
        // Trying a setting out changes it for a moment.
        if let Some(watch) = watch {
            watch.changes_system();
        }
        let mut adapted = BTreeSet::new();
        for cell in asking {
            adapted.extend(control.try_out(&cell.system, &self.setup.place.devices(cell)?)?);
        }
        for text in adapted {
            (self.program.note)(&format!(
                "the kernel adapts a setting: {text}; tables name what was asked for"
            ));
        }
        self.setup.system = Some(control);
        Ok(())
    }

    /// Makes other processes open the same targets, each as `needs` says, and measure together with this one.
    ///
    /// # Errors
    ///
    /// Why one of them cannot.
    pub(super) fn share(&mut self, ranks: Rc<dyn Ranks>, needs: &[Need]) -> Result<()> {
        if let SystemUnderTest::Targets(targets) = &mut self.setup.place {
            // Each rank's own clock is the one that is compared.
            self.setup.clock = ranks.clock();
            ranks.open(targets, needs)?;
            for remark in ranks.notes() {
                (self.program.note)(&remark);
            }
            self.setup.ranks = Some(ranks);
        }
        Ok(())
    }

    /// Whether time is virtual.
    pub fn is_virtual(&self) -> bool {
        matches!(self.setup.place, SystemUnderTest::Model(_))
    }

    /// Bytes of the scratch files, or of their parts, that all ranks fill together, at most.
    fn filled_by_all(&self) -> u64 {
        // The files of the other ranks are at most as large as the root's.
        let ranks = self.setup.ranks.as_ref().map_or(1, |ranks| ranks.count());
        self.setup.place.fill_bytes().saturating_mul(ranks as u64)
    }

    /// Kind of the targets; `None` if they differ.
    fn medium(&self) -> Option<Medium> {
        let targets = match &self.setup.place {
            SystemUnderTest::Model(_) => return Some(Medium::Model),
            SystemUnderTest::Targets(targets) | SystemUnderTest::Programs(targets, _) => targets,
        };
        let mut media = targets.iter().map(|(_, target)| match target.kind() {
            TargetKind::BlockDevice => Medium::Device,
            TargetKind::Scratch | TargetKind::File | TargetKind::CharDevice => Medium::File,
        });
        let first = media.next();
        first.filter(|first| media.all(|medium| medium == *first))
    }

    /// Whether one of the targets is an NVMe namespace.
    fn has_namespace(&self) -> bool {
        let mut targets = self.setup.place.targets().into_iter();
        targets.any(|(_, target)| target.is_nvme_namespace())
    }

    /// Bytes of the smallest of the targets; without targets there is no limit.
    pub(super) fn room(&self) -> u64 {
        let targets = self.setup.place.targets().into_iter();
        let sizes = targets.map(|(_, target)| target.size());
        sizes.min().unwrap_or(u64::MAX)
    }

    /// Reports the open targets to the watch over the time before the first trial. In this time scratch files are filled,
    /// by all ranks, and probes write to the targets if `probes_write`.
    fn tell(&self, watch: Option<&Watch>, probes_write: bool) {
        let filled = self.filled_by_all();
        let targets = self.setup.place.targets().into_iter();
        let sizes = targets.map(|(_, target)| target.size());
        let probed = match probes_write {
            true => sizes.fold(0, u64::saturating_add),
            false => 0,
        };
        if let Some(watch) = watch {
            watch.has_opened(&self.setup.place, filled.saturating_add(probed));
        }
    }

    /// Fills scratch files, so that no read meets a hole, and notes the rate.
    ///
    /// # Errors
    ///
    /// A write fails, or the user interrupts.
    fn fill(&mut self, seed: u64) -> Result<()> {
        self.setup.stop.makes_trials.store(false, Ordering::Relaxed);
        let (began, total) = (Instant::now(), self.setup.place.fill_bytes());
        if total == 0 {
            return Ok(());
        }
        let ended = &self.setup.stop.after_trial;
        let mut shown = (self.program.filling)("filling the scratch files", total);
        let mut own = || self.setup.place.fill(seed, ended, &mut shown);
        match &self.setup.ranks {
            Some(ranks) => ranks.fill(seed, total, &mut own)?,
            None => own()?,
        }
        let rate = total as f64 / 1e6 / began.elapsed().as_secs_f64().max(1e-9);
        self.setup.known.put(&KEYS.scratch_fill_mb_s, rate);
        Ok(())
    }

    /// Examines the target and the machine, so that the run files of these experiments record conditions that affect them.
    fn check_before_run(&mut self, plans: &[FittedPlan]) {
        let direct = plans
            .iter()
            .any(|plan| !plan.experiment().runs_programs() && plan.wants_direct());
        let targets = self.setup.place.targets().into_iter();
        let looked = targets.map(|(named, target)| {
            let all = self.program.preflights.iter();
            let stop = &self.setup.stop.after_trial;
            all.map(|new| new(named, target, &self.setup.clock, stop, direct))
                .collect()
        });
        self.setup.preflight = looked.collect();
    }

    /// Whether the user ends it at once, without results.
    pub fn ends_at_once(&self) -> bool {
        self.setup.stop.now.load(Ordering::Relaxed)
    }

    /// Needs of the trials here.
    pub fn setup(&self) -> &Setup {
        self.setup.stop.makes_trials.store(true, Ordering::Relaxed);
        &self.setup
    }

    /// Removes scratch files of all ranks; `kept` are the run files, to be named if storage does not answer.
    ///
    /// # Errors
    /// A file that cannot be removed.
    pub fn close(self, kept: &[PathBuf]) -> Result<()> {
        let _watch = self.setup.place.watch_removal(kept, self.program.end);
        let theirs = self.setup.ranks.map_or(Ok(()), |ranks| ranks.end());
        let own = self.setup.place.remove();
        match (theirs, own) {
            (Err(left), Err(more)) => Err(left.also(more.message())),
            (theirs, own) => theirs.and(own),
        }
    }

    /// Uses the ceilings that the user states, or finds them by short probes.
    ///
    /// # Errors
    ///
    /// Those of the probes.
    fn determine_peaks(&mut self, asked: &AskedPeaks, writes: bool) -> Result<()> {
        if let AskedPeaks::Stated(peaks) = asked {
            self.setup
                .known
                .extend(peaks.environment(PeakSource::Stated));
            return Ok(());
        }
        let SystemUnderTest::Targets(targets) = &self.setup.place else {
            return Ok(());
        };
        for (number, (named, target)) in targets.iter().enumerate() {
            let place = named.display();
            (self.program.note)(&format!("measuring the ceilings of {place}"));
            let peaks = prepared_run::measure_peaks(
                target, &self.setup.clock, &self.setup.stop.after_trial, writes,
            )?;
            (self.program.note)(&format!("the ceilings are {}", peaks.words()));
            let facts = peaks.environment(PeakSource::Measured);
            match number {
                0 => self.setup.known.extend(facts),
                _ => self.setup.known.put_target(number, facts),
            }
        }
        Ok(())
    }

    /// Refuses to fill targets with more bytes than a plan may write.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): the fill alone is more.
    fn check_writes(&self, plans: &[FittedPlan]) -> Result<()> {
        let targets = self.setup.place.targets().len().max(1) as u64;
        let filled = self.filled_by_all() / targets;
        let budgets = plans.iter().map(|plan| plan.experiment().design.writes);
        match budgets.flatten().min().filter(|most| *most < filled) {
            None => Ok(()),
            Some(most) => Err(Error::usage(format!(
                "filling a scratch file writes {}, more than writes={}",
                exact_size(filled),
                exact_size(most)
            ))
            .hint("allow more (--set writes=SIZE), or choose a smaller --size")),
        }
    }

    /// Announces the writes of plans beyond the trials made so far; nothing is written to a model.
    fn announce_writes(&self, plans: &[FittedPlan], (made, spent): Made) {
        if self.is_virtual() {
            return;
        }
        let filled = self.filled_by_all();
        let rest = |plan| {
            let forecast = Forecast::of(plan, &overhead(self.program.peers));
            forecast.after(made, spent).beside_fill(filled)
        };
        (self.program.announce)(&Writes {
            forecasts: plans.iter().map(|plan| rest(plan)).collect(),
            medium: self.medium(),
            has_namespace: self.has_namespace(),
            filled,
            runs_programs: matches!(self.setup.place, SystemUnderTest::Programs(..)),
        });
    }
}
