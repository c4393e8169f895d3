//! Files next to a scratch file: private files of each worker, and fresh ones for trials that only write.
//!
//! Filling a scratch file with incompressible data, so that no trial ever reads a hole.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Advice, FallocateFlags, SeekFrom};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::{Size, errno};
use iolab_workload::pattern::RandomBytes;
use iolab_workload::{Error, Result};

/// Trials in which every worker has files of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrivateFiles {
    /// Number of workers in each process.
    pub threads: u32,
    /// I/O size, bytes: a worker's share is a multiple of this.
    pub bs: u64,
    /// Processes with `threads` workers each, at least 1.
    pub ranks: u32,
    /// Several files per worker; `None` for one.
    pub files: Option<u32>,
}

impl PrivateFiles {
    /// Sizes of the files of one process's workers for a region of up to `region` bytes, worker by worker,
    /// bytes.
    fn sizes(&self, region: u64) -> Vec<u64> {
        let files = self.files.unwrap_or(1).max(1);
        let workers = u64::from(self.threads.max(1)) * u64::from(self.ranks.max(1));
        let of_thread = (region / self.bs.max(1)).div_ceil(workers);
        let bytes = of_thread.div_ceil(files.into()).saturating_mul(self.bs);
        vec![bytes; self.threads as usize * files as usize]
    }
}

/// Files that a run needs besides the scratch file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ExtraFiles {
    /// Trials with private files per worker. They share the files, each as large as the largest of its shares.
    pub private: Vec<PrivateFiles>,
    /// Files of the trial that starts with the most fresh ones, which together take as much space as the
    /// region; 0 for none.
    pub fresh: u32,
}

impl ExtraFiles {
    /// Whether no extra files are needed.
    pub fn is_empty(&self) -> bool {
        self.private.is_empty() && self.fresh == 0
    }

    /// Files that serve both needs.
    pub fn and(mut self, other: Self) -> Self {
        self.private.extend(other.private);
        self.fresh = self.fresh.max(other.fresh);
        self
    }

    /// Sizes of the files of one process's workers for a region of up to `region` bytes, bytes.
    pub fn sizes(&self, region: u64) -> Vec<u64> {
        let mut sizes: Vec<u64> = Vec::new();
        for private in &self.private {
            let own = private.sizes(region);
            sizes.resize(sizes.len().max(own.len()), 0);
            for (size, own) in sizes.iter_mut().zip(own) {
                *size = own.max(*size);
            }
        }
        sizes
    }

    /// Bytes filled before the first trial: the region, and the files of all workers.
    pub fn filled(&self, region: u64) -> u64 {
        let ranks = self.private.iter().map(|p| p.ranks).max().unwrap_or(1);
        let own = self.sizes(region).into_iter();
        let own = own.fold(0, u64::saturating_add);
        own.saturating_mul(ranks.into()).saturating_add(region)
    }

    /// Bytes of all files together, the region included.
    pub(super) fn total(&self, region: u64) -> u64 {
        let fresh = if self.fresh > 0 { region } else { 0 };
        self.filled(region).saturating_add(fresh)
    }

    /// Largest region, up to `most`, with which all files together fit into `room` bytes.
    fn region_within(&self, room: u64, most: u64) -> u64 {
        if self.total(most) <= room {
            return most;
        }
        // The total grows with the region: the largest that fits is between these two.
        let (mut fits, mut exceeds) = (0, most);
        while exceeds - fits > 1 {
            let middle = fits + (exceeds - fits) / 2;
            if self.total(middle) <= room {
                fits = middle;
            } else {
                exceeds = middle;
            }
        }
        fits
    }

    /// Bytes for the region of a scratch file if all files may take `room` bytes, and a note if it was reduced.
    pub(super) fn of_room(
        &self,
        size: Size,
        room: u64,
        dir: &Path,
    ) -> Result<(u64, Option<String>)> {
        if self.is_empty() {
            return size.of_room(room, dir);
        }
        let region_room = self.region_within(room, size.wanted());
        let why = "with files per thread or fresh files next to it";
        size.of_room(region_room, dir)
            .map(|(bytes, note)| (bytes, note.map(|note| format!("{note} ({why})"))))
            .map_err(|error| error.within(why))
    }

    /// Refuses needs that only a directory can meet.
    pub(super) fn check_existing(&self, path: &Path) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let what = if self.private.is_empty() {
            "allocate=fresh, append and preallocated need a new file for each trial"
        } else {
            "layout=private needs a file per thread"
        };
        Err(Error::usage(format!(
            "{what}, but {} is one existing file or device",
            path.display()
        ))
        .hint(
            "give a directory, where scratch files are made; or set layout=shared and allocate=recycled",
        ))
    }
}

const CHUNK: usize = 4 << 20;

/// Alignment of the buffer, sufficient for any direct I/O, bytes.
pub(crate) const ALIGNMENT: u64 = 4096;

/// Buffered data that may be dirty before a flush, bytes. Bounded so that an interrupt takes effect soon.
const DIRTY_MAX: u64 = 64 << 20;

/// A file to fill, through two descriptors.
pub(crate) struct Filling<'a> {
    pub(crate) path: &'a Path,
    pub(crate) buffered: &'a File,
    /// Descriptor for direct I/O, with the alignment of offset and length, bytes.
    pub(crate) direct: Option<(File, u64)>,
    pub(crate) range: Range<u64>,
}

impl Filling<'_> {
    /// Writes the whole range, syncs it and drops it from the page cache.
    pub(crate) fn run(
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
                Err(errno) => return Err(errno::on_sync(self.path, errno)),
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use iolab_workload::trial::{FileLayout, TrialSpec};

    fn private(threads: &[u32], bs: u64) -> ExtraFiles {
        ExtraFiles {
            private: threads
                .iter()
                .map(|threads| PrivateFiles {
                    threads: *threads,
                    bs,
                    ranks: 1,
                    files: None,
                })
                .collect(),
            fresh: 0,
        }
    }

    #[test]
    fn each_file_holds_the_largest_of_its_shares() {
        let beside = private(&[1, 2, 4], 10);
        assert_eq!(beside.sizes(100), [100, 50, 30, 30]);
        assert_eq!(beside.total(100), 310);
        assert_eq!(ExtraFiles::default().sizes(100), [0u64; 0]);
        let fresh = ExtraFiles { fresh: 3, ..beside };
        assert_eq!(fresh.total(100), 410);
        assert_eq!(fresh.filled(100), 310);
    }

    #[test]
    fn files_have_room_for_each_smaller_region() {
        let files = PrivateFiles {
            threads: 2,
            bs: 4096,
            ranks: 1,
            files: "5".parse().ok(),
        };
        for of_thread in 5..40u64 {
            let room = files.sizes(2 * of_thread * 4096);
            for fewer in 5..=of_thread {
                let trial = TrialSpec {
                    files: files.files,
                    layout: FileLayout::Private,
                    threads: files.threads,
                    region: 2 * fewer * 4096,
                    ..TrialSpec::default()
                };
                let own = (0..2).flat_map(|worker| trial.private_files(worker));
                let fits = own.zip(&room).all(|(own, room)| own <= *room);
                assert!(fits, "{fewer} of {of_thread}");
            }
        }
    }

    #[test]
    fn an_existing_target_has_no_room_beside_it() {
        let error = private(&[2], 1).check_existing(Path::new("f"));
        insta::assert_snapshot!(error.unwrap_err().message(), @"layout=private needs a file per thread, but f is one existing file or device");
        assert!(ExtraFiles::default().check_existing(Path::new("f")).is_ok());
    }

    proptest! {
        #[test]
        fn the_region_is_the_largest_that_fits(
            threads in prop::collection::vec(1u32..60, 0..5), bs in 1u64..5000, fresh in 0u32..3,
            room in 0u64..10_000_000, most in 1u64..20_000_000,
        ) {
            let beside = ExtraFiles { fresh, ..private(&threads, bs) };
            let region = beside.region_within(room, most);
            prop_assert!(region == 0 || beside.total(region) <= room);
            prop_assert!(region == most || beside.total(region + 1) > room);
        }
    }
}
