//! The mapping table: the position of each slot, free blocks, and collection.
//!
//! A die's planes work together, so that a block here is one block of each plane, and a page one page of each. The host and the
//! collection write to separate blocks.

use std::collections::VecDeque;

use crate::definition::{SLOT, SsdDefinition};

/// No slot.
const NONE: u32 = u32::MAX;
/// Most entries in the tables of blocks, and of blocks by their valid slots.
const ENTRIES_MAX: u64 = 1 << 24;
/// Slots of a piece of the mapping table; a piece is allocated when one of its slots is written.
const PIECE: usize = 1 << 14;

/// The physical position of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotPosition {
    /// Die, numbered so that consecutive ones are on different channels.
    pub die: u32,
    /// Page within the die.
    pub page: u32,
}

/// The work of a die for a new page besides its program: the collection that made room for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Pages read.
    pub reads: u32,
    /// Pages programmed.
    pub programs: u32,
    /// Blocks erased.
    pub erases: u32,
}

#[derive(Clone, Debug)]
struct BlockInfo {
    /// Whether it is full, and in a bucket.
    is_closed: bool,
    valid: u32,
    /// Position in its bucket.
    at: u32,
    /// The logical slot of each physical slot.
    owners: Vec<u32>,
}

/// A block being filled.
#[derive(Clone, Copy, Debug)]
struct Frontier {
    block: u32,
    next: u32,
}

#[derive(Clone, Debug)]
struct Die {
    free: VecDeque<u32>,
    host: Option<Frontier>,
    moved: Option<Frontier>,
    /// Closed blocks by valid slots.
    buckets: Vec<Vec<u32>>,
}

/// The mapping table.
#[derive(Clone, Debug)]
pub struct Ftl {
    spare: usize,
    blocks: u32,
    page_slots: u32,
    block_slots: u32,
    map: Vec<Option<Box<[u32]>>>,
    info: Vec<BlockInfo>,
    dies: Vec<Die>,
    turn: usize,
    mapped: u64,
    /// Slots written by the host, and in total.
    host_slots: u64,
    all_slots: u64,
    logical: u64,
}

impl Ftl {
    /// An empty drive.
    ///
    /// # Errors
    ///
    /// The reason why the sizes make no drive, in words.
    pub fn new(definition: &SsdDefinition) -> Result<Self, String> {
        let flash = &definition.flash;
        let dies = u64::from(flash.channels) * u64::from(flash.chips) * u64::from(flash.dies);
        let page = flash.page * u64::from(flash.planes);
        if !page.is_multiple_of(SLOT) {
            return Err(format!(
                "a page of {page} bytes over all planes does not hold slots of {SLOT} bytes"
            ));
        }
        let page_slots = page / SLOT;
        let block_slots = page_slots * u64::from(flash.pages);
        let entries = dies.saturating_mul(u64::from(flash.blocks) + block_slots);
        if entries > ENTRIES_MAX {
            return Err(format!(
                "the tables of the model have {entries} entries: at most {ENTRIES_MAX} fit into memory"
            ));
        }
        let physical = dies
            .saturating_mul(flash.blocks.into())
            .saturating_mul(block_slots);
        if physical >= u64::from(NONE) {
            return Err(format!(
                "{physical} slots of flash: at most {} are supported",
                NONE - 1
            ));
        }
        let logical = (physical as f64 / (1.0 + definition.over_provisioning)) as u64;
        // Two blocks of each die are being filled, and the spare ones are empty.
        let open = u64::from(definition.free_blocks.max(1)) + 2;
        let reserve = (dies * block_slots).saturating_mul(open);
        if logical.saturating_add(reserve) > physical {
            return Err(format!(
                "over-provisioning of {} leaves {} slots, and open and spare blocks take {reserve}",
                definition.over_provisioning,
                physical - logical
            ));
        }
        let empty = BlockInfo {
            is_closed: false,
            valid: 0,
            at: 0,
            owners: Vec::new(),
        };
        let die = Die {
            free: (0..flash.blocks).collect(),
            host: None,
            moved: None,
            buckets: vec![Vec::new(); block_slots as usize + 1],
        };
        Ok(Self {
            spare: definition.free_blocks.max(1) as usize,
            blocks: flash.blocks,
            page_slots: page_slots as u32,
            block_slots: block_slots as u32,
            map: vec![None; (logical as usize).div_ceil(PIECE)],
            info: vec![empty; (dies * u64::from(flash.blocks)) as usize],
            dies: vec![die; dies as usize],
            turn: 0,
            mapped: 0,
            host_slots: 0,
            all_slots: 0,
            logical,
        })
    }

    /// Slots that the host can address.
    pub fn logical(&self) -> u64 {
        self.logical
    }

    /// Slots that hold data of the host.
    pub fn mapped(&self) -> u64 {
        self.mapped
    }

    /// Slots of a page over all planes.
    pub fn page_slots(&self) -> u32 {
        self.page_slots
    }

    /// Slots written by the host, and in total, since the start.
    pub fn written(&self) -> (u64, u64) {
        (self.host_slots, self.all_slots)
    }

    fn get(&self, slot: u64) -> u32 {
        self.map[slot as usize / PIECE]
            .as_ref()
            .map_or(NONE, |piece| piece[slot as usize % PIECE])
    }

    fn set(&mut self, slot: u64, to: u32) {
        let piece = self.map[slot as usize / PIECE]
            .get_or_insert_with(|| vec![NONE; PIECE].into_boxed_slice());
        piece[slot as usize % PIECE] = to;
    }

    /// The position of a slot; `None` for one without data.
    pub fn spot(&self, slot: u64) -> Option<SlotPosition> {
        let physical = self.get(slot);
        (physical != NONE).then(|| {
            let die_slots = self.blocks * self.block_slots;
            SlotPosition {
                die: physical / die_slots,
                page: physical % die_slots / self.page_slots,
            }
        })
    }

    /// Discards the data of a slot.
    pub fn trim(&mut self, slot: u64) {
        let old = self.get(slot);
        if old != NONE {
            self.set(slot, NONE);
            self.mapped -= 1;
            self.invalidate(old);
        }
    }

    /// Discards the data of all slots in `first..end`.
    pub fn trim_range(&mut self, first: u64, end: u64) {
        let mut slot = first;
        while slot < end {
            let piece = slot as usize / PIECE;
            if self.map[piece].is_none() {
                slot = ((piece + 1) * PIECE) as u64;
                continue;
            }
            self.trim(slot);
            slot += 1;
        }
    }

    fn invalidate(&mut self, physical: u32) {
        let block = (physical / self.block_slots) as usize;
        let die = block / self.blocks as usize;
        let info = &mut self.info[block];
        info.owners[(physical % self.block_slots) as usize] = NONE;
        if info.is_closed {
            self.leave_bucket(die, block);
            self.info[block].valid -= 1;
            self.enter_bucket(die, block);
        } else {
            info.valid -= 1;
        }
    }

    fn leave_bucket(&mut self, die: usize, block: usize) {
        let (valid, at) = (
            self.info[block].valid as usize,
            self.info[block].at as usize,
        );
        let bucket = &mut self.dies[die].buckets[valid];
        bucket.swap_remove(at);
        if let Some(&moved) = bucket.get(at) {
            self.info[die * self.blocks as usize + moved as usize].at = at as u32;
        }
    }

    fn enter_bucket(&mut self, die: usize, block: usize) {
        let valid = self.info[block].valid as usize;
        let bucket = &mut self.dies[die].buckets[valid];
        self.info[block].at = bucket.len() as u32;
        bucket.push((block - die * self.blocks as usize) as u32);
    }

    /// Opens the page for the host's next slots: its die, and the work of collection. Dies take turns; a die without room is
    /// skipped.
    pub fn open_page(&mut self) -> (u32, Collected) {
        let mut cost = Collected::default();
        for _ in 0..self.dies.len() {
            let die = self.turn;
            self.turn = (self.turn + 1) % self.dies.len();
            if self.dies[die].host.is_none() {
                cost = self.make_room(die);
                // The last free block is reserved for collection.
                let block = if self.dies[die].free.len() > 1 {
                    self.take_free(die)
                } else {
                    None
                };
                let Some(block) = block else {
                    continue;
                };
                self.dies[die].host = Some(Frontier { block, next: 0 });
            }
            return (die as u32, cost);
        }
        unreachable!("the reserve leaves some die a free block")
    }

    fn take_free(&mut self, die: usize) -> Option<u32> {
        let block = self.dies[die].free.pop_front()?;
        let info = &mut self.info[die * self.blocks as usize + block as usize];
        info.valid = 0;
        info.owners = vec![NONE; self.block_slots as usize];
        Some(block)
    }

    /// Adds a slot of the host to the open page on `die`; returns whether the page is full.
    pub fn put(&mut self, die: u32, slot: u64) -> bool {
        let old = self.get(slot);
        if old == NONE {
            self.mapped += 1;
        } else {
            self.invalidate(old);
        }
        self.host_slots += 1;
        let Some(mut frontier) = self.dies[die as usize].host else {
            unreachable!("the page was opened");
        };
        self.place(die as usize, &mut frontier, slot);
        let full = frontier.next.is_multiple_of(self.page_slots);
        self.dies[die as usize].host = self.close_if_full(die as usize, frontier);
        full
    }

    /// Leaves the rest of the open page empty.
    pub fn pad(&mut self, die: u32) {
        if let Some(mut frontier) = self.dies[die as usize].host {
            frontier.next = frontier.next.next_multiple_of(self.page_slots);
            self.dies[die as usize].host = self.close_if_full(die as usize, frontier);
        }
    }

    fn place(&mut self, die: usize, frontier: &mut Frontier, slot: u64) {
        let block = die * self.blocks as usize + frontier.block as usize;
        let physical = block as u32 * self.block_slots + frontier.next;
        let info = &mut self.info[block];
        info.owners[frontier.next as usize] = slot as u32;
        info.valid += 1;
        frontier.next += 1;
        self.set(slot, physical);
        self.all_slots += 1;
    }

    fn close_if_full(&mut self, die: usize, frontier: Frontier) -> Option<Frontier> {
        if frontier.next < self.block_slots {
            return Some(frontier);
        }
        let block = die * self.blocks as usize + frontier.block as usize;
        self.info[block].is_closed = true;
        self.enter_bucket(die, block);
        None
    }

    /// Collects blocks of a die until enough are free, or none would release space.
    fn make_room(&mut self, die: usize) -> Collected {
        let mut cost = Collected::default();
        while self.dies[die].free.len() <= self.spare {
            let Some(block) = self.choose(die) else {
                break;
            };
            self.collect(die, block, &mut cost);
        }
        cost
    }

    /// The block to collect next, which has the fewest valid slots; `None` where no block has invalid slots.
    fn choose(&mut self, die: usize) -> Option<usize> {
        let buckets = &self.dies[die].buckets;
        let valid = buckets.iter().position(|bucket| !bucket.is_empty())?;
        if valid as u32 == self.block_slots {
            return None;
        }
        let block = die * self.blocks as usize + buckets[valid][0] as usize;
        self.leave_bucket(die, block);
        Some(block)
    }

    fn collect(&mut self, die: usize, block: usize, cost: &mut Collected) {
        let owners = std::mem::take(&mut self.info[block].owners);
        for page in owners.chunks(self.page_slots as usize) {
            cost.reads += u32::from(page.iter().any(|&owner| owner != NONE));
        }
        for owner in owners.into_iter().filter(|&owner| owner != NONE) {
            let mut frontier = match self.dies[die].moved.take() {
                Some(frontier) => frontier,
                None => match self.take_free(die) {
                    Some(block) => Frontier { block, next: 0 },
                    None => unreachable!("collection keeps a spare block"),
                },
            };
            self.place(die, &mut frontier, u64::from(owner));
            cost.programs += u32::from(frontier.next.is_multiple_of(self.page_slots));
            self.dies[die].moved = self.close_if_full(die, frontier);
        }
        cost.erases += 1;
        let info = &mut self.info[block];
        (info.is_closed, info.valid) = (false, 0);
        self.dies[die]
            .free
            .push_back((block - die * self.blocks as usize) as u32);
    }
}
