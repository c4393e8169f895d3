//! The truth table: every scenario, and what iolab must say of it.

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
    /// Its name.
    pub name: &'static str,
    /// What is true of the target, in words.
    pub truth: &'static str,
    /// Makes the target.
    pub build: fn() -> Made<Scene>,
    /// What is asked of it.
    pub workload: Workload,
    /// What iolab must answer.
    pub expect: Expect,
}

/// What iolab must answer.
#[derive(Debug, Clone, Copy)]
pub struct Expect {
    /// Exit code of the run.
    pub code: i32,
    /// Where the bytes of every trial come from: one of these. None where no trial succeeds, or which do is left to chance.
    pub served_by: &'static [&'static str],
    /// Flags of the cell: these and no others, save [`MACHINE`].
    pub flags: &'static [&'static str],
    /// What the run must print.
    pub says: &'static [&'static str],
}

/// Flags that tell of the machine the tests run on, not of the target, and may come with any scenario. On a machine that
/// does nothing else they must not come either: the tests hold it to that where `IOLAB_TRUTH_QUIET` is set.
pub const MACHINE: &[&str] = &["cpu contended", "clock cost", "other traffic", "suspended"];

impl Expect {
    /// A run that succeeds without any flag, its bytes from the device.
    pub const CLEAN: Self = Self {
        code: 0,
        served_by: &["device"],
        flags: &[],
        says: &[],
    };

    /// A file system in user space without any fault: iolab cannot know what is behind it, and says so.
    pub const UNKNOWN: Self = Self {
        served_by: &["unknown"],
        ..Self::CLEAN
    };
}

/// Every scenario, in the order of the table.
pub const ALL: &[&Scenario] = &[
    &DIRECT_READS,
    &COLD_READS,
    &HOT_READS,
    &DIRECT_WRITES,
    &BUFFERED_WRITES,
    &HOLE,
    &UNWRITTEN,
    &TMPFS,
    &DEV_ZERO,
    &LOWER_HOT,
    &LOWER_COLD,
    &LOWER_DIRECT,
    &LOWER_MAPPED,
    &UPPER_HOT,
    &UPPER_COLD,
    &UPPER_BUFFERED_WRITES,
    &UPPER_IN_MEMORY,
    &NESTED_HOT,
    &BOUND_HOT,
    &HIDDEN_HOT,
    &HIDDEN_COLD,
    &HIDDEN_BUFFERED_WRITES,
    &STRANGERS_HOT,
    &STRANGERS_COLD,
    &LOOP_IN_MEMORY,
    &LOOP_CACHED,
    &LOOP_DIRECT,
    &REFUSES_DIRECT,
    &IGNORES_DIRECT,
    &COMPRESSED_ZEROS,
    &COMPRESSED_NOISE,
    &THROTTLED,
    &NEIGHBOUR,
    &BREAKS,
    &USER_SPACE,
    &USER_SPACE_BUFFERED,
    &DELAYED,
    &SERIAL,
    &STEP,
    &SLOWS,
    &DRIFT,
    &TWO_MODES,
    &SHORT,
    &FROZEN,
    &FAILS_AT,
    &FULL,
    &STALL_CLOSED,
    &STALL_OPEN,
    &FORGETS,
    &FORGETS_SYNCED,
    &KEEPS,
    &CORRUPTS,
    &MISPLACES,
    &DROPS,
    &LOSES,
    &TEARS,
    &CORRUPTS_UNSEEN,
];
