//! Times at which a model stands still, as for housekeeping, a reset of its link, or a host that does not run.
//!
//! The clock of the inner model stops: it is behind that of the host by all stalls that have begun.

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::definition::parts::StallDefinition;

use super::{earlier, unit};
use crate::model::{Completion, Done, Model, Ns, Request, ServedFrom, from_ms};

/// Stalls of a model.
pub struct Stall {
    inner: Box<dyn Model>,
    length: Ns,
    every: u64,
    requests: u64,
    mean: Option<f64>,
    random: Xoshiro256PlusPlus,
    /// When the next stall by chance begins.
    next: Option<Ns>,
    /// When the stall ends that began last.
    end: Ns,
    /// Length of all stalls that have begun.
    lost: Ns,
    finished: Vec<Completion>,
    done: Done,
}

impl Stall {
    /// Lets a model stand still as a definition says.
    pub fn new(definition: &StallDefinition, seed: u64, inner: Box<dyn Model>) -> Self {
        let mut stall = Self {
            inner,
            length: from_ms(definition.stall_ms),
            every: definition.every,
            requests: 0,
            mean: definition.mean_ms.map(|ms| from_ms(ms) as f64),
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            next: None,
            end: 0,
            lost: 0,
            finished: Vec::new(),
            done: Done::default(),
        };
        stall.draw();
        stall
    }

    /// When the next stall by chance begins, after the one that began last.
    fn draw(&mut self) {
        let random = &mut self.random;
        self.next = self.mean.map(|mean| {
            let pause = -mean * unit(random).ln();
            self.end.saturating_add(pause.round() as Ns)
        });
    }

    /// Starts a stall, or makes the present one longer.
    fn begin(&mut self, at: Ns) {
        self.end = self.end.max(at).saturating_add(self.length);
        self.lost = self.lost.saturating_add(self.length);
        if self.next.is_some() {
            self.draw();
        }
    }

    /// Everything up to a time before which no stall begins.
    fn run_within(&mut self, until: Ns) {
        if until < self.end {
            return;
        }
        let from = self.finished.len();
        self.inner.advance(until - self.lost, &mut self.finished);
        for completion in &mut self.finished[from..] {
            completion.finished = completion.finished.saturating_add(self.lost);
        }
    }

    fn run(&mut self, until: Ns) {
        while let Some(at) = self.next.filter(|&at| at <= until) {
            self.run_within(at);
            self.begin(at);
        }
        self.run_within(until);
    }
}

impl Model for Stall {
    fn capacity(&self) -> u64 {
        self.inner.capacity()
    }

    fn submit(&mut self, now: Ns, tag: u64, request: &Request) {
        if !request.fits(self.capacity()) {
            return self.done.add(tag, now, ServedFrom::Refused);
        }
        self.run(now);
        self.requests += 1;
        if self.every > 0 && self.requests.is_multiple_of(self.every) {
            self.begin(now);
        }
        self.inner
            .submit(now.max(self.end) - self.lost, tag, request);
    }

    fn next_event(&self) -> Option<Ns> {
        let known = self.finished.first().map(|completion| completion.finished);
        // A stall that begins before puts off what comes.
        let inner = self.inner.next_event();
        let inner = inner.map(|at| at.saturating_add(self.lost));
        let inner = inner.map(|at| self.next.map_or(at, |next| at.min(next)));
        earlier(earlier(known, inner), self.done.next())
    }

    fn advance(&mut self, until: Ns, out: &mut Vec<Completion>) {
        self.run(until);
        for completion in self.finished.drain(..) {
            self.done
                .add(completion.tag, completion.finished, completion.served);
        }
        self.done.take(until, out);
    }
}
