//! The table of all settings of an experiment: it serves TOML, `--set`, messages and help. Its rows are in `settings/topics.rs`.

mod cell;
mod consumer;
mod setting;
mod sorted_table;
mod topics;
mod value;
mod values;

pub use self::consumer::Consumer;
pub use self::cell::{CellSpec, DESCRIBING, GroupSpec, cell_label, level_label, own_cells};
use self::setting::rows;
pub use self::setting::{Setting, Topic};
use self::sorted_table::{count, in_order};
pub use self::value::{Value, ValueKind};

/// Every setting, in the order of the columns of run files and exports.
pub static SETTINGS: &[Setting] = &in_order::<{ count(TOPICS) }>(TOPICS, COLUMN_ORDER);

/// The rows of each topic.
const TOPICS: &[&[Setting]] = &[
    topics::REQUESTS,
    topics::REGION,
    topics::LOAD,
    topics::DURABILITY,
    topics::CACHE,
    topics::DATA,
    topics::PROCESSORS,
    topics::BOUNDS,
    topics::RECORDS,
    topics::PROGRAMS,
];

/// Names as words, many a line: rustfmt would give each string a line of its own.
macro_rules! names {
    ($($name:ident)+) => {
        &[$(stringify!($name)),+]
    };
}

/// Existing columns of files and exports keep this order. A new setting is not listed: its column comes last.
const COLUMN_ORDER: &[&str] = names! {
    backend pattern bs bs_mix skip offset region threads cpus placement depth batch read_percent trim_percent workload layout
    descriptors sync sync_every allocate cache first_offset buffer_init buffer_memory compressible verify bytes time rate arrivals
    thinktime latency hardware_counters sqpoll iopoll fadvise active linkage command tool target ranks hosts shift
};

#[cfg(test)]
mod tests;
