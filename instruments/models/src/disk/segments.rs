//! The segmented buffer: its contents, and the choice of a segment for a request.
//!
//! Writes in the buffer that are not yet on the medium.

use std::collections::{BTreeMap, VecDeque};

use super::Job;
use crate::definition::parts::Buffer;
use iolab_workload::virtual_disk::Ns;

/// One run of blocks in the buffer.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    /// First block; equal to `end` or above for an empty segment.
    pub(super) start: u64,
    /// One past the last block.
    pub(super) end: u64,
    /// Whether the segment's data came from the host.
    pub(super) written: bool,
    /// Time of the last use, as a counter.
    used: u64,
}

impl Segment {
    fn empty(&self) -> bool {
        self.start >= self.end
    }

    fn overlaps(&self, first: u64, end: u64) -> bool {
        !self.empty() && first < self.end && end > self.start
    }
}

/// How much of a read a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    /// The segment holds all of the read.
    Whole,
    /// The segment holds the front of the read.
    Front,
    /// The segment holds nothing of the read, and can be refilled.
    Nothing,
}

/// All segments.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    list: Vec<Segment>,
    /// Blocks of a segment.
    pub(super) size: u64,
    /// Whether the first segment is for writes only.
    write_segment: bool,
    uses: u64,
}

impl Segments {
    pub(super) fn new(buffer: &Buffer) -> Self {
        let empty = Segment {
            start: 0,
            end: 0,
            written: false,
            used: 0,
        };
        Self {
            list: vec![empty; buffer.segments.max(1) as usize],
            size: buffer.segment_blocks.max(1),
            write_segment: buffer.write_segment,
            uses: 0,
        }
    }

    pub(super) fn get(&self, segment: usize) -> &Segment {
        &self.list[segment]
    }

    /// Index of the first segment for reads; a segment for writes only is the first.
    fn for_reads(&self) -> usize {
        usize::from(self.write_segment && self.list.len() > 1)
    }

    /// The segment that serves a read of `first..end`, and how much it holds. Prefers full hits over partial
    /// ones, and among equals those in data still being read. Empty segments come next, then the least recently
    /// used.
    ///
    /// `filling` is the segment that read-ahead fills, with the block up to which it counts as present.
    pub(super) fn for_read(
        &self,
        first: u64,
        end: u64,
        filling: Option<(usize, u64)>,
    ) -> (usize, Match) {
        let mut best = (self.for_reads(), Match::Nothing);
        let mut best_key = (0, u64::MAX);
        for (n, segment) in self.list.iter().enumerate().skip(self.for_reads()) {
            let reach = filling
                .filter(|filling| filling.0 == n)
                .map(|filling| filling.1);
            let active = reach.is_some();
            let coming = reach.is_some_and(|reach| first >= segment.end && first < reach);
            let holds = !segment.empty() && first >= segment.start && first < segment.end;
            let (worth, found) = if holds && end <= segment.end {
                (8 + u32::from(active), Match::Whole)
            } else if holds || coming {
                (4 + u32::from(active), Match::Front)
            } else if active {
                (1, Match::Nothing)
            } else {
                (if segment.empty() { 3 } else { 2 }, Match::Nothing)
            };
            let key = (worth, segment.used);
            if key.0 > best_key.0 || key.0 == best_key.0 && key.1 < best_key.1 {
                (best, best_key) = ((n, found), key);
            }
        }
        best
    }

    /// The segment for a write: one that it overwrites, else an empty one, else the least recently used.
    pub(super) fn for_write(&self, first: u64, end: u64, filling: Option<usize>) -> usize {
        if self.for_reads() > 0 {
            return 0;
        }
        let key = |n: usize| {
            let segment = &self.list[n];
            let worth = if filling == Some(n) {
                3
            } else if segment.overlaps(first, end) {
                0
            } else if segment.empty() {
                1
            } else {
                2
            };
            (worth, segment.used)
        };
        (0..self.list.len()).min_by_key(|&n| key(n)).unwrap_or(0)
    }

    /// Whether the segment was the last one used.
    pub(super) fn used_last(&self, segment: usize) -> bool {
        self.uses > 0 && self.list[segment].used == self.uses
    }

    pub(super) fn touch(&mut self, segment: usize) {
        self.uses += 1;
        self.list[segment].used = self.uses;
    }

    /// Refills a segment for a read from `start` on, with the data up to `end`.
    pub(super) fn fill(&mut self, segment: usize, start: u64, end: u64) {
        let segment = &mut self.list[segment];
        (segment.start, segment.end, segment.written) = (start, end, false);
    }

    /// Extends the segment to `end`; drops its oldest blocks when full.
    pub(super) fn grow(&mut self, segment: usize, end: u64) {
        let size = self.size;
        let segment = &mut self.list[segment];
        segment.end = segment.end.max(end);
        segment.start = segment.start.max(segment.end.saturating_sub(size));
    }

    /// Stores a write of `first..end`, appended to the segment's data (`join`) or replacing it. Invalidates the range in all
    /// other segments.
    pub(super) fn hold_write(&mut self, segment: usize, first: u64, end: u64, join: bool) {
        for (n, other) in self.list.iter_mut().enumerate() {
            if n != segment && other.overlaps(first, end) {
                (other.start, other.end) = (0, 0);
            }
        }
        let size = self.size;
        let held = &mut self.list[segment];
        if !join {
            held.start = first;
        }
        held.end = end;
        held.written = true;
        held.start = held.start.max(end.saturating_sub(size));
        self.touch(segment);
    }
}

/// A flush that waits for accepted writes.
#[derive(Clone, Copy, Debug)]
struct Flush {
    tag: u64,
    /// Number of the first write that the flush does not wait for.
    before: u64,
    /// How many of the writes before that are not on the medium.
    left: u64,
}

/// Accepted writes, and requests that wait for room.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteCache {
    /// Bytes that accepted writes may have together.
    limit: u64,
    bytes: u64,
    accepted: u64,
    written: u64,
    /// Accepted writes that wait for the heads, in order of arrival.
    pub(super) jobs: VecDeque<Job>,
    /// The waiting writes by first block: the end of the last write with that block, and the number of such
    /// writes.
    ranges: BTreeMap<u64, (u64, u32)>,
    /// The write that the heads are writing: its end time, its bytes, its number.
    under_way: Option<(Ns, u64, u64)>,
    /// Writes that do not fit, in order of arrival.
    held: VecDeque<Job>,
    flushes: Vec<Flush>,
}

impl WriteCache {
    pub(super) fn new(limit: u64) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// Whether writes wait for room.
    pub(super) fn is_short(&self) -> bool {
        !self.held.is_empty()
    }

    /// When the write in progress is on the medium.
    pub(super) fn next_end(&self) -> Option<Ns> {
        self.under_way.map(|write| write.0)
    }

    /// Whether a write of `bytes` bytes fits. One larger than the cache is accepted when the cache is empty.
    fn has_room(&self, bytes: u64) -> bool {
        self.bytes == 0 || self.bytes + bytes <= self.limit
    }

    /// Queues a write that does not fit; otherwise returns it.
    pub(super) fn hold(&mut self, job: Job, bytes: u64) -> Option<Job> {
        if self.held.is_empty() && self.has_room(bytes) {
            return Some(job);
        }
        self.held.push_back(job);
        None
    }

    /// The next queued write that now fits; `size` gives its bytes.
    pub(super) fn release(&mut self, size: impl Fn(&Job) -> u64) -> Option<Job> {
        let bytes = size(self.held.front()?);
        if self.has_room(bytes) {
            self.held.pop_front()
        } else {
            None
        }
    }

    /// Accepts a write. Its tag is replaced by its number among the accepted ones.
    pub(super) fn accept(&mut self, mut job: Job, bytes: u64) {
        job.tag = self.accepted;
        self.accepted += 1;
        self.bytes += bytes;
        let range = self.ranges.entry(job.first).or_default();
        *range = (job.end, range.1 + 1);
        self.jobs.push_back(job);
    }

    /// Gives the `n`th waiting write to the heads.
    pub(super) fn take(&mut self, n: usize) -> Option<Job> {
        let job = self.jobs.remove(n)?;
        if let Some(range) = self.ranges.get_mut(&job.first) {
            range.1 -= 1;
            if range.1 == 0 {
                self.ranges.remove(&job.first);
            }
        }
        Some(job)
    }

    /// Marks a write as in progress until `end`.
    pub(super) fn start(&mut self, job: &Job, bytes: u64, end: Ns) {
        self.under_way = Some((end, bytes, job.tag));
    }

    /// Marks the write in progress as done. Returns the tags of flushes that are complete.
    pub(super) fn finish(&mut self) -> Vec<u64> {
        let Some((_, bytes, number)) = self.under_way.take() else {
            return Vec::new();
        };
        self.bytes -= bytes;
        self.written += 1;
        let mut done = Vec::new();
        self.flushes.retain_mut(|flush| {
            flush.left -= u64::from(number < flush.before);
            if flush.left == 0 {
                done.push(flush.tag);
            }
            flush.left > 0
        });
        done
    }

    /// Queues a flush if it must wait; returns whether it does.
    pub(super) fn flush(&mut self, tag: u64) -> bool {
        let left = self.accepted - self.written;
        if left > 0 {
            self.flushes.push(Flush {
                tag,
                before: self.accepted,
                left,
            });
        }
        left > 0
    }

    /// Whether a single waiting write contains all of `first..end`.
    pub(super) fn holds(&self, first: u64, end: u64) -> bool {
        self.ranges
            .range(..=first)
            .next_back()
            .is_some_and(|(_, range)| end <= range.0)
    }
}
