//! Orders of the root to the other ranks, one after another.
//!
//! Greeting of ranks: identifies each of them, and checks that all run the same program.
//!
//! Each rank sends the identities of the ranks below it and its own to its parent, and the root answers with its decision.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::collectives::{Team, tag};
use crate::link::{self, Link, LossReason, LostRank};
use crate::trial::{GoAhead, Halt, UnreadyRank};
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

/// An error as a message between ranks.
pub fn error_text(error: &Error) -> String {
    serde_json::to_string(error).unwrap_or_default()
}

/// Error in a message.
pub fn error_of(text: &str) -> Error {
    serde_json::from_str(text).unwrap_or_else(|_| Error::failed(text))
}

/// Least time allowed for a message, so that one that came long ago is found.
const LEAST: Duration = Duration::from_millis(20);

/// Identity of a rank.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RankIdentity {
    /// Number of the rank.
    pub rank: usize,
    /// Build of the program.
    pub build: String,
    /// Name of its host.
    pub host: String,
    /// Identity of the kernel of its host.
    pub kernel: String,
}

/// Waiting times of ranks in the greeting, each from the moment at which it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandshakeTimeouts {
    /// Waiting time for the first message of another rank: ranks may begin at different times.
    pub first: Duration,
    /// Additional time for each level of the tree that a message passes.
    pub level: Duration,
}

impl HandshakeTimeouts {
    fn over(self, levels: u32) -> Duration {
        self.first + self.level * levels
    }

    /// Time after which every running rank has its answer, in a tree of this height.
    pub fn in_all(self, height: u32) -> Duration {
        self.over(height + 2)
    }
}

/// Known ranks below a rank and this one, and the reason why they cannot go on.
#[derive(Debug, Serialize, Deserialize)]
pub struct Roll {
    /// Known ranks. The root knows all unless something stops them.
    pub known: Vec<RankIdentity>,
    /// Reason why the ranks cannot go on.
    pub halt: Option<Halt>,
}

impl<L: Link> Team<L> {
    /// Finds out which ranks there are, and whether all are of the same build. The first operation of every
    /// rank. `differs` describes the fault of a rank of the first build below one of the second.
    pub fn greet(
        &mut self,
        own: RankIdentity,
        limits: HandshakeTimeouts,
        differs: &dyn Fn(&str, &str) -> String,
    ) -> Roll {
        let began = self.link().now_ns();
        // Remaining time for a message across this number of levels.
        let left = |team: &mut Self, levels| {
            let gone = team.link().now_ns().saturating_sub(began);
            let gone = Duration::from_nanos(gone.max(0).unsigned_abs());
            limits.over(levels).saturating_sub(gone).max(LEAST)
        };
        let mut roll = Roll {
            known: vec![own.clone()],
            halt: None,
        };
        let mut members = Vec::new();
        for child in self.children() {
            let levels = self.height_of(child);
            let left = left(self, levels);
            match self.hear::<Roll>(child, tag::UP, left) {
                Ok(below) => {
                    members.push(child);
                    roll.known.extend(below.known);
                    roll.halt = roll.halt.or(below.halt);
                }
                Err(lost) => roll.halt = roll.halt.or(Some(lost.into())),
            }
        }
        roll.halt = match self.parent() {
            None => roll.halt.or_else(|| {
                let other = roll.known.iter().find(|one| one.build != own.build)?;
                Some(Halt::Unready(UnreadyRank {
                    rank: other.rank,
                    message: differs(&other.build, &own.build),
                }))
            }),
            Some(parent) => {
                // A level less than all are allowed, for the way down.
                let left = left(self, self.height() + 1);
                let sent = self.send(parent, tag::UP, &roll, left);
                let verdict = sent.and_then(|()| self.hear::<GoAhead>(parent, tag::DOWN, left));
                verdict.map_or_else(|lost| Some(lost.into()), |verdict| verdict.0)
            }
        };
        let verdict = GoAhead(roll.halt.clone());
        for member in members {
            // The next operation of all ranks finds one that cannot be reached.
            let _ = self.send(member, tag::DOWN, &verdict, limits.level);
        }
        roll
    }

    /// A value that another rank sends; one of another build may send something else.
    fn hear<T: serde::de::DeserializeOwned>(
        &mut self,
        from: usize,
        tag: u8,
        timeout: Duration,
    ) -> std::result::Result<T, LostRank> {
        self.expect(from, tag, timeout)
            .map_err(|lost| match lost.why {
                LossReason::Silent(_) => lost,
                _ => LostRank {
                    rank: from,
                    why: LossReason::Stranger,
                },
            })
    }
}
