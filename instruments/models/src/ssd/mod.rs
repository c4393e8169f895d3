//! A solid-state disk: flash, and the layer that maps logical slots to pages of it.
//!
//! The drive over time: link, controller, buffer, channels and dies.
//!
//! Controller and dies serve in order of arrival, link and channels as data is ready, so that a request's times are known
//! on arrival.

mod ftl;

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, VecDeque};

use crate::definition::{SLOT, Slc, SsdDefinition};
use crate::{BlockMap, Done};
use iolab_workload::virtual_disk::{Completion, Model, Ns, Op, Request, ServedFrom};

pub use ftl::{Collected, Ftl, SlotPosition};

/// A page being filled in the buffer.
#[derive(Clone, Debug)]
struct OpenPage {
    die: u32,
    cost: Collected,
    slots: Vec<u32>,
}

/// Read-ahead of a sequential stream.
#[derive(Clone, Debug, Default)]
struct Ahead {
    /// One past the last slot read, and the number of consecutive reads.
    next: u64,
    length: u32,
    /// Pieces read ahead, in order: the slot at which each ends, and when it is available.
    pieces: VecDeque<(u64, Ns)>,
    /// First slot that was read ahead.
    start: u64,
}

/// Source of a slot that is read.
#[derive(Clone, Copy, PartialEq)]
enum Source {
    /// Data that was written and has not left the buffer; one transfer does not cross the end of what is read ahead.
    Buffer { is_ahead: bool },
    /// Data that was read ahead.
    Ahead,
    /// A page of the flash.
    Flash(SlotPosition),
}

/// A wire that one transfer at a time uses.
#[derive(Clone, Debug, Default)]
struct Wire {
    /// Periods in which it is used, in order.
    used: Vec<(Ns, Ns)>,
}

impl Wire {
    /// Uses it for this time from `at` on, in parts around later transfers that were reserved earlier; returns the end.
    fn transfer(&mut self, at: Ns, time: Ns) -> Ns {
        let first = self.used.partition_point(|used| used.1 < at);
        let (mut begin, mut end, mut next) = (at, at + time, first);
        while let Some(&(from, to)) = self.used.get(next).filter(|used| used.0 < end) {
            begin = begin.min(from);
            end += to - from.max(at);
            next += 1;
        }
        self.used.splice(first..next, [(begin, end)]);
        end
    }

    /// Removes the periods that are over by `now`.
    fn settle(&mut self, now: Ns) {
        let over = self.used.partition_point(|used| used.1 <= now);
        self.used.drain(..over);
    }
}

/// A solid-state disk.
#[derive(Clone, Debug)]
pub struct Ssd {
    definition: SsdDefinition,
    ftl: Ftl,
    times: Times,
    /// When each die is free.
    dies: Vec<Ns>,
    channels: Vec<Wire>,
    link: [Wire; 2],
    core: Ns,
    /// Free bytes of the buffer, and when more are released: (when, bytes).
    room: u64,
    giving_back: BinaryHeap<Reverse<(Ns, u64)>>,
    /// Slots in the buffer, and how long they stay.
    held: BlockMap<u32, Ns>,
    leaving: VecDeque<(Ns, Vec<u32>)>,
    open: Option<OpenPage>,
    programmed: Ns,
    slc_used: u64,
    last: Ns,
    ahead: Ahead,
    done: Done,
}

/// Times in nanoseconds, and rates in nanoseconds per KiB.
#[derive(Clone, Debug)]
struct Times {
    read: Vec<Ns>,
    program: Vec<Ns>,
    erase: Ns,
    channel: f64,
    link: f64,
    command: Ns,
    one_read: Ns,
    long_read: Ns,
    write: Ns,
    write_slot: Ns,
}

fn us(time: f64) -> Ns {
    (time * 1e3).round() as Ns
}

/// Nanoseconds per byte at a rate in MB/s.
fn per_byte(mb_s: f64) -> f64 {
    1e3 / mb_s
}

impl Ssd {
    /// The empty drive of a definition.
    ///
    /// # Errors
    ///
    /// The reason why the definition makes no drive, in words.
    pub fn new(definition: &SsdDefinition) -> Result<Self, String> {
        let (flash, controller) = (&definition.flash, &definition.controller);
        if flash.read_us.is_empty() || flash.program_us.is_empty() {
            return Err("read_us and program_us need a time for at least one type of page".into());
        }
        let ftl = Ftl::new(definition)?;
        let page = flash.page * u64::from(flash.planes);
        if controller.buffer < page {
            return Err(format!(
                "a buffer of {} bytes does not hold a page of {page}",
                controller.buffer
            ));
        }
        let dies = flash.channels * flash.chips * flash.dies;
        Ok(Self {
            times: Times {
                read: flash.read_us.iter().copied().map(us).collect(),
                program: flash.program_us.iter().copied().map(us).collect(),
                erase: us(flash.erase_us),
                channel: per_byte(flash.channel_mb_s),
                link: per_byte(controller.link_mb_s),
                command: us(controller.command_us),
                one_read: us(controller.read_us),
                long_read: us(controller.long_read_us),
                write: us(controller.write_us),
                write_slot: us(controller.write_slot_us),
            },
            ftl,
            dies: vec![0; dies as usize],
            channels: vec![Wire::default(); flash.channels as usize],
            link: Default::default(),
            core: 0,
            room: controller.buffer,
            giving_back: BinaryHeap::new(),
            held: BlockMap::default(),
            leaving: VecDeque::new(),
            open: None,
            programmed: 0,
            slc_used: 0,
            last: 0,
            ahead: Ahead::default(),
            done: Done::default(),
            definition: definition.clone(),
        })
    }

    /// The mapping table.
    pub fn ftl(&self) -> &Ftl {
        &self.ftl
    }

    /// Transfers bytes over the link from `at` on; returns the end. Direction 0: to the host, 1: from it.
    fn over_link(&mut self, direction: usize, at: Ns, bytes: u64) -> Ns {
        let link = match self.definition.controller.half_duplex {
            true => 0,
            false => direction,
        };
        self.link[link].transfer(at, (bytes as f64 * self.times.link) as Ns)
    }

    fn over_channel(&mut self, die: u32, at: Ns, bytes: u64) -> Ns {
        let channel = die % self.definition.flash.channels;
        self.channels[channel as usize].transfer(at, (bytes as f64 * self.times.channel) as Ns)
    }

    /// Passes a command through the controller.
    fn command(&mut self, now: Ns) -> Ns {
        self.core = self.core.max(now) + self.times.command;
        self.core
    }

    /// Removes data that has left the buffer by `now`.
    fn settle(&mut self, now: Ns) {
        let wires = self.link.iter_mut().chain(&mut self.channels);
        wires.for_each(|wire| wire.settle(now));
        while self
            .giving_back
            .peek()
            .is_some_and(|first| first.0.0 <= now)
        {
            if let Some(Reverse((_, bytes))) = self.giving_back.pop() {
                self.room += bytes;
            }
        }
        while self.leaving.front().is_some_and(|page| page.0 <= now) {
            for slot in self
                .leaving
                .pop_front()
                .map(|page| page.1)
                .unwrap_or_default()
            {
                if let Entry::Occupied(held) = self.held.entry(slot)
                    && *held.get() <= now
                {
                    held.remove();
                }
            }
        }
    }

    fn read(&mut self, now: Ns, tag: u64, first: u64, end: u64) {
        let command = self.command(now);
        let overhead = if end - first == 1 {
            self.times.one_read
        } else {
            self.times.long_read
        };
        let start = command + overhead;
        let ready_ahead = self.read_ahead(start, first, end);
        let mut from_flash = false;
        let mut finish = start;
        let mut slot = first;
        while slot < end {
            // Adjacent slots of one page are one read of the flash.
            let source = self.source(slot, now, ready_ahead.0);
            let mut next = slot + 1;
            while next < end && self.source(next, now, ready_ahead.0) == source {
                next += 1;
            }
            let bytes = (next - slot) * SLOT;
            let there = match source {
                Source::Flash(spot) => {
                    from_flash = true;
                    self.read_page(spot, start, bytes)
                }
                Source::Ahead => start.max(ready_ahead.1),
                Source::Buffer { .. } => start,
            };
            finish = finish.max(self.over_link(0, there, bytes));
            slot = next;
        }
        let served = if from_flash {
            ServedFrom::Miss
        } else {
            ServedFrom::Hit
        };
        self.done.add(tag, finish, served);
    }

    /// Source of a slot that is read at `now`, if the slots below `ahead` are read ahead.
    fn source(&self, slot: u64, now: Ns, ahead: u64) -> Source {
        let held = self.held.get(&(slot as u32));
        match held.is_some_and(|&until| until > now) {
            true => Source::Buffer {
                is_ahead: slot < ahead,
            },
            false if slot < ahead => Source::Ahead,
            false => Source::Flash(self.spot(slot)),
        }
    }

    /// The position from which a slot is read; an unwritten slot has a fixed one.
    fn spot(&self, slot: u64) -> SlotPosition {
        self.ftl.spot(slot).unwrap_or_else(|| {
            let page = slot / u64::from(self.ftl.page_slots());
            let dies = self.dies.len() as u64;
            SlotPosition {
                die: (page % dies) as u32,
                page: (page / dies) as u32,
            }
        })
    }

    /// Reads bytes of a page into the controller.
    fn read_page(&mut self, spot: SlotPosition, at: Ns, bytes: u64) -> Ns {
        let types = self.times.read.len();
        let time = self.times.read[spot.page as usize % types];
        let die = &mut self.dies[spot.die as usize];
        *die = at.max(*die) + time;
        let read = *die;
        self.over_channel(spot.die, read, bytes)
    }

    /// Reads ahead of a sequential stream. Returns up to which slot of this request data is read ahead, and when that is
    /// available.
    fn read_ahead(&mut self, at: Ns, first: u64, end: u64) -> (u64, Ns) {
        let window = self.definition.controller.read_ahead / SLOT;
        if window == 0 {
            return (0, 0);
        }
        let follows = first == self.ahead.next;
        self.ahead.next = end;
        if !follows {
            self.ahead.length = 0;
            self.ahead.pieces.clear();
            return (0, 0);
        }
        self.ahead.length += 1;
        while self
            .ahead
            .pieces
            .front()
            .is_some_and(|piece| piece.0 <= first)
        {
            self.ahead.start = self.ahead.pieces.pop_front().map_or(0, |piece| piece.0);
        }
        let mut ready = (0, 0);
        if self.ahead.start <= first {
            for &(to, when) in &self.ahead.pieces {
                ready = (to.min(end), when);
                if to >= end {
                    break;
                }
            }
        }
        if self.ahead.length >= 2 {
            let mut next = match self.ahead.pieces.back() {
                Some(piece) => piece.0,
                None => {
                    self.ahead.start = end;
                    end
                }
            };
            let limit = (end + window).min(self.ftl.logical());
            while next < limit {
                let spot = self.spot(next);
                let mut to = next + 1;
                while to < limit && self.spot(to) == spot {
                    to += 1;
                }
                let bytes = (to - next) * SLOT;
                let when = self.read_page(spot, at, bytes);
                self.ahead.pieces.push_back((to, when));
                next = to;
            }
        }
        ready
    }

    fn write(&mut self, now: Ns, tag: u64, first: u64, end: u64) {
        let slots = end - first;
        let command = self.command(now) + self.times.write + slots * self.times.write_slot;
        let mut at = command;
        for slot in first..end {
            at = self.over_link(1, at, SLOT);
            // Without room, the data waits for a page to be programmed. An incomplete page is programmed too.
            while self.room < SLOT {
                match self.giving_back.pop() {
                    Some(Reverse((when, bytes))) => {
                        at = at.max(when);
                        self.room += bytes;
                    }
                    None => self.close_page(at, true),
                }
            }
            self.room -= SLOT;
            self.buffer(at, slot);
        }
        self.done.add(tag, at, ServedFrom::Buffered);
    }

    /// Adds a slot to the open page; a full page is sent to its die.
    fn buffer(&mut self, at: Ns, slot: u64) {
        let mut page = self.open.take().unwrap_or_else(|| {
            let (die, cost) = self.ftl.open_page();
            OpenPage {
                die,
                cost,
                slots: Vec::with_capacity(self.ftl.page_slots() as usize),
            }
        });
        let full = self.ftl.put(page.die, slot);
        page.slots.push(slot as u32);
        self.held.insert(slot as u32, Ns::MAX);
        self.open = Some(page);
        if full {
            self.close_page(at, false);
        }
    }

    /// Programs the open page.
    fn close_page(&mut self, at: Ns, pad: bool) {
        let Some(page) = self.open.take() else {
            return;
        };
        // The type of the page follows from the position of its last slot.
        let number = page
            .slots
            .last()
            .and_then(|&slot| self.ftl.spot(u64::from(slot)))
            .map_or(0, |spot| spot.page as usize);
        if pad {
            self.ftl.pad(page.die);
        }
        let bytes = self.definition.flash.page * u64::from(self.definition.flash.planes);
        let types = (self.times.read.len(), self.times.program.len());
        let native = self.times.program[number % types.1];
        let program = self.slc_program(at, bytes).unwrap_or(native);
        let moved = (bytes as f64 * self.times.channel) as Ns;
        let cost = page.cost;
        let collecting = Ns::from(cost.reads) * (self.times.read[number % types.0] + moved)
            + Ns::from(cost.programs) * (native + moved)
            + Ns::from(cost.erases) * self.times.erase;
        let die = &mut self.dies[page.die as usize];
        *die = if collecting > 0 {
            at.max(*die) + collecting
        } else {
            *die
        };
        let sent = self.over_channel(page.die, at, bytes);
        let die = &mut self.dies[page.die as usize];
        *die = sent.max(*die) + program;
        let end = *die;
        self.programmed = self.programmed.max(end);
        for slot in &page.slots {
            self.held.insert(*slot, end);
        }
        self.giving_back
            .push(Reverse((end, page.slots.len() as u64 * SLOT)));
        self.leaving.push_back((end, page.slots));
    }

    /// The time to program a page in SLC mode, if there is room.
    fn slc_program(&mut self, at: Ns, bytes: u64) -> Option<Ns> {
        let slc = self.definition.slc.as_ref()?;
        self.slc_used = self.slc_left_over(slc, at);
        let free = (self.ftl.logical() - self.ftl.mapped()) * SLOT;
        let size = slc.fixed + (free as f64 * slc.of_free) as u64;
        if self.slc_used + bytes > size {
            return None;
        }
        self.slc_used += bytes;
        Some(us(slc.program_us))
    }

    /// Bytes in SLC mode at `at`, given that the drive moves them while idle.
    fn slc_left_over(&self, slc: &Slc, at: Ns) -> u64 {
        let idle = at
            .saturating_sub(self.last.max(self.programmed))
            .saturating_sub((slc.idle_after_ms * 1e6) as Ns);
        self.slc_used
            .saturating_sub((idle as f64 * slc.empty_mb_s / 1e3) as u64)
    }
}

impl Model for Ssd {
    fn capacity(&self) -> u64 {
        self.ftl.logical() * SLOT
    }

    fn submit(&mut self, now: Ns, tag: u64, request: &Request) {
        if !request.fits(self.capacity()) {
            return self.done.add(tag, now, ServedFrom::Refused);
        }
        self.settle(now);
        if let Some(slc) = &self.definition.slc {
            self.slc_used = self.slc_left_over(slc, now);
        }
        self.last = now;
        let first = request.offset / SLOT;
        let end = (request.offset + request.len).div_ceil(SLOT);
        match request.op {
            Op::Read | Op::Write if request.len == 0 => {
                self.done.add(tag, now, ServedFrom::Control)
            }
            Op::Read => self.read(now, tag, first, end),
            Op::Write => self.write(now, tag, first, end),
            Op::Flush => {
                let command = self.command(now);
                self.close_page(command, true);
                self.done
                    .add(tag, command.max(self.programmed), ServedFrom::Control);
            }
            Op::Trim => {
                // Only slots that are entirely within the range lose their data.
                let (inner, outer) = (
                    request.offset.div_ceil(SLOT),
                    (request.offset + request.len) / SLOT,
                );
                self.ftl.trim_range(inner, outer.max(inner));
                let command = self.command(now);
                self.done.add(tag, command, ServedFrom::Control);
            }
        }
    }

    fn next_event(&self) -> Option<Ns> {
        self.done.next()
    }

    fn advance(&mut self, until: Ns, out: &mut Vec<Completion>) {
        self.done.take(until, out);
    }
}
