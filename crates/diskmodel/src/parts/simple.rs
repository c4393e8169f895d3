//! Storage that takes no time, added time for all requests or a range, and a bound on concurrent requests.

use std::collections::VecDeque;
use std::ops::Range;

use crate::definition::parts::{LatencyDefinition, RegionDefinition};

use super::{Slab, earlier};
use crate::model::{Completion, Done, Model, Ns, Op, Request, ServedFrom};

/// Storage without latency.
#[derive(Clone, Debug)]
pub struct Memory {
    bytes: u64,
    done: Done,
}

impl Memory {
    /// Storage of `bytes` bytes.
    pub fn new(bytes: u64) -> Self {
        Self {
            bytes,
            done: Done::default(),
        }
    }
}

impl Model for Memory {
    fn capacity(&self) -> u64 {
        self.bytes
    }

    fn submit(&mut self, now: Ns, tag: u64, request: &Request) {
        let served = match request.op {
            _ if !request.fits(self.bytes) => ServedFrom::Refused,
            Op::Read => ServedFrom::Hit,
            Op::Write => ServedFrom::Buffered,
            Op::Flush | Op::Trim => ServedFrom::Control,
        };
        self.done.add(tag, now, served);
    }

    fn next_event(&self) -> Option<Ns> {
        self.done.next()
    }

    fn advance(&mut self, until: Ns, out: &mut Vec<Completion>) {
        self.done.take(until, out);
    }
}

/// Adds time to the requests of another model: to all, or to those that touch a range. Requests do not wait for
/// each other.
pub struct Latency {
    inner: Box<dyn Model>,
    /// Bytes whose reads and writes are slowed down; `None` slows requests of all kinds, wherever they are.
    range: Option<Range<u64>>,
    /// Factor on the time in the inner model; `added` comes on top, first for reads, then for everything else.
    factor: f64,
    added: [Ns; 2],
    /// Tag, time of submission, and which of `added` applies.
    flight: Slab<(u64, Ns, Option<usize>)>,
    done: Done,
    finished: Vec<Completion>,
}

impl Latency {
    /// Adds the times of a definition to a model.
    pub fn new(definition: &LatencyDefinition, inner: Box<dyn Model>) -> Self {
        let added = [definition.read_us, definition.write_us];
        Self::with(None, 1.0, added, inner)
    }

    /// Slows down a range of a model.
    pub fn of_region(definition: &RegionDefinition, inner: Box<dyn Model>) -> Self {
        let end = definition.start.saturating_add(definition.bytes);
        let added = [definition.read_us, definition.write_us];
        Self::with(Some(definition.start..end), definition.factor, added, inner)
    }

    fn with(
        range: Option<Range<u64>>,
        factor: f64,
        added_us: [f64; 2],
        inner: Box<dyn Model>,
    ) -> Self {
        Self {
            inner,
            range,
            factor,
            added: added_us.map(|us| (us * 1e3).round() as Ns),
            flight: Slab::default(),
            done: Done::default(),
            finished: Vec::new(),
        }
    }

    /// Index of the time in `added` for a request; `None` where the request is not slowed down.
    fn slowed(&self, request: &Request) -> Option<usize> {
        let slowed = self.range.as_ref().is_none_or(|range| {
            matches!(request.op, Op::Read | Op::Write)
                && request.offset < range.end
                && range.start < request.offset.saturating_add(request.len)
        });
        slowed.then_some(usize::from(request.op != Op::Read))
    }
}

impl Model for Latency {
    fn capacity(&self) -> u64 {
        self.inner.capacity()
    }

    fn submit(&mut self, now: Ns, tag: u64, request: &Request) {
        let own = self.flight.add((tag, now, self.slowed(request)));
        self.inner.submit(now, own, request);
    }

    fn next_event(&self) -> Option<Ns> {
        earlier(self.inner.next_event(), self.done.next())
    }

    fn advance(&mut self, until: Ns, out: &mut Vec<Completion>) {
        self.inner.advance(until, &mut self.finished);
        for completion in self.finished.drain(..) {
            if let Some((tag, submitted, slowed)) = self.flight.take(completion.tag) {
                let added = match slowed {
                    Some(kind) if completion.served != ServedFrom::Refused => {
                        let taken = (completion.finished - submitted) as f64;
                        self.added[kind] + (taken * (self.factor - 1.0)).round() as Ns
                    }
                    _ => 0,
                };
                self.done.add(
                    tag,
                    completion.finished.saturating_add(added),
                    completion.served,
                );
            }
        }
        self.done.take(until, out);
    }
}

/// Limits the concurrency of a model. Further requests wait in order of arrival.
pub struct Server {
    inner: Box<dyn Model>,
    slots: usize,
    busy: usize,
    waiting: VecDeque<(u64, Request)>,
    finished: Vec<Completion>,
    done: Done,
}

impl Server {
    /// Limits a model to `slots` concurrent requests.
    ///
    /// # Errors
    ///
    /// A limit of 0 slots.
    pub fn new(slots: u32, inner: Box<dyn Model>) -> Result<Self, String> {
        if slots == 0 {
            return Err("a server needs at least one slot".into());
        }
        Ok(Self {
            inner,
            slots: slots as usize,
            busy: 0,
            waiting: VecDeque::new(),
            finished: Vec::new(),
            done: Done::default(),
        })
    }

    fn run(&mut self, until: Ns) {
        while let Some(at) = self.inner.next_event().filter(|&at| at <= until) {
            self.inner.advance(at, &mut self.finished);
            for completion in self.finished.drain(..) {
                self.busy -= 1;
                self.done
                    .add(completion.tag, completion.finished, completion.served);
            }
            while self.busy < self.slots {
                let Some((tag, request)) = self.waiting.pop_front() else {
                    break;
                };
                self.busy += 1;
                self.inner.submit(at, tag, &request);
            }
        }
    }
}

impl Model for Server {
    fn capacity(&self) -> u64 {
        self.inner.capacity()
    }

    fn submit(&mut self, now: Ns, tag: u64, request: &Request) {
        self.run(now);
        if self.busy < self.slots {
            self.busy += 1;
            self.inner.submit(now, tag, request);
        } else {
            self.waiting.push_back((tag, *request));
        }
    }

    fn next_event(&self) -> Option<Ns> {
        earlier(self.inner.next_event(), self.done.next())
    }

    fn advance(&mut self, until: Ns, out: &mut Vec<Completion>) {
        self.run(until);
        self.done.take(until, out);
    }
}
