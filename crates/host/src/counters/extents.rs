//! Bytes of a file's range that were never written, by FIEMAP, or by SEEK_HOLE where FIEMAP is missing.
//!
//! Pieces of a range in an order whose every prefix is spread evenly: examination can end at any time, and its
//! result then stands for the whole range.
//!
//! Bytes of a file that its file system stores compressed.

use std::fs::File;
use std::ops::Range;
use std::time::{Duration, Instant};

use iolab_storage::fiemap::{ENCODED, ENCRYPTED, EXTENTS, UNWRITTEN, show_parts};
use iolab_storage::seek_holes;
use iolab_workload::region_state::Extents;

/// Pieces of a range that are examined one by one, so that the sample of a file with many extents is spread
/// over it. Extents of a piece beyond the ones that one call returns are not examined.
const PIECES: u64 = 16;

/// Hole and unwritten bytes in ranges of regular files; `None` where the file system does not report them.
pub fn extents(parts: &[FileRange<'_>]) -> Option<Extents> {
    let seen = over(parts, of_part)?;
    let [hole, unwritten_bytes] = seen.found;
    Some(Extents {
        looked_bytes: seen.looked,
        hole_bytes: hole?,
        unwritten_bytes,
    })
}

/// Looks at a part of a file: by its extents, else by seeking.
fn of_part(part: &FileRange<'_>, time: Duration) -> Option<Seen<2>> {
    let size = part.length.div_ceil(PIECES);
    look(part, time, size, |piece| by_extents(part.file, &piece))
        .or_else(|| look(part, time, size, |piece| by_seeking(part.file, &piece)))
}

/// Holes, and space that was never written, as one answer of the kernel shows them.
fn by_extents(file: &File, piece: &Range<u64>) -> Option<Seen<2>> {
    let (mut hole, mut unwritten) = (0, 0);
    let to = show_parts(file, piece, |part, extent| match extent {
        None => hole += part.end - part.start,
        Some(extent) if extent.fe_flags & UNWRITTEN != 0 => unwritten += part.end - part.start,
        Some(_) => {}
    })?;
    Some(Seen {
        looked: to - piece.start,
        found: [Some(hole), Some(unwritten)],
    })
}

/// Bytes of each kind in a piece by SEEK_HOLE, for at most as many extents as one FIEMAP call returns.
fn by_seeking(file: &File, piece: &Range<u64>) -> Option<Seen<2>> {
    let (to, hole) = seek_holes(file, piece, EXTENTS)?;
    Some(Seen {
        looked: to - piece.start,
        found: [Some(hole), None],
    })
}

/// Time limit for one look at all files of a trial. Counts of unexamined pieces are estimated from the examined
/// ones.
const TIME_MAX: Duration = Duration::from_micros(100);

/// A range of a file or device.
#[derive(Debug, Clone, Copy)]
pub struct FileRange<'a> {
    /// File or device.
    pub file: &'a File,
    /// First byte of the range.
    pub offset: u64,
    /// Length, bytes.
    pub length: u64,
}

/// Examined bytes of a range, and the bytes of each kind among them; `None` for a kind that is not reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen<const KINDS: usize> {
    pub(super) looked: u64,
    pub(super) found: [Option<u64>; KINDS],
}

impl<const KINDS: usize> Seen<KINDS> {
    fn plus(self, other: Self) -> Self {
        Self {
            looked: self.looked + other.looked,
            found: std::array::from_fn(|kind| Some(self.found[kind]? + other.found[kind]?)),
        }
    }

    /// Counts scaled from the `looked` bytes that were examined to `whole` bytes; the number of examined bytes itself stays.
    fn scaled(self, looked: u64, whole: u64) -> Self {
        let found = self.found;
        Self {
            found: found.map(|bytes| bytes.map(|bytes| scaled(bytes, looked, whole))),
            ..self
        }
    }
}

/// Examines pieces of `size` bytes until all are seen or the time is over; `None` when a call fails.
pub(super) fn look<const KINDS: usize>(
    part: &FileRange<'_>,
    time: Duration,
    size: u64,
    mut ask: impl FnMut(Range<u64>) -> Option<Seen<KINDS>>,
) -> Option<Seen<KINDS>> {
    let began = Instant::now();
    let mut sum = Seen {
        looked: 0,
        found: [Some(0); KINDS],
    };
    for piece in pieces(part.offset, part.length, size) {
        sum = sum.plus(ask(piece)?);
        if began.elapsed() >= time {
            break;
        }
    }
    Some(sum.scaled(sum.looked, part.length))
}

/// Examines one part after another, each for an equal share of the time. `None` without any part, and when a
/// call fails.
pub(super) fn over<const KINDS: usize>(
    parts: &[FileRange<'_>],
    mut ask: impl FnMut(&FileRange<'_>, Duration) -> Option<Seen<KINDS>>,
) -> Option<Seen<KINDS>> {
    let began = Instant::now();
    let share = TIME_MAX / u32::try_from(parts.len()).ok()?.max(1);
    let (mut sum, mut looked) = (None, 0);
    for number in pieces(0, parts.len() as u64, 1) {
        let part = &parts[number.start as usize];
        let seen = ask(part, share)?;
        sum = Some(sum.map_or(seen, |sum: Seen<KINDS>| sum.plus(seen)));
        looked += part.length;
        if began.elapsed() >= TIME_MAX {
            break;
        }
    }
    let whole = parts.iter().map(|part| part.length).sum();
    sum.map(|sum| sum.scaled(looked, whole))
}

/// Pieces of `offset..offset + length`, each `size` bytes but the last.
///
/// Piece numbers come with their bits reversed (the van der Corput sequence of base 2).
fn pieces(offset: u64, length: u64, size: u64) -> impl Iterator<Item = Range<u64>> {
    let size = size.max(1);
    let count = length.div_ceil(size);
    let bits = count
        .checked_next_power_of_two()
        .map_or(64, u64::trailing_zeros);
    let places = 1u128 << bits;
    (0..places)
        .map(move |n| match bits {
            0 => 0,
            bits => (n as u64).reverse_bits() >> (64 - bits),
        })
        .filter(move |number| *number < count)
        .map(move |number| {
            let start = offset + number * size;
            start..(start + size).min(offset + length)
        })
}

/// Scales a count of the part that was examined to the whole.
fn scaled(part: u64, looked: u64, whole: u64) -> u64 {
    match looked {
        0 => 0,
        looked => (u128::from(part) * u128::from(whole) / u128::from(looked)) as u64,
    }
}

/// Bytes among the first `length` ones of a regular file that are stored compressed, as far as they were examined within `time_max`;
/// `None` where the file system does not report it.
pub fn compressed_bytes(file: &File, length: u64, time_max: Duration) -> Option<u64> {
    let (began, mut at, mut compressed) = (Instant::now(), 0, 0);
    while at < length && began.elapsed() < time_max {
        at = show_parts(file, &(at..length), |part, extent| {
            if extent.is_some_and(|extent| is_compressed(extent.fe_flags)) {
                compressed += part.end - part.start;
            }
        })?;
    }
    Some(compressed)
}

/// Whether an extent with these flags is stored encoded, and not only encrypted.
const fn is_compressed(flags: u32) -> bool {
    flags & (ENCODED | ENCRYPTED | UNWRITTEN) == ENCODED
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use proptest::prelude::*;
    use rustix::fs::{FallocateFlags, fallocate};

    use super::*;

    const MIB: u64 = 1 << 20;

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
        let Some([Some(hole), Some(seen)]) = seen.map(|seen| seen.found) else {
            return needs::skip(needs::Need::Fiemap, "not of a file next to the sources");
        };
        let unwritten = if allocated { 3 * MIB } else { 0 };
        assert_eq!((seen, hole + seen), (unwritten, 6 * MIB));
        let inside = extents(&[part(&file, MIB, MIB)]).expect("it worked before");
        assert_eq!(inside.empty_bytes(), 0);
    }

    #[test]
    fn encoded_extents_are_compressed_unless_encrypted() {
        let all = [
            0,
            ENCODED,
            ENCODED | ENCRYPTED,
            ENCODED | UNWRITTEN,
            UNWRITTEN,
        ];
        assert_eq!(all.map(is_compressed), [false, true, false, false, false]);
        let (file, _) = patchy();
        let seen = compressed_bytes(&file, 8 * MIB, AMPLE);
        assert!(seen.is_none_or(|bytes| bytes <= 2 * MIB), "{seen:?}");
    }

    #[test]
    fn seeking_sees_the_same_empty_bytes() {
        let (file, _) = patchy();
        let by_seeking = |piece: Range<u64>| by_seeking(&file, &piece);
        let seen = look(&part(&file, 0, 8 * MIB), AMPLE, MIB, by_seeking).expect("a look");
        if seen.found[0] == Some(0) {
            return needs::skip(needs::Need::Holes, "a sparse file looks full");
        }
        assert_eq!((seen.looked, seen.found), (8 * MIB, [Some(6 * MIB), None]));
    }

    #[test]
    fn the_first_pieces_are_far_apart() {
        let starts: Vec<u64> = pieces(100, 80, 10).map(|piece| piece.start).collect();
        assert_eq!(starts, [100, 140, 120, 160, 110, 150, 130, 170]);
        assert_eq!(pieces(0, 0, 10).count(), 0);
        assert!(pieces(7, 3, 10).eq(std::iter::once(7..10)));
    }

    #[test]
    fn what_was_seen_stands_for_the_whole() {
        assert_eq!(scaled(3, 10, 100), 30);
        assert_eq!(scaled(0, 0, 100), 0);
        assert_eq!(scaled(1 << 40, 1 << 40, 1 << 60), 1 << 60);
    }

    #[test]
    fn many_files_take_no_longer_than_one() {
        let file = tempfile::tempfile().expect("a file");
        let part = FileRange {
            file: &file,
            offset: 0,
            length: 10,
        };
        let three = |looked| Seen {
            looked,
            found: [Some(3)],
        };
        let all = over(&[part; 4], |part, _| Some(three(part.length))).expect("looked");
        assert_eq!(all.found, [Some(12)], "as if all were looked at");
        let slow = |part: &FileRange<'_>, time: Duration| {
            assert_eq!(time, TIME_MAX / 100);
            std::thread::sleep(TIME_MAX);
            Some(three(part.length))
        };
        let one = over(&[part; 100], slow).expect("looked");
        assert_eq!(
            (one.looked, one.found),
            (10, [Some(300)]),
            "one was looked at"
        );
        assert_eq!(over(&[part; 2], |_, _| None::<Seen<1>>), None);
        assert_eq!(over(&[], |_, _| Some(three(1))), None);
    }

    proptest! {
        #[test]
        fn pieces_cover_the_range_once(offset in 0..1u64 << 50, length in 0..5_000u64, size in 1..700u64) {
            let mut found: Vec<_> = pieces(offset, length, size).collect();
            found.sort_by_key(|piece| piece.start);
            let mut at = offset;
            for piece in found {
                prop_assert_eq!(piece.start, at);
                prop_assert!(piece.end > piece.start && piece.end - piece.start <= size);
                at = piece.end;
            }
            prop_assert_eq!(at, offset + length);
        }
    }
}
