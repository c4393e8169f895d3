//! iolab-models: disks computed in virtual time, as targets and, in real time, as files.
//!
//! A [`Model`] is a function of its state and its requests: it has no clock and no I/O, and the same calls give the same results.
//! [`build()`] makes one from a [`Definition`].
//! Formulas, sources and the accuracy reached are in docs/MODELS.md.
//!
//! Files to begin with: `definition.rs` models as data and as text, `disk/`, `ssd/` and `parts/` models.
//! `catalogue.rs` finds them by name. What measures: `simulated.rs` is a model as a target, `serve.rs` as a file.

mod catalogue;
pub mod definition;
pub mod disk;
pub mod parts;
#[cfg(feature = "measure")]
pub mod serve;
#[cfg(feature = "measure")]
mod simulated;
pub mod ssd;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use iolab_command::{Command, Lists};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use definition::{Definition, PartDefinition};
use disk::Drive;
use iolab_workload::virtual_disk::{Completion, Model, Ns, Request, ServedFrom};
use parts::{Cache, Latency, Memory, Noise, Outer, RateLimit, Server, Split, Stall, WriteBack};
use ssd::Ssd;

#[cfg(feature = "measure")]
pub use simulated::MODELS;

/// The rows of this instrument that read only.
pub fn lists() -> Lists {
    Lists {
        commands: vec![Command::new(
            "model",
            "List disk models, or print one",
            |options, _| catalogue::model(options),
        )],
        ..Lists::default()
    }
}

/// The rows that measure.
#[cfg(feature = "measure")]
pub fn measuring() -> Lists {
    Lists {
        commands: vec![Command::new(
            "serve",
            "Serve a disk model as a file in real time, for any tool to measure",
            |options, _| serve::serve(options),
        )],
        ..Lists::default()
    }
}

/// The model of a definition. `seed` decides everything that the definition leaves to chance.
///
/// # Errors
///
/// The reason why the definition makes no model, in words.
pub fn build(definition: &Definition, seed: u64) -> Result<Box<dyn Model>, String> {
    part(&definition.model, seed)
}

fn part(definition: &PartDefinition, seed: u64) -> Result<Box<dyn Model>, String> {
    Ok(match definition {
        PartDefinition::Disk(disk) => Box::new(Drive::new(disk)?),
        PartDefinition::Ssd(ssd) => Box::new(Ssd::new(ssd)?),
        PartDefinition::Memory(bytes) => Box::new(Memory::new(*bytes)),
        PartDefinition::Latency(own) => {
            Box::new(Outer::new(Latency::new(own), part(&own.inner, seed)?))
        }
        PartDefinition::Limit(own) => {
            Box::new(Outer::new(RateLimit::new(own)?, part(&own.inner, seed)?))
        }
        PartDefinition::Server(own) => {
            Box::new(Outer::new(Server::new(own.slots)?, part(&own.inner, seed)?))
        }
        PartDefinition::Cache(own) => {
            Box::new(Outer::new(Cache::new(own)?, part(&own.inner, seed)?))
        }
        PartDefinition::WriteBack(own) => {
            let cache = WriteBack::new(own, own.inner.block());
            Box::new(Outer::new(cache, part(&own.inner, seed)?))
        }
        PartDefinition::Noise(own) => {
            let (seed, inside) = apart(seed);
            Box::new(Outer::new(Noise::new(own, seed), part(&own.inner, inside)?))
        }
        PartDefinition::Stall(own) => {
            let (seed, inside) = apart(seed);
            Box::new(Outer::new(Stall::new(own, seed), part(&own.inner, inside)?))
        }
        PartDefinition::Split(own) => {
            Box::new(Outer::new(Split::new(own.bytes), part(&own.inner, seed)?))
        }
    })
}

/// Two seeds made from one, so that a part and the part inside it do not vary alike.
fn apart(seed: u64) -> (u64, u64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    (random.next_u64(), random.next_u64())
}

/// Nanoseconds in a millisecond, the unit of disk parameters.
pub const MILLISECOND: f64 = 1e6;

/// Serves one request on an idle model: submits it at `now` and returns its completion.
///
/// Completions of other requests must have been taken before.
pub fn serve(model: &mut dyn Model, now: Ns, request: &Request) -> Completion {
    let mut out = Vec::new();
    model.submit(now, 0, request);
    while out.is_empty() {
        let Some(at) = model.next_event() else {
            unreachable!("a submitted request completes");
        };
        model.advance(at, &mut out);
    }
    out[0]
}

/// Completions with known times, in the order of time, then of insertion.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    heap: std::collections::BinaryHeap<Reverse<(Ns, u64, u64, ServedFrom)>>,
    added: u64,
}

impl Done {
    fn add(&mut self, tag: u64, finished: Ns, served: ServedFrom) {
        self.added += 1;
        self.heap.push(Reverse((finished, self.added, tag, served)));
    }

    fn next(&self) -> Option<Ns> {
        self.heap.peek().map(|first| first.0.0)
    }

    fn take(&mut self, until: Ns, out: &mut Vec<Completion>) {
        while self.next().is_some_and(|at| at <= until) {
            if let Some(Reverse((finished, _, tag, served))) = self.heap.pop() {
                out.push(Completion {
                    tag,
                    finished,
                    served,
                });
            }
        }
    }
}

/// The earlier of two optional times.
fn earlier(a: Option<Ns>, b: Option<Ns>) -> Option<Ns> {
    a.into_iter().chain(b).min()
}

/// Milliseconds as nanoseconds, rounded; negative ones as zero.
fn from_ms(ms: f64) -> Ns {
    (ms * MILLISECOND).round() as Ns
}

/// A map from the number of a block, line or slot. Models look up several times for each block of a request,
/// and never need an order.
pub(crate) type BlockMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// Hashes a number by one multiplication. The standard hash, which strangers cannot foresee, took a third of
/// the time of a modelled drive. No stranger chooses the numbers here: they come from the user's own
/// experiment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NumberHasher(u64);

/// 2^64 divided by the golden ratio: Knuth, The Art of Computer Programming, vol. 3, 2nd ed. (1998), section 6.4.
const MULTIPLIER: u128 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * MULTIPLIER;
        // The map finds a place by the low bits, and compares by the high ones.
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}
