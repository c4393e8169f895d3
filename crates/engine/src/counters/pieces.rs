//! Pieces of a range in an order in which every beginning is spread evenly: looking can end at any time, and what was
//! seen then stands for the whole.

use std::ops::Range;

/// The pieces of `offset..offset + length`, each `size` bytes but the last.
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

/// A part of what was looked at, scaled to the whole.
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
