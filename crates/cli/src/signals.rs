//! Signals: each requests a clean end. The first Ctrl-C lets the trial in flight finish.

use std::ffi::c_int;
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use iolab_runner::campaign::StopFlags;
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
/// A signal that this process was started to ignore (SIGHUP by nohup) stays ignored. Every command outlives SIGXFSZ;
/// the Rust runtime ignores SIGPIPE.
///
/// # Errors
///
/// The system refuses the handlers.
pub(crate) fn on_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    catch_all(&|signal| flag::register(signal, Arc::clone(&stop)))?;
    Ok(stop)
}

/// Exit code after a signal, as README documents it.
const INTERRUPTED: c_int = 130;

/// Waits for one Ctrl-C, then for a second one.
fn follow(flags: (Arc<AtomicBool>, Arc<AtomicBool>, Arc<AtomicBool>), mut ring: UnixStream) {
    let (after_trial, now, makes_trials) = flags;
    let mut rung = || ring.read_exact(&mut [0]).is_ok();
    if !rung() {
        return;
    }
    after_trial.store(true, Ordering::Relaxed);
    let text = match makes_trials.load(Ordering::Relaxed) {
        true => "note: ends after the trial in flight; press Ctrl-C again to end at once",
        false => "note: ends before the first trial",
    };
    // In a separate thread, so that a blocked terminal does not delay the second one.
    let _ = thread::Builder::new().spawn(move || note(text));
    if rung() {
        now.store(true, Ordering::Relaxed);
    }
}

/// Catches the signals of a measurement. In two steps, the first Ctrl-C ends it after the trial in flight, and anything else
/// at once; the second one, and every other signal of [`on_signals`], ends everything at once. Otherwise every signal does,
/// for runs by several processes: each gets its own signal, and one that finished its trial would wait for the others.
///
/// # Errors
/// The system refuses the handlers, or a thread.
pub(crate) fn catch(in_two_steps: bool) -> Result<StopFlags> {
    if !in_two_steps {
        let now = on_signals()?;
        return Ok(StopFlags {
            after_trial: Arc::clone(&now),
            now,
            ..StopFlags::default()
        });
    }
    let flags = StopFlags::default();
    let no_way = |error: io::Error| Error::failed(format!("cannot wait for Ctrl-C: {error}"));
    let (bell, ring) = UnixStream::pair().map_err(no_way)?;
    // Not `measuring`, which this thread would hold for ever.
    let own = (
        Arc::clone(&flags.after_trial),
        Arc::clone(&flags.now),
        Arc::clone(&flags.makes_trials),
    );
    let wait = move || follow(own, ring);
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
