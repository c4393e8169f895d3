//! The parts of models; a part may contain parts.

use serde::{Deserialize, Serialize};

use super::{SLOT, SsdDefinition};
use crate::definition::disk::{DiskDefinition, WriteBack};

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
    /// A cache for writes in front of another part.
    WriteBack(Box<WriteBackDefinition>),
    /// A range of another part that is slower than the rest.
    Region(Box<RegionDefinition>),
    /// Times of another part that vary by chance.
    Noise(Box<NoiseDefinition>),
    /// Times at which another part stands still.
    Stall(Box<StallDefinition>),
    /// A bound on the length of the requests to another part; longer ones are split.
    Split(Box<SplitDefinition>),
}

impl PartDefinition {
    /// The part inside a part that changes another; `None` for a drive and for memory.
    fn inner(&self) -> Option<&Self> {
        match self {
            Self::Disk(_) | Self::Ssd(_) | Self::Memory(_) => None,
            Self::Latency(latency) => Some(&latency.inner),
            Self::Limit(limit) => Some(&limit.inner),
            Self::Server(server) => Some(&server.inner),
            Self::Cache(cache) => Some(&cache.inner),
            Self::WriteBack(cache) => Some(&cache.inner),
            Self::Region(region) => Some(&region.inner),
            Self::Noise(noise) => Some(&noise.inner),
            Self::Stall(stall) => Some(&stall.inner),
            Self::Split(split) => Some(&split.inner),
        }
    }

    /// Bytes of the smallest unit that the part addresses.
    pub fn block(&self) -> u64 {
        match self {
            Self::Disk(disk) => disk.block,
            Self::Ssd(_) => SLOT,
            _ => self.inner().map_or(1, Self::block),
        }
    }

    /// Whether the drive inside has platters; `None` without a drive.
    pub fn is_rotational(&self) -> Option<bool> {
        match self {
            Self::Disk(_) => Some(true),
            Self::Ssd(_) => Some(false),
            _ => self.inner()?.is_rotational(),
        }
    }

    /// Whether writes can complete before their data is on the medium: what the kernel calls `write back` of a real disk.
    pub fn has_write_cache(&self) -> bool {
        match self {
            Self::Disk(disk) => disk.buffer.write_back != WriteBack::Off,
            Self::Ssd(ssd) => ssd.controller.buffer > 0,
            Self::WriteBack(_) => true,
            _ => self.inner().is_some_and(Self::has_write_cache),
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
    /// Bytes of a unit: a request counts once for each unit that it starts; 0: every request counts once.
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

/// A cache for writes in front of a part. A write completes when it is in the cache. The cache passes writes
/// and trims on, one after the other, in the order they came. A flush waits for all before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteBackDefinition {
    /// Bytes of the cache. Writes wait for room in it, in the order they came; one that is longer waits for an empty cache.
    pub bytes: u64,
    /// Time of a write that finds room, and of a read of nothing but cached blocks, in microseconds.
    pub hit_us: f64,
    /// Rate at which writes are passed on at most, in MB/s; absent: as fast as the inner part takes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_mb_s: Option<f64>,
    /// The part that the cache stands in front of.
    pub inner: PartDefinition,
}

/// A range of a part that is slower than the rest, for the reads and writes that touch it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionDefinition {
    /// First byte of the range.
    pub start: u64,
    /// Bytes of the range.
    pub bytes: u64,
    /// Factor on the time of a request, waiting in the inner part included.
    #[serde(default = "one")]
    pub factor: f64,
    /// Added to each read, in microseconds.
    #[serde(default)]
    pub read_us: f64,
    /// Added to each write, in microseconds.
    #[serde(default)]
    pub write_us: f64,
    /// The part that the range belongs to.
    pub inner: PartDefinition,
}

fn one() -> f64 {
    1.0
}

/// Times of a part that vary by chance: everything that happens in the part takes a factor times as long.
///
/// The factor is log-normal with a median of 1. With one request at a time, the service time of each request
/// has its own factor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoiseDefinition {
    /// Standard deviation of the logarithm of the factor. It is drawn anew whenever a request arrives.
    #[serde(default)]
    pub sigma: f64,
    /// Standard deviation of the logarithm of a second factor, which stays for `drift_ms`.
    #[serde(default)]
    pub drift_sigma: f64,
    /// How long the second factor stays, in milliseconds.
    #[serde(default = "a_second_in_ms")]
    pub drift_ms: f64,
    /// The part whose times vary.
    pub inner: PartDefinition,
}

fn a_second_in_ms() -> f64 {
    1_000.0
}

/// Times at which a part stands still: requests under way go on afterwards, and those that arrive wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StallDefinition {
    /// How long a stall takes, in milliseconds.
    pub stall_ms: f64,
    /// Requests from one stall to the next: a stall begins with the arrival of the last of them; 0: none begins
    /// so.
    #[serde(default)]
    pub every: u64,
    /// Mean time from the end of one stall to the start of the next, in milliseconds, for stalls that begin by
    /// chance whatever the load (exponentially distributed); absent: no such stalls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ms: Option<f64>,
    /// The part that stands still.
    pub inner: PartDefinition,
}

/// A bound on the length of the requests to a part. A longer read or write is split, and completes with its last piece.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitDefinition {
    /// Most bytes of a request. All pieces are passed on at once, the first ones of this length.
    pub bytes: u64,
    /// The part that serves the pieces.
    pub inner: PartDefinition,
}
