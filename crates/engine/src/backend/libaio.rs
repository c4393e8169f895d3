//! `libaio`: Linux native asynchronous I/O by its system calls, without the library.
//!
//! With buffered files `io_submit` itself waits for the data; only direct I/O is asynchronous.

use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use super::Opened;
use crate::buffer::Slot;
use crate::request::{Action, Backend, Completion, InFlight, Queue, Request, SystemFailure};
use iolab_workload::outcome::Effective;
use iolab_workload::trial::{CacheState, TrialSpec};
use iolab_workload::{Error, Result};

/// `struct iocb` of linux/aio_abi.h, which orders `key` and `rw_flags` by the byte order of the machine.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Iocb {
    data: u64,
    #[cfg(target_endian = "little")]
    key: u32,
    rw_flags: i32,
    #[cfg(target_endian = "big")]
    key: u32,
    opcode: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    eventfd: u32,
}

/// `struct io_event` of linux/aio_abi.h.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct IoEvent {
    data: u64,
    object: u64,
    result: i64,
    result2: i64,
}

const OP_PREAD: u16 = 0;
const OP_PWRITE: u16 = 1;
const OP_FSYNC: u16 = 2;
const OP_FDSYNC: u16 = 3;
const OP_NONE: u16 = u16::MAX;

pub(crate) struct Libaio<O> {
    opened: O,
    context: libc::c_ulong,
    control: Vec<Iocb>,
    /// Control blocks not submitted yet.
    pending: Vec<*mut Iocb>,
    events: Vec<IoEvent>,
    slots: InFlight,
    /// Requests that the kernel has.
    in_flight: usize,
    buffered: bool,
    /// Flags of reads and of writes (`RWF_`).
    write_flags: i32,
}

impl<O: Opened> Libaio<O> {
    pub(crate) fn new(opened: O, spec: &TrialSpec) -> Result<Self> {
        let depth = spec.depth;
        let mut context: libc::c_ulong = 0;
        // SAFETY: the pointer is to a writable word set to zero, as io_setup(2) demands.
        let status = unsafe { libc::syscall(libc::SYS_io_setup, depth, &mut context) };
        if status < 0 {
            let error = std::io::Error::last_os_error();
            let failed = Error::usage(format!("io_setup for depth {depth} failed: {error}"));
            return Err(failed.caused_by(&error).hint(
                match error.raw_os_error() {
                    Some(libc::EAGAIN) => {
                        "the system's limit is used up: raise fs.aio-max-nr with sysctl, or use fewer threads or a smaller depth"
                    }
                    _ => "set backend=io_uring or backend=psync",
                },
            ));
        }
        Ok(Self {
            opened,
            context,
            control: vec![Iocb::default(); depth as usize],
            pending: Vec::with_capacity(depth as usize),
            events: vec![IoEvent::default(); depth as usize],
            slots: InFlight::new(depth),
            in_flight: 0,
            buffered: spec.cache != CacheState::Direct,
            write_flags: super::write_flags(spec),
        })
    }

    fn submit(&mut self) -> std::result::Result<(), SystemFailure> {
        let (mut submitted, mut result) = (0, Ok(()));
        while submitted < self.pending.len() {
            let rest = &self.pending[submitted..];
            // SAFETY: the pointers are to control blocks of this value, which the kernel reads and marks within the
            // call. Their buffers are inside slots that are held until the completion is taken: a buffer is there and
            // untouched as long as its slot is.
            let taken = unsafe {
                libc::syscall(libc::SYS_io_submit, self.context, rest.len(), rest.as_ptr())
            };
            if taken > 0 {
                submitted += taken as usize;
                continue;
            }
            match last_errno() {
                libc::EINTR => {}
                // The request queue is full: requests in flight will complete and make room.
                libc::EAGAIN if self.in_flight + submitted > 0 => break,
                errno => {
                    result = Err(SystemFailure {
                        syscall: "io_submit",
                        errno,
                    });
                    break;
                }
            }
        }
        // Also after a failure: the kernel uses the buffers of the requests that it took.
        self.pending.drain(..submitted);
        self.in_flight += submitted;
        result
    }

    /// Takes at least `wait` completions, or as many as there are when the time is over.
    #[inline(always)]
    fn collect(
        &mut self,
        wait: u32,
        mut timeout: Option<libc::timespec>,
        done: &mut Vec<Completion>,
    ) -> std::result::Result<(), SystemFailure> {
        let timeout = timeout
            .as_mut()
            .map_or(std::ptr::null_mut(), std::ptr::from_mut);
        // SAFETY: `events` has room for as many events as are asked for; the timeout is null or lives in this call.
        let count = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                libc::c_long::from(wait),
                self.events.len() as libc::c_long,
                self.events.as_mut_ptr(),
                timeout,
            )
        };
        if count < 0 {
            return match last_errno() {
                libc::EINTR => Ok(()),
                errno => Err(SystemFailure {
                    syscall: "io_getevents",
                    errno,
                }),
            };
        }
        self.in_flight -= count as usize;
        done.extend(
            self.events[..count as usize]
                .iter()
                .map(|event| Completion {
                    slot: self.slots.give_back(event.data),
                    result: event.result,
                }),
        );
        Ok(())
    }
}

impl<O> Drop for Libaio<O> {
    fn drop(&mut self) {
        // The call waits for requests in flight.
        // SAFETY: the context came from io_setup and is destroyed once; no memory of ours is passed.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

impl<O: Opened> Queue for Libaio<O> {
    #[inline(always)]
    fn queue(&mut self, slot: Slot, request: Request) {
        let index = slot.index() as usize;
        assert!(
            index < self.control.len(),
            "there is a control block for every slot"
        );
        let (file, request) = self.opened.resolve(request);
        let mut filled = Iocb {
            data: u64::from(slot.index()),
            opcode: match request.action {
                Action::Read => OP_PREAD,
                Action::Write => OP_PWRITE,
                // Trials that trim are refused with this backend, and this by the kernel.
                Action::Trim => OP_NONE,
                Action::Fsync => OP_FSYNC,
                Action::Fdatasync => OP_FDSYNC,
            },
            fd: self.opened.files()[file].as_raw_fd() as u32,
            ..Iocb::default()
        };
        if request.action == Action::Write {
            filled.rw_flags = self.write_flags;
        }
        if !request.action.is_sync() {
            filled.buffer = slot.address(request.at, request.len).as_ptr() as u64;
            filled.bytes = u64::from(request.len);
            filled.offset = request.offset as i64;
        }
        // No reference to the control blocks is ever made, which would end the right of the pointers that are pending.
        // SAFETY: the index is below the length. The block is not pending: the slot would be held.
        let control = unsafe {
            let control = self.control.as_mut_ptr().add(index);
            control.write(filled);
            control
        };
        self.slots.hold(slot);
        self.pending.push(control);
    }

    fn syscall(&self, action: Action) -> &'static str {
        match action {
            Action::Read => "io_submit (read)",
            Action::Write => "io_submit (write)",
            Action::Trim => "io_submit (trim)",
            Action::Fsync => "io_submit (fsync)",
            Action::Fdatasync => "io_submit (fdatasync)",
        }
    }
}

impl<O: Opened> Backend for Libaio<O> {
    const VARIED_ONLY: bool = O::SEVERAL;

    #[inline(always)]
    fn complete(
        &mut self,
        wait: u32,
        done: &mut Vec<Completion>,
    ) -> std::result::Result<(), SystemFailure> {
        self.submit()?;
        // After a partly refused submission fewer requests than `wait` may be in flight.
        let wait = if self.pending.is_empty() { wait } else { 1 };
        self.collect(wait, None, done)
    }

    fn complete_within(
        &mut self,
        timeout: Duration,
        done: &mut Vec<Completion>,
    ) -> std::result::Result<(), SystemFailure> {
        self.submit()?;
        self.collect(1, Some(timespec(timeout)), done)
    }

    fn settle(&mut self, timeout: Duration, done: &mut Vec<Completion>) {
        for control in self.pending.drain(..) {
            // SAFETY: as in `queue`, the pointer is to a control block of this value.
            let number = unsafe { (*control).data };
            done.push(Completion {
                slot: self.slots.give_back(number),
                result: -i64::from(libc::ECANCELED),
            });
        }
        let began = Instant::now();
        while self.in_flight > 0 {
            let left = timeout.saturating_sub(began.elapsed());
            if left.is_zero() || self.collect(1, Some(timespec(left)), done).is_err() {
                return;
            }
        }
    }

    fn offset_in_each_file(&self) -> Vec<u64> {
        self.opened.offset_in_each()
    }

    fn effective(&self) -> Effective {
        Effective {
            note: if self.buffered {
                "buffered libaio waits inside io_submit: the depth is not reached".to_owned()
            } else {
                String::new()
            },
            ..Effective::default()
        }
    }
}

fn timespec(duration: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: duration.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(duration.subsec_nanos()),
    }
}

fn last_errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::OneFile;
    use super::*;
    use crate::buffer::Buffers;
    use needs::settings;

    const LENGTH: u32 = 512;

    /// A backend for two requests at once, its buffers, and a read that it can be asked for; a skip if there is none.
    fn bench() -> Option<(Libaio<OneFile>, Buffers, Request)> {
        let spec = settings("bs=512 depth=2 cache=cold");
        let buffers = Buffers::new(&spec, 0).expect("two pages");
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(&[7; LENGTH as usize]).expect("written");
        let libaio = Libaio::new(OneFile::new(file), &spec);
        let libaio = libaio.map_err(|error| needs::skip(needs::Need::Libaio, error));
        let read = Request {
            action: Action::Read,
            offset: 0,
            at: 0,
            len: LENGTH,
        };
        Some((libaio.ok()?, buffers, read))
    }

    #[test]
    fn requests_taken_before_a_failure_are_awaited() {
        let Some((mut libaio, mut buffers, read)) = bench() else {
            return;
        };
        let refused = Request {
            action: Action::Trim,
            ..read
        };
        libaio.queue(buffers.take().expect("two slots"), read);
        libaio.queue(buffers.take().expect("two slots"), refused);
        let mut done = Vec::new();
        let failure = libaio.complete(1, &mut done).expect_err("it cannot trim");
        assert_eq!(
            (failure.syscall, failure.errno),
            ("io_submit", libc::EINVAL)
        );
        assert_eq!((libaio.in_flight, libaio.pending.len()), (1, 1));
        libaio.settle(Duration::from_secs(60), &mut done);
        let results: Vec<i64> = done.iter().map(|completion| completion.result).collect();
        assert_eq!(results, [-i64::from(libc::ECANCELED), i64::from(LENGTH)]);
        assert!(libaio.slots.is_empty());
    }

    #[test]
    fn a_failure_leaves_slots_with_the_kernel() {
        let Some((mut libaio, mut buffers, read)) = bench() else {
            return;
        };
        libaio.queue(buffers.take().expect("two slots"), read);
        libaio.submit().expect("submitted");
        // From here on every call fails.
        let context = std::mem::replace(&mut libaio.context, 1);
        let mut done = Vec::new();
        let failure = libaio.complete(1, &mut done).expect_err("no context");
        assert_eq!(failure.syscall, "io_getevents");
        libaio.queue(buffers.take().expect("two slots"), read);
        let failure = libaio.complete(1, &mut done).expect_err("no context");
        assert_eq!(failure.syscall, "io_submit");
        libaio.settle(Duration::from_secs(60), &mut done);
        // The request that never reached the kernel is back, the other is not.
        let back: Vec<_> = done.drain(..).map(|c| (c.slot.index(), c.result)).collect();
        assert_eq!(back, [(0, -i64::from(libc::ECANCELED))]);
        assert!(!libaio.slots.is_empty());
        libaio.context = context;
        libaio.settle(Duration::from_secs(60), &mut done);
        let mut completion = done.pop().expect("the first request");
        assert_eq!(completion.result, i64::from(LENGTH));
        assert!(completion.slot.bytes().iter().all(|byte| *byte == 7));
        assert!(libaio.slots.is_empty());
    }
}
