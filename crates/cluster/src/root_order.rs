//! Orders of the root to the other ranks, one after another.

use iolab_workload::settings::{CellSpec, SETTINGS, Setting};
use iolab_workload::trial::TrialSpec;
use iolab_workload::{Error, Kind, Result};

use crate::wire::{Reader, Wire, Writer, wired};

/// An order of the root.
#[derive(Debug, Clone, PartialEq)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// Whether the rank writes to the target.
    pub write: bool,
    /// Trials with a file for each worker: number of workers, I/O size and number of ranks.
    pub private: Vec<(u64, (u64, u64))>,
    /// Files of the trial that starts with the most fresh ones.
    pub fresh: u64,
    /// Name of the root's scratch file, which may be in the same store, on a mount with separate locks.
    pub roots: Option<String>,
}

/// A trial to run.
#[derive(Debug, Clone, PartialEq)]
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
        let mut to = Writer::default();
        match self {
            RootOrder::Open(places) => {
                to.number(0);
                places.write(&mut to);
            }
            RootOrder::Fill { seed, bytes } => {
                to.number(1);
                seed.write(&mut to);
                bytes.write(&mut to);
            }
            RootOrder::Trial(task) => {
                to.number(2);
                write_task(task, &mut to);
                let message = to.clone().into_bytes();
                if Self::read(&message).as_ref() != Some(self) {
                    return Err(Error::failed(
                        "a trial cannot be described to the other ranks",
                    ));
                }
            }
            RootOrder::End => to.number(3),
            RootOrder::Rest(time) => {
                to.number(4);
                time.write(&mut to);
            }
            RootOrder::Keep(advice) => {
                to.number(5);
                advice.write(&mut to);
            }
        }
        Ok(to.into_bytes())
    }

    /// Order in a message; `None` if it has none.
    pub fn read(message: &[u8]) -> Option<Self> {
        let mut from = Reader::new(message);
        let order = match from.number()? {
            0 => RootOrder::Open(Wire::read(&mut from)?),
            1 => RootOrder::Fill {
                seed: Wire::read(&mut from)?,
                bytes: Wire::read(&mut from)?,
            },
            2 => RootOrder::Trial(Box::new(read_task(&mut from)?)),
            3 => RootOrder::End,
            4 => RootOrder::Rest(Wire::read(&mut from)?),
            5 => RootOrder::Keep(Wire::read(&mut from)?),
            _ => return None,
        };
        from.is_at_end().then_some(order)
    }
}

/// Settings in which a trial differs from the default one, by their numbers in the table.
fn write_task(task: &Task, to: &mut Writer) {
    let cell = |trial: &TrialSpec| CellSpec {
        trial: trial.clone(),
        batch_auto: false,
        ..CellSpec::default()
    };
    let (own, plain) = (cell(&task.trial), cell(&TrialSpec::default()));
    let differs = |(_, setting): &(usize, &Setting)| setting.get(&own) != setting.get(&plain);
    let settings: Vec<(u64, String)> = SETTINGS
        .iter()
        .enumerate()
        .filter(differs)
        .map(|(number, setting)| (number as u64, setting.get(&own)))
        .collect();
    settings.write(to);
    task.trial.seed.write(to);
    task.trial.series_ns.write(to);
    task.target.write(to);
}

fn read_task(from: &mut Reader<'_>) -> Option<Task> {
    let mut cell = CellSpec {
        batch_auto: false,
        ..CellSpec::default()
    };
    for (number, text) in Vec::<(u64, String)>::read(from)? {
        let setting = SETTINGS.get(usize::try_from(number).ok()?)?;
        setting.set(&mut cell, &text).ok()?;
    }
    cell.trial.seed = Wire::read(from)?;
    cell.trial.series_ns = Wire::read(from)?;
    Some(Task {
        trial: cell.trial,
        target: Wire::read(from)?,
    })
}

/// An error as a message between ranks.
pub fn error_text(error: &Error) -> String {
    let kind = KINDS.iter().position(|kind| *kind == error.kind());
    let kind = kind.unwrap_or(0);
    let remedy = error.remedy().unwrap_or("");
    [&kind.to_string(), error.message(), remedy].join(UNIT)
}

/// Error in a message.
pub fn error_of(text: &str) -> Error {
    let mut parts = text.splitn(3, UNIT);
    let kind = parts.next().and_then(|kind| kind.parse::<usize>().ok());
    let message = parts.next().unwrap_or(text);
    let error = match kind.and_then(|kind| KINDS.get(kind)) {
        Some(Kind::Usage) => Error::usage(message),
        Some(Kind::Refused) => Error::refused(message),
        Some(Kind::Interrupted) => Error::interrupted(),
        Some(Kind::Failed) | None => Error::failed(message),
    };
    match parts.next() {
        None | Some("") => error,
        Some(remedy) => error.hint(remedy),
    }
}

const KINDS: [Kind; 4] = [Kind::Failed, Kind::Usage, Kind::Refused, Kind::Interrupted];

/// Separator between the parts of an error; no message contains it.
const UNIT: &str = "\u{1f}";

wired! {
    RemoteTarget { path, scratch, bytes, private, own, seen_in }
    Own { write, private, fresh, roots }
}
