//! Models as plain data and as text.
//!
//! A [`Definition`] describes a disk in TOML; [`ENTRIES`] are the built-in ones.
//! [`build`](crate::build()) makes a model of a definition.
//!
//! Files to begin with: `parts.rs` and `disk.rs` the parts, `check.rs` bounds of their numbers.

mod check;
pub mod disk;
pub mod parts;

use serde::{Deserialize, Serialize};

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
        check::check(&written)?;
        Ok(definition)
    }

    /// The definition as text.
    ///
    /// # Errors
    ///
    /// A value that TOML cannot express (an integer above 2^63).
    pub fn to_toml(&self) -> Result<String, String> {
        toml::to_string(self).map_err(|error| error.to_string())
    }

    /// Bytes of the smallest unit that the model addresses.
    pub fn block(&self) -> u64 {
        self.model.block()
    }
}

/// A built-in model: its name and its definition as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatalogueEntry {
    /// The name that users write.
    pub name: &'static str,
    /// The definition.
    pub text: &'static str,
}

macro_rules! entries {
    ($($name:literal),* $(,)?) => {
        &[$(CatalogueEntry { name: $name, text: include_str!(concat!("../models/", $name, ".toml")) }),*]
    };
}

/// All built-in models, by kind and name.
pub const ENTRIES: &[CatalogueEntry] = entries![
    "atlas10k", "cheetah4lp", "cheetah9lp", "dec-rz26", "hp-97560", "hp-c2247a", "hp-c2490a",
    "hp-c3323a", "sata-7200", "sata-ssd", "nvme-970pro", "mqsim-default", "qlc-slc-cached",
    "cloud-volume",
];

/// The definition of a name; `None` for a name that is not in the catalogue, an error for an invalid definition.
pub fn find(name: &str) -> Option<Result<Definition, String>> {
    ENTRIES
        .iter()
        .find(|entry| entry.name == name)
        .map(|entry| Definition::parse(entry.text))
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
