//! A job file of fio as an experiment: options, target, search for a depth.

mod differences;
mod jobs;
mod lines;
#[cfg(test)]
mod secret_tests;
mod side_by_side;

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::jobs::Job;
use self::lines::Around;
use super::options::{FileSize, cell_or_faults, duration, value};
use crate::options::micros;
use crate::options::named_file;
use iolab_command::ForeignExperiment;
use iolab_plan::experiment::{BUDGET_MAX, Combination, Design, Experiment};
use iolab_plan::read_user_file::read_text;
use iolab_workload::names::check_file_name;
use iolab_workload::response::Response;
use iolab_workload::service_level::ServiceLevels;
use iolab_workload::settings::{CellSpec, SETTINGS, Setting};
use iolab_workload::units::format_duration;
use iolab_workload::{Error, Result};
use lines::Mistakes;
use side_by_side::ReadBack;

/// Reads a job file, for a measurement on `target`, or otherwise on the target that it names. With `allow_include` it
/// may include files outside of its folder. No message shows text from other files or from variables.
///
/// # Errors
/// As [`parse`]; when the file, or one that it includes, cannot be read.
pub fn read(path: &Path, target: Option<&Path>, allow_include: bool) -> Result<ForeignExperiment> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let variable = |name: &str| std::env::var(name).ok();
    let around = Around {
        file: Some(path),
        allow_include,
        variable: &variable,
    };
    of(&read_text(path)?, &name, target, around)
        .map_err(|error| error.within(path.display().to_string()))
}

/// Reads the text of a job file that includes no other and has no variables; the experiment gets `name` if that can be
/// a name.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): all options that iolab does not know or cannot carry out, with their lines.
pub fn parse(text: &str, name: &str) -> Result<ForeignExperiment> {
    let around = Around {
        file: None,
        allow_include: false,
        variable: &|_| None,
    };
    of(text, name, None, around)
}

fn of(
    text: &str,
    name: &str,
    target: Option<&Path>,
    around: Around<'_>,
) -> Result<ForeignExperiment> {
    let mut mistakes = Mistakes::default();
    let jobs = jobs::read(text, around, &mut mistakes)?;
    let (stages, jobs): (Vec<usize>, Vec<Job>) = side_by_side::staged(jobs, &mut mistakes)
        .into_iter()
        .unzip();
    let several = side_by_side::has_several(&stages);
    let named = match several {
        true => side_by_side::named(&jobs, &mut mistakes),
        false => named_by(&jobs, &mut mistakes),
    };
    let held = held(&jobs, &mut mistakes);
    if let (None, Some(named)) = (target, &named) {
        check_known(&jobs, named, &mut mistakes);
    }
    let target = target.map(Path::to_owned).or(named);
    let whole = target.as_deref().and_then(bytes_of);
    let cells = cells_of(&jobs, whole, &mut mistakes);
    let read_back = ReadBack::of(&jobs, &cells, &stages);
    let mut cells = settled(&jobs, cells, &read_back, &mut mistakes);
    mistakes.told()?;
    if let (Some(held), Some(cell)) = (&held, cells.first_mut()) {
        held.bound(cell);
    }
    if several {
        side_by_side::place(&jobs, &mut cells);
    }
    let name = check_file_name(name).unwrap_or_else(|_| "fio-job".to_owned());
    let question = question(&name, &jobs);
    let design = design(&cells, &stages);
    let mut experiment = Experiment::bare(name, question, Response::Throughput, design);
    let whole_file = || -> Result<()> {
        match several {
            true => side_by_side::put_groups(&mut experiment, &jobs, &stages, &cells)?,
            false => put_settings(&mut experiment, &cells)?,
        }
        // As the jobs say; a run would choose otherwise.
        let says_memory = |job: &Job| value(&job.options, "mem").is_some();
        if jobs.iter().any(says_memory) && !experiment.names("buffer_memory") {
            experiment.apply_set("buffer_memory=kernel")?;
        }
        if let (Some(held), Some(cell)) = (held, cells.first()) {
            held.put(&mut experiment, cell.trial.depth)?;
        }
        experiment.check()
    };
    // A fault of all jobs together follows from hidden values too.
    let places = jobs.iter().map(Job::place);
    let hidden = places.into_iter().find(|place| place.hidden.is_some());
    whole_file()
        .map_err(|error| hidden.map_or_else(|| error.clone(), |at| at.error(error.clone())))?;
    let ends = jobs.iter().zip(&cells).map(|(job, cell)| {
        let end = cell.trial.offset.saturating_add(cell.trial.region);
        (end, differences::names_size(job))
    });
    let is_sized = ends.max().is_some_and(|(_, is_sized)| is_sized);
    Ok(ForeignExperiment {
        experiment,
        left_target: target.as_deref().and_then(left_out),
        target,
        is_sized,
        notes: differences::of(&jobs, &cells, &stages, whole)
            .into_iter()
            .chain(read_back.told(&jobs))
            .collect(),
        told: differences::explanation(&jobs, &cells),
    })
}

/// Note that a job file of iolab, and its definition, name no target; `None` if it is where a run goes without one.
fn left_out(target: &Path) -> Option<String> {
    (target != Path::new(".")).then(|| {
        format!(
            "the target {} is left out: give it as TARGET to 'iolab run', or as filename to fio",
            target.display()
        )
    })
}

/// The cell of each job; `None` for jobs with mistakes.
fn cells_of(jobs: &[Job], whole: Option<u64>, mistakes: &mut Mistakes) -> Vec<Option<CellSpec>> {
    let size = FileSize {
        known: whole,
        otherwise: whole.unwrap_or(CellSpec::default().trial.region),
    };
    let mut cells = Vec::with_capacity(jobs.len());
    for job in jobs {
        // iolab does not wait for it, but it has to be a valid time all the same.
        let ramp = job.options.get("ramp_time");
        if let Some(Err(fault)) = ramp.map(|text| duration("ramp_time", text)) {
            mistakes.add(&job.place_of(fault.option), fault.error);
        }
        let read = cell_or_faults(&job.options, size);
        cells.push(read.map_or_else(
            |faults| {
                for fault in faults {
                    mistakes.add(&job.place_of(fault.option), fault.error);
                }
                None
            },
            Some,
        ));
    }
    cells
}

/// The cells of possible jobs, with the check of written data assigned to the writing ones.
fn settled(
    jobs: &[Job],
    cells: Vec<Option<CellSpec>>,
    read_back: &ReadBack,
    mistakes: &mut Mistakes,
) -> Vec<CellSpec> {
    let mut settled = Vec::with_capacity(jobs.len());
    for (number, (job, cell)) in jobs.iter().zip(cells).enumerate() {
        let Some(mut cell) = cell else {
            continue;
        };
        read_back.settle(number, &mut cell);
        match cell.trial.check() {
            Ok(()) => settled.push(cell),
            Err(error) => mistakes.add(&job.place(), error),
        }
    }
    settled
}

fn question(name: &str, jobs: &[Job]) -> String {
    let texts: Vec<&str> = jobs
        .iter()
        .filter_map(|job| job.public("description").map(String::as_str))
        .collect();
    let question = match texts.as_slice() {
        [only] => (*only).to_owned(),
        _ => format!("What does the fio job file {name} measure here?"),
    };
    question.chars().filter(|c| !c.is_control()).collect()
}

/// Time for a warm-up and as many trials as an interval takes, if the jobs say how long they run.
fn design(cells: &[CellSpec], stages: &[usize]) -> Design {
    let design = Design::default();
    let last = stages.last().copied().unwrap_or(0);
    let of_stage = |stage: usize| -> Option<Duration> {
        let own = cells.iter().zip(stages).filter(|(_, own)| **own == stage);
        let times = own.map(|(cell, _)| cell.trial.limit.time);
        times.collect::<Option<Vec<_>>>()?.into_iter().max()
    };
    let all: Option<Duration> = (0..=last).map(of_stage).sum();
    let trials = design.trials_min + 1;
    let needed = all.map_or(Duration::ZERO, |block| block.saturating_mul(trials));
    Design {
        budget: design.budget.max(needed).min(BUDGET_MAX),
        ..design
    }
}

/// Fixes the common settings of the cells; if cells differ in others, each becomes a combination.
fn put_settings(experiment: &mut Experiment, cells: &[CellSpec]) -> Result<()> {
    let mut rows: Vec<Combination> = vec![Vec::new(); cells.len()];
    for (setting, levels) in fix_common(experiment, cells)? {
        for (row, level) in rows.iter_mut().zip(levels) {
            row.push((setting.into(), level));
        }
    }
    rows.retain(|row| !row.is_empty());
    // As in fio; a run would choose otherwise.
    experiment.apply_set("first_offset=zero")?;
    experiment.list(&rows)
}

/// Fixes the common settings of the cells; returns the others, each with the level of every cell.
fn fix_common(
    experiment: &mut Experiment,
    cells: &[CellSpec],
) -> Result<Vec<(&'static Setting, Vec<String>)>> {
    let default = CellSpec::default();
    let mut others = Vec::new();
    for setting in SETTINGS {
        let levels: Vec<String> = cells.iter().map(|cell| setting.get(cell)).collect();
        match levels.first() {
            Some(first) if levels.iter().any(|level| level != first) => {
                others.push((setting, levels));
            }
            Some(common) if *common != setting.get(&default) => experiment.fix(setting, common)?,
            _ => {}
        }
    }
    Ok(others)
}

/// The one file or directory that all jobs name; for a missing file, its folder.
fn named_by(jobs: &[Job], mistakes: &mut Mistakes) -> Option<PathBuf> {
    let mut found: Option<PathBuf> = None;
    for (number, job) in jobs.iter().enumerate() {
        let several = [
            (
                "filename",
                "names several files",
                "give one filename in the whole job file: fio joins all filename lines of [global] and of a job",
            ),
            (
                "directory",
                "names several folders, over which fio spreads its files",
                "name one folder; 'iolab run EXPERIMENT A B' measures several",
            ),
        ];
        let several = several
            .into_iter()
            .find(|(option, ..)| names_several(job, option));
        if let Some((option, what, hint)) = several {
            let error = Error::usage(format!("{option} {what}")).hint(hint);
            mistakes.add(&job.place_of(option), error);
            continue;
        }
        let target = named_file(&job.options);
        if number > 0 && target != found {
            let error = Error::usage("the jobs use different files");
            let named = ["filename", "directory"].map(|option| job.place_of(option));
            let place = named.into_iter().max().unwrap_or_else(|| job.place());
            mistakes.add(&place, error.hint("give one job file for each file"));
        }
        found = target;
    }
    // fio makes a file that is not there, but no directory.
    match jobs.iter().any(|job| job.options.contains_key("filename")) {
        true => found.map(reachable),
        false => found,
    }
}

/// Whether an option names several files or folders, separated by colons: fio adds up names that are given one by one.
fn names_several(job: &Job, option: &str) -> bool {
    let name = job.options.get(option);
    name.is_some_and(|name| name.contains(':'))
}

/// Refuses a target whose path comes from a variable or from another file unless it exists. An existing path is not a
/// secret, and the run names it.
fn check_known(jobs: &[Job], target: &Path, mistakes: &mut Mistakes) {
    let named = jobs
        .iter()
        .flat_map(|job| ["filename", "directory"].map(|option| job.place_of(option)));
    let hidden = named.filter(|place| place.hidden.is_some()).max();
    if let Some(place) = hidden.filter(|_| target.symlink_metadata().is_err()) {
        mistakes.add(&place, Error::usage("there is no such file or directory"));
    }
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
    let metadata = target.metadata().ok()?;
    #[cfg(unix)]
    let is_device = std::os::unix::fs::FileTypeExt::is_block_device(&metadata.file_type());
    // On other systems no file is a block device.
    #[cfg(not(unix))]
    let is_device = false;
    let bytes = match metadata.is_file() {
        true => metadata.len(),
        false if is_device => File::open(target).ok()?.seek(SeekFrom::End(0)).ok()?,
        false => return None,
    };
    Some(bytes).filter(|bytes| *bytes > 0)
}

/// The service levels of a job with a latency target.
struct Held {
    levels: ServiceLevels,
    /// How long each depth is tried.
    window: Option<Duration>,
}

/// The service levels of the jobs; `None` if no job has a latency target.
fn held(jobs: &[Job], mistakes: &mut Mistakes) -> Option<Held> {
    const TARGET: &str = "latency_target";
    let job = jobs.iter().find(|job| job.options.contains_key(TARGET))?;
    let place = job.place_of(TARGET);
    if jobs.len() > 1 {
        let error = Error::usage("latency_target with several jobs");
        mistakes.add(
            &place,
            error.hint("iolab tries the depths of one job: give the others a file of their own"),
        );
        return None;
    }
    let mut time = |name: &'static str| match micros(name, job.options.get(name)?) {
        Ok(time) => Some(time).filter(|time| !time.is_zero()),
        Err(fault) => {
            mistakes.add(&job.place_of(name), fault.error);
            None
        }
    };
    let (target, window) = (time(TARGET)?, time("latency_window"));
    let percentile = job.options.get("latency_percentile");
    // All requests, unless it says otherwise.
    let quantity = match percentile.map(|text| text.trim()) {
        None | Some("100" | "100.0") => "max".to_owned(),
        Some(percentile) => format!("p{percentile}"),
    };
    match format!("{quantity}<{}", format_duration(target)).parse() {
        Ok(levels) => Some(Held { levels, window }),
        Err(error) => {
            mistakes.add(&job.place_of("latency_percentile"), error);
            None
        }
    }
}

impl Held {
    /// Each depth is tried for so long.
    fn bound(&self, cell: &mut CellSpec) {
        if let Some(window) = self.window {
            cell.trial.limit.bytes = None;
            cell.trial.limit.time = Some(window);
        }
    }

    /// Has the run judge the level at depths up to this one.
    ///
    /// # Errors
    /// Never for a depth that a trial can have.
    fn put(self, experiment: &mut Experiment, most: u32) -> Result<()> {
        let setting =
            Setting::find("depth").ok_or_else(|| Error::failed("there is no setting 'depth'"))?;
        let doubled = std::iter::successors(Some(1_u32), |depth| depth.checked_mul(2));
        let below = doubled.take_while(|depth| *depth < most);
        let depths: Vec<String> = below.chain([most]).map(|depth| depth.to_string()).collect();
        let trials = depths.len() as u32 * (experiment.design.trials_min + 1);
        let needed = self.window.unwrap_or_default().saturating_mul(trials);
        experiment.design.budget = experiment.design.budget.max(needed).min(BUDGET_MAX);
        experiment.sweep(setting, &depths)?;
        experiment.hold = Some(self.levels);
        Ok(())
    }
}
