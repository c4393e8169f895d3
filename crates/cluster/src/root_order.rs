//! Orders of the root to the other ranks, one after another.

use serde::{Deserialize, Serialize};

use crate::link;
use iolab_workload::foreign_options::unknown_setting;
use iolab_workload::settings::{CellSpec, SETTINGS, Setting};
use iolab_workload::trial::TrialSpec;
use iolab_workload::{Error, Result};

/// An order of the root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum RootOrder {
    /// Opening of these targets.
    Open(Vec<RemoteTarget>),
    /// Filling of each rank's own files.
    Fill {
        /// Seed of the data.
        seed: u64,
        /// Most bytes that all ranks fill together.
        bytes: u64,
    },
    /// Running a trial.
    Trial(Box<Task>),
    /// End of the run: removal of each rank's own files.
    End,
    /// Idle time of the root for its devices before its next order, ns.
    Rest(u64),
    /// Trials are kept from now on: how to finish the run if a rank is lost.
    Keep(String),
}

/// A target as the other ranks open it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteTarget {
    /// Absolute path: of the root's scratch file, or of the existing target.
    pub path: String,
    /// Whether the target is a scratch file.
    pub scratch: bool,
    /// Used bytes.
    pub bytes: u64,
    /// Sizes of the files that each rank makes for its own workers, bytes.
    pub private: Vec<u64>,
    /// Needs of each rank, if the path means a different one for each rank.
    pub own: Option<Own>,
    /// Path of a folder, different for each rank, in which each sees the root's scratch file.
    pub seen_in: Option<String>,
}

/// Needs of a rank from its own target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Own {
    /// Whether the rank writes to the target.
    pub write: bool,
    /// Trials with a file for each worker: number of workers, I/O size and number of ranks.
    pub private: Vec<(u64, u64, u64)>,
    /// Files of the trial that starts with the most fresh ones.
    pub fresh: u64,
    /// Name of the root's scratch file, which may be in the same store, on a mount with separate locks.
    pub roots: Option<String>,
}

/// A trial to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "TaskSettings", into = "TaskSettings")]
pub struct Task {
    /// The trial; each rank derives its own workers from it.
    pub trial: TrialSpec,
    /// Number of its target.
    pub target: u64,
}

impl RootOrder {
    /// The order as a message.
    ///
    /// # Errors
    /// The trial does not consist of settings alone.
    pub fn message(&self) -> Result<Vec<u8>> {
        let message = link::encode(self);
        match Self::read(&message).as_ref() == Some(self) {
            true => Ok(message),
            false => Err(Error::failed(
                "a trial cannot be described to the other ranks",
            )),
        }
    }

    /// Order in a message; `None` if it has none.
    pub fn read(message: &[u8]) -> Option<Self> {
        link::decode(message)
    }
}

/// A trial as its settings that differ from the default ones, each by its name.
#[derive(Serialize, Deserialize)]
struct TaskSettings {
    settings: Vec<(String, String)>,
    seed: u64,
    target: u64,
}

impl From<Task> for TaskSettings {
    fn from(task: Task) -> Self {
        let seed = task.trial.seed;
        let (own, plain) = (CellSpec::of(task.trial), CellSpec::of(TrialSpec::default()));
        let differing = SETTINGS.iter().filter_map(|setting| {
            let value = setting.get(&own);
            (value != setting.get(&plain)).then(|| (setting.name.to_owned(), value))
        });
        Self {
            settings: differing.collect(),
            seed,
            target: task.target,
        }
    }
}

impl TryFrom<TaskSettings> for Task {
    type Error = Error;

    fn try_from(task: TaskSettings) -> Result<Self> {
        let mut cell = CellSpec::of(TrialSpec::default());
        for (name, text) in &task.settings {
            let setting = Setting::find(name).ok_or_else(|| unknown_setting(name, &[]))?;
            setting.set(&mut cell, text)?;
        }
        cell.trial.seed = task.seed;
        Ok(Self {
            trial: cell.trial,
            target: task.target,
        })
    }
}
