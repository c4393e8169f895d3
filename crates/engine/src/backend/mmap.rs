//! `mmap`: copies between the buffer and a shared mapping of the region.
//!
//! An I/O error on a mapping arrives as SIGBUS, which [`watch`] turns into an error of the request.

mod watch;

use std::fs::File;
use std::ops::Range;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::buffer::Slot;
use crate::request::{Action, Backend, Completion, Request, SystemFailure};
use iolab_workload::{Error, Result};
use watch::Watch;

pub(crate) struct Mmap {
    file: File,
    map: NonNull<u8>,
    len: usize,
    offset: u64,
    /// Taken before the mapping goes.
    watch: Option<Watch>,
    queued: Option<(Slot, Request)>,
}

impl Mmap {
    /// Maps a range of a file; to be called by the thread that uses it.
    pub(crate) fn new(file: File, range: Range<u64>, write: bool) -> Result<Self> {
        let (offset, len) = (range.start, range.end - range.start);
        let page = iolab_storage::kernel_units::page_size() as u64;
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
        let mut mapped = Self {
            file,
            map,
            len,
            offset: offset_of_map,
            watch: None,
            queued: None,
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
        let page = iolab_storage::kernel_units::page_size();
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

    #[inline(always)]
    fn issue(&self, slot: &mut Slot, request: Request) -> i64 {
        let synced = match request.action {
            Action::Trim => return -i64::from(libc::EOPNOTSUPP),
            Action::Fsync => Some(rustix::fs::fsync(&self.file)),
            Action::Fdatasync => Some(rustix::fs::fdatasync(&self.file)),
            _ => None,
        };
        if let Some(synced) = synced {
            return synced.map_or_else(|e| -i64::from(e.raw_os_error()), |()| 0);
        }
        let buffer = slot.part(request.at, request.len);
        let at = request.offset.wrapping_sub(self.offset) as usize;
        let fits = at <= self.len && buffer.len() <= self.len - at;
        assert!(fits, "a request stays inside the mapping");
        // SAFETY: the bytes lie inside the mapping, as was just checked, and the buffer, a mapping of its own, is
        // borrowed exclusively. A fault while they are copied leaves a page of zeros to go on with. No reference into the
        // mapping is ever made. Other workers and other programs may write these bytes while they are copied: in Rust's
        // memory model that is a data race, which no type can rule out for a mapped file. As other users of shared mappings
        // do (memmap2, ripgrep), this relies on what compiler and kernel do there: each copy is one call of memcpy on plain
        // bytes, for which every value is valid, so that a race yields old and new bytes mixed and nothing worse.
        unsafe {
            let mapped = self.map.add(at).as_ptr();
            let (buffer, len) = (buffer.as_mut_ptr(), buffer.len());
            match request.action {
                Action::Read => std::ptr::copy_nonoverlapping(mapped, buffer, len),
                _ => std::ptr::copy_nonoverlapping(buffer, mapped, len),
            }
        }
        if self.watch.as_ref().is_some_and(Watch::was_hit) {
            return -i64::from(libc::EIO);
        }
        i64::from(request.len)
    }
}

impl Drop for Mmap {
    fn drop(&mut self) {
        let was_accepted = self.watch.take().is_some();
        // SAFETY: unmaps exactly what was mapped; no reference into it exists.
        let unmapped = unsafe { rustix::mm::munmap(self.map.as_ptr().cast(), self.len) };
        // A mapping of larger pages, which `new` refuses, stays if its length is not a multiple of them.
        debug_assert!(unmapped.is_ok() || !was_accepted);
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
            Action::Trim => "trim of the mapping",
            Action::Fsync => "fsync",
            Action::Fdatasync => "fdatasync",
        }
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
        let error = Mmap::new(file, 0..size, false).err().expect("refused");
        let text = error.to_string();
        match text.contains("cannot be mapped") {
            true => needs::skip(needs::Need::HugePages, "none is free (vm.nr_hugepages)"),
            false => assert!(text.contains("in larger ones"), "{text}"),
        }
    }
}
