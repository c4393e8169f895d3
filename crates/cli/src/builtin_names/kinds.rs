//! Kinds of built-in names, and the command that measures each.

use std::path::Path;

use iolab_fio::job::JobFile;
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
        let is_in = |names: &[(&str, &str)]| names.iter().any(|(known, _)| *known == name);
        let kinds = [
            (is_in(BUILTIN), Self::Experiment),
            (is_in(BUILTIN_SUITES), Self::Suite),
            (is_in(BUILTIN_REQUIREMENTS), Self::Requirement),
        ];
        let kinds = kinds.into_iter().filter(|(is, _)| *is);
        let kinds: Vec<Self> = kinds.map(|(_, kind)| kind).collect();
        match kinds.contains(&wanted) {
            true => Some(wanted),
            false => kinds.first().copied(),
        }
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
            Some(kind) if kind != self && !Path::new(name).exists() => Err(Error::usage(format!(
                "'{name}' is {}, not {}",
                kind.words(),
                self.words()
            ))
            .hint(format!("run it with: {}", kind.command(name)))),
            _ => Ok(()),
        }
    }
}

/// Whether a word can only be a target: a directory, a device, a model, a path.
fn is_target(name: &str) -> bool {
    let is_definition = |path: &Path| path.extension().is_some_and(|e| e == "toml" || e == "fio");
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

/// Refuses a name or a file of another kind in the position of a command.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage), with the command that accepts the name.
pub(crate) fn check_command(name: &str) -> Result<()> {
    Builtin::Command.check(name)?;
    check_no_job_as_command(name)?;
    check_no_target_as_command(name)
}

/// Refuses a target in the position of a command.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage), with the command that accepts it.
fn check_no_target_as_command(name: &str) -> Result<()> {
    match is_target(name) {
        true => Err(
            Error::usage(format!("'{name}' is a target, not a command")).hint(format!(
                "measure it with: {}",
                Builtin::Target.command(name)
            )),
        ),
        false => Ok(()),
    }
}

/// Refuses a job file of fio, or a definition, in the position of a command.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage), with the command that accepts it.
fn check_no_job_as_command(name: &str) -> Result<()> {
    let path = Path::new(name);
    let what = match path.extension() {
        _ if JobFile::is_one(path) => "a job file of fio",
        Some(extension) if extension == "toml" => "the definition of an experiment",
        _ => return Ok(()),
    };
    Err(
        Error::usage(format!("'{name}' is {what}, not a command")).hint(format!(
            "run it with: {}",
            Builtin::Experiment.command(name)
        )),
    )
}
