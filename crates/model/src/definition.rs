//! Models as text: a definition lists the parts of a model and the sources of its values, and builds the model.

use serde::{Deserialize, Serialize};

use crate::disk::{DiskDefinition, Drive};
use crate::model::Model;
use crate::parts::{
    Cache, CacheDefinition, Latency, LatencyDefinition, Limit, LimitDefinition, Memory, Raid,
    RaidDefinition, Server,
};
use crate::ssd::{Ssd, SsdDefinition};

/// A named model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// What it is, in a few words.
    pub title: String,
    /// Where its values are from.
    pub source: Vec<String>,
    /// What it is made of.
    pub model: PartDefinition,
}

/// A part that models are made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartDefinition {
    /// A hard disk.
    Disk(Box<DiskDefinition>),
    /// A solid-state disk.
    Ssd(Box<SsdDefinition>),
    /// Storage of so many bytes that takes no time.
    Memory(u64),
    /// A fixed time on top of another part.
    Latency(Box<LatencyDefinition>),
    /// Rates and bursts in front of another part.
    Limit(Box<LimitDefinition>),
    /// A bound on the requests that another part has at a time; further ones wait in order.
    Server(Box<ServerDefinition>),
    /// A cache in front of another part.
    Cache(Box<CacheDefinition>),
    /// An array.
    Raid(Box<RaidDefinition>),
}

/// A bound on the requests that a part has at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerDefinition {
    /// Requests at a time; 1 makes a serial server.
    pub slots: u32,
    /// What serves them.
    pub inner: PartDefinition,
}

impl Definition {
    /// Reads a definition.
    ///
    /// # Errors
    ///
    /// What is no definition, with line and column.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// The definition as text.
    ///
    /// # Errors
    ///
    /// A value that TOML cannot express (an integer above 2^63).
    pub fn to_toml(&self) -> Result<String, String> {
        toml::to_string(self).map_err(|error| error.to_string())
    }

    /// The model. `seed` decides what the definition leaves to chance.
    ///
    /// # Errors
    ///
    /// What of the definition makes no model, in words.
    pub fn build(&self, seed: u64) -> Result<Box<dyn Model>, String> {
        self.model.build(seed)
    }

    /// Bytes of the smallest unit that the model addresses.
    pub fn block(&self) -> u64 {
        self.model.block()
    }
}

impl PartDefinition {
    /// The model of this part.
    ///
    /// # Errors
    ///
    /// What makes no model, in words.
    pub fn build(&self, seed: u64) -> Result<Box<dyn Model>, String> {
        Ok(match self {
            Self::Disk(disk) => Box::new(Drive::new(disk)?),
            Self::Ssd(ssd) => Box::new(Ssd::new(ssd, seed)?),
            Self::Memory(bytes) => Box::new(Memory::new(*bytes)),
            Self::Latency(latency) => Box::new(Latency::new(latency, latency.inner.build(seed)?)),
            Self::Limit(limit) => Box::new(Limit::new(limit, limit.inner.build(seed)?)?),
            Self::Server(server) => Box::new(Server::new(server.slots, server.inner.build(seed)?)?),
            Self::Cache(cache) => Box::new(Cache::new(cache, cache.inner.build(seed)?)?),
            Self::Raid(raid) => {
                // Members that are alike still differ in what is left to chance.
                let members = raid
                    .members
                    .iter()
                    .zip(0..)
                    .map(|(member, n)| member.build(seed.wrapping_add(n)));
                Box::new(Raid::new(raid, members.collect::<Result<_, _>>()?)?)
            }
        })
    }

    /// Bytes of the smallest unit that the part addresses.
    pub fn block(&self) -> u64 {
        match self {
            Self::Disk(disk) => disk.block,
            Self::Ssd(ssd) => ssd.slot,
            Self::Memory(_) => 1,
            Self::Latency(latency) => latency.inner.block(),
            Self::Limit(limit) => limit.inner.block(),
            Self::Server(server) => server.inner.block(),
            Self::Cache(cache) => cache.inner.block(),
            Self::Raid(raid) => raid.members.first().map_or(1, Self::block),
        }
    }
}
