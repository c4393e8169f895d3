//! fio's options of a job, and the cell that they describe.

use std::collections::BTreeMap;
use std::time::Duration;

use iolab_spec::Error;
use iolab_spec::Result;
use iolab_spec::trial::{
    BS_MAX, Backend, CacheState, Content, DEPTH_MAX, Pattern, SyncPolicy, THREADS_MAX, TrialSpec,
};

use iolab_spec::settings::CellSpec;

/// The options of one job, those of `[global]` among them.
pub(crate) type Options = BTreeMap<String, String>;

/// An option whose value iolab has no words for.
#[derive(Debug)]
pub(crate) struct Fault {
    /// Its name, as it was given.
    pub(crate) option: &'static str,
    /// What is wrong, of kind usage.
    pub(crate) error: Error,
}

/// A value, or what is wrong with it.
pub(crate) type Read<T> = std::result::Result<T, Fault>;

/// Faults met so far: one is no reason not to look at the other options.
#[derive(Default)]
struct Faults(Vec<Fault>);

impl Faults {
    /// What was read, or something instead where it is a fault.
    fn or<T>(&mut self, read: Read<T>, instead: T) -> T {
        read.unwrap_or_else(|fault| {
            self.0.push(fault);
            instead
        })
    }
}

/// The cell that a job is. Options that are not there have fio's default; those that say nothing of a cell are not looked
/// at. Without a `size` the region is `size_else`.
///
/// # Errors
/// Of kind usage, naming the first option whose value iolab has no words for.
pub(crate) fn cell_of(options: &Options, size_else: u64) -> Result<CellSpec> {
    // There is at least one.
    cell_or_faults(options, size_else).map_err(|mut faults| faults.swap_remove(0).error)
}

/// As [`cell_of`].
///
/// # Errors
/// Every option whose value iolab has no words for; at least one.
pub(crate) fn cell_or_faults(
    options: &Options,
    size_else: u64,
) -> std::result::Result<CellSpec, Vec<Fault>> {
    let mut trial = TrialSpec::default();
    let mut faults = Faults::default();
    order(options, &mut trial, &mut faults);
    requests(options, &mut trial, &mut faults);
    let sync = durability(options);
    (trial.sync, trial.sync_every) = faults.or(sync, (trial.sync, trial.sync_every));
    bounds(options, &mut trial, size_else, &mut faults);
    if !faults.0.is_empty() {
        return Err(faults.0);
    }
    if is_set(options, "zero_buffers") {
        trial.content = Content::Zero;
    } else if text(options, "scramble_buffers") == Some("0") {
        trial.content = Content::Repeated;
    }
    Ok(CellSpec {
        trial,
        batch_auto: false,
        ..CellSpec::default()
    })
}

/// The first of these options that is given, with its value.
fn value<'a>(options: &'a Options, names: &[&'static str]) -> Option<(&'static str, &'a str)> {
    names
        .iter()
        .find_map(|name| text(options, name).map(|text| (*name, text)))
}

fn text<'a>(options: &'a Options, name: &str) -> Option<&'a str> {
    options.get(name).map(|text| text.trim())
}

/// Whether an option that needs no value is given.
pub(crate) fn is_set(options: &Options, name: &str) -> bool {
    text(options, name).is_some_and(|text| text != "0")
}

/// `rw`, what it mixes, and whether blocks can come twice.
fn order(options: &Options, trial: &mut TrialSpec, faults: &mut Faults) {
    let (option, text) = value(options, &["rw", "readwrite"]).unwrap_or(("rw", "read"));
    let (name, skip) = match text.split_once(':') {
        Some((name, skip)) => (name, Some(skip)),
        None => (text, None),
    };
    let (random, direction) = match name.strip_prefix("rand") {
        Some(direction) => (true, direction),
        None => (false, name),
    };
    let percent = match direction {
        "read" => Ok(100),
        "write" => Ok(0),
        "rw" | "readwrite" => mix(options),
        _ => Err(unknown(option, text)),
    };
    trial.read_percent = faults.or(percent, 100);
    trial.pattern = match (random, is_set(options, "norandommap")) {
        (false, _) => Pattern::Seq,
        (true, false) => Pattern::Rand,
        (true, true) => Pattern::RandReplace,
    };
    if let Some((option, theta)) = value(options, &["random_distribution"])
        .filter(|_| random)
        .and_then(|(option, text)| Some((option, text.strip_prefix("zipf:")?)))
    {
        let zipf = format!("zipf:{theta}").parse().map_err(|error: Error| {
            let error = error.within(option);
            Fault { option, error }
        });
        trial.pattern = faults.or(zipf, Pattern::Rand);
    }
    match skip {
        None => {}
        Some(skip) if !random => {
            trial.pattern = Pattern::Strided;
            trial.skip = faults.or(size(option, skip), 0);
        }
        Some(_) => faults.or(Err(unknown(option, text)), ()),
    }
}

fn mix(options: &Options) -> Read<u8> {
    let Some((name, text)) = value(options, &["rwmixread", "rwmixwrite"]) else {
        return Ok(50);
    };
    let percent = text.parse::<u8>().ok().filter(|percent| *percent <= 100);
    let percent = percent.ok_or_else(|| unknown(name, text))?;
    Ok(match name {
        "rwmixwrite" => 100 - percent,
        _ => percent,
    })
}

/// Their size, and how they are made.
fn requests(options: &Options, trial: &mut TrialSpec, faults: &mut Faults) {
    if let Some((name, engine)) = value(options, &["ioengine"]) {
        let backend = engine.parse::<Backend>().map_err(|_| unknown(name, engine));
        trial.backend = faults.or(backend, trial.backend);
    } else {
        trial.backend = Backend::Psync;
    }
    let (name, bs) = value(options, &["bs", "blocksize"]).unwrap_or(("bs", "4k"));
    let bytes = size(name, bs.strip_suffix(',').unwrap_or(bs));
    let bytes = bytes.and_then(|bytes| match bytes {
        1..=BS_MAX => Ok(bytes),
        _ => Err(unknown(name, bs)),
    });
    trial.bs = faults.or(bytes, trial.bs);
    trial.threads = faults.or(count(options, "numjobs", THREADS_MAX), 1);
    let depth = faults.or(count(options, "iodepth", DEPTH_MAX), 1);
    trial.depth = match trial.backend.is_asynchronous() {
        true => depth,
        // Whatever is asked of them, synchronous engines have one request under way.
        false => 1,
    };
    let direct = match text(options, "buffered") {
        Some(text) => text == "0",
        None => is_set(options, "direct"),
    };
    trial.cache = match (direct, text(options, "invalidate")) {
        (true, _) => CacheState::Direct,
        (false, Some("0")) => CacheState::Hot,
        (false, _) => CacheState::Cold,
    };
}

fn count(options: &Options, name: &'static str, most: u32) -> Read<u32> {
    let Some(text) = text(options, name) else {
        return Ok(1);
    };
    let count = text.parse::<u32>().ok();
    let count = count.filter(|count| (1..=most).contains(count));
    count.ok_or_else(|| Fault {
        option: name,
        error: unknown(name, text)
            .error
            .hint(format!("{name} is a number from 1 to {most}")),
    })
}

/// The sync policy, and the writes from one sync to the next.
fn durability(options: &Options) -> Read<(SyncPolicy, u32)> {
    let flag = text(options, "sync").unwrap_or("0");
    let every = |name: &'static str| match text(options, name) {
        None | Some("0") => Ok(None),
        Some(count) => match count.parse() {
            Ok(count) => Ok(Some(count)),
            Err(_) => Err(unknown(name, count)),
        },
    };
    Ok(match (flag, every("fsync")?, every("fdatasync")?) {
        ("0" | "none", None, None) if is_set(options, "end_fsync") => (SyncPolicy::End, 1),
        ("0" | "none", None, None) => (SyncPolicy::None, 1),
        ("0" | "none", Some(every), None) => (SyncPolicy::Each, every),
        ("0" | "none", None, Some(every)) => (SyncPolicy::Fdatasync, every),
        ("1" | "sync", None, None) => (SyncPolicy::Osync, 1),
        ("dsync", None, None) => (SyncPolicy::Odsync, 1),
        ("0" | "none" | "1" | "sync" | "dsync", Some(every), _) => {
            return Err(unknown("fsync", &every.to_string()));
        }
        ("1" | "sync" | "dsync", None, Some(every)) => {
            return Err(unknown("fdatasync", &every.to_string()));
        }
        _ => return Err(unknown("sync", flag)),
    })
}

/// The region and what ends the job. Every one of its clones goes over the whole size.
fn bounds(options: &Options, trial: &mut TrialSpec, size_else: u64, faults: &mut Faults) {
    let mut bytes_of = |names: &[&'static str]| {
        let (name, text) = value(options, names)?;
        Some(faults.or(size(name, text), size_else))
    };
    let own = bytes_of(&["size"]).unwrap_or(size_else);
    let of_one = bytes_of(&["io_size", "io_limit"]).unwrap_or(own);
    let offset = bytes_of(&["offset"]);
    let of_all = |bytes: u64| bytes.saturating_mul(u64::from(trial.threads));
    let time = value(options, &["runtime", "timeout"]).and_then(|(name, text)| {
        Some(faults.or(duration(name, text), Duration::ZERO)).filter(|time| !time.is_zero())
    });
    let time_based = is_set(options, "time_based") && time.is_some();
    trial.limit.time = time;
    trial.limit.bytes = (!time_based && of_one > 0).then(|| of_all(of_one));
    // A file in a directory is each clone's own.
    trial.region = match options.contains_key("filename") {
        true => own,
        false => of_all(own),
    }
    .max(trial.bs);
    trial.offset = offset.unwrap_or(trial.offset);
}

/// A size as fio reads it: `4k` and `4kb` are 4096.
fn size(name: &'static str, text: &str) -> Read<u64> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match lower[digits.len()..].trim() {
        "" | "b" => 0,
        "k" | "kb" => 10,
        "m" | "mb" => 20,
        "g" | "gb" => 30,
        "t" | "tb" => 40,
        _ => return Err(unknown(name, text)),
    };
    let bytes = digits.parse::<u64>().ok();
    bytes
        .and_then(|bytes| bytes.checked_mul(1 << shift))
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

fn unknown(option: &'static str, text: &str) -> Fault {
    let text: String = text.chars().take(60).collect();
    let error = Error::usage(format!("iolab cannot carry out {option}={text}")).hint(
        "sizes are like 4k, 1m or 4096, times like 30 or 500ms; see 'iolab list --settings' for what there is",
    );
    Fault { option, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(text: &str) -> Result<TrialSpec> {
        let options = text.split_whitespace().map(|word| {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            (name.to_owned(), value.to_owned())
        });
        cell_of(&options.collect(), 1 << 20).map(|cell| cell.trial)
    }

    #[test]
    fn a_job_is_a_cell() {
        let trial = cell("rw=randrw rwmixread=70 bs=8kb size=1g iodepth=16 ioengine=io_uring numjobs=2 direct=1 fsync=1 runtime=5 time_based filename=/x")
            .expect("a cell");
        assert_eq!(
            (trial.pattern, trial.read_percent, trial.bs),
            (Pattern::Rand, 70, 8192)
        );
        assert_eq!((trial.region, trial.threads, trial.depth), (1 << 30, 2, 16));
        assert_eq!(
            (trial.cache, trial.sync),
            (CacheState::Direct, SyncPolicy::Each)
        );
        assert_eq!(
            (trial.limit.time, trial.limit.bytes),
            (Some(Duration::from_secs(5)), None)
        );
        let trial = cell("rw=write ioengine=sync fdatasync=8 size=22m bs=2300").expect("a cell");
        assert_eq!(
            (trial.sync, trial.sync_every, trial.bs),
            (SyncPolicy::Fdatasync, 8, 2300)
        );
        let trial =
            cell("rw=write:4k bs=4k size=1m numjobs=4 iodepth=8 runtime=250ms").expect("a cell");
        assert_eq!(
            (trial.pattern, trial.skip, trial.depth),
            (Pattern::Strided, 4096, 1)
        );
        assert_eq!((trial.region, trial.limit.bytes), (4 << 20, Some(4 << 20)));
        assert_eq!(trial.limit.time, Some(Duration::from_millis(250)));
    }

    #[test]
    fn every_fault_is_found() {
        let text = "rw=trim bs=4q ioengine=rbd numjobs=0 iodepth=x fsync=q size=50% io_size=q offset=-1 runtime=1y";
        let options = text.split_whitespace().map(|word| {
            let (name, value) = word.split_once('=').expect("name=value");
            (name.to_owned(), value.to_owned())
        });
        let faults = cell_or_faults(&options.collect(), 1 << 20).expect_err("nothing is right");
        assert_eq!(faults.len(), text.split_whitespace().count(), "{faults:?}");
    }

    #[test]
    fn what_has_no_words_is_refused_by_name() {
        for (text, name) in [
            ("rw=trim", "rw=trim"),
            ("bs=4k,8k", "bs="),
            ("bs=4ki", "bs="),
            ("bs=0", "bs="),
            ("size=50%", "size="),
            ("size=99999999999t", "size="),
            ("ioengine=rbd", "ioengine="),
            ("numjobs=0", "numjobs="),
            ("fsync=-1", "fsync="),
            ("fsync=1 fdatasync=1", "fsync="),
            ("sync=dsync fdatasync=1", "fdatasync="),
            ("sync=maybe", "sync="),
            ("runtime=1y", "runtime="),
            ("rw=randrw rwmixread=101", "rwmixread="),
            ("rw=randrw rwmixwrite=-1", "rwmixwrite="),
            ("readwrite=trim", "readwrite="),
            ("blocksize=4q", "blocksize="),
        ] {
            let error = cell(text).expect_err(text);
            assert!(error.message().contains(name), "{error}");
        }
    }
}
