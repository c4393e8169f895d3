//! From a definition to its model.

use crate::definition::{Definition, PartDefinition};

use crate::disk::Drive;
use crate::model::Model;
use crate::parts::{Cache, Latency, Memory, Raid, RateLimit, Server, Split};
use crate::ssd::Ssd;

/// The model of a definition. `seed` decides what the definition leaves to chance.
///
/// # Errors
///
/// What of the definition makes no model, in words.
pub fn build(definition: &Definition, seed: u64) -> Result<Box<dyn Model>, String> {
    part(&definition.model, seed)
}

fn part(definition: &PartDefinition, seed: u64) -> Result<Box<dyn Model>, String> {
    Ok(match definition {
        PartDefinition::Disk(disk) => Box::new(Drive::new(disk)?),
        PartDefinition::Ssd(ssd) => Box::new(Ssd::new(ssd, seed)?),
        PartDefinition::Memory(bytes) => Box::new(Memory::new(*bytes)),
        PartDefinition::Latency(latency) => {
            Box::new(Latency::new(latency, part(&latency.inner, seed)?))
        }
        PartDefinition::Limit(limit) => Box::new(RateLimit::new(limit, part(&limit.inner, seed)?)?),
        PartDefinition::Server(server) => {
            Box::new(Server::new(server.slots, part(&server.inner, seed)?)?)
        }
        PartDefinition::Cache(cache) => Box::new(Cache::new(cache, part(&cache.inner, seed)?)?),
        PartDefinition::Region(region) => {
            Box::new(Latency::of_region(region, part(&region.inner, seed)?))
        }
        PartDefinition::Split(split) => {
            Box::new(Split::new(split.bytes, part(&split.inner, seed)?)?)
        }
        PartDefinition::Raid(raid) => {
            // Members that are alike still differ in what is left to chance.
            let members = raid
                .members
                .iter()
                .zip(0..)
                .map(|(member, n)| part(member, seed.wrapping_add(n)));
            Box::new(Raid::new(raid, members.collect::<Result<_, _>>()?)?)
        }
    })
}
