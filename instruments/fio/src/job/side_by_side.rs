//! Jobs that run side by side, or check the data of an earlier one.

use std::path::{Path, PathBuf};

use super::jobs::Job;
use super::lines::Mistakes;
use crate::options::named_file;
use crate::options::short;
use iolab_plan::experiment::{Combination, Experiment, GroupSetting, new_group_name};
use iolab_workload::settings::{CellSpec, Setting};
use iolab_workload::trial::{FileLayout, Rate, THREADS_MAX, TrialSpec};
use iolab_workload::{Error, Result};

/// Ranges of files begin at multiples of this, bytes.
const UNIT: u64 = 1 << 20;

/// The jobs in their order, each with the number of its stage. Jobs of a stage run side by side, and a stage begins when
/// the one before it is over. Identical jobs of a stage become one with more threads.
pub(super) fn staged(jobs: Vec<Job>, mistakes: &mut Mistakes) -> Vec<(usize, Job)> {
    let mut all: Vec<(usize, Job)> = Vec::new();
    for job in jobs {
        let waits = all.last().is_some_and(|(_, before)| job.waits(before));
        if let Some(name) = job.options.get("wait_for").filter(|_| !waits) {
            let shown = short(name);
            let error = Error::usage(format!("wait_for={shown} is not the job before this one"));
            let error =
                error.hint("name the job before, or write stonewall to wait for all of them");
            mistakes.add(&job.place_of("wait_for"), error);
        }
        let Some((stage, before)) = all.last_mut() else {
            all.push((0, job));
            continue;
        };
        let stage = *stage;
        if waits {
            all.push((stage + 1, job));
            continue;
        }
        let threads = |job: &Job| {
            let numjobs = job.options.get("numjobs");
            numjobs.map_or(Some(1), |text| text.parse().ok().filter(|count| *count > 0))
        };
        let both = threads(before).zip(threads(&job));
        let sum = both.map(|(of_before, own)| u32::saturating_add(of_before, own));
        let sum = sum.filter(|sum| *sum <= THREADS_MAX && before.is_like(&job));
        if let Some(sum) = sum {
            let numjobs = sum.to_string();
            before.options.insert("numjobs".to_owned(), numjobs);
            before.also.push(job.name);
        } else {
            all.push((stage, job));
        }
    }
    all
}

/// Whether any stage has several jobs.
pub(super) fn has_several(stages: &[usize]) -> bool {
    stages.windows(2).any(|pair| pair[0] == pair[1])
}

/// The one file or directory that jobs side by side name, or the folder of their files.
pub(super) fn named(jobs: &[Job], mistakes: &mut Mistakes) -> Option<PathBuf> {
    let name_any = |option: &str| jobs.iter().any(|job| job.options.contains_key(option));
    match folder(jobs) {
        Some(folder) if name_any("filename") || name_any("directory") => Some(folder),
        Some(_) => None,
        None => super::named_by(jobs, mistakes),
    }
}

/// The one folder in which all jobs have their files, none of which exists yet: ranges of iolab's scratch file represent
/// them. `None` without such a folder, or if a file of a job exists.
fn folder(jobs: &[Job]) -> Option<PathBuf> {
    let named = |job: &Job| -> Option<PathBuf> {
        let path = named_file(&job.options).unwrap_or_else(|| PathBuf::from("."));
        if ["filename", "directory"]
            .iter()
            .any(|option| super::names_several(job, option))
        {
            return None;
        }
        if !job.options.contains_key("filename") {
            return Some(path);
        }
        if path.starts_with("/dev") || path.symlink_metadata().is_ok() {
            return None;
        }
        match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => Some(parent.to_owned()),
            _ => Some(PathBuf::from(".")),
        }
    };
    let mut folders = jobs.iter().map(named);
    let first = folders.next()??;
    folders
        .all(|other| other.as_ref() == Some(&first))
        .then_some(first)
}

/// Gives each job the bytes of its own file, one file after the other; jobs that name the same file share them. Each thread
/// of a job then has a share of the range, as it has a file of its own in fio.
pub(super) fn place(jobs: &[Job], cells: &mut [CellSpec]) {
    // Each file with its number of bytes.
    let mut files: Vec<(Option<&Path>, u64)> = Vec::new();
    let mut of_job = Vec::with_capacity(cells.len());
    for (job, cell) in jobs.iter().zip(cells.iter_mut()) {
        let trial = &mut cell.trial;
        if trial.layout == FileLayout::Private {
            trial.layout = FileLayout::Shared;
        }
        let bytes = trial
            .offset
            .saturating_add(trial.region)
            .next_multiple_of(UNIT);
        let name = job.options.get("filename").map(Path::new);
        let known = files
            .iter()
            .position(|(other, _)| name.is_some() && *other == name);
        let file = known.unwrap_or(files.len());
        match files.get_mut(file) {
            Some((_, most)) => *most = bytes.max(*most),
            None => files.push((name, bytes)),
        }
        of_job.push(file);
    }
    for (file, cell) in of_job.into_iter().zip(cells) {
        let before: u64 = files.iter().take(file).map(|(_, bytes)| bytes).sum();
        cell.trial.offset = cell.trial.offset.saturating_add(before);
    }
}

/// Makes each job a group. With several stages, each is a cell in which the groups of the other stages do nothing.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): too many jobs.
pub(super) fn put_groups(
    experiment: &mut Experiment,
    jobs: &[Job],
    stages: &[usize],
    cells: &[CellSpec],
) -> Result<()> {
    let mut names: Vec<String> = Vec::with_capacity(jobs.len());
    for job in jobs {
        let name = new_group_name(&job.name, "job", &names);
        // Refuses more groups than a trial has room for, before names without end are sought.
        experiment.add_group(&name)?;
        names.push(name);
    }
    for (setting, levels) in super::fix_common(experiment, cells)? {
        for (name, level) in names.iter().zip(&levels) {
            experiment.fix(of(name, setting), level)?;
        }
    }
    let last = stages.last().copied().unwrap_or(0);
    let Some(rate) = Setting::find("rate").filter(|_| last > 0) else {
        return Ok(());
    };
    let row = |stage: usize| -> Combination {
        let groups = names.iter().zip(stages).zip(cells);
        groups
            .map(|((name, own), cell)| {
                let level = match *own == stage {
                    true => rate.get(cell),
                    false => Rate::ZERO.to_string(),
                };
                (of(name, rate), level)
            })
            .collect()
    };
    let rows: Vec<Combination> = (0..=last).map(row).collect();
    experiment.list(&rows)
}

fn of(group: &str, setting: &'static Setting) -> GroupSetting {
    GroupSetting {
        group: Some(group.to_owned()),
        setting,
    }
}

/// For each job that reads back, the job that wrote it. iolab checks the data after each trial that writes, and these jobs only
/// read.
pub(super) struct ReadBack(Vec<Option<usize>>);

impl ReadBack {
    /// Finds them among jobs that run one after the other, each with its cell; `None` for a job with mistakes.
    pub(super) fn of(jobs: &[Job], cells: &[Option<CellSpec>], stages: &[usize]) -> Self {
        let trial = |number: usize| Some(&cells.get(number)?.as_ref()?.trial);
        let writer = |(number, job): (usize, &Job)| {
            let read = trial(number).filter(|trial| trial.verify && !trial.writes())?;
            let wrote = |(place, other): &(usize, &Job)| {
                let same = |name| other.options.get(name) == job.options.get(name);
                ["filename", "directory", "verify"].into_iter().all(same)
                    && trial(*place).is_some_and(|written| covers(written, read))
            };
            let mut before = jobs.iter().enumerate().take(number).rev();
            let (place, _) = before.find(wrote)?;
            (!has_several(stages)).then_some(place)
        };
        Self(jobs.iter().enumerate().map(writer).collect())
    }

    /// Has the data of the job with this number checked if another job reads it back; the other job then only reads.
    pub(super) fn settle(&self, number: usize, cell: &mut CellSpec) {
        cell.trial.verify |= self.0.contains(&Some(number));
        cell.trial.verify &= !self.reads(number);
    }

    fn reads(&self, number: usize) -> bool {
        self.0.get(number).is_some_and(Option::is_some)
    }

    /// A note about each job whose data is read back.
    pub(super) fn told<'a>(&'a self, jobs: &'a [Job]) -> impl Iterator<Item = String> + 'a {
        let pairs = jobs.iter().zip(&self.0);
        pairs.filter_map(|(job, writer)| {
            let writer = jobs.get((*writer)?)?;
            Some(format!(
                "{} reads without a check: iolab checks the data after each trial of {}, outside its time; fio checks it while it reads",
                job.name, writer.name
            ))
        })
    }
}

/// Whether a job writes data in all of the range that another one reads, in the one file that both have.
fn covers(written: &TrialSpec, read: &TrialSpec) -> bool {
    let range = |trial: &TrialSpec| (trial.offset, trial.offset.saturating_add(trial.region));
    let ((from, to), (first, end)) = (range(written), range(read));
    let is_one_file = [written, read].map(|trial| trial.layout != FileLayout::Private);
    written.writes_data() && is_one_file == [true; 2] && from <= first && end <= to
}
