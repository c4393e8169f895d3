//! Refusals of targets and of files of other tools where a name or a command belongs.

use std::path::Path;

use iolab_command::Lists;
use iolab_command::built_in::of_another_kind;
use iolab_plan::experiment::Experiment;
use iolab_workload::{Error, Result};

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
    let wanted = "a command";
    lists.check_kind(name, wanted)?;
    let path = Path::new(name);
    let (what, by) = match lists.format_of(path) {
        Some(format) => (format.file, "iolab run"),
        None if is_definition(path) => ("the definition of an experiment", "iolab run"),
        None if is_target(name) => ("a target", "iolab study"),
        None => return Ok(()),
    };
    Err(of_another_kind(name, what, wanted, by))
}
