//! `sync`, `psync` and `pvsync2`: one system call a request (two for `sync`), issued when its
//! completion is asked for.

use std::fs::File;
use std::io::{IoSlice, IoSliceMut};

use rustix::fs::SeekFrom;
use rustix::io::{Errno, ReadWriteFlags};

use super::{Action, Backend, Completion, Request, SystemFailure};

/// How one data request becomes system calls.
pub(crate) trait Calls {
    /// Names of the read and the write call.
    const NAMES: (&'static str, &'static str);

    fn read(&mut self, file: &File, buffer: &mut [u8], offset: u64) -> Result<usize, Errno>;
    fn write(&mut self, file: &File, buffer: &[u8], offset: u64) -> Result<usize, Errno>;
}

/// `lseek` then `read` or `write`; the file's position is this worker's own.
pub(crate) struct SeekCalls;

impl Calls for SeekCalls {
    const NAMES: (&'static str, &'static str) = ("read", "write");

    #[inline(always)]
    fn read(&mut self, file: &File, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
        rustix::fs::seek(file, SeekFrom::Start(offset))?;
        rustix::io::read(file, buffer)
    }

    #[inline(always)]
    fn write(&mut self, file: &File, buffer: &[u8], offset: u64) -> Result<usize, Errno> {
        rustix::fs::seek(file, SeekFrom::Start(offset))?;
        rustix::io::write(file, buffer)
    }
}

/// `pread` and `pwrite`.
pub(crate) struct PositionedCalls;

impl Calls for PositionedCalls {
    const NAMES: (&'static str, &'static str) = ("pread", "pwrite");

    #[inline(always)]
    fn read(&mut self, file: &File, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
        rustix::io::pread(file, buffer, offset)
    }

    #[inline(always)]
    fn write(&mut self, file: &File, buffer: &[u8], offset: u64) -> Result<usize, Errno> {
        rustix::io::pwrite(file, buffer, offset)
    }
}

/// `preadv2` and `pwritev2` with one vector.
pub(crate) struct VectoredCalls {
    pub(crate) flags: ReadWriteFlags,
}

impl Calls for VectoredCalls {
    const NAMES: (&'static str, &'static str) = ("preadv2", "pwritev2");

    #[inline(always)]
    fn read(&mut self, file: &File, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
        rustix::io::preadv2(file, &mut [IoSliceMut::new(buffer)], offset, self.flags)
    }

    #[inline(always)]
    fn write(&mut self, file: &File, buffer: &[u8], offset: u64) -> Result<usize, Errno> {
        rustix::io::pwritev2(file, &[IoSlice::new(buffer)], offset, self.flags)
    }
}

/// The synchronous backend over one kind of calls.
pub(crate) struct Synchronous<C> {
    file: File,
    calls: C,
    queued: Option<(u32, Request)>,
}

impl<C: Calls> Synchronous<C> {
    pub(crate) fn new(file: File, calls: C) -> Self {
        Self {
            file,
            calls,
            queued: None,
        }
    }

    #[inline(always)]
    fn issue(&mut self, request: Request) -> Result<usize, Errno> {
        let (start, len) = (request.memory.as_ptr(), request.len as usize);
        match request.action {
            Action::Read => {
                // SAFETY: the memory is valid and unshared until the request completes. It may be unwritten by
                // us, but it comes from an anonymous mapping, whose bytes are always initialised.
                let buffer = unsafe { std::slice::from_raw_parts_mut(start, len) };
                self.calls.read(&self.file, buffer, request.offset)
            }
            Action::Write => {
                // SAFETY: as above; nobody writes to it meanwhile.
                let buffer = unsafe { std::slice::from_raw_parts(start, len) };
                self.calls.write(&self.file, buffer, request.offset)
            }
            Action::Fsync => rustix::fs::fsync(&self.file).map(|()| 0),
        }
    }
}

impl<C: Calls> Backend for Synchronous<C> {
    #[inline(always)]
    fn queue(&mut self, slot: u32, request: Request) {
        debug_assert!(self.queued.is_none());
        self.queued = Some((slot, request));
    }

    #[inline(always)]
    fn complete(&mut self, _wait: u32, done: &mut Vec<Completion>) -> Result<(), SystemFailure> {
        if let Some((slot, request)) = self.queued.take() {
            let result = loop {
                match self.issue(request) {
                    Ok(bytes) => break bytes as i64,
                    Err(Errno::INTR) => {}
                    Err(errno) => break -i64::from(errno.raw_os_error()),
                }
            };
            done.push(Completion { slot, result });
        }
        Ok(())
    }

    fn syscall(&self, action: Action) -> &'static str {
        match action {
            Action::Read => C::NAMES.0,
            Action::Write => C::NAMES.1,
            Action::Fsync => "fsync",
        }
    }
}
