//! Observation of programs and devices from outside, while they run as they would unobserved.
//!
//! This process becomes the subreaper of the program that it starts (prctl(2)), so that a daemon that leaves
//! its parent ends as iolab's child. When the end of a child is collected, the kernel adds the child's account
//! to this process's, with the accounts of the children that it waited for. So no right to read other processes
//! is needed. The program keeps its streams, its terminal and its process group; signals that reach only this
//! process are passed on.

#![allow(unsafe_code)] // system calls that no safe crate has

mod accounts;
mod descriptors;
mod exits;
mod group;
mod over_time;
mod process_tree;
mod running_process;
mod seen_file;
mod start_snapshot;
mod traced_program;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::observed::{Observed, ObservedEnd, ProcessTotals, Subject};
use crate::options::Options;
use iolab_command::output::note;
use iolab_storage::Stack;
use iolab_storage::procfs::numbers_in;
use iolab_workload::{Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{fcntl_dupfd_cloexec, read, retry_on_intr};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Pid;

use descriptors::Descriptors;
use exits::Exits;
use group::WitnessGroup;
use iolab_host::counters::account_of_collected;
use over_time::{Pace, Recorder};
use process_tree::{Came, Signals, Tree};
use running_process::RunningProcess;
use start_snapshot::{Before, ProgramTracer};

pub(crate) use process_tree::end_by;

/// Number of a block device: major, minor.
type Number = (u32, u32);

/// Subject of an observation.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WitnessOf<'a> {
    /// A program, started by the observation.
    Program {
        /// File to execute.
        file: &'a Path,
        /// Name and arguments of the program.
        words: &'a [OsString],
    },
    /// A running process, by its number.
    Process(u32),
    /// Block devices, by kernel name or path.
    Devices(&'a [PathBuf]),
}

/// Means of observation, whatever the subject.
struct Watch {
    signals: Signals,
    exits: Option<Exits>,
    /// Control group of the program or process, where it has one of its own.
    group: Option<WitnessGroup>,
    tracer: Option<ProgramTracer>,
    pace: Pace,
    recorder: Recorder,
    began: Instant,
    /// Latest end of the observation.
    end: Option<Instant>,
    /// Whether a signal has come.
    is_ended: bool,
}

impl Watch {
    /// Moment of the next action.
    fn until(&self) -> Instant {
        self.end
            .map_or(self.pace.next, |end| end.min(self.pace.next))
    }

    fn is_over(&self) -> bool {
        self.is_ended || self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Takes pending accounts of tasks, and signals.
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

/// Result of following processes.
struct Followed {
    subject: Subject,
    end: ObservedEnd,
    ended_ns: Option<u64>,
    observed_ns: u64,
    totals: ProcessTotals,
    /// Page faults with I/O, where processes are followed.
    faults: Option<u64>,
    /// Processes and tasks that were observed with all their descendants.
    ancestors: BTreeSet<u32>,
    /// Live processes among them, from which all other live ones descend. An ended one's number may have been
    /// reused.
    living: BTreeSet<u32>,
    descriptors: Descriptors,
}

/// Starts the program and observes it until all processes that it started have ended; or joins the process
/// until it ends; or watches the devices. A signal or the time limit ends the last two. If processes outlive the program, a signal ends the observation, and they go on.
///
/// This can be called once in a process: its signal handlers stay.
///
/// # Errors
/// The program cannot be started, or its end cannot be awaited; of kind
/// [`Usage`](iolab_workload::Kind::Usage) when there is no such process or device.
pub(crate) fn observe(of: WitnessOf<'_>, options: &Options) -> Result<Observed> {
    let cannot = |error: std::io::Error| {
        Error::failed(format!("cannot observe processes: {error}"))
            .hint("that needs Linux 3.4 or newer, and room for two more open files")
    };
    let watched = match of {
        WitnessOf::Devices(names) => devices(names)?,
        WitnessOf::Program { .. } | WitnessOf::Process(_) => Vec::new(),
    };
    let has_program = matches!(of, WitnessOf::Program { .. });
    let signals = Signals::watch(has_program).map_err(cannot)?;
    if has_program {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|errno| cannot(errno.into()))?;
    }
    // Preparing to trace takes a while, and the use of devices by others in that time must not count.
    let tracer = options.trace.then(ProgramTracer::begin).transpose()?;
    let exits = Exits::watch();
    let (before, joined) = Before::read(of, options.on.as_deref(), watched)?;
    let group = match of {
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
        recorder: before.recorder(began),
        began,
        end: options.time.and_then(|time| began.checked_add(time)),
        is_ended: false,
    };
    let followed = follow(of, options, joined, &mut watch)?;
    Ok(before.finish(watch, followed))
}

/// Follows the subject, a process that was joined if there is one, to its end.
fn follow(
    of: WitnessOf<'_>,
    options: &Options,
    joined: Option<RunningProcess>,
    watch: &mut Watch,
) -> Result<Followed> {
    if let (Some(tracer), Some(running)) = (&mut watch.tracer, &joined) {
        tracer.join(running.process);
    }
    match of {
        // The program's own output shows it.
        WitnessOf::Program { .. } => {}
        _ if options.time.is_some() => {}
        WitnessOf::Process(_) => {
            note("note: observing it until it ends; Ctrl-C ends the observation")
        }
        WitnessOf::Devices(_) => note("note: observing until Ctrl-C"),
    }
    if let Some(running) = joined {
        return running.follow(watch);
    }
    let WitnessOf::Program { file, words } = of else {
        return alone(watch);
    };
    let collected = account_of_collected();
    let child = match start(file, words, watch.group.as_ref()) {
        Ok(child) => child,
        // The program may be unable to begin in the group.
        Err(_) => {
            watch.group = None;
            start(file, words, None)?
        }
    };
    Tree::new(Pid::from_child(&child), words, collected).follow(watch)
}

/// Starts a program, and returns once the child has executed it.
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
    // The kernel lets this process go on while the child still closes descriptors that the program does not
    // inherit. A look at that time would take them for the program's open files.
    drop(until_then);
    let _ = retry_on_intr(|| read(&executed, &mut [0]));
    Ok(child)
}

/// Duplicate of a descriptor with a number above all others of this process. The kernel closes descriptors that
/// a program does not inherit in ascending order.
fn closed_last(end: OwnedFd) -> OwnedFd {
    let highest = numbers_in("/proc/self/fd").into_iter().max();
    let above = highest.map_or(0, |number| number + 1);
    fcntl_dupfd_cloexec(&end, above.cast_signed()).unwrap_or(end)
}

/// Stacks of the devices of these names.
fn devices(names: &[PathBuf]) -> Result<Vec<Stack>> {
    let stack = |name: &PathBuf| {
        let number: Option<Number> = over_time::number_of(name);
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

/// Waits for a signal, the end of the process, or a moment. True when the process has ended.
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

    /// The kernel closes descriptors of this process in a program only after it has let this process go on.
    #[test]
    fn started_program_has_no_descriptor_of_this_process() {
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

    /// Number of files that take a while to close.
    const OPEN: usize = 500;
    const SPAWNS: usize = 50;
}
