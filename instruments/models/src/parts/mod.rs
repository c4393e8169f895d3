//! Simple parts that combine: in front of other models.
//!
//! Storage that takes no time, added time, and a bound on concurrent requests.
//!
//! A bound on the length of requests, as host adapters and kernels have it.

mod cache;
mod timing;

use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use rand_core::Rng;

use crate::definition::parts::LatencyDefinition;
use crate::{BlockMap, Done, earlier};
use iolab_workload::virtual_disk::{Completion, Model, Ns, Op, Request, ServedFrom};

pub(crate) use cache::{Cache, WriteBack};
pub(crate) use timing::{Noise, RateLimit, Stall};

/// The model inside a part, and the completions of the part in the host's time.
pub(crate) struct Inner {
    model: Box<dyn Model>,
    finished: Vec<Completion>,
    done: Done,
}

impl Inner {
    fn new(model: Box<dyn Model>) -> Self {
        Self {
            model,
            finished: Vec::new(),
            done: Done::default(),
        }
    }

    /// Advances the model to `until`; `told` adds what completes with each completion of it.
    fn advance(&mut self, until: Ns, mut told: impl FnMut(Completion, &mut Done)) {
        self.model.advance(until, &mut self.finished);
        for completion in self.finished.drain(..) {
            told(completion, &mut self.done);
        }
    }

    /// Advances the model to `until` on its own clock; `to_host` turns a time of that clock into the host's.
    fn run(&mut self, until: Ns, to_host: impl Fn(Ns) -> Ns) {
        self.advance(until, |completion, done| {
            let finished = to_host(completion.finished);
            done.add(completion.tag, finished, completion.served);
        });
    }
}

/// A part that changes the model inside it.
pub(crate) trait Part: Send {
    /// Takes a request that fits the model.
    fn submit(&mut self, inner: &mut Inner, now: Ns, tag: u64, request: &Request);

    /// Handles all events up to `until`.
    fn run(&mut self, inner: &mut Inner, until: Ns);

    /// Time of the next event before completions are handed over.
    fn next_event(&self, inner: &Inner) -> Option<Ns> {
        inner.model.next_event()
    }
}

/// A part with the model inside it.
pub(crate) struct Outer<P> {
    part: P,
    inner: Inner,
}

impl<P: Part> Outer<P> {
    /// Puts a part around a model.
    pub(crate) fn new(part: P, model: Box<dyn Model>) -> Self {
        let inner = Inner::new(model);
        Self { part, inner }
    }
}

impl<P: Part> Model for Outer<P> {
    fn capacity(&self) -> u64 {
        self.inner.model.capacity()
    }

    fn submit(&mut self, now: Ns, tag: u64, request: &Request) {
        match request.fits(self.capacity()) {
            true => self.part.submit(&mut self.inner, now, tag, request),
            false => self.inner.done.add(tag, now, ServedFrom::Refused),
        }
    }

    fn next_event(&self) -> Option<Ns> {
        earlier(self.part.next_event(&self.inner), self.inner.done.next())
    }

    fn advance(&mut self, until: Ns, out: &mut Vec<Completion>) {
        self.part.run(&mut self.inner, until);
        self.inner.done.take(until, out);
    }
}

/// Values by a number that none had before.
struct Numbered<T> {
    values: BlockMap<u64, T>,
    next: u64,
}

impl<T> Numbered<T> {
    fn new() -> Self {
        Self {
            values: BlockMap::default(),
            next: 0,
        }
    }

    fn add(&mut self, value: T) -> u64 {
        self.next += 1;
        self.values.insert(self.next, value);
        self.next
    }
}

/// A number from (0, 1], of 53 random bits.
fn unit(random: &mut impl Rng) -> f64 {
    ((random.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
}

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

/// Adds time to the requests of a model, which do not wait for each other.
pub(crate) struct Latency {
    /// Time added to reads, and to everything else.
    added: [Ns; 2],
    /// Tag, and time to add.
    flight: Numbered<(u64, Ns)>,
}

impl Latency {
    /// Adds the times of a definition.
    pub(crate) fn new(definition: &LatencyDefinition) -> Self {
        let added = [definition.read_us, definition.write_us];
        Self {
            added: added.map(|us| (us * 1e3).round() as Ns),
            flight: Numbered::new(),
        }
    }
}

impl Part for Latency {
    fn submit(&mut self, inner: &mut Inner, now: Ns, tag: u64, request: &Request) {
        let added = self.added[usize::from(request.op != Op::Read)];
        let own = self.flight.add((tag, added));
        inner.model.submit(now, own, request);
    }

    fn run(&mut self, inner: &mut Inner, until: Ns) {
        inner.advance(until, |completion, done| {
            if let Some((tag, added)) = self.flight.values.remove(&completion.tag) {
                let finished = completion.finished.saturating_add(added);
                done.add(tag, finished, completion.served);
            }
        });
    }
}

/// Limits the concurrency of a model. Further requests wait in order of arrival.
pub(crate) struct Server {
    slots: usize,
    busy: usize,
    waiting: VecDeque<(u64, Request)>,
}

impl Server {
    /// Limits a model to `slots` concurrent requests.
    ///
    /// # Errors
    ///
    /// A limit of 0 slots.
    pub(crate) fn new(slots: u32) -> Result<Self, String> {
        if slots == 0 {
            return Err("a server needs at least one slot".into());
        }
        Ok(Self {
            slots: slots as usize,
            busy: 0,
            waiting: VecDeque::new(),
        })
    }
}

impl Part for Server {
    fn submit(&mut self, inner: &mut Inner, now: Ns, tag: u64, request: &Request) {
        self.run(inner, now);
        if self.busy < self.slots {
            self.busy += 1;
            inner.model.submit(now, tag, request);
        } else {
            self.waiting.push_back((tag, *request));
        }
    }

    fn run(&mut self, inner: &mut Inner, until: Ns) {
        while let Some(at) = inner.model.next_event().filter(|&at| at <= until) {
            inner.advance(at, |completion, done| {
                self.busy -= 1;
                done.add(completion.tag, completion.finished, completion.served);
            });
            while self.busy < self.slots {
                let Some((tag, request)) = self.waiting.pop_front() else {
                    break;
                };
                self.busy += 1;
                inner.model.submit(at, tag, &request);
            }
        }
    }
}

/// A request of the host that is under way.
struct Parent {
    tag: u64,
    /// Pieces that have not completed.
    left: u64,
    finished: Ns,
    served: ServedFrom,
}

/// A bound on the length of the requests to a model.
pub(crate) struct Split {
    bytes: u64,
    parents: Numbered<Parent>,
}

impl Split {
    /// Bounds each request to `bytes` bytes, which are more than 0.
    pub(crate) fn new(bytes: u64) -> Self {
        Self {
            bytes,
            parents: Numbered::new(),
        }
    }
}

impl Part for Split {
    fn submit(&mut self, inner: &mut Inner, now: Ns, tag: u64, request: &Request) {
        let piece = match request.op {
            Op::Read | Op::Write => self.bytes,
            Op::Flush | Op::Trim => u64::MAX,
        };
        let left = request.len.div_ceil(piece).max(1);
        let parent = self.parents.add(Parent {
            tag,
            left,
            finished: now,
            served: ServedFrom::Hit,
        });
        for n in 0..left {
            let begin = n * piece;
            let piece = Request {
                op: request.op,
                offset: request.offset + begin,
                len: piece.min(request.len - begin),
            };
            inner.model.submit(now, parent, &piece);
        }
    }

    fn run(&mut self, inner: &mut Inner, until: Ns) {
        inner.advance(until, |completion, done| {
            let Entry::Occupied(mut parent) = self.parents.values.entry(completion.tag) else {
                return;
            };
            let own = parent.get_mut();
            own.left -= 1;
            own.finished = own.finished.max(completion.finished);
            own.served = own.served.max(completion.served);
            if own.left == 0 {
                done.add(own.tag, own.finished, own.served);
                parent.remove();
            }
        });
    }
}
