//! The workplace of a command that measures: signals, target, clock.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use iolab_engine::clock::Clock;
use iolab_engine::target::{Need, Target, TargetKind};
use iolab_lab::experiment::Experiment;
use iolab_lab::runner::{Setup, wants_direct};
use iolab_lab::{Error, Result};

use crate::output::note;
use crate::progress::Display;
use crate::stop;

/// An opened target with what it takes to measure on it. Dropping it removes a scratch file.
pub(crate) struct Bench {
    target: Target,
    named: PathBuf,
    clock: Clock,
    stop: Arc<AtomicBool>,
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
        for remark in target.notes() {
            note(format_args!("note: {remark}"));
        }
        Ok(Self {
            target,
            named: named.to_owned(),
            clock: Clock::calibrate(),
            stop,
        })
    }

    /// The target.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Lets experiments go through the page cache where the target cannot do direct I/O and
    /// nobody insisted on it.
    ///
    /// # Errors
    /// Never for experiments that were read or checked.
    pub(crate) fn settle_cache(&self, experiments: &mut [Experiment]) -> Result<()> {
        let Err(reason) = self.target.direct_alignment() else {
            return Ok(());
        };
        let sweeps = |e: &Experiment| e.factors.iter().any(|f| f.setting.name == "cache");
        let mut settled = false;
        for experiment in experiments {
            if wants_direct(experiment) && !sweeps(experiment) {
                experiment.apply_set("cache=cold")?;
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

    /// Fills a scratch file with data, so that no read meets a hole.
    ///
    /// # Errors
    /// When a write fails, or the user interrupts.
    pub(crate) fn fill(&self, seed: u64) -> Result<()> {
        if self.target.kind() != TargetKind::Scratch {
            return Ok(());
        }
        let total = self.target.size();
        let mut display = Display::new("filling the scratch file");
        let mut progress = |done| display.filled(done, total);
        self.target.fill(seed, &self.stop, &mut progress)
    }

    /// Shows the progress of a run here, without what was told about the target already.
    pub(crate) fn display(&self, name: &str) -> Display {
        Display::new(name).without(self.target.notes())
    }

    /// What the runner needs.
    pub(crate) fn setup(&self) -> Setup<'_> {
        Setup {
            target: &self.target,
            named: &self.named,
            clock: &self.clock,
            stop: &self.stop,
        }
    }

    /// Removes the scratch file and tells when that fails.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub(crate) fn close(self) -> Result<()> {
        self.target.remove()
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
