//! Times at which a model stands still, as for housekeeping, a reset of its link, or a host that does not run.
//!
//! The clock of the inner model stops during a stall: it lags the host's by the length of all stalls that have
//! begun.

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::definition::parts::StallDefinition;

use super::{OnOwnClock, earlier, unit};
use crate::model::{Completion, Model, Ns, Request, from_ms};

/// Stalls of a model.
pub struct Stall {
    inner: OnOwnClock,
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
}

impl Stall {
    /// Lets a model stand still as a definition says.
    pub fn new(definition: &StallDefinition, seed: u64, inner: Box<dyn Model>) -> Self {
        let mut stall = Self {
            inner: OnOwnClock::new(inner),
            length: from_ms(definition.stall_ms),
            every: definition.every,
            requests: 0,
            mean: definition.mean_ms.map(|ms| from_ms(ms) as f64),
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            next: None,
            end: 0,
            lost: 0,
        };
        stall.draw();
        stall
    }

    /// Sets the time of the next stall by chance, after the end of the last one; `None` where time ends before.
    fn draw(&mut self) {
        let random = &mut self.random;
        self.next = self.mean.and_then(|mean| {
            let pause = -mean * unit(random).ln();
            self.end.checked_add(pause.round() as Ns)
        });
    }

    /// Starts a stall, or makes the present one longer.
    fn begin(&mut self, at: Ns) {
        self.end = self.end.max(at).saturating_add(self.length);
        self.lost = self.lost.saturating_add(self.length);
        self.draw();
    }

    /// Advances the inner model to a time before which no stall begins.
    fn run_within(&mut self, until: Ns) {
        if until < self.end {
            return;
        }
        let lost = self.lost;
        self.inner.run(until - lost, |at| at.saturating_add(lost));
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
        self.inner.model.capacity()
    }

    fn submit(&mut self, now: Ns, tag: u64, request: &Request) {
        if self.inner.refuses(now, tag, request) {
            return;
        }
        self.run(now);
        self.requests += 1;
        if self.every > 0 && self.requests.is_multiple_of(self.every) {
            self.begin(now);
        }
        self.inner
            .model
            .submit(now.max(self.end) - self.lost, tag, request);
    }

    fn next_event(&self) -> Option<Ns> {
        // A stall that begins before the next event delays that event.
        let inner = self.inner.model.next_event();
        let inner = inner.map(|at| at.saturating_add(self.lost));
        let inner = inner.map(|at| self.next.map_or(at, |next| at.min(next)));
        earlier(inner, self.inner.done.next())
    }

    fn advance(&mut self, until: Ns, out: &mut Vec<Completion>) {
        self.run(until);
        self.inner.done.take(until, out);
    }
}
