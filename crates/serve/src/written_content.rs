//! Written data, in memory.

use std::collections::HashMap;

/// Bytes of a page, the unit that memory is taken in.
pub const PAGE: usize = 4096;

/// Sparse bytes with a bound on their memory: bytes that were never written, or found no room, read as zeros.
/// Offsets are below 2^63, as in files.
#[derive(Debug)]
pub struct Content {
    pages: HashMap<u64, Box<[u8; PAGE]>>,
    /// Most pages that are kept.
    room: usize,
    lost: u64,
}

impl Content {
    /// Empty content that may take `memory` bytes.
    pub fn new(memory: u64) -> Self {
        Self {
            pages: HashMap::new(),
            room: usize::try_from(memory / PAGE as u64).unwrap_or(usize::MAX),
            lost: 0,
        }
    }

    /// Keeps data; a page that finds no room is left out.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        let mut rest = data;
        for (page, from, len) in pieces(offset, data.len() as u64) {
            let (piece, after) = rest.split_at(len);
            rest = after;
            if self.pages.len() >= self.room && !self.pages.contains_key(&page) {
                self.lost += len as u64;
                continue;
            }
            let kept = self.pages.entry(page);
            kept.or_insert_with(|| Box::new([0; PAGE]))[from..from + len].copy_from_slice(piece);
        }
    }

    /// The bytes of a range; `None` when all of them are zeros that were never written.
    pub fn read(&self, offset: u64, len: usize) -> Option<Vec<u8>> {
        let mut pieces = pieces(offset, len as u64);
        if !pieces.any(|(page, ..)| self.pages.contains_key(&page)) {
            return None;
        }
        let mut data = vec![0; len];
        let mut rest = data.as_mut_slice();
        for (page, from, len) in self::pieces(offset, len as u64) {
            let (piece, after) = rest.split_at_mut(len);
            rest = after;
            if let Some(kept) = self.pages.get(&page) {
                piece.copy_from_slice(&kept[from..from + len]);
            }
        }
        Some(data)
    }

    /// Forgets the bytes of a range: they read as zeros.
    pub fn discard(&mut self, offset: u64, len: u64) {
        let end = offset + len;
        let whole = offset.div_ceil(PAGE as u64)..end / PAGE as u64;
        // A range may be far longer than the data that is kept.
        if whole.end.saturating_sub(whole.start) > self.pages.len() as u64 {
            self.pages.retain(|page, _| !whole.contains(page));
        } else {
            for page in whole {
                self.pages.remove(&page);
            }
        }
        let first = offset / PAGE as u64;
        let last = end / PAGE as u64;
        for page in [first, last] {
            let start = page * PAGE as u64;
            let from = offset.clamp(start, start + PAGE as u64) - start;
            let to = end.clamp(start, start + PAGE as u64) - start;
            if let Some(kept) = self.pages.get_mut(&page) {
                kept[from as usize..to as usize].fill(0);
            }
        }
    }

    /// Bytes of writes that found no room.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// The pages of a range: each with the first of its bytes and their number.
fn pieces(offset: u64, len: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = offset + len;
    let mut at = offset;
    std::iter::from_fn(move || {
        (at < end).then(|| {
            let (page, from) = (at / PAGE as u64, (at % PAGE as u64) as usize);
            let len = (end - at).min((PAGE - from) as u64) as usize;
            at += len as u64;
            (page, from, len)
        })
    })
}
