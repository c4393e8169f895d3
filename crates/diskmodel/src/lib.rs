//! iolab-diskmodel: disks computed in virtual time.
//!
//! A [`Model`] is a function of its state and its requests: it has no clock and no I/O, and the same calls give the same results.
//! [`build()`] makes one from a [`Definition`].
//! Formulas, sources and the accuracy reached are in docs/MODELS.md.
//!
//! Files to begin with: `definition.rs` models as data and as text, `disk/`, `ssd/` and `parts/` models.

pub mod definition;
pub mod disk;
mod model;
pub mod parts;
pub mod ssd;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use definition::{Definition, PartDefinition};
use disk::Drive;
use parts::{Cache, Latency, Memory, Noise, RateLimit, Server, Split, Stall, WriteBack};
use ssd::Ssd;

pub use model::{Completion, MILLISECOND, Model, Ns, Op, Request, ServedFrom, serve};

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
        PartDefinition::Latency(latency) => {
            Box::new(Latency::new(latency, part(&latency.inner, seed)?))
        }
        PartDefinition::Limit(limit) => Box::new(RateLimit::new(limit, part(&limit.inner, seed)?)?),
        PartDefinition::Server(server) => {
            Box::new(Server::new(server.slots, part(&server.inner, seed)?)?)
        }
        PartDefinition::Cache(cache) => Box::new(Cache::new(cache, part(&cache.inner, seed)?)?),
        PartDefinition::WriteBack(cache) => {
            let block = cache.inner.block();
            Box::new(WriteBack::new(cache, block, part(&cache.inner, seed)?)?)
        }
        PartDefinition::Region(region) => {
            Box::new(Latency::of_region(region, part(&region.inner, seed)?))
        }
        PartDefinition::Noise(noise) => {
            let (own, inner) = apart(seed);
            Box::new(Noise::new(noise, own, part(&noise.inner, inner)?))
        }
        PartDefinition::Stall(stall) => {
            let (own, inner) = apart(seed);
            Box::new(Stall::new(stall, own, part(&stall.inner, inner)?))
        }
        PartDefinition::Split(split) => {
            Box::new(Split::new(split.bytes, part(&split.inner, seed)?)?)
        }
    })
}

/// Two seeds made from one, so that a part and the part inside it do not vary alike.
fn apart(seed: u64) -> (u64, u64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    (random.next_u64(), random.next_u64())
}
