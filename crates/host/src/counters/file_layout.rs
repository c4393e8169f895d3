//! Storage of a file by its file system: number of pieces, compression, encryption, extents shared with other
//! files.

use std::fs::File;
use std::time::{Duration, Instant};

use iolab_storage::fiemap::{
    ENCODED, ENCRYPTED, EXTENTS, FiemapExtent, SHARED, UNKNOWN, UNWRITTEN, with_extents,
};

/// Layout of a file in its file system. Space that was never written is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileBlocks {
    /// Bytes of the file that were examined, from its start.
    pub looked_bytes: u64,
    /// Written bytes among the examined ones.
    pub written_bytes: u64,
    /// Contiguous stretches on the device that hold the written bytes, in file order.
    pub pieces: u64,
    /// Bytes stored encoded, which mostly means compressed.
    pub compressed_bytes: u64,
    /// Bytes stored encrypted by the file system.
    pub encrypted_bytes: u64,
    /// Bytes shared with other files: reflinks, snapshots.
    pub shared_bytes: u64,
}

impl FileBlocks {
    /// Layout of the first `length` bytes of a regular file, examined for at most `time_max`; `None` where the
    /// file system does not report it.
    pub fn of(file: &File, length: u64, time_max: Duration) -> Option<Self> {
        let began = Instant::now();
        let mut walk = Walk::default();
        while walk.layout.looked_bytes < length && began.elapsed() < time_max {
            let rest = walk.layout.looked_bytes..length;
            let more = with_extents(file, &rest, |extents| walk.take(extents, length))?;
            if !more {
                walk.layout.looked_bytes = length;
            }
        }
        Some(walk.layout)
    }
}

#[derive(Debug, Default)]
struct Walk {
    layout: FileBlocks,
    /// Device address at which the next extent would start without a gap.
    goes_on_at: Option<u64>,
}

impl Walk {
    /// Counts extents up to `end`. True if more extents may follow.
    fn take(&mut self, extents: &[FiemapExtent], end: u64) -> bool {
        for extent in extents {
            self.count(extent, end);
        }
        extents.len() == EXTENTS
    }

    fn count(&mut self, extent: &FiemapExtent, end: u64) {
        let layout = &mut self.layout;
        let from = extent.fe_logical.max(layout.looked_bytes).min(end);
        let to = extent
            .fe_logical
            .saturating_add(extent.fe_length)
            .clamp(from, end);
        // An extent without bytes would be asked for again and again.
        layout.looked_bytes = to.max(layout.looked_bytes.saturating_add(1).min(end));
        let has = |flag: u32| extent.fe_flags & flag != 0;
        let bytes = to - from;
        if bytes == 0 || has(UNWRITTEN) {
            return;
        }
        layout.written_bytes += bytes;
        // Data without a place yet, or packed into a block with other data, does not count as a separate piece.
        if !has(UNKNOWN) {
            let start = extent.fe_physical + (from - extent.fe_logical);
            layout.pieces += u64::from(self.goes_on_at != Some(start));
            self.goes_on_at = start.checked_add(bytes);
        }
        if has(ENCRYPTED) {
            layout.encrypted_bytes += bytes;
        } else if has(ENCODED) {
            layout.compressed_bytes += bytes;
        }
        if has(SHARED) {
            layout.shared_bytes += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use proptest::prelude::*;

    use super::*;

    fn extent(logical: u64, physical: u64, length: u64, flags: u32) -> FiemapExtent {
        FiemapExtent {
            fe_logical: logical,
            fe_physical: physical,
            fe_length: length,
            fe_flags: flags,
            ..FiemapExtent::default()
        }
    }

    fn of(extents: &[FiemapExtent], end: u64) -> FileBlocks {
        let mut walk = Walk::default();
        walk.take(extents, end);
        walk.layout
    }

    #[test]
    fn stretches_that_go_on_are_one_piece() {
        let layout = of(
            &[
                extent(0, 1000, 100, 0),
                extent(100, 1100, 100, 0),
                extent(200, 5000, 100, UNWRITTEN),
                extent(300, 7000, 100, 0),
            ],
            400,
        );
        assert_eq!((layout.looked_bytes, layout.written_bytes), (400, 300));
        assert_eq!(layout.pieces, 2);
    }

    #[test]
    fn flags_are_counted_by_bytes_within_the_range() {
        let layout = of(
            &[
                extent(0, 0, 100, ENCODED),
                extent(100, 0, 100, ENCODED | ENCRYPTED),
                extent(200, 900, 100, SHARED),
                extent(300, 0, 100, UNKNOWN),
            ],
            250,
        );
        assert_eq!(
            (layout.compressed_bytes, layout.encrypted_bytes),
            (100, 100)
        );
        assert_eq!((layout.shared_bytes, layout.looked_bytes), (50, 250));
    }

    #[test]
    fn a_real_file_is_seen_to_its_end() {
        let file =
            tempfile::tempfile_in(needs::folder_on_disk().expect("a folder")).expect("a file");
        file.set_len(40 << 20).expect("sized");
        // More extents than one call returns.
        for n in 0..200 {
            file.write_all_at(&[7; 4096], n * 65_536).expect("written");
        }
        file.sync_all().expect("durable");
        let Some(layout) = FileBlocks::of(&file, 40 << 20, Duration::from_secs(10)) else {
            return needs::skip(needs::Need::Fiemap, "not of a file next to the sources");
        };
        assert_eq!(layout.looked_bytes, 40 << 20);
        assert!(
            (200 * 4096..40 << 20).contains(&layout.written_bytes),
            "{layout:?}"
        );
        assert!((1..=200).contains(&layout.pieces), "{layout:?}");
        let none = FileBlocks::of(&file, 40 << 20, Duration::ZERO).expect("it worked before");
        assert_eq!(none, FileBlocks::default());
    }

    proptest! {
        #[test]
        fn layout_never_exceeds_the_range(
            end in 1..1u64 << 40,
            list in proptest::collection::vec((any::<u64>(), 0..1u64 << 60, any::<u64>(), any::<u32>()), 0..64),
        ) {
            let list: Vec<_> = list.into_iter().map(|(a, b, c, flags)| extent(a, b, c, flags)).collect();
            let layout = of(&list, end);
            prop_assert!(layout.looked_bytes <= end);
            prop_assert!(layout.written_bytes <= layout.looked_bytes);
            prop_assert!(layout.compressed_bytes + layout.encrypted_bytes <= layout.written_bytes);
        }
    }
}
