//! One run of a program, timed as a whole: from the call that starts it until its end is seen.
//!
//! The program reads nothing from its standard input and its output goes to `/dev/null`; of what it writes to its
//! standard error the last is kept for the message should it fail. It leads a process group of its own, which is killed
//! when the trial is over: nothing that it started stays behind.

use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, PipeReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::clock::Clock;
use crate::counters::{Counters, ResourceUse, process_io_of, resource_use};
use crate::error::{Error, Result};
use crate::outcome::{Effective, Ended, FailedProgram, Failure, Outcome, ProgramEnd, Tally};
use crate::series::Series;
use crate::spec::{CacheState, TrialSpec};
use crate::target::Target;
use crate::trial::{empty_tally, prepare_cache};
use crate::witness::{Region, Witness};

/// Time after which the stop flag is looked at again. The program's end is not waited for in steps: it wakes us.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Bytes of the program's last words that are kept.
const LAST_WORDS_MAX: usize = 400;

/// A program to run, ready to be started without a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The file to execute.
    pub path: PathBuf,
    /// Its arguments, the program's own name not among them.
    pub arguments: Vec<OsString>,
    /// Kills it, and fails the trial, when it has not ended by then.
    pub time_limit: Option<Duration>,
}

impl Program {
    /// Finds the file that `name` stands for as a shell does: a name without a slash is looked for in `PATH`.
    ///
    /// # Errors
    /// Of kind usage when there is none that this user may execute.
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
                    Error::usage(format!("{place} is no program that may be executed"))
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

    /// The program and its arguments, for messages.
    fn line(&self) -> String {
        std::iter::once(self.path.as_os_str())
            .chain(self.arguments.iter().map(OsString::as_os_str))
            .map(|word| word.to_string_lossy().into_owned())
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// Runs a program once that reads `file`, whose pages are brought into the state `cache` before.
///
/// The outcome tells as reads what the program's own I/O account counted: every read call, those of the loader
/// included. A program that fails, or is killed for taking too long, is no error of this function: the outcome then
/// says [`Ended::Failed`]. Raising `stop` kills it and gives [`Ended::Interrupted`].
///
/// # Errors
/// When the program cannot be started, or the cache cannot be prepared.
pub fn run(
    program: &Program,
    file: &Target,
    cache: CacheState,
    clock: &Clock,
    stop: &AtomicBool,
) -> Result<Outcome> {
    let whole = TrialSpec {
        region: file.size(),
        cache,
        ..TrialSpec::default()
    };
    prepare_cache(&whole, file, stop)?;
    let (mut command, last_words) = prepare(program)?;
    let mut witness = Witness::new(Some(file), 0, file.size());
    let before = witness.before();
    let anchor = clock.anchor();
    let deadline = program.time_limit.map(|limit| Instant::now() + limit);
    let start = clock.now();
    let running = Running::start(&mut command, program)?;
    // The write end of the pipe is the program's alone from here on.
    drop(command);
    let mut watch = Watch {
        end: running.end()?,
        running,
        last_words,
        deadline,
    };
    let seen = watch.wait(clock, stop)?;
    let drift = clock.drift_ppm(anchor);
    let process_io = process_io_of(watch.running.id());
    let (status, usage) = watch.running.reap()?;
    let (counters, region) = witness.after(&before);
    let counters = Counters {
        process_io,
        usage,
        ..counters
    };
    let failure = failed(&seen, status, program).map(|end| {
        Failure::Program(FailedProgram {
            command: program.line(),
            end,
            last_words: watch.last_words.text(),
        })
    });
    Ok(Outcome {
        ended: match (seen.why, &failure) {
            (Why::Stopped, _) => Ended::Interrupted,
            (_, Some(_)) => Ended::Failed,
            _ => Ended::Done,
        },
        elapsed_ns: clock.ns_between(start, seen.at),
        clock_drift_ppm: drift,
        region,
        ..outcome(counters, failure)
    })
}

/// The command with its streams opened, so that nothing of that falls into the timed span.
fn prepare(program: &Program) -> Result<(Command, LastWords)> {
    let null = |write: bool| File::options().read(!write).write(write).open("/dev/null");
    let streams = || -> std::io::Result<_> {
        let (from, to) = std::io::pipe()?;
        rustix::io::ioctl_fionbio(&from, true)?;
        Ok((null(false)?, null(true)?, from, to))
    };
    let (input, output, from, to) = streams().map_err(|error| {
        Error::failed(format!(
            "the streams of a program cannot be opened: {error}"
        ))
        .hint("check the limit of open files (ulimit -n), and that /dev/null is there")
    })?;
    let mut command = Command::new(&program.path);
    command
        .args(&program.arguments)
        .stdin(input)
        .stdout(output)
        .stderr(to)
        .process_group(0);
    Ok((command, LastWords::new(from)))
}

/// How a program ended that did not succeed; `None` for one that did, or that we stopped.
fn failed(seen: &Seen, status: ExitStatus, program: &Program) -> Option<ProgramEnd> {
    match (seen.why, status.code(), status.signal()) {
        (Why::Stopped, ..) | (Why::Ended, Some(0), _) => None,
        (Why::TimeIsOver, ..) => Some(ProgramEnd::Time(program.time_limit.unwrap_or_default())),
        (Why::Ended, Some(code), _) => Some(ProgramEnd::Code(code)),
        (Why::Ended, None, signal) => Some(ProgramEnd::Signal(signal.unwrap_or(0))),
    }
}

/// All of the outcome that does not depend on how the program ended.
fn outcome(counters: Counters, failure: Option<Failure>) -> Outcome {
    let (bytes, requests) = counters
        .process_io
        .map_or((0, 0), |io| (io.rchar, io.syscr));
    let note = match counters.process_io {
        Some(_) => String::new(),
        None => "the program's I/O account cannot be read: its reads are not known".to_owned(),
    };
    Outcome {
        reads: Tally {
            requests,
            bytes,
            ..empty_tally()
        },
        writes: empty_tally(),
        syncs: 0,
        errors: u64::from(failure.is_some()),
        failure,
        ended: Ended::Done,
        elapsed_ns: 0,
        all_active_ns: 0,
        end_sync_ns: 0,
        clock_drift_ppm: 0.0,
        counters,
        region: Region::default(),
        effective: Effective {
            note,
            ..Effective::default()
        },
        pace: None,
        series: Series::default(),
        verified: None,
    }
}

/// Why the waiting ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Ended,
    Stopped,
    TimeIsOver,
}

/// When the waiting ended, in ticks of the clock, and why.
struct Seen {
    at: u64,
    why: Why,
}

/// A program under way. Dropping it kills its process group and takes note of its end.
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
                    .hint("it must be executable, and not lie on a file system mounted noexec"),
                _ => Error::failed(message)
                    .hint("check that the program suits this machine, and the limit of processes (ulimit -u)"),
            }
        })?;
        Ok(Self {
            pid: Pid::from_child(&child),
            reaped: false,
        })
    }

    /// A descriptor that can be read from once the program has ended.
    fn end(&self) -> Result<OwnedFd> {
        pidfd_open(self.pid, PidfdFlags::empty()).map_err(|errno| {
            Error::failed(format!(
                "the end of a program cannot be waited for: {errno}"
            ))
            .hint("that needs Linux 5.3 or newer, and room for one more open file")
        })
    }

    fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Kills what is left of the process group. As long as nobody took note of the leader's end, its number stands
    /// for nothing else.
    fn kill(&self) {
        // It fails when all have ended, which is what is wanted.
        let _ = kill_process_group(self.pid, Signal::KILL);
    }

    /// Takes note of the program's end: its status, and what it and the children it waited for used.
    fn reap(&mut self) -> Result<(ExitStatus, ResourceUse)> {
        self.kill();
        self.reaped = true;
        let mut status = 0;
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        loop {
            let pid = self.pid.as_raw_nonzero().get();
            // SAFETY: both pointers are to writable memory of the right types, for the time of the call.
            let waited = unsafe { libc::wait4(pid, &mut status, 0, usage.as_mut_ptr()) };
            if waited == pid {
                break;
            }
            let error = std::io::Error::last_os_error();
            if error.kind() != ErrorKind::Interrupted {
                return Err(
                    Error::failed(format!("the end of a program was lost: {error}"))
                        .hint("start iolab where the signal SIGCHLD is not ignored"),
                );
            }
        }
        // SAFETY: all-zero bytes are a valid rusage, and the call has filled it in.
        let usage = unsafe { usage.assume_init() };
        Ok((ExitStatus::from_raw(status), resource_use(&usage)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.reaped {
            // There is nobody left to be told.
            let _ = self.reap();
        }
    }
}

/// What is looked at while a program runs.
struct Watch {
    running: Running,
    end: OwnedFd,
    last_words: LastWords,
    deadline: Option<Instant>,
}

impl Watch {
    /// Waits until the program has ended, or is to be ended.
    fn wait(&mut self, clock: &Clock, stop: &AtomicBool) -> Result<Seen> {
        loop {
            let ended = self.sleep()?;
            let at = clock.now();
            self.last_words.take();
            let why = if ended {
                Why::Ended
            } else if stop.load(Ordering::Relaxed) {
                Why::Stopped
            } else if self.deadline.is_some_and(|end| Instant::now() >= end) {
                Why::TimeIsOver
            } else {
                continue;
            };
            return Ok(Seen { at, why });
        }
    }

    /// Sleeps until something happens, and tells whether the program has ended.
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
        if let Some(pipe) = &self.last_words.pipe {
            watched.push(PollFd::new(pipe, PollFlags::IN));
        }
        match poll(&mut watched, Some(&timeout)) {
            Ok(_) => Ok(!watched[0].revents().is_empty()),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(Error::failed(format!(
                "the end of a program cannot be waited for: {errno}"
            ))),
        }
    }
}

/// The last bytes that came through a pipe.
struct LastWords {
    /// `None` once the other side has closed it.
    pipe: Option<PipeReader>,
    bytes: Vec<u8>,
}

impl LastWords {
    fn new(pipe: PipeReader) -> Self {
        Self {
            pipe: Some(pipe),
            bytes: Vec::new(),
        }
    }

    /// Takes what has come, without waiting. One buffer a time: a program that writes without end must not keep us
    /// from seeing that it is to be stopped.
    fn take(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let mut buffer = [0; 1 << 16];
        match pipe.read(&mut buffer) {
            Ok(count) if count > 0 => {
                self.bytes.extend_from_slice(&buffer[..count]);
                let surplus = self.bytes.len().saturating_sub(LAST_WORDS_MAX);
                self.bytes.drain(..surplus);
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Ok(_) | Err(_) => self.pipe = None,
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).trim().to_owned()
    }
}

#[cfg(test)]
mod tests;
