//! Signals: each asks for a clean end. The first Ctrl-C lets a trial in flight come to its end.

use std::cell::OnceCell;
use std::ffi::c_int;
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use iolab_runner::Stop;
use iolab_workload::{Error, Result};
use signal_hook::consts::{
    SIGABRT, SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGSYS, SIGTERM, SIGTRAP, SIGUSR1,
    SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
};
use signal_hook::low_level::pipe;
use signal_hook::{SigId, flag};

use crate::output::note;

/// Signals that end a process by default and that it can live through, after signal(7). What is left are SIGKILL, which
/// no process catches, and the processor's own faults (SIGSEGV, SIGBUS, SIGILL, SIGFPE), after which the process cannot go on.
const ENDING: [c_int; 14] = [
    SIGHUP, SIGINT, SIGQUIT, SIGTRAP, SIGABRT, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM, SIGXCPU,
    SIGVTALRM, SIGPROF, SIGIO, SIGSYS,
];
/// Numbers of the signals that only Linux has: SIGSTKFLT and SIGPWR, on all architectures but MIPS, SPARC and PA-RISC.
const ENDING_ON_LINUX: [c_int; 2] = [16, 30];
/// The real-time signals. The C library keeps the first for itself, and they cannot be caught.
const REAL_TIME: RangeInclusive<c_int> = 32..=64;
/// A shell that starts a command in the background makes it ignore these; one that is sent to it is meant nevertheless.
const FROM_TERMINAL: [c_int; 2] = [SIGINT, SIGQUIT];

/// A flag that every signal raises that would end the process. A second signal finds it raised and changes
/// nothing: the trial in flight ends, the run file is closed, the scratch file removed.
///
/// A signal that this process was started to ignore (SIGHUP by nohup) stays ignored. For SIGXFSZ see
/// [`outlive_file_limit`]; SIGPIPE is ignored by the Rust runtime already.
///
/// # Errors
/// When the system refuses the handlers.
pub(crate) fn on_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    catch_all(&|signal| flag::register(signal, Arc::clone(&stop)))?;
    Ok(stop)
}

/// The flags by which a user ends what is measured.
#[derive(Debug, Clone)]
pub(crate) struct StopFlags {
    after_trial: Arc<AtomicBool>,
    now: Arc<AtomicBool>,
}

/// The flags of a command, whose signals are caught once: before it makes anything.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signals(Rc<OnceCell<StopFlags>>);

impl Signals {
    /// The flags; from here on signals are caught, as `catch` does it the first time.
    ///
    /// # Errors
    /// When the system refuses the handlers.
    pub(crate) fn caught(&self, catch: fn() -> Result<StopFlags>) -> Result<StopFlags> {
        if let Some(flags) = self.0.get() {
            return Ok(flags.clone());
        }
        let flags = catch()?;
        Ok(self.0.get_or_init(|| flags).clone())
    }
}

impl StopFlags {
    /// One that every signal raises ([`on_signals`]), for a run by several processes: each has its own, and one that waited
    /// for its trial would wait for the others.
    ///
    /// # Errors
    /// When the system refuses the handlers.
    pub(crate) fn at_once() -> Result<Self> {
        let now = on_signals()?;
        Ok(Self {
            after_trial: Arc::clone(&now),
            now,
        })
    }

    /// The first Ctrl-C ends what is measured after the trial in flight, and what is no trial at once; the second one, and
    /// every other signal of [`on_signals`], ends all at once.
    ///
    /// # Errors
    /// When the system refuses the handlers, or a thread.
    pub(crate) fn in_two_steps() -> Result<Self> {
        let flags = Self {
            after_trial: Arc::default(),
            now: Arc::default(),
        };
        let no_way = |error: io::Error| Error::failed(format!("cannot wait for Ctrl-C: {error}"));
        let (bell, ring) = UnixStream::pair().map_err(no_way)?;
        let own = flags.clone();
        let wait = move || own.follow(ring);
        thread::Builder::new().spawn(wait).map_err(no_way)?;
        catch_all(&|signal| match signal {
            SIGINT => pipe::register(signal, bell.try_clone()?),
            _ => {
                flag::register(signal, Arc::clone(&flags.after_trial))?;
                flag::register(signal, Arc::clone(&flags.now))
            }
        })?;
        Ok(flags)
    }

    /// Waits for one Ctrl-C, and for a second one.
    fn follow(&self, mut ring: UnixStream) {
        let mut rung = || ring.read_exact(&mut [0]).is_ok();
        if !rung() {
            return;
        }
        self.after_trial.store(true, Ordering::Relaxed);
        // On a thread of its own: a terminal that takes nothing must not keep the second one from being heard.
        let tell =
            || note("note: ends after the trial in flight; press Ctrl-C again to end at once");
        let _ = thread::Builder::new().spawn(tell);
        if rung() {
            self.now.store(true, Ordering::Relaxed);
        }
    }

    /// What the runner looks at.
    pub(crate) fn stop(&self) -> Stop<'_> {
        Stop {
            after_trial: &self.after_trial,
            now: &self.now,
        }
    }

    /// Raised to end what is no trial.
    pub(crate) fn soon(&self) -> &AtomicBool {
        &self.after_trial
    }

    /// Whether the user wants the end at once, with nothing told that was measured.
    pub(crate) fn is_at_once(&self) -> bool {
        self.now.load(Ordering::Relaxed)
    }
}

/// Has each of these signals write a byte to a socket, for a process that waits for other things too.
///
/// # Errors
/// When the system refuses the handlers.
pub(crate) fn signals_to(bell: &UnixStream) -> Result<()> {
    catch_all(&|signal| pipe::register(signal, bell.try_clone()?))
}

fn catch_all(register: &dyn Fn(c_int) -> io::Result<SigId>) -> Result<()> {
    let ignored = ignored();
    let heeded = |signal: &c_int| ignored >> (signal - 1) & 1 == 0;
    for signal in ENDING.into_iter().chain(ENDING_ON_LINUX) {
        if heeded(&signal) || FROM_TERMINAL.contains(&signal) {
            caught(signal, register(signal))?;
        }
    }
    for signal in REAL_TIME.filter(heeded) {
        let _ = register(signal);
    }
    Ok(())
}

/// Has a write beyond the limit on file sizes (`ulimit -f`) fail with an error instead of killing the process, which would
/// leave half of a file behind.
///
/// # Errors
/// When the system refuses the handler.
pub(crate) fn outlive_file_limit() -> Result<()> {
    let unused = Arc::new(AtomicBool::new(false));
    caught(SIGXFSZ, flag::register(SIGXFSZ, unused))
}

fn caught(signal: c_int, registered: io::Result<SigId>) -> Result<()> {
    registered.map(drop).map_err(|error| {
        Error::failed(format!("cannot catch signal {signal}: {error}"))
            .hint("iolab stops here, because a scratch file or a mount could be left behind")
    })
}

/// The signals that this process ignores, signal N as bit N - 1 (proc_pid_status(5)); none where there is no `/proc`.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
