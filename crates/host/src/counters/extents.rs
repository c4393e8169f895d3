//! Bytes of a file's range that were never written, by FIEMAP, or by SEEK_HOLE where FIEMAP is missing.

use std::fs::File;
use std::ops::Range;
use std::time::{Duration, Instant};

use iolab_storage::fiemap::{EXTENTS, FiemapExtent, UNWRITTEN, with_extents};
use iolab_storage::seek_holes;
use iolab_workload::region_state::Extents;

use super::spread_pieces::{Counts, FileRange, over, pieces, scaled};

/// Pieces of a range that are examined one by one, so that the sample of a file with many extents is spread
/// over it. Extents of a piece beyond the ones that one call returns are not examined.
const PIECES: u64 = 16;

impl Counts for Extents {
    fn plus(self, other: Self) -> Self {
        let unwritten = self.unwritten_bytes.zip(other.unwritten_bytes);
        Self {
            looked_bytes: self.looked_bytes + other.looked_bytes,
            hole_bytes: self.hole_bytes + other.hole_bytes,
            unwritten_bytes: unwritten.map(|(a, b)| a + b),
        }
    }

    fn scaled(self, looked: u64, whole: u64) -> Self {
        let all = |bytes| scaled(bytes, looked, whole);
        Self {
            hole_bytes: all(self.hole_bytes),
            unwritten_bytes: self.unwritten_bytes.map(all),
            ..self
        }
    }
}

/// Hole and unwritten bytes in ranges of regular files; `None` where the file system does not report them.
pub fn extents(parts: &[FileRange<'_>]) -> Option<Extents> {
    over(parts, of_part)
}

fn of_part(part: &FileRange<'_>, time: Duration) -> Option<Extents> {
    let whole = |seen: Seen| Extents {
        looked_bytes: seen.looked,
        hole_bytes: scaled(seen.hole, seen.looked, part.length),
        unwritten_bytes: Some(scaled(seen.unwritten, seen.looked, part.length)),
    };
    if let Some(seen) = look(part, time, |piece| by_fiemap(part.file, piece)) {
        return Some(whole(seen));
    }
    let seen = look(part, time, |piece| by_seeking(part.file, &piece))?;
    Some(Extents {
        unwritten_bytes: None,
        ..whole(seen)
    })
}

/// Bytes found in a part of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Seen {
    looked: u64,
    hole: u64,
    unwritten: u64,
}

fn look(
    part: &FileRange<'_>,
    time: Duration,
    mut ask: impl FnMut(Range<u64>) -> Option<Seen>,
) -> Option<Seen> {
    let began = Instant::now();
    let mut sum = Seen::default();
    for piece in pieces(part.offset, part.length, part.length.div_ceil(PIECES)) {
        let seen = ask(piece)?;
        sum.looked += seen.looked;
        sum.hole += seen.hole;
        sum.unwritten += seen.unwritten;
        if began.elapsed() >= time {
            break;
        }
    }
    Some(sum)
}

fn by_fiemap(file: &File, piece: Range<u64>) -> Option<Seen> {
    with_extents(file, &piece, |extents| tally(&piece, extents))
}

/// Bytes of each kind in a piece by its extents, in ascending order. A full list covers the piece only up to
/// the end of its last extent.
fn tally(piece: &Range<u64>, extents: &[FiemapExtent]) -> Seen {
    let within = |at: u64| at.clamp(piece.start, piece.end);
    let ends = |e: &FiemapExtent| within(e.fe_logical.saturating_add(e.fe_length));
    let seen_to = match extents.last() {
        Some(last) if extents.len() == EXTENTS => ends(last),
        _ => piece.end,
    };
    let (mut at, mut hole, mut unwritten) = (piece.start, 0, 0);
    for extent in extents {
        let start = within(extent.fe_logical).max(at);
        let end = ends(extent).max(start);
        hole += start - at;
        if extent.fe_flags & UNWRITTEN != 0 {
            unwritten += end - start;
        }
        at = end;
    }
    Seen {
        looked: seen_to.max(at) - piece.start,
        hole: hole + seen_to.saturating_sub(at),
        unwritten,
    }
}

/// Bytes of each kind in a piece by SEEK_HOLE, for at most as many extents as one FIEMAP call returns.
fn by_seeking(file: &File, piece: &Range<u64>) -> Option<Seen> {
    let (to, hole) = seek_holes(file, piece, EXTENTS)?;
    Some(Seen {
        looked: to - piece.start,
        hole,
        unwritten: 0,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use proptest::prelude::*;
    use rustix::fs::{FallocateFlags, fallocate};

    use super::*;

    const MIB: u64 = 1 << 20;

    fn extent(start: u64, length: u64, flags: u32) -> FiemapExtent {
        FiemapExtent {
            fe_logical: start,
            fe_length: length,
            fe_flags: flags,
            ..FiemapExtent::default()
        }
    }

    #[test]
    fn extents_are_cut_to_the_piece() {
        let seen = |extents: &[FiemapExtent]| {
            let seen = tally(&(100..200), extents);
            (seen.looked, seen.hole, seen.unwritten)
        };
        assert_eq!(seen(&[]), (100, 100, 0));
        assert_eq!(seen(&[extent(0, 1000, 0)]), (100, 0, 0));
        assert_eq!(seen(&[extent(0, 1000, UNWRITTEN)]), (100, 0, 100));
        let some = [
            extent(90, 20, 0),
            extent(150, 10, UNWRITTEN),
            extent(190, 90, 1),
        ];
        assert_eq!(seen(&some), (100, 40 + 30, 10));
        // Space after a full list is unknown.
        let full: Vec<_> = (0..EXTENTS as u64).map(|n| extent(100 + n, 1, 0)).collect();
        assert_eq!(seen(&full), (64, 0, 0));
    }

    /// A file of 8 MiB: data, a hole, unwritten space where the file system supports it, a hole.
    fn patchy() -> (File, bool) {
        let file =
            tempfile::tempfile_in(needs::folder_on_disk().expect("a folder")).expect("a file");
        file.set_len(8 * MIB).expect("sized");
        file.write_all_at(&vec![7; 2 * MIB as usize], 0)
            .expect("written");
        let allocated = fallocate(&file, FallocateFlags::empty(), 4 * MIB, 3 * MIB).is_ok();
        file.sync_all().expect("durable");
        (file, allocated)
    }

    fn part(file: &File, offset: u64, length: u64) -> FileRange<'_> {
        FileRange {
            file,
            offset,
            length,
        }
    }

    /// Time limit that is never reached.
    const AMPLE: Duration = Duration::from_secs(60);

    #[test]
    fn holes_and_unwritten_space_are_told_apart() {
        let (file, allocated) = patchy();
        let seen = of_part(&part(&file, 0, 8 * MIB), AMPLE);
        let Some(seen) = seen.filter(|seen| seen.unwritten_bytes.is_some()) else {
            return needs::skip(needs::Need::Fiemap, "not of a file next to the sources");
        };
        let unwritten = if allocated { 3 * MIB } else { 0 };
        assert_eq!(seen.unwritten_bytes, Some(unwritten));
        assert_eq!(seen.empty_bytes(), 6 * MIB);
        let inside = extents(&[part(&file, MIB, MIB)]).expect("it worked before");
        assert_eq!(inside.empty_bytes(), 0);
    }

    #[test]
    fn seeking_sees_the_same_empty_bytes() {
        let (file, _) = patchy();
        let by_seeking = |piece: Range<u64>| by_seeking(&file, &piece);
        let seen = look(&part(&file, 0, 8 * MIB), AMPLE, by_seeking).expect("a look");
        if seen.hole == 0 {
            return needs::skip(needs::Need::Holes, "a sparse file looks full");
        }
        assert_eq!((seen.looked, seen.hole), (8 * MIB, 6 * MIB));
    }

    proptest! {
        #[test]
        fn extents_never_exceed_the_piece(
            start in 0..1u64 << 40, length in 1..1u64 << 40,
            list in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u32>()), 0..EXTENTS),
        ) {
            let list: Vec<_> = list.into_iter().map(|(a, b, flags)| extent(a, b, flags)).collect();
            let seen = tally(&(start..start + length), &list);
            prop_assert!(seen.looked <= length);
            prop_assert!(seen.hole + seen.unwritten <= seen.looked);
        }
    }
}
