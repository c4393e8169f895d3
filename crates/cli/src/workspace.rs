//! The environment of a command that measures: signals, target, clock. [`Site`] makes it.

mod announced_writes;
mod ceilings;
mod fill_time;
mod site;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use iolab_doctor::Preflight;
use iolab_host::clock::Clock;
use iolab_host::system_control::SystemControl;
use iolab_plan::cells::{FittedPlan, Plan};
use iolab_plan::standard::Medium;
use iolab_record::environment::{Environment, KEYS};
use iolab_runner::ranks::Ranks;
use iolab_runner::{Disk, Programs, Setup, Targets, Watch};
use iolab_storage::{Need, Target, TargetKind};
use iolab_workload::settings::CellSpec;
use iolab_workload::{Error, Result, launchers};

use crate::ending;
use crate::kernel_settings;
use crate::progress::Display;
use crate::signals::StopFlags;
pub(crate) use crate::target_names::TargetNames;
pub(crate) use ceilings::AskedPeaks;
pub(crate) use fill_time::FillLimit;
use iolab_command::failure::{Failure, Outcome};
use iolab_command::output::note;
pub(crate) use site::{
    Opened, Prepared, PurgeConsent, Region, Site, SystemConsent, open_all, sites,
};

/// Watches over targets of these names, before any of them is looked up; `None` for models.
pub(crate) fn watched(named: &[PathBuf]) -> Option<Watch> {
    let real = named.iter().filter(|named| !Disk::is_named(named));
    let real: Vec<PathBuf> = real.cloned().collect();
    (!real.is_empty()).then(|| Watch::over_preparation(&real, ending::at_once))
}

/// The system under test, opened.
enum OpenedSystem {
    Targets(Targets),
    Programs(Box<Programs>),
    Model(Box<Disk>),
}

/// An opened target with everything needed to measure on it. Dropping it removes temporary files.
pub(crate) struct Workspace {
    place: OpenedSystem,
    clock: Clock,
    stop: StopFlags,
    preflight: Vec<Preflight>,
    /// Facts about the targets before they are measured: names that the user gave, ceilings.
    known: Environment,
    /// The other processes of the run.
    ranks: Option<Rc<Ranks>>,
    /// The right to change settings of the kernel, if a plan asks for it.
    system: Option<SystemControl>,
}

impl Workspace {
    /// Catches signals, opens the targets and prints notes about them.
    ///
    /// # Errors
    /// When a target lacks something, or must not be used.
    fn open(site: &Site, needs: &[Need]) -> Result<Self> {
        let (named, ranks) = (&site.targets, site.ranks.as_deref());
        // Before a scratch file exists: from then on a signal must not leave it.
        let stop = site.signals.caught(match ranks {
            Some(_) => StopFlags::at_once,
            None => StopFlags::in_two_steps,
        })?;
        let targets = Targets::open_at(named, needs, &|named| site.place(named))?;
        Ok(Self::at(OpenedSystem::Targets(targets), site, stop))
    }

    /// Catches signals, finds or builds the programs of an experiment and makes the files that they read.
    ///
    /// # Errors
    /// When a program is missing, or its files cannot be made.
    fn for_programs(site: &Site, plan: &Plan) -> Result<Self> {
        let stop = site.signals.caught(StopFlags::in_two_steps)?;
        let programs = Programs::open(plan, &site.targets, &site.programs);
        // A signal from the terminal ends the compiler too, which is not a failure of the compiler.
        if stop.soon().load(Ordering::Relaxed) {
            return Err(Error::interrupted());
        }
        let programs = OpenedSystem::Programs(Box::new(programs?));
        Ok(Self::at(programs, site, stop))
    }

    /// Catches signals; nothing is opened.
    ///
    /// # Errors
    /// When signals cannot be caught.
    fn for_model(site: &Site, disk: Disk) -> Result<Self> {
        let stop = site.signals.caught(StopFlags::in_two_steps)?;
        Ok(Self::at(OpenedSystem::Model(Box::new(disk)), site, stop))
    }

    fn at(place: OpenedSystem, site: &Site, stop: StopFlags) -> Self {
        let workspace = Self {
            place,
            clock: Clock::calibrate(),
            stop,
            preflight: Vec::new(),
            known: site.names.environment(),
            ranks: None,
            system: None,
        };
        for remark in workspace.place().notes() {
            note(format_args!("note: {remark}"));
        }
        workspace
    }

    /// Takes the right to change settings of the kernel, if plans ask for it, and restores settings that a killed run left
    /// changed.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused): this is not root, or another process changes them; of kind
    /// [`Usage`](iolab_workload::Kind::Usage): a setting that kernel or devices do not have.
    fn control_system(
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
            kernel_settings::restore_leftovers();
            return Ok(());
        }
        if has_ranks {
            return Err(Error::usage(
                "settings of the kernel (system) in a run of several processes",
            )
            .hint(concat!(
                "one process changes them: start iolab without ",
                launchers!()
            )));
        }
        let (control, restored) = SystemControl::take()?;
        kernel_settings::tell_restored(&restored);
        // Trying a setting out changes it for a moment.
        if let Some(watch) = watch {
            watch.changes_system();
        }
        let mut adapted = BTreeSet::new();
        for cell in asking {
            adapted.extend(control.try_out(&cell.system, &self.place().devices(cell)?)?);
        }
        for text in adapted {
            note(format_args!(
                "note: the kernel adapts a setting: {text}; tables name what was asked for"
            ));
        }
        self.system = Some(control);
        Ok(())
    }

    /// Makes other processes open the same targets, each as `needs` says, and measure together with this one.
    ///
    /// # Errors
    ///
    /// Why one of them cannot.
    fn share(&mut self, ranks: Rc<Ranks>, needs: &[Need]) -> Result<()> {
        if let OpenedSystem::Targets(targets) = &mut self.place {
            targets.divide(&ranks);
            // Each rank's own clock is the one that is compared.
            self.clock = ranks.clock();
            ranks.open(targets.iter(), needs)?;
            for remark in ranks.notes() {
                note(format_args!("note: {remark}"));
            }
            self.ranks = Some(ranks);
        }
        Ok(())
    }

    /// The system under test.
    fn place(&self) -> iolab_runner::SystemUnderTest<'_> {
        match &self.place {
            OpenedSystem::Targets(targets) => iolab_runner::SystemUnderTest::Targets(targets),
            OpenedSystem::Programs(programs) => iolab_runner::SystemUnderTest::Programs(programs),
            OpenedSystem::Model(disk) => iolab_runner::SystemUnderTest::Model(disk),
        }
    }

    /// Whether time is virtual.
    pub(crate) fn is_virtual(&self) -> bool {
        matches!(self.place, OpenedSystem::Model(_))
    }

    /// Bytes of the scratch files that are filled.
    fn fill_bytes(&self) -> u64 {
        match &self.place {
            OpenedSystem::Targets(targets) => targets.fill_bytes(),
            OpenedSystem::Programs(programs) => programs.bytes(),
            OpenedSystem::Model(_) => 0,
        }
    }

    /// Bytes of the scratch files, or of their parts, that all ranks fill together, at most.
    fn filled_by_all(&self) -> u64 {
        // The files of the other ranks are at most as large as the root's.
        let ranks = self.ranks.as_ref().map_or(1, |ranks| ranks.count());
        self.fill_bytes().saturating_mul(ranks as u64)
    }

    /// Kind of the targets; `None` if they differ.
    fn medium(&self) -> Option<Medium> {
        let targets = match &self.place {
            OpenedSystem::Model(_) => return Some(Medium::Model),
            OpenedSystem::Programs(_) => return Some(Medium::File),
            OpenedSystem::Targets(targets) => targets,
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
        let mut targets = self.place().targets().into_iter();
        targets.any(|(_, target)| target.is_nvme_namespace())
    }

    /// Bytes of the smallest of the targets; without targets there is no limit.
    fn room(&self) -> u64 {
        let targets = self.place().targets().into_iter();
        let sizes = targets.map(|(_, target)| target.size());
        sizes.min().unwrap_or(u64::MAX)
    }

    /// Whether trials run programs.
    fn runs_programs(&self) -> bool {
        matches!(self.place, OpenedSystem::Programs(_))
    }

    /// Reports the open targets to the watch over the time before the first trial. In this time scratch files are filled,
    /// by all ranks, and probes write to the targets if `probes_write`.
    fn tell(&self, watch: Option<&Watch>, probes_write: bool) {
        let filled = self.filled_by_all();
        let targets = self.place().targets().into_iter();
        let sizes = targets.map(|(_, target)| target.size());
        let probed = match probes_write {
            true => sizes.fold(0, u64::saturating_add),
            false => 0,
        };
        if let Some(watch) = watch {
            watch.has_opened(self.place(), filled.saturating_add(probed));
        }
    }

    /// Fills scratch files, so that no read meets a hole, and notes the rate. What takes longer than the limit is given up, and the time that
    /// it would take is given.
    ///
    /// # Errors
    ///
    /// A write fails, or the user interrupts.
    fn fill(&mut self, seed: u64, limit: Option<FillLimit>) -> Result<Option<Duration>> {
        let (began, total) = (Instant::now(), self.fill_bytes());
        let mut too_slow = None;
        let ended = AtomicBool::new(self.stop.soon().load(Ordering::Relaxed));
        // Heard after each part, as an interrupt is.
        let mut watch = |done: u64| {
            too_slow = limit.and_then(|limit| limit.exceeded(began.elapsed(), done, total));
            let ends = too_slow.is_some() || self.stop.soon().load(Ordering::Relaxed);
            ended.store(ends, Ordering::Relaxed);
        };
        let filled = self.fill_watched(seed, &ended, &mut watch);
        if filled.is_ok() && total > 0 {
            // The last sync is a part of it.
            watch(total);
        }
        let is_stopped = self.stop.soon().load(Ordering::Relaxed);
        if let Some(time) = fill_time::given_up(filled, too_slow, is_stopped)? {
            return Ok(Some(time));
        }
        let rate = total as f64 / 1e6 / began.elapsed().as_secs_f64().max(1e-9);
        let rate = (total > 0).then_some(rate);
        self.known.put(&KEYS.scratch_fill_mb_s, rate);
        Ok(None)
    }

    /// Fills scratch files until `ended`; `watch` gets the bytes that are written after each part.
    fn fill_watched(
        &self,
        seed: u64,
        ended: &AtomicBool,
        watch: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let total = self.fill_bytes();
        match &self.place {
            OpenedSystem::Model(_) => Ok(()),
            OpenedSystem::Targets(targets) => {
                let is_scratch =
                    |(_, target): (&Path, &Target)| target.kind() == TargetKind::Scratch;
                let scratch = targets.iter().filter(|target| is_scratch(*target)).count();
                let what = match scratch {
                    0 => return Ok(()),
                    1 => "filling the scratch file",
                    _ => "filling the scratch files",
                };
                let mut display = Display::filling(what, total);
                let mut own = || {
                    targets.fill(seed, ended, &mut |done| {
                        display.filled(done, total);
                        watch(done);
                    })
                };
                match &self.ranks {
                    Some(ranks) => ranks.fill(seed, total, own),
                    None => own(),
                }
            }
            OpenedSystem::Programs(programs) => {
                let mut display = Display::filling("filling the scratch files", total);
                programs.fill(seed, ended, &mut |done| {
                    display.filled(done, total);
                    watch(done);
                })
            }
        }
    }

    /// Examines the target and the machine, so that the run files of these experiments record conditions that affect them.
    fn check_before_run(&mut self, plans: &[FittedPlan]) {
        let direct = plans
            .iter()
            .any(|plan| !plan.experiment().runs_programs() && plan.wants_direct());
        let targets = self.place().targets().into_iter();
        let looked = targets.map(|(named, target)| {
            Preflight::look(named, target, &self.clock, self.stop.soon(), direct)
        });
        self.preflight = looked.collect();
    }

    /// A display for a run here, without notes about the target that were already printed.
    pub(crate) fn display(&self, name: &str) -> Display {
        Display::new(name)
            .in_virtual_time(self.is_virtual())
            .without(&self.place().notes())
    }

    /// Whether the user ended the measurement and wants its results.
    pub(crate) fn tells(&self, failure: &Failure) -> bool {
        failure.is_interrupt() && !self.stop.is_at_once()
    }

    /// The setup for the runner.
    pub(crate) fn setup(&self) -> Setup<'_> {
        Setup {
            place: self.place(),
            clock: &self.clock,
            stop: self.stop.stop(),
            preflight: &self.preflight,
            known: &self.known,
            ranks: self.ranks.as_deref(),
            system: self.system.as_ref(),
            end: ending::at_once,
        }
    }

    /// Removes scratch files of all ranks; `kept` are the run files, to be named if storage does not answer. An error of
    /// the measurement takes precedence over an error of the removal, which is often its consequence.
    ///
    /// # Errors
    ///
    /// The failure in `measured`; otherwise, a file that cannot be removed.
    pub(crate) fn close_after<T>(self, measured: Outcome<T>, kept: &[PathBuf]) -> Outcome<T> {
        let _watch = self.place().watch_removal(kept, ending::at_once);
        let theirs = self.ranks.map_or(Ok(()), |ranks| ranks.end());
        let own = match self.place {
            OpenedSystem::Targets(targets) => targets.remove(),
            OpenedSystem::Programs(programs) => programs.close(),
            OpenedSystem::Model(_) => Ok(()),
        };
        let closed = match (theirs, own) {
            (Err(left), Err(more)) => Err(left.also(more.message())),
            (theirs, own) => theirs.and(own),
        };
        match (measured, closed) {
            (Ok(_), Err(left)) => Err(left.into()),
            (Err(failure), Err(left)) => Err(failure.also(left.message())),
            (measured, Ok(())) => measured,
        }
    }
}
