//! Storage without latency, a fixed latency, and a limit of concurrency.

use std::collections::VecDeque;

use crate::definition::parts::LatencyDefinition;

use super::{Slab, earlier};
use crate::model::{Completion, Done, Model, Ns, Op, Request, ServedFrom};

/// Storage without latency.
#[derive(Clone, Debug)]
pub struct Memory {
    bytes: u64,
    done: Done,
}

impl Memory {
    /// Storage of so many bytes.
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

/// Adds a fixed time to another model, independently for each request.
pub struct Latency {
    inner: Box<dyn Model>,
    added: [Ns; 2],
    flight: Slab<(u64, bool)>,
    done: Done,
    finished: Vec<Completion>,
}

impl Latency {
    /// Adds the times of a definition to a model.
    pub fn new(definition: &LatencyDefinition, inner: Box<dyn Model>) -> Self {
        let ns = |us: f64| (us * 1e3).round() as Ns;
        let added = [ns(definition.read_us), ns(definition.write_us)];
        Self {
            inner,
            added,
            flight: Slab::default(),
            done: Done::default(),
            finished: Vec::new(),
        }
    }
}

impl Model for Latency {
    fn capacity(&self) -> u64 {
        self.inner.capacity()
    }

    fn submit(&mut self, now: Ns, tag: u64, request: &Request) {
        let own = self.flight.add((tag, request.op != Op::Read));
        self.inner.submit(now, own, request);
    }

    fn next_event(&self) -> Option<Ns> {
        earlier(self.inner.next_event(), self.done.next())
    }

    fn advance(&mut self, until: Ns, out: &mut Vec<Completion>) {
        self.inner.advance(until, &mut self.finished);
        for completion in self.finished.drain(..) {
            if let Some((tag, write)) = self.flight.take(completion.tag) {
                let added = if completion.served == ServedFrom::Refused {
                    0
                } else {
                    self.added[usize::from(write)]
                };
                self.done
                    .add(tag, completion.finished + added, completion.served);
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
    /// No slots.
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
