//! `io_uring`: with registered file and buffers, and the cheapest ring mode the kernel has.

mod ring;

use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

use io_uring::types::{Fd, Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, opcode, squeue};

use super::target_files::Opened;
use crate::buffer::{Buffers, Slot};
use crate::request::{Action, Backend, Completion, InFlight, Request, SystemFailure};
use iolab_workload::outcome::{Effective, RingFlag};
use iolab_workload::trial::TrialSpec;
use iolab_workload::{Error, Result};
use ring::{Ring, build};

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
    ring: Ring,
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
        let ring = build(spec, buffers.registration())?;
        let mut flags = ring.flags.clone();
        if spec.rate.is_some() && !ring.ring.params().is_feature_ext_arg() {
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
        let submitter = self.ring.ring.submitter();
        let files: Vec<RawFd> = self.opened.files().iter().map(AsRawFd::as_raw_fd).collect();
        match submitter.register_files(&files) {
            Ok(()) => self.effective.fixed_file = true,
            Err(error) => self.effective.note = format!("file not registered: {error}"),
        }
        if let Some(refusal) = buffers.registration().refusal() {
            self.effective.note = format!("buffers not registered: {refusal}");
            return Ok(());
        }
        let vectors: Vec<libc::iovec> = buffers.home().iter().map(Slot::as_iovec).collect();
        // SAFETY: the addresses lie in a live mapping. The kernel pins the pages until they are unregistered or the ring is
        // gone. If the mapping goes first, the kernel still writes to those pages alone.
        match unsafe { submitter.register_buffers(&vectors) } {
            Ok(()) => {
                self.ring.has_buffers = true;
                self.effective.fixed_buffers = true;
                Ok(())
            }
            Err(error) => {
                buffers.registration().refuse(match error.raw_os_error() {
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
            found = self.ring.ring.completion().len() >= wait;
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
            return self.ring.ring.submit();
        }
        let queued = self.ring.ring.submission().len() as u32;
        let flags = EnterFlags::GETEVENTS.bits();
        // SAFETY: `queue` pushed these entries, whose memory stays until their completion is taken. No signal mask is
        // passed, so its type does not matter.
        unsafe {
            self.ring
                .ring
                .submitter()
                .enter::<libc::sigset_t>(queued, 0, flags, None)
        }
    }

    #[inline(always)]
    fn take(&mut self, done: &mut Vec<Completion>) {
        done.extend(self.ring.ring.completion().map(|entry| Completion {
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
            self.ring.has_buffers = false;
            return;
        }
        // A ring is torn down by the kernel at leisure; a registered file would keep the target busy until then.
        if self.effective.fixed_file {
            let _ = self.ring.ring.submitter().unregister_files();
        }
    }
}

impl<O> Uring<O> {
    /// Waits until the kernel's thread gives entries back (sqpoll): it does so after a batch, of which requests may have completed long before.
    #[cold]
    fn push_when_free(&mut self, entry: &squeue::Entry) {
        assert!(self.sqpoll, "the ring has an entry for every slot");
        // SAFETY: as for the push in `queue`, whose entry this is.
        while unsafe { self.ring.ring.submission().push(entry) }.is_err() {
            // An error only ends the wait, and an interrupted wait is tried again.
            let _ = self.ring.ring.submitter().squeue_wait();
        }
    }
}

impl<O: Opened> Backend for Uring<O> {
    const VARIED_ONLY: bool = O::SEVERAL;

    #[inline(always)]
    fn queue(&mut self, slot: Slot, request: Request) {
        let entry = self.entry(&slot, request);
        self.in_flight.hold(slot);
        // SAFETY: the entry names bytes inside the slot's buffer, as `address` checked. The slot is held until the
        // completion is taken, and the buffer is there and untouched as long as it is.
        let pushed = unsafe { self.ring.ring.submission().push(&entry) };
        if pushed.is_err() {
            self.push_when_free(&entry);
        }
    }

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
            tolerate(self.ring.ring.submit_and_wait(wait as usize))?;
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
            self.ring.ring.submitter().submit_with_args(1, &arguments)
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

    fn syscall(&self, action: Action) -> &'static str {
        match action {
            Action::Read => "io_uring read",
            Action::Write => "io_uring write",
            Action::Trim => "io_uring trim",
            Action::Fsync => "io_uring fsync",
            Action::Fdatasync => "io_uring fdatasync",
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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::OwnedFd;

    use super::super::target_files::OneFile;
    use super::*;
    use crate::trial::tests::settings;

    const LENGTH: u32 = 4096;

    fn file(end: OwnedFd) -> File {
        end.into()
    }

    /// A ring with one request in flight that reads from a pipe without data.
    struct Stuck {
        uring: Uring<OneFile>,
        buffers: Buffers,
        address: *const u8,
        pipe: File,
    }

    impl Stuck {
        fn new() -> Option<Self> {
            let spec = settings("depth=2 buffer_init=zeroed");
            let mut buffers = Buffers::new(&spec, 0).expect("two pages");
            let (reader, writer) = std::io::pipe().expect("a pipe");
            let opened = OneFile::new(file(reader.into()));
            let mut uring = match Uring::new(opened, &spec, &buffers) {
                Ok(uring) => uring,
                Err(error) => {
                    needs::skip(needs::Need::IoUring, error);
                    return None;
                }
            };
            let slot = buffers.take().expect("two slots");
            let address = slot.address(0, LENGTH).as_ptr();
            let request = Request {
                action: Action::Read,
                offset: 0,
                at: 0,
                len: LENGTH,
            };
            uring.queue(slot, request);
            let mut done = Vec::new();
            let looked = uring.complete_within(Duration::ZERO, &mut done);
            assert!(looked.is_ok() && done.is_empty(), "{looked:?} {done:?}");
            Some(Self {
                uring,
                buffers,
                address,
                pipe: file(writer.into()),
            })
        }
    }

    #[test]
    fn buffer_memory_outlives_a_failing_ring() {
        let Some(mut stuck) = Stuck::new() else {
            return;
        };
        let nothing = File::open("/dev/null").expect("/dev/null");
        // SAFETY: the descriptor is the ring's own, which closes what it finds there; its memory stays mapped.
        let replaced =
            unsafe { libc::dup2(nothing.as_raw_fd(), stuck.uring.ring.ring.as_raw_fd()) };
        assert!(replaced >= 0);
        let mut done = Vec::new();
        let failure = stuck.uring.complete(1, &mut done).expect_err("no ring");
        assert_eq!(failure.syscall, "io_uring_enter");
        stuck.uring.settle(Duration::from_secs(1), &mut done);
        assert!(done.is_empty(), "{done:?}");
        drop(stuck.uring);
        drop(stuck.buffers);
        // From here on the kernel may write into the buffer.
        stuck.pipe.write_all(&[7; 8]).ok();
        // SAFETY: the slot has not come back, so that its buffer is still mapped; the kernel alone may write to it.
        let first = unsafe { stuck.address.read_volatile() };
        assert!([0, 7].contains(&first), "{first}");
    }

    #[test]
    fn settle_waits_for_requests_in_flight() {
        let Some(mut stuck) = Stuck::new() else {
            return;
        };
        let mut done = Vec::new();
        stuck.uring.settle(Duration::ZERO, &mut done);
        assert!(done.is_empty() && !stuck.uring.in_flight.is_empty());
        stuck.pipe.write_all(&[7; 8]).expect("room in the pipe");
        stuck.uring.settle(Duration::from_secs(60), &mut done);
        assert!(stuck.uring.in_flight.is_empty());
        let mut completion = done.pop().expect("the request");
        assert_eq!(completion.result, 8);
        assert_eq!(completion.slot.part(0, 8), [7; 8]);
    }

    const FOUND: Look = Look {
        found: true,
        lost_cpu: false,
    };
    const LOST: Look = Look {
        found: true,
        lost_cpu: true,
    };

    /// Number of the next `waits` waits that look first.
    fn looks(spin: &mut SpinPolicy, waits: u32) -> usize {
        (0..waits).filter(|_| spin.allows()).count()
    }

    #[test]
    fn looking_in_vain_stops_and_is_retried() {
        let mut spin = SpinPolicy::new(true);
        assert!(spin.allows());
        let in_vain = Look {
            found: false,
            lost_cpu: false,
        };
        (0..20).for_each(|_| spin.learn(in_vain));
        assert_eq!(looks(&mut spin, 640), 10);
        (0..8).for_each(|_| spin.learn(FOUND));
        assert_eq!(looks(&mut spin, 100), 100, "it pays again");
        assert_eq!(looks(&mut SpinPolicy::new(false), 100), 0);
    }

    /// A completion found after others had the CPU was not found by looking.
    #[test]
    fn looking_stops_when_it_loses_the_cpu() {
        let mut spin = SpinPolicy::new(true);
        spin.learn(LOST);
        assert_eq!(looks(&mut spin, 2048), 2);
        spin.learn(LOST);
        assert_eq!(looks(&mut spin, 32_768), 2);
        (0..8).for_each(|_| spin.learn(FOUND));
        assert_eq!(looks(&mut spin, 100), 100, "the others have gone");
        // If looking pays, one program that runs for a moment changes nothing.
        spin.learn(FOUND);
        (0..8).for_each(|_| spin.learn(FOUND));
        spin.learn(LOST);
        assert_eq!(looks(&mut spin, 100), 100);
    }
}
