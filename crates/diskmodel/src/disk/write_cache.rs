//! Writes in the buffer that are not yet on the medium.

use std::collections::{BTreeMap, VecDeque};

use super::waiting_request::Job;
use crate::model::Ns;

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
    jobs: VecDeque<Job>,
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

    /// Accepted writes that wait for the heads.
    pub(super) fn jobs(&self) -> &VecDeque<Job> {
        &self.jobs
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
