//! Share of a file's or device's range that is in the page cache: by cachestat(2), or mincore(2) where that is
//! missing and on overlayfs.
//!
//! cachestat asks the file itself, but a file on an overlay has no pages: the file of a layer, possibly out of
//! reach, has them. A mapping is made of that file, so mincore sees its pages.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use rustix::fs::FileType;
use rustix::mm::{MapFlags, ProtFlags};

use iolab_workload::region_state::Residency;

use super::extents::{Counts, FileRange, over, pieces, scaled};
use iolab_storage::is_overlaid;

/// Bytes per cachestat call, which counts in the kernel.
const PIECE: u64 = 16 << 20;
/// Bytes per mincore call, which reports each page at some 25 ns. Small, so that many pieces are seen.
const PIECE_MAPPED: u64 = 256 << 10;

/// Distance beyond a file's end at which none of its pages is in memory: pages come in groups, the largest of
/// 512 MiB.
const BEYOND_FILES: u64 = 1 << 30;
/// Offset beyond the end of every block device.
const BEYOND_DEVICES: u64 = 1 << 62;

impl Counts for Residency {
    fn plus(self, other: Self) -> Self {
        let both = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a + b);
        Self {
            looked_bytes: self.looked_bytes + other.looked_bytes,
            resident_bytes: self.resident_bytes + other.resident_bytes,
            dirty_bytes: both(self.dirty_bytes, other.dirty_bytes),
            writeback_bytes: both(self.writeback_bytes, other.writeback_bytes),
        }
    }

    fn scaled(self, looked: u64, whole: u64) -> Self {
        let all = |bytes| scaled(bytes, looked, whole);
        Self {
            looked_bytes: self.looked_bytes,
            resident_bytes: all(self.resident_bytes),
            dirty_bytes: self.dirty_bytes.map(all),
            writeback_bytes: self.writeback_bytes.map(all),
        }
    }
}

/// Pages of ranges in the page cache; `None` where the system does not report them.
pub fn residency(parts: &[FileRange<'_>]) -> Option<Residency> {
    over(parts, of_part)
}

fn of_part(part: &FileRange<'_>, time: Duration) -> Option<Residency> {
    if is_overlaid(part.file) {
        return by_mincore(part, time);
    }
    by_cachestat(part, time).or_else(|| by_mincore(part, time))
}

/// Page counts in a part of a range.
#[derive(Debug, Clone, Copy, Default)]
struct Pages {
    cached: u64,
    dirty: u64,
    writeback: u64,
}

/// Asks about one piece after another until all are seen or the time is over; `None` when a call fails.
fn look(
    part: &FileRange<'_>,
    time: Duration,
    piece: u64,
    mut ask: impl FnMut(Range<u64>) -> Option<Pages>,
) -> Option<Residency> {
    let page = iolab_storage::procfs::page_size() as u64;
    let began = Instant::now();
    let (mut seen, mut sum) = (0, Pages::default());
    for piece in pieces(part.offset, part.length, piece) {
        let bytes = piece.end - piece.start;
        let pages = ask(piece)?;
        seen += bytes;
        // A range that does not start and end on page borders touches more pages than its length.
        sum.cached += (pages.cached * page).min(bytes);
        sum.dirty += (pages.dirty * page).min(bytes);
        sum.writeback += (pages.writeback * page).min(bytes);
        if began.elapsed() >= time {
            break;
        }
    }
    let whole = |bytes| scaled(bytes, seen, part.length);
    Some(Residency {
        looked_bytes: seen,
        resident_bytes: whole(sum.cached),
        dirty_bytes: Some(whole(sum.dirty)),
        writeback_bytes: Some(whole(sum.writeback)),
    })
}

/// `struct cachestat_range` of linux/mman.h, since Linux 6.5. A length of 0 would mean "to the end".
#[repr(C)]
struct CachestatRange {
    off: u64,
    len: u64,
}

/// `struct cachestat` of linux/mman.h; all counts are pages.
#[repr(C)]
#[derive(Default)]
struct Cachestat {
    nr_cache: u64,
    nr_dirty: u64,
    nr_writeback: u64,
    nr_evicted: u64,
    nr_recently_evicted: u64,
}

/// Number of the system call on the architectures with the common table; the few others go without.
const CACHESTAT: Option<libc::c_long> = if cfg!(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "riscv64",
    target_arch = "powerpc64",
    target_arch = "s390x",
    target_arch = "loongarch64"
)) {
    Some(451)
} else {
    None
};

fn by_cachestat(part: &FileRange<'_>, time: Duration) -> Option<Residency> {
    let number = CACHESTAT?;
    look(part, time, PIECE, |piece| {
        let range = CachestatRange {
            off: piece.start,
            len: piece.end - piece.start,
        };
        let mut counts = Cachestat::default();
        // SAFETY: number 451 is cachestat(fd, const range *, result *, flags) on the architectures above; both
        // structures are laid out as in linux/mman.h and outlive the call.
        let result = unsafe {
            libc::syscall(
                number,
                part.file.as_raw_fd(),
                &raw const range,
                &raw mut counts,
                0u32,
            )
        };
        (result == 0).then_some(Pages {
            cached: counts.nr_cache,
            dirty: counts.nr_dirty,
            writeback: counts.nr_writeback,
        })
    })
}

/// A mapping of a range, for questions about it; its memory is never touched.
struct Mapping {
    start: *mut libc::c_void,
    length: usize,
    /// Byte of the file that `start` stands for.
    offset: u64,
}

impl Mapping {
    fn new(file: &File, offset: u64, length: u64) -> Option<Self> {
        let page = iolab_storage::procfs::page_size() as u64;
        let begin = offset - offset % page;
        let length = usize::try_from(offset + length - begin).ok()?;
        // SAFETY: the kernel chooses the address, so that nothing in use is mapped over.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ,
                MapFlags::SHARED,
                file,
                begin,
            )
        };
        Some(Self {
            start: start.ok()?,
            length,
            offset: begin,
        })
    }

    /// One byte per page of the piece; its lowest bit says whether the page is in memory.
    fn pages(&self, piece: &Range<u64>, page: u64, into: &mut [u8]) -> Option<usize> {
        let first = (piece.start - self.offset) / page;
        let last = (piece.end - self.offset).div_ceil(page);
        let (skip, length) = ((first * page) as usize, ((last - first) * page) as usize);
        let count = (last - first) as usize;
        if count > into.len() || skip >= self.length {
            return None;
        }
        // SAFETY: the range begins on a page of this mapping and ends at most with its last page, and the vector has
        // room for one byte per page. mincore only looks; the mapping is never read.
        let result = unsafe {
            libc::mincore(
                self.start.byte_add(skip),
                length.min(self.length - skip),
                into.as_mut_ptr().cast(),
            )
        };
        (result == 0).then_some(count)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new`, and no reference into it exists.
        let _ = unsafe { rustix::mm::munmap(self.start, self.length) };
    }
}

fn by_mincore(part: &FileRange<'_>, time: Duration) -> Option<Residency> {
    if part.length == 0 || !is_told_the_truth(part.file)? {
        return None;
    }
    let page = iolab_storage::procfs::page_size() as u64;
    let mapping = Mapping::new(part.file, part.offset, part.length)?;
    let mut vector = vec![0u8; (PIECE_MAPPED / page) as usize + 2];
    let seen = look(part, time, PIECE_MAPPED, |piece| {
        let count = mapping.pages(&piece, page, &mut vector)?;
        Some(Pages {
            cached: vector[..count].iter().filter(|v| **v & 1 == 1).count() as u64,
            ..Pages::default()
        })
    })?;
    Some(Residency {
        dirty_bytes: None,
        writeback_bytes: None,
        ..seen
    })
}

/// Whether mincore reports the truth for this file. To a process that neither owns the file nor may write it,
/// the kernel calls every page resident. With layers and user namespaces only the kernel knows which file and
/// whose rights count. So mincore is asked about a page that cannot be in memory: one beyond the end.
fn is_told_the_truth(file: &File) -> Option<bool> {
    let page = iolab_storage::procfs::page_size() as u64;
    let stat = rustix::fs::fstat(file).ok()?;
    let beyond = match FileType::from_raw_mode(stat.st_mode) {
        // The size of a device is not in its status; no device is larger than this.
        FileType::BlockDevice => BEYOND_DEVICES,
        _ => (stat.st_size as u64).next_multiple_of(page) + BEYOND_FILES,
    };
    let mapping = Mapping::new(file, beyond, page)?;
    let mut vector = [0u8];
    mapping.pages(&(beyond..beyond + page), page, &mut vector)?;
    Some(vector[0] & 1 == 0)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use rustix::fs::{Advice, fadvise};

    use needs::Need;

    use super::*;

    const SIZE: u64 = 33 << 20;
    /// Time limit that is never reached.
    const AMPLE: Duration = Duration::from_secs(60);

    fn part(file: &File, offset: u64, length: u64) -> FileRange<'_> {
        FileRange {
            file,
            offset,
            length,
        }
    }

    /// A file in the page cache, written and synced.
    fn hot() -> File {
        let mut file =
            tempfile::tempfile_in(needs::folder_on_disk().expect("a folder")).expect("a file");
        file.write_all(&vec![7; SIZE as usize]).expect("written");
        file.sync_all().expect("durable");
        file
    }

    #[test]
    fn both_ways_see_the_same() {
        let file = hot();
        let is_tmpfs = rustix::fs::fstatfs(&file).is_ok_and(|fs| fs.f_type == 0x0102_1994);
        let drop_all = || fadvise(&file, 0, None, Advice::DontNeed).expect("advised");
        type Way = fn(&FileRange<'_>, Duration) -> Option<Residency>;
        let resident =
            |look: Way| look(&part(&file, 0, SIZE), AMPLE).map(|seen| seen.resident_bytes);
        let ways: [(Need, Way); 2] = [(Need::Cachestat, by_cachestat), (Need::Mincore, by_mincore)];
        for (name, way) in ways {
            if resident(way).is_none() {
                needs::skip(name, "it tells nothing");
                continue;
            }
            let mut buffer = vec![0; SIZE as usize];
            // The kernel may take pages back at any moment.
            let filled = (0..5).any(|_| {
                rustix::io::pread(&file, &mut buffer, 0).expect("read");
                resident(way) == Some(SIZE)
            });
            assert!(filled, "{name}: {:?}", resident(way));
            // An unaligned range: no more bytes than were asked about.
            let some = way(&part(&file, 4097, 5000), AMPLE).expect("it works");
            assert_eq!(
                (some.looked_bytes, some.resident_bytes),
                (5000, 5000),
                "{name}"
            );
            if is_tmpfs {
                needs::skip(Need::ColdCache, "a file in memory is never cold");
                continue;
            }
            drop_all();
            assert_eq!(resident(way), Some(0), "{name}");
        }
    }

    #[test]
    fn written_data_is_owed_until_the_sync() {
        let mut file = hot();
        let owed = |file: &File| {
            by_cachestat(&part(file, 0, 2 * SIZE), AMPLE).and_then(|seen| seen.owed_bytes())
        };
        match owed(&file) {
            None => needs::skip(Need::Cachestat, "it tells nothing"),
            Some(before) => {
                file.write_all(&vec![8; SIZE as usize]).expect("written");
                let after = owed(&file).expect("it worked before");
                file.sync_all().expect("durable");
                let synced = owed(&file).expect("it worked before");
                assert!(
                    after >= before && synced <= after,
                    "{before} {after} {synced}"
                );
            }
        }
    }

    #[test]
    fn what_mincore_makes_up_is_not_believed() {
        assert_eq!(is_told_the_truth(&hot()), Some(true), "our own file");
        // Root sees the residency of every file.
        needs::ordinary_user(|_| {
            let others = File::open("/etc/passwd").expect("every user reads it");
            assert_eq!(is_told_the_truth(&others), Some(false));
            assert_eq!(by_mincore(&part(&others, 0, 1), AMPLE), None);
        });
    }

    #[test]
    fn an_empty_range_has_nothing() {
        let file = hot();
        assert_eq!(by_mincore(&part(&file, 0, 0), AMPLE), None);
        let nothing = residency(&[part(&file, 0, 0)]).map_or(0, |seen| seen.resident_bytes);
        assert_eq!(nothing, 0);
    }
}
