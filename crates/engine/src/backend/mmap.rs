//! `mmap`: copies between the buffer and a shared mapping of the region, in place of system calls.
//!
//! An I/O error on a mapping arrives as SIGBUS, which [`watch`] turns into an error of the request.
//!
//! Faults in a mapping as errors of the request that touched it.
//!
//! Reading a mapping has no result that could be an error: if the kernel cannot provide a page, because the file was cut
//! short or the device failed, it raises SIGBUS in the thread that touched it. The handler here maps a page of zeros over
//! that place, so that the copy ends, and marks the thread, whose request then fails. Every other SIGBUS goes to the
//! handler that was there before, as if this one were not.

use std::fs::File;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, compiler_fence};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use super::synchronous::Calls;
use iolab_workload::{Error, Result};

pub(crate) struct MappedCalls {
    map: NonNull<u8>,
    len: usize,
    offset: u64,
    /// Taken before the mapping goes.
    watch: Option<Watch>,
}

impl MappedCalls {
    /// Maps a range of a file; to be called by the thread that uses it.
    pub(crate) fn new(file: &File, range: Range<u64>, write: bool) -> Result<Self> {
        let (offset, len) = (range.start, range.end - range.start);
        let page = iolab_storage::procfs::page_size() as u64;
        let offset_of_map = offset - offset % page;
        let len = usize::try_from(len + (offset - offset_of_map)).unwrap_or(usize::MAX);
        let mut prot = ProtFlags::READ;
        prot.set(ProtFlags::WRITE, write);
        // SAFETY: a fresh mapping at an address of the kernel's choice touches nothing that exists.
        let map = unsafe {
            rustix::mm::mmap(
                ptr::null_mut(),
                len,
                prot,
                MapFlags::SHARED,
                file,
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
        let mut mapped = Self {
            map,
            len,
            offset: offset_of_map,
            watch: None,
        };
        mapped.check_pages()?;
        let start = map.addr().get();
        mapped.watch = Some(Watch::new(start..start + len));
        Ok(mapped)
    }

    /// Checks that single pages of the usual size can be replaced, as [`watch`] does: if larger ones are mapped
    /// (hugetlbfs, device DAX), the kernel splits the mapping only between these.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): it does not split here.
    fn check_pages(&self) -> Result<()> {
        let page = iolab_storage::procfs::page_size();
        if self.len <= page {
            return Ok(());
        }
        let advise = |len| {
            // SAFETY: the range lies in the mapping, which is there. The advice concerns core dumps alone, and changes no byte.
            unsafe { rustix::mm::madvise(self.map.as_ptr().cast(), len, Advice::LinuxDontDump) }
        };
        // A flag on the first page alone takes a split; the same flag on all pages joins the parts again.
        let split = advise(page).and_then(|()| advise(self.len));
        split.map_err(|error| {
            Error::usage(format!(
                "backend=mmap needs pages of {page} bytes, and the target is mapped in larger ones: {error}"
            ))
            .hint("set backend=psync for hugetlbfs and device DAX")
        })
    }

    /// Copies `len` bytes by `copy`, to which the address of the byte at `offset` is given.
    #[inline(always)]
    fn transfer(
        &self,
        offset: u64,
        len: usize,
        copy: impl FnOnce(*mut u8),
    ) -> std::result::Result<usize, Errno> {
        let at = offset.wrapping_sub(self.offset) as usize;
        let fits = at <= self.len && len <= self.len - at;
        assert!(fits, "a request stays inside the mapping");
        // SAFETY: the address lies inside the mapping or at its end, as was just checked.
        copy(unsafe { self.map.add(at).as_ptr() });
        match self.watch.as_ref().is_some_and(Watch::was_hit) {
            true => Err(Errno::IO),
            false => Ok(len),
        }
    }
}

impl Calls for MappedCalls {
    const NAMES: (&'static str, &'static str) = ("read from the mapping", "write to the mapping");

    #[inline(always)]
    fn read(
        &mut self,
        _file: &File,
        buffer: &mut [u8],
        offset: u64,
    ) -> std::result::Result<usize, Errno> {
        let len = buffer.len();
        // SAFETY: the bytes lie inside the mapping, as `transfer` checks, and the buffer, a mapping of its own, is
        // borrowed exclusively. A fault while they are copied leaves a page of zeros to go on with. No reference into the
        // mapping is ever made. Other workers and other programs may write these bytes while they are copied: in Rust's
        // memory model that is a data race, which no type can rule out for a mapped file. As other users of shared mappings
        // do (memmap2, ripgrep), this relies on what compiler and kernel do there: each copy is one call of memcpy on plain
        // bytes, for which every value is valid, so that a race yields old and new bytes mixed and nothing worse.
        let copy =
            |mapped: *mut u8| unsafe { ptr::copy_nonoverlapping(mapped, buffer.as_mut_ptr(), len) };
        self.transfer(offset, len, copy)
    }

    #[inline(always)]
    fn write(
        &mut self,
        _file: &File,
        buffer: &[u8],
        offset: u64,
    ) -> std::result::Result<usize, Errno> {
        let len = buffer.len();
        // SAFETY: as in `read`; only trials that write have a mapping that can be written to, and only they get here.
        let copy = |mapped| unsafe { ptr::copy_nonoverlapping(buffer.as_ptr(), mapped, len) };
        self.transfer(offset, len, copy)
    }
}

impl Drop for MappedCalls {
    fn drop(&mut self) {
        let was_accepted = self.watch.take().is_some();
        // SAFETY: unmaps exactly what was mapped; no reference into it exists.
        let unmapped = unsafe { rustix::mm::munmap(self.map.as_ptr().cast(), self.len) };
        // A mapping of larger pages, which `new` refuses, stays if its length is not a multiple of them.
        debug_assert!(unmapped.is_ok() || !was_accepted);
    }
}

/// The range of a thread that the handler watches. The handler runs in that thread, so no ordering between threads is
/// needed.
struct Watched {
    /// First address; meaningless while `end` is 0.
    start: AtomicUsize,
    /// First address after the range.
    end: AtomicUsize,
    /// Size of a page, bytes.
    page: AtomicUsize,
    /// Whether a fault has hit it.
    hit: AtomicBool,
}

thread_local! {
    /// Made without code and dropped without code, so that a handler may look at it in any thread at any time.
    static WATCHED: Watched = const {
        Watched {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            page: AtomicUsize::new(0),
            hit: AtomicBool::new(false),
        }
    };
}

/// The previous handler of SIGBUS; null until the first [`Watch`], and never freed.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

type Handler = extern "C" fn(libc::c_int);

type InformedHandler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Turns faults of this thread in one mapping into a mark. It stays in its thread.
struct Watch(PhantomData<*const ()>);

impl Watch {
    /// Watches these addresses, in which no Rust value lies, until dropped.
    ///
    /// # Panics
    /// When this thread watches a mapping already.
    fn new(addresses: Range<usize>) -> Self {
        install();
        WATCHED.with(|watched| {
            let end = watched.end.load(Ordering::Relaxed);
            assert_eq!(end, 0, "a thread watches one mapping");
            watched
                .page
                .store(iolab_storage::procfs::page_size(), Ordering::Relaxed);
            watched.start.store(addresses.start, Ordering::Relaxed);
            watched.hit.store(false, Ordering::Relaxed);
            watched.end.store(addresses.end, Ordering::Relaxed);
        });
        // Only what follows may fault.
        compiler_fence(Ordering::SeqCst);
        Self(PhantomData)
    }

    /// Whether a fault has hit the mapping since this was last asked.
    #[inline(always)]
    fn was_hit(&self) -> bool {
        // Keeps earlier copies before this look.
        compiler_fence(Ordering::SeqCst);
        WATCHED.with(|watched| {
            let hit = watched.hit.load(Ordering::Relaxed);
            if hit {
                watched.hit.store(false, Ordering::Relaxed);
            }
            hit
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        WATCHED.with(|watched| watched.end.store(0, Ordering::Relaxed));
    }
}

/// Installs the handler, once for the process.
fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // The handler must know its predecessor before it can run.
        let known = exchange(None);
        BEFORE.store(Box::into_raw(Box::new(known)), Ordering::Release);
        let handler: InformedHandler = on_sigbus;
        let own = libc::sigaction {
            sa_sigaction: handler as usize,
            // Uses the thread's alternate stack if it has one, and blocks the signals that the predecessor expects.
            sa_flags: libc::SA_SIGINFO | libc::SA_ONSTACK | (known.sa_flags & libc::SA_NODEFER),
            ..known
        };
        let replaced = exchange(Some(&own));
        // Another thread may have installed one between the two calls.
        BEFORE.store(Box::into_raw(Box::new(replaced)), Ordering::Release);
    });
}

/// The action for SIGBUS, after which the new one holds, if there is one.
fn exchange(new: Option<&libc::sigaction>) -> libc::sigaction {
    let new = new.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: all fields are numbers, a set of signals or an optional function, for which zeros are valid.
    let mut old = unsafe { std::mem::zeroed() };
    // SAFETY: `new` is null or valid, and `old` is writable. The only handler ever passed is `on_sigbus`, which calls
    // nothing but what may be called in a handler, or one that was installed before.
    let status = unsafe { libc::sigaction(libc::SIGBUS, new, &mut old) };
    debug_assert_eq!(status, 0, "SIGBUS can be handled");
    old
}

extern "C" fn on_sigbus(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: to a handler installed with SA_SIGINFO the kernel passes a siginfo_t that is initialised as a whole.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
    // A signal that was sent has the sender instead of the address, and has not interrupted a copy.
    let is_fault = [libc::BUS_ADRERR, libc::BUS_OBJERR, libc::BUS_MCEERR_AR].contains(&code);
    if !(is_fault && WATCHED.with(|watched| replace_page(watched, address))) {
        pass_on(signal, info, context, is_fault);
    }
}

/// Maps zeros over the page with this address, if it is watched, and marks the thread. Whether that is done. A mapping with
/// larger pages than the usual ones is not watched: `MappedCalls` refuses it.
fn replace_page(watched: &Watched, address: usize) -> bool {
    let start = watched.start.load(Ordering::Relaxed);
    if !(start..watched.end.load(Ordering::Relaxed)).contains(&address) {
        return false;
    }
    let page = watched.page.load(Ordering::Relaxed);
    let first = ptr::without_provenance_mut(address - address % page);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the mapping consists of pages of this size, so this page belongs to the watched mapping. That mapping stays
    // until it is no longer watched, and no Rust value lies in it. mmap is a bare system call. It sets errno only if it
    // fails, and then the program goes on in another handler.
    let replaced = unsafe { libc::mmap(first, page, prot, flags, -1, 0) };
    if replaced == libc::MAP_FAILED {
        return false;
    }
    watched.hit.store(true, Ordering::Relaxed);
    true
}

/// Passes a signal to the handler that was installed before.
fn pass_on(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
    is_fault: bool,
) {
    // SAFETY: set before the handler was installed, to a value that is neither freed nor changed.
    let before = unsafe { &*BEFORE.load(Ordering::Acquire) };
    match before.sa_sigaction {
        libc::SIG_IGN if !is_fault => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // A fault happens again once this returns, and ends the program; a signal has to be sent again.
            exchange(Some(before));
            if !is_fault {
                // SAFETY: raise may be called in a handler, and takes no memory of ours.
                unsafe { libc::raise(signal) };
            }
        }
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: with SA_SIGINFO the address is a handler with three arguments, and these are the kernel's.
            unsafe { std::mem::transmute::<usize, InformedHandler>(handler)(signal, info, context) }
        }
        // SAFETY: without SA_SIGINFO the handler has a single argument.
        handler => unsafe { std::mem::transmute::<usize, Handler>(handler)(signal) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_of_huge_pages_is_refused() {
        let flags = rustix::fs::MemfdFlags::HUGETLB | rustix::fs::MemfdFlags::CLOEXEC;
        let Ok(file) = rustix::fs::memfd_create("huge", flags).map(File::from) else {
            needs::skip(
                needs::Need::HugePages,
                "the kernel has no files of huge pages",
            );
            return;
        };
        let size = 4 << 20;
        file.set_len(size).expect("a size");
        let error = MappedCalls::new(&file, 0..size, false)
            .err()
            .expect("refused");
        let text = error.to_string();
        match text.contains("cannot be mapped") {
            true => needs::skip(needs::Need::HugePages, "none is free (vm.nr_hugepages)"),
            false => assert!(text.contains("in larger ones"), "{text}"),
        }
    }
}
