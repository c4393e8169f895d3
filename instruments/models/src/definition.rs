//! Models as plain data and as text, and the bounds of their numbers.
//!
//! A [`Definition`] describes a disk in TOML; [`ENTRIES`] are the built-in ones.
//! [`build`](crate::build()) makes a model of a definition.
//!
//! Within the bounds, a model needs limited memory and its times cannot overflow: a request takes at most hours, and is no
//! longer than one system call transfers. A number without a row is refused, so that none is forgotten.

pub mod parts;

use serde::{Deserialize, Serialize};
use toml::Value;

pub use parts::PartDefinition;

/// A named model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// A short description.
    pub title: String,
    /// The sources of its values.
    pub source: Vec<String>,
    /// The model.
    pub model: PartDefinition,
}

impl Definition {
    /// Reads a definition.
    ///
    /// # Errors
    ///
    /// A message of the TOML reader, with line and column, or the first number outside its bounds.
    pub fn parse(text: &str) -> Result<Self, String> {
        let definition = toml::from_str(text).map_err(|error| error.to_string())?;
        let written = toml::from_str(text).map_err(|error| error.to_string())?;
        check(&written)?;
        Ok(definition)
    }

    /// Bytes of the smallest unit that the model addresses.
    pub fn block(&self) -> u64 {
        self.model.block()
    }
}

/// All built-in models, by kind: the name that users write, and the definition as text.
pub const ENTRIES: &[(&str, &str)] = iolab_plan::definitions![
    "../models/", "atlas10k", "cheetah4lp", "cheetah9lp", "dec-rz26", "hp-97560", "hp-c2247a",
    "hp-c2490a", "hp-c3323a", "sata-7200", "sata-ssd", "nvme-970pro", "mqsim-default",
    "qlc-slc-cached", "cloud-volume",
];

/// The definition of a built-in model as text; `None` for a name that is not in the catalogue.
pub fn built_in(name: &str) -> Option<&'static str> {
    let mut entries = ENTRIES.iter();
    entries.find_map(|(own, text)| (*own == name).then_some(*text))
}

/// A solid-state disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdDefinition {
    /// The flash.
    pub flash: Flash,
    /// Physical over logical capacity, minus 1: with 0.07, 7 % of the flash are not addressable by the host.
    pub over_provisioning: f64,
    /// A die with fewer free blocks collects one: the block with the least valid data.
    #[serde(default = "two")]
    pub free_blocks: u32,
    /// The controller and the link to the host.
    pub controller: Controller,
    /// A part of the flash that is written with one bit per cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slc: Option<Slc>,
}

/// Bytes of a slot, the unit of the mapping table of a solid-state disk.
pub const SLOT: u64 = 4096;

fn two() -> u32 {
    2
}

/// The flash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flash {
    /// Channels.
    pub channels: u32,
    /// Chips of a channel.
    pub chips: u32,
    /// Dies of a chip.
    pub dies: u32,
    /// Planes of a die. All planes of a die access the same page at a time.
    pub planes: u32,
    /// Blocks of a plane.
    pub blocks: u32,
    /// Pages of a block.
    pub pages: u32,
    /// Bytes of a page.
    pub page: u64,
    /// Time to read a page, by its type, in microseconds: page n of a block has type n modulo their number.
    pub read_us: Vec<f64>,
    /// Time to program a page, by its type, in microseconds.
    pub program_us: Vec<f64>,
    /// Time to erase a block, in microseconds.
    pub erase_us: f64,
    /// Rate of a channel, in MB/s.
    pub channel_mb_s: f64,
}

/// The controller and the link to the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// Rate of the link in each direction, in MB/s.
    pub link_mb_s: f64,
    /// Reads and writes share the rate of the link.
    #[serde(default)]
    pub half_duplex: bool,
    /// Time of each command during which no other command is processed, in microseconds.
    #[serde(default)]
    pub command_us: f64,
    /// Time of a read of one slot besides flash and link, in microseconds.
    pub read_us: f64,
    /// Time of a longer read besides flash and link, in microseconds.
    pub long_read_us: f64,
    /// Time of a write before its data is in the buffer, in microseconds.
    pub write_us: f64,
    /// Additional time for each of its slots.
    #[serde(default)]
    pub write_slot_us: f64,
    /// Bytes of the write buffer. Writes complete when their data is in it.
    pub buffer: u64,
    /// Bytes read ahead of a sequential stream; 0: none.
    #[serde(default)]
    pub read_ahead: u64,
}

/// A part of the flash that is written with one bit per cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slc {
    /// Minimum size of the part, bytes.
    #[serde(default)]
    pub fixed: u64,
    /// Additional bytes for each byte that the host has not written.
    #[serde(default)]
    pub of_free: f64,
    /// Time to program a page, in microseconds.
    pub program_us: f64,
    /// Rate at which it is emptied while the drive is idle, in MB/s.
    pub empty_mb_s: f64,
    /// The drive counts as idle this long after its last request, in milliseconds.
    #[serde(default)]
    pub idle_after_ms: f64,
}

/// Longest time of one step of a request, ms.
const STEP_MS: f64 = 10_000.0;

/// Times of steps of a request, ms.
const STEP: [f64; 2] = [0.0, STEP_MS];

/// Times of steps of a request, microseconds.
const PART_US: [f64; 2] = [0.0, STEP_MS * 1e3];

/// Times of one page or block of flash, microseconds.
const FLASH_US: [f64; 2] = [0.0, 1e6];

/// Shortest time of a step that may shorten a request, ms.
const SHORTENED_MS: f64 = -1_000.0;

/// Standard deviations of the logarithm of a time.
const SIGMA: [f64; 2] = [0.0, 2.0];

/// Shortest and longest time between changes that a model makes by itself, ms. After a pause, the model goes
/// through all changes in it one by one: the shortest time bounds that work.
const PERIOD_MS: [f64; 2] = [1.0, 1e9];

/// Times of one block on a bus, ms.
const BLOCK_MS: [f64; 2] = [0.0, 10.0];

/// Slowest and fastest rate, MB/s.
const RATE_MB_S: [f64; 2] = [0.01, 1e9];

/// Rates and credits, units per second.
const RATE: [f64; 2] = [1e-3, 1e18];

/// Bytes of a block, line, page or piece.
const BLOCK: [f64; 2] = [512.0, (1u64 << 30) as f64];

/// Most blocks, sectors or cylinders in a structure that is searched.
const MANY: f64 = (1u64 << 24) as f64;

/// Bytes of a buffer or a cache.
const BUFFER: [f64; 2] = [0.0, (1u64 << 50) as f64];

/// Places of a zone.
const PLACES: [f64; 2] = [0.0, (1u64 << 54) as f64];

/// Numbers of channels, chips, dies, planes or surfaces.
const FEW: [f64; 2] = [1.0, 1024.0];

/// Positions and seek times. Building the disk checks the seek curve for every distance.
const WIDE: [f64; 2] = [-1e9, 1e9];

/// Counts of anything.
const ANY: [f64; 2] = [0.0, i64::MAX as f64];

/// Most parts of a model.
const DEPTH_MAX: usize = 16;

/// Tables of a definition, the numbers in them, and their bounds.
const BOUNDS: &[(&str, &str, [f64; 2])] = &[
    ("disk", "block", BLOCK),
    ("geometry", "surfaces", FEW),
    ("geometry", "cylinders", [1.0, MANY]),
    ("geometry", "range", [0.0, MANY]),
    ("zone", "cylinders", ANY),
    ("zone", "sectors", [1.0, (1u64 << 20) as f64]),
    ("zone", "offset track_skew cylinder_skew", WIDE),
    ("zone", "reserved slips", PLACES),
    ("zone", "spares", [0.0, (1u64 << 32) as f64]),
    ("mechanics", "rpm", [60.0, 1e6]),
    ("mechanics", "head_switch_ms constant_access_ms", STEP),
    ("mechanics", "write_settle_ms", [SHORTENED_MS, STEP_MS]),
    ("seek", "measured lee", WIDE),
    ("curve", "limit", ANY),
    ("curve", "short long first", WIDE),
    ("overhead", "read_hit read_miss read_complete", STEP),
    ("overhead", "read_disconnect write_disconnect", STEP),
    ("overhead", "write_hit write_miss write_complete", STEP),
    ("overhead", "write_seek_least data_preparation", STEP),
    ("overhead", "reselect reselect_again", STEP),
    ("extra_disconnect", "command disconnect pause", STEP),
    ("extra_disconnect", "disconnect_again", STEP),
    ("extra_disconnect", "seek_delay", [SHORTENED_MS, STEP_MS]),
    ("bus", "read_block_ms write_block_ms", BLOCK_MS),
    ("buffer", "segments", [0.0, 4096.0]),
    ("buffer", "segment_blocks read_ahead_most", [0.0, MANY]),
    ("buffer", "write_start", [0.0, MANY]),
    ("buffer", "read_watermark", [0.0, 1.0]),
    ("buffer", "write_back_bytes", BUFFER),
    ("queue", "depth", [0.0, (1u64 << 16) as f64]),
    ("queue", "patience_ms", [0.0, 1e9]),
    ("ssd", "over_provisioning", [0.0, 100.0]),
    ("ssd", "free_blocks", [0.0, MANY]),
    ("flash", "channels chips dies planes", FEW),
    ("flash", "blocks", [1.0, MANY]),
    ("flash", "pages", [1.0, (1u64 << 20) as f64]),
    ("flash", "page", BLOCK),
    ("flash", "read_us program_us erase_us", FLASH_US),
    ("flash", "channel_mb_s", RATE_MB_S),
    ("controller", "link_mb_s", RATE_MB_S),
    ("controller", "command_us read_us long_read_us", PART_US),
    ("controller", "write_us", PART_US),
    ("controller", "write_slot_us", FLASH_US),
    ("controller", "buffer", BUFFER),
    ("controller", "read_ahead", [0.0, (1u64 << 30) as f64]),
    ("slc", "fixed", BUFFER),
    ("slc", "of_free", [0.0, 10.0]),
    ("slc", "program_us", FLASH_US),
    ("slc", "empty_mb_s", [0.0, RATE_MB_S[1]]),
    ("slc", "idle_after_ms", [0.0, 1e9]),
    ("", "memory", [1.0, i64::MAX as f64]),
    ("latency", "read_us write_us", PART_US),
    ("limit", "request_bytes", ANY),
    ("requests", "sustained burst", RATE),
    ("requests", "credits", [0.0, RATE[1]]),
    ("bytes", "sustained burst", RATE),
    ("bytes", "credits", [0.0, RATE[1]]),
    ("server", "slots", ANY),
    ("cache", "bytes", BUFFER),
    ("cache", "line", BLOCK),
    ("cache", "hit_us", PART_US),
    ("write-back", "bytes", [1.0, BUFFER[1]]),
    ("write-back", "hit_us", PART_US),
    ("write-back", "drain_mb_s", RATE_MB_S),
    ("noise", "sigma drift_sigma", SIGMA),
    ("noise", "drift_ms", PERIOD_MS),
    ("stall", "stall_ms", STEP),
    ("stall", "every", ANY),
    ("stall", "mean_ms", PERIOD_MS),
    ("split", "bytes", BLOCK),
];

/// Checks the numbers of a definition as it is written.
///
/// # Errors
/// The first number outside its bounds, with these, or too many parts inside each other.
fn check(definition: &toml::Table) -> Result<(), String> {
    definition
        .iter()
        .try_for_each(|(key, value)| check_value("", key, value, 0))
}

/// Checks a value of a table; `depth` parts are around it.
fn check_value(table: &str, key: &str, value: &Value, depth: usize) -> Result<(), String> {
    let depth = depth + usize::from(matches!(key, "model" | "inner"));
    if depth > DEPTH_MAX {
        return Err(format!("a model has at most {DEPTH_MAX} parts"));
    }
    let number = match value {
        Value::Integer(number) => *number as f64,
        Value::Float(number) => *number,
        Value::Array(values) => {
            let mut values = values.iter();
            return values.try_for_each(|value| check_value(table, key, value, depth));
        }
        Value::Table(values) => {
            let mut values = values.iter();
            return values.try_for_each(|(name, value)| check_value(key, name, value, depth));
        }
        Value::String(_) | Value::Boolean(_) | Value::Datetime(_) => return Ok(()),
    };
    // Memory may be any part, and has no table of its own.
    let is_it = |(of, keys, _): &&(&str, &str, [f64; 2])| {
        (*of == table || of.is_empty()) && keys.split(' ').any(|name| name == key)
    };
    match BOUNDS.iter().find(is_it) {
        Some((_, _, [least, most])) if *least <= number && number <= *most => Ok(()),
        Some((_, _, [least, most])) => {
            Err(format!("{key} = {number}: a model takes {least} to {most}"))
        }
        None => Err(format!(
            "{table}.{key} = {number}: no model takes a number here"
        )),
    }
}
