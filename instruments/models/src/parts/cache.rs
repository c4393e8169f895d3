//! A cache for another model.
//!
//! A cache for writes in front of another model.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use super::super::{BlockMap, Done, earlier};
use super::{Inner, Numbered, Part};
use crate::definition::parts::{CacheDefinition, WriteBackDefinition};
use iolab_workload::virtual_disk::{Completion, Ns, Op, Request, ServedFrom};

/// A cache for a model, with least-recently-used replacement.
pub(crate) struct Cache {
    line: u64,
    lines: usize,
    hit: Ns,
    /// The last use of each line, and the lines by their last use.
    used: BlockMap<u64, u64>,
    order: BTreeMap<u64, u64>,
    clock: u64,
    flight: Numbered<(u64, Op, u64, u64)>,
}

impl Cache {
    /// The cache of a definition.
    ///
    /// # Errors
    ///
    /// A cache smaller than one line.
    pub(crate) fn new(definition: &CacheDefinition) -> Result<Self, String> {
        if definition.line == 0 || definition.bytes < definition.line {
            return Err(format!(
                "a cache with bytes = {} has no room for a line of {} bytes: raise bytes, or lower line",
                definition.bytes, definition.line
            ));
        }
        Ok(Self {
            line: definition.line,
            lines: (definition.bytes / definition.line) as usize,
            hit: (definition.hit_us * 1e3).round() as Ns,
            used: BlockMap::default(),
            order: BTreeMap::new(),
            clock: 0,
            flight: Numbered::new(),
        })
    }

    fn use_line(&mut self, line: u64) {
        self.clock += 1;
        if let Some(old) = self.used.insert(line, self.clock) {
            self.order.remove(&old);
        } else if self.used.len() > self.lines
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.used.remove(&oldest);
        }
        self.order.insert(self.clock, line);
    }

    fn forget(&mut self, line: u64) {
        if let Some(old) = self.used.remove(&line) {
            self.order.remove(&old);
        }
    }
}

impl Part for Cache {
    fn submit(&mut self, inner: &mut Inner, now: Ns, tag: u64, request: &Request) {
        let inside = request.len > 0;
        let (first, end) = (
            request.offset / self.line,
            (request.offset + request.len).div_ceil(self.line),
        );
        if inside
            && request.op == Op::Read
            && (first..end).all(|line| self.used.contains_key(&line))
        {
            for line in first..end {
                self.use_line(line);
            }
            return inner.done.add(tag, now + self.hit, ServedFrom::Hit);
        }
        let own = self
            .flight
            .add((tag, request.op, first, if inside { end } else { first }));
        if inside && request.op == Op::Read {
            let offset = first * self.line;
            let len = (end * self.line).min(inner.model.capacity()) - offset;
            inner.model.submit(now, own, &Request::read(offset, len));
        } else {
            inner.model.submit(now, own, request);
        }
    }

    fn run(&mut self, inner: &mut Inner, until: Ns) {
        inner.advance(until, |completion, done| {
            let Some((tag, op, first, end)) = self.flight.values.remove(&completion.tag) else {
                return;
            };
            for line in first..end {
                match op {
                    Op::Read | Op::Write => self.use_line(line),
                    Op::Trim => self.forget(line),
                    Op::Flush => {}
                }
            }
            done.add(tag, completion.finished, completion.served);
        });
    }
}

/// Tag of requests that the cache passes on. Reads have small tags, their numbers.
const PASSED_ON: u64 = u64::MAX;

/// Least bytes of a block of the cache's table, so that a long write does not make a long table.
const TABLE_BLOCK: u64 = 4096;

/// A cache for writes in front of a model.
pub(crate) struct WriteBack {
    bytes: u64,
    hit: Ns,
    /// Nanoseconds per byte that is passed on.
    per_byte: f64,
    /// Bytes that are cached.
    used: u64,
    /// How many cached writes cover each whole block of `block` bytes.
    block: u64,
    cached: BlockMap<u64, u32>,
    /// Writes without room.
    waiting: VecDeque<(u64, Request)>,
    /// Requests to pass on, in order; flushes with the tag of the host. The inner model has the first if
    /// `passing`.
    queue: VecDeque<(Option<u64>, Request)>,
    passing: bool,
    /// When the rate lets the next write be passed on.
    next: Ns,
    /// Time up to which everything inside has happened.
    reached: Ns,
    /// Flushes in the queue.
    flushes: usize,
    reads: Numbered<u64>,
}

impl WriteBack {
    /// The cache of a definition, in front of a model whose blocks have `block` bytes.
    pub(crate) fn new(definition: &WriteBackDefinition, block: u64) -> Self {
        Self {
            bytes: definition.bytes,
            hit: (definition.hit_us * 1e3).round() as Ns,
            per_byte: definition.drain_mb_s.map_or(0.0, |rate| 1e3 / rate),
            used: 0,
            block: block.max(TABLE_BLOCK),
            cached: BlockMap::default(),
            waiting: VecDeque::new(),
            queue: VecDeque::new(),
            passing: false,
            next: 0,
            reached: 0,
            flushes: 0,
            reads: Numbered::new(),
        }
    }

    /// The whole blocks of a range.
    fn whole_blocks(&self, request: &Request) -> std::ops::Range<u64> {
        let end = request.offset + request.len;
        request.offset.div_ceil(self.block)..end / self.block
    }

    /// Whether all blocks of a read are cached.
    fn holds(&self, request: &Request) -> bool {
        let end = request.offset + request.len;
        let mut blocks = request.offset / self.block..end.div_ceil(self.block);
        request.len > 0 && blocks.all(|block| self.cached.contains_key(&block))
    }

    /// Accepts waiting writes while there is room.
    fn take_in(&mut self, done: &mut Done, at: Ns) {
        while let Some(&(tag, request)) = self.waiting.front()
            && (self.used == 0 || self.used.saturating_add(request.len) <= self.bytes)
        {
            self.waiting.pop_front();
            self.used += request.len;
            for block in self.whole_blocks(&request) {
                *self.cached.entry(block).or_insert(0) += 1;
            }
            self.queue.push_back((None, request));
            done.add(tag, at.saturating_add(self.hit), ServedFrom::Buffered);
        }
    }

    /// Time at which the first request of the queue can be passed on; `None` while one is, or in an empty
    /// queue.
    fn ready(&self) -> Option<Ns> {
        let first = self.queue.front().filter(|_| !self.passing)?;
        Some(if first.1.op == Op::Write {
            self.next
        } else {
            0
        })
    }

    fn pass_on(&mut self, inner: &mut Inner, at: Ns) {
        if let Some((_, request)) = self.queue.front().filter(|_| !self.passing) {
            self.passing = true;
            if request.op == Op::Write {
                let paced = (request.len as f64 * self.per_byte).round() as Ns;
                self.next = at.saturating_add(paced);
            }
            inner.model.submit(at, PASSED_ON, request);
        }
    }

    fn completed(&mut self, completion: &Completion, done: &mut Done) {
        if completion.tag != PASSED_ON {
            if let Some(tag) = self.reads.values.remove(&completion.tag) {
                done.add(tag, completion.finished, completion.served);
            }
            return;
        }
        self.passing = false;
        let Some((tag, request)) = self.queue.pop_front() else {
            return;
        };
        if request.op == Op::Write {
            self.used -= request.len;
            for block in self.whole_blocks(&request) {
                if let Entry::Occupied(mut count) = self.cached.entry(block) {
                    *count.get_mut() -= 1;
                    if *count.get() == 0 {
                        count.remove();
                    }
                }
            }
        }
        if let Some(tag) = tag {
            self.flushes -= 1;
            done.add(tag, completion.finished, completion.served);
        }
    }

    /// Time of the next event inside.
    fn next_inside(&self, inner: &Inner) -> Option<Ns> {
        let ready = self.ready().map(|ready| ready.max(self.reached));
        earlier(inner.model.next_event(), ready)
    }
}

impl Part for WriteBack {
    fn submit(&mut self, inner: &mut Inner, now: Ns, tag: u64, request: &Request) {
        self.run(inner, now);
        match request.op {
            Op::Read if self.holds(request) => {
                inner.done.add(tag, now + self.hit, ServedFrom::Hit);
            }
            Op::Read => {
                let own = self.reads.add(tag);
                inner.model.submit(now, own, request);
            }
            Op::Write => self.waiting.push_back((tag, *request)),
            Op::Trim => {
                self.queue.push_back((None, *request));
                inner.done.add(tag, now + self.hit, ServedFrom::Control);
            }
            Op::Flush => {
                self.flushes += 1;
                self.queue.push_back((Some(tag), *request));
            }
        }
        self.take_in(&mut inner.done, now);
        self.run(inner, now);
    }

    fn run(&mut self, inner: &mut Inner, until: Ns) {
        while let Some(at) = self.next_inside(inner).filter(|&at| at <= until) {
            self.reached = at;
            inner.advance(at, |completion, done| self.completed(&completion, done));
            self.take_in(&mut inner.done, at);
            if self.ready().is_some_and(|ready| ready <= at) {
                self.pass_on(inner, at);
            }
        }
        self.reached = until;
    }

    fn next_event(&self, inner: &Inner) -> Option<Ns> {
        // Without a waiting request, passing on causes no event: the next call catches up on it.
        let asked = !self.reads.values.is_empty() || self.flushes > 0 || !self.waiting.is_empty();
        self.next_inside(inner).filter(|_| asked)
    }
}
