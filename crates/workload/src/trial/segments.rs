//! Segments: the parts of the region that requests go to, with gaps between them.
//!
//! Source: SNIA, Test Terminology (snia.org, forums/sssi/pts/testterms): segments of the active range are contiguous and of equal size, begin
//! at random addresses of it, span it, and do not touch.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::random_key::derive;
use crate::units::{format_size, parse_size};

/// Segments begin at multiples of this many bytes, or of the greatest power of two that divides their size where that is less.
const ALIGNMENT_MAX: u64 = 1 << 20;
/// The seed of their places: the same in all trials of all runs, so that a preparation and later trials use the same segments.
const PLACES: u64 = 0x5e67;

/// So many segments of equal size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segments {
    count: u64,
    /// Bytes of one.
    size: u64,
}

/// Where the segments of a region lie: one in each of as many slots of equal length, at a drawn place of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentLayout {
    segments: Segments,
    /// Bytes from one slot to the next.
    slot: u64,
    /// Places of a segment within its slot, so that it never touches the next one.
    choices: u64,
}

impl Segments {
    /// Bytes of all of them.
    pub fn bytes(self) -> u64 {
        self.count * self.size
    }

    /// Their number.
    pub fn count(self) -> u64 {
        self.count
    }

    /// Bytes that their places are multiples of, from the start of the region on.
    pub(super) fn alignment(self) -> u64 {
        ALIGNMENT_MAX.min(1 << self.size.trailing_zeros())
    }

    /// Where they lie in a region of so many bytes; `None` where they would touch.
    pub fn places(self, region: u64) -> Option<SegmentLayout> {
        let alignment = self.alignment();
        let slot = region / self.count / alignment * alignment;
        let choices = slot.checked_sub(self.size)? / alignment;
        (choices > 0).then_some(SegmentLayout {
            segments: self,
            slot,
            choices,
        })
    }
}

impl SegmentLayout {
    /// The byte of the region that is byte `at` of all segments one behind the other.
    pub fn of(&self, at: u64) -> u64 {
        let size = self.segments.size;
        let (segment, within) = (at / size, at % size);
        let draw = u128::from(derive(PLACES, segment)) * u128::from(self.choices);
        let place = (draw >> 64) as u64 * self.segments.alignment();
        segment * self.slot + place + within
    }
}

/// `2048/8GiB`.
impl fmt::Display for Segments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.count, format_size(self.bytes())))
    }
}

/// `2048/8GiB`: their number, and the bytes of all of them.
impl FromStr for Segments {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |why: &str| {
            Error::usage(format!("'{text}' are no segments: {why}"))
                .hint("write their number and the bytes of all of them: segments=2048/8GiB")
        };
        let (count, bytes) = text
            .split_once('/')
            .ok_or_else(|| wrong("a slash is missing"))?;
        let count = count.trim().parse().ok().filter(|count| *count > 0);
        let count: u64 =
            count.ok_or_else(|| wrong("their number is not a whole number above 0"))?;
        let bytes = parse_size(bytes.trim())?;
        match bytes > 0 && bytes.is_multiple_of(count) {
            true => Ok(Self {
                count,
                size: bytes / count,
            }),
            false => Err(wrong("their number does not divide the bytes")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::refused_trials::{refusals, trial};
    use super::*;

    proptest! {
        #[test]
        fn segments_lie_apart_in_the_region_and_hold_every_byte_once(
            count in 1u64..300, size in 1u64..40, room in 2u64..30,
        ) {
            let segments: Segments = format!("{count}/{}", count * size * 4096).parse().expect("segments");
            let region = count * (size + room) * 4096;
            let Some(places) = segments.places(region) else {
                // A slot has no room for a segment and a gap.
                let alignment = segments.alignment();
                prop_assert!((size + room) * 4096 / alignment * alignment <= size * 4096 + alignment);
                return Ok(());
            };
            let mut end = None;
            for number in 0..count {
                let first = places.of(number * size * 4096);
                let last = places.of((number + 1) * size * 4096 - 1);
                prop_assert_eq!(last - first + 1, size * 4096);
                prop_assert!(first.is_multiple_of(4096));
                prop_assert!(end.is_none_or(|end| first > end), "they touch");
                prop_assert!(last < region);
                end = Some(last + 1);
            }
        }
    }

    #[test]
    fn segments_that_cannot_be_are_refused() {
        for text in ["", "8", "0/8M", "3/8M", "x/8M", "8/x", "-1/8M"] {
            assert!(text.parse::<Segments>().is_err(), "{text}");
        }
        let segments: Segments = "4/16M".parse().expect("segments");
        assert_eq!(segments.to_string(), "4/16MiB");
        let possible = "segments=4/16M region=64M";
        assert_eq!(
            trial(possible).requests_bound(),
            Some(4096),
            "a pass over them"
        );
        let changes = ["region=16M", "bs=2M", "pattern=strided", "layout=private"];
        insta::assert_snapshot!(refusals(possible, &changes), @r"
        region=16M: segments=4/16MiB do not fit into a region of 16MiB with gaps between them
        bs=2M: segments=4/16MiB with bs=2MiB: they begin at multiples of 1MiB
        pattern=strided: segments=4/16MiB with pattern=strided
        layout=private: segments=4/16MiB with layout=private
        ");
    }
}
