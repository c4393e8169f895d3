//! `iolab show`: the definition of an experiment, suite or requirement, or its cells as a job file of fio.

use std::io::Write;
use std::path::Path;

use iolab_peers::fio::job::JobFile;
use iolab_peers::fio::write_job::job_file;
use iolab_plan::cells::{OneProcess, Plan};
use iolab_plan::experiment::{BUILTIN, Experiment};
use iolab_plan::requirement::BUILTIN_REQUIREMENTS;
use iolab_plan::suite::BUILTIN_SUITES;
use iolab_workload::Result;

use crate::arguments::{Show, ShowFormat};
use crate::builtin::{Builtin, unknown_name};
use crate::exit::Outcome;
use crate::output::open;

/// Writes the definition to stdout.
pub(crate) fn show(options: &Show) -> Outcome {
    let text = match options.format {
        ShowFormat::Toml => toml(options)?,
        ShowFormat::Fio => job_file(&Plan::of_new_run(experiment(options)?, &OneProcess)?),
    };
    let mut to = open(None)?;
    write!(to, "{text}")?;
    Ok(to.flush()?)
}

/// The TOML: of what is built in with its comments, of a file with everything resolved, of a job file of fio with what each
/// of its options means.
fn toml(options: &Show) -> Result<String> {
    let name = options.name.as_str();
    let builtin = BUILTIN.iter().chain(BUILTIN_SUITES);
    let mut builtin = builtin.chain(BUILTIN_REQUIREMENTS);
    if let Some((_, text)) = builtin.find(|(known, _)| *known == name) {
        return Ok((*text).to_owned());
    }
    if JobFile::is_one(Path::new(name)) {
        return read(options)?.to_toml();
    }
    let is_file = Path::new(name).exists() || name.ends_with(".toml");
    match is_file {
        true => Experiment::find(name)?.to_toml(),
        false => Err(unknown_name(name)),
    }
}

fn experiment(options: &Show) -> Result<Experiment> {
    let name = options.name.as_str();
    match JobFile::is_one(Path::new(name)) {
        true => Ok(read(options)?.experiment),
        false => {
            Builtin::Experiment.check(name)?;
            Experiment::find(name)
        }
    }
}

fn read(options: &Show) -> Result<JobFile> {
    JobFile::read(Path::new(&options.name), None, options.allow_include)
}
