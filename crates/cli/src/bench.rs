//! The workplace of a command that measures: signals, target, clock.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use iolab_engine::clock::Clock;
use iolab_machine::doctor::Preflight;
use iolab_plan::cells::Plan;
use iolab_plan::experiment::{Change, Experiment};
use iolab_record::environment::Environment;
use iolab_record::peaks::{Peaks, Source};
use iolab_run::peak_probe;
use iolab_run::runner::{self, Disk, Programs, Setup};
use iolab_spec::{Error, Result};
use iolab_target::{Need, Target, TargetKind};

use crate::exit::Outcome;
use crate::output::note;
use crate::progress::Display;
use crate::stop;

/// What is measured on.
enum Place {
    Target(Box<Target>),
    Programs(Box<Programs>),
    Model(Box<Disk>),
}

/// An opened target with what it takes to measure on it. Dropping it removes what was made for that.
pub(crate) struct Bench {
    place: Place,
    named: PathBuf,
    clock: Clock,
    stop: Arc<AtomicBool>,
    preflight: Option<Preflight>,
    peaks: Environment,
}

impl Bench {
    /// Catches signals, opens the target and tells what is remarkable about it.
    ///
    /// # Errors
    /// When the target does not have what is needed, or must not be used.
    pub(crate) fn open(named: &Path, need: &Need) -> Result<Self> {
        // Before the scratch file is there: from then on no signal may leave it behind.
        let stop = stop::on_signals()?;
        let target = Target::open(named, need)?;
        Ok(Self::at(Place::Target(Box::new(target)), named, stop))
    }

    /// Catches signals, finds or builds the programs of an experiment and makes the files that they read.
    ///
    /// # Errors
    /// When a program is missing, or its files cannot be made in `named`.
    pub(crate) fn for_programs(named: &Path, plan: &Plan) -> Result<Self> {
        let stop = stop::on_signals()?;
        let programs = Programs::open(plan, named);
        // A signal from the terminal ends the compiler too: that is no fault of its.
        if stop.load(Ordering::Relaxed) {
            return Err(Error::interrupted());
        }
        Ok(Self::at(Place::Programs(Box::new(programs?)), named, stop))
    }

    /// Catches signals; there is nothing to open.
    ///
    /// # Errors
    /// When signals cannot be caught.
    pub(crate) fn for_model(named: &Path, disk: Disk) -> Result<Self> {
        let stop = stop::on_signals()?;
        Ok(Self::at(Place::Model(Box::new(disk)), named, stop))
    }

    fn at(place: Place, named: &Path, stop: Arc<AtomicBool>) -> Self {
        let bench = Self {
            place,
            named: named.to_owned(),
            clock: Clock::calibrate(),
            stop,
            preflight: None,
            peaks: Environment::default(),
        };
        for remark in bench.place().notes() {
            note(format_args!("note: {remark}"));
        }
        bench
    }

    /// What is measured on.
    pub(crate) fn place(&self) -> runner::Place<'_> {
        match &self.place {
            Place::Target(target) => runner::Place::Target(target),
            Place::Programs(programs) => runner::Place::Programs(programs),
            Place::Model(disk) => runner::Place::Model(disk),
        }
    }

    /// The target, or what stands for the directory of the programs' files; a model has none.
    fn target(&self) -> Option<&Target> {
        match &self.place {
            Place::Target(target) => Some(target),
            Place::Programs(programs) => Some(programs.place()),
            Place::Model(_) => None,
        }
    }

    /// Whether time is that of a model.
    pub(crate) fn is_virtual(&self) -> bool {
        matches!(self.place, Place::Model(_))
    }

    /// Lets experiments go through the page cache where the target cannot do direct I/O and
    /// nobody insisted on it.
    ///
    /// # Errors
    /// Never for experiments that were read or checked.
    pub(crate) fn settle_cache(&self, plans: &mut [Plan]) -> Result<()> {
        let Some(Err(reason)) = self.target().map(Target::direct_alignment) else {
            return Ok(());
        };
        let sweeps = |e: &Experiment| e.factors.iter().any(|f| f.setting.name == "cache");
        let mut settled = false;
        for plan in plans {
            if plan.wants_direct() && !sweeps(plan.experiment()) {
                let mut experiment = plan.experiment().clone();
                experiment.apply(&Change::of("cache", "cold")?)?;
                *plan = Plan::of(experiment)?;
                settled = true;
            }
        }
        if settled {
            note(format_args!(
                "note: {}; measuring through the page cache instead (cache=cold)",
                reason.message()
            ));
        }
        Ok(())
    }

    /// Fills scratch files with data, so that no read meets a hole.
    ///
    /// # Errors
    /// When a write fails, or the user interrupts.
    pub(crate) fn fill(&self, seed: u64) -> Result<()> {
        let is_scratch = |target: &Target| target.kind() == TargetKind::Scratch;
        if !self.target().is_some_and(is_scratch) {
            return Ok(());
        }
        match &self.place {
            Place::Model(_) => Ok(()),
            Place::Target(target) => {
                let total = target.fill_bytes();
                let mut display = Display::new("filling the scratch file");
                target.fill(seed, &self.stop, &mut |done| display.filled(done, total))
            }
            Place::Programs(programs) => {
                let total = programs.bytes();
                let mut display = Display::new("filling the scratch files");
                programs.fill(seed, &self.stop, &mut |done| display.filled(done, total))
            }
        }
    }

    /// Looks at the target and the machine, so that the run files of these experiments tell what colours them. To be
    /// called once the target is filled.
    pub(crate) fn look_around(&mut self, plans: &[Plan]) {
        let Some(target) = self.target() else {
            return;
        };
        let direct = plans
            .iter()
            .any(|plan| !plan.experiment().runs_programs() && plan.wants_direct());
        self.preflight = Some(Preflight::look(
            &self.named,
            target,
            &self.clock,
            &self.stop,
            direct,
        ));
    }

    /// Takes ceilings over that the user states, or finds them by short probes (`measure`). To be called once the target is
    /// filled.
    ///
    /// # Errors
    /// Of kind usage: what is no ceiling; else what a probe meets.
    pub(crate) fn find_peaks(&mut self, asked: &str, writes: bool) -> Result<()> {
        if matches!(self.place, Place::Programs(_)) {
            return Err(Error::usage("--peak has no meaning for programs").hint("leave it out"));
        }
        if asked != "measure" {
            self.peaks = Peaks::parse(asked)?.environment(Source::Stated);
            return Ok(());
        }
        let Place::Target(target) = &self.place else {
            return Err(Error::usage("the ceilings of a model are not measured")
                .hint("state them: --peak read=200MB/s,iops=100"));
        };
        note(format_args!(
            "note: measuring the ceilings of {}",
            self.named.display()
        ));
        let peaks = peak_probe::measure(target, &self.clock, &self.stop, writes)?;
        self.peaks = peaks.environment(Source::Measured);
        note(format_args!("note: the ceilings are {}", peaks.words()));
        Ok(())
    }

    /// Shows the progress of a run here, without what was told about the target already.
    pub(crate) fn display(&self, name: &str) -> Display {
        Display::new(name).without(self.place().notes())
    }

    /// What the runner needs.
    pub(crate) fn setup(&self) -> Setup<'_> {
        Setup {
            place: self.place(),
            named: &self.named,
            clock: &self.clock,
            stop: &self.stop,
            preflight: self.preflight.as_ref(),
            peaks: &self.peaks,
        }
    }

    /// Removes scratch files. What the measuring met is told first: that a file cannot be removed then often follows from it.
    ///
    /// # Errors
    /// What `measured` failed with; else when a file cannot be removed.
    pub(crate) fn close_after<T>(self, measured: Outcome<T>) -> Outcome<T> {
        let closed = match self.place {
            Place::Target(target) => target.remove(),
            Place::Programs(programs) => programs.close(),
            Place::Model(_) => Ok(()),
        };
        match (measured, closed) {
            (Ok(_), Err(left)) => Err(left.into()),
            (Err(failure), Err(left)) => Err(failure.also(left.message())),
            (measured, Ok(())) => measured,
        }
    }
}

/// Makes the folder of the run files.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn make_folder(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|error| {
        Error::usage(format!(
            "cannot make the folder {} for the run files: {error}",
            folder.display()
        ))
        .hint("name a place that can be written with -o")
    })
}
