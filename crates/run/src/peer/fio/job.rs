//! A job file of fio as an experiment: the options that mean something here, and no other.

mod lines;
mod table;
mod told;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use iolab_spec::{Error, Result};

use self::lines::{Around, Said};
use self::table::Effect;
pub use self::told::Told;
use super::options::{Options, cell_or_faults, duration, is_set};
use iolab_plan::experiment::{BUDGET_MAX, Combination, Design, Experiment, check_name, read_text};
use iolab_spec::foreign::{Answer, answer};
use iolab_spec::names::nearest;
use iolab_spec::response::Response;
use iolab_spec::settings::{CellSpec, SETTINGS};

/// Most jobs of a file.
const JOBS_MAX: usize = 1000;
/// Most mistakes that a message lists.
const MISTAKES_TOLD: usize = 40;

/// What a job file asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct JobFile {
    /// The experiment.
    pub experiment: Experiment,
    /// Where it is measured: what the user or the file names.
    pub target: Option<PathBuf>,
    /// What iolab does otherwise than fio would.
    pub notes: Vec<String>,
    /// Every option with what iolab makes of it.
    pub told: Vec<Told>,
}

/// A job.
#[derive(Clone)]
struct Job {
    /// Its name.
    name: String,
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

    /// Whether it waits for all jobs before it.
    fn waits(&self, before: &Self) -> bool {
        ["stonewall", "wait_for_previous"]
            .iter()
            .any(|name| is_set(&self.options, name))
            || self.options.get("wait_for") == Some(&before.name)
    }

    /// Whether it does what another does, apart from texts and reports.
    fn is_like(&self, other: &Self) -> bool {
        let matters = |(name, _): &(&String, &String)| {
            table::find(name).is_none_or(|known| !matches!(known.effect, Effect::Idle(_)))
        };
        let of = |job: &Self| -> Vec<(String, String)> {
            let options = job.options.iter().filter(matters);
            options
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect()
        };
        of(self) == of(other)
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

    /// All of them as one error, in the order of their lines, each with its way out.
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
            if let Some(remedy) = error.remedy() {
                message.push_str(&format!("\n    {remedy}"));
            }
        }
        if let Some(more) = self
            .0
            .len()
            .checked_sub(MISTAKES_TOLD)
            .filter(|more| *more > 0)
        {
            message.push_str(&format!("\n  and {more} more"));
        }
        Err(Error::usage(message).hint(
            "mend these lines, or run the job with fio --output-format=json+ and bring the report in with 'iolab import'",
        ))
    }
}

impl JobFile {
    /// Whether a file is a job file by its name.
    pub fn is_one(path: &Path) -> bool {
        path.extension()
            .is_some_and(|extension| extension == "fio" || extension == "job")
    }

    /// Reads a job file, which is measured on `target`, or else on what it names itself.
    ///
    /// # Errors
    /// As [`JobFile::parse`]; when the file, or one that it includes, cannot be read.
    pub fn read(path: &Path, target: Option<&Path>) -> Result<Self> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let variable = |name: &str| std::env::var(name).ok();
        let around = Around {
            folder: Some(path.parent().unwrap_or(Path::new("."))),
            variable: &variable,
        };
        Self::of(&read_text(path)?, &name, target, around)
            .map_err(|error| error.within(path.display().to_string()))
    }

    /// Reads the text of a job file that includes no other and has no variables; the experiment gets `name` where that can be
    /// a name.
    ///
    /// # Errors
    /// Of kind usage: all options that iolab does not know or cannot carry out, with their lines; jobs that run side by
    /// side.
    pub fn parse(text: &str, name: &str) -> Result<Self> {
        let around = Around {
            folder: None,
            variable: &|_| None,
        };
        Self::of(text, name, None, around)
    }

    fn of(text: &str, name: &str, target: Option<&Path>, around: Around<'_>) -> Result<Self> {
        let mut mistakes = Mistakes::default();
        let jobs = jobs(text, around, &mut mistakes)?;
        let jobs = one_after_the_other(jobs, &mut mistakes);
        let named = target_of(&jobs, &mut mistakes);
        let target = target.map(Path::to_owned).or(named.map(reachable));
        let whole = target.as_deref().and_then(bytes_of);
        let cells = cells_of(&jobs, whole, &mut mistakes);
        mistakes.told()?;
        let name = check_name(name).unwrap_or_else(|_| "fio-job".to_owned());
        let mut experiment = Experiment {
            question: question(&name, &jobs),
            name,
            response: Response::Throughput,
            factors: Vec::new(),
            settings: Vec::new(),
            design: design(&cells),
            refined: None,
            seek: None,
            only: Vec::new(),
        };
        put_settings(&mut experiment, &cells)?;
        experiment.check()?;
        Ok(Self {
            experiment,
            target,
            notes: notes(&jobs, &cells, whole),
            told: told::of(&jobs, &cells),
        })
    }
}

impl JobFile {
    /// Every option of the file with what it means here, and what iolab does otherwise: a line each.
    pub fn explained(&self) -> Vec<String> {
        let told = self.told.iter().map(|told| {
            let jobs = match told.jobs.as_slice() {
                [] => String::new(),
                jobs => format!(" [{}]", jobs.join(", ")),
            };
            format!("line {}{jobs}: {}: {}", told.line, told.option, told.means)
        });
        let notes = self.notes.iter().map(|note| format!("note: {note}"));
        told.chain(notes).collect()
    }

    /// The experiment as TOML, below what each option means.
    ///
    /// # Errors
    /// Never for a file that was read.
    pub fn to_toml(&self) -> Result<String> {
        let explained = self.explained().into_iter();
        let comments: String = explained.map(|line| format!("# {line}\n")).collect();
        Ok(format!("{comments}\n{}", self.experiment.to_toml()?))
    }
}

fn at(line: usize, error: Error) -> Error {
    error.within(format!("line {line}"))
}

/// The jobs, each with the options of `[global]`.
///
/// # Errors
/// When there are too many.
fn jobs(text: &str, around: Around<'_>, mistakes: &mut Mistakes) -> Result<Vec<Job>> {
    let mut global = (Options::new(), BTreeMap::new());
    let mut jobs: Vec<Job> = Vec::new();
    let mut in_global = true;
    for (number, said) in lines::read(text, around, mistakes) {
        let (name, value) = match said {
            Said::Section(name) => {
                in_global = name == "global";
                if !in_global {
                    jobs.push(Job {
                        name,
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
            Said::Option(name, value) => (name, value),
        };
        let value = match checked(&name, value) {
            Ok(value) => value,
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

/// The value of an option that is understood, or switched off.
fn checked(name: &str, value: Option<String>) -> Result<String> {
    let shown: String = name.chars().take(60).collect();
    let Some(known) = table::find(name) else {
        let is_off = value
            .as_deref()
            .is_some_and(|value| ["0", "none"].contains(&value));
        return match answer(name) {
            Some(_) if is_off => Ok("0".to_owned()),
            Some(answer) => {
                Err(Error::usage(format!("iolab cannot carry out '{shown}'")).hint(answer.hint()))
            }
            None => Err(unknown_option(&shown)),
        };
    };
    let value = match value {
        None if !known.is_flag => {
            return Err(Error::usage(format!("'{shown}' has no value"))
                .hint(format!("write {shown}=VALUE")));
        }
        value => value.unwrap_or_else(|| "1".to_owned()),
    };
    match (
        known.only.is_empty() || known.only.contains(&value.as_str()),
        known.effect,
    ) {
        (false, Effect::Idle(why)) => Err(Error::usage(format!(
            "iolab cannot carry out {shown}={value}: {why}"
        ))
        .hint(
            answer(name).map_or_else(|| format!("give {}", known.only.join(" or ")), Answer::hint),
        )),
        _ => Ok(value),
    }
}

fn unknown_option(name: &str) -> Error {
    let known = table::KNOWN.iter().flat_map(|known| known.names);
    let known: Vec<&str> = known.copied().collect();
    let error = Error::usage(format!("'{name}' is no option that iolab knows"));
    match nearest(name, &known).as_slice() {
        [] => error
            .hint("take it out, or run the job with fio and bring its JSON in with 'iolab import'"),
        near => error.hint(format!("did you mean {}?", near.join(" or "))),
    }
}

/// The jobs as iolab runs them, one after the other. Jobs that run side by side and do the same are one with more threads.
fn one_after_the_other(jobs: Vec<Job>, mistakes: &mut Mistakes) -> Vec<Job> {
    let mut alone: Vec<Job> = Vec::new();
    for job in jobs {
        match alone.last_mut() {
            Some(before) if job.waits(before) => alone.push(job),
            Some(before) if before.is_like(&job) => {
                let threads = |job: &Job| {
                    let numjobs = job.options.get("numjobs");
                    numjobs.map_or(Some(1), |text| text.parse::<u32>().ok())
                };
                if let Some(both) = threads(before).zip(threads(&job)) {
                    let sum = both.0.saturating_add(both.1).to_string();
                    before.options.insert("numjobs".to_owned(), sum);
                }
            }
            Some(before) => {
                let error = Error::usage(format!(
                    "[{}] runs beside [{}] and does something else: that needs groups, which iolab does not have yet",
                    job.name, before.name
                ));
                let hint = "add stonewall to run them one after the other, or give one job";
                mistakes.add(job.line, error.hint(hint));
                // What else is wrong with it is told as well.
                alone.push(job);
            }
            None => alone.push(job),
        }
    }
    alone
}

/// What each job measures; of those with mistakes nothing.
fn cells_of(jobs: &[Job], whole: Option<u64>, mistakes: &mut Mistakes) -> Vec<CellSpec> {
    let size_else = whole.unwrap_or(CellSpec::default().trial.region);
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

fn question(name: &str, jobs: &[Job]) -> String {
    let texts: Vec<&str> = jobs
        .iter()
        .filter_map(|job| job.options.get("description").map(String::as_str))
        .collect();
    let question = match texts.as_slice() {
        [only] => (*only).to_owned(),
        _ => format!("What does the fio job file {name} measure here?"),
    };
    question.chars().filter(|c| !c.is_control()).collect()
}

/// Time for a warm-up and as many trials as an interval takes, where the jobs say how long they run.
fn design(cells: &[CellSpec]) -> Design {
    let design = Design::default();
    let times = cells.iter().map(|cell| cell.trial.limit.time);
    let all: Option<Duration> = times.sum();
    let trials = design.trials_min + 1;
    let needed = all.map_or(Duration::ZERO, |block| block.saturating_mul(trials));
    Design {
        budget: design.budget.max(needed).min(BUDGET_MAX),
        ..design
    }
}

/// What the cells have in common is fixed; in what they differ, each is a combination of its own.
fn put_settings(experiment: &mut Experiment, cells: &[CellSpec]) -> Result<()> {
    let default = CellSpec::default();
    let mut rows: Vec<Combination> = vec![Vec::new(); cells.len()];
    for setting in SETTINGS {
        let levels: Vec<String> = cells.iter().map(|cell| setting.get(cell)).collect();
        let Some(first) = levels.first() else {
            continue;
        };
        if levels.iter().any(|level| level != first) {
            for (row, level) in rows.iter_mut().zip(levels) {
                row.push((setting, level));
            }
        } else if *first != setting.get(&default) {
            experiment.fix(setting, first)?;
        }
    }
    rows.retain(|row| !row.is_empty());
    experiment.list(&rows)
}

/// The one file or directory that all jobs name.
fn target_of(jobs: &[Job], mistakes: &mut Mistakes) -> Option<PathBuf> {
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

/// The folder of a file that is not there, as fio would make the file: a scratch file of iolab's own is made in it.
fn reachable(named: PathBuf) -> PathBuf {
    let folder = match named.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => return named,
    };
    match named.symlink_metadata().is_err() && folder.is_dir() && !folder.starts_with("/dev") {
        true => folder.to_owned(),
        false => named,
    }
}

/// The size of a file or device, of which a job without a size uses all.
fn bytes_of(target: &Path) -> Option<u64> {
    use std::io::{Seek, SeekFrom};
    use std::os::unix::fs::FileTypeExt;

    let metadata = target.metadata().ok()?;
    let bytes = match metadata.file_type() {
        kind if kind.is_file() => metadata.len(),
        kind if kind.is_block_device() => {
            let mut device = std::fs::File::open(target).ok()?;
            device.seek(SeekFrom::End(0)).ok()?
        }
        _ => return None,
    };
    Some(bytes).filter(|bytes| *bytes > 0)
}

/// What is done otherwise.
fn notes(jobs: &[Job], cells: &[CellSpec], whole: Option<u64>) -> Vec<String> {
    let given = |names: &[&str]| {
        let of = |job: &Job| names.iter().any(|name| is_set(&job.options, name));
        jobs.iter().any(of)
    };
    let any = |of: fn(&CellSpec) -> bool| cells.iter().any(of);
    let sized = |job: &Job| {
        ["size", "filesize"]
            .iter()
            .any(|name| job.options.contains_key(*name))
    };
    let notes = [
        (
            given(&["ramp_time"]),
            "ramp_time is not waited for: the first trial of every cell is a warm-up",
        ),
        (
            given(&["randrepeat", "randseed"]),
            "randrepeat and randseed are given by --seed: the same seed gives the same offsets",
        ),
        (
            jobs.len() > 1,
            "the jobs are cells: each runs several times, in random order",
        ),
        (
            whole.is_none() && !jobs.iter().all(sized),
            "a job names no size: it uses 1 GiB of a directory; --size changes that",
        ),
        (
            any(|cell| cell.trial.rate.is_some()),
            "with a rate, latency counts from the time at which a request was due",
        ),
        (
            any(|cell| {
                cell.trial.reads() && cell.trial.writes() && cell.trial.sync.follows_writes()
            }),
            "a sync follows writes alone; in a mix of reads and writes fio syncs after reads too",
        ),
        (
            any(|cell| cell.trial.verify),
            "data is checked with iolab's own checksum (CRC-32C), after each trial and outside its time",
        ),
        (
            any(|cell| cell.trial.writes()),
            "writes go to a file that is filled already, as with overwrite=1",
        ),
    ];
    let applying = notes.into_iter().filter(|(applies, _)| *applies);
    applying.map(|(_, note)| note.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_plan::cells::cells;
    use iolab_spec::settings::Setting;

    #[test]
    fn a_job_file_becomes_an_experiment() {
        let text = "; a comment\n[global]\nioengine=io_uring\ndirect=1\nsize=64m\nruntime=1\ntime_based\nramp_time=2s\nfilename=/data/file\ngroup_reporting\n\n[first]\nrw=randread\nbs=4k\niodepth=8\n[second]\nstonewall\nrw=randread\nbs=64k\niodepth=8\n";
        let file = JobFile::parse(text, "my job").expect("a job file");
        assert_eq!(file.experiment.name, "fio-job");
        assert_eq!(file.target.as_deref(), Some(Path::new("/data/file")));
        assert_eq!(file.notes.len(), 2);
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

    /// The cells of a job file, as settings with these names.
    fn planned(text: &str, names: &[&str]) -> Vec<String> {
        let file = JobFile::parse(text, "x").expect("a job file");
        let settings = |cell: &CellSpec| -> Vec<String> {
            let named = |name: &&str| Setting::find(name).expect("a setting").get(cell);
            names.iter().map(named).collect()
        };
        let planned = cells(&file.experiment).expect("cells");
        planned
            .iter()
            .map(|cell| settings(&cell.spec).join(" "))
            .collect()
    }

    #[test]
    fn jobs_that_differ_in_much_are_a_list_of_cells() {
        let text = "[fill]\nfilename=/dev/x\nsize=1g\nrw=write\nbs=1m\niodepth=16\nioengine=libaio\n[steady]\nfilename=/dev/x\nsize=1g\nstonewall\nrw=randwrite\nbs=4k\nnumjobs=4\niodepth=32\nioengine=libaio\n[read]\nfilename=/dev/x\nsize=1g\nwait_for=steady\n";
        assert_eq!(
            planned(
                text,
                &[
                    "pattern",
                    "read_percent",
                    "bs",
                    "threads",
                    "depth",
                    "layout"
                ]
            ),
            [
                "seq 0 1MiB 1 16 shared",
                "rand 0 4KiB 4 32 overlapping",
                "seq 100 4KiB 1 1 shared"
            ]
        );
    }

    #[test]
    fn threads_share_files_as_the_jobs_of_fio_do() {
        let names = ["threads", "layout", "region", "bytes"];
        for (text, cells) in [
            ("numjobs=4\nsize=1m", "4 private 4MiB 4MiB"),
            ("numjobs=4\nsize=1m\nfilename=/x", "4 overlapping 1MiB 4MiB"),
            (
                "numjobs=4\nsize=1m\nfilename=/x\noffset_increment=1m",
                "4 shared 4MiB 4MiB",
            ),
            ("size=1m\nloops=3", "1 shared 1MiB 3MiB"),
            ("filesize=2m\noffset=1m", "1 shared 1MiB 1MiB"),
            (
                "size=1m\nio_size=256k\n[b]\nsize=1m\nio_size=256k",
                "2 private 2MiB 512KiB",
            ),
        ] {
            assert_eq!(
                planned(&format!("[a]\n{text}\n"), &names),
                [cells],
                "{text}"
            );
        }
    }

    #[test]
    fn every_option_is_told_with_what_it_means() {
        let text = "[global]\ndirect=1 # past the cache\nsize=64m\n[a]\nrw=randread\nbuffer_compress_percentage=0\n[b]\nstonewall\nrw=read:-8k\ngroup_reporting\nrate_iops=500\n";
        let file = JobFile::parse(text, "x").expect("a job file");
        let told: Vec<String> = file
            .told
            .iter()
            .map(|told| {
                format!(
                    "{} {} {}: {}",
                    told.line,
                    told.jobs.join("+"),
                    told.option,
                    told.means
                )
            })
            .collect();
        for line in [
            "2  direct=1: cache=direct",
            "5 a rw=randread: pattern=rand, read_percent=100, skip=0",
            "6 a buffer_compress_percentage=0: switched off",
            "9 b rw=read:-8k: pattern=reverse, read_percent=100, skip=0",
            "10 b group_reporting=1: nothing changes: a cell is always reported as a whole",
            "11 b rate_iops=500: rate=500",
        ] {
            assert!(told.iter().any(|told| told == line), "{line} in {told:#?}");
        }
    }

    #[test]
    fn what_is_not_understood_is_named_with_its_line() {
        for (text, line, part) in [
            ("[a]\nrw=write\nverify=pattern\n", "line 3", "verify"),
            ("[a]\nrw=read\nbssplit=4k/50:8k/50\n", "line 3", "bssplit"),
            ("[a]\nnrfiles=8\n", "line 2", "one file"),
            ("[a]\nruntime\n", "line 2", "no value"),
            ("[a]\ntime_based\n", "line 2", "no runtime"),
            ("[a]\nrw=read\nioengine=rbd\n", "line 3", "ioengine"),
            ("[global]\nbs=4q\n[a]\nrw=read\n", "line 2", "bs=4q"),
            ("[a]\r\nrw=read\r\n\r\nbs=4q\r\n", "line 4", "bs=4q"),
            ("[a]\nrw=read\nnumjobs=4000\n", "line 3", "numjobs"),
            ("\n[a]\ndirect=1\nioengine=mmap\n", "line 2", "mmap"),
            ("[a\n", "line 1", "bracket"),
            ("rw=read\n", "line 1", "no job"),
            ("[a]\nrw=read\n[b]\nrw=write\n", "line 3", "beside"),
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
