//! Descriptions of a trial: `sequential reads`, `random durable writes`.

use crate::quantity::format_bytes;
use crate::settings::CellSpec;
use crate::trial::{Allocate, Pattern, SyncPolicy, TrialSpec};

/// The accesses of a trial as a plural noun, without sizes and concurrency.
pub fn in_words(trial: &TrialSpec) -> String {
    let order = order(trial.pattern);
    let writes = match trial.sync {
        _ if !trial.writes_data() => "trims".to_owned(),
        SyncPolicy::None => "writes".to_owned(),
        SyncPolicy::End => "writes with a final fsync".to_owned(),
        _ => "durable writes".to_owned(),
    };
    match trial.read_percent {
        100 => format!("{order}reads"),
        0 => format!("{order}{writes}"),
        reads => format!(
            "{order}accesses ({reads} % reads, {} % {writes})",
            100 - reads
        ),
    }
}

/// The accesses of a cell; of groups that differ each with its name: `reader (random reads) alongside writer (sequential writes)`.
pub fn accesses_of_cell(cell: &CellSpec) -> String {
    of_groups(cell, in_words)
}

/// The requests of a cell as [`requests_in_words`]; of groups each with its name.
pub fn requests_of_cell(cell: &CellSpec) -> String {
    of_groups(cell, requests_in_words)
}

/// Words about each group, said once if they are the same for all.
fn of_groups(cell: &CellSpec, words: impl Fn(&TrialSpec) -> String) -> String {
    cell.shared(&words).unwrap_or_else(|| {
        let groups = cell.named_trials().into_iter();
        let groups =
            groups.map(|(name, trial)| format!("{} ({})", name.unwrap_or_default(), words(trial)));
        groups.collect::<Vec<_>>().join(" alongside ")
    })
}

/// `sequential `, before a noun.
fn order(pattern: Pattern) -> &'static str {
    match pattern {
        Pattern::Seq => "sequential ",
        Pattern::Strided => "strided ",
        Pattern::Reverse => "backward ",
        Pattern::Rand | Pattern::RandReplace => "random ",
        Pattern::Zipf(_) => "Zipf-distributed ",
        Pattern::Pareto(_) => "Pareto-distributed ",
        Pattern::Normal(_) => "normally distributed ",
        Pattern::Zoned(_) => "unevenly random ",
    }
}

/// The requests of a trial with their size, durability and concurrency: `2300-byte sequential writes, each with fdatasync`.
pub fn requests_in_words(trial: &TrialSpec) -> String {
    let size = match trial.bs_mix.is_none() {
        true => size_in_words(trial.bs),
        false => "mixed-size".to_owned(),
    };
    let order = match trial.pattern {
        // The written part already says it.
        Pattern::Seq if trial.read_percent == 0 => "",
        pattern => order(pattern),
    };
    let writes = match (trial.pattern, trial.starts_fresh(), trial.allocate) {
        (Pattern::Seq, true, Some(Allocate::Preallocated)) => {
            "sequential writes to a preallocated file"
        }
        (Pattern::Seq, true, _) => "appends",
        (Pattern::Seq, false, _) => "sequential writes",
        _ => "writes",
    };
    let accesses = match trial.read_percent {
        100 => "reads".to_owned(),
        0 => writes.to_owned(),
        reads => format!("accesses ({reads} % reads, {} % writes)", 100 - reads),
    };
    let which = match trial.read_percent {
        0 => "each",
        _ => "each write",
    };
    let durable = match (trial.writes(), trial.sync) {
        (false, _) => String::new(),
        (true, SyncPolicy::None) => ", never synced".to_owned(),
        (true, SyncPolicy::End) => ", with one fsync at the end".to_owned(),
        (true, sync) => {
            let call = match sync {
                SyncPolicy::Each => "fsync",
                SyncPolicy::Fdatasync => "fdatasync",
                SyncPolicy::Osync => "O_SYNC",
                SyncPolicy::Odsync => "O_DSYNC",
                _ => "RWF_DSYNC",
            };
            match trial.sync_every {
                n if n > 1 && sync.follows_writes() => format!(", with {call} after every {n}"),
                _ => format!(", {which} with {call}"),
            }
        }
    };
    let threads = match trial.threads {
        1 => String::new(),
        n => format!(", by {n} threads"),
    };
    let files = match (trial.files, trial.threads) {
        (None, _) => String::new(),
        (Some(files), _) if files.count == 1 => String::new(),
        (Some(files), 1) => format!(", in {} files", files.count),
        (Some(files), _) => format!(" in {} files each", files.count),
    };
    let depth = match trial.depth {
        1 => String::new(),
        n if trial.threads > 1 => format!(" with {n} in flight each"),
        n => format!(", {n} in flight"),
    };
    let rate = trial
        .rate
        .map_or_else(String::new, |rate| format!(", {rate} per second"));
    format!("{size} {order}{accesses}{durable}{threads}{files}{depth}{rate}")
}

/// `2300-byte`, `4 KiB`.
fn size_in_words(bytes: u64) -> String {
    match bytes.is_multiple_of(1024) {
        true => format_bytes(bytes as f64),
        false => format!("{bytes}-byte"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_size_durability_and_concurrency() {
        let log = TrialSpec {
            read_percent: 0,
            bs: 2300,
            sync: SyncPolicy::Fdatasync,
            allocate: Some(Allocate::Preallocated),
            ..TrialSpec::default()
        };
        let appended = TrialSpec {
            allocate: Some(Allocate::Append),
            ..log.clone()
        };
        let replaced = TrialSpec {
            allocate: Some(Allocate::Recycled),
            ..log.clone()
        };
        let partitions = TrialSpec {
            bs: 256 << 10,
            sync_every: 16,
            threads: 8,
            ..log.clone()
        };
        let images = TrialSpec {
            pattern: Pattern::RandReplace,
            read_percent: 70,
            bs: 16 << 10,
            sync: SyncPolicy::Odsync,
            depth: 16,
            ..TrialSpec::default()
        };
        let mail = TrialSpec {
            files: "100/random".parse().ok(),
            layout: crate::trial::FileLayout::Private,
            threads: 2,
            pattern: Pattern::Rand,
            ..TrialSpec::default()
        };
        let alone = TrialSpec {
            threads: 1,
            ..mail.clone()
        };
        let one_file = TrialSpec {
            files: "1".parse().ok(),
            ..alone.clone()
        };
        for (trial, words) in [
            (&mail, "4 KiB random reads, by 2 threads in 100 files each"),
            (&alone, "4 KiB random reads, in 100 files"),
            (&one_file, "4 KiB random reads"),
            (
                &log,
                "2300-byte sequential writes to a preallocated file, each with fdatasync",
            ),
            (&appended, "2300-byte appends, each with fdatasync"),
            (
                &replaced,
                "2300-byte sequential writes, each with fdatasync",
            ),
            (
                &partitions,
                "256 KiB sequential writes to a preallocated file, with fdatasync after every 16, by 8 threads",
            ),
            (
                &images,
                "16 KiB random accesses (70 % reads, 30 % writes), each write with O_DSYNC, 16 in flight",
            ),
            (&TrialSpec::default(), "4 KiB sequential reads"),
        ] {
            assert_eq!(requests_in_words(trial), words);
        }
    }

    #[test]
    fn words_follow_pattern_direction_and_durability() {
        let spec = |pattern, read_percent, sync| TrialSpec {
            pattern,
            read_percent,
            sync,
            ..TrialSpec::default()
        };
        for (spec, words) in [
            (
                spec(Pattern::Seq, 100, SyncPolicy::Each),
                "sequential reads",
            ),
            (
                spec(Pattern::Rand, 0, SyncPolicy::Each),
                "random durable writes",
            ),
            (
                spec(Pattern::Strided, 0, SyncPolicy::None),
                "strided writes",
            ),
            (
                spec(Pattern::Rand, 70, SyncPolicy::Odsync),
                "random accesses (70 % reads, 30 % durable writes)",
            ),
        ] {
            assert_eq!(in_words(&spec), words);
        }
    }
}
