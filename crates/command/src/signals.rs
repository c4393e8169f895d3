//! Signals that would end the process, as requests for a clean end.

use std::ffi::c_int;
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use iolab_workload::{Error, Result};
use signal_hook::consts::{
    SIGABRT, SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGSYS, SIGTERM, SIGTRAP, SIGUSR1,
    SIGUSR2, SIGVTALRM, SIGXCPU,
};
use signal_hook::low_level::pipe;
use signal_hook::{SigId, flag};

/// Signals that end a process by default and can be caught, after signal(7). The others are SIGKILL, and faults of the processor
/// (SIGSEGV, SIGBUS, SIGILL, SIGFPE), after which the process cannot continue.
const ENDING: [c_int; 16] = [
    SIGHUP, SIGINT, SIGQUIT, SIGTRAP, SIGABRT, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM, SIGXCPU,
    SIGVTALRM, SIGPROF, SIGIO, SIGSYS,
    // SIGSTKFLT and SIGPWR, on all architectures but MIPS, SPARC and PA-RISC.
    16, 30,
];

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
pub fn on_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    catch_all(&|signal| flag::register(signal, Arc::clone(&stop)))?;
    Ok(stop)
}

/// Makes each of these signals write a byte to a socket, for a process that also waits for other things.
///
/// # Errors
///
/// The system refuses the handlers.
pub fn signals_to(bell: &UnixStream) -> Result<()> {
    catch_all(&|signal| pipe::register(signal, bell.try_clone()?))
}

/// Has each signal that would end the process, and that it heeds, registered by `register`.
///
/// # Errors
///
/// The system refuses a handler.
pub fn catch_all(register: &dyn Fn(c_int) -> io::Result<SigId>) -> Result<()> {
    let ignored = ignored();
    let heeded = |signal: &c_int| ignored >> (signal - 1) & 1 == 0;
    for signal in ENDING {
        if heeded(&signal) || FROM_TERMINAL.contains(&signal) {
            register(signal).map_err(|error| {
                Error::failed(format!("cannot catch signal {signal}: {error}"))
                    .hint("iolab stops here, because a scratch file or a mount could remain")
            })?;
        }
    }
    for signal in REAL_TIME.filter(heeded) {
        let _ = register(signal);
    }
    Ok(())
}

/// The ignored signals, signal N as bit N - 1 (proc_pid_status(5)); none without `/proc`.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
