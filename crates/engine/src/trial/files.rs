//! The files that the workers of one trial use: the target's own, one or several per worker, or fresh ones.
//!
//! Writes out the page cache and the drive's cache after a trial. The next trial then neither waits for this data nor runs
//! while it is written.

use std::fs::File;
use std::ops::Range;
use std::sync::Mutex;
use std::time::Instant;

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::fail;
use iolab_host::observation::make_durable;
use iolab_storage::{OpenMode, Target};
use iolab_workload::outcome::{Failure, Outcome};
use iolab_workload::trial::{
    Advice, Allocate, Descriptors, FileLayout, FileSlots, SyncPolicy, TrialSpec,
};
use iolab_workload::{Error, Result};

/// The files of a trial, with the way to open them.
pub(crate) struct Files<'a> {
    parts: Vec<TargetRange<'a>>,
    /// Maps an offset to one of a worker's files if it has several.
    pub(crate) slots: Option<FileSlots>,
    /// Number of files that a worker uses.
    per_worker: usize,
    mode: OpenMode,
    advice: Option<Advice>,
    /// The one open file description that all workers use, if they share one.
    shared: Option<File>,
    /// Held across `lseek` and the call that follows it if workers share the file position.
    pub(crate) position: Mutex<()>,
}

/// A range of a file.
pub(crate) struct TargetRange<'a> {
    target: Held<'a>,
    range: Range<u64>,
}

enum Held<'a> {
    OfTarget(&'a Target),
    /// Made for this trial, and removed with it.
    Fresh(Box<Target>),
}

impl TargetRange<'_> {
    pub(crate) fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    pub(crate) fn target(&self) -> &Target {
        match &self.target {
            Held::OfTarget(target) => target,
            Held::Fresh(target) => target,
        }
    }
}

impl<'a> Files<'a> {
    /// The files of a trial, made if it wants fresh ones.
    ///
    /// # Errors
    /// When the target does not have them, or they cannot be made or opened.
    pub(crate) fn new(spec: &TrialSpec, target: &'a Target) -> Result<Self> {
        let part = |target: Held<'a>, range: Range<u64>| TargetRange { target, range };
        let parts: Vec<TargetRange<'_>> = match spec.starts_fresh() {
            true => ranges(spec)
                .into_iter()
                .map(|range| Ok(part(fresh(spec, target, range.end)?, range)))
                .collect::<Result<_>>()?,
            false => files_of(spec, target)?
                .into_iter()
                .map(|(file, range)| part(Held::OfTarget(file), range))
                .collect(),
        };
        let mut files = Self {
            parts,
            slots: spec.file_slots(),
            per_worker: spec.files.unwrap_or(1) as usize,
            mode: OpenMode::of(spec),
            advice: spec.fadvise,
            shared: None,
            position: Mutex::new(()),
        };
        if spec.descriptors == Descriptors::Shared {
            files.shared = Some(files.opened(files.part(0))?);
        }
        Ok(files)
    }

    /// All files.
    pub(crate) fn parts(&self) -> &[TargetRange<'a>] {
        &self.parts
    }

    /// The files of a worker, or the one of all workers.
    fn parts_of(&self, worker: u32) -> &[TargetRange<'a>] {
        let first = worker as usize * self.per_worker % self.parts.len();
        &self.parts[first..first + self.per_worker]
    }

    /// The first file that a worker uses.
    pub(crate) fn part(&self, worker: u32) -> &TargetRange<'a> {
        &self.parts_of(worker)[0]
    }

    /// Opens the files of a worker; or hands out the shared description.
    pub(crate) fn open(&self, worker: u32) -> Result<Vec<File>> {
        match &self.shared {
            None => {
                let parts = self.parts_of(worker).iter();
                parts.map(|part| self.opened(part)).collect()
            }
            Some(file) => file.try_clone().map(|file| vec![file]).map_err(|error| {
                Error::usage(format!(
                    "the descriptor cannot be shared with thread {}: {error}",
                    worker + 1
                ))
                .hint("use fewer threads, or raise the limit of open files (ulimit -n)")
            }),
        }
    }

    /// Gives a request that failed its offset in the file, if a worker has several files.
    pub(crate) fn place_failed(&self, outcome: &mut Outcome) {
        if let Some(slots) = self.slots
            && let Some(Failure::Request(request)) = &mut outcome.failure
        {
            (_, request.offset) = slots.place(request.offset);
        }
    }
}

impl Files<'_> {
    /// Opens a file and gives the kernel the advice of the trial.
    fn opened(&self, part: &TargetRange<'_>) -> Result<File> {
        let file = part.target().reopen(self.mode)?;
        let advice = match self.advice {
            None => return Ok(file),
            Some(Advice::Normal) => rustix::fs::Advice::Normal,
            Some(Advice::Sequential) => rustix::fs::Advice::Sequential,
            Some(Advice::Random) => rustix::fs::Advice::Random,
            Some(Advice::NoReuse) => rustix::fs::Advice::NoReuse,
        };
        // To the end of the file.
        rustix::fs::fadvise(&file, 0, None, advice).map_err(|errno| {
            Error::usage(format!(
                "the kernel refuses the advice (posix_fadvise): {errno}"
            ))
            .hint("set fadvise=none")
        })?;
        Ok(file)
    }
}

/// Byte range of each file: the files of each worker one after the other, or a single file for all.
fn ranges(spec: &TrialSpec) -> Vec<Range<u64>> {
    let region = spec.offset..spec.offset + spec.region;
    match spec.layout {
        FileLayout::Private => (0..spec.threads)
            .flat_map(|worker| spec.private_files(worker))
            .map(|bytes| 0..bytes)
            .collect(),
        FileLayout::Shared | FileLayout::Interleaved | FileLayout::Overlapping => vec![region],
    }
}

/// The files of the target that a trial without fresh files uses, each with its range. They come worker by worker, or as a
/// single file for all.
///
/// # Errors
/// When the target does not have them.
pub fn files_of<'a>(spec: &TrialSpec, target: &'a Target) -> Result<Vec<(&'a Target, Range<u64>)>> {
    let file = |(number, range): (usize, Range<u64>)| {
        let file = match spec.layout {
            FileLayout::Private => target.private_file(number, range.end)?,
            FileLayout::Shared | FileLayout::Interleaved | FileLayout::Overlapping => target,
        };
        Ok((file, range))
    };
    ranges(spec).into_iter().enumerate().map(file).collect()
}

/// A new file for `bytes` bytes. Allocating its space is part of writing it unless the trial asks for preallocated space.
fn fresh<'a>(spec: &TrialSpec, target: &Target, bytes: u64) -> Result<Held<'a>> {
    let file = target.beside(bytes)?;
    let made = match spec.allocate {
        Some(Allocate::Append) => Ok(()),
        Some(Allocate::Preallocated) => {
            rustix::fs::fallocate(file.file(), FallocateFlags::empty(), 0, bytes)
        }
        Some(Allocate::Fresh | Allocate::Recycled) | None => {
            rustix::fs::ftruncate(file.file(), bytes)
        }
    };
    made.map_err(|errno| {
        let path = target.named().display();
        match errno {
            Errno::OPNOTSUPP => Error::usage(format!(
                "the file system of {path} does not allocate space before it is written (fallocate)"
            ))
            .hint("set allocate=append or allocate=recycled"),
            _ => Error::failed(format!(
                "a new file in {path} cannot be given its {bytes} bytes: {errno}"
            ))
            .hint("choose a smaller region with --size, or another directory"),
        }
    })?;
    Ok(Held::Fresh(Box::new(file)))
}

/// Writes out what a trial has left in caches, if that was not requested, and notes how long it took. The next trial that writes
/// would have to wait for it anyway, and reads would be slowed by it. Data that cannot be written out makes the trial a failed one.
pub fn write_out(spec: &TrialSpec, files: &[(&Target, Range<u64>)], outcome: &mut Outcome) {
    if !owes_sync(spec, outcome) {
        return;
    }
    let began = Instant::now();
    for (target, range) in files {
        if let Err(request) = make_durable(target, range.clone()) {
            return fail(outcome, Failure::Request(request));
        }
    }
    outcome.region.owed_sync_ns = Some(began.elapsed().as_nanos() as u64);
}

/// Whether a trial may have left data in the page cache, or in the volatile cache of the drive, that no sync of its own has made durable.
pub fn owes_sync(spec: &TrialSpec, outcome: &Outcome) -> bool {
    let unsynced = match spec.sync {
        SyncPolicy::None => true,
        // The writes of a worker since its last sync.
        _ if spec.sync_every > 1 => {
            let synced = outcome
                .operations
                .sync
                .requests
                .saturating_mul(u64::from(spec.sync_every));
            synced < outcome.operations.write.requests
        }
        _ => false,
    };
    unsynced && outcome.operations.write.bytes > 0 && outcome.ended.is_whole()
}
