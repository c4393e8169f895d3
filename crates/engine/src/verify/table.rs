//! Table of the blocks of a region, 8 bytes each: first where a block was written, then its content.

use super::format::Generation;
use super::signer::Signed;
use crate::request::Action;
use crate::worker::{Requests, Varied};
use iolab_workload::trial::TrialSpec;
use iolab_workload::{Error, Result};

/// Nothing was written, or the block was judged.
const NOTHING: u64 = 0;
/// The block holds the data of one write, whose generation follows.
const HELD: u64 = 1 << 63;
/// The content is too old.
const OLD: u64 = 1 << 62;
/// The block holds parts of several writes; the generation has no meaning.
const MIXED: u64 = 1 << 61;
const FLAGS: u64 = HELD | OLD | MIXED;

/// One entry per block. Blocks of a trial overlap only if they are the same block. So the start of a block divided by the
/// I/O size is a unique number.
pub(super) struct Table {
    entries: Vec<u64>,
    base: u64,
    bs: u64,
}

/// Goes through the writes of a worker once more: their numbers and offsets.
pub(super) fn replay(spec: &TrialSpec, signed: &Signed, mut visit: impl FnMut(u64, u64)) {
    let mut requests = Varied::again(spec, signed.worker);
    let mut number = 0;
    while number < signed.writes {
        let request = requests.next();
        if request.action == Action::Write {
            visit(number, request.offset);
            number += 1;
        }
    }
}

impl Table {
    /// The table of every block that was written.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): there is no memory for it.
    pub(super) fn new(spec: &TrialSpec, signed: &[Signed]) -> Result<Self> {
        // With a stride, blocks do not begin at multiples of their size: the last one may begin late in its entry.
        let length = spec.region.div_ceil(spec.bs) as usize;
        let mut entries = Vec::new();
        entries.try_reserve_exact(length).map_err(|_| {
            Error::usage(format!(
                "no memory for {} MiB to verify {length} blocks",
                (length as u64 * 8) >> 20
            ))
            .hint("choose a larger bs or a smaller region, or leave verify out")
        })?;
        entries.resize(length, NOTHING);
        let mut table = Self {
            entries,
            base: spec.offset,
            bs: spec.bs,
        };
        for worker in signed {
            replay(spec, worker, |_, offset| {
                let index = table.index(offset);
                // Where in its entry the block begins; 0 is taken.
                table.entries[index] = (offset - table.base) % table.bs + 1;
            });
        }
        Ok(table)
    }

    /// The entry of the block that begins at this offset.
    pub(super) fn index(&self, offset: u64) -> usize {
        ((offset - self.base) / self.bs) as usize
    }

    /// Start of the written block of an entry, before it is read back; `None` if no block was written.
    fn start(&self, index: usize) -> Option<u64> {
        match self.entries.get(index)? {
            0 => None,
            shift => Some(self.base + index as u64 * self.bs + shift - 1),
        }
    }

    /// The next run of adjoining written blocks from this entry on, before they are read back: its start, its end, and the
    /// entry after it.
    pub(super) fn next_run(&self, from: usize) -> Option<(u64, u64, usize)> {
        let first = (from..self.entries.len()).find(|index| self.entries[*index] != NOTHING)?;
        let start = self.start(first)?;
        let (mut end, mut index) = (start + self.bs, first + 1);
        while self.start(index) == Some(end) {
            end += self.bs;
            index += 1;
        }
        Some((start, end, index))
    }

    /// The block holds what this write left.
    pub(super) fn holds(&mut self, index: usize, generation: Generation) {
        self.entries[index] = HELD | generation.0;
    }

    /// The block holds parts of several writes.
    pub(super) fn is_mixed(&mut self, index: usize) {
        self.entries[index] = HELD | MIXED;
    }

    /// The block was judged, and nothing more is to be said of it.
    pub(super) fn is_settled(&mut self, index: usize) {
        self.entries[index] = NOTHING;
    }

    /// Applies a later write to the block of an entry: marks the content as too old if it cannot remain after that write.
    /// `mixed` decides for a block with parts of several writes.
    pub(super) fn outdate(
        &mut self,
        index: usize,
        is_outdated: impl Fn(Generation) -> bool,
        mixed: impl FnOnce() -> bool,
    ) {
        let entry = &mut self.entries[index];
        let outdated = match *entry & FLAGS {
            HELD => is_outdated(Generation(*entry & !FLAGS)),
            flags if flags == HELD | MIXED => mixed(),
            _ => false,
        };
        if outdated {
            *entry |= OLD;
        }
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The write whose content in the block of an entry is too old. Meaningless for a block with parts of several writes.
    pub(super) fn outdated(&self, index: usize) -> Option<Generation> {
        let entry = self.entries[index];
        (entry & OLD != 0).then_some(Generation(entry & !FLAGS))
    }
}
