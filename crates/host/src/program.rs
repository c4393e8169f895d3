//! One run of a program, timed as a whole: from the call that starts it until its end is seen.
//!
//! The program has an empty standard input. Its output goes to `/dev/null`, or is kept where the run is for it.
//! The end of its standard error is kept for the message if it fails. The program leads its own process group,
//! which is killed when the trial is over, so that no descendant survives.

use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::clock::Clock;
use crate::counters::{OpenAccount, account_of_collected, parse_run_delay_ns, reap};
use crate::observation::{self, Observation};
use iolab_storage::Target;
use iolab_workload::counters::{Counters, ResourceUse};
use iolab_workload::operation::PerOperation;
use iolab_workload::outcome::{
    Effective, Ended, FailedProgram, Failure, Outcome, ProgramEnd, Tally,
};
use iolab_workload::trial::TrialSpec;
use iolab_workload::{Error, Result};

/// Interval at which the stop flag is looked at. The program's end is not polled: it wakes this thread.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Bytes kept from the end of the program's standard error.
const LAST_WORDS_MAX: usize = 400;

mod child;

pub use child::Arguments;
use child::{Keep, Stream, end_of_process};

/// A program with its file found, so that its start needs no search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// File to execute.
    pub path: PathBuf,
    /// Arguments of the program.
    pub arguments: Arguments,
    /// Time after which the program is killed, and the trial has failed.
    pub time_limit: Option<Duration>,
    /// Bytes of standard output to keep. A program that writes more is killed, and the trial has failed. `None`
    /// drops the output. A program whose output is kept dies with iolab, even when iolab is killed.
    pub output_max: Option<usize>,
}

/// Result of one run of a program.
#[derive(Debug, Clone)]
pub struct ProgramRun {
    /// Outcome of the trial.
    pub outcome: Outcome,
    /// Standard output, where it is kept.
    pub output: Vec<u8>,
    /// Most memory that one of its processes had resident, bytes. iolab's own is the least, since the kernel counts it for
    /// a child before its program begins.
    pub resident_bytes: u64,
}

impl Program {
    /// Finds the file for `name` as a shell does: a name without a slash is looked up in `PATH`.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage) when this user may not execute such a file, or there is
    /// none.
    pub fn find(name: &Path) -> Result<PathBuf> {
        let place = name.display();
        let access = |path: &Path| rustix::fs::access(path, rustix::fs::Access::EXEC_OK);
        if name.as_os_str().as_encoded_bytes().contains(&b'/') {
            let is_file = name.metadata().map(|metadata| metadata.is_file());
            return match (is_file, access(name)) {
                (Ok(true), Ok(())) => Ok(name.to_owned()),
                (Err(error), _) => Err(Error::usage(format!("cannot run {place}: {error}"))
                    .hint("check the path; it is taken from the current directory")),
                _ => Err(
                    Error::usage(format!("{place} is not an executable program"))
                        .hint("give a program, or make it executable with chmod +x"),
                ),
            };
        }
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders)
            .map(|folder| folder.join(name))
            .find(|path| path.is_file() && access(path).is_ok())
            .ok_or_else(|| {
                Error::usage(format!("there is no program '{place}' in PATH"))
                    .hint("install it, or give its path: ./NAME in the current directory")
            })
    }

    /// Program and arguments in one line, for people.
    pub fn line(&self) -> String {
        std::iter::once(self.path.as_os_str())
            .chain(self.arguments.shown().iter().map(OsString::as_os_str))
            .map(|word| word.to_string_lossy().into_owned())
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// Runs a program once that reads or writes ranges of `files`. The page cache is first brought into the state
/// in `spec`; without files nothing is prepared or observed. Before and after the run, the paths of the files
/// have to lead to them.
///
/// The outcome reports as reads the count in the program's I/O account: every read call, the loader's included.
/// A program that fails, or is killed for taking too long, is not an error of this function: the outcome then
/// says [`Ended::Failed`]. Raising `stop` kills it and gives [`Ended::Interrupted`].
///
/// # Errors
/// The program cannot be started, or the cache cannot be prepared; of kind
/// [`Refused`](iolab_workload::Kind::Refused) when a path leads elsewhere.
pub fn run(
    program: &Program,
    files: &[(&Target, Range<u64>)],
    spec: &TrialSpec,
    clock: &Clock,
    stop: &AtomicBool,
) -> Result<ProgramRun> {
    for (file, range) in files {
        observation::prepare(spec, file, range.clone(), range.clone(), stop)?;
    }
    let (mut command, last_words, output) = prepare(program)?;
    let check_paths = || files.iter().try_for_each(|(file, _)| file.check_path());
    check_paths()?;
    let watched = files
        .iter()
        .map(|(file, range)| (*file, range.start, range.end - range.start));
    let mut observation = Observation::new(watched);
    let before = observation.before();
    let collected = account_of_collected();
    let anchor = clock.anchor();
    let start = clock.now();
    let deadline = program.time_limit.map(|limit| Instant::now() + limit);
    let running = Running::start(&mut command, program)?;
    // Opened while the program runs: after its end, only root may. A program that has already ended is found
    // among collected children.
    let account = OpenAccount::of(running.id());
    // From here on only the program has the write ends of the pipes.
    drop(command);
    let mut watch = Watch {
        end: end_of_process(running.pid)?,
        running,
        streams: [last_words, output],
        deadline,
    };
    let seen = watch.wait(clock, stop)?;
    let drift = clock.drift_ppm(anchor);
    let process_io = account.and_then(|account| account.read().map(|(io, _)| io));
    let run_delay_ns = watch.running.run_delay_ns();
    let (status, usage, resident_bytes) = watch.running.reap()?;
    let process_io = process_io.or_else(|| {
        let now = account_of_collected()?.0;
        Some(now.since(collected?.0))
    });
    let (counters, region) = observation.after(&before);
    let counters = Counters {
        process_io,
        usage,
        ..counters
    };
    if seen.why != Why::Stopped {
        check_paths()?;
    }
    let [last_words, output] = watch.streams;
    let failure = failed(&seen, status, program).map(|end| {
        Failure::Program(FailedProgram {
            command: program.line(),
            end,
            last_words: program.arguments.shown_in(&last_words.text()),
        })
    });
    let outcome = Outcome {
        ended: match (seen.why, &failure) {
            (Why::Stopped, _) => Ended::Interrupted,
            (_, Some(_)) => Ended::Failed,
            _ => Ended::Done,
        },
        elapsed_ns: clock.ns_between(start, seen.at),
        clock_drift_ppm: drift,
        region,
        run_delay_ns,
        ..outcome(counters, failure)
    };
    Ok(ProgramRun {
        outcome,
        output: output.into_bytes(),
        resident_bytes,
    })
}

/// The command with open streams, so that opening them is not timed, and the reading ends of its standard error
/// and output.
fn prepare(program: &Program) -> Result<(Command, Stream, Stream)> {
    let null = |write: bool| File::options().read(!write).write(write).open("/dev/null");
    let pipe = || -> std::io::Result<_> {
        let (from, to) = std::io::pipe()?;
        rustix::io::ioctl_fionbio(&from, true)?;
        Ok((from, to))
    };
    let refused = |error: std::io::Error| {
        Error::failed(format!(
            "the streams of a program cannot be opened: {error}"
        ))
        .hint("check the limit of open files (ulimit -n), and that /dev/null is there")
    };
    let (from, to) = pipe().map_err(refused)?;
    let mut command = Command::new(&program.path);
    command
        .args(program.arguments.given())
        .stdin(null(false).map_err(refused)?)
        .stderr(to)
        .process_group(0);
    let last_words = Stream::new(from, Keep::Last(LAST_WORDS_MAX));
    let Some(max) = program.output_max else {
        command.stdout(null(true).map_err(refused)?);
        return Ok((command, last_words, Stream::closed()));
    };
    let (from, to) = pipe().map_err(refused)?;
    command.stdout(to);
    die_with_parent(&mut command);
    Ok((command, last_words, Stream::new(from, Keep::First(max))))
}

/// Makes the kernel kill the program when this thread ends, in whatever way.
fn die_with_parent(command: &mut Command) {
    let parent = rustix::process::getpid();
    let arrange = move || -> std::io::Result<()> {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have ended before the request.
        match rustix::process::getppid() == Some(parent) {
            true => Ok(()),
            false => Err(ErrorKind::Interrupted.into()),
        }
    };
    // SAFETY: between fork and exec the closure makes two system calls and touches nothing that another thread may hold.
    unsafe { command.pre_exec(arrange) };
}

/// Failure of a program; `None` if it succeeded, or iolab stopped it.
fn failed(seen: &Seen, status: ExitStatus, program: &Program) -> Option<ProgramEnd> {
    match (seen.why, status.code(), status.signal()) {
        (Why::Stopped, ..) | (Why::Ended, Some(0), _) => None,
        (Why::TimeIsOver, ..) => Some(ProgramEnd::Time(program.time_limit.unwrap_or_default())),
        (Why::TooMuchOutput, ..) => Some(ProgramEnd::Output(program.output_max.unwrap_or(0))),
        (Why::Ended, Some(code), _) => Some(ProgramEnd::Code(code)),
        (Why::Ended, None, signal) => Some(ProgramEnd::Signal(signal.unwrap_or(0))),
    }
}

/// The part of the outcome that does not depend on how the program ended.
fn outcome(counters: Counters, failure: Option<Failure>) -> Outcome {
    let (bytes, requests) = counters
        .process_io
        .map_or((0, 0), |io| (io.rchar, io.syscr));
    let note = match counters.process_io {
        Some(_) => String::new(),
        None => "the program's I/O account cannot be read: its reads are not known".to_owned(),
    };
    Outcome {
        operations: PerOperation {
            read: Tally {
                requests,
                bytes,
                ..Tally::default()
            },
            ..PerOperation::default()
        },
        errors: u64::from(failure.is_some()),
        failure,
        counters,
        effective: Effective {
            note,
            ..Effective::default()
        },
        ..Outcome::default()
    }
}

/// Reason why the waiting ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Ended,
    Stopped,
    TimeIsOver,
    TooMuchOutput,
}

/// Moment at which the waiting ended, in ticks of the clock, and the reason.
struct Seen {
    at: u64,
    why: Why,
}

/// A running program. Dropping it kills its process group and collects its end.
struct Running {
    pid: Pid,
    reaped: bool,
}

impl Running {
    fn start(command: &mut Command, program: &Program) -> Result<Self> {
        let child = command.spawn().map_err(|error| {
            let message = format!("cannot run {}: {error}", program.path.display());
            match error.kind() {
                ErrorKind::NotFound => Error::usage(message)
                    .hint("check the path, and for a script the interpreter in its first line"),
                ErrorKind::PermissionDenied => Error::usage(message)
                    .hint("it must be executable, and not on a file system mounted noexec"),
                _ => Error::failed(message)
                    .hint("check that the program suits this machine, and the limit of processes (ulimit -u)"),
            }
        })?;
        Ok(Self {
            pid: Pid::from_child(&child),
            reaped: false,
        })
    }

    fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Kills the rest of the process group. Until the leader's end is collected, its number cannot be reused.
    fn kill(&self) {
        // An error means that all have ended, which is the purpose.
        let _ = kill_process_group(self.pid, Signal::KILL);
    }

    /// Time in which the first thread of the program was ready to run and waited for a CPU, ns; to be read before the end
    /// is collected. `None` where the kernel does not count it.
    fn run_delay_ns(&self) -> Option<u64> {
        let stat = format!("/proc/{}/schedstat", self.id());
        parse_run_delay_ns(&std::fs::read_to_string(stat).ok()?)
    }

    /// Collects the program's end: its status, its resource use with the children it waited for, and the most memory that
    /// one of them had resident, bytes.
    fn reap(&mut self) -> Result<(ExitStatus, ResourceUse, u64)> {
        self.kill();
        self.reaped = true;
        reap(self.pid.as_raw_nonzero().get()).map_err(|error| {
            Error::failed(format!("the end of a program was lost: {error}"))
                .hint("start iolab where the signal SIGCHLD is not ignored")
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.reaped {
            // No one is left to report to.
            let _ = self.reap();
        }
    }
}

/// Watch over a running program.
struct Watch {
    running: Running,
    end: OwnedFd,
    streams: [Stream; 2],
    deadline: Option<Instant>,
}

impl Watch {
    /// Waits until the program has ended or has to be stopped.
    fn wait(&mut self, clock: &Clock, stop: &AtomicBool) -> Result<Seen> {
        loop {
            let ended = self.sleep()?;
            // Before the stamp, so that a program whose time is over has had all of it.
            let now = Instant::now();
            let at = clock.now();
            let full = self.take(ended);
            let why = if full {
                Why::TooMuchOutput
            } else if ended {
                Why::Ended
            } else if stop.load(Ordering::Relaxed) {
                Why::Stopped
            } else if self.deadline.is_some_and(|end| now >= end) {
                Why::TimeIsOver
            } else {
                continue;
            };
            return Ok(Seen { at, why });
        }
    }

    /// Takes the output so far, or all that is to be kept once the program has ended. True when that is too
    /// much.
    fn take(&mut self, ended: bool) -> bool {
        for stream in &mut self.streams {
            while stream.take() && ended && stream.wants_more() {}
        }
        self.streams.iter().any(Stream::is_full)
    }

    /// Sleeps until something happens. True when the program has ended.
    fn sleep(&self) -> Result<bool> {
        let left = self.deadline.map_or(LOOK_EVERY, |end| {
            end.saturating_duration_since(Instant::now())
        });
        let left = left.min(LOOK_EVERY);
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut watched = vec![PollFd::new(&self.end, PollFlags::IN)];
        let pipes = self.streams.iter().filter_map(Stream::pipe);
        watched.extend(pipes.map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        match poll(&mut watched, Some(&timeout)) {
            Ok(_) => Ok(!watched[0].revents().is_empty()),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(Error::failed(format!(
                "cannot wait for the end of a program: {errno}"
            ))),
        }
    }
}

#[cfg(test)]
mod tests;
