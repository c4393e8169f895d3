//! Programs and devices, observed from outside while they run as they would without.
//!
//! This process becomes the subreaper of the program that it starts (prctl(2)), so that a daemon that leaves its parent ends as a child of
//! ours. When the end of a child is collected, the kernel adds its account to that of this process, with those of the children that
//! it waited for; so no right to read other processes is needed. The program keeps its streams, its terminal and its process group; signals that reach this process alone are passed on.

mod accounts;
mod descriptors;
mod disks;
mod exits;
mod group;
mod mappings;
mod over_time;
mod process_tree;
mod running_process;
mod seen_file;
mod signals;
mod start_snapshot;
mod target;
mod trace;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::{OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use iolab_storage::Stack;
use iolab_workload::witness::{Observed, ObservedEnd, ProcessTotals, Subject};
use iolab_workload::{Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{fcntl_dupfd_cloexec, read, retry_on_intr};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Pid;

use crate::counters::account_of_collected;
use descriptors::Descriptors;
use exits::Exits;
use group::WitnessGroup;
use over_time::{Pace, Recorder};
use process_tree::Tree;
use running_process::RunningProcess;
use signals::{Came, Signals};
use start_snapshot::Before;
use trace::ProgramTracer;

pub use signals::end_by;

/// The number of a block device: major, minor.
type Number = (u32, u32);

/// What to observe.
#[derive(Debug, Clone)]
pub enum WitnessOf<'a> {
    /// A program, which is started.
    Program {
        /// The file to execute.
        file: &'a Path,
        /// What it is called, and its arguments.
        words: &'a [OsString],
    },
    /// A process that runs, by its number.
    Process(u32),
    /// Block devices, by kernel name or path.
    Devices(&'a [PathBuf]),
}

/// An observation to make.
#[derive(Debug, Clone)]
pub struct Witness<'a> {
    /// What is observed.
    pub of: WitnessOf<'a>,
    /// A file, device or directory that the program works on; it need not be there.
    pub target: Option<&'a Path>,
    /// When to end the observation of something that was not started by it.
    pub time: Option<Duration>,
    /// Whether the kernel's trace events are recorded, of a program or process.
    pub trace: bool,
}

/// What an observer is told while it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Milestone {
    /// All has been read that the end is compared with: what a process or device does from now on counts. A program is started next.
    Began,
    /// The program has ended, and so many processes that it started have not.
    Outlived(usize),
    /// What was traced cannot be read.
    TraceLost,
}

/// What observing takes, whatever it is of.
struct Watch {
    signals: Signals,
    exits: Option<Exits>,
    /// The control group of the program or process, where it has one of its own.
    group: Option<WitnessGroup>,
    tracer: Option<ProgramTracer>,
    pace: Pace,
    recorder: Recorder,
    began: Instant,
    /// When the observation ends, if not before.
    end: Option<Instant>,
    /// A signal has come.
    is_ended: bool,
}

impl Watch {
    /// When to do something next.
    fn until(&self) -> Instant {
        self.end
            .map_or(self.pace.next, |end| end.min(self.pace.next))
    }

    fn is_over(&self) -> bool {
        self.is_ended || self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Takes what has come: accounts of tasks, and signals.
    fn take(&mut self) -> Vec<Came> {
        if let Some(exits) = &mut self.exits {
            exits.take();
        }
        let came = self.signals.take().into_iter();
        let came: Vec<Came> = came.filter(|one| one.signal != libc::SIGCHLD).collect();
        self.is_ended |= !came.is_empty();
        came
    }
}

/// What is observed, when its observation can begin.
enum Ready<'a> {
    Program {
        file: &'a Path,
        words: &'a [OsString],
    },
    Process(Box<RunningProcess>),
    Devices,
}

/// What following processes has given.
struct Followed {
    subject: Subject,
    end: ObservedEnd,
    ended_ns: Option<u64>,
    observed_ns: u64,
    totals: ProcessTotals,
    /// Page faults with I/O, where processes are followed.
    faults: Option<u64>,
    /// Processes and tasks: these and all that descends from them were observed.
    ancestors: BTreeSet<u32>,
    /// The processes among them that live, from which all others descend that do: the number of one that has ended may be another's.
    living: BTreeSet<u32>,
    descriptors: Descriptors,
}

impl Witness<'_> {
    /// Starts the program and observes it until all processes that it started have ended; joins the process until it ends;
    /// or watches the devices. A signal or the time ends the last two. `tell` is called at each milestone. Where processes outlive the
    /// program, a signal ends the observation, and they go on.
    ///
    /// This can be called once in a process: its signal handlers stay.
    ///
    /// # Errors
    /// When the program cannot be started, or its end not be waited for; of kind [`Usage`](iolab_workload::Kind::Usage) when there
    /// is no such process or device.
    pub fn observe(&self, tell: &mut dyn FnMut(Milestone)) -> Result<Observed> {
        let cannot = |error: std::io::Error| {
            Error::failed(format!("cannot observe processes: {error}"))
                .hint("that needs Linux 3.4 or newer, and room for two more open files")
        };
        let watched = match self.of {
            WitnessOf::Devices(names) => devices(names)?,
            WitnessOf::Program { .. } | WitnessOf::Process(_) => Vec::new(),
        };
        let has_program = matches!(self.of, WitnessOf::Program { .. });
        let signals = Signals::watch(has_program).map_err(cannot)?;
        if has_program {
            rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
                .map_err(|errno| cannot(errno.into()))?;
        }
        // It takes a while: what others do with the devices meanwhile does not count.
        let tracer = self.trace.then(ProgramTracer::begin).transpose()?;
        let exits = Exits::watch();
        let (before, ready) = Before::read(self, watched)?;
        let group = match self.of {
            WitnessOf::Program { .. } => WitnessGroup::of_next(),
            WitnessOf::Process(process) => WitnessGroup::of(process),
            WitnessOf::Devices(_) => None,
        };
        let began = Instant::now();
        let mut watch = Watch {
            signals,
            exits,
            group,
            tracer,
            pace: Pace::new(began),
            recorder: Recorder::new(began, before.devices_of_target()),
            began,
            end: self.time.and_then(|time| began.checked_add(time)),
            is_ended: false,
        };
        let followed = ready.follow(&mut watch, tell)?;
        Ok(before.finish(watch, followed, tell))
    }
}

impl Ready<'_> {
    /// Follows it to its end.
    fn follow(self, watch: &mut Watch, tell: &mut dyn FnMut(Milestone)) -> Result<Followed> {
        if let (Some(tracer), Self::Process(running)) = (&mut watch.tracer, &self) {
            tracer.join(running.process);
        }
        tell(Milestone::Began);
        match self {
            Self::Process(running) => running.follow(watch),
            Self::Program { file, words } => {
                let collected = account_of_collected();
                let child = match start(file, words, watch.group.as_ref()) {
                    Ok(child) => child,
                    // It may be the group that it cannot begin in.
                    Err(_) => {
                        watch.group = None;
                        start(file, words, None)?
                    }
                };
                Tree::new(Pid::from_child(&child), words, collected).follow(watch, tell)
            }
            Self::Devices => alone(watch),
        }
    }
}

/// Starts a program, and returns once it has taken the place of this one in the child.
fn start(
    file: &Path,
    words: &[OsString],
    group: Option<&WitnessGroup>,
) -> Result<std::process::Child> {
    let mut command = Command::new(file);
    if let Some((name, arguments)) = words.split_first() {
        std::os::unix::process::CommandExt::arg0(&mut command, name);
        command.args(arguments);
    }
    if let Some(group) = group {
        group.hold(&mut command).map_err(|error| {
            Error::failed(format!(
                "the control group of the program cannot be used: {error}"
            ))
        })?;
    }
    let (executed, until_then) = pipe_with(PipeFlags::CLOEXEC).map_err(|errno| {
        Error::failed(format!("no pipe to the program: {errno}"))
            .hint("check the limit of open files (ulimit -n)")
    })?;
    let until_then = closed_last(until_then);
    let child = command.spawn().map_err(|error| {
        let message = format!("cannot run {}: {error}", file.display());
        match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => Error::usage(
                message,
            )
            .hint(
                "check that it can be executed, and for a script the interpreter in its first line",
            ),
            _ => Error::failed(message)
                .hint("check the limit of processes (ulimit -u), and that it suits this machine"),
        }
    })?;
    // The kernel lets this process go on while it still closes in the child what the program does not get: a look would take that
    // for what the program has open.
    drop(until_then);
    let _ = retry_on_intr(|| read(&executed, &mut [0]));
    Ok(child)
}

/// The same with a number above all that this process has open: the kernel closes in the order of the numbers what a program does not
/// get.
fn closed_last(end: OwnedFd) -> OwnedFd {
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<RawFd>().ok();
    let highest = open.flatten().filter_map(number).max();
    let above = highest.map_or(0, |number| number + 1);
    fcntl_dupfd_cloexec(&end, above).unwrap_or(end)
}

/// The devices of these names.
fn devices(names: &[PathBuf]) -> Result<Vec<Stack>> {
    let stack = |name: &PathBuf| {
        let number: Option<Number> = disks::number_of(name);
        let device = number.ok_or_else(|| {
            Error::usage(format!("{} is not a block device", name.display()))
                .hint("lsblk lists them: iolab witness --device NAME")
        })?;
        Ok(Stack {
            device: Some(device),
            ..Stack::default()
        })
    };
    names.iter().map(stack).collect()
}

/// Watches devices, and no process.
fn alone(watch: &mut Watch) -> Result<Followed> {
    while !watch.is_over() {
        let (pace, recorder) = (&mut watch.pace, &mut watch.recorder);
        pace.look(|| {
            if recorder.is_due() {
                recorder.record(None);
            }
        });
        wait(&watch.signals, None, watch.until())?;
        watch.take();
    }
    Ok(Followed {
        subject: Subject::Devices,
        end: ObservedEnd::Running,
        ended_ns: None,
        observed_ns: nanoseconds(watch.began),
        totals: ProcessTotals::default(),
        faults: None,
        ancestors: BTreeSet::new(),
        living: BTreeSet::new(),
        descriptors: Descriptors::new(),
    })
}

fn nanoseconds(since: Instant) -> u64 {
    since.elapsed().as_nanos() as u64
}

/// Waits until a signal comes, a process has ended, or a moment; whether the process has.
fn wait(signals: &Signals, process: Option<&OwnedFd>, until: Instant) -> Result<bool> {
    let mut sources = vec![PollFd::new(signals, PollFlags::IN)];
    sources.extend(process.map(|process| PollFd::new(process, PollFlags::IN)));
    let left = until.saturating_duration_since(Instant::now());
    let timeout = Timespec::try_from(left).ok();
    match poll(&mut sources, timeout.as_ref()) {
        Ok(_) => Ok(sources
            .get(1)
            .is_some_and(|process| !process.revents().is_empty())),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(errno) => Err(lost(errno.into())),
    }
}

fn lost(error: std::io::Error) -> Error {
    Error::failed(format!("the end of a process was lost: {error}"))
        .hint("look into the kernel's log (dmesg) for errors")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What this process has open is closed in a program only after the kernel has let this one go on.
    #[test]
    fn a_program_that_has_started_holds_nothing_of_this_process() {
        let own = tempfile::NamedTempFile::new().expect("a file");
        let path = own.path().canonicalize().expect("its path");
        let open = std::iter::repeat_with(|| std::fs::File::open(&path).expect("it opens"));
        let _open: Vec<_> = open.take(OPEN).collect();
        let words = ["sleep", "0.2"].map(OsString::from);
        let start_one = |_| start(Path::new("/bin/sleep"), &words, None).expect("it starts");
        let held = |child: &std::process::Child| {
            let open = std::fs::read_dir(format!("/proc/{}/fd", child.id()));
            open.expect("descriptors").count() >= OPEN
        };
        let started = (0..SPAWNS).map(start_one);
        let started = started.map(|child| (held(&child), child));
        let (held, children): (Vec<bool>, Vec<_>) = started.unzip();
        for mut child in children {
            child.wait().expect("its end");
        }
        assert_eq!(held, [false; SPAWNS]);
    }

    /// Files that take a while to close.
    const OPEN: usize = 500;
    const SPAWNS: usize = 50;
}
