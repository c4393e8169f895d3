//! The table of all settings of an experiment: it serves TOML, `--set`, messages and help. Its rows are in `settings/topics.rs`.

mod cell;
mod consumer;
mod setting;
mod topics;
mod value;
mod values;

pub use self::cell::{CellSpec, DESCRIBING, GroupSpec, cell_label, level_label, own_cells};
pub use self::consumer::Consumer;
use self::setting::rows;
pub use self::setting::{Setting, Topic};
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

/// Total number of rows.
const fn count(topics: &[&[Setting]]) -> usize {
    let mut rows = 0;
    let mut topic = 0;
    while topic < topics.len() {
        rows += topics[topic].len();
        topic += 1;
    }
    rows
}

/// The rows named in `first` in that order, then the others in the order of their topics. A name without a row, or one listed
/// twice, does not compile.
const fn in_order<const N: usize>(topics: &[&[Setting]], first: &[&str]) -> [Setting; N] {
    let mut rows = [topics[0][0]; N];
    let mut placed = 0;
    let mut topic = 0;
    while topic < topics.len() {
        let mut row = 0;
        while row < topics[topic].len() {
            let setting = topics[topic][row];
            match position(first, setting.name) {
                Some(place) => rows[place] = setting,
                None => {
                    rows[first.len() + placed] = setting;
                    placed += 1;
                }
            }
            row += 1;
        }
        topic += 1;
    }
    assert!(first.len() + placed == N, "a name in the order has no row");
    rows
}

const fn position(names: &[&str], name: &str) -> Option<usize> {
    let mut place = 0;
    while place < names.len() {
        if equal(names[place].as_bytes(), name.as_bytes()) {
            return Some(place);
        }
        place += 1;
    }
    None
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

#[cfg(test)]
mod tests;
