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
use iolab_command::output::{note, open};

/// Writes the definition to stdout.
pub(crate) fn show(options: &Show) -> Outcome {
    let file = JobFile::is_one(Path::new(&options.name)).then(|| read(options));
    let file = file.transpose()?;
    let left_target = file.as_ref().and_then(JobFile::left_target);
    let mut notes: Vec<String> = left_target.clone().into_iter().collect();
    let text = match (options.format, file) {
        (ShowFormat::Toml, Some(file)) => file.to_toml()?,
        (ShowFormat::Toml, None) => toml(&options.name)?,
        (ShowFormat::Fio, file) => {
            let given = file.map(|file| Ok(file.experiment));
            let mut experiment = given.unwrap_or_else(|| experiment(&options.name))?;
            // As in fio; a run chooses otherwise.
            if !experiment.names("first_offset") {
                experiment.apply_set("first_offset=zero")?;
            }
            // The cells of all tools are the same jobs.
            if experiment.names("tool") {
                experiment.apply_set("tool=iolab")?;
            }
            let plan = Plan::of_new_run(experiment, &OneProcess)?;
            let written = job_file(&plan, left_target.as_deref())
                .map_err(|error| error.within(escape_control(&options.name)))?;
            notes.extend(written.left_out);
            written.text
        }
    };
    for text in notes {
        note(format_args!("note: {text}"));
    }
    let mut to = open(None)?;
    write!(to, "{text}")?;
    Ok(to.flush()?)
}

/// The TOML: for built-in definitions with their comments, for a file or a run with everything resolved.
fn toml(name: &str) -> Result<String> {
    let builtin = BUILTIN.iter().chain(BUILTIN_SUITES);
    let mut builtin = builtin.chain(BUILTIN_REQUIREMENTS);
    if let Some((_, text)) = builtin.find(|(known, _)| *known == name) {
        return Ok((*text).to_owned());
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

fn experiment(name: &str) -> Result<Experiment> {
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
