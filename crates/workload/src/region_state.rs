//! State of the page cache and of the file around a trial.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The part of a range that is in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Residency {
    /// Bytes of the range that were examined, evenly spread; the other counts are extrapolated to the whole range.
    pub looked_bytes: u64,
    /// Bytes in the page cache.
    pub resident_bytes: u64,
    /// Bytes in the page cache that are not yet written; `None` if only mincore is available.
    pub dirty_bytes: Option<u64>,
    /// Bytes being written at that moment; `None` if only mincore is available.
    pub writeback_bytes: Option<u64>,
}

impl Residency {
    /// Bytes that have not reached storage; `None` if unknown.
    pub fn owed_bytes(&self) -> Option<u64> {
        Some(self.dirty_bytes?.saturating_add(self.writeback_bytes?))
    }
}

/// The part of a range that was never written, and reads as zeros without storage I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Extents {
    /// Bytes of the range that were examined, evenly spread; the other counts are extrapolated to the whole range.
    pub looked_bytes: u64,
    /// Bytes in holes; includes unwritten extents if only SEEK_HOLE is available.
    pub hole_bytes: u64,
    /// Bytes allocated (`fallocate`) but never written; `None` if only SEEK_HOLE is available.
    pub unwritten_bytes: Option<u64>,
}

impl Extents {
    /// Bytes that were never written.
    pub fn empty_bytes(&self) -> u64 {
        self.hole_bytes
            .saturating_add(self.unwritten_bytes.unwrap_or(0))
    }
}

/// State of the region that a trial may access, and the cost of examining it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Region {
    /// Page cache before the start.
    pub before: Option<Residency>,
    /// Page cache after the end.
    pub after: Option<Residency>,
    /// Holes and unwritten extents before the start; devices have none.
    pub extents: Option<Extents>,
    /// Time of the `fdatasync` after writes that no sync of the trial made durable, ns: the time to write the remaining
    /// data of the page cache, or of the drive's volatile cache.
    pub owed_sync_ns: Option<u64>,
    /// Time of examining the region before and after the timed span, without the `fdatasync`, ns.
    pub evidence_ns: u64,
}

impl Region {
    /// Share of a region of `region_bytes` that was never written, without bytes that dirty pages of the cache may still
    /// fill. `None` if the extents are unknown.
    pub fn empty_share(&self, region_bytes: u64) -> Option<f64> {
        let extents = self.extents.filter(|extents| extents.looked_bytes > 0)?;
        let owed = self.before.as_ref().and_then(Residency::owed_bytes);
        let empty = extents.empty_bytes().saturating_sub(owed.unwrap_or(0));
        Some(match region_bytes {
            0 => 0.0,
            all => (empty as f64 / all as f64).min(1.0),
        })
    }
}
