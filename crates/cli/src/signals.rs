//! Signals: each requests a clean end. The first Ctrl-C lets the trial in flight finish.

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
    SIGUSR2, SIGVTALRM, SIGXCPU,
};
use signal_hook::low_level::pipe;
use signal_hook::{SigId, flag};

use iolab_command::output::note;

/// Signals that end a process by default and can be caught, after signal(7). The others are SIGKILL, and faults of the processor
/// (SIGSEGV, SIGBUS, SIGILL, SIGFPE), after which the process cannot continue.
const ENDING: [c_int; 14] = [
    SIGHUP, SIGINT, SIGQUIT, SIGTRAP, SIGABRT, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM, SIGXCPU,
    SIGVTALRM, SIGPROF, SIGIO, SIGSYS,
];
/// Numbers of the signals that only Linux has: SIGSTKFLT and SIGPWR, on all architectures but MIPS, SPARC and PA-RISC.
const ENDING_ON_LINUX: [c_int; 2] = [16, 30];
/// The real-time signals. The C library keeps the first for itself, and they cannot be caught.
const REAL_TIME: RangeInclusive<c_int> = 32..=64;
/// A shell makes background commands ignore these, but one that is sent explicitly is intended.
const FROM_TERMINAL: [c_int; 2] = [SIGINT, SIGQUIT];

/// A flag set by every signal that would end the process. A second signal has no further effect: the trial in flight ends, the
/// run file is closed, the scratch file removed.
///
/// A signal that this process was started to ignore (SIGHUP by nohup) stays ignored. For SIGXFSZ see [`file_limit`](crate::file_limit); the
/// Rust runtime ignores SIGPIPE.
///
/// # Errors
///
/// The system refuses the handlers.
pub(crate) fn on_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    catch_all(&|signal| flag::register(signal, Arc::clone(&stop)))?;
    Ok(stop)
}

/// The flags with which a user ends a measurement.
#[derive(Debug, Clone)]
pub(crate) struct StopFlags {
    after_trial: Arc<AtomicBool>,
    now: Arc<AtomicBool>,
    /// Held by everything that has to be closed or removed before the process may end.
    measuring: Arc<Measuring>,
}

/// The measuring part of a session. Until the last holder drops it, a signal only sets flags. From then on no file is open
/// or left over, and a signal that would end the process does so: an analysis can take long.
#[derive(Debug, Default)]
struct Measuring {
    is_over: Arc<AtomicBool>,
}

impl Drop for Measuring {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Exit code after a signal, as README documents it.
const INTERRUPTED: c_int = 130;

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

/// Waits for one Ctrl-C, then for a second one.
fn follow(after_trial: &AtomicBool, now: &AtomicBool, mut ring: UnixStream) {
    let mut rung = || ring.read_exact(&mut [0]).is_ok();
    if !rung() {
        return;
    }
    after_trial.store(true, Ordering::Relaxed);
    // In a separate thread, so that a blocked terminal does not delay the second one.
    let tell = || note("note: ends after the trial in flight; press Ctrl-C again to end at once");
    let _ = thread::Builder::new().spawn(tell);
    if rung() {
        now.store(true, Ordering::Relaxed);
    }
}

impl StopFlags {
    /// A single flag set by every signal ([`on_signals`]), for runs by several processes: each gets its own signal, and one that
    /// finished its trial would wait for the others.
    ///
    /// # Errors
    ///
    /// The system refuses the handlers.
    pub(crate) fn at_once() -> Result<Self> {
        let now = on_signals()?;
        Ok(Self {
            after_trial: Arc::clone(&now),
            now,
            measuring: Arc::default(),
        })
    }

    /// The first Ctrl-C ends the measurement after the trial in flight, and anything else at once; the second one, and every
    /// other signal of [`on_signals`], ends everything at once.
    ///
    /// # Errors
    ///
    /// The system refuses the handlers, or a thread.
    pub(crate) fn in_two_steps() -> Result<Self> {
        let flags = Self {
            after_trial: Arc::default(),
            now: Arc::default(),
            measuring: Arc::default(),
        };
        let no_way = |error: io::Error| Error::failed(format!("cannot wait for Ctrl-C: {error}"));
        let (bell, ring) = UnixStream::pair().map_err(no_way)?;
        let own = (Arc::clone(&flags.after_trial), Arc::clone(&flags.now));
        let wait = move || follow(&own.0, &own.1, ring);
        thread::Builder::new().spawn(wait).map_err(no_way)?;
        let is_over = &flags.measuring.is_over;
        catch_all(&|signal| {
            flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(is_over))?;
            match signal {
                SIGINT => pipe::register(signal, bell.try_clone()?),
                _ => {
                    flag::register(signal, Arc::clone(&flags.after_trial))?;
                    flag::register(signal, Arc::clone(&flags.now))
                }
            }
        })?;
        Ok(flags)
    }

    /// The flags for the runner.
    pub(crate) fn stop(&self) -> Stop<'_> {
        Stop {
            after_trial: &self.after_trial,
            now: &self.now,
        }
    }

    /// Set to end anything but a trial.
    pub(crate) fn soon(&self) -> &AtomicBool {
        &self.after_trial
    }

    /// Whether the user requests the end at once, without results.
    pub(crate) fn is_at_once(&self) -> bool {
        self.now.load(Ordering::Relaxed)
    }
}

/// Makes each of these signals write a byte to a socket, for a process that also waits for other things.
///
/// # Errors
///
/// The system refuses the handlers.
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

fn caught(signal: c_int, registered: io::Result<SigId>) -> Result<()> {
    registered.map(drop).map_err(|error| {
        Error::failed(format!("cannot catch signal {signal}: {error}"))
            .hint("iolab stops here, because a scratch file or a mount could remain")
    })
}

/// The ignored signals, signal N as bit N - 1 (proc_pid_status(5)); none without `/proc`.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
