//! Reads back the written data of a trial, and judges every block.

use std::collections::HashMap;
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use super::block::{Block, Judgement};
use super::format::{Generation, SECTOR, inspect};
use super::signer::Signed;
use super::table::{Table, replay};
use super::written;
use crate::buffer::Buffers;
use iolab_host::counters::{FileRange, residency};
use iolab_host::page_cache::{drop_pages, make_durable};
use iolab_storage::{OpenMode, Target};
use iolab_workload::outcome::FailedRequest;
use iolab_workload::trial::{BufferInit, CacheState, TrialSpec};
use iolab_workload::verify::{FaultKind, FaultyBlock, FoundInstead, Verified, Write};
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
