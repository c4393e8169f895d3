//! fio's options of a job, and the cell that they describe.

use std::collections::BTreeMap;
use std::time::Duration;

use iolab_engine::spec::{Backend, CacheState, Content, Pattern, SyncPolicy, TrialSpec};
use iolab_engine::{Error, Result};

use crate::peer::Tool;
use crate::settings::CellSpec;

/// The options of one job, those of `[global]` among them.
pub(crate) type Options = BTreeMap<String, String>;

/// The cell that a job is. Options that are not there have fio's default; those that say nothing of a cell are not looked
/// at. Without a `size` the region is `size_else`.
///
/// # Errors
/// Of kind usage, naming the option whose value iolab has no words for.
pub(crate) fn cell_of(options: &Options, size_else: u64) -> Result<CellSpec> {
    let mut trial = TrialSpec::default();
    order(options, &mut trial)?;
    requests(options, &mut trial)?;
    durability(options, &mut trial)?;
    bounds(options, &mut trial, size_else)?;
    if is_set(options, "zero_buffers") {
        trial.content = Content::Zero;
    } else if value(options, &["scramble_buffers"]) == Some("0") {
        trial.content = Content::Repeated;
    }
    Ok(CellSpec {
        trial,
        batch_auto: false,
        tool: Tool::Iolab,
        ..CellSpec::default()
    })
}

fn value<'a>(options: &'a Options, names: &[&str]) -> Option<&'a str> {
    let found = names.iter().find_map(|name| options.get(*name));
    found.map(|text| text.trim())
}

/// Whether an option that needs no value is given.
pub(crate) fn is_set(options: &Options, name: &str) -> bool {
    value(options, &[name]).is_some_and(|text| text != "0")
}

/// `rw`, what it mixes, and whether blocks can come twice.
fn order(options: &Options, trial: &mut TrialSpec) -> Result<()> {
    let text = value(options, &["rw", "readwrite"]).unwrap_or("read");
    let (name, skip) = match text.split_once(':') {
        Some((name, skip)) => (name, Some(skip)),
        None => (text, None),
    };
    let (random, direction) = match name.strip_prefix("rand") {
        Some(direction) => (true, direction),
        None => (false, name),
    };
    trial.read_percent = match direction {
        "read" => 100,
        "write" => 0,
        "rw" | "readwrite" => mix(options)?,
        _ => return Err(unknown("rw", text)),
    };
    trial.pattern = match (random, is_set(options, "norandommap")) {
        (false, _) => Pattern::Seq,
        (true, false) => Pattern::Rand,
        (true, true) => Pattern::RandReplace,
    };
    if let Some(theta) = value(options, &["random_distribution"])
        .filter(|_| random)
        .and_then(|text| text.strip_prefix("zipf:"))
    {
        trial.pattern = format!("zipf:{theta}")
            .parse()
            .map_err(|error: Error| error.within("random_distribution"))?;
    }
    match skip {
        None => {}
        Some(skip) if !random => {
            trial.pattern = Pattern::Strided;
            trial.skip = size("rw", skip)?;
        }
        Some(_) => return Err(unknown("rw", text)),
    }
    Ok(())
}

fn mix(options: &Options) -> Result<u8> {
    let percent = |name: &str, text: &str| {
        let percent = text.parse::<u8>().ok().filter(|percent| *percent <= 100);
        percent.ok_or_else(|| unknown(name, text))
    };
    match (
        value(options, &["rwmixread"]),
        value(options, &["rwmixwrite"]),
    ) {
        (Some(text), _) => percent("rwmixread", text),
        (None, Some(text)) => percent("rwmixwrite", text).map(|writes| 100 - writes),
        (None, None) => Ok(50),
    }
}

/// Their size, and how they are made.
fn requests(options: &Options, trial: &mut TrialSpec) -> Result<()> {
    let engine = value(options, &["ioengine"]).unwrap_or("psync");
    trial.backend = engine
        .parse::<Backend>()
        .map_err(|_| unknown("ioengine", engine))?;
    let bs = value(options, &["bs", "blocksize"]).unwrap_or("4k");
    trial.bs = size("bs", bs.strip_suffix(',').unwrap_or(bs))?;
    if trial.bs == 0 {
        return Err(unknown("bs", bs));
    }
    trial.threads = count(options, "numjobs")?;
    trial.depth = match trial.backend.is_asynchronous() {
        true => count(options, "iodepth")?,
        // Whatever is asked of them, synchronous engines have one request under way.
        false => 1,
    };
    let direct = match value(options, &["buffered"]) {
        Some(text) => text == "0",
        None => is_set(options, "direct"),
    };
    trial.cache = match (direct, value(options, &["invalidate"])) {
        (true, _) => CacheState::Direct,
        (false, Some("0")) => CacheState::Hot,
        (false, _) => CacheState::Cold,
    };
    Ok(())
}

fn count(options: &Options, name: &str) -> Result<u32> {
    let Some(text) = value(options, &[name]) else {
        return Ok(1);
    };
    let count = text.parse::<u32>().ok().filter(|count| *count > 0);
    count.ok_or_else(|| unknown(name, text))
}

fn durability(options: &Options, trial: &mut TrialSpec) -> Result<()> {
    let flag = value(options, &["sync"]).unwrap_or("0");
    trial.sync = match (flag, value(options, &["fsync"]).unwrap_or("0")) {
        ("0" | "none", "0") if is_set(options, "end_fsync") => SyncPolicy::End,
        ("0" | "none", "0") => SyncPolicy::None,
        ("0" | "none", "1") => SyncPolicy::Each,
        ("1" | "sync", "0") => SyncPolicy::Osync,
        ("dsync", "0") => SyncPolicy::Odsync,
        ("0" | "none" | "1" | "sync" | "dsync", fsync) => return Err(unknown("fsync", fsync)),
        _ => return Err(unknown("sync", flag)),
    };
    Ok(())
}

/// The region and what ends the job. Every one of its clones goes over the whole size.
fn bounds(options: &Options, trial: &mut TrialSpec, size_else: u64) -> Result<()> {
    let own = match value(options, &["size"]) {
        Some(text) => size("size", text)?,
        None => size_else,
    };
    let of_all = |bytes: u64| bytes.saturating_mul(u64::from(trial.threads));
    let of_one = match value(options, &["io_size", "io_limit"]) {
        Some(text) => size("io_size", text)?,
        None => own,
    };
    let time = match value(options, &["runtime", "timeout"]) {
        Some(text) => Some(duration("runtime", text)?).filter(|time| !time.is_zero()),
        None => None,
    };
    let time_based = is_set(options, "time_based") && time.is_some();
    trial.limit.time = time;
    trial.limit.bytes = (!time_based && of_one > 0).then(|| of_all(of_one));
    // A file in a directory is each clone's own.
    trial.region = match options.contains_key("filename") {
        true => own,
        false => of_all(own),
    }
    .max(trial.bs);
    if let Some(text) = value(options, &["offset"]) {
        trial.offset = size("offset", text)?;
    }
    Ok(())
}

/// A size as fio reads it: `4k` and `4kb` are 4096.
fn size(name: &str, text: &str) -> Result<u64> {
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
pub(crate) fn duration(name: &str, text: &str) -> Result<Duration> {
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

fn unknown(name: &str, text: &str) -> Error {
    let text: String = text.chars().take(60).collect();
    Error::usage(format!("{name}={text} is nothing that iolab can do")).hint(
        "sizes are like 4k, 1m or 4096, times like 30 or 500ms; see 'iolab list --settings' for what there is",
    )
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
            ("fsync=32", "fsync="),
            ("sync=maybe", "sync="),
            ("runtime=1y", "runtime="),
            ("rw=randrw rwmixread=101", "rwmixread="),
        ] {
            let error = cell(text).expect_err(text);
            assert!(error.message().contains(name), "{error}");
        }
    }
}
