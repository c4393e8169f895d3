//! Pieces of a range in an order whose every prefix is spread evenly: examination can end at any time, and its
//! result then stands for the whole range.

use std::fs::File;
use std::ops::Range;
use std::time::{Duration, Instant};

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

/// Byte counts in a range.
pub(super) trait Counts: Sized {
    /// Sum with the counts of another range.
    fn plus(self, other: Self) -> Self;
    /// Counts scaled from the `looked` bytes that were examined to `whole` bytes; the number of examined bytes
    /// itself stays.
    fn scaled(self, looked: u64, whole: u64) -> Self;
}

/// Examines one part after another, each for an equal share of the time. `None` without any part, and when a
/// call fails.
pub(super) fn over<T: Counts>(
    parts: &[FileRange<'_>],
    mut ask: impl FnMut(&FileRange<'_>, Duration) -> Option<T>,
) -> Option<T> {
    let began = Instant::now();
    let share = TIME_MAX / u32::try_from(parts.len()).ok()?.max(1);
    let (mut sum, mut looked) = (None, 0);
    for number in pieces(0, parts.len() as u64, 1) {
        let part = &parts[number.start as usize];
        let seen = ask(part, share)?;
        sum = Some(match sum {
            None => seen,
            Some(sum) => T::plus(sum, seen),
        });
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
pub(super) fn pieces(offset: u64, length: u64, size: u64) -> impl Iterator<Item = Range<u64>> {
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
pub(super) fn scaled(part: u64, looked: u64, whole: u64) -> u64 {
    match looked {
        0 => 0,
        looked => (u128::from(part) * u128::from(whole) / u128::from(looked)) as u64,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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

    impl Counts for (u64, u64) {
        fn plus(self, other: Self) -> Self {
            (self.0 + other.0, self.1 + other.1)
        }

        fn scaled(self, looked: u64, whole: u64) -> Self {
            (self.0, scaled(self.1, looked, whole))
        }
    }

    #[test]
    fn many_files_take_no_longer_than_one() {
        let file = tempfile::tempfile().expect("a file");
        let part = FileRange {
            file: &file,
            offset: 0,
            length: 10,
        };
        let all = over(&[part; 4], |part, _| Some((part.length, 3))).expect("looked");
        assert_eq!(all.1, 12, "as if all were looked at");
        let slow = |part: &FileRange<'_>, time: Duration| {
            assert_eq!(time, TIME_MAX / 100);
            std::thread::sleep(TIME_MAX);
            Some((part.length, 3))
        };
        assert_eq!(
            over(&[part; 100], slow),
            Some((10, 300)),
            "one was looked at"
        );
        assert_eq!(over(&[part; 2], |_, _| None::<(u64, u64)>), None);
        assert_eq!(over(&[], |_, _| Some((1, 1))), None);
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
