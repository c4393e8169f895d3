//! Share of a file's or device's range that is in the page cache: by cachestat(2), or mincore(2) where that is
//! missing and on overlayfs.
//!
//! cachestat asks the file itself, but a file on an overlay has no pages: the file of a layer, possibly out of
//! reach, has them. A mapping is made of that file, so mincore sees its pages.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::time::Duration;

use rustix::fs::FileType;
use rustix::mm::{MapFlags, ProtFlags};

use iolab_workload::region_state::Residency;

use super::extents::{FileRange, Seen, look, over};
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

/// Pages of ranges in the page cache; `None` where the system does not report them.
pub fn residency(parts: &[FileRange<'_>]) -> Option<Residency> {
    let seen = over(parts, of_part)?;
    let [resident, dirty_bytes, writeback_bytes] = seen.found;
    Some(Residency {
        looked_bytes: seen.looked,
        resident_bytes: resident?,
        dirty_bytes,
        writeback_bytes,
    })
}

/// Bytes in the page cache, dirty ones, and those under way to the device.
fn of_part(part: &FileRange<'_>, time: Duration) -> Option<Seen<3>> {
    if is_overlaid(part.file) {
        return by_mincore(part, time);
    }
    by_cachestat(part, time).or_else(|| by_mincore(part, time))
}

/// Bytes of a piece in this number of pages. A range that does not start and end on page borders touches more pages than its
/// length.
fn bytes_in(pages: u64, piece: &Range<u64>) -> Option<u64> {
    let page = iolab_storage::procfs::page_size() as u64;
    Some((pages * page).min(piece.end - piece.start))
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

/// Number of the system call on x86-64 and 64-bit ARM.
const CACHESTAT: libc::c_long = 451;

fn by_cachestat(part: &FileRange<'_>, time: Duration) -> Option<Seen<3>> {
    look(part, time, PIECE, |piece| {
        let range = CachestatRange {
            off: piece.start,
            len: piece.end - piece.start,
        };
        let mut counts = Cachestat::default();
        // SAFETY: number 451 is cachestat(fd, const range *, result *, flags) on these architectures; both
        // structures are laid out as in linux/mman.h and outlive the call.
        let result = unsafe {
            libc::syscall(
                CACHESTAT,
                part.file.as_raw_fd(),
                &raw const range,
                &raw mut counts,
                0u32,
            )
        };
        let pages = [counts.nr_cache, counts.nr_dirty, counts.nr_writeback];
        (result == 0).then(|| Seen {
            looked: range.len,
            found: pages.map(|pages| bytes_in(pages, &piece)),
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

fn by_mincore(part: &FileRange<'_>, time: Duration) -> Option<Seen<3>> {
    if part.length == 0 || !is_told_the_truth(part.file)? {
        return None;
    }
    let page = iolab_storage::procfs::page_size() as u64;
    let mapping = Mapping::new(part.file, part.offset, part.length)?;
    let mut vector = vec![0u8; (PIECE_MAPPED / page) as usize + 2];
    look(part, time, PIECE_MAPPED, |piece| {
        let count = mapping.pages(&piece, page, &mut vector)?;
        let cached = vector[..count].iter().filter(|v| **v & 1 == 1).count();
        Some(Seen {
            looked: piece.end - piece.start,
            found: [bytes_in(cached as u64, &piece), None, None],
        })
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
        type Way = fn(&FileRange<'_>, Duration) -> Option<Seen<3>>;
        let resident = |look: Way| look(&part(&file, 0, SIZE), AMPLE)?.found[0];
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
            assert_eq!((some.looked, some.found[0]), (5000, Some(5000)), "{name}");
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
            let [_, dirty, writeback] = by_cachestat(&part(file, 0, 2 * SIZE), AMPLE)?.found;
            Some(dirty? + writeback?)
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
