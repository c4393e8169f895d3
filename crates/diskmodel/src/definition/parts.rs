//! The parts of models; a part may contain parts.

use serde::{Deserialize, Serialize};

use crate::definition::disk::DiskDefinition;
use crate::definition::ssd::SsdDefinition;

/// A part of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartDefinition {
    /// A hard disk.
    Disk(Box<DiskDefinition>),
    /// A solid-state disk.
    Ssd(Box<SsdDefinition>),
    /// Storage without latency, of this many bytes.
    Memory(u64),
    /// Adds a fixed time to another part.
    Latency(Box<LatencyDefinition>),
    /// Limits rate and bursts of another part.
    Limit(Box<LimitDefinition>),
    /// Limits the concurrency of another part; further requests wait in order.
    Server(Box<ServerDefinition>),
    /// A cache for another part.
    Cache(Box<CacheDefinition>),
    /// An array.
    Raid(Box<RaidDefinition>),
}

impl PartDefinition {
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

/// Adds a fixed time to another part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyDefinition {
    /// Added to each read, in microseconds.
    pub read_us: f64,
    /// Added to each write, flush and trim, in microseconds.
    pub write_us: f64,
    /// The part it is added to.
    pub inner: PartDefinition,
}

/// A rate with bursts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Units per second without credits.
    pub sustained: f64,
    /// Units per second while credits last; absent: the sustained rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<f64>,
    /// Credits of a full bucket, in units. The model starts with a full one.
    #[serde(default)]
    pub credits: f64,
}

/// Limits rate and bursts of another part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitDefinition {
    /// Reads and writes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Rate>,
    /// A longer request counts as one for each started unit of so many bytes; 0: as one.
    #[serde(default)]
    pub request_bytes: u64,
    /// Bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Rate>,
    /// The limited part.
    pub inner: PartDefinition,
}

/// Limits the concurrency of a part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerDefinition {
    /// Most concurrent requests; 1 makes a serial server.
    pub slots: u32,
    /// The part that serves them.
    pub inner: PartDefinition,
}

/// A write-through cache for another part, filled by reads and writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheDefinition {
    /// Bytes of the cache.
    pub bytes: u64,
    /// Bytes of a line. A read that misses fetches whole lines.
    pub line: u64,
    /// Time of a read that the cache serves, in microseconds.
    pub hit_us: f64,
    /// The cached part.
    pub inner: PartDefinition,
}

/// The distribution of data in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Chunks are distributed over the members in turn.
    Striped,
    /// Every member holds all data; a read goes to the one with the fewest requests.
    Mirrored,
    /// Chunks are distributed over the members in turn; one of each row holds the parity of the others (left-symmetric).
    Parity,
}

/// An array.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RaidDefinition {
    /// The distribution of data.
    pub level: Level,
    /// Bytes of a chunk.
    #[serde(default = "chunk_of_64k")]
    pub chunk: u64,
    /// The members. The smallest determines the size used of each.
    pub members: Vec<PartDefinition>,
}

fn chunk_of_64k() -> u64 {
    64 << 10
}
