//! The parts of models; a part may contain parts, and a hard disk has every value that affects its timing.

use serde::{Deserialize, Serialize};

use super::{SLOT, SsdDefinition};

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

/// A hard disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskDefinition {
    /// Bytes of a logical block.
    #[serde(default = "block_of_512")]
    pub block: u64,
    /// The placement of blocks.
    pub geometry: Geometry,
    /// The movement of heads and platters.
    pub mechanics: Mechanics,
    /// The times of the controller.
    #[serde(default)]
    pub overhead: Overhead,
    /// The transfer between buffer and host.
    #[serde(default)]
    pub bus: Bus,
    /// The buffer and its use.
    #[serde(default)]
    pub buffer: Buffer,
    /// The choice of the next request.
    #[serde(default)]
    pub queue: Queue,
}

fn block_of_512() -> u64 {
    512
}

/// The placement of blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Geometry {
    /// Surfaces that hold data; one head each.
    pub surfaces: u32,
    /// Cylinders, used or not.
    pub cylinders: u32,
    /// Whether every second cylinder of a zone is filled from the last head to the first, so that the head stays where the cylinder
    /// changes; the first cylinder of each zone goes forward.
    #[serde(default)]
    pub serpentine: bool,
    /// The use of spares.
    #[serde(default)]
    pub spares: Sparing,
    /// Cylinders that share spares, with `spares = "range"`.
    #[serde(default = "one_cylinder")]
    pub range: u32,
    /// The zones, outermost first.
    pub zone: Vec<Zone>,
}

fn one_cylinder() -> u32 {
    1
}

/// The use of spares. Slipped places hold no block: the following blocks move towards the spares of their unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sparing {
    /// No spares.
    #[default]
    None,
    /// Whole tracks at the end of a zone; slips name tracks.
    Tracks,
    /// Sectors at the end of each track.
    Track,
    /// Sectors at the end of each range of cylinders.
    Range,
    /// Sectors at the end of each zone.
    Zone,
}

/// Consecutive cylinders whose tracks have the same number of sectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// First and last cylinder.
    pub cylinders: [u32; 2],
    /// Sectors of a track.
    pub sectors: u32,
    /// Position of the first sector of the zone, in sectors after the index.
    #[serde(default)]
    pub offset: f64,
    /// Track skew, in sectors: the offset of a track's start against the start of the track before, in the same
    /// cylinder.
    #[serde(default)]
    pub track_skew: f64,
    /// Cylinder skew, in sectors: the offset of a track's start against the start of the track before, where
    /// the cylinder changes.
    #[serde(default)]
    pub cylinder_skew: f64,
    /// Blocks at the front that hold no data of the host.
    #[serde(default)]
    pub reserved: u64,
    /// Spares of each unit: tracks or sectors.
    #[serde(default)]
    pub spares: u64,
    /// Places (sectors or tracks, counted from the start of the zone) that the order of blocks leaves out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slips: Vec<u64>,
}

/// The movement of heads and platters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mechanics {
    /// Revolutions per minute.
    pub rpm: f64,
    /// Time from one cylinder to another, for reads.
    pub seek: Seek,
    /// Time to change the head, in ms. Where the cylinder changes too, the longer time counts.
    pub head_switch_ms: f64,
    /// Time that a write adds to a seek or a change of head, in ms; may be negative.
    #[serde(default)]
    pub write_settle_ms: f64,
    /// Fixed time of every access to the medium, in ms, instead of all other mechanics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constant_access_ms: Option<f64>,
}

/// Time from one cylinder to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seek {
    /// Measured `[cylinders, ms]`, with straight lines between them and beyond the last.
    Measured(Vec<[f64; 2]>),
    /// Short seeks by the square root of the distance, long ones by the distance.
    Curve(SeekCurve),
    /// One cylinder, the average and the full stroke, in ms, as `a sqrt(d-1) + b (d-1) + c`.
    Lee([f64; 3]),
}

/// `short[0] + short[1] sqrt(d)` ms for distances below `limit`, `long[0] + long[1] d` ms from there on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeekCurve {
    /// The first distance of the long form, in cylinders.
    pub limit: u32,
    /// Constant and factor of the square root.
    pub short: [f64; 2],
    /// Constant and factor of the distance.
    pub long: [f64; 2],
    /// Times of the first distances (1, 2, ...), in ms, instead of the formula.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first: Vec<f64>,
}

/// The times of the controller, in ms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Overhead {
    /// A command that the buffer serves: `[after a read, after a write]`.
    pub read_hit: [f64; 2],
    /// A read that needs the medium: `[after a read, after a write]`.
    pub read_miss: [f64; 2],
    /// A write that completes from the buffer: `[after a read, after a write]`.
    pub write_hit: [f64; 2],
    /// A write that completes on the medium: `[after a read, after a write]`.
    pub write_miss: [f64; 2],
    /// End of a read.
    pub read_complete: f64,
    /// End of a write.
    pub write_complete: f64,
    /// Before data moves over the bus.
    pub data_preparation: f64,
    /// Taking the bus again.
    pub reselect: f64,
    /// Taking the bus again after an extra disconnect.
    pub reselect_again: f64,
    /// Leaving the bus during a read: `[after a read, after a write]`.
    pub read_disconnect: [f64; 2],
    /// Leaving the bus during a write.
    pub write_disconnect: f64,
    /// The extra disconnect of a write that follows another write without continuing it; absent for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_disconnect: Option<ExtraDisconnect>,
    /// The shortest time from the command to landing, for a write that continues no other.
    pub write_seek_least: f64,
}

/// The extra disconnect of some drives before a write's data, in ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtraDisconnect {
    /// The command.
    pub command: f64,
    /// Leaving the bus.
    pub disconnect: f64,
    /// Off the bus.
    pub pause: f64,
    /// Leaving the bus after the data.
    pub disconnect_again: f64,
    /// Time from the end of the command to the start of the seek; may be negative.
    pub seek_delay: f64,
}

/// The transfer between buffer and host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bus {
    /// Time of a block to the host, in ms.
    pub read_block_ms: f64,
    /// Time of a block from the host, in ms.
    pub write_block_ms: f64,
    /// The bus is in use from the first data of a read to its last.
    pub hold_reads: bool,
    /// The bus is in use from command to completion.
    pub never_disconnect: bool,
}

/// The buffer and its use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Buffer {
    /// Number of segments; each holds one run of blocks.
    pub segments: u32,
    /// Blocks of a segment.
    pub segment_blocks: u64,
    /// One segment is for writes only.
    pub write_segment: bool,
    /// How far read-ahead goes after the requested data.
    pub read_ahead: ReadAhead,
    /// Most blocks read ahead after the request; 0: a whole segment.
    pub read_ahead_most: u64,
    /// Read-ahead may replace the request's own data; otherwise a whole segment holds both.
    pub read_ahead_over_request: bool,
    /// A read hit starts read-ahead at the end of its segment, if the heads are idle.
    pub read_ahead_after_hit: bool,
    /// Read-ahead serves a read whose first block it will reach; otherwise it stops, and the heads seek.
    pub almost_hits: bool,
    /// Share of the request that is in the buffer before a read takes the bus again.
    pub read_watermark: f64,
    /// A read starts with whichever of its sectors comes first.
    pub read_on_arrival: bool,
    /// A write starts with whichever of its sectors comes first.
    pub write_on_arrival: bool,
    /// Blocks that pass the head before the requested ones are kept.
    pub keep_passing: bool,
    /// Read-ahead can stop in the middle of a sector; otherwise at its end.
    pub stop_within_sector: bool,
    /// Blocks in the buffer before the heads write the first, as `[blocks of the write, blocks needed]`, ascending: the
    /// last step that a write reaches counts; one block where none does. A write with fewer blocks needs all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write_start: Vec<[u64; 2]>,
    /// When a write completes.
    pub write_back: WriteBack,
    /// Bytes of accepted writes that may wait for the medium, with `write_back = "cache"`.
    pub write_back_bytes: u64,
    /// The heads turn to the next request once the medium has delivered or accepted the data; otherwise when the host has received the
    /// completion.
    pub seek_before_completion: bool,
}

impl Default for Buffer {
    fn default() -> Self {
        Self {
            segments: 1,
            segment_blocks: 256,
            write_segment: false,
            read_ahead: ReadAhead::Segment,
            read_ahead_most: 0,
            read_ahead_over_request: true,
            read_ahead_after_hit: false,
            almost_hits: false,
            read_watermark: 0.0,
            read_on_arrival: false,
            write_on_arrival: false,
            keep_passing: false,
            stop_within_sector: false,
            write_start: Vec::new(),
            write_back: WriteBack::Off,
            write_back_bytes: 0,
            seek_before_completion: false,
        }
    }
}

/// How far read-ahead goes after the requested data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadAhead {
    /// No read-ahead.
    None,
    /// Read-ahead ends with the track.
    Track,
    /// Until the segment is full.
    #[default]
    Segment,
    /// Read-ahead ends with the track, or with the next track when the reads came from the track before.
    NextTrack,
}

/// When a write completes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteBack {
    /// When its data is on the medium.
    #[default]
    Off,
    /// When its data is in the buffer, if nothing else waits and the heads are idle or it continues the write in progress.
    Sequential,
    /// When its data is in the buffer, if the heads are idle or it continues the write in progress.
    One,
    /// When its data is in the buffer, unless `write_back_bytes` are used up.
    Cache,
}

/// The choice of the next request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Queue {
    /// The criterion.
    pub policy: Policy,
    /// Most requests in the drive; 0: unlimited. Further ones wait outside.
    pub depth: u32,
    /// The longest time that a request may be passed over, in ms; 0: unlimited.
    pub patience_ms: f64,
}

/// The criterion for the next request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The order of arrival.
    #[default]
    Fifo,
    /// The one that the head reaches first, including seek and rotation.
    Sptf,
}
