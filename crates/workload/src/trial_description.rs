//! Descriptions of a trial: `sequential reads`, `random durable writes`.

use crate::names::ALL;
use crate::settings::{CellSpec, GroupSpec, Setting, Value, ValueKind};
use crate::trial::{Allocate, CacheState, Pattern, Rate, SyncPolicy, TrialSpec};
use crate::units::{apart, counted, exact_duration, exact_size, format_bytes};

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

/// Levels of a cell in words: `random reads, 4 KiB, 32 in flight`.
pub fn levels_in_words<'a>(
    cell: &CellSpec,
    levels: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> String {
    let levels = levels.into_iter();
    let levels = levels.map(|(factor, level)| level_in_words(cell, factor, level));
    levels.collect::<Vec<_>>().join(", ")
}

/// A level of a cell's factor in words, to follow "with": `32 in flight`, `random reads`, `no sync`.
pub fn level_in_words(cell: &CellSpec, factor: &str, level: &str) -> String {
    let Some((group, name)) = factor.split_once('.') else {
        return setting_in_words(&cell.trial, factor, level);
    };
    let mut groups = cell.groups.iter();
    let own = groups.find(|one| one.name == group).map(GroupSpec::trial);
    let words = setting_in_words(own.unwrap_or(&cell.trial), name, level);
    format!("{words} for {group}")
}

/// The value of a setting of a trial in words.
fn setting_in_words(trial: &TrialSpec, name: &str, level: &str) -> String {
    let mut of_level = CellSpec::default();
    let setting = Setting::find(name).filter(|one| one.set(&mut of_level, level).is_ok());
    let Some(setting) = setting else {
        return format!("{name} {level}");
    };
    let one = &of_level.trial;
    let plain = name.replace('_', " ");
    match (name, setting.value(&of_level)) {
        ("bs", Value::Number(bytes)) => exact_size(bytes),
        ("depth", Value::Number(depth)) if trial.workers() > 1 => {
            format!("{depth} in flight per thread")
        }
        ("depth", Value::Number(depth)) => format!("{depth} in flight"),
        ("threads" | "ranks" | "hosts", Value::Number(n)) => counted(n, name.trim_end_matches('s')),
        ("read_percent", Value::Number(100)) => "reads".to_owned(),
        ("read_percent", Value::Number(0)) => "writes".to_owned(),
        ("read_percent", Value::Number(share)) => format!("{share} % reads"),
        ("workload", Value::Word(_)) => in_words(&TrialSpec {
            sync: SyncPolicy::None,
            ..one.clone()
        }),
        ("pattern", _) if matches!(level, "seq" | "strided" | "reverse" | "rand") => {
            format!("{}access", order(one.pattern))
        }
        ("sync", _) => match one.sync {
            SyncPolicy::None => "no sync".to_owned(),
            SyncPolicy::End => "a final fsync".to_owned(),
            sync => sync_call(sync).to_owned(),
        },
        ("cache", _) => match one.cache {
            CacheState::Direct => "direct I/O".to_owned(),
            state => format!("a {state} cache"),
        },
        ("allocate", Value::Word(_)) if one.allocate == Some(Allocate::Append) => {
            "appends".to_owned()
        }
        ("allocate", Value::Word(state)) => format!("a {state} file"),
        ("active", _) if level == ALL => "all groups active".to_owned(),
        ("active", _) => format!("{} active", level.replace('+', " and ")),
        ("rate", Value::Rate(Rate::Requests(rate))) => format!("{rate} requests/s"),
        ("rate", Value::Rate(Rate::Bytes(_))) => apart(level),
        ("rate", Value::None) => "no given rate".to_owned(),
        ("tool" | "command", _) => level.to_owned(),
        (_, Value::None | Value::Flag(false)) => format!("no {plain}"),
        (_, Value::Flag(true)) => plain,
        (_, Value::Number(bytes)) if setting.kind == ValueKind::Size => {
            format!("{plain} {}", exact_size(bytes))
        }
        (_, Value::Time(time)) if time.is_zero() => format!("no {plain}"),
        (_, Value::Time(time)) => format!("{plain} {}", exact_duration(time)),
        _ => format!("{plain} {level}"),
    }
}

/// The call or flag that makes writes durable.
fn sync_call(sync: SyncPolicy) -> &'static str {
    match sync {
        SyncPolicy::Fdatasync => "fdatasync",
        SyncPolicy::Osync => "O_SYNC",
        SyncPolicy::Odsync => "O_DSYNC",
        SyncPolicy::RwfDsync => "RWF_DSYNC",
        SyncPolicy::None | SyncPolicy::End | SyncPolicy::Each => "fsync",
    }
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
            let call = sync_call(sync);
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
        (Some(1), _) => String::new(),
        (Some(files), 1) => format!(", in {files} files"),
        (Some(files), _) => format!(" in {files} files each"),
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
