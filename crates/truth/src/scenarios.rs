//! The truth table: every scenario, with the expected answer of iolab.

mod cache;
mod containers;
mod devices;
mod faults;
mod speed;
mod verify;

pub use cache::*;
pub use containers::*;
pub use devices::*;
pub use faults::*;
pub use speed::*;
pub use verify::*;

use crate::scene::Scene;
use crate::system::Made;
use crate::workload::Workload;

/// One row of the truth table.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// Name of the row.
    pub name: &'static str,
    /// Truth about the target.
    pub truth: &'static str,
    /// Makes the target.
    pub build: fn() -> Made<Scene>,
    /// The workload.
    pub workload: Workload,
    /// The expected answer.
    pub expect: Expect,
}

/// The expected answer.
#[derive(Debug, Clone, Copy)]
pub struct Expect {
    /// Exit code of the run.
    pub code: i32,
    /// The possible origins of every trial's bytes. Empty where no trial succeeds, or the origin depends on chance.
    pub served_by: &'static [&'static str],
    /// The exact flags of the cell, apart from [`MACHINE`].
    pub flags: &'static [&'static str],
    /// Phrases that the run must print.
    pub says: &'static [&'static str],
}

/// Flags about the test machine rather than the target, which may occur with any scenario. With
/// `IOLAB_TRUTH_QUIET`, for a machine without other load, the tests do not permit them. The time of a sync
/// after a trial depends on the machine's disks.
pub const MACHINE: &[&str] = &[
    "cpu contended", "steal", "clock cost", "other traffic", "suspended", "cached",
];

impl Expect {
    /// Success, no flags, all bytes from the device.
    pub const CLEAN: Self = Self {
        code: 0,
        served_by: &["device"],
        flags: &[],
        says: &[],
    };

    /// A FUSE file system without errors, whose storage iolab cannot know.
    pub const UNKNOWN: Self = Self {
        served_by: &["unknown"],
        ..Self::CLEAN
    };
}

/// Every scenario, in the order of the table.
pub const ALL: &[&Scenario] = &[
    &DIRECT_READS, &COLD_READS, &HOT_READS, &DIRECT_WRITES, &BUFFERED_WRITES, &HOLE, &UNWRITTEN,
    &TMPFS, &DEV_ZERO, &LOWER_HOT, &LOWER_COLD, &LOWER_DIRECT, &LOWER_MAPPED, &UPPER_HOT,
    &UPPER_COLD, &UPPER_BUFFERED_WRITES, &UPPER_IN_MEMORY, &NESTED_HOT, &BOUND_HOT, &HIDDEN_HOT,
    &HIDDEN_COLD, &HIDDEN_BUFFERED_WRITES, &STRANGERS_HOT, &STRANGERS_COLD, &LOOP_IN_MEMORY,
    &LOOP_CACHED, &LOOP_DIRECT, &REFUSES_DIRECT, &IGNORES_DIRECT, &COMPRESSED_ZEROS,
    &COMPRESSED_NOISE, &THROTTLED, &NEIGHBOUR, &BREAKS, &USER_SPACE, &USER_SPACE_BUFFERED,
    &DELAYED, &SERIAL, &STEP, &SLOWS, &DRIFT, &TWO_MODES, &SHORT, &FROZEN, &FAILS_AT, &FULL,
    &STALL_CLOSED, &STALL_OPEN, &FORGETS, &FORGETS_SYNCED, &KEEPS, &CORRUPTS, &MISPLACES, &DROPS,
    &LOSES, &TEARS, &CORRUPTS_UNSEEN,
];
