//! Simple parts that combine: in front of other models.

mod cache;
mod noise;
mod rate_limit;
mod request_split;
mod simple;
mod stall;
mod write_back;

pub use cache::Cache;
pub use noise::Noise;
pub use rate_limit::RateLimit;
pub use request_split::Split;
pub use simple::{Latency, Memory, Server};
pub use stall::Stall;
pub use write_back::WriteBack;

use rand_core::Rng;

use crate::model::{Completion, Done, Model, Ns, Request, ServedFrom};

/// A model whose clock differs from the host's, and the completions of the model in the host's time.
struct OnOwnClock {
    model: Box<dyn Model>,
    finished: Vec<Completion>,
    done: Done,
}

impl OnOwnClock {
    fn new(model: Box<dyn Model>) -> Self {
        Self {
            model,
            finished: Vec::new(),
            done: Done::default(),
        }
    }

    /// Completes a request that does not fit as refused, and returns whether it did.
    fn refuses(&mut self, now: Ns, tag: u64, request: &Request) -> bool {
        let refuses = !request.fits(self.model.capacity());
        if refuses {
            self.done.add(tag, now, ServedFrom::Refused);
        }
        refuses
    }

    /// Advances the model to `until` on its own clock; `to_host` turns a time of that clock into the host's.
    fn run(&mut self, until: Ns, to_host: impl Fn(Ns) -> Ns) {
        self.model.advance(until, &mut self.finished);
        for completion in self.finished.drain(..) {
            self.done.add(
                completion.tag,
                to_host(completion.finished),
                completion.served,
            );
        }
    }
}

/// Values by index; indices of removed values are reused.
#[derive(Clone, Debug)]
struct Slab<T> {
    values: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    fn add(&mut self, value: T) -> u64 {
        match self.free.pop() {
            Some(at) => {
                self.values[at] = Some(value);
                at as u64
            }
            None => {
                self.values.push(Some(value));
                self.values.len() as u64 - 1
            }
        }
    }

    fn get(&mut self, at: u64) -> Option<&mut T> {
        self.values.get_mut(at as usize)?.as_mut()
    }

    fn take(&mut self, at: u64) -> Option<T> {
        let value = self.values.get_mut(at as usize)?.take();
        if value.is_some() {
            self.free.push(at as usize);
        }
        value
    }
}

/// A number from (0, 1], of 53 random bits.
fn unit(random: &mut impl Rng) -> f64 {
    ((random.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
}

/// The earlier of two optional times.
fn earlier(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
