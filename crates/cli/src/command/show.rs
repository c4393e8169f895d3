//! `iolab show`: the definition of an experiment, suite or requirement, the definition of a run, or its cells as a job file
//! of fio.

use std::io::Write;
use std::path::Path;

use iolab_fio::job::JobFile;
use iolab_fio::write_job::job_file;
use iolab_plan::cells::{OneProcess, Plan};
use iolab_plan::experiment::{BUILTIN, Experiment};
use iolab_plan::requirement::BUILTIN_REQUIREMENTS;
use iolab_plan::suite::BUILTIN_SUITES;
use iolab_report::witness;
use iolab_runfile::Content;
use iolab_runfile::number_list::is_database;
use iolab_workload::Result;
use iolab_workload::escape_control::escape_control;

use crate::arguments::{Show, ShowFormat};
#[cfg(feature = "measure")]
use crate::builtin_names::Builtin;
use crate::builtin_names::unknown_name;
use crate::job_file;
use iolab_command::failure::Outcome;
use iolab_command::output::open;

/// Writes the definition to stdout.
pub(crate) fn show(options: &Show) -> Outcome {
    let text = match options.format {
        ShowFormat::Toml => toml(options)?,
        ShowFormat::Fio => {
            let mut experiment = experiment(options)?;
            // As in fio; a run chooses otherwise.
            if !experiment.names("first_offset") {
                experiment.apply_set("first_offset=zero")?;
            }
            // fio carries the cells out, whichever tools have measured them.
            if experiment.names("tool") {
                experiment.apply_set("tool=iolab")?;
            }
            job_file(&Plan::of_new_run(experiment, &OneProcess)?)?
        }
    };
    let mut to = open(None)?;
    write!(to, "{text}")?;
    Ok(to.flush()?)
}

/// The TOML: for built-in definitions with their comments, for a file or a run with everything resolved, for a job file of
/// fio with the meaning of each option.
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
    if is_run_file(name)? {
        let file = escape_control(name);
        let record = match iolab_runfile::read_content(Path::new(name))? {
            Content::Run(record) => record,
            Content::Witness(witnessed) => {
                let command = witness::command(&witnessed.observed);
                return Ok(format!(
                    "# What {file} holds was seen by this command.\n{}\n",
                    escape_control(&command)
                ));
            }
        };
        let seed = record.run.seed;
        return Ok(format!(
            "# The experiment of {file}; --seed {seed} repeats its order, offsets and data.\n{}",
            record.experiment.toml
        ));
    }
    let is_file = Path::new(name).exists() || name.ends_with(".toml");
    match is_file {
        true => Experiment::find(name)?.to_toml(),
        false => Err(unknown_name(name)),
    }
}

fn experiment(options: &Show) -> Result<Experiment> {
    let name = options.name.as_str();
    if JobFile::is_one(Path::new(name)) {
        return Ok(read(options)?.experiment);
    }
    if is_run_file(name)? {
        let record = iolab_runfile::read(Path::new(name))?;
        return Experiment::from_toml(&record.experiment.toml, name);
    }
    #[cfg(feature = "measure")]
    Builtin::Experiment.check(name)?;
    Experiment::find(name)
}

/// Whether a name denotes a run file.
fn is_run_file(name: &str) -> Result<bool> {
    let path = Path::new(name);
    let is_named_so = path
        .extension()
        .is_some_and(|extension| extension == "iolab");
    match path.is_file() {
        true => is_database(path),
        false => Ok(is_named_so),
    }
}

fn read(options: &Show) -> Result<JobFile> {
    job_file::read(Path::new(&options.name), None, options.allow_include)
}
