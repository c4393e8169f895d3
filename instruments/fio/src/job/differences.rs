//! Meaning of each option of a job file for iolab, and where iolab differs from fio.

use std::collections::BTreeMap;

use super::jobs::{Job, listed};
use super::lines::LinePosition;
use super::side_by_side;
use crate::options::is_set;
use crate::unsupported::{drops_at_each_pass, has_one_place};
use iolab_workload::foreign_options::{Effect, in_job};
use iolab_workload::settings::{CellSpec, Setting};
use iolab_workload::table;
use iolab_workload::trial::{FileLayout, Pattern, SyncPolicy, TrialSpec};
use iolab_workload::units::format_bytes;

/// Whether it holds of a job file, and what to say then.
type Note = (bool, &'static str);

/// The content of a job file, job by job.
struct Asked<'a> {
    jobs: &'a [Job],
    /// The cell of each job.
    cells: &'a [CellSpec],
    /// Jobs of the same number run side by side.
    stages: &'a [usize],
    /// Bytes of the measured file; `None` if iolab makes one.
    whole: Option<u64>,
}

/// Differences from fio for these jobs, a sentence each. `stages` has the same number for jobs that run side by side.
/// `whole` is the size of the measured file in bytes, unless iolab makes one.
pub(super) fn of(
    jobs: &[Job],
    cells: &[CellSpec],
    stages: &[usize],
    whole: Option<u64>,
) -> Vec<String> {
    let asked = Asked {
        jobs,
        cells,
        stages,
        whole,
    };
    let applying = asked.notes().into_iter().filter(|(applies, _)| *applies);
    let applying = applying.map(|(_, note)| note.to_owned());
    let of_jobs = |note: &dyn Fn(&TrialSpec) -> Option<String>| {
        let all = jobs.iter().zip(cells);
        let notes = all.filter_map(|(job, cell)| Some((note(&cell.trial)?, job.name.clone())));
        with_names(notes)
    };
    applying
        .chain(with_names(measured_together(jobs, cells, stages)))
        .chain(of_jobs(&cached_passes))
        .chain(of_jobs(&syncs_of_a_mix))
        .collect()
}

/// Notes on jobs as sentences, each once with the names of its jobs.
fn with_names(notes: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    for (note, job) in notes {
        match all.iter_mut().find(|(known, _)| *known == note) {
            Some((_, names)) => names.push(job),
            None => all.push((note, vec![job])),
        }
    }
    let all = all.into_iter();
    all.map(|(note, names)| format!("{}: {note}", listed(&names)))
        .collect()
}

impl Asked<'_> {
    /// Whether a job has one of these options, other than as `0`.
    fn has_option(&self, names: &[&str]) -> bool {
        self.jobs.iter().any(|job| sets_any(job, names))
    }

    fn any(&self, of: impl Fn(&TrialSpec) -> bool) -> bool {
        self.cells.iter().any(|cell| of(&cell.trial))
    }

    /// Whether a job has one of these options, and its trial satisfies `of`.
    fn any_with(&self, names: &[&str], of: impl Fn(&TrialSpec) -> bool) -> bool {
        let mut pairs = self.jobs.iter().zip(self.cells);
        pairs.any(|(job, cell)| sets_any(job, names) && of(&cell.trial))
    }

    /// All differences that there can be.
    fn notes(&self) -> [Note; 26] {
        let several = side_by_side::has_several(self.stages);
        let sized = |job: &Job| sets_any(job, &["size", "filesize"]);
        let has_own_file = |job: &Job| !job.options.contains_key("filename");
        let is_bounded = |trial: &TrialSpec| trial.limit.bytes.is_some();
        let is_strided = |trial: &TrialSpec| trial.pattern == Pattern::Strided;
        let counts_complete = |(job, cell): (&Job, &CellSpec)| {
            let by = job.options.get("thinktime_blocks_type");
            cell.trial.thinktime.is_some()
                && cell.trial.depth > 1
                && by.is_none_or(|by| by.trim() != "issue")
        };
        let batches = [
            "iodepth_batch_submit", "iodepth_batch", "iodepth_batch_complete_max",
        ];
        table! {
            // The trials of a run.
            (self.has_option(&["ramp_time"]), "ramp_time is ignored: the first trial of every cell is a warm-up");
            (self.has_option(&["randrepeat", "randseed"]), "--seed replaces randrepeat and randseed: the same seed gives the same offsets");
            (self.jobs.len() > 1 && !several, "the jobs are cells: each runs several times, in random order");
            (several, "jobs that run side by side are groups of one trial, each measured separately");
            (several && self.stages.last() > Some(&0), "what runs one after the other are cells: each runs several times, in random order");
            (several && self.jobs.iter().any(has_own_file),
             "a file of a job is a range of one file (offset, region), a thread's a share of it");
            (self.whole.is_none() && !self.jobs.iter().all(sized),
             "a job names no size: it uses 1 GiB of a directory; --size changes that");
            (self.jobs.iter().any(|job| job.leaves_filename), "filename is not used where libblkio_path names the file");
            // The way through a file, and its end.
            (self.any_with(&["time_based"], |trial| trial.limit.time.is_none()), "time_based has no effect without runtime, as in fio");
            (self.any_with(&["number_ios"], |trial| trial.limit.bytes.is_none()), "number_ios has no effect with time_based, as in fio");
            (self.any(|trial| is_strided(trial) && is_bounded(trial)),
             "a trial visits the blocks of its strides once; fio begins again with the first one until it has transferred the size of the file");
            (self.any(|trial| is_strided(trial) && !is_bounded(trial)),
             "after the last of its strides iolab goes over the blocks between them, fio over the same blocks again");
            (self.any(has_one_place),
             "ordered reads and writes of a mix share one position in the file; in fio each direction has its own");
            // The timing of requests, and requests that accompany them.
            (self.jobs.iter().zip(self.cells).any(counts_complete),
             "thinktime counts requests when they are submitted, as fio with thinktime_blocks_type=issue; fio otherwise counts those that are complete, of which several at once can pass without a pause");
            (self.any_with(&["end_fsync", "fsync_on_close"], |trial| trial.writes() && trial.sync != SyncPolicy::End),
             "besides fsync, fdatasync or sync, iolab makes nothing durable once more at the end of a trial (end_fsync, fsync_on_close)");
            (self.jobs.iter().zip(self.cells).any(is_shortened),
             "requests of several sizes begin at each block once per pass, and keep their size; fio shortens those that its map of visited blocks has no room for (norandommap=1: neither)");
            (self.any(|trial| trial.rate.is_some()), "with a rate, latency counts from the time at which a request was due");
            (self.has_option(&batches),
             "fio submits and collects this many requests at a time, iolab all that are ready: one at a time made fio 5 to 10 % faster on one disk, for twice the CPU time (docs/FIO.md)");
            // The content of files, and its check.
            (self.any_with(&["create_on_open"], TrialSpec::reads),
             "fio makes a file when it opens it (create_on_open), and ends with an error at a read of what it has not written; iolab fills files before the trials");
            (self.has_option(&["fill_device", "fill_fs"]) && self.whole.is_none(),
             "fio writes until the file system is full (fill_device); iolab leaves space free, and writes as much as --size says");
            (self.whole.is_none() && self.any(TrialSpec::trims),
             "fio trims devices only, and ends with an error at the first trim of a file; iolab makes holes in its file");
            (self.any_with(&["buffer_compress_percentage"], |trial| !trial.writes_data()),
             "buffer_compress_percentage has no effect on a job that writes no data");
            (self.has_option(&["verify_backlog"]),
             "fio reads back between its writes and within their time (verify_backlog), so that it reports fewer writes per second; iolab reads back after each trial");
            (self.any_with(&["offset_increment"], |trial| trial.layout == FileLayout::Private),
             "each thread goes over a file of its own from its first byte; fio as far over its own, from a multiple of offset_increment");
            (self.any(|trial| trial.verify), "data is checked with iolab's own checksum (CRC-32C), after each trial and outside its time");
            (self.any(TrialSpec::writes), "writes go to a file that is filled already, as with overwrite=1");
        }
    }
}

/// Whether a job names its size, or the size of its file, other than as all of a device.
pub(super) fn names_size(job: &Job) -> bool {
    sets_any(job, &["size", "filesize"]) && !sets_any(job, &["fill_device", "fill_fs"])
}

fn sets_any(job: &Job, names: &[&str]) -> bool {
    names.iter().any(|name| is_set(&job.options, name))
}

/// Jobs that run one after the other and do the same: they are one cell.
fn measured_together<'a>(
    jobs: &'a [Job],
    cells: &'a [CellSpec],
    stages: &'a [usize],
) -> impl Iterator<Item = (String, String)> + 'a {
    let several = side_by_side::has_several(stages);
    let later = jobs.iter().zip(cells).enumerate();
    later
        .filter(move |_| !several)
        .filter_map(|(number, (job, cell))| {
            let first = cells[..number].iter().position(|other| other == cell)?;
            let first = &jobs[first].name;
            let note = format!("like {first}, and measured once, together with it");
            Some((note, job.name.clone()))
        })
}

/// The number of additional syncs of fio in a mix of reads and writes.
fn syncs_of_a_mix(trial: &TrialSpec) -> Option<String> {
    if !(trial.reads() && trial.writes() && trial.sync.follows_writes()) {
        return None;
    }
    let more = 100.0 / f64::from(100 - trial.read_percent);
    Some(format!(
        "a sync follows writes only; in a mix of reads and writes fio syncs after reads too, {more:.1} times as often"
    ))
}

/// The point from which on a job finds the page cache filled, which fio drops before each pass over a file.
fn cached_passes(trial: &TrialSpec) -> Option<String> {
    drops_at_each_pass(trial).then(|| {
        format!(
            "iolab drops the page cache before each trial, fio also before each further pass over the file (invalidate=1): after {} of a trial iolab finds in the cache what fio reads anew",
            format_bytes(trial.region as f64),
        )
    })
}

/// Whether fio makes smaller requests than a job asks for: a request ends before the first block that was visited.
fn is_shortened((job, cell): (&Job, &CellSpec)) -> bool {
    // fio's other generator of offsets needs no map.
    let generator = job.options.get("random_generator");
    let has_map = generator.is_none_or(|generator| generator.trim() != "lfsr");
    let trial = &cell.trial;
    let is_longer = trial.bs_mix.as_ref().is_some_and(|mix| {
        let sizes = [&mix.reads, &mix.writes].into_iter();
        let mut shares = sizes.flat_map(|sizes| sizes.shares());
        shares.any(|share| share.bytes > trial.bs || share.multiples > 1)
    });
    has_map && is_longer && trial.pattern == Pattern::Rand
}

/// Every option of every job with its meaning, a line each, in the order of their lines; there is a cell for each job.
pub(super) fn explanation(jobs: &[Job], cells: &[CellSpec]) -> Vec<String> {
    let mut all: BTreeMap<(LinePosition, String, String), Vec<String>> = BTreeMap::new();
    for (job, cell) in jobs.iter().zip(cells) {
        let own = job.options.iter();
        // A filename that stands for libblkio_path, which is explained itself.
        let has_path = job.options.contains_key("libblkio_path");
        let own = own.filter(|(name, _)| !has_path || *name != "filename");
        for (name, value) in own {
            let with = match name.as_str() {
                "numjobs" if !job.also.is_empty() => {
                    format!(" (with the threads of {})", listed(&job.also))
                }
                _ => String::new(),
            };
            let option = job.shown(name, value) + &with;
            let told = (job.place_of(name), option, means(name, cell));
            all.entry(told).or_default().push(job.name.clone());
        }
    }
    let lines = all.into_iter().map(|((place, option, means), names)| {
        let some = match names.len() == jobs.len() {
            true => String::new(),
            false => format!(" [{}]", listed(&names)),
        };
        format!("{place}{some}: {option}: {means}")
    });
    lines.collect()
}

fn means(name: &str, cell: &CellSpec) -> String {
    match in_job(name).map(|known| known.effect) {
        Some(Effect::Decides(settings)) => {
            // A setting after the first two is shown only if the option changes it.
            let default = CellSpec::default();
            let settings = settings.iter().filter_map(|name| Setting::find(name));
            let changed = settings.enumerate().filter(|(place, setting)| {
                *place < 2 || setting.value(cell) != setting.value(&default)
            });
            let values =
                changed.map(|(_, setting)| format!("{}={}", setting.name, setting.get(cell)));
            values.collect::<Vec<_>>().join(", ")
        }
        Some(Effect::Asks(what)) => what.to_owned(),
        Some(Effect::Target) => "TARGET, unless one is given".to_owned(),
        Some(Effect::Idle(why)) => format!("nothing changes: {why}"),
        None => "switched off".to_owned(),
    }
}
