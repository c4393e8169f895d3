//! A job file of fio as an experiment: the options that mean something here, and no other.

use std::path::{Path, PathBuf};

use iolab_engine::{Error, Result};

use super::options::{Options, cell_of, duration, is_set};
use crate::analysis::Response;
use crate::experiment::{Design, Experiment, check_name, read_text};
use crate::settings::{CellSpec, SETTINGS, Setting, nearest, unknown};

/// Options that are understood.
const KNOWN: [&str; 22] = [
    "rw",
    "readwrite",
    "bs",
    "blocksize",
    "size",
    "iodepth",
    "numjobs",
    "direct",
    "sync",
    "fsync",
    "ioengine",
    "runtime",
    "time_based",
    "ramp_time",
    "rwmixread",
    "randrepeat",
    "norandommap",
    "filename",
    "directory",
    "group_reporting",
    "stonewall",
    "thread",
];
/// Most jobs of a file.
const JOBS_MAX: usize = 1000;

/// What a job file asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct JobFile {
    /// The experiment.
    pub experiment: Experiment,
    /// `filename` or `directory`, where the file names one.
    pub target: Option<PathBuf>,
    /// What iolab does otherwise than fio would.
    pub notes: Vec<String>,
}

/// A job with the number of its first line.
struct Job {
    line: usize,
    options: Options,
}

impl JobFile {
    /// Whether a file is a job file by its name.
    pub fn is_one(path: &Path) -> bool {
        path.extension()
            .is_some_and(|extension| extension == "fio" || extension == "job")
    }

    /// Reads a job file.
    ///
    /// # Errors
    /// As [`JobFile::parse`]; when the file cannot be read.
    pub fn read(path: &Path) -> Result<Self> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Self::parse(&read_text(path)?, &name)
            .map_err(|error| error.within(path.display().to_string()))
    }

    /// Reads the text of a job file; the experiment gets `name` where that can be a name.
    ///
    /// # Errors
    /// Of kind usage: an option that iolab does not know, with its line; jobs that are no one experiment.
    pub fn parse(text: &str, name: &str) -> Result<Self> {
        let jobs = jobs(text)?;
        let size_else = CellSpec::default().trial.region;
        let cells = jobs
            .iter()
            .map(|job| cell_of(&job.options, size_else).map_err(|error| at(job.line, error)))
            .collect::<Result<Vec<CellSpec>>>()?;
        let name = check_name(name).unwrap_or_else(|_| "fio-job".to_owned());
        let mut experiment = Experiment {
            question: format!("What does the fio job file {name} measure here?"),
            name,
            response: Response::Throughput,
            factors: Vec::new(),
            settings: Vec::new(),
            design: Design::default(),
            refined: None,
        };
        put_settings(&mut experiment, &jobs, &cells)?;
        experiment.check()?;
        Ok(Self {
            experiment,
            target: target(&jobs)?,
            notes: notes(&jobs, &cells)?,
        })
    }
}

fn at(line: usize, error: Error) -> Error {
    error.within(format!("line {line}"))
}

/// The jobs, each with the options of `[global]`.
fn jobs(text: &str) -> Result<Vec<Job>> {
    let mut global = Options::new();
    let mut jobs: Vec<Job> = Vec::new();
    let mut in_global = true;
    for (number, line) in text.lines().enumerate() {
        let (number, line) = (number + 1, line.trim());
        if line.is_empty() || line.starts_with([';', '#']) {
            continue;
        }
        if let Some(section) = line.strip_prefix('[') {
            let section = section.strip_suffix(']').ok_or_else(|| {
                at(
                    number,
                    Error::usage("a section has no closing bracket").hint("write [name]"),
                )
            })?;
            in_global = section.trim() == "global";
            if !in_global {
                jobs.push(Job {
                    line: number,
                    options: global.clone(),
                });
            }
            if jobs.len() > JOBS_MAX {
                let error = Error::usage(format!("there are more than {JOBS_MAX} jobs"));
                return Err(at(number, error.hint("give fewer")));
            }
            continue;
        }
        let (name, value) = option(line).map_err(|error| at(number, error))?;
        match jobs.last_mut() {
            Some(job) if !in_global => job.options.insert(name, value),
            _ => global.insert(name, value),
        };
    }
    match jobs.is_empty() {
        true => Err(Error::usage("there is no job in it")
            .hint("a job begins with its name in brackets: [job1]")),
        false => Ok(jobs),
    }
}

fn option(line: &str) -> Result<(String, String)> {
    let (name, value) = line.split_once('=').unwrap_or((line, "1"));
    let name = name.trim();
    if !KNOWN.contains(&name) {
        if !nearest(name, &KNOWN).is_empty() {
            return Err(unknown("option", name, &KNOWN));
        }
        return Err(
            Error::usage(format!("iolab does not carry out the option '{}'", shortened(name))).hint(format!(
                "take it out, or run the job with fio and bring its JSON in with 'iolab import'; understood are: {}",
                KNOWN.join(", ")
            )),
        );
    }
    Ok((name.to_owned(), value.trim().to_owned()))
}

/// As much of a name as a message has room for.
fn shortened(name: &str) -> String {
    name.chars().take(60).collect()
}

/// One setting in which the jobs differ becomes a factor.
fn put_settings(experiment: &mut Experiment, jobs: &[Job], cells: &[CellSpec]) -> Result<()> {
    let mut differing: Vec<&Setting> = Vec::new();
    for setting in SETTINGS {
        let mut levels: Vec<String> = Vec::new();
        for level in cells.iter().map(|cell| setting.get(cell)) {
            if !levels.contains(&level) {
                levels.push(level);
            }
        }
        if levels.len() > 1 {
            differing.push(setting);
        }
        let default = setting.get(&CellSpec::default());
        if levels.len() > 1 || levels.first().is_some_and(|level| *level != default) {
            experiment.sweep(setting, &levels)?;
        }
    }
    let Some(second) = jobs.get(1) else {
        return Ok(());
    };
    if let Some(job) = jobs[1..]
        .iter()
        .find(|job| !is_set(&job.options, "stonewall"))
    {
        let error = Error::usage("this job would run beside the one before it");
        return Err(at(job.line, error.hint("add stonewall, or give one job")));
    }
    if differing.len() != 1 {
        let names: Vec<&str> = differing.iter().map(|setting| setting.name).collect();
        let error = Error::usage(format!(
            "the jobs differ in {} settings ({}), and an experiment crosses all of them",
            names.len(),
            names.join(", ")
        ));
        let hint = "give one job, or jobs that differ in one option; --set sweeps the others";
        return Err(at(second.line, error.hint(hint)));
    }
    Ok(())
}

/// The one file or directory that all jobs name.
fn target(jobs: &[Job]) -> Result<Option<PathBuf>> {
    let mut found: Option<PathBuf> = None;
    for (number, job) in jobs.iter().enumerate() {
        let directory = job.options.get("directory").map(PathBuf::from);
        let target = match (job.options.get("filename"), directory) {
            (Some(name), _) if name.contains(':') => {
                let error = Error::usage("filename has a colon, which parts several files");
                return Err(at(
                    job.line,
                    error.hint("name one file, or give it as TARGET"),
                ));
            }
            (Some(name), Some(directory)) => Some(directory.join(name)),
            (Some(name), None) => Some(PathBuf::from(name)),
            (None, directory) => directory,
        };
        if number > 0 && target != found {
            let error = Error::usage("the jobs use different files");
            return Err(at(job.line, error.hint("give one job file for each file")));
        }
        found = target;
    }
    Ok(found)
}

/// What is done otherwise.
fn notes(jobs: &[Job], cells: &[CellSpec]) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    for job in jobs {
        if let Some(text) = job.options.get("ramp_time") {
            duration("ramp_time", text).map_err(|error| at(job.line, error))?;
        }
    }
    let given = |name: &str| jobs.iter().any(|job| is_set(&job.options, name));
    if given("ramp_time") {
        notes.push(
            "ramp_time is not waited for: the first trial of every cell is left out instead"
                .to_owned(),
        );
    }
    if given("randrepeat") {
        notes
            .push("randrepeat is given by --seed: the same seed gives the same offsets".to_owned());
    }
    if cells.iter().any(|cell| cell.trial.threads > 1) {
        notes.push("the threads share the region, each with a part of its own; fio's jobs would each go over all of it".to_owned());
    }
    Ok(notes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::cells;

    #[test]
    fn a_job_file_becomes_an_experiment() {
        let text = "; a comment\n[global]\nioengine=io_uring\ndirect=1\nsize=64m\nruntime=1\ntime_based\nramp_time=2s\nfilename=/data/file\ngroup_reporting\n\n[first]\nrw=randread\nbs=4k\niodepth=8\n[second]\nstonewall\nrw=randread\nbs=64k\niodepth=8\n";
        let file = JobFile::parse(text, "my job").expect("a job file");
        assert_eq!(file.experiment.name, "fio-job");
        assert_eq!(file.target.as_deref(), Some(Path::new("/data/file")));
        assert_eq!(file.notes.len(), 1);
        let planned = cells(&file.experiment).expect("cells");
        let sizes: Vec<u64> = planned.iter().map(|cell| cell.spec.trial.bs).collect();
        assert_eq!(sizes, [4096, 65536]);
        assert!(planned.iter().all(|cell| cell.spec.trial.depth == 8));
        let again = file.experiment.to_toml().expect("TOML");
        assert_eq!(
            Experiment::from_toml(&again, "again").expect("valid"),
            file.experiment
        );
    }

    #[test]
    fn what_is_not_understood_is_named_with_its_line() {
        for (text, line, part) in [
            ("[a]\nrw=read\nverify=crc32c\n", "line 3", "verify"),
            ("[a]\nrw=read\nioengine=rbd\n", "line 1", "ioengine"),
            ("[a\n", "line 1", "bracket"),
            ("rw=read\n", "", "no job"),
            ("[a]\nrw=read\n[b]\nrw=write\n", "line 3", "beside"),
            (
                "[a]\nrw=read\nbs=4k\n[b]\nstonewall\nrw=write\nbs=8k\n",
                "line 4",
                "differ in 2",
            ),
            ("[a]\nfilename=/x:/y\n", "line 1", "colon"),
            ("[a]\nramp_time=soon\n", "line 1", "ramp_time"),
        ] {
            let error = JobFile::parse(text, "x").expect_err(text);
            let told = error.to_string();
            assert!(told.contains(line) && told.contains(part), "{told}");
            assert!(error.remedy().is_some(), "{told}");
        }
    }
}
