//! `mmap`: copies between the buffer and a shared mapping of the region.
//!
//! An I/O error on a mapping arrives as SIGBUS. The handler installed here maps a page of zeros
//! over the place that failed, so that the copy can finish, and marks the thread; the request then
//! fails with EIO. A SIGBUS that is not ours goes to whoever handled it before.

use std::cell::Cell;
use std::fs::File;
use std::ptr::NonNull;
use std::sync::OnceLock;

use rustix::mm::{MapFlags, ProtFlags};

use super::{Action, Backend, Completion, Request, SystemFailure};
use crate::buffer::Slot;
use crate::error::{Error, Result};

thread_local! {
    /// Mapping of this thread: start, end, whether a fault hit it.
    static GUARD: Cell<(usize, usize, bool)> = const { Cell::new((0, 0, false)) };
}

static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

pub(crate) struct Mmap {
    file: File,
    map: NonNull<u8>,
    len: usize,
    offset: u64,
    queued: Option<(Slot, Request)>,
}

impl Mmap {
    /// Maps `len` bytes from `offset`; to be called by the thread that uses it.
    pub(crate) fn new(file: File, offset: u64, len: u64, write: bool) -> Result<Self> {
        install_handler();
        let page = rustix::param::page_size() as u64;
        let offset_of_map = offset - offset % page;
        let len = usize::try_from(len + (offset - offset_of_map)).unwrap_or(usize::MAX);
        let mut prot = ProtFlags::READ;
        prot.set(ProtFlags::WRITE, write);
        // SAFETY: a fresh mapping at an address of the kernel's choice touches nothing that exists.
        let map = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                len,
                prot,
                MapFlags::SHARED,
                &file,
                offset_of_map,
            )
        };
        let map = map
            .ok()
            .and_then(|m| NonNull::new(m.cast::<u8>()))
            .ok_or_else(|| {
                Error::usage(format!(
                    "the target cannot be mapped into memory ({len} bytes)"
                ))
                .hint("choose another backend, for example psync, or a smaller region")
            })?;
        let start = map.addr().get();
        GUARD.set((start, start + len, false));
        Ok(Self {
            file,
            map,
            len,
            offset: offset_of_map,
            queued: None,
        })
    }

    #[inline(always)]
    fn issue(&self, slot: &mut Slot, request: Request) -> i64 {
        if request.action == Action::Fsync {
            return rustix::fs::fsync(&self.file)
                .map_or_else(|e| -i64::from(e.raw_os_error()), |()| 0);
        }
        let buffer = slot.part(request.at, request.len);
        let at = request.offset.wrapping_sub(self.offset) as usize;
        let fits = at <= self.len && buffer.len() <= self.len - at;
        assert!(fits, "a request stays inside the mapping");
        // SAFETY: the bytes lie inside the mapping, as was just checked, and the buffer, a mapping of its own, is
        // borrowed exclusively. A fault while they are copied ends in the handler, which leaves a page to copy to or from.
        unsafe {
            let mapped = self.map.add(at).as_ptr();
            let (buffer, len) = (buffer.as_mut_ptr(), buffer.len());
            match request.action {
                Action::Read => std::ptr::copy_nonoverlapping(mapped, buffer, len),
                _ => std::ptr::copy_nonoverlapping(buffer, mapped, len),
            }
        }
        // The handler runs in this thread, so that what it stored is seen here.
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
        let (start, end, hit) = GUARD.get();
        if hit {
            GUARD.set((start, end, false));
            return -i64::from(libc::EIO);
        }
        i64::from(request.len)
    }
}

impl Drop for Mmap {
    fn drop(&mut self) {
        GUARD.set((0, 0, false));
        // SAFETY: unmaps exactly what was mapped; no reference into it exists.
        let unmapped = unsafe { rustix::mm::munmap(self.map.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok());
    }
}

impl Backend for Mmap {
    #[inline(always)]
    fn queue(&mut self, slot: Slot, request: Request) {
        self.queued = Some((slot, request));
    }

    #[inline(always)]
    fn complete(
        &mut self,
        _wait: u32,
        done: &mut Vec<Completion>,
    ) -> std::result::Result<(), SystemFailure> {
        if let Some((mut slot, request)) = self.queued.take() {
            let result = self.issue(&mut slot, request);
            done.push(Completion { slot, result });
        }
        Ok(())
    }

    #[inline(always)]
    fn transfer(&mut self, slot: &mut Slot, request: Request) -> Option<i64> {
        Some(self.issue(slot, request))
    }

    fn syscall(&self, action: Action) -> &'static str {
        match action {
            Action::Read => "read from the mapping",
            Action::Write => "write to the mapping",
            Action::Fsync => "fsync",
        }
    }
}

fn install_handler() {
    PREVIOUS.get_or_init(|| {
        // SAFETY: both structures are zeroed and then filled; the handler calls only async-signal-safe functions.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = on_sigbus;
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
            let mut previous: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGBUS, &action, &mut previous);
            previous
        }
    });
}

extern "C" fn on_sigbus(_signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo_t to a handler installed with SA_SIGINFO.
    let address = unsafe { (*info).si_addr() } as usize;
    let (start, end, _) = GUARD.get();
    if (start..end).contains(&address) {
        let page = 4096;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        // SAFETY: replaces one page inside our own mapping, in which no Rust object lives.
        let replaced = unsafe {
            libc::mmap(
                (address & !(page - 1)) as *mut libc::c_void,
                page,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                -1,
                0,
            )
        };
        if replaced != libc::MAP_FAILED {
            GUARD.set((start, end, true));
            return;
        }
    }
    // Not ours: restore what was there and let the fault happen again.
    // SAFETY: PREVIOUS was set before this handler could run, from what the kernel returned.
    unsafe {
        match PREVIOUS.get() {
            Some(previous) => libc::sigaction(libc::SIGBUS, previous, std::ptr::null_mut()),
            None => libc::abort(),
        };
    }
}
