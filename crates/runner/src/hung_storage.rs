//! Storage that does not answer: a file server that is gone, a device that is suspended. Its requests wait in the kernel
//! without end, and so would the run.
//!
//! Slow storage is not silent: each completed request wakes a thread. So the watch checks whether any thread ran at all,
//! and never while a trial has time left: a trial that ends in time is not disturbed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf, absolute};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, thread};

use iolab_host::system_control::restore_own;
use iolab_host::tracing::THREAD_NAMES;
use iolab_storage::{
    FileSystem, ScratchRemover, Target, TargetKind, file_systems, leftover_bytes, procfs,
};
use iolab_workload::escape_control::shell_words;
use iolab_workload::trial::TrialSpec;
use iolab_workload::units::exact_duration;
use iolab_workload::{Error, Result};
use libc::c_long;

use crate::SystemUnderTest;
use crate::timeouts::{ANSWER, Timeouts, moving};

/// Name of the watching thread; without one it would have the name of the thread that starts it.
const NAME: &str = "storage-watch";
/// Time between two looks at the threads.
const STEP: Duration = Duration::from_secs(15);

/// Most time that a thread runs which wakes up only to wait on, ns.
const WAKE_UP_NS: u64 = 1_000_000;

/// Time for restoring settings of the kernel before the process ends.
const RESTORING: Duration = Duration::from_secs(5);

/// Time for removing scratch files from targets that do answer.
const REMOVING: Duration = Duration::from_secs(5);

/// System calls that work on files by name or descriptor, and wait only for their storage: iolab takes no lock that it
/// would have to wait for. Not `read` and `write`, which also wait for terminals, pipes and programs.
#[rustfmt::skip]
const ON_FILES: &[c_long] = &[
    libc::SYS_openat, libc::SYS_openat2, libc::SYS_close, libc::SYS_unlinkat, libc::SYS_renameat2, libc::SYS_linkat, libc::SYS_mkdirat,
    libc::SYS_mknodat, libc::SYS_statx, libc::SYS_fstat, libc::SYS_newfstatat, libc::SYS_statfs, libc::SYS_fstatfs, libc::SYS_faccessat,
    libc::SYS_faccessat2, libc::SYS_readlinkat, libc::SYS_name_to_handle_at, libc::SYS_getdents64, libc::SYS_fcntl, libc::SYS_flock, libc::SYS_fsync,
    libc::SYS_fdatasync, libc::SYS_syncfs, libc::SYS_sync_file_range, libc::SYS_fallocate, libc::SYS_ftruncate, libc::SYS_fadvise64, libc::SYS_lseek,
    libc::SYS_pread64, libc::SYS_pwrite64,
];

/// Older ones, which 64-bit ARM does not have.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OLDER: &[c_long] = &[
    libc::SYS_open, libc::SYS_unlink, libc::SYS_rename, libc::SYS_link, libc::SYS_mkdir, libc::SYS_rmdir, libc::SYS_stat, libc::SYS_lstat,
    libc::SYS_access, libc::SYS_readlink,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[c_long] = &[];

/// Prints an error and ends the process, whose threads cannot end by themselves.
pub type EndProcess = fn(Error);

/// A watch over a run, until it is dropped.
pub struct Watch {
    state: Arc<Mutex<State>>,
    _over: Sender<()>,
}

/// The state of the watch.
#[derive(Debug)]
struct State {
    /// End of the longest acceptable time of the trial in progress. A past moment between trials, `None` for a trial
    /// without a time limit.
    due: Option<Instant>,
    /// Longest time in which no thread may run.
    patience: Duration,
    /// Whether the targets are in use; otherwise the caller waits for something else.
    uses_targets: bool,
    /// Advice on the run file, once known: how to finish the run after an answer, or how to read it.
    advice: Option<String>,
    /// Storage that may not answer.
    silent: Silent,
    /// Whether settings of the kernel are changed, or may be.
    changes_system: bool,
}

/// Time limits of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Allowance {
    /// Time from its start to its end; `None` without a limit.
    pub(super) time: Option<Duration>,
    /// Longest time after that in which none of its threads may run.
    pub(super) patience: Duration,
}

impl Allowance {
    /// Limits for simultaneous trials of iolab's own threads.
    pub(super) fn of<'a>(trials: impl Iterator<Item = &'a TrialSpec> + Clone) -> Self {
        Self {
            time: trials.clone().map(due).max(),
            patience: trials.map(patience).max().unwrap_or(ANSWER),
        }
    }

    /// Limits for a trial by this many ranks, whose threads wait for each other.
    pub(super) fn of_ranks(trial: &TrialSpec, ranks: usize) -> Self {
        let limits = Timeouts::of(trial, ranks);
        let working = limits.carrying.saturating_add(limits.settling);
        Self {
            time: Some(limits.preparing.saturating_add(working)),
            patience: patience(trial),
        }
    }

    /// Limits for a trial that another program performs within this time, on this many bytes, all of which it may write.
    pub(super) fn of_program(time: Option<Duration>, bytes: u64) -> Self {
        Self {
            time,
            patience: moving(bytes),
        }
    }
}

impl Watch {
    /// Watches over a run on these targets by the calling thread and the measuring threads (`iolab-N`). If all of them
    /// stand still for longer than they may, settings of the kernel are restored if the run `changes_system`. Then `end` is
    /// called on another thread.
    pub(super) fn over(targets: &[&Target], changes_system: bool, end: EndProcess) -> Self {
        Self::begin(Silent::of(targets), changes_system, end)
    }

    fn begin(silent: Silent, changes_system: bool, end: EndProcess) -> Self {
        let state = Arc::new(Mutex::new(State {
            due: Some(Instant::now()),
            patience: ANSWER,
            uses_targets: false,
            advice: None,
            silent,
            changes_system,
        }));
        let (over, is_over) = mpsc::channel();
        let caller = rustix::thread::gettid().as_raw_nonzero().to_string();
        let shared = Arc::clone(&state);
        let look = move || {
            // The threads as they were when they last ran, and when that was seen.
            let mut last: Option<(Instant, Scheduled)> = None;
            loop {
                let began = Instant::now();
                if is_over.recv_timeout(STEP) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                let (due, patience) = {
                    let state = locked(&shared);
                    (state.due.filter(|_| state.uses_targets), state.patience)
                };
                let is_due = due.is_some_and(|due| Instant::now() >= due);
                // If the process itself was stopped meanwhile, its threads could not run.
                let was_stopped = began.elapsed() > STEP * 2;
                let is_watched = is_due && !was_stopped;
                let now = is_watched.then(|| scheduled(&caller)).flatten();
                let still = last.take().zip(now.as_ref());
                let still =
                    still.filter(|((at, before), now)| stand_still(now, before, at.elapsed()));
                last = match still {
                    Some((still, _)) => Some(still),
                    None => now.map(|now| (Instant::now(), now)),
                };
                if last
                    .as_ref()
                    .is_some_and(|(at, _)| at.elapsed() >= patience)
                {
                    let state = locked(&shared);
                    let error = unanswered(&state);
                    let changes_system = state.changes_system;
                    drop(state);
                    return end(match changes_system {
                        true => with_settings(error, restore_own(RESTORING)),
                        false => error,
                    });
                }
            }
        };
        // If the thread cannot be started, there is no limit.
        let _ = thread::Builder::new().name(NAME.to_owned()).spawn(look);
        Self { state, _over: over }
    }

    /// Watches over the time before the first trial, from before any target of these names is looked up, until the returned
    /// value is dropped. If storage does not answer, `end` gets the error.
    pub fn over_preparation(named: &[PathBuf], end: EndProcess) -> Self {
        let watch = Self::begin(Silent::named(named), false, end);
        watch.lets_prepare(0);
        watch
    }

    /// Notes that targets at these paths are opened from now on: leftovers of dead runs in directories are removed, and
    /// scratch files are made.
    pub fn opens(&self, paths: &[PathBuf]) {
        let mut silent = Silent::named(paths);
        let folders = paths.iter().filter(|path| path.is_dir());
        silent.scratch.extend(folders.map(|_| None));
        let left = paths.iter().map(|path| leftover_bytes(path));
        let left = left.fold(0, u64::saturating_add);
        locked(&self.state).silent = silent;
        self.lets_prepare(left);
    }

    /// Notes that the watched targets are open, and that up to `bytes` bytes may be written to them.
    pub fn has_opened(&self, place: &SystemUnderTest, bytes: u64) {
        let opened = Silent::of(&place.watched());
        locked(&self.state).silent = opened;
        self.lets_prepare(bytes);
    }

    /// Notes that settings of the kernel may be changed from now on, which are restored before the process ends.
    pub fn changes_system(&self) {
        locked(&self.state).changes_system = true;
    }

    fn lets_prepare(&self, bytes: u64) {
        // A sync may wait for other programs' data in the same file system, and for their data on the same disk.
        let of_others = procfs::dirty_bytes().unwrap_or(0);
        self.lets_move(bytes.saturating_add(of_others));
    }

    /// Watches over the end of a run, in which scratch files are removed, until what this returns is dropped. The trials are
    /// stored in `kept`.
    pub(super) fn over_removal(targets: &[&Target], kept: &[PathBuf], end: EndProcess) -> Self {
        let watch = Self::over(targets, false, end);
        // Dirty data may be written before a file is gone.
        let bytes = targets.iter().map(|target| target.size());
        watch.lets_move(bytes.fold(0, u64::saturating_add));
        if !kept.is_empty() {
            let stored = format!("The trials are stored: iolab table {}", shell_words(kept));
            watch.advises(stored);
        }
        watch
    }

    /// Notes that the targets are used outside of trials, with up to `bytes` bytes to write in one call.
    fn lets_move(&self, bytes: u64) {
        let mut state = locked(&self.state);
        state.patience = moving(bytes);
        state.uses_targets = true;
    }

    /// Notes advice on the run file that the caller writes.
    pub(super) fn advises(&self, advice: String) {
        locked(&self.state).advice = Some(advice);
    }

    /// Marks that the targets are used, until what this returns is dropped.
    pub(super) fn use_targets(&self) -> InUse<'_> {
        locked(&self.state).uses_targets = true;
        InUse(self)
    }

    /// Lets a trial take its time, until what this returns is dropped.
    pub(super) fn during(&self, allowed: Allowance) -> Trial<'_> {
        let now = Instant::now();
        let mut state = locked(&self.state);
        state.due = allowed.time.and_then(|time| now.checked_add(time));
        state.patience = allowed.patience;
        drop(state);
        Trial(self)
    }
}

/// Targets in use.
pub(super) struct InUse<'a>(&'a Watch);

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        locked(&self.0.state).uses_targets = false;
    }
}

/// A trial in progress.
pub(super) struct Trial<'a>(&'a Watch);

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        locked(&self.0.state).due = Some(Instant::now());
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Longest time until the end of a trial.
fn due(trial: &TrialSpec) -> Duration {
    let bounded = || Timeouts::of(trial, 1).carrying - ANSWER;
    trial.limit.time.unwrap_or_else(bounded)
}

/// Longest time in which its threads may stand still: a sync may have to write the whole region, a trim to give it all
/// back. Direct writes too are synced after the trial, from the cache of the drive.
fn patience(trial: &TrialSpec) -> Duration {
    match trial.writes_data() || trial.trims() {
        true => moving(trial.region),
        false => ANSWER,
    }
}

/// The time that each thread has run, ns, and how often, by its number.
type Scheduled = BTreeMap<String, (u64, u64)>;

/// The threads that measure, and the one that prepares. `None` if none of them may be waiting for storage: the run waits for
/// something else: another program, or a terminal.
fn scheduled(caller: &str) -> Option<Scheduled> {
    let mut threads = Scheduled::new();
    let mut waits = false;
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten();
    for task in tasks.flatten() {
        let text = |name: &str| fs::read_to_string(task.path().join(name)).ok();
        let Ok(number) = task.file_name().into_string() else {
            continue;
        };
        let measures = text("comm").is_some_and(|name| is_of_worker(&name));
        if !measures && number != caller {
            continue;
        }
        if let Some(counts) = text("schedstat").and_then(|text| counts(&text)) {
            waits |= measures || waits_for_storage(&task.path());
            threads.insert(number, counts);
        }
    }
    waits.then_some(threads)
}

/// The time that a thread has run, ns, and how often, by the scheduler's counts. `None` if it counts nothing: its numbers of
/// any thread are `0 0 0` then.
fn counts(schedstat: &str) -> Option<(u64, u64)> {
    let mut numbers = schedstat.split_whitespace();
    let ran = numbers.next()?.parse().ok()?;
    let times = numbers.nth(1)?.parse().ok()?;
    (times > 0).then_some((ran, times))
}

/// Whether the same threads have not run for this long, but for the wake-ups of the kernel itself: a thread that waits for a
/// request to a block device wakes up every `hung_task_timeout_secs` / 2 (60 s) and goes on waiting (`blk_io_schedule` of
/// Linux).
fn stand_still(now: &Scheduled, before: &Scheduled, time: Duration) -> bool {
    let woken = 1 + time.as_secs() / 60;
    let is_still = |(thread, (ran, times)): (&String, &(u64, u64))| {
        before
            .get(thread)
            .is_some_and(|(ran_before, times_before)| {
                (*times_before..=times_before + woken).contains(times)
                    && ran.saturating_sub(*ran_before) <= woken * WAKE_UP_NS
            })
    };
    now.len() == before.len() && now.iter().all(is_still)
}

/// Whether a thread of this name measures. A thread without a name of its own has the name of the binary, which may be
/// `iolab-mpi`.
fn is_of_worker(name: &str) -> bool {
    let number = name.trim_end().strip_prefix(THREAD_NAMES);
    number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The storage of a run that waits.
#[derive(Debug)]
struct Silent {
    /// The targets in the user's words, each with its file server.
    places: Vec<(PathBuf, Option<String>)>,
    /// The remover of each scratch file; `None` for a file that another process removes, or that is in the making.
    scratch: Vec<Option<Arc<ScratchRemover>>>,
}

impl Silent {
    fn of(targets: &[&Target]) -> Self {
        let place = |target: &&Target| {
            let server = target.stack().nfs.as_ref();
            let server = server.map(|mount| mount.server.clone());
            (target.named().to_owned(), server)
        };
        let scratch = targets.iter();
        let scratch = scratch.filter(|target| target.kind() == TargetKind::Scratch);
        let scratch = scratch.map(|target| target.scratch_remover().map(Arc::new));
        Self {
            places: targets.iter().map(place).collect(),
            scratch: scratch.collect(),
        }
    }

    /// Targets of these names, without a request to their storage.
    fn named(named: &[PathBuf]) -> Self {
        let mounts = file_systems();
        let place = |named: &PathBuf| {
            let whole = absolute(named).unwrap_or_else(|_| named.clone());
            (named.clone(), server_of(&whole, &mounts))
        };
        Self {
            places: named.iter().map(place).collect(),
            scratch: Vec::new(),
        }
    }

    fn in_words(&self) -> String {
        let in_words = |(named, server): &(PathBuf, Option<String>)| match server {
            Some(server) => format!("{} on the file server {server}", named.display()),
            None => named.display().to_string(),
        };
        let places: Vec<String> = self.places.iter().map(in_words).collect();
        places.join(", ")
    }

    /// Removes the scratch files on storage that answers, and returns whether one is left. Silent storage gets a thread of
    /// its own, which removes the file if the answer comes while this process exists.
    fn leaves_scratch(&self) -> bool {
        let (removed, is_removed) = mpsc::channel();
        for remover in self.scratch.iter().flatten() {
            let (remover, removed) = (Arc::clone(remover), removed.clone());
            let remove = move || {
                let _ = removed.send(remover.remove());
            };
            // A thread that cannot be started removes nothing.
            let _ = thread::Builder::new().name(NAME.to_owned()).spawn(remove);
        }
        drop(removed);
        let mut left = self.scratch.len();
        let until = Instant::now() + REMOVING;
        while left > 0 {
            let time = until.saturating_duration_since(Instant::now());
            match is_removed.recv_timeout(time) {
                Ok(is_gone) => left -= usize::from(is_gone),
                Err(_) => break,
            }
        }
        left > 0
    }
}

/// Whether a thread of this process, by its folder in `/proc/self/task`, waits in the kernel and cannot be interrupted, or waits in a call
/// for storage: some file systems can be interrupted there (FUSE).
fn waits_for_storage(task: &Path) -> bool {
    let text = |name: &str| fs::read_to_string(task.join(name)).unwrap_or_default();
    text("stat").contains(") D ") || is_on_files(&text("syscall"))
}

/// Whether a thread waits in such a call, given the content of `/proc/self/task/N/syscall`. A running thread is in none.
fn is_on_files(syscall: &str) -> bool {
    let number = syscall.split_whitespace().next();
    let number = number.and_then(|number| number.parse::<c_long>().ok());
    number.is_some_and(|number| ON_FILES.contains(&number) || OLDER.contains(&number))
}

/// The file server on which a path lies by its name alone.
fn server_of(path: &Path, mounts: &[FileSystem]) -> Option<String> {
    let above = mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.mount_point));
    // The last mount hides earlier ones.
    let own = above.max_by_key(|mount| mount.mount_point.components().count())?;
    (own.kind == "nfs" || own.kind == "nfs4").then(|| own.source.clone())
}

/// The error of a run that waits, after its scratch files are removed as far as storage answers.
fn unanswered(state: &State) -> Error {
    let silent = &state.silent;
    let mut hint = match silent.places.iter().any(|(_, server)| server.is_some()) {
        true => "check the file server and the network. The kernel ends this process when the server answers, or after umount -f",
        false => "check the device, with dmesg. The kernel ends this process when it answers",
    }
    .to_owned();
    if silent.leaves_scratch() {
        hint += ". The next run there removes what is left of a scratch file, or names it";
    }
    if let Some(advice) = &state.advice {
        hint += &format!(". {advice}");
    }
    let patience = exact_duration(state.patience);
    Error::failed(format!(
        "{} has not answered for {patience}: requests to it wait in the kernel",
        silent.in_words()
    ))
    .hint(hint)
}

/// Adds the outcome of restoring the settings of the kernel that the run changed.
fn with_settings(error: Error, restored: Result<Vec<String>>) -> Error {
    let what = match restored {
        Ok(named) if named.is_empty() => return error,
        Ok(named) => format!("settings of the kernel are restored: {}", named.join("; ")),
        Err(why) => match why.remedy() {
            Some(remedy) => format!("{}; {remedy}", why.message()),
            None => why.message().to_owned(),
        },
    };
    error.also(what)
}

#[cfg(test)]
mod tests;
