//! Filling a scratch file with incompressible data, so that no trial ever reads a hole.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Advice, FallocateFlags, SeekFrom};
use rustix::io::Errno;

use iolab_workload::pattern::RandomBytes;
use iolab_workload::{Error, Result};

use super::errno;

const CHUNK: usize = 4 << 20;
/// Alignment of the buffer, sufficient for any direct I/O, bytes.
pub(super) const ALIGNMENT: u64 = 4096;
/// Buffered data that may be dirty before a flush, bytes. Bounded so that an interrupt takes effect soon.
const DIRTY_MAX: u64 = 64 << 20;

/// A file to fill, through two descriptors.
pub(super) struct Filling<'a> {
    pub(super) path: &'a Path,
    pub(super) buffered: &'a File,
    /// Descriptor for direct I/O, with the alignment of offset and length, bytes.
    pub(super) direct: Option<(File, u64)>,
    pub(super) range: Range<u64>,
}

impl Filling<'_> {
    /// Writes the whole range, syncs it and drops it from the page cache.
    pub(super) fn run(
        mut self,
        seed: u64,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<()> {
        self.reserve()?;
        let mut random = RandomBytes::new(seed);
        let mut memory = vec![0; CHUNK + ALIGNMENT as usize];
        let shift = memory
            .as_ptr()
            .align_offset(ALIGNMENT as usize)
            .min(ALIGNMENT as usize);
        let buffer = &mut memory[shift..shift + CHUNK];
        let Range { start, end } = self.range.clone();
        let (mut offset, mut synced) = (start, start);
        while offset < end {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::interrupted());
            }
            let length = (end - offset).min(CHUNK as u64) as usize;
            let chunk = &mut buffer[..length];
            random.fill(chunk);
            self.write(chunk, offset)?;
            offset += length as u64;
            if self.direct.is_none() && offset - synced >= DIRTY_MAX {
                self.sync()?;
                synced = offset;
            }
            progress(offset - start);
        }
        self.sync()?;
        // Only a hint: on a file system that ignores it the data stays cached, which the evidence will show.
        let _ = rustix::fs::fadvise(
            self.buffered,
            start,
            std::num::NonZeroU64::new(end - start),
            Advice::DontNeed,
        );
        self.check_complete()
    }

    /// Allocates the blocks at once where the file system can: that gives long extents, and a lack of space
    /// shows before any write.
    fn reserve(&self) -> Result<()> {
        let Range { start, end } = self.range;
        let length = end - start;
        loop {
            match rustix::fs::fallocate(self.buffered, FallocateFlags::empty(), start, length) {
                Err(Errno::INTR) => {}
                Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG | Errno::IO)) => {
                    return Err(errno::on_transfer(
                        "fallocate", length, start, self.path, errno,
                    ));
                }
                // Not every file system can; then the writes allocate.
                Ok(()) | Err(_) => return Ok(()),
            }
        }
    }

    fn write(&mut self, chunk: &[u8], offset: u64) -> Result<()> {
        let mut done = 0;
        if let Some((file, alignment)) = &self.direct {
            let whole = chunk.len() - chunk.len() % *alignment as usize;
            match write_all(file, &chunk[..whole], offset, *alignment as usize) {
                Ok(written) => done = written,
                // The file system accepts less than it promised: go on through the page cache.
                Err((Errno::INVAL | Errno::OPNOTSUPP, _)) => self.direct = None,
                Err((errno, at)) => return Err(self.failed(whole, offset + at as u64, errno)),
            }
        }
        let (rest, offset) = (&chunk[done..], offset + done as u64);
        write_all(self.buffered, rest, offset, 1)
            .map_err(|(errno, at)| self.failed(rest.len(), offset + at as u64, errno))?;
        Ok(())
    }

    fn failed(&self, length: usize, offset: u64, errno: Errno) -> Error {
        errno::on_transfer("pwrite", length as u64, offset, self.path, errno)
    }

    fn sync(&self) -> Result<()> {
        loop {
            match rustix::fs::fsync(self.buffered) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => {
                    let message = format!(
                        "fsync of {} failed: {}",
                        self.path.display(),
                        errno::reason(errno)
                    );
                    return Err(errno::remedied(Error::failed(message), errno));
                }
            }
        }
    }

    fn check_complete(&self) -> Result<()> {
        let hole = rustix::fs::seek(self.buffered, SeekFrom::Hole(self.range.start));
        let _ = rustix::fs::seek(self.buffered, SeekFrom::Start(0));
        match hole {
            Ok(hole) if hole < self.range.end => Err(Error::failed(format!(
                "{} has a hole at offset {hole} although every byte was written",
                self.path.display()
            ))
            .hint("the file system does not store all written data; choose another directory")),
            // A file system without hole detection reports no hole, or fails the call.
            _ => Ok(()),
        }
    }
}

/// Writes everything but a rest that is not a multiple of `alignment` after a short write. Returns the bytes
/// written, or the error and the bytes written before it.
fn write_all(
    file: &File,
    bytes: &[u8],
    offset: u64,
    alignment: usize,
) -> std::result::Result<usize, (Errno, usize)> {
    let mut done = 0;
    while done < bytes.len() && done % alignment == 0 {
        match file.write_at(&bytes[done..], offset + done as u64) {
            Ok(0) => return Err((Errno::IO, done)),
            Ok(written) => done += written,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err((errno::of_std(&error), done)),
        }
    }
    Ok(done)
}
