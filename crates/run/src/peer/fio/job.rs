//! A job file of fio as an experiment: the options that mean something here, and no other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use iolab_spec::{Error, Result};

use super::options::{Options, cell_or_faults, duration, is_set};
use iolab_plan::experiment::{Design, Experiment, check_name, read_text};
use iolab_spec::names::{nearest, unknown};
use iolab_spec::response::Response;
use iolab_spec::settings::{CellSpec, SETTINGS, Setting};

/// Options that are understood.
const KNOWN: [&str; 23] = [
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
    "fdatasync",
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
/// Most mistakes that a message lists.
const MISTAKES_TOLD: usize = 40;

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

/// A job.
struct Job {
    /// The number of its first line.
    line: usize,
    options: Options,
    /// The lines that its options stand in.
    lines: BTreeMap<String, usize>,
}

impl Job {
    /// The line that gives an option, or else the job's first.
    fn line_of(&self, option: &str) -> usize {
        self.lines.get(option).copied().unwrap_or(self.line)
    }
}

/// Mistakes in a job file, by the number of their line.
#[derive(Default)]
struct Mistakes(Vec<(usize, Error)>);

impl Mistakes {
    /// Adds one; what `[global]` is wrong about is wrong in every job, and told once.
    fn add(&mut self, line: usize, error: Error) {
        let mistake = (line, error);
        if !self.0.contains(&mistake) {
            self.0.push(mistake);
        }
    }

    /// All of them as one error, in the order of their lines.
    fn told(mut self) -> Result<()> {
        self.0.sort_by_key(|(line, _)| *line);
        if self.0.len() <= 1 {
            return self
                .0
                .pop()
                .map_or(Ok(()), |(line, error)| Err(at(line, error)));
        }
        let mut message = format!("{} mistakes", self.0.len());
        for (line, error) in self.0.iter().take(MISTAKES_TOLD) {
            message.push_str(&format!("\n  line {line}: {}", error.message()));
        }
        if let Some(more) = self
            .0
            .len()
            .checked_sub(MISTAKES_TOLD)
            .filter(|more| *more > 0)
        {
            message.push_str(&format!("\n  and {more} more"));
        }
        let mut hints: Vec<&str> = Vec::new();
        for hint in self.0.iter().filter_map(|(_, error)| error.remedy()) {
            if !hints.contains(&hint) {
                hints.push(hint);
            }
        }
        Err(Error::usage(message).hint(hints.join("\n  ")))
    }
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
    /// Of kind usage: all options that iolab does not know or cannot carry out, with their lines; jobs that are no one
    /// experiment.
    pub fn parse(text: &str, name: &str) -> Result<Self> {
        let mut mistakes = Mistakes::default();
        let jobs = jobs(text, &mut mistakes)?;
        let cells = cells_of(&jobs, &mut mistakes);
        let target = target(&jobs, &mut mistakes);
        check_order(&jobs, &mut mistakes);
        mistakes.told()?;
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
            target,
            notes: notes(&jobs, &cells),
        })
    }
}

fn at(line: usize, error: Error) -> Error {
    error.within(format!("line {line}"))
}

/// The jobs, each with the options of `[global]`.
///
/// # Errors
/// When there is none, or there are too many.
fn jobs(text: &str, mistakes: &mut Mistakes) -> Result<Vec<Job>> {
    let mut global = (Options::new(), BTreeMap::new());
    let mut jobs: Vec<Job> = Vec::new();
    let mut in_global = true;
    for (number, line) in text.lines().enumerate() {
        let (number, line) = (number + 1, line.trim());
        if line.is_empty() || line.starts_with([';', '#']) {
            continue;
        }
        if let Some(section) = line.strip_prefix('[') {
            let section = section.strip_suffix(']').unwrap_or_else(|| {
                let error = Error::usage("a section has no closing bracket").hint("write [name]");
                mistakes.add(number, error);
                section
            });
            in_global = section.trim() == "global";
            if !in_global {
                jobs.push(Job {
                    line: number,
                    options: global.0.clone(),
                    lines: global.1.clone(),
                });
            }
            if jobs.len() > JOBS_MAX {
                let error = Error::usage(format!("there are more than {JOBS_MAX} jobs"));
                return Err(at(number, error.hint("give fewer")));
            }
            continue;
        }
        let (name, value) = match option(line) {
            Ok(option) => option,
            Err(error) => {
                mistakes.add(number, error);
                continue;
            }
        };
        let (options, lines) = match jobs.last_mut() {
            Some(job) if !in_global => (&mut job.options, &mut job.lines),
            _ => (&mut global.0, &mut global.1),
        };
        lines.insert(name.clone(), number);
        options.insert(name, value);
    }
    if jobs.is_empty() {
        let error = Error::usage("there is no job in it");
        mistakes.add(
            text.lines().count().max(1),
            error.hint("a job begins with its name in brackets: [job1]"),
        );
    }
    Ok(jobs)
}

/// What each job measures; of those with mistakes nothing.
fn cells_of(jobs: &[Job], mistakes: &mut Mistakes) -> Vec<CellSpec> {
    let size_else = CellSpec::default().trial.region;
    let mut cells = Vec::with_capacity(jobs.len());
    for job in jobs {
        // It is not waited for, but has to be a time all the same.
        let ramp = job.options.get("ramp_time");
        if let Some(Err(fault)) = ramp.map(|text| duration("ramp_time", text)) {
            mistakes.add(job.line_of(fault.option), fault.error);
        }
        match cell_or_faults(&job.options, size_else) {
            Ok(cell) => match cell.trial.check() {
                Ok(()) => cells.push(cell),
                Err(error) => mistakes.add(job.line, error),
            },
            Err(faults) => {
                for fault in faults {
                    mistakes.add(job.line_of(fault.option), fault.error);
                }
            }
        }
    }
    cells
}

/// Jobs run one after the other here.
fn check_order(jobs: &[Job], mistakes: &mut Mistakes) {
    for job in jobs.iter().skip(1) {
        if !is_set(&job.options, "stonewall") {
            let error = Error::usage("this job would run beside the one before it");
            mistakes.add(job.line, error.hint("add stonewall, or give one job"));
        }
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
fn target(jobs: &[Job], mistakes: &mut Mistakes) -> Option<PathBuf> {
    let mut found: Option<PathBuf> = None;
    for (number, job) in jobs.iter().enumerate() {
        let directory = job.options.get("directory").map(PathBuf::from);
        let target = match (job.options.get("filename"), directory) {
            (Some(name), _) if name.contains(':') => {
                let error = Error::usage("filename has a colon, which parts several files");
                let error = error.hint("name one file, or give it as TARGET");
                mistakes.add(job.line_of("filename"), error);
                continue;
            }
            (Some(name), Some(directory)) => Some(directory.join(name)),
            (Some(name), None) => Some(PathBuf::from(name)),
            (None, directory) => directory,
        };
        if number > 0 && target != found {
            let error = Error::usage("the jobs use different files");
            let named = ["filename", "directory"].map(|option| job.line_of(option));
            let line = named.into_iter().max().unwrap_or(job.line);
            mistakes.add(line, error.hint("give one job file for each file"));
        }
        found = target;
    }
    found
}

/// What is done otherwise.
fn notes(jobs: &[Job], cells: &[CellSpec]) -> Vec<String> {
    let mut notes = Vec::new();
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
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_plan::cells::cells;

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
            ("[a]\nrw=read\nioengine=rbd\n", "line 3", "ioengine"),
            ("[global]\nbs=4q\n[a]\nrw=read\n", "line 2", "bs=4q"),
            ("[a]\r\nrw=read\r\n\r\nbs=4q\r\n", "line 4", "bs=4q"),
            ("[a]\nrw=read\nnumjobs=4000\n", "line 3", "numjobs"),
            ("\n[a]\ndirect=1\nioengine=mmap\n", "line 2", "mmap"),
            ("[a\n", "line 1", "bracket"),
            ("rw=read\n", "line 1", "no job"),
            ("[a]\nrw=read\n[b]\nrw=write\n", "line 3", "beside"),
            (
                "[a]\nrw=read\nbs=4k\n[b]\nstonewall\nrw=write\nbs=8k\n",
                "line 4",
                "differ in 2",
            ),
            ("[a]\nfilename=/x:/y\n", "line 2", "colon"),
            ("[a]\nramp_time=soon\n", "line 2", "ramp_time"),
        ] {
            let error = JobFile::parse(text, "x").expect_err(text);
            let told = error.to_string();
            assert!(told.contains(line) && told.contains(part), "{told}");
            assert!(error.remedy().is_some(), "{told}");
        }
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        let text = "[global]\nbs=banana\nioengine=nonsense\n[one]\nrw=read\nnosuch=1\n[two\nstonewall\nrw=writ\niodepth=0\n[three]\nfilename=a:b\n";
        let error = JobFile::parse(text, "x").expect_err("much is wrong");
        let lines: Vec<&str> = error
            .message()
            .lines()
            .filter_map(|line| line.trim().strip_prefix("line ")?.split(':').next())
            .collect();
        assert_eq!(
            lines,
            ["2", "3", "6", "7", "9", "10", "11", "12"],
            "{error}"
        );
        assert!(error.message().starts_with("8 mistakes"), "{error}");
    }
}
