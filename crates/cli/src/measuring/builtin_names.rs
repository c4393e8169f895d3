//! Built-in names, the command that accepts each, and what may stand in their place: targets and files of other tools.

use std::path::Path;

use iolab_command::Lists;
use iolab_plan::experiment::{BUILTIN, Experiment};
use iolab_plan::requirement::BUILTIN_REQUIREMENTS;
use iolab_plan::suite::BUILTIN_SUITES;
use iolab_workload::{Error, Result};

/// Kinds of names that `iolab study`, `run` and `fit` accept, and of things that all of them measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Builtin {
    Suite,
    Experiment,
    Requirement,
    Target,
    Command,
}

impl Builtin {
    /// The kind of a name. Several kinds may share it (a test of a standard is an experiment and a suite): then `wanted`
    /// decides.
    fn of(name: &str, wanted: Self) -> Option<Self> {
        let kinds = [
            (BUILTIN, Self::Experiment),
            (BUILTIN_SUITES, Self::Suite),
            (BUILTIN_REQUIREMENTS, Self::Requirement),
        ];
        let has = |(names, _): &(&[(&str, &str)], Self)| names.iter().any(|(own, _)| *own == name);
        let kinds = kinds.into_iter().filter(has).map(|(_, kind)| kind);
        // The first one, unless a later one is wanted.
        kinds.min_by_key(|kind| *kind != wanted)
    }

    fn words(self) -> &'static str {
        match self {
            Self::Suite => "a suite",
            Self::Experiment => "an experiment",
            Self::Requirement => "a requirement",
            Self::Target => "a target",
            Self::Command => "a command",
        }
    }

    fn command(self, name: &str) -> String {
        match self {
            Self::Suite => format!("iolab study --suite {name}"),
            Self::Experiment => format!("iolab run {name}"),
            Self::Requirement => format!("iolab fit {name}"),
            Self::Target => format!("iolab study {name}"),
            Self::Command => format!("iolab {name}"),
        }
    }

    /// Refuses the name of a built-in of another kind, unless a file of this name exists.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage), with the command that accepts the name.
    pub(crate) fn check(self, name: &str) -> Result<()> {
        match Self::of(name, self) {
            Some(kind) if kind != self && !Path::new(name).exists() => {
                Err(refused(name, kind.words(), self.words(), kind))
            }
            _ => Ok(()),
        }
    }
}

/// The refusal of what is not `wanted`, with the command that takes it.
fn refused(name: &str, what: &str, wanted: &str, by: Builtin) -> Error {
    Error::usage(format!("'{name}' is {what}, not {wanted}"))
        .hint(format!("run it with: {}", by.command(name)))
}

fn is_definition(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "toml")
}

/// Whether a word can only be a target: a directory, a device, a model, a path.
fn is_target(name: &str) -> bool {
    let path = Path::new(name);
    path.is_dir()
        || name.starts_with("model:")
        || (name.contains('/') && !is_definition(path) && !path.is_file())
}

/// Refuses a target in the position of an experiment.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage), with the commands that accept it.
pub(crate) fn check_no_target(name: &str) -> Result<()> {
    // A folder may have the name of an experiment.
    match is_target(name) && !Experiment::is_builtin(name) {
        true => Err(Error::usage(format!("'{name}' is a target, not an experiment")).hint(
            format!("measure it with: iolab study {name}; or with one experiment: iolab run read-random {name}"),
        )),
        false => Ok(()),
    }
}

/// Refuses a name, a file or a target in the position of a command.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage), with the command that accepts it.
pub(crate) fn check_command(name: &str, lists: &Lists) -> Result<()> {
    Builtin::Command.check(name)?;
    let path = Path::new(name);
    let (what, by) = match lists.format_of(path) {
        Some(format) => (format.file, Builtin::Experiment),
        None if is_definition(path) => ("the definition of an experiment", Builtin::Experiment),
        None if is_target(name) => ("a target", Builtin::Target),
        None => return Ok(()),
    };
    Err(refused(name, what, Builtin::Command.words(), by))
}
