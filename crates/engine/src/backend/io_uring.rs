//! `io_uring`: with registered file and buffers, and the cheapest ring mode the kernel has.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::Duration;

use io_uring::types::{Fd, Fixed, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, opcode, squeue};

use super::{Action, Backend, Completion, Request, SystemFailure};
use crate::buffer::Buffers;
use crate::error::{Error, Result};
use crate::outcome::Effective;
use crate::spec::TrialSpec;

/// Idle time after which the kernel's polling thread of SQPOLL goes to sleep, ms.
const SQPOLL_IDLE_MS: u32 = 1_000;

/// Looks at the completion queue before going to sleep for it, and yields of the CPU between two looks.
const LOOKS: u32 = 6;
const YIELDS_PER_LOOK: u32 = 3;
/// Where looking does not pay, every so many waits try it again.
const LOOK_AGAIN_EVERY: u32 = 64;

pub(crate) struct Uring {
    ring: IoUring,
    file: File,
    effective: Effective,
    patience: Patience,
    /// Whether the kernel's thread submits.
    sqpoll: bool,
    /// Whether this thread has to poll the device for completions: then no wait has a timeout.
    polls: bool,
}

/// Whether looking before sleeping has paid lately.
///
/// Waking a sleeper costs whoever completes the request more than a microsecond, which shows where requests take
/// no longer than that. On a device that takes its time looking is in vain, and is soon left out.
#[derive(Debug)]
struct Patience {
    enabled: bool,
    credit: i32,
    left_out: u32,
}

impl Patience {
    fn allows(&mut self) -> bool {
        if self.enabled && self.credit < 0 {
            self.left_out += 1;
            return self.left_out.is_multiple_of(LOOK_AGAIN_EVERY);
        }
        self.enabled
    }

    fn learn(&mut self, paid: bool) {
        self.credit = (self.credit + if paid { 1 } else { -1 }).clamp(-8, 8);
    }
}

impl Uring {
    /// To be called by the thread that submits: SINGLE_ISSUER binds the ring to it.
    pub(crate) fn new(file: File, spec: &TrialSpec, buffers: &Buffers) -> Result<Self> {
        let (ring, flags) = build(spec)?;
        if spec.rate.is_some() && !ring.params().is_feature_ext_arg() {
            return Err(
                Error::usage("a rate with io_uring needs waits that end by themselves, which Linux has from 5.11 on")
                    .hint("set backend=libaio or backend=psync"),
            );
        }
        let mut uring = Self {
            ring,
            file,
            effective: Effective {
                ring_flags: flags,
                ..Effective::default()
            },
            // At depth 1 a wait is a wait; with polling the kernel does the looking.
            patience: Patience {
                enabled: spec.depth > 1 && !spec.sqpoll && !spec.iopoll,
                credit: 0,
                left_out: 0,
            },
            sqpoll: spec.sqpoll,
            polls: spec.iopoll && !spec.sqpoll,
        };
        if spec.registered {
            uring.register(spec, buffers);
        }
        Ok(uring)
    }

    /// Registers what the kernel lets us; what it refuses is used unregistered, and said.
    fn register(&mut self, spec: &TrialSpec, buffers: &Buffers) {
        let submitter = self.ring.submitter();
        match submitter.register_files(&[self.file.as_raw_fd()]) {
            Ok(()) => self.effective.fixed_file = true,
            Err(error) => self.effective.note = format!("file not registered: {error}"),
        }
        let vectors: Vec<libc::iovec> = (0..spec.depth)
            .map(|slot| libc::iovec {
                iov_base: buffers.slot(slot).as_ptr().cast(),
                iov_len: spec.bs as usize,
            })
            .collect();
        // SAFETY: the buffers outlive the ring (the worker drops the backend first) and are never unmapped before.
        match unsafe { submitter.register_buffers(&vectors) } {
            Ok(()) => self.effective.fixed_buffers = true,
            Err(error) => {
                self.effective.note = format!(
                    "buffers not registered: {error} (a higher locked-memory limit, ulimit -l, may help)"
                );
            }
        }
    }

    /// Submits what is queued and looks for completions without sleeping; whether enough have come.
    fn look(&mut self, wait: usize) -> bool {
        for _ in 0..LOOKS {
            if self.look_once().is_err() {
                // The ordinary wait that follows meets the same error, and tells it.
                return false;
            }
            if self.ring.completion().len() >= wait {
                return true;
            }
            for _ in 0..YIELDS_PER_LOOK {
                rustix::thread::sched_yield();
            }
        }
        false
    }

    /// Submits what is queued and lets the kernel post what has completed; does not sleep.
    #[inline(always)]
    fn look_once(&mut self) -> std::io::Result<usize> {
        if self.sqpoll {
            return self.ring.submit();
        }
        let queued = self.ring.submission().len() as u32;
        let flags = EnterFlags::GETEVENTS.bits();
        // SAFETY: no signal mask is passed, so that its type does not matter.
        unsafe {
            self.ring
                .submitter()
                .enter::<libc::sigset_t>(queued, 0, flags, None)
        }
    }

    #[inline(always)]
    fn take(&mut self, done: &mut Vec<Completion>) {
        done.extend(self.ring.completion().map(|entry| Completion {
            slot: entry.user_data() as u32,
            result: i64::from(entry.result()),
        }));
    }

    #[inline(always)]
    fn entry(&self, slot: u32, request: Request) -> squeue::Entry {
        /// Builds an entry for a registered or an ordinary descriptor alike.
        macro_rules! with_file {
            (|$fd:ident| $entry:expr) => {
                if self.effective.fixed_file {
                    let $fd = Fixed(0);
                    $entry
                } else {
                    let $fd = Fd(self.file.as_raw_fd());
                    $entry
                }
            };
        }
        let (memory, len) = (request.memory.as_ptr(), request.len);
        let index = slot as u16;
        let entry = match (request.action, self.effective.fixed_buffers) {
            (Action::Read, true) => with_file!(|fd| opcode::ReadFixed::new(fd, memory, len, index)
                .offset(request.offset)
                .build()),
            (Action::Read, false) => {
                with_file!(|fd| opcode::Read::new(fd, memory, len)
                    .offset(request.offset)
                    .build())
            }
            (Action::Write, true) => {
                with_file!(|fd| opcode::WriteFixed::new(fd, memory, len, index)
                    .offset(request.offset)
                    .build())
            }
            (Action::Write, false) => {
                with_file!(|fd| opcode::Write::new(fd, memory, len)
                    .offset(request.offset)
                    .build())
            }
            (Action::Fsync, _) => with_file!(|fd| opcode::Fsync::new(fd).build()),
        };
        entry.user_data(u64::from(slot))
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // A ring is torn down by the kernel at leisure; a registered file would keep the target busy until then.
        if self.effective.fixed_file {
            let _ = self.ring.submitter().unregister_files();
        }
        if self.effective.fixed_buffers {
            let _ = self.ring.submitter().unregister_buffers();
        }
    }
}

impl Backend for Uring {
    #[inline(always)]
    fn queue(&mut self, slot: u32, request: Request) {
        let entry = self.entry(slot, request);
        // SAFETY: the request's memory stays valid until its completion is taken.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        assert!(pushed.is_ok(), "the ring has an entry for every slot");
    }

    #[inline(always)]
    fn complete(
        &mut self,
        wait: u32,
        done: &mut Vec<Completion>,
    ) -> std::result::Result<(), SystemFailure> {
        let found = self.patience.allows() && {
            let found = self.look(wait as usize);
            self.patience.learn(found);
            found
        };
        if !found {
            tolerate(self.ring.submit_and_wait(wait as usize))?;
        }
        self.take(done);
        Ok(())
    }

    fn complete_within(
        &mut self,
        timeout: Duration,
        done: &mut Vec<Completion>,
    ) -> std::result::Result<(), SystemFailure> {
        let entered = if timeout.is_zero() || self.polls {
            self.look_once()
        } else {
            let timeout = Timespec::from(timeout);
            let arguments = SubmitArgs::new().timespec(&timeout);
            self.ring.submitter().submit_with_args(1, &arguments)
        };
        tolerate(entered)?;
        self.take(done);
        Ok(())
    }

    fn syscall(&self, action: Action) -> &'static str {
        match action {
            Action::Read => "io_uring read",
            Action::Write => "io_uring write",
            Action::Fsync => "io_uring fsync",
        }
    }

    fn effective(&self) -> Effective {
        self.effective.clone()
    }
}

/// What is no failure: a signal, a wait whose time is over, or a ring that wants its completions taken first.
#[inline(always)]
fn tolerate(entered: std::io::Result<usize>) -> std::result::Result<(), SystemFailure> {
    let Err(error) = entered else {
        return Ok(());
    };
    match error.raw_os_error() {
        Some(libc::EINTR | libc::ETIME | libc::EBUSY | libc::EAGAIN) => Ok(()),
        errno => Err(SystemFailure {
            syscall: "io_uring_enter",
            errno: errno.unwrap_or(0),
        }),
    }
}

/// The ring in the best mode the kernel takes, and the names of its flags.
fn build(spec: &TrialSpec) -> Result<(IoUring, String)> {
    // With SQPOLL the kernel's thread issues and completes: task-run flags do not apply there.
    let modes: &[&[&str]] = if spec.sqpoll {
        &[&["sqpoll", "single_issuer"], &["sqpoll"]]
    } else {
        &[&["single_issuer", "defer_taskrun"], &["coop_taskrun"], &[]]
    };
    let mut last = None;
    for mode in modes {
        let mut builder = IoUring::builder();
        for flag in *mode {
            match *flag {
                "sqpoll" => builder.setup_sqpoll(SQPOLL_IDLE_MS),
                "single_issuer" => builder.setup_single_issuer(),
                "defer_taskrun" => builder.setup_defer_taskrun(),
                _ => builder.setup_coop_taskrun(),
            };
        }
        let mut names = mode.join(",");
        if spec.iopoll {
            builder.setup_iopoll();
            names = if names.is_empty() {
                "iopoll".into()
            } else {
                names + ",iopoll"
            };
        }
        match builder.build(spec.depth) {
            Ok(ring) => return Ok((ring, names)),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => last = Some(error),
            Err(error) => {
                last = Some(error);
                break;
            }
        }
    }
    let error = last.expect("at least one mode was tried");
    Err(Error::usage(format!("io_uring cannot be set up: {error}")).hint(match error.raw_os_error() {
        Some(libc::EPERM) => {
            "the system forbids it (sysctl kernel.io_uring_disabled, or a container's filter): set backend=libaio or backend=psync"
        }
        Some(libc::ENOMEM) => "raise the locked-memory limit (ulimit -l), or use fewer threads or a smaller depth",
        Some(libc::EMFILE | libc::ENFILE) => "raise the limit of open files (ulimit -n), or use fewer threads",
        _ => "set backend=libaio or backend=psync",
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_in_vain_is_left_out_and_tried_again() {
        let mut patience = Patience {
            enabled: true,
            credit: 0,
            left_out: 0,
        };
        assert!(patience.allows());
        (0..20).for_each(|_| patience.learn(false));
        let tried = (0..640).filter(|_| patience.allows()).count();
        assert_eq!(tried, 10);
        (0..8).for_each(|_| patience.learn(true));
        assert!((0..100).all(|_| patience.allows()), "it pays again");
        patience.enabled = false;
        assert!(!patience.allows());
    }
}
