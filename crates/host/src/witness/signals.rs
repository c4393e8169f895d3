//! Signals that reach this process while it observes a program, each with its sender.

use std::io;
use std::io::{PipeReader, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// Signals that are passed on to the program, and the end of a child.
const WATCHED: [libc::c_int; 7] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGCHLD,
];

/// Descriptor that the handler writes to; -1 for none.
static BELL: AtomicI32 = AtomicI32::new(-1);

/// A received signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Came {
    pub(super) signal: i32,
    /// Whether the kernel sent it, as for signals of the terminal, which reach the program as well.
    pub(super) by_kernel: bool,
}

/// Receiver of signals from its creation on. One for the whole process, and never removed.
pub(super) struct Signals {
    came: PipeReader,
}

impl Signals {
    /// Starts receiving. With a program, which inherits ignored signals, these stay ignored. Without one, only
    /// signals of the terminal do: a shell makes background commands ignore them, and any other signal is meant
    /// for this process.
    pub(super) fn watch(has_program: bool) -> io::Result<Self> {
        let (came, bell) = io::pipe()?;
        rustix::io::ioctl_fionbio(&came, true)?;
        rustix::io::ioctl_fionbio(&bell, true)?;
        BELL.store(bell.as_raw_fd(), Ordering::Relaxed);
        // The handler may write at any time from now on.
        std::mem::forget(bell);
        for signal in WATCHED {
            handle(signal, has_program)?;
        }
        Ok(Self { came })
    }

    /// All signals received since the last call.
    pub(super) fn take(&self) -> Vec<Came> {
        let mut all = Vec::new();
        let mut bytes = [0u8; 2];
        while (&self.came).read_exact(&mut bytes).is_ok() {
            all.push(Came {
                signal: i32::from(bytes[0]),
                by_kernel: bytes[1] != 0,
            });
        }
        all
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.came.as_fd()
    }
}

/// Installs the handler for a signal. A signal that this process was started to ignore stays ignored, for the
/// program too. Exceptions are SIGCHLD and, without a program, SIGINT and SIGQUIT.
fn handle(signal: libc::c_int, has_program: bool) -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid sigaction.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a writable sigaction; nothing is changed.
    if unsafe { libc::sigaction(signal, std::ptr::null(), &mut before) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let is_meant = match signal {
        libc::SIGCHLD => true,
        libc::SIGINT | libc::SIGQUIT => !has_program,
        _ => false,
    };
    if before.sa_sigaction == libc::SIG_IGN && !is_meant {
        return Ok(());
    }
    // SAFETY: all-zero bytes are a valid sigaction.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = ring as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: the handler has the signature that SA_SIGINFO asks for, and makes one system call that signal-safety(7) allows.
    if unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Ends this process by the signal that ended a program, so that a shell sees the same. Returns if the signal
/// ends nothing.
pub fn end_by(signal: i32) {
    // A second core file would replace the program's.
    let none = rustix::process::Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
    // SAFETY: the default action of a signal needs no handler, and the process may end by it.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

extern "C" fn ring(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes a valid siginfo. SI_KERNEL, and the codes of faults, are above
    // 0.
    let by_kernel = unsafe { (*info).si_code } > 0;
    let bytes = [signal as u8, u8::from(by_kernel)];
    // SAFETY: errno of the interrupted code is put back.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(BELL.load(Ordering::Relaxed), bytes.as_ptr().cast(), 2);
        *libc::__errno_location() = errno;
    }
}
