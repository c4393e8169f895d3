//! What models are made of. Parts hold parts: all of them are here.

use serde::{Deserialize, Serialize};

use crate::definition::disk::DiskDefinition;
use crate::definition::ssd::SsdDefinition;

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
            Self::WriteBack(cache) => cache.inner.block(),
            Self::Region(region) => region.inner.block(),
            Self::Noise(noise) => noise.inner.block(),
            Self::Stall(stall) => stall.inner.block(),
            Self::Split(split) => split.inner.block(),
            Self::Raid(raid) => raid.members.first().map_or(1, Self::block),
        }
    }
}

/// A fixed time on top of another part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyDefinition {
    /// Added to each read, in microseconds.
    pub read_us: f64,
    /// Added to each write, flush and trim, in microseconds.
    pub write_us: f64,
    /// What it is added to.
    pub inner: PartDefinition,
}

/// A rate with bursts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Units per second that are there for ever.
    pub sustained: f64,
    /// Units per second while credits last; absent: the sustained rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<f64>,
    /// Credits of a full bucket, in units. The model starts with a full one.
    #[serde(default)]
    pub credits: f64,
}

/// Rates and bursts in front of another part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitDefinition {
    /// Reads and writes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Rate>,
    /// A longer request counts as several, one for each begun unit of so many bytes; 0: as one.
    #[serde(default)]
    pub request_bytes: u64,
    /// Bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Rate>,
    /// What is limited.
    pub inner: PartDefinition,
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

/// A cache in front of another part. Reads and writes fill it; writes go through it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheDefinition {
    /// Bytes of the cache.
    pub bytes: u64,
    /// Bytes of a line. A read that misses fetches whole lines.
    pub line: u64,
    /// Time of a read that the cache serves, in microseconds.
    pub hit_us: f64,
    /// What it stands in front of.
    pub inner: PartDefinition,
}

/// A cache for writes in front of a part. A write completes when it is in the cache; the cache passes writes and trims on, one
/// after the other, in the order they came. A flush waits for those before it.
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
    /// What it stands in front of.
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
    /// What the time of a request is multiplied by, waiting in the inner part included.
    #[serde(default = "one")]
    pub factor: f64,
    /// Added to each read, in microseconds.
    #[serde(default)]
    pub read_us: f64,
    /// Added to each write, in microseconds.
    #[serde(default)]
    pub write_us: f64,
    /// What the range is a part of.
    pub inner: PartDefinition,
}

fn one() -> f64 {
    1.0
}

/// Times of a part that vary by chance: all that happens in it takes a factor times as long.
///
/// The factor is log-normal with a median of 1. With one request at a time, it is that of its service time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoiseDefinition {
    /// Standard deviation of the logarithm of the factor. It is drawn anew whenever a request arrives.
    #[serde(default)]
    pub sigma: f64,
    /// The same for a second factor, which stays for `drift_ms`.
    #[serde(default)]
    pub drift_sigma: f64,
    /// How long the second factor stays, in milliseconds.
    #[serde(default = "a_second_in_ms")]
    pub drift_ms: f64,
    /// What varies.
    pub inner: PartDefinition,
}

fn a_second_in_ms() -> f64 {
    1_000.0
}

/// Times at which a part stands still: what is under way goes on afterwards, what arrives waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StallDefinition {
    /// How long a stall takes, in milliseconds.
    pub stall_ms: f64,
    /// A stall begins whenever so many requests have arrived, with the last of them; 0: none does.
    #[serde(default)]
    pub every: u64,
    /// Stalls begin by chance, whatever is asked for: mean time from the end of one to the start of the next, in milliseconds
    /// (exponentially distributed); absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ms: Option<f64>,
    /// What stands still.
    pub inner: PartDefinition,
}

/// A bound on the length of the requests to a part. A longer read or write is split, and completes with its last piece.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitDefinition {
    /// Most bytes of a request. All pieces are passed on at once, the first ones of this length.
    pub bytes: u64,
    /// What serves the pieces.
    pub inner: PartDefinition,
}

/// How an array spreads data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Chunks go round the members.
    Striped,
    /// Every member holds everything; a read goes to the one with the fewest requests.
    Mirrored,
    /// Chunks go round the members, one of each row holding the parity of the others (left-symmetric).
    Parity,
}

/// An array.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RaidDefinition {
    /// How data is spread.
    pub level: Level,
    /// Bytes of a chunk.
    #[serde(default = "chunk_of_64k")]
    pub chunk: u64,
    /// The members. The smallest decides what each holds.
    pub members: Vec<PartDefinition>,
}

fn chunk_of_64k() -> u64 {
    64 << 10
}
