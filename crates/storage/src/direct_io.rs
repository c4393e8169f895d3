//! Direct I/O: whether a target supports it, and which alignment it needs.
//!
//! Mode in which a target is opened again.

use std::fmt;
use std::fs::File;
use std::io::IoSliceMut;
use std::num::NonZero;
use std::path::Path;

use rustix::fs::{Advice, AtFlags, OFlags, StatxFlags, fadvise};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv2};

use super::path_lookup::open_same;
use super::{DirectAlignment, TargetKind, errno};
use iolab_workload::trial::{CacheState, SyncPolicy, TrialSpec};
use iolab_workload::{Error, Result};

/// Default alignment of files: the page size of nearly every machine, and at least the logical block of nearly
/// every device.
const FALLBACK: u64 = 4096;

/// Alignment by `statx` (`STATX_DIOALIGN`, Linux 6.1), or by a test open with `O_DIRECT`. Zeros mean that the
/// file system has no direct I/O, or does not say; then a read decides.
pub(super) fn alignment(file: &File, path: &Path, kind: TargetKind) -> Result<DirectAlignment> {
    if kind == TargetKind::CharDevice {
        return Err(unsupported(path, "a character device"));
    }
    if let Some(told) = ask_statx(file) {
        return match told {
            (0, _) | (_, 0) if bypasses_page_cache(file, path) => Ok(DirectAlignment {
                memory: FALLBACK,
                offset: FALLBACK,
            }),
            (0, _) | (_, 0) => Err(unsupported(path, "its file system")),
            (memory, offset) => Ok(DirectAlignment { memory, offset }),
        };
    }
    match open_same(file, path, OFlags::RDONLY | OFlags::DIRECT) {
        Ok(_) => {}
        Err(Errno::INVAL | Errno::OPNOTSUPP) => return Err(unsupported(path, "its file system")),
        Err(errno) => return Err(errno::on_path("open with O_DIRECT", path, errno)),
    }
    let block = match kind {
        TargetKind::BlockDevice => rustix::fs::ioctl_blksszget(file)
            .map_err(|errno| errno::on_path("ask for the block size of", path, errno))?
            .into(),
        _ => FALLBACK,
    };
    Ok(DirectAlignment {
        memory: block,
        offset: block,
    })
}

fn ask_statx(file: &File) -> Option<(u64, u64)> {
    let statx = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let answered = statx.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
    answered.then_some((
        statx.stx_dio_mem_align.into(),
        statx.stx_dio_offset_align.into(),
    ))
}

/// Whether a direct read of the first block succeeds and leaves nothing in the page cache. False if that cannot
/// be observed (an empty file, a page that cannot be dropped).
fn bypasses_page_cache(file: &File, path: &Path) -> bool {
    const BLOCK: usize = FALLBACK as usize;
    /// The page cache holds pages in groups, which are dropped only whole.
    const DROPPED: u64 = 32 << 20;
    let Ok(direct) = open_same(file, path, OFlags::RDONLY | OFlags::DIRECT) else {
        return false;
    };
    let mut memory = vec![0; 2 * BLOCK];
    let shift = memory.as_ptr().align_offset(BLOCK).min(BLOCK);
    let block = &mut memory[shift..shift + BLOCK];
    let dropped = fadvise(file, 0, NonZero::new(DROPPED), Advice::DontNeed);
    let read = dropped.and_then(|()| pread(&direct, &mut *block, 0));
    // Cached bytes are read without waiting.
    let mut cached = || {
        preadv2(
            file,
            &mut [IoSliceMut::new(block)],
            0,
            ReadWriteFlags::NOWAIT,
        )
    };
    read.is_ok_and(|bytes| bytes > 0) && cached() == Err(Errno::AGAIN)
}

fn unsupported(path: &Path, who: &str) -> Error {
    Error::usage(format!(
        "{} cannot be opened for direct I/O: {who} does not support O_DIRECT",
        path.display()
    ))
    .hint("measure through the page cache with --buffered, or choose another target")
}

/// Mode in which a worker opens the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenMode {
    /// For writing, besides reading.
    pub write: bool,
    /// Direct I/O: `O_DIRECT`.
    pub direct: bool,
    /// Synchronous writes: `O_SYNC`.
    pub osync: bool,
    /// Synchronous writes of data: `O_DSYNC`.
    pub odsync: bool,
}

/// Flags of the C library: rustix 1.1 without libc has `O_SYNC` for both.
const O_SYNC: OFlags = OFlags::from_bits_retain(libc::O_SYNC as _);

const O_DSYNC: OFlags = OFlags::from_bits_retain(libc::O_DSYNC as _);

impl OpenMode {
    /// Mode for the workers of a trial.
    pub fn of(spec: &TrialSpec) -> Self {
        Self {
            write: spec.writes(),
            direct: spec.cache == CacheState::Direct,
            osync: spec.writes() && spec.sync == SyncPolicy::Osync,
            odsync: spec.writes() && spec.sync == SyncPolicy::Odsync,
        }
    }

    /// Error for a `path` that cannot be opened in this mode.
    pub(crate) fn refused(self, path: &Path, errno: Errno) -> Error {
        match errno {
            Errno::INVAL if self.direct => unsupported(path, "its file system"),
            _ => errno::on_path(&format!("open ({self})"), path, errno),
        }
    }

    /// Flags for the system call, with the kernel's names.
    fn named_flags(self) -> impl Iterator<Item = (OFlags, &'static str)> {
        let access = match self.write {
            true => (OFlags::RDWR, "O_RDWR"),
            false => (OFlags::RDONLY, "O_RDONLY"),
        };
        let further = [
            (self.direct, (OFlags::DIRECT, "O_DIRECT")),
            (self.osync, (O_SYNC, "O_SYNC")),
            (self.odsync, (O_DSYNC, "O_DSYNC")),
        ];
        let further = further.into_iter().filter(|(wanted, _)| *wanted);
        std::iter::once(access).chain(further.map(|(_, flag)| flag))
    }

    /// Flags for the system call.
    pub(crate) fn flags(self) -> OFlags {
        self.named_flags().map(|(flag, _)| flag).collect()
    }
}

/// Flags by the kernel's names.
impl fmt::Display for OpenMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.named_flags().map(|(_, name)| name).collect();
        f.write_str(&names.join("|"))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn a_read_shows_whether_the_cache_is_bypassed() {
        let bypasses = |folder: &Path| {
            let named = tempfile::NamedTempFile::new_in(folder).expect("made");
            let path = named.path();
            named
                .as_file()
                .write_all_at(&[7; 8_192], 0)
                .expect("written");
            named.as_file().sync_all().expect("durable");
            let file = File::open(path).expect("there");
            let told = ask_statx(&file).map(|(memory, offset)| memory > 0 && offset > 0);
            (bypasses_page_cache(&file, path), told)
        };
        // Files in memory are always in the page cache.
        if Path::new("/dev/shm").is_dir() {
            assert!(!bypasses(Path::new("/dev/shm")).0);
        }
        // On a file system that states support for direct I/O, a read shows it.
        let (bypassed, told) = bypasses(&needs::folder_on_disk().expect("a folder"));
        if let Some(told) = told {
            assert_eq!(bypassed, told);
        }
        let empty = tempfile::NamedTempFile::new().expect("made");
        assert!(!bypasses_page_cache(empty.as_file(), empty.path()));
    }
}
