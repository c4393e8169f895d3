//! Content of an existing file or device: written bytes, holes, zeros, and their storage by the file system.

use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::{Duration, Instant};

use iolab_host::counters::FileBlocks;
use iolab_storage::{Target, TargetKind};
use rustix::fs::{AtFlags, SeekFrom, StatxAttributes, StatxFlags};
use rustix::io::Errno;

/// Number of blocks of a device that are read.
const SAMPLES: u64 = 64;
const SAMPLE_BYTES: usize = 4096;
/// Time limit of one look, which delays a run.
const TIME_MAX: Duration = Duration::from_millis(100);

/// Content of a target. Unknown properties are `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TargetContent {
    /// Number of examined bytes.
    pub looked_bytes: u64,
    /// Examined bytes that were never written: holes, or space only reserved.
    pub empty_bytes: u64,
    /// Size of the whole file, bytes.
    pub length: Option<u64>,
    /// Storage that the file takes, bytes.
    pub allocated_bytes: Option<u64>,
    /// First byte and end of the longest written stretch; `None` without one.
    pub written: Option<(u64, u64)>,
    /// Blocks of a device that were read, and the number with only zeros.
    pub zero_blocks: Option<(u64, u64)>,
    /// Layout of the file in its file system.
    pub layout: Option<FileBlocks>,
    /// Whether the file or directory is set to be compressed.
    pub set_compressed: bool,
    /// Whether the file system encrypts it.
    pub set_encrypted: bool,
}

impl TargetContent {
    /// Examines a target; a scratch file shows how files are stored in its directory.
    pub(super) fn of(target: &Target) -> Option<Self> {
        match target.kind() {
            TargetKind::CharDevice => None,
            TargetKind::BlockDevice => Some(of_device(target)),
            TargetKind::File | TargetKind::Scratch => Some(of_file(target)),
        }
    }
}

fn of_device(target: &Target) -> TargetContent {
    TargetContent {
        written: Some((0, target.size())),
        zero_blocks: zero_blocks(target),
        ..TargetContent::default()
    }
}

/// Reads blocks spread evenly over the device. An unreadable one ends the look: trials will report the reason.
fn zero_blocks(target: &Target) -> Option<(u64, u64)> {
    let blocks = target.size() / SAMPLE_BYTES as u64;
    let count = blocks.min(SAMPLES);
    let began = Instant::now();
    let mut buffer = [0; SAMPLE_BYTES];
    let (mut looked, mut zeros) = (0, 0);
    // Every eighth of them first, so that a slow device still shows all its parts.
    for sample in (0..8).flat_map(|first| (first..count).step_by(8)) {
        if began.elapsed() >= TIME_MAX {
            break;
        }
        // In the middle of each part: the first blocks are often written even if the rest is not.
        let block =
            (u128::from(blocks) * u128::from(2 * sample + 1) / u128::from(2 * count)) as u64;
        let at = block * SAMPLE_BYTES as u64;
        target.file().read_exact_at(&mut buffer, at).ok()?;
        looked += 1;
        zeros += u64::from(buffer.iter().all(|byte| *byte == 0));
    }
    (looked > 0).then_some((looked, zeros))
}

fn of_file(target: &Target) -> TargetContent {
    let file = target.file();
    let attributes = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::empty())
        .map_or(StatxAttributes::empty(), |statx| statx.stx_attributes);
    let written = written(target).unwrap_or(Written {
        looked: 0,
        empty: 0,
        longest: Some((0, target.size())),
    });
    TargetContent {
        looked_bytes: written.looked,
        empty_bytes: written.empty,
        written: written.longest,
        length: file.metadata().ok().map(|data| data.len()),
        allocated_bytes: file.metadata().ok().map(|data| data.blocks() * 512),
        layout: FileBlocks::of(file, target.size(), TIME_MAX),
        set_compressed: attributes.contains(StatxAttributes::COMPRESSED),
        set_encrypted: attributes.contains(StatxAttributes::ENCRYPTED),
        ..TargetContent::default()
    }
}

struct Written {
    looked: u64,
    empty: u64,
    longest: Option<(u64, u64)>,
}

/// Written stretches by lseek(2), which counts reserved space as a hole; `None` where the file system does not
/// report them.
fn written(target: &Target) -> Option<Written> {
    let (file, end, began) = (target.file(), target.size(), Instant::now());
    let mut seen = Written {
        looked: 0,
        empty: 0,
        longest: None,
    };
    while seen.looked < end && began.elapsed() < TIME_MAX {
        let data = match rustix::fs::seek(file, SeekFrom::Data(seen.looked)) {
            Ok(data) => data.clamp(seen.looked, end),
            // No data from here to the end.
            Err(Errno::NXIO) => end,
            Err(_) => return None,
        };
        seen.empty += data - seen.looked;
        seen.looked = data;
        if data < end {
            let hole = rustix::fs::seek(file, SeekFrom::Hole(data)).ok()?;
            seen.looked = hole.clamp(data + 1, end);
            let length = |(from, to): (u64, u64)| to - from;
            let stretch = (data, seen.looked);
            if seen
                .longest
                .is_none_or(|longest| length(stretch) > length(longest))
            {
                seen.longest = Some(stretch);
            }
        }
    }
    Some(seen)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use iolab_storage::{Consent, Need, Size};

    use super::*;

    fn content(prepare: impl FnOnce(&File)) -> TargetContent {
        let folder =
            tempfile::tempdir_in(needs::folder_on_disk().expect("a folder")).expect("a folder");
        let path = folder.path().join("file");
        let file = File::create(&path).expect("a file");
        prepare(&file);
        file.sync_all().expect("durable");
        let need = Need {
            size: Size::AtMost {
                most: Size::ENTIRE,
                least: 1,
            },
            write: false,
            consent: Consent::No,
            beside: Default::default(),
            lends: false,
        };
        let target = Target::open(&path, &need).expect("opened");
        assert!(target.notes().is_empty());
        TargetContent::of(&target).expect("a file has content")
    }

    #[test]
    fn a_full_file_has_no_holes() {
        let content = content(|file| file.write_all_at(&[7; 100_000], 0).expect("written"));
        assert_eq!((content.looked_bytes, content.empty_bytes), (100_000, 0));
        assert_eq!(content.written, Some((0, 100_000)));
    }

    #[test]
    fn holes_are_measured() {
        let content = content(|file| {
            file.set_len(3 << 20).expect("sized");
            file.write_all_at(&[7; 1 << 20], 1 << 20).expect("written");
            file.write_all_at(&[7; 4096], 0).expect("written");
        });
        if content.empty_bytes == 0 {
            return needs::skip(needs::Need::Holes, "a sparse file looks full");
        }
        assert_eq!(
            (content.looked_bytes, content.empty_bytes),
            (3 << 20, (2 << 20) - 4096)
        );
        assert_eq!(content.written, Some((1 << 20, 2 << 20)));
    }

    #[test]
    fn a_file_that_was_never_written_has_nothing() {
        let content = content(|file| file.set_len(1 << 20).expect("sized"));
        if content.empty_bytes == 0 {
            return needs::skip(needs::Need::Holes, "a sparse file looks full");
        }
        assert_eq!((content.empty_bytes, content.written), (1 << 20, None));
    }
}
