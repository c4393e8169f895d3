//! Requests of a trace on a target of another size.

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::Serialize;

use crate::trace::Access;

/// Handling of requests that end beyond the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Beyond {
    /// Begin again at the first byte
    Wrap,
    /// Leave them out
    Drop,
    /// Scale all offsets, so that the trace fits
    Scale,
}

/// Requests that were changed for the target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Changed {
    /// Requests of the trace.
    pub requests: u64,
    /// Requests that lay beyond the target, and begin again at its first byte.
    pub wrapped: u64,
    /// Requests whose offset was scaled.
    pub scaled: u64,
    /// Requests that were left out.
    pub dropped: u64,
    /// Requests that were rounded to whole blocks of the target.
    pub rounded: u64,
}

/// Maps requests into the region of a target.
#[derive(Debug, Clone)]
pub struct Mapping {
    beyond: Beyond,
    /// Bytes of the region, a multiple of the block.
    region: u64,
    block: u64,
    /// End of the last byte of the trace.
    end: u64,
    drops_writes: bool,
    /// Counts so far.
    pub changed: Changed,
}

impl Mapping {
    /// A mapping of a trace that ends at byte `end`, onto a region of `region` bytes in blocks of `block`.
    pub fn new(beyond: Beyond, end: u64, region: u64, block: u64, drops_writes: bool) -> Self {
        Self {
            beyond,
            region: region - region % block,
            block,
            end,
            drops_writes,
            changed: Changed::default(),
        }
    }

    /// Longest request after rounding, for a trace with requests of at most this many bytes.
    pub fn longest(largest: u32, block: u64) -> u64 {
        let whole = u64::from(largest).next_multiple_of(block);
        whole + if block > 1 { block } else { 0 }
    }

    /// Offset and length of a request on the target; `None` if it is left out.
    pub fn place(&mut self, access: &Access) -> Option<(u64, u32)> {
        self.changed.requests += 1;
        let left_out = access.writes && self.drops_writes;
        let mut from = access.offset;
        let bytes = u64::from(access.bytes);
        if self.beyond == Beyond::Scale && self.end > self.region {
            let scaled = u128::from(from) * u128::from(self.region) / u128::from(self.end);
            from = scaled as u64 / self.block * self.block;
            self.changed.scaled += u64::from(from != access.offset);
        }
        let start = from / self.block * self.block;
        let length = (from + bytes).next_multiple_of(self.block) - start;
        let is_beyond = start + length > self.region;
        if left_out || length > self.region || is_beyond && self.beyond == Beyond::Drop {
            self.changed.dropped += 1;
            return None;
        }
        self.changed.rounded += u64::from(start != from || length != bytes);
        if !is_beyond {
            return Some((start, length as u32));
        }
        // Scaled requests end beyond by their own length at most.
        self.changed.wrapped += u64::from(self.beyond == Beyond::Wrap);
        let last = self.region - length;
        let begin = match self.beyond {
            Beyond::Wrap => (start % self.region).min(last),
            Beyond::Drop | Beyond::Scale => start.min(last),
        };
        Some((begin, length as u32))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn mapped_requests_are_whole_blocks_of_the_region(
            offset in 0u64..1 << 40, bytes in 1u32..1 << 20, writes: bool,
            region in 1u64 << 21..1 << 32, block in prop::sample::select(vec![1u64, 512, 4096]),
            beyond in prop::sample::select(vec![Beyond::Wrap, Beyond::Drop, Beyond::Scale]),
        ) {
            let access = Access { at_ns: 0, writes, offset, bytes, depth: None };
            let mut mapping = Mapping::new(beyond, (1 << 40) + (1 << 20), region, block, true);
            match mapping.place(&access) {
                None => prop_assert!(writes || beyond == Beyond::Drop && offset + u64::from(bytes) > region - block),
                Some((start, length)) => {
                    prop_assert!(!writes);
                    prop_assert!(start.is_multiple_of(block) && u64::from(length).is_multiple_of(block));
                    prop_assert!(length >= bytes && u64::from(length) <= Mapping::longest(bytes, block));
                    prop_assert!(start + u64::from(length) <= region);
                }
            }
        }
    }
}
