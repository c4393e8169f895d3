//! Time in which a user had stopped this process with Ctrl-Z: the clocks of a trial go on in it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use signal_hook::consts::SIGTSTP;
use signal_hook::low_level::{emulate_default_handler, register};

static STOPPED_NS: AtomicU64 = AtomicU64::new(0);
/// Handlers that have begun and not yet counted.
static UNDER_WAY: AtomicU64 = AtomicU64::new(0);

/// Nanoseconds for which this process was stopped since the first call, by SIGTSTP: nothing tells of a SIGSTOP.
pub(super) fn stopped_ns() -> u64 {
    static WATCHES: OnceLock<()> = OnceLock::new();
    WATCHES.get_or_init(|| {
        // A shell without job control has it ignored, and it has to stay so.
        if !is_ignored() {
            watch();
        }
    });
    // The thread that stopped may get a CPU later than the one that asks.
    while UNDER_WAY.load(Ordering::Acquire) > 0 {
        std::thread::yield_now();
    }
    STOPPED_NS.load(Ordering::Relaxed)
}

/// Stops at SIGTSTP as any program does, and counts how long.
fn watch() {
    let stop = || {
        UNDER_WAY.fetch_add(1, Ordering::Relaxed);
        let began = now();
        let _ = emulate_default_handler(SIGTSTP);
        let stopped = now().saturating_sub(began).as_nanos() as u64;
        STOPPED_NS.fetch_add(stopped, Ordering::Relaxed);
        UNDER_WAY.fetch_sub(1, Ordering::Release);
    };
    // SAFETY: the handler reads a clock, raises SIGSTOP and adds to atomic numbers, all of which a handler may do.
    let _ = unsafe { register(SIGTSTP, stop) };
}

fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn is_ignored() -> bool {
    let mut now = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action sigaction only writes the present one, which zeros initialise.
    let now = unsafe {
        libc::sigaction(SIGTSTP, std::ptr::null(), now.as_mut_ptr());
        now.assume_init()
    };
    now.sa_sigaction == libc::SIG_IGN
}
