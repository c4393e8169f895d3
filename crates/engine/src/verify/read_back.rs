//! Reads back the written data of a trial, and judges every block.
//!
//! Judges one block by all its sectors.
//!
//! Table of the blocks of a region, 8 bytes each: first where a block was written, then its content.

use std::collections::HashMap;
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use super::signer::{Generation, SECTOR, Signed, inspect};
use super::written;
use crate::buffer::Buffers;
use crate::request::Action;
use crate::worker::{Requests, Varied};
use iolab_host::counters::{FileRange, residency};
use iolab_host::observation::{drop_pages, make_durable};
use iolab_storage::{OpenMode, Target};
use iolab_workload::outcome::FailedRequest;
use iolab_workload::region_state::{FaultKind, FaultyBlock, FoundInstead, Verified, Write};
use iolab_workload::trial::{BufferInit, CacheState, TrialSpec};
use iolab_workload::{Error, Result};

/// Size of one request.
const REQUEST: u64 = 4 << 20;

/// Blocks with parts of several writes that are looked into; if there are more, they count as torn.
const MIXED_MAX: usize = 1 << 16;

/// Result of reading back.
pub(crate) enum Reading {
    /// Everything was read; the first faulty block, if there is one.
    Done(Verified, Option<FaultyBlock>),
    /// A request failed.
    Failed(FailedRequest),
}

/// Parts of writes that a block holds, and where the second begins.
type Mixture = (Vec<Generation>, u64);

/// Reads back what the workers of the trial `identity` have written, from storage as far as the system lets: everything
/// is made durable, and the page cache drops it.
///
/// # Errors
/// Of kind [`Interrupted`](iolab_workload::Kind::Interrupted) soon after `stop` is set; of kind
/// [`Usage`](iolab_workload::Kind::Usage) without the memory that it takes.
pub(crate) fn read_back(
    spec: &TrialSpec,
    target: &Target,
    identity: u64,
    signed: &[Signed],
    stop: &AtomicBool,
) -> Result<Reading> {
    let range = spec.offset..spec.offset + spec.region;
    if let Err(failed) = make_durable(target, range.clone()) {
        return Ok(Reading::Failed(failed));
    }
    drop_pages(target, range.clone());
    let cached = residency(&[FileRange {
        file: target.holder(),
        offset: range.start,
        length: range.end - range.start,
    }]);
    let mode = OpenMode {
        direct: spec.cache == CacheState::Direct,
        ..OpenMode::default()
    };
    let mut reader = Reader {
        spec,
        signed,
        identity,
        table: Table::new(spec, signed)?,
        mixed: HashMap::new(),
        first: None,
        verified: Verified {
            cached_bytes: cached.map(|seen| seen.resident_bytes),
            ..Verified::default()
        },
    };
    let file = target.reopen(mode)?;
    if let Err(failed) = reader.read(&file, stop)? {
        return Ok(Reading::Failed(failed));
    }
    reader.find_outdated();
    Ok(Reading::Done(reader.verified, reader.first()))
}

/// The first fault so far, and the entry of its block.
struct First {
    kind: FaultKind,
    offset: u64,
    found: FoundInstead,
    index: usize,
}

struct Reader<'a> {
    spec: &'a TrialSpec,
    signed: &'a [Signed],
    identity: u64,
    table: Table,
    mixed: HashMap<usize, Mixture>,
    first: Option<First>,
    verified: Verified,
}

impl Reader<'_> {
    /// Reads every written block, and judges it by itself.
    fn read(
        &mut self,
        file: &File,
        stop: &AtomicBool,
    ) -> Result<std::result::Result<(), FailedRequest>> {
        let mut memory = Buffers::new(
            &TrialSpec {
                bs: REQUEST,
                buffer_init: BufferInit::Zeroed,
                ..TrialSpec::default()
            },
            0,
        )?;
        let mut from = 0;
        while let Some((start, end, next)) = self.table.next_run(from) {
            let mut block = Block::default();
            for at in (start..end).step_by(REQUEST as usize) {
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::interrupted());
                }
                let length = (end - at).min(REQUEST) as usize;
                let piece = &mut memory.home_mut()[0].bytes()[..length];
                if let Err(failed) = read_whole(file, piece, at) {
                    return Ok(Err(failed));
                }
                for (sector, place) in piece.chunks_exact(SECTOR).zip((at..).step_by(SECTOR)) {
                    block.add(place, inspect(sector, place, self.identity));
                    let length = place + SECTOR as u64 - start;
                    if length.is_multiple_of(self.spec.bs) {
                        let first = start + length - self.spec.bs;
                        self.settle(first, std::mem::take(&mut block));
                    }
                }
            }
            from = next;
        }
        Ok(Ok(()))
    }

    /// Notes the content of one block, and its fault.
    fn settle(&mut self, start: u64, block: Block) {
        self.verified.blocks += 1;
        self.verified.bytes += self.spec.bs;
        let index = self.table.index(start);
        match block.judge(start) {
            Judgement::Whole(generation) => self.table.holds(index, generation),
            Judgement::Mixed(parts, offset) if self.mixed.len() < MIXED_MAX => {
                self.table.is_mixed(index);
                self.mixed.insert(index, (parts, offset));
            }
            Judgement::Mixed(parts, offset) => {
                self.table.is_settled(index);
                self.fault(FaultKind::Torn, offset, written(parts[0]), index);
            }
            Judgement::Faulty(kind, offset, found) => {
                self.table.is_settled(index);
                self.fault(kind, offset, found, index);
            }
        }
    }

    fn fault(&mut self, kind: FaultKind, offset: u64, found: FoundInstead, index: usize) {
        self.verified.count(kind, offset);
        if self
            .first
            .as_ref()
            .is_none_or(|first| offset < first.offset)
        {
            self.first = Some(First {
                kind,
                offset,
                found,
                index,
            });
        }
    }

    /// Finds blocks whose writes were followed by others that must have come last.
    fn find_outdated(&mut self) {
        let (spec, table, mixed) = (self.spec, &mut self.table, &self.mixed);
        for worker in self.signed {
            replay(spec, worker, |number, offset| {
                let index = table.index(offset);
                let is_outdated = |held| outdates(worker, number, held);
                let parts = || {
                    let mixture = mixed.get(&index);
                    mixture.is_some_and(|(parts, _)| parts.iter().copied().any(is_outdated))
                };
                table.outdate(index, is_outdated, parts);
            });
        }
        self.count_outdated();
    }

    fn count_outdated(&mut self) {
        let mut is_first = true;
        for index in 0..self.table.len() {
            match (self.table.outdated(index), self.mixed.remove(&index)) {
                (Some(_), Some((parts, offset))) => {
                    let oldest = parts
                        .into_iter()
                        .min()
                        .map_or(FoundInstead::Unknown, written);
                    self.fault(FaultKind::Torn, offset, oldest, index);
                }
                (Some(held), None) => {
                    // Where exactly a block begins takes a look at all writes, and has to be known of the first.
                    let start = match std::mem::take(&mut is_first) {
                        true => self.last_write(index, held.thread()).1,
                        false => self.spec.offset + index as u64 * self.spec.bs,
                    };
                    self.fault(FaultKind::Stale, start, written(held), index);
                }
                (None, _) => {}
            }
        }
    }

    /// The last write to the block of an entry, by this thread if it is one of those that made one, and where the
    /// block begins.
    fn last_write(&self, index: usize, thread: u32) -> (Write, u64) {
        let mut last = (Write { thread, number: 0 }, self.spec.offset);
        let (own, others): (Vec<_>, Vec<_>) = self
            .signed
            .iter()
            .partition(|worker| worker.worker == thread);
        for worker in others.into_iter().chain(own) {
            replay(self.spec, worker, |number, offset| {
                if self.table.index(offset) == index {
                    let thread = worker.worker;
                    last = (Write { thread, number }, offset);
                }
            });
        }
        last
    }

    fn first(&self) -> Option<FaultyBlock> {
        let first = self.first.as_ref()?;
        let thread = match first.found {
            FoundInstead::Written(write) => write.thread,
            _ => 0,
        };
        Some(FaultyBlock {
            kind: first.kind,
            offset: first.offset,
            wanted: self.last_write(first.index, thread).0,
            found: first.found,
        })
    }
}

/// Whether the write of this number came after another one was over, by the same worker to the same block.
fn outdates(worker: &Signed, number: u64, held: Generation) -> bool {
    held.thread() == worker.worker && number > held.number() + worker.overlap
}

/// Reads until the piece is full.
fn read_whole(
    file: &File,
    piece: &mut [u8],
    offset: u64,
) -> std::result::Result<(), FailedRequest> {
    let mut done = 0;
    while done < piece.len() {
        let at = offset + done as u64;
        let errno = match rustix::io::pread(file, &mut piece[done..], at) {
            Ok(0) => 0,
            Ok(moved) => {
                done += moved;
                continue;
            }
            Err(Errno::INTR) => continue,
            Err(errno) => errno.raw_os_error(),
        };
        return Err(FailedRequest {
            syscall: "pread to verify",
            offset: at,
            length: (piece.len() - done) as u64,
            errno,
        });
    }
    Ok(())
}

/// A block while its sectors are looked at one after the other.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// The writes of this trial that its sectors hold, each once.
    written: Vec<Generation>,
    /// The first sector that differs from the first written one, and its content.
    differs: Option<(u64, FoundInstead)>,
    damaged: Option<u64>,
    made_for: Option<(u64, u64)>,
    earlier: bool,
    /// The first content without a header of iolab's.
    unknown: Option<FoundInstead>,
}

/// The verdict on a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Judgement {
    /// Every sector was written by this write of the trial.
    Whole(Generation),
    /// Every sector was written by the trial, but not all by the same write.
    Mixed(Vec<Generation>, u64),
    /// Not the result of any write of the trial.
    Faulty(FaultKind, u64, FoundInstead),
}

impl Block {
    /// Takes note of the sector at this byte.
    pub(super) fn add(&mut self, offset: u64, seen: FoundInstead) {
        match seen {
            FoundInstead::Written(write) => {
                let generation = Generation::new(write.thread, write.number);
                if self
                    .written
                    .first()
                    .is_some_and(|first| *first != generation)
                {
                    self.differs.get_or_insert((offset, seen));
                }
                if !self.written.contains(&generation) {
                    self.written.push(generation);
                }
            }
            FoundInstead::MadeFor(place) => {
                self.made_for.get_or_insert((offset, place));
            }
            FoundInstead::Damaged => {
                self.damaged.get_or_insert(offset);
            }
            FoundInstead::Earlier => {
                self.earlier = true;
                self.differs.get_or_insert((offset, seen));
            }
            FoundInstead::Zeros | FoundInstead::Unknown => {
                self.unknown.get_or_insert(seen);
                self.differs.get_or_insert((offset, seen));
            }
        }
    }

    /// The judgement on the block that begins at `start`.
    pub(super) fn judge(self, start: u64) -> Judgement {
        let faulty = Judgement::Faulty;
        if let Some(offset) = self.damaged {
            return faulty(FaultKind::Corrupted, offset, FoundInstead::Damaged);
        }
        if let Some((offset, place)) = self.made_for {
            return faulty(FaultKind::Misplaced, offset, FoundInstead::MadeFor(place));
        }
        let is_partly_old = self.earlier || self.unknown.is_some();
        match (self.written.as_slice(), self.differs, self.unknown) {
            ([], _, _) if self.earlier => faulty(FaultKind::Stale, start, FoundInstead::Earlier),
            ([], _, unknown) => {
                let found = unknown.unwrap_or(FoundInstead::Unknown);
                faulty(FaultKind::Lost, start, found)
            }
            (_, Some((offset, found)), _) if is_partly_old => {
                faulty(FaultKind::Torn, offset, found)
            }
            ([generation], ..) => Judgement::Whole(*generation),
            (_, differs, _) => {
                let offset = differs.map_or(start, |(offset, _)| offset);
                Judgement::Mixed(self.written, offset)
            }
        }
    }
}

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
fn replay(spec: &TrialSpec, signed: &Signed, mut visit: impl FnMut(u64, u64)) {
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
    fn next_run(&self, from: usize) -> Option<(u64, u64, usize)> {
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
    fn is_mixed(&mut self, index: usize) {
        self.entries[index] = HELD | MIXED;
    }

    /// The block was judged, and nothing more is to be said of it.
    fn is_settled(&mut self, index: usize) {
        self.entries[index] = NOTHING;
    }

    /// Applies a later write to the block of an entry: marks the content as too old if it cannot remain after that write.
    /// `mixed` decides for a block with parts of several writes.
    fn outdate(
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
    fn outdated(&self, index: usize) -> Option<Generation> {
        let entry = self.entries[index];
        (entry & OLD != 0).then_some(Generation(entry & !FLAGS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 8192;

    fn judge(sectors: &[FoundInstead]) -> Judgement {
        let mut block = Block::default();
        for (number, seen) in sectors.iter().enumerate() {
            block.add(START + 512 * number as u64, *seen);
        }
        block.judge(START)
    }

    #[test]
    fn each_kind_is_told() {
        use FaultKind::{Corrupted, Lost, Misplaced, Stale, Torn};
        use FoundInstead::{Damaged, Earlier, MadeFor, Unknown, Zeros};
        let (old, new) = (Generation::new(0, 1), Generation::new(0, 2));
        let (was, is) = (written(old), written(new));
        assert_eq!(judge(&[is, is]), Judgement::Whole(new));
        let mixed = Judgement::Mixed(vec![new, old], START + 512);
        assert_eq!(judge(&[is, was, was]), mixed);
        for (sectors, kind, at, found) in [
            ([is, Damaged], Corrupted, 512, Damaged),
            ([is, MadeFor(0)], Misplaced, 512, MadeFor(0)),
            ([is, Earlier], Torn, 512, Earlier),
            ([Earlier, is], Torn, 0, Earlier),
            ([is, Zeros], Torn, 512, Zeros),
            ([Unknown, is], Torn, 0, Unknown),
            ([Earlier, Earlier], Stale, 0, Earlier),
            ([Earlier, Zeros], Stale, 0, Earlier),
            ([Zeros, Zeros], Lost, 0, Zeros),
            ([Unknown, Unknown], Lost, 0, Unknown),
            ([Damaged, MadeFor(0)], Corrupted, 0, Damaged),
        ] {
            assert_eq!(
                judge(&sectors),
                Judgement::Faulty(kind, START + at, found),
                "{sectors:?}"
            );
        }
    }
}
