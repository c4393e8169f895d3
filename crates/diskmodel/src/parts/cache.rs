//! A cache for another model.

use std::collections::BTreeMap;

use crate::definition::parts::CacheDefinition;

use super::{Slab, earlier};
use crate::block_map::BlockMap;
use crate::model::{Completion, Done, Model, Ns, Op, Request, ServedFrom};

/// A cache for another model, with least-recently-used replacement.
pub struct Cache {
    inner: Box<dyn Model>,
    line: u64,
    lines: usize,
    hit: Ns,
    /// The last use of each line, and the lines by their last use.
    used: BlockMap<u64, u64>,
    order: BTreeMap<u64, u64>,
    clock: u64,
    flight: Slab<(u64, Op, u64, u64)>,
    finished: Vec<Completion>,
    done: Done,
}

impl Cache {
    /// Adds the cache of a definition to a model.
    ///
    /// # Errors
    ///
    /// A cache smaller than one line.
    pub fn new(definition: &CacheDefinition, inner: Box<dyn Model>) -> Result<Self, String> {
        if definition.line == 0 || definition.bytes < definition.line {
            return Err(format!(
                "a cache with bytes = {} has no room for a line of {} bytes: raise bytes, or lower line",
                definition.bytes, definition.line
            ));
        }
        Ok(Self {
            inner,
            line: definition.line,
            lines: (definition.bytes / definition.line) as usize,
            hit: (definition.hit_us * 1e3).round() as Ns,
            used: BlockMap::default(),
            order: BTreeMap::new(),
            clock: 0,
            flight: Slab::default(),
            finished: Vec::new(),
            done: Done::default(),
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

impl Model for Cache {
    fn capacity(&self) -> u64 {
        self.inner.capacity()
    }

    fn submit(&mut self, now: Ns, tag: u64, request: &Request) {
        if !request.fits(self.capacity()) {
            return self.done.add(tag, now, ServedFrom::Refused);
        }
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
            return self.done.add(tag, now + self.hit, ServedFrom::Hit);
        }
        let own = self
            .flight
            .add((tag, request.op, first, if inside { end } else { first }));
        if inside && request.op == Op::Read {
            let offset = first * self.line;
            let len = (end * self.line).min(self.capacity()) - offset;
            self.inner.submit(now, own, &Request::read(offset, len));
        } else {
            self.inner.submit(now, own, request);
        }
    }

    fn next_event(&self) -> Option<Ns> {
        earlier(self.inner.next_event(), self.done.next())
    }

    fn advance(&mut self, until: Ns, out: &mut Vec<Completion>) {
        let mut finished = std::mem::take(&mut self.finished);
        self.inner.advance(until, &mut finished);
        for completion in finished.drain(..) {
            let Some((tag, op, first, end)) = self.flight.take(completion.tag) else {
                continue;
            };
            for line in first..end {
                match op {
                    Op::Read | Op::Write => self.use_line(line),
                    Op::Trim => self.forget(line),
                    Op::Flush => {}
                }
            }
            self.done.add(tag, completion.finished, completion.served);
        }
        self.finished = finished;
        self.done.take(until, out);
    }
}
