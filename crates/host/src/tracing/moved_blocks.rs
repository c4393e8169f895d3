//! Places where a file system that never overwrites blocks has put the writes of a trial (btrfs).

use std::collections::BTreeMap;
use std::ops::Range;

use super::event::{Event, TraceEventKind};

/// Bytes of a file that got a place together, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Extent {
    offset: u64,
    at: u64,
    bytes: u64,
    place: Option<u64>,
}

/// Contiguous written bytes, and the place of the first one in the file system's own addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedBytes {
    /// Place of the first byte.
    pub place: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// Places of written bytes, by file.
#[derive(Debug, Default)]
pub struct MovedBlocks {
    /// Extents by offset, and the greatest length, for each file system and inode.
    files: BTreeMap<(u64, u64), (Vec<Extent>, u64)>,
}

impl MovedBlocks {
    /// Places by events in time order.
    pub fn of(events: &[Event]) -> Self {
        let mut moved = Self::default();
        for event in events {
            let TraceEventKind::Moved {
                file_system,
                inode,
                offset,
                bytes,
                place,
            } = event.kind
            else {
                continue;
            };
            let (extents, longest) = moved.files.entry((file_system, inode)).or_default();
            *longest = bytes.max(*longest);
            extents.push(Extent {
                offset,
                at: event.at,
                bytes,
                place,
            });
        }
        for (extents, _) in moved.files.values_mut() {
            extents.sort_unstable();
        }
        moved
    }

    /// Places of a write's bytes, for a write in flight between two stamps: each byte's first place in that
    /// time. Bytes whose place is unknown are missing.
    pub fn of_write(
        &self,
        file: (u64, u64),
        bytes: Range<u64>,
        (start, end): (u64, u64),
    ) -> Vec<PlacedBytes> {
        let Some((extents, longest)) = self.files.get(&file) else {
            return Vec::new();
        };
        let from = bytes.start.saturating_sub(*longest);
        let first = extents.partition_point(|extent| extent.offset < from);
        let near = extents[first..].iter();
        let near = near.take_while(|extent| extent.offset < bytes.end);
        let mut within: Vec<&Extent> = near
            .filter(|extent| (start..=end).contains(&extent.at))
            .collect();
        within.sort_unstable_by_key(|extent| extent.at);
        let mut moved = Vec::new();
        let mut missing = vec![bytes];
        for extent in within {
            let own = extent.offset..extent.offset.saturating_add(extent.bytes);
            let mut left = Vec::new();
            for gap in missing {
                let (from, to) = (gap.start.max(own.start), gap.end.min(own.end));
                if from >= to {
                    left.push(gap);
                    continue;
                }
                moved.extend(extent.place.map(|place| PlacedBytes {
                    place: place + (from - own.start),
                    bytes: to - from,
                }));
                left.extend([gap.start..from, to..gap.end]);
            }
            missing = left;
            missing.retain(|gap| !gap.is_empty());
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(at: u64, inode: u64, offset: u64, bytes: u64, place: Option<u64>) -> Event {
        Event {
            at,
            kind: TraceEventKind::Moved {
                file_system: 3,
                inode,
                offset,
                bytes,
                place,
            },
        }
    }

    fn of(blocks: &MovedBlocks, bytes: Range<u64>, time: (u64, u64)) -> Vec<(u64, u64)> {
        let moved = blocks.of_write((3, 5), bytes, time).into_iter();
        moved.map(|part| (part.place, part.bytes)).collect()
    }

    #[test]
    fn write_has_the_places_chosen_during_its_flight() {
        let blocks = MovedBlocks::of(&[
            moved(10, 5, 0, 4096, Some(1 << 20)),
            // Together with adjacent bytes of another write.
            moved(30, 5, 0, 12_288, Some(1 << 21)),
            // Another file.
            moved(40, 6, 4096, 4096, Some(1 << 22)),
            // A compressed extent.
            moved(50, 5, 4096, 4096, None),
        ]);
        assert_eq!(of(&blocks, 0..4096, (5, 20)), [(1 << 20, 4096)]);
        assert_eq!(
            of(&blocks, 4096..8192, (25, 60)),
            [((1 << 21) + 4096, 4096)]
        );
        // The first place of these bytes.
        assert_eq!(of(&blocks, 0..4096, (5, 60)), [(1 << 20, 4096)]);
        assert_eq!(
            of(&blocks, 0..8192, (5, 60)),
            [(1 << 20, 4096), ((1 << 21) + 4096, 4096)]
        );
        assert_eq!(of(&blocks, 4096..8192, (45, 60)), []);
        assert_eq!(of(&blocks, 0..4096, (11, 20)), []);
        assert_eq!(blocks.of_write((4, 5), 0..4096, (5, 20)), []);
    }
}
