//! The state that the page cache and the file are in around a trial.

/// What the page cache holds of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Residency {
    /// Bytes of the range that were looked at, evenly spread over it; the other counts are scaled to all of it.
    pub looked_bytes: u64,
    /// Bytes in the page cache.
    pub resident_bytes: u64,
    /// Bytes in the page cache that must still be written; `None` where only mincore tells.
    pub dirty_bytes: Option<u64>,
    /// Bytes being written at the moment; `None` where only mincore tells.
    pub writeback_bytes: Option<u64>,
}

impl Residency {
    /// Bytes that have not reached storage, where that is known.
    pub fn owed_bytes(&self) -> Option<u64> {
        Some(self.dirty_bytes?.saturating_add(self.writeback_bytes?))
    }
}

/// What of a range was never written, and reads as zeros without any storage behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extents {
    /// Bytes of the range that were looked at, evenly spread over it; the other counts are scaled to all of it.
    pub looked_bytes: u64,
    /// Bytes in holes; those in unwritten extents are among them where only SEEK_HOLE tells.
    pub hole_bytes: u64,
    /// Bytes with space allocated (`fallocate`) but never written; `None` where only SEEK_HOLE tells.
    pub unwritten_bytes: Option<u64>,
}

impl Extents {
    /// Bytes that nothing was ever written to.
    pub fn empty_bytes(&self) -> u64 {
        self.hole_bytes
            .saturating_add(self.unwritten_bytes.unwrap_or(0))
    }
}

/// What was seen of the region that a trial may touch, and what looking cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Region {
    /// Of the page cache, before the start.
    pub before: Option<Residency>,
    /// Of the page cache, after the end.
    pub after: Option<Residency>,
    /// Holes and unwritten extents before the start; devices have none.
    pub extents: Option<Extents>,
    /// Time of the `fdatasync` that followed buffered writes no sync of the trial had made durable, ns: what writing
    /// through the page cache left to be done.
    pub owed_sync_ns: Option<u64>,
    /// Time that looking took, before and after the timed span, ns; the `fdatasync` is not part of it.
    pub evidence_ns: u64,
}

impl Region {
    /// Share of a region of so many bytes that nothing was ever written to; `None` where that is not known. What is dirty
    /// in the page cache may be on its way there.
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
