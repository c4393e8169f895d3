//! A program and all processes that it starts, observed from outside while they run as they would without.
//!
//! This process becomes the subreaper of its descendants (prctl(2)), so that a daemon that leaves its parent ends as a child of
//! ours. When the end of a child is collected, the kernel adds its account to that of this process, with those of the children that
//! it waited for; so no right to read other processes is needed. The program keeps its streams, its terminal and its process group; signals that reach this process alone are passed on.

mod accounts;
mod descriptors;
mod disks;
mod exits;
mod signals;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use iolab_storage::{Opened, Stack, meminfo};
use iolab_workload::counters::{ProcessIo, ResourceUse};
use iolab_workload::medium::Medium;
use iolab_workload::region_state::Region;
use iolab_workload::witness::{Observed, ObservedEnd, ObservedFile, ObservedTarget, ProcessTotals};
use iolab_workload::{Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use crate::counters::{
    self, FileRange, account_of, account_of_collected, extents, residency, resource_use,
};
use accounts::{Others, descendants, ignores_children, run_delay_ns};
use descriptors::Descriptors;
use disks::AllDevices;
use exits::Exits;
use signals::{Came, Signals};

pub use signals::end_by;

/// Longest and shortest time between two looks at the processes.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOOK_FIRST: Duration = Duration::from_millis(1);
/// The part of the time so far that passes between two looks, within these bounds: what lasts longer is seen, in a short program too.
const LOOK_SHARE: u32 = 16;

/// A program to observe.
#[derive(Debug, Clone)]
pub struct Witness<'a> {
    /// The file to execute.
    pub program: &'a Path,
    /// What it is called, and its arguments.
    pub words: &'a [OsString],
    /// A file, device or directory that it works on; it need not be there.
    pub target: Option<&'a Path>,
}

impl Witness<'_> {
    /// Runs the program until all processes that it started have ended, and tells what was observed. Where some outlive it,
    /// `outlived` is called once with their number; a signal then ends the observation, and the processes go on.
    ///
    /// This can be called once in a process: its signal handlers stay.
    ///
    /// # Errors
    /// When the program cannot be started, or its end not be waited for.
    pub fn observe(&self, outlived: &mut dyn FnMut(usize)) -> Result<Observed> {
        let cannot = |error: std::io::Error| {
            Error::failed(format!("cannot observe processes: {error}"))
                .hint("that needs Linux 3.4 or newer, and room for two more open files")
        };
        let signals = Signals::watch().map_err(cannot)?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|errno| cannot(errno.into()))?;
        let exits = Exits::watch();
        let target = self.target.map(Target::before);
        let others = Others::read();
        let dirty_before_bytes = dirty_bytes();
        let stacks: Vec<Stack> = target
            .iter()
            .filter_map(|target| target.stack.clone())
            .collect();
        let before = counters::snapshot(&stacks);
        let devices = AllDevices::read();
        let collected = account_of_collected();
        let began = Instant::now();
        let child = self.start()?;
        let mut tree = Tree::new(Pid::from_child(&child), exits);
        tree.follow(&signals, began, outlived)?;
        tree.add_accounts(collected);
        let now = AllDevices::read();
        let counted = counters::since(&before, &stacks);
        let others = Others::read().since(&others);
        let ways = tree.descriptors.finish();
        let target = target.map(Target::after);
        let files: Vec<_> = tree.descriptors.files.into_values().collect();
        let mut lie_on: Vec<Stack> = stacks;
        for stack in files.iter().map(|file| file.opened.stack()) {
            if stack.device.is_some() && !lie_on.contains(&stack) {
                lie_on.push(stack);
            }
        }
        Ok(Observed {
            command: self
                .words
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            end: tree.end,
            elapsed_ns: tree.ended_ns.unwrap_or_else(|| nanoseconds(began)),
            observed_ns: tree.observed_ns,
            observer_cpu_ns: counted.usage.user_ns + counted.usage.system_ns,
            processes: tree.totals,
            ways,
            files: files.iter().map(file_at_end).collect(),
            target,
            devices: now.lie_on(&devices, &lie_on),
            disks: now.disks_since(&devices),
            others,
            dirty_before_bytes,
            nfs: counted.nfs,
            pressure: counted.pressure,
        })
    }

    fn start(&self) -> Result<std::process::Child> {
        let mut command = Command::new(self.program);
        if let Some((name, arguments)) = self.words.split_first() {
            std::os::unix::process::CommandExt::arg0(&mut command, name);
            command.args(arguments);
        }
        command.spawn().map_err(|error| {
            let message = format!("cannot run {}: {error}", self.program.display());
            match error.kind() {
                std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => {
                    Error::usage(message).hint(
                        "check that it can be executed, and for a script the interpreter in its first line",
                    )
                }
                _ => Error::failed(message)
                    .hint("check the limit of processes (ulimit -u), and that it suits this machine"),
            }
        })
    }
}

/// Bytes of the page cache that have to be written.
fn dirty_bytes() -> Option<u64> {
    Some(meminfo::bytes("Dirty")?.saturating_add(meminfo::bytes("Writeback")?))
}

fn nanoseconds(since: Instant) -> u64 {
    since.elapsed().as_nanos() as u64
}

/// What the user named, before and after.
struct Target {
    path: PathBuf,
    /// A device is kept open: the kernel drops its pages when the last one closes it. A file is not, so that the program can delete it.
    opened: Option<Opened>,
    medium: Option<Medium>,
    stack: Option<Stack>,
    bytes: Option<u64>,
    region: Region,
}

impl Target {
    fn before(path: &Path) -> Self {
        let opened = Opened::open(path).ok();
        // A file that is to be made lies where its folder does.
        let folder = || {
            Opened::open(
                path.parent()
                    .filter(|parent| !parent.as_os_str().is_empty())
                    .unwrap_or(Path::new(".")),
            )
            .ok()
        };
        let stack = opened.as_ref().map(Opened::stack);
        let mut target = Self {
            path: path.to_owned(),
            stack: stack.or_else(|| folder().map(|folder| folder.stack())),
            bytes: opened.as_ref().and_then(Opened::bytes),
            medium: opened.as_ref().map(Opened::medium),
            opened,
            region: Region::default(),
        };
        target.region.before = target.look(residency);
        let is_file = target.opened.as_ref().is_some_and(Opened::is_file);
        target.region.extents = target.look(extents).filter(|_| is_file);
        target.opened = target.opened.filter(|_| !is_file);
        target
    }

    fn look<T>(&self, look: impl Fn(&[FileRange<'_>]) -> Option<T>) -> Option<T> {
        let opened = self.opened.as_ref()?;
        look(&[range_of(opened)?])
    }

    fn after(mut self) -> ObservedTarget {
        self.opened = self.opened.or_else(|| Opened::open(&self.path).ok());
        let opened = self.opened.as_ref();
        let medium = self.medium.or_else(|| opened.map(Opened::medium));
        ObservedTarget {
            medium: medium.unwrap_or(Medium::Storage),
            bytes: match self.medium {
                Some(_) => self.bytes,
                None => opened.and_then(Opened::bytes),
            },
            region: Region {
                after: self.look(residency),
                ..self.region
            },
            path: self.path,
        }
    }
}

/// All of a file or device; `None` for what has no bytes to look at.
fn range_of(opened: &Opened) -> Option<FileRange<'_>> {
    let length = opened.bytes().filter(|bytes| *bytes > 0)?;
    Some(FileRange {
        file: opened.holder(),
        offset: 0,
        length,
    })
}

fn file_at_end(seen: &descriptors::SeenFile) -> ObservedFile {
    ObservedFile {
        path: seen.path.clone(),
        medium: seen.opened.medium(),
        bytes: seen.opened.bytes().unwrap_or(0),
        is_read: seen.is_read,
        is_written: seen.is_written,
        has_device: seen.opened.stack().device.is_some(),
        after: range_of(&seen.opened).and_then(|range| residency(&[range])),
    }
}

/// The program with all that descends from it.
struct Tree {
    program: Pid,
    end: ObservedEnd,
    ended_ns: Option<u64>,
    observed_ns: u64,
    totals: ProcessTotals,
    /// What each process waited for CPUs, as of the last look at it, ns.
    delays: BTreeMap<u32, u64>,
    descriptors: Descriptors,
    exits: Option<Exits>,
}

impl Tree {
    fn new(program: Pid, exits: Option<Exits>) -> Self {
        Self {
            program,
            exits,
            end: ObservedEnd::Running,
            ended_ns: None,
            observed_ns: 0,
            totals: ProcessTotals::default(),
            delays: BTreeMap::new(),
            descriptors: Descriptors::new(),
        }
    }

    fn follow(
        &mut self,
        signals: &Signals,
        began: Instant,
        outlived: &mut dyn FnMut(usize),
    ) -> Result<()> {
        let mut look_at = began;
        let mut told = false;
        let mut living = true;
        while living {
            if Instant::now() >= look_at {
                self.look();
                let pause = began.elapsed() / LOOK_SHARE;
                look_at = Instant::now() + pause.clamp(LOOK_FIRST, LOOK_EVERY);
            }
            wait(signals, self.exits.as_ref(), look_at)?;
            if let Some(exits) = &mut self.exits {
                exits.take();
            }
            let came = signals.take();
            living = self.collect(began)?;
            let has_ended = self.ended_ns.is_some();
            if has_ended && living && !told {
                told = true;
                outlived(descendants().len());
            }
            for one in came.iter().filter(|one| one.signal != libc::SIGCHLD) {
                match has_ended {
                    true => living = false,
                    false => self.pass_on(*one),
                }
            }
        }
        self.observed_ns = nanoseconds(began);
        self.totals.run_delay_ns = self.delays.values().sum();
        Ok(())
    }

    fn look(&mut self) {
        let processes = descendants();
        self.descriptors.look(&processes);
        for process in processes {
            self.totals.ignores_children |= ignores_children(process);
            if let Some(delay) = run_delay_ns(process) {
                self.delays.insert(process, delay);
            }
        }
    }

    /// What the terminal sends reaches the program by itself.
    fn pass_on(&self, came: Came) {
        if let Some(signal) = Signal::from_named_raw(came.signal).filter(|_| !came.by_kernel) {
            // It may have ended meanwhile.
            let _ = kill_process(self.program, signal);
        }
    }

    /// Collects the ends of all children that have ended; whether any child is left.
    fn collect(&mut self, began: Instant) -> Result<bool> {
        loop {
            let Some(process) = ended_child()? else {
                return Ok(true);
            };
            if process == 0 {
                return Ok(false);
            }
            self.totals.collected += 1;
            let (status, usage) = reap(process)?;
            self.totals.usage = self.totals.usage.plus(usage);
            if process == self.program.as_raw_nonzero().get().unsigned_abs() {
                self.ended_ns = Some(nanoseconds(began));
                self.end = match (status.code(), status.signal()) {
                    (Some(code), _) => ObservedEnd::Code(code),
                    (None, signal) => ObservedEnd::Signal(signal.unwrap_or(0)),
                };
            }
        }
    }

    /// Adds up the accounts of all that have ended and of those that have not, since this one of children.
    fn add_accounts(&mut self, before: Option<(ProcessIo, u64)>) {
        let Some((before, now)) = before.zip(account_of_collected()) else {
            return;
        };
        let mut io = now.0.since(before.0);
        let mut cancelled = now.1.saturating_sub(before.1);
        let running = descendants();
        // The account of one that runs has children in it that have ended, so that the two are not added.
        let ended = self.of_ended_tasks().filter(|_| running.is_empty());
        if let Some((all, all_cancelled)) = ended {
            // Children whose ends their parents ignore are in no other account.
            io = io.with(all, |a, b| a.max(b));
            cancelled = cancelled.max(all_cancelled);
            self.totals.is_complete = true;
        }
        for process in running {
            self.totals.running += 1;
            match account_of(process) {
                Some((own, own_cancelled)) => {
                    io = io.plus(own);
                    cancelled += own_cancelled;
                }
                None => self.totals.unread += 1,
            }
        }
        self.totals.io = Some(io);
        self.totals.cancelled_write_bytes = cancelled;
    }

    fn of_ended_tasks(&mut self) -> Option<(ProcessIo, u64)> {
        let exits = self.exits.as_mut()?;
        exits.take();
        exits.of_descendants(BTreeSet::from([std::process::id()]))
    }
}

/// Waits until a signal comes, a task has ended, or a moment.
fn wait(signals: &Signals, exits: Option<&Exits>, until: Instant) -> Result<()> {
    let mut sources = vec![PollFd::new(signals, PollFlags::IN)];
    sources.extend(exits.map(|exits| PollFd::new(exits, PollFlags::IN)));
    let left = until.saturating_duration_since(Instant::now());
    let timeout = Timespec::try_from(left).ok();
    match poll(&mut sources, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(lost(errno.into())),
    }
}

/// A child that has ended and was not collected; 0 where there is no child, `None` where all are running.
fn ended_child() -> Result<Option<u32>> {
    // SAFETY: all-zero bytes are a valid siginfo.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the pointer is to a writable siginfo, for the time of the call.
    if unsafe { libc::waitid(libc::P_ALL, 0, &mut info, flags) } == 0 {
        // SAFETY: the call has filled it in, or left it zero.
        let process = unsafe { info.si_pid() };
        return Ok(Some(process.unsigned_abs()).filter(|process| *process != 0));
    }
    let error = std::io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ECHILD) => Ok(Some(0)),
        Some(libc::EINTR) => Ok(None),
        _ => Err(lost(error)),
    }
}

/// Collects the end of a child: its status, and what it and the children that it waited for used.
fn reap(process: u32) -> Result<(ExitStatus, ResourceUse)> {
    let mut status = 0;
    // SAFETY: all-zero bytes are a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to writable memory of the right types, for the time of the call.
        let waited = unsafe { libc::wait4(process.cast_signed(), &mut status, 0, &mut usage) };
        if waited > 0 {
            return Ok((ExitStatus::from_raw(status), resource_use(&usage)));
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(lost(error));
        }
    }
}

fn lost(error: std::io::Error) -> Error {
    Error::failed(format!("the end of a process was lost: {error}"))
        .hint("look into the kernel's log (dmesg) for errors")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_can_delete_the_file_that_the_user_named() {
        let file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
        std::fs::write(file.path(), [1; 1 << 16]).expect("written");
        let target = Target::before(file.path());
        assert!(target.opened.is_none() && target.region.before.is_some());
        drop(file);
        let after = target.after();
        assert_eq!((after.bytes, after.region.after), (Some(1 << 16), None));
    }
}
