//! Several processes (ranks) that carry out the trials of one run together: what a run needs of them.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iolab_host::clock::Clock;
use iolab_plan::cells::{PlannedCell, Processes};
use iolab_record::tables::Rank;
use iolab_record::{Part, RankActivity};
use iolab_storage::{Need, Target};
use iolab_workload::outcome::{ClientOutcome, Outcome};
use iolab_workload::trial::{Shift, TrialSpec};
use iolab_workload::{Result, launchers, usage_errors};

use crate::Targets;

/// All processes of a run, as its first process (the root) leads them.
pub trait Ranks: Processes {
    /// Number of ranks, at least 2.
    fn count(&self) -> usize;

    /// The ranks, as a run file keeps them.
    fn rows(&self) -> Vec<Rank>;

    /// The clock that all times of the run are read from.
    fn clock(&self) -> Clock;

    /// The path that this process uses for a target of this name.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a name that cannot be sent to other ranks.
    fn place(&self, named: &Path) -> Result<PathBuf>;

    /// Has the other ranks open the targets that this process has opened, each by its name. Each rank is to fill a part of a scratch
    /// file that all of them share.
    ///
    /// # Errors
    /// A failure that keeps a rank from it.
    fn open(&self, targets: &mut Targets, needs: &[Need]) -> Result<()>;

    /// Notes of the other ranks about opening their targets, without the notes that this process has too.
    fn notes(&self) -> Vec<String>;

    /// Fills all files; `own` fills the files of this process, with this many bytes.
    ///
    /// # Errors
    /// What `own` fails with, or another rank.
    fn fill(&self, seed: u64, bytes: u64, own: &mut dyn FnMut() -> Result<()>) -> Result<()>;

    /// Trials are kept from now on; `advice` says how to finish the run should a rank be lost.
    fn keeps_trials(&self, advice: &str);

    /// Announces that the next trial comes later by this time.
    ///
    /// # Errors
    /// When a rank is lost.
    fn rest(&self, time: Duration) -> Result<()>;

    /// Carries a trial out with all ranks, on the target with this number.
    ///
    /// # Errors
    /// As [`iolab_engine::trial::run`], of any rank.
    fn run(
        &self,
        trial: &TrialSpec,
        number: usize,
        target: &Target,
        stop: &AtomicBool,
    ) -> Result<Outcome>;

    /// Results of each rank in the last trial.
    fn take_report(&self) -> RankReport;

    /// Announces the end of the run, once. Other ranks recognise their files by the files of this process, which are removed last.
    ///
    /// # Errors
    /// A failure that keeps a rank from removing its files, or the loss of a rank.
    fn end(&self) -> Result<()>;
}

/// The results of the processes (ranks) of a trial; empty for a single one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RankReport {
    /// Result of each part.
    pub parts: Vec<Part>,
    /// Result of each client, in the order of their first ranks.
    pub clients: Vec<ClientOutcome>,
    /// Bytes that all of them access: of a file that each has for itself, the sum. `None` for a single one.
    pub region_bytes: Option<u64>,
    /// Activity of all ranks.
    pub together: Option<RankActivity>,
}

/// The ranks that a plan asks for, when they do not exist and nothing is carried out.
#[derive(Debug, Clone, Copy)]
pub struct AssumedRanks;

impl Processes for AssumedRanks {
    fn span(&self, cells: &mut [PlannedCell]) -> Result<()> {
        for cell in cells {
            let trial = &mut cell.spec.trial;
            let shifted = if trial.shift == Shift::None { 1 } else { 2 };
            let ranks = trial.ranks.or(trial.hosts).unwrap_or(shifted);
            trial.span(ranks.max(trial.hosts.unwrap_or(1)));
        }
        Ok(())
    }
}

/// Placeholder for the number of a rank in the path of a target.
pub const RANK: &str = "{rank}";

/// Placeholder for the name of the host of a rank.
pub const HOST: &str = "{host}";

/// Whether a path is another one for every rank, or for every host.
pub fn is_own(path: &Path) -> bool {
    let path = path.as_os_str().as_encoded_bytes();
    let has = |what: &str| path.windows(what.len()).any(|part| part == what.as_bytes());
    has(RANK) || has(HOST)
}

/// The path of the only process.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): it is one for several.
pub fn alone(path: &Path) -> Result<PathBuf> {
    usage_errors! {
        is_own(path) && path.symlink_metadata().is_err() => format!("{} is for several processes, and this is one", path.display()),
            concat!("start several with ", launchers!(), " (iolab built with the feature mpi), or name one target");
    }
    Ok(path.to_owned())
}
