//! `io_uring`: with registered file and buffers, and the cheapest ring mode the kernel has.
//!
//! Rings, and their registrations.

#[cfg(test)]
mod tests;
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

use io_uring::types::{Fd, Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, opcode, squeue};

use super::Opened;
use crate::buffer::{Buffers, Registration, Slot};
use crate::request::{Action, Backend, Completion, InFlight, Queue, Request, SystemFailure};
use iolab_workload::outcome::{Effective, RingFlag};
use iolab_workload::trial::TrialSpec;
use iolab_workload::{Error, Result};

/// Looks at the completion queue before going to sleep for it, and yields of the CPU between two looks.
const LOOKS: u32 = 6;

const YIELDS_PER_LOOK: u32 = 3;

/// Waits after which looking before sleeping is tried again if it has not paid so far.
const LOOK_AGAIN_EVERY: u32 = 64;

/// All yields of a wait take a few microseconds, plus the work of others for these requests. A yield that takes longer gave
/// the CPU to a program that kept it for its time slice, while the requests completed.
const YIELDS_MAX: Duration = Duration::from_micros(500);

/// Weight of losing the CPU, in looks in vain. One loss, or three after a good time, ends the looking.
const LOSS: i32 = 4;

/// Factor by which each loss delays the next try, up to [`LOOK_AGAIN_MAX`] waits.
const LATER: u32 = 16;

const LOOK_AGAIN_MAX: u32 = 1 << 20;

/// The longest single wait for requests in flight after a failure. A ring that has to be polled never waits long.
const SETTLE_WAIT: Duration = Duration::from_millis(100);

/// Reason why buffers are not registered, if the kernel has no memory for a ring or for them.
const LOCKED_MEMORY: &str = "all threads together exceed the locked-memory limit (ulimit -l)";

pub(crate) struct Uring<O> {
    ring: IoUring,
    opened: O,
    in_flight: InFlight,
    effective: Effective,
    spin: SpinPolicy,
    /// Whether the kernel's polling thread submits (SQPOLL).
    sqpoll: bool,
    /// Whether this thread has to poll the device for completions: then no wait has a timeout.
    polls: bool,
    /// Flags of reads and of writes (`RWF_`).
    write_flags: i32,
}

/// Whether looking before sleeping has paid lately.
///
/// Waking a sleeper costs the thread that completes the request more than a microsecond, which matters if requests take no
/// longer than that. On a slower device looking has no effect, and is soon left out. If other programs want the CPU, a
/// yield gives it to them for milliseconds, while a sleeper gets it back as soon as its requests complete.
#[derive(Debug)]
struct SpinPolicy {
    enabled: bool,
    credit: i32,
    left_out: u32,
    again_every: u32,
}

/// Result of looking for completions before sleeping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    /// Whether enough requests have completed.
    found: bool,
    /// Whether others had the CPU for longer than looking takes.
    lost_cpu: bool,
}

impl SpinPolicy {
    fn new(enabled: bool) -> Self {
        Self {
            enabled,
            credit: 0,
            left_out: 0,
            again_every: LOOK_AGAIN_EVERY,
        }
    }

    fn allows(&mut self) -> bool {
        if self.enabled && self.credit < 0 {
            self.left_out += 1;
            return self.left_out.is_multiple_of(self.again_every);
        }
        self.enabled
    }

    fn learn(&mut self, look: Look) {
        let change = match look {
            Look { lost_cpu: true, .. } => -LOSS,
            Look { found: true, .. } => 1,
            Look { found: false, .. } => -1,
        };
        self.credit = (self.credit + change).clamp(-8, 8);
        if self.credit >= 0 {
            self.again_every = LOOK_AGAIN_EVERY;
        } else if look.lost_cpu {
            self.again_every = (LATER * self.again_every).min(LOOK_AGAIN_MAX);
            self.left_out = 0;
        }
    }
}

impl<O: Opened> Uring<O> {
    /// To be called by the thread that submits: SINGLE_ISSUER binds the ring to it.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): the system gives no ring, or refuses buffers that are to be registered. In the latter
    /// case the trial can be tried again, without registered buffers.
    pub(crate) fn new(opened: O, spec: &TrialSpec, buffers: &Buffers) -> Result<Self> {
        let (ring, mut flags) = build(spec, &buffers.registration)?;
        if spec.rate.is_some() && !ring.params().is_feature_ext_arg() {
            return Err(Error::usage(
                "a rate with io_uring needs waits with a timeout (Linux 5.11 or newer)",
            )
            .hint("set backend=libaio or backend=psync"));
        }
        // At depth 1 looking before sleeping is mere waiting; with polling the kernel looks by itself.
        let spins = spec.depth > 1 && !spec.sqpoll && !spec.iopoll;
        flags.extend(spins.then_some(RingFlag::Spin));
        let mut uring = Self {
            ring,
            opened,
            in_flight: InFlight::new(spec.depth),
            effective: Effective {
                ring: flags,
                polled: spec.sqpoll || spec.iopoll,
                ..Effective::default()
            },
            spin: SpinPolicy::new(spins),
            sqpoll: spec.sqpoll,
            polls: spec.iopoll && !spec.sqpoll,
            write_flags: super::write_flags(spec),
        };
        uring.register(buffers)?;
        Ok(uring)
    }

    /// Registers the files, if the kernel allows it, and the buffers, unless the kernel refused the buffers of another
    /// worker.
    fn register(&mut self, buffers: &Buffers) -> Result<()> {
        let submitter = self.ring.submitter();
        let files: Vec<RawFd> = self.opened.files().iter().map(AsRawFd::as_raw_fd).collect();
        match submitter.register_files(&files) {
            Ok(()) => self.effective.fixed_file = true,
            Err(error) => self.effective.note = format!("file not registered: {error}"),
        }
        if let Some(refusal) = buffers.registration.refusal() {
            self.effective.note = format!("buffers not registered: {refusal}");
            return Ok(());
        }
        let vectors: Vec<libc::iovec> = buffers.home().iter().map(Slot::as_iovec).collect();
        // SAFETY: the addresses lie in a live mapping. The kernel pins the pages until they are unregistered or the ring is
        // gone. If the mapping goes first, the kernel still writes to those pages alone.
        match unsafe { submitter.register_buffers(&vectors) } {
            Ok(()) => {
                self.effective.fixed_buffers = true;
                Ok(())
            }
            Err(error) => {
                buffers.registration.refuse(match error.raw_os_error() {
                    Some(libc::ENOMEM) => LOCKED_MEMORY.to_owned(),
                    _ => error.to_string(),
                });
                Err(refused(&error))
            }
        }
    }

    /// Submits queued requests and looks for completions without sleeping.
    fn look(&mut self, wait: usize) -> Look {
        let (mut found, mut first_yield) = (false, None);
        for look in 0..LOOKS {
            if look > 0 {
                first_yield.get_or_insert_with(Instant::now);
                for _ in 0..YIELDS_PER_LOOK {
                    rustix::thread::sched_yield();
                }
            }
            if self.look_once().is_err() {
                // The wait that follows fails with the same error, and reports it.
                break;
            }
            found = self.ring.completion().len() >= wait;
            if found {
                break;
            }
        }
        let yielded = first_yield.map_or(Duration::ZERO, |since| since.elapsed());
        Look {
            found,
            lost_cpu: yielded > YIELDS_MAX,
        }
    }

    /// Submits queued requests and lets the kernel post completions; does not sleep.
    #[inline(always)]
    fn look_once(&mut self) -> std::io::Result<usize> {
        if self.sqpoll {
            return self.ring.submit();
        }
        let queued = self.ring.submission().len() as u32;
        let flags = EnterFlags::GETEVENTS.bits();
        // SAFETY: `queue` pushed these entries, whose memory stays until their completion is taken. No signal mask is
        // passed, so its type does not matter.
        unsafe {
            self.ring
                .submitter()
                .enter::<libc::sigset_t>(queued, 0, flags, None)
        }
    }

    #[inline(always)]
    fn take(&mut self, done: &mut Vec<Completion>) {
        done.extend(self.ring.completion().map(|entry| Completion {
            slot: self.in_flight.give_back(entry.user_data()),
            result: i64::from(entry.result()),
        }));
    }

    #[inline(always)]
    fn entry(&self, slot: &Slot, request: Request) -> squeue::Entry {
        let (file, request) = self.opened.resolve(request);
        /// Builds an entry for a registered or an ordinary descriptor alike.
        macro_rules! with_file {
            (|$fd:ident| $entry:expr) => {
                if self.effective.fixed_file {
                    let $fd = Fixed(file as u32);
                    $entry
                } else {
                    let $fd = Fd(self.opened.files()[file].as_raw_fd());
                    $entry
                }
            };
        }
        let len = request.len;
        let memory = slot.address(request.at, len).as_ptr();
        let index = slot.index() as u16;
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
                    .rw_flags(self.write_flags)
                    .build())
            }
            (Action::Write, false) => {
                with_file!(|fd| opcode::Write::new(fd, memory, len)
                    .offset(request.offset)
                    .rw_flags(self.write_flags)
                    .build())
            }
            // Trials that trim are refused with this backend; this does nothing, and counts as a request that failed.
            (Action::Trim, _) => opcode::Nop::new().build(),
            (Action::Fsync, _) => with_file!(|fd| opcode::Fsync::new(fd).build()),
            (Action::Fdatasync, _) => {
                with_file!(|fd| opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build())
            }
        };
        entry.user_data(u64::from(slot.index()))
    }
}

impl<O> Drop for Uring<O> {
    fn drop(&mut self) {
        // Unregistering would wait for the requests that use the registrations.
        if !self.in_flight.is_empty() {
            return;
        }
        // A ring is torn down by the kernel at leisure; a registered file would keep the target busy until then, and registered memory
        // would count as locked.
        if self.effective.fixed_file {
            let _ = self.ring.submitter().unregister_files();
        }
        if self.effective.fixed_buffers {
            let _ = self.ring.submitter().unregister_buffers();
        }
    }
}

impl<O> Uring<O> {
    /// Waits until the kernel's thread gives entries back (sqpoll): it does so after a batch, of which requests may have completed long before.
    #[cold]
    fn push_when_free(&mut self, entry: &squeue::Entry) {
        assert!(self.sqpoll, "the ring has an entry for every slot");
        // SAFETY: as for the push in `queue`, whose entry this is.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            // An error only ends the wait, and an interrupted wait is tried again.
            let _ = self.ring.submitter().squeue_wait();
        }
    }
}

impl<O: Opened> Queue for Uring<O> {
    #[inline(always)]
    fn queue(&mut self, slot: Slot, request: Request) {
        let entry = self.entry(&slot, request);
        self.in_flight.hold(slot);
        // SAFETY: the entry names bytes inside the slot's buffer, as `address` checked. The slot is held until the
        // completion is taken, and the buffer is there and untouched as long as it is.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        if pushed.is_err() {
            self.push_when_free(&entry);
        }
    }

    fn syscall(&self, action: Action) -> &'static str {
        match action {
            Action::Read => "io_uring read",
            Action::Write => "io_uring write",
            Action::Trim => "io_uring trim",
            Action::Fsync => "io_uring fsync",
            Action::Fdatasync => "io_uring fdatasync",
        }
    }
}

impl<O: Opened> Backend for Uring<O> {
    const VARIED_ONLY: bool = O::SEVERAL;

    #[inline(always)]
    fn complete(
        &mut self,
        wait: u32,
        done: &mut Vec<Completion>,
    ) -> std::result::Result<(), SystemFailure> {
        let found = self.spin.allows() && {
            let look = self.look(wait as usize);
            self.spin.learn(look);
            look.found
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

    fn settle(&mut self, timeout: Duration, done: &mut Vec<Completion>) {
        let began = Instant::now();
        // Completed requests are in the ring even if the system call that would wait for more fails.
        self.take(done);
        while !self.in_flight.is_empty() {
            let left = timeout.saturating_sub(began.elapsed());
            if left.is_zero() || self.complete_within(left.min(SETTLE_WAIT), done).is_err() {
                return;
            }
        }
    }

    fn offset_in_each_file(&self) -> Vec<u64> {
        self.opened.offset_in_each()
    }

    fn effective(&self) -> Effective {
        self.effective.clone()
    }
}

/// Errors that are not failures: a signal, a wait that timed out, a ring whose completions have to be taken first.
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

/// Error of a trial for which the system refuses a ring.
pub(crate) fn refused(error: &std::io::Error) -> Error {
    Error::usage(format!("io_uring cannot be set up: {error}")).hint(match error.raw_os_error() {
        Some(libc::EPERM) => {
            "the system forbids it (sysctl kernel.io_uring_disabled, or a container's filter): set backend=libaio or backend=psync"
        }
        Some(libc::ENOMEM) => "raise the locked-memory limit (ulimit -l), or use fewer threads or a smaller depth",
        Some(libc::EMFILE | libc::ENFILE) => "raise the limit of open files (ulimit -n), or use fewer threads",
        _ => "set backend=libaio or backend=psync",
    })
}

/// Makes a ring, which is dropped.
///
/// # Errors
/// Why the system gives this process none.
pub(crate) fn try_ring() -> std::io::Result<()> {
    IoUring::new(1).map(drop)
}

/// Idle time after which the kernel's polling thread of SQPOLL goes to sleep, ms.
const SQPOLL_IDLE_MS: u32 = 1_000;

/// The ring in the best mode the kernel takes, and its flags. If it has no memory for one, the buffers of the trial are not to be registered.
fn build(spec: &TrialSpec, registration: &Registration) -> Result<(IoUring, Vec<RingFlag>)> {
    // With SQPOLL the kernel's thread issues and completes: task-run flags do not apply there.
    let modes: &[&[RingFlag]] = if spec.sqpoll {
        &[
            &[RingFlag::Sqpoll, RingFlag::SingleIssuer],
            &[RingFlag::Sqpoll],
        ]
    } else {
        &[
            &[RingFlag::SingleIssuer, RingFlag::DeferTaskrun],
            &[RingFlag::CoopTaskrun],
            &[],
        ]
    };
    let mut last = None;
    for mode in modes {
        let polled = spec.iopoll.then_some(RingFlag::Iopoll);
        let flags: Vec<RingFlag> = mode.iter().copied().chain(polled).collect();
        let mut builder = IoUring::builder();
        for flag in &flags {
            match flag {
                RingFlag::Sqpoll => builder.setup_sqpoll(SQPOLL_IDLE_MS),
                RingFlag::SingleIssuer => builder.setup_single_issuer(),
                RingFlag::DeferTaskrun => builder.setup_defer_taskrun(),
                RingFlag::CoopTaskrun => builder.setup_coop_taskrun(),
                RingFlag::Iopoll => builder.setup_iopoll(),
                // Done by iolab alone, without a flag for the kernel.
                RingFlag::Spin => &mut builder,
            };
        }
        match builder.build(spec.depth) {
            Ok(ring) => return Ok((ring, flags)),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => last = Some(error),
            Err(error) => {
                last = Some(error);
                break;
            }
        }
    }
    let error = last.expect("at least one mode was tried");
    if error.raw_os_error() == Some(libc::ENOMEM) {
        registration.refuse(LOCKED_MEMORY.to_owned());
    }
    Err(refused(&error))
}
