//! Time for which Ctrl-Z had stopped this process: the clocks of a trial go on during it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use signal_hook::consts::SIGTSTP;
use signal_hook::low_level::register;

static STOPPED_NS: AtomicU64 = AtomicU64::new(0);
/// Handlers that have begun and not yet added their time.
static UNDER_WAY: AtomicU64 = AtomicU64::new(0);

/// Time for which SIGTSTP stopped this process since the first call, ns. A stop by SIGSTOP leaves no trace.
pub(super) fn stopped_ns() -> u64 {
    static WATCHES: OnceLock<()> = OnceLock::new();
    WATCHES.get_or_init(|| {
        // A shell without job control ignores the signal, which must stay so.
        if !is_ignored() {
            watch();
        }
    });
    // The stopped thread may get a CPU later than the thread that asks.
    while UNDER_WAY.load(Ordering::Acquire) > 0 {
        std::thread::yield_now();
    }
    STOPPED_NS.load(Ordering::Relaxed)
}

/// Installs a handler that stops at SIGTSTP as any program does, and measures for how long.
fn watch() {
    /// Action that the handler was installed with, to install it again.
    static WATCHING: OnceLock<libc::sigaction> = OnceLock::new();
    let stop = || {
        let Some(watching) = WATCHING.get() else {
            return;
        };
        UNDER_WAY.fetch_add(1, Ordering::Relaxed);
        let began = now();
        stop_by_default(watching);
        let stopped = now().saturating_sub(began).as_nanos() as u64;
        STOPPED_NS.fetch_add(stopped, Ordering::Relaxed);
        UNDER_WAY.fetch_sub(1, Ordering::Release);
    };
    // SAFETY: the handler reads a clock and an initialised cell, calls functions that signal-safety(7) lists, and adds to atomic
    // numbers, all of which a handler may do.
    if unsafe { register(SIGTSTP, stop) }.is_ok() {
        let _ = WATCHING.set(action());
    }
}

/// Lets the kernel do its default action for SIGTSTP, then installs the handler again. A SIGSTOP would also
/// stop a process in an orphaned process group (`setsid`, `ssh -t host iolab`), and no shell would continue it.
/// The kernel ignores SIGTSTP there.
fn stop_by_default(watching: &libc::sigaction) {
    let mut default = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    let mut this = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: all pointers are to values of this function or of the caller; zeros initialise an action, whose handler is then
    // SIG_DFL, and sigemptyset a set. None of the functions can fail with these arguments.
    unsafe {
        (*default.as_mut_ptr()).sa_sigaction = libc::SIG_DFL;
        libc::sigemptyset(this.as_mut_ptr());
        libc::sigaddset(this.as_mut_ptr(), SIGTSTP);
        libc::sigaction(SIGTSTP, default.as_ptr(), std::ptr::null_mut());
        // The signal stays pending while it is blocked, as in its handler. This thread receives it before the
        // call that unblocks it returns.
        libc::raise(SIGTSTP);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, this.as_ptr(), std::ptr::null_mut());
        libc::pthread_sigmask(libc::SIG_BLOCK, this.as_ptr(), std::ptr::null_mut());
        libc::sigaction(SIGTSTP, watching, std::ptr::null_mut());
    }
}

fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn is_ignored() -> bool {
    action().sa_sigaction == libc::SIG_IGN
}

/// Present action for SIGTSTP.
fn action() -> libc::sigaction {
    let mut now = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action sigaction only writes the present one, which zeros initialise.
    unsafe {
        libc::sigaction(SIGTSTP, std::ptr::null(), now.as_mut_ptr());
        now.assume_init()
    }
}
