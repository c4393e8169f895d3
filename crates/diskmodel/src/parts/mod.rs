//! Plain parts that combine: what stands in front of another model, beside it, or below everything.

mod cache;
mod limit;
mod noise;
mod raid;
mod simple;
mod split;
mod stall;
mod write_back;

pub use cache::Cache;
pub use limit::RateLimit;
pub use noise::Noise;
pub use raid::Raid;
pub use simple::{Latency, Memory, Server};
pub use split::Split;
pub use stall::Stall;
pub use write_back::WriteBack;

use rand_core::Rng;

/// Values by number, where numbers of removed values are used again.
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

/// The earlier of two times that may not be there.
fn earlier(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
