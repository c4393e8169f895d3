//! fio's options of a job, and the cell that they describe.
//!
//! Values and names of options as fio reads them, and messages about values that iolab cannot carry out.

mod extent;
mod requests_and_threads;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use iolab_workload::Error;
use iolab_workload::foreign_options::answer;
use iolab_workload::names::{alternatives, nearest};
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{
    Backend, Batch, CacheState, DEPTH_MAX, Pattern, SyncPolicy, THREADS_MAX, TrialSpec,
};

pub(crate) use extent::FileSize;

/// The options of one job, including the options of `[global]`.
pub(crate) type Options = BTreeMap<String, String>;

/// An option whose value iolab has no words for.
#[derive(Debug)]
pub(crate) struct Fault {
    /// Its name, as it was given.
    pub(crate) option: &'static str,
    /// The error, of kind [`Usage`](iolab_workload::Kind::Usage).
    pub(crate) error: Error,
}

impl Fault {
    fn new(option: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            option,
            error: Error::usage(message).hint(hint),
        }
    }

    /// A fault of an option's value, of which the error does not name the option.
    fn within(option: &'static str, error: Error) -> Self {
        Self {
            option,
            error: error.within(option),
        }
    }
}

/// A value, or its fault.
pub(crate) type Read<T> = Result<T, Fault>;

/// Faults found so far; the other options are still checked, so that all faults are reported at once.
#[derive(Default)]
struct Faults(Vec<Fault>);

impl Faults {
    /// The value read, or `instead` if it is a fault, which is kept.
    fn or<T>(&mut self, read: Read<T>, instead: T) -> T {
        read.unwrap_or_else(|fault| {
            self.0.push(fault);
            instead
        })
    }

    /// The value of an option; `None` if it is not given, or a fault, which is kept.
    fn given<T>(
        &mut self,
        options: &Options,
        name: &'static str,
        read: impl FnOnce(&'static str, &str) -> Read<T>,
    ) -> Option<T> {
        let (name, text) = value(options, name)?;
        self.or(read(name, text).map(Some), None)
    }
}

/// The cell of a job. Missing options have fio's default; options that do not concern a cell are ignored.
///
/// # Errors
/// Every option whose value iolab has no words for; at least one.
pub(crate) fn cell_or_faults(options: &Options, size: FileSize) -> Result<CellSpec, Vec<Fault>> {
    let mut trial = TrialSpec::default();
    let mut faults = Faults::default();
    requests(options, &mut trial, &mut faults);
    order(options, &mut trial, &mut faults);
    requests_and_threads::sizes(options, &mut trial, &mut faults);
    requests_and_threads::placement(options, &mut trial, &mut faults);
    requests_and_threads::flags(options, &mut trial, &mut faults);
    requests_and_threads::pauses(options, &mut trial, &mut faults);
    let sync = durability(options);
    (trial.sync, trial.sync_every) = faults.or(sync, (trial.sync, trial.sync_every));
    extent::bounds(options, &mut trial, size, &mut faults);
    extent::load(options, &mut trial, &mut faults);
    trial.latency = !is_set(options, "gtod_reduce") && !is_set(options, "disable_lat");
    trial.verify = faults.or(verified(options), false);
    requests_and_threads::check_lockmem(options, &trial, &mut faults);
    requests_and_threads::check(options, &trial, &mut faults);
    if !faults.0.is_empty() {
        return Err(faults.0);
    }
    Ok(CellSpec::of(trial))
}

/// The value of an option, with the name under which it is given.
pub(crate) fn value<'a>(
    options: &'a Options,
    name: &'static str,
) -> Option<(&'static str, &'a str)> {
    let mut names = std::iter::once(name).chain(of(name));
    names.find_map(|name| text(options, name).map(|text| (name, text)))
}

fn text<'a>(options: &'a Options, name: &str) -> Option<&'a str> {
    options.get(name).map(|text| text.trim())
}

/// Whether an option that needs no value is given.
pub(crate) fn is_set(options: &Options, name: &str) -> bool {
    text(options, name).is_some_and(|text| text != "0")
}

/// Values of `rw`.
const ORDERS: [&str; 8] = [
    "read", "write", "rw", "trim", "randread", "randwrite", "randrw", "randtrim",
];

/// `rw`, its mix, and whether blocks may be visited twice.
fn order(options: &Options, trial: &mut TrialSpec, faults: &mut Faults) {
    let (option, text) = value(options, "rw").unwrap_or(("rw", "read"));
    let (name, skip) = match text.split_once(':') {
        Some((name, skip)) => (name, Some(skip)),
        None => (text, None),
    };
    let (random, direction) = match name.strip_prefix("rand") {
        Some(direction) => (true, direction),
        None => (false, name),
    };
    let unknown_order = || {
        let hint = match (answer(direction), nearest(name, &ORDERS).as_slice()) {
            (Some(answer), _) => answer.hint(None),
            (None, []) => format!("it is one of: {}", ORDERS.join(", ")),
            (None, near) => format!("did you mean {}?", alternatives(near)),
        };
        unknown_because(option, text, hint)
    };
    let percent = match direction {
        "read" => Ok(100),
        "write" => Ok(0),
        "trim" => {
            trial.trim_percent = 100;
            Ok(0)
        }
        "rw" | "readwrite" => mix(options),
        _ => Err(unknown_order()),
    };
    trial.read_percent = faults.or(percent, 100);
    trial.pattern = match (random, is_set(options, "norandommap")) {
        (false, _) => Pattern::Seq,
        (true, false) => Pattern::Rand,
        (true, true) => Pattern::RandReplace,
    };
    if random {
        let pattern = distribution(options, trial.pattern);
        trial.pattern = faults.or(pattern, trial.pattern);
    }
    let bs = trial.bs;
    match skip {
        None => {}
        Some(skip) if !random => match skip.strip_prefix('-') {
            None => {
                trial.pattern = Pattern::Strided;
                trial.skip = faults.or(size(option, skip), 0);
            }
            // From the end of a block back over it and the one before.
            Some(back) if size(option, back).is_ok_and(|back| back == 2 * bs) => {
                trial.pattern = Pattern::Reverse;
            }
            Some(_) => faults.0.push(unknown_because(
                option,
                text,
                format!(
                    "only block after block backwards has a pattern: rw={name}:-{}",
                    2 * bs
                ),
            )),
        },
        Some(every) if every.trim() == "1" => {}
        Some(_) => faults.0.push(refused(option, text, "rw_sequencer")),
    }
}

/// The distribution of a random order.
fn distribution(options: &Options, uniform: Pattern) -> Read<Pattern> {
    let Some((option, text)) = value(options, "random_distribution") else {
        return Ok(uniform);
    };
    let fault = |error: Error| Fault::within(option, error);
    match text.split_once(':') {
        None if text == "random" => Ok(uniform),
        // The numbers that fio uses if none is given.
        None if text == "zipf" => Ok(Pattern::Zipf(1.1)),
        None if text == "pareto" => Ok(Pattern::Pareto(0.2)),
        None if text == "normal" => Ok(Pattern::Normal(0.0)),
        // fio uses 50 for any larger value.
        Some(("normal", percent))
            if percent
                .parse()
                .is_ok_and(|percent: f64| percent > 50.0 && percent < 100.0) =>
        {
            Ok(Pattern::Normal(50.0))
        }
        Some(("zipf" | "pareto" | "normal", _)) => text.parse().map_err(fault),
        Some(("zoned", zones)) => zones.parse().map(Pattern::Zoned).map_err(fault),
        _ => Err(refused(option, text, option)),
    }
}

fn mix(options: &Options) -> Read<u8> {
    let percent = |name: &'static str| {
        let given = text(options, name);
        given.map(|text| percentage(name, text)).transpose()
    };
    // One replaces the other.
    let reads = percent("rwmixwrite")?.map(|writes| 100 - writes);
    Ok(reads.or(percent("rwmixread")?).unwrap_or(50))
}

/// Sizes of requests, and the way to issue them.
fn requests(options: &Options, trial: &mut TrialSpec, faults: &mut Faults) {
    let (name, engine) = value(options, "ioengine").unwrap_or(("ioengine", "psync"));
    let backend = match engine {
        // One buffer a request: the same calls.
        "pvsync" => Ok(Backend::Pvsync2),
        // fio's example of an engine in C++, which does what its null engine does.
        "cpp_null" => Ok(Backend::Null),
        // The library's driver of this name makes the same calls.
        "libblkio" if text(options, "libblkio_driver") == Some("io_uring") => Ok(Backend::IoUring),
        _ => engine.parse::<Backend>().map_err(|error| {
            let message = format!("iolab has no backend like ioengine={}", short(engine));
            Fault::new(name, message, error.remedy().unwrap_or_default())
        }),
    };
    let is_known = backend.is_ok();
    trial.backend = faults.or(backend, trial.backend);
    let bytes = block_size(options);
    trial.bs = faults.or(bytes, trial.bs);
    // The alignment of requests of several sizes can be chosen.
    let several = ["bssplit", "bsrange", "blocksize_range"];
    let differ = |text: &str| {
        let [reads, writes, trims] = requests_and_threads::directions(text);
        reads != writes || reads != trims
    };
    let has_several = several.iter().any(|name| options.contains_key(*name))
        || value(options, "bs").is_some_and(|(_, text)| differ(text));
    let aligned = value(options, "ba").filter(|_| !has_several);
    if let Some((name, aligned)) = aligned {
        let mut each = requests_and_threads::directions(aligned).into_iter();
        if !each.all(|bytes| size(name, bytes).is_ok_and(|bytes| bytes == trial.bs)) {
            faults.0.push(refused(name, aligned, "blockalign"));
        }
    }
    trial.threads = faults.or(count(options, "numjobs", THREADS_MAX), 1);
    let depth = faults.or(count(options, "iodepth", DEPTH_MAX), 1);
    trial.depth = match trial.backend.is_asynchronous() || !is_known {
        true => depth,
        // Synchronous engines have one request in flight, and ignore iodepth.
        false => 1,
    };
    let batch = batch(options, trial.depth);
    trial.batch = faults.or(batch, Batch::One);
    let ring = trial.backend == Backend::IoUring;
    trial.sqpoll = ring && is_set(options, "sqthread_poll");
    trial.iopoll = is_set(options, "hipri");
    let direct = match text(options, "buffered") {
        Some(buffered) => buffered == "0",
        None => is_set(options, "direct"),
    };
    trial.cache = match (direct, text(options, "invalidate")) {
        (true, _) => CacheState::Direct,
        (false, Some("0")) => CacheState::Hot,
        (false, _) if is_set(options, "pre_read") => CacheState::Hot,
        (false, _) => CacheState::Cold,
    };
}

/// `bs`, for reads if the directions differ.
fn block_size(options: &Options) -> Read<u64> {
    let (name, text) = value(options, "bs").unwrap_or(("bs", ""));
    requests_and_threads::block(name, requests_and_threads::directions(text)[0])
}

/// Completions to wait for, which fio and iolab both submit again at once.
fn batch(options: &Options, depth: u32) -> Read<Batch> {
    let number = |name| {
        let Some((name, text)) = value(options, name) else {
            return Ok(("iodepth_batch", 1));
        };
        // More than the depth is the depth, which is 1 of a synchronous engine.
        number(name, text, |_| true).map(|count: u32| (name, count.min(depth)))
    };
    let (mut name, mut waits) = number("iodepth_batch_complete")?;
    number("iodepth_batch")?;
    // No request is issued until the outstanding ones have fallen to this number.
    if options.contains_key("iodepth_low") {
        let (low, outstanding) = number("iodepth_low")?;
        if depth - outstanding > waits {
            (name, waits) = (low, depth - outstanding);
        }
    }
    let named = |batch: &Batch| batch.wait_for(depth) == waits.max(1);
    let shares = (1..=99).map(Batch::Percent);
    let mut all = [Batch::One, Batch::All].into_iter().chain(shares);
    all.find(named)
        .ok_or_else(|| unknown(name, &waits.to_string()))
}

fn count(options: &Options, name: &'static str, most: u32) -> Read<u32> {
    let Some(text) = text(options, name) else {
        return Ok(1);
    };
    let count = number(name, text, |count| (1..=most).contains(count));
    count.map_err(|_| unknown_because(name, text, format!("{name} is a number from 1 to {most}")))
}

/// A number for which `is_valid` holds.
fn number<T: FromStr>(
    name: &'static str,
    text: &str,
    is_valid: impl FnOnce(&T) -> bool,
) -> Read<T> {
    let number = text.parse().ok().filter(is_valid);
    number.ok_or_else(|| unknown(name, text))
}

fn percentage(name: &'static str, text: &str) -> Read<u8> {
    number(name, text, |percent| *percent <= 100)
}

/// The sync policy, and the writes from one sync to the next.
fn durability(options: &Options) -> Read<(SyncPolicy, u32)> {
    let flag = text(options, "sync").unwrap_or("0");
    let at_end = is_set(options, "end_fsync") || is_set(options, "fsync_on_close");
    let every = |name: &'static str| match text(options, name) {
        None | Some("0") => Ok(None),
        Some(count) => number(name, count, |_| true).map(Some),
    };
    let conflict = |option: &'static str, other: &str| {
        let given = |name: &str| short(text(options, name).unwrap_or_default());
        Fault::new(
            option,
            format!(
                "{option}={} and {other}={} in one job",
                given(option),
                given(other)
            ),
            "a trial makes writes durable in one way: give one of them",
        )
    };
    Ok(match (flag, every("fsync")?, every("fdatasync")?) {
        ("0" | "none", None, None) if at_end => (SyncPolicy::End, 1),
        ("0" | "none", None, None) => (SyncPolicy::None, 1),
        ("0" | "none", Some(every), None) => (SyncPolicy::Each, every),
        ("0" | "none", None, Some(every)) => (SyncPolicy::Fdatasync, every),
        ("1" | "sync", None, None) => (SyncPolicy::Osync, 1),
        ("dsync", None, None) => (SyncPolicy::Odsync, 1),
        ("0" | "none", Some(_), Some(_)) => return Err(conflict("fdatasync", "fsync")),
        ("1" | "sync" | "dsync", Some(_), _) => return Err(conflict("fsync", "sync")),
        ("1" | "sync" | "dsync", None, Some(_)) => return Err(conflict("fdatasync", "sync")),
        _ => return Err(unknown("sync", flag)),
    })
}

/// Checksums that fio writes into blocks and checks: iolab has one of its own for all of them.
const CHECKSUMS: [&str; 16] = [
    "md5", "crc64", "crc32c", "crc32c-intel", "crc32", "crc16", "crc7", "xxhash", "sha512",
    "sha256", "sha1", "sha3-224", "sha3-256", "sha3-384", "sha3-512", "meta",
];

fn verified(options: &Options) -> Read<bool> {
    let checked = text(options, "do_verify") != Some("0");
    match value(options, "verify") {
        None | Some((_, "0" | "none")) => Ok(false),
        Some((_, text)) if CHECKSUMS.contains(&text) => Ok(checked),
        Some((name, text)) => Err(refused(name, text, "verify_pattern")),
    }
}

/// A time whose bare numbers are microseconds.
pub(crate) fn micros(name: &'static str, text: &str) -> Read<Duration> {
    let bare = text.trim().parse().map(Duration::from_micros);
    bare.or_else(|_| duration(name, text))
}

/// A size as fio reads it if `kb_base` is not given: `4k`, `4kb` and `4Ki` are 4096, and `4KiB` is 4000.
pub(crate) fn size(name: &'static str, text: &str) -> Read<u64> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| !c.is_ascii_digit());
    let (base, power): (u64, u32) = match lower[digits.len()..].trim() {
        "" | "b" => (1, 1),
        "k" | "kb" | "ki" => (1024, 1),
        "m" | "mb" | "mi" => (1024, 2),
        "g" | "gb" | "gi" => (1024, 3),
        "t" | "tb" | "ti" => (1024, 4),
        "kib" => (1000, 1),
        "mib" => (1000, 2),
        "gib" => (1000, 3),
        "tib" => (1000, 4),
        _ => return Err(unknown(name, text)),
    };
    let bytes = digits.parse::<u64>().ok();
    bytes
        .and_then(|bytes| bytes.checked_mul(base.pow(power)))
        .filter(|bytes| *bytes <= i64::MAX as u64)
        .ok_or_else(|| unknown(name, text))
}

/// A time as fio reads it: a bare number is seconds.
pub(crate) fn duration(name: &'static str, text: &str) -> Read<Duration> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let us = match text[digits.len()..].trim().to_ascii_lowercase().as_str() {
        "us" | "usec" => 1,
        "ms" | "msec" => 1_000,
        "" | "s" | "sec" | "seconds" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return Err(unknown(name, text)),
    };
    let number = digits.parse::<u64>().ok();
    number
        .and_then(|number| number.checked_mul(us))
        .map(Duration::from_micros)
        .ok_or_else(|| unknown(name, text))
}

/// A value, shortened to the room of a message.
pub(crate) fn short(text: &str) -> String {
    text.chars().take(60).collect()
}

/// The fault of a value that stands for another option, with iolab's answer to that option.
fn refused(option: &'static str, text: &str, of: &str) -> Fault {
    let hint = answer(of).map_or_else(String::new, |answer| answer.hint(None));
    unknown_because(option, text, hint)
}

/// A value that iolab has no words for.
fn unknown(option: &'static str, text: &str) -> Fault {
    unknown_because(
        option,
        text,
        "percentages are 0 to 100, sizes like 4k, 1m or 4096, times like 30 or 500ms; see 'iolab list --settings --all' for what there is",
    )
}

fn unknown_because(option: &'static str, text: &str, hint: impl Into<String>) -> Fault {
    let message = format!("iolab cannot carry out {option}={}", short(text));
    Fault::new(option, message, hint)
}

/// The names of each option that has several.
const ALIASES: &[&[&str]] = &[
    &["rw", "readwrite"],
    &["bs", "blocksize"],
    &["ba", "blockalign"],
    &["bsrange", "blocksize_range"],
    &["io_size", "io_limit"],
    &["fill_device", "fill_fs"],
    &["nrfiles", "nr_files"],
    &["runtime", "timeout"],
    &["iodepth_batch", "iodepth_batch_submit"],
    &["iodepth_batch_complete", "iodepth_batch_complete_min"],
    &["stonewall", "wait_for_previous"],
    &["mem", "iomem"],
];

/// Options that say the opposite of each other.
const OPPOSITES: &[&[&str]] = &[&["rwmixread", "rwmixwrite"], &["direct", "buffered"]];

/// The others in the row of a name.
fn others<'a>(
    rows: &'static [&[&'static str]],
    name: &'a str,
) -> impl Iterator<Item = &'static str> + use<'a> {
    let row = rows.iter().find(|names| names.contains(&name));
    let row = row.copied().unwrap_or_default();
    row.iter().copied().filter(move |other| *other != name)
}

/// The other names of an option.
fn of(name: &str) -> impl Iterator<Item = &'static str> {
    others(ALIASES, name)
}

/// The other names of an option and its opposite, whose values it replaces.
pub(crate) fn replaced_by(name: &str) -> impl Iterator<Item = &'static str> {
    of(name).chain(others(OPPOSITES, name))
}

/// Gives an option its value, under the name that was written: the last value given counts, whichever name it has. File names
/// add up, as in fio.
pub(crate) fn give(options: &mut Options, name: String, mut value: String) {
    if let Some(before) = options.get(&name).filter(|_| name == "filename") {
        value = format!("{before}:{value}");
    }
    for other in replaced_by(&name) {
        options.remove(other);
    }
    options.insert(name, value);
}

/// The file of a job, else the folder in which it has files of its own; `None` for the folder that fio runs in. A file of a library's driver
/// is named by an option of its own.
pub(crate) fn named_file(options: &Options) -> Option<PathBuf> {
    let directory = options.get("directory").map(PathBuf::from);
    let path_of_library = options.get("libblkio_path");
    match (path_of_library.or(options.get("filename")), directory) {
        // fio puts the directory before an absolute name too.
        (Some(name), Some(directory)) if path_of_library.is_none() => {
            Some(directory.join(name.trim_start_matches('/')))
        }
        (Some(name), _) => Some(PathBuf::from(name)),
        (None, directory) => directory,
    }
}
