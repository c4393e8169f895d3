//! The definition of a solid-state disk.

use serde::{Deserialize, Serialize};

/// A solid-state disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdDefinition {
    /// Bytes of a slot, the unit of the mapping table.
    #[serde(default = "slot_of_4k")]
    pub slot: u64,
    /// What the flash is made of.
    pub flash: Flash,
    /// Physical over logical capacity, less 1: 0.07 leaves 7 % more flash than the host can address.
    pub over_provisioning: f64,
    /// The choice of the block that is collected.
    #[serde(default)]
    pub collection: Collection,
    /// Free blocks of a die below which one is collected.
    #[serde(default = "two")]
    pub free_blocks: u32,
    /// The way to the host and the controller's work.
    pub controller: Controller,
    /// A part of the flash that takes writes at the speed of one bit per cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slc: Option<Slc>,
}

fn slot_of_4k() -> u64 {
    4096
}

fn two() -> u32 {
    2
}

/// What the flash is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flash {
    /// Channels.
    pub channels: u32,
    /// Chips of a channel.
    pub chips: u32,
    /// Dies of a chip.
    pub dies: u32,
    /// Planes of a die. All planes of a die work on the same page at a time.
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
    /// Read times vary evenly by this share of themselves to both sides.
    #[serde(default)]
    pub read_spread: f64,
    /// Rate of a channel, in MB/s.
    pub channel_mb_s: f64,
}

/// The choice of the block that is collected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Collection {
    /// The block with the least valid data.
    #[default]
    Greedy,
    /// The most of age times invalid share over twice the valid share.
    CostBenefit,
    /// The block that was filled first.
    Fifo,
}

/// The way to the host and the controller's work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// Rate of the link in each direction, in MB/s.
    pub link_mb_s: f64,
    /// Reads and writes share the link's rate.
    #[serde(default)]
    pub half_duplex: bool,
    /// Time of each command that no other command can use, in microseconds.
    #[serde(default)]
    pub command_us: f64,
    /// What a read of one slot takes besides flash and link, in microseconds.
    pub read_us: f64,
    /// What a longer read takes besides flash and link, in microseconds.
    pub long_read_us: f64,
    /// What a write takes before its data is in the buffer, in microseconds.
    pub write_us: f64,
    /// The same for each of its slots.
    #[serde(default)]
    pub write_slot_us: f64,
    /// Bytes of the write buffer. Writes complete when their data is in it.
    pub buffer: u64,
    /// Bytes read ahead of a sequential stream; 0: none.
    #[serde(default)]
    pub read_ahead: u64,
    /// Reads of what was never written go to the flash too.
    #[serde(default = "yes")]
    pub read_unwritten: bool,
}

fn yes() -> bool {
    true
}

/// A part of the flash that takes writes at the speed of one bit per cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slc {
    /// Bytes that it always holds.
    #[serde(default)]
    pub fixed: u64,
    /// Bytes that it holds for each byte that the host has not written.
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
