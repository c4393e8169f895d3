//! The one table of settings that an experiment may set or sweep: it serves TOML, `--set`,
//! messages and help.

use std::str::FromStr;

use iolab_engine::schedule::RATE_MAX;
use iolab_engine::spec::{Batch, TrialSpec};
use iolab_engine::{Error, Result};

use crate::command::Template;
use crate::peer::Tool;
use crate::probe::Linkage;
use crate::units::{format_duration, format_size, parse_duration, parse_size};
use crate::workload::Workload;

/// What a cell asks of the engine, before the choices that only a measurement can make.
#[derive(Debug, Clone, PartialEq)]
pub struct CellSpec {
    /// The trial; its seed is set per trial.
    pub trial: TrialSpec,
    /// What gives its pattern and its share of reads, where a code does.
    pub workload: Option<Workload>,
    /// Whether short probes choose the completion strategy (`batch = "auto"`), the default.
    pub batch_auto: bool,
    /// Which build of the built-in reader each trial runs, if any.
    pub linkage: Option<Linkage>,
    /// The program of the user's that each trial runs, if any.
    pub command: Option<Template>,
    /// What carries the cell out.
    pub tool: Tool,
}

impl CellSpec {
    /// Whether a trial runs a program instead of issuing requests.
    pub fn runs_program(&self) -> bool {
        self.linkage.is_some() || self.command.is_some()
    }

    /// The program with its arguments, not filled in yet.
    pub fn program(&self) -> Option<Template> {
        let reader = self.linkage.map(Linkage::template);
        self.command.clone().or(reader)
    }
}

impl Default for CellSpec {
    fn default() -> Self {
        Self {
            trial: TrialSpec::default(),
            workload: None,
            batch_auto: true,
            linkage: None,
            command: None,
            tool: Tool::Iolab,
        }
    }
}

/// What kind of value a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Bytes: `4096`, `4k`, `4KiB`.
    Size,
    /// A whole number.
    Count,
    /// A time: `0.5`, `250ms`.
    Time,
    /// `true` or `false`.
    Flag,
    /// A name out of a list.
    Word,
}

impl ValueKind {
    /// What it takes, for messages.
    pub fn wants(self) -> &'static str {
        match self {
            ValueKind::Size => "a size such as \"4KiB\" or 4096",
            ValueKind::Count => "a whole number",
            ValueKind::Time => "a time such as \"250ms\" or 0.5",
            ValueKind::Flag => "true or false",
            ValueKind::Word => "a name in quotes",
        }
    }
}

/// One setting of the engine.
#[derive(Debug)]
pub struct Setting {
    /// Its name in files, arguments and messages.
    pub name: &'static str,
    /// Names that fio users know it by.
    pub aliases: &'static [&'static str],
    /// Unit of its values; empty where there is none.
    pub unit: &'static str,
    /// What it does, in one line.
    pub doc: &'static str,
    /// What kind of value it takes.
    pub kind: ValueKind,
    set: fn(&mut CellSpec, &str) -> Result<()>,
    get: fn(&CellSpec) -> String,
}

/// Every setting, in the order in which they are shown.
pub static SETTINGS: &[Setting] = &[
    Setting {
        name: "backend",
        aliases: &["ioengine"],
        unit: "",
        doc: "how requests are issued: sync, psync, pvsync2, mmap, libaio, io_uring or null",
        kind: ValueKind::Word,
        set: |cell, text| put(&mut cell.trial.backend, text),
        get: |cell| cell.trial.backend.to_string(),
    },
    Setting {
        name: "pattern",
        aliases: &[],
        unit: "",
        doc: "order of the blocks: seq, strided, reverse, rand (each once per pass), rand-replace or zipf:THETA",
        kind: ValueKind::Word,
        set: |cell, text| put(&mut cell.trial.pattern, text),
        get: |cell| cell.trial.pattern.to_string(),
    },
    Setting {
        name: "bs",
        aliases: &[],
        unit: "bytes",
        doc: "I/O size: bytes of one request",
        kind: ValueKind::Size,
        set: |cell, text| put_size(&mut cell.trial.bs, text),
        get: |cell| format_size(cell.trial.bs),
    },
    Setting {
        name: "skip",
        aliases: &[],
        unit: "bytes",
        doc: "bytes left out after each I/O by pattern strided",
        kind: ValueKind::Size,
        set: |cell, text| put_size(&mut cell.trial.skip, text),
        get: |cell| format_size(cell.trial.skip),
    },
    Setting {
        name: "offset",
        aliases: &[],
        unit: "bytes",
        doc: "first byte of the region",
        kind: ValueKind::Size,
        set: |cell, text| put_size(&mut cell.trial.offset, text),
        get: |cell| format_size(cell.trial.offset),
    },
    Setting {
        name: "region",
        aliases: &["size"],
        unit: "bytes",
        doc: "length of the byte range that a trial may touch; cut to the target's size",
        kind: ValueKind::Size,
        set: |cell, text| put_size(&mut cell.trial.region, text),
        get: |cell| format_size(cell.trial.region),
    },
    Setting {
        name: "threads",
        aliases: &["numjobs"],
        unit: "",
        doc: "workers, 1 to 1024",
        kind: ValueKind::Count,
        set: |cell, text| put_count(&mut cell.trial.threads, text),
        get: |cell| cell.trial.threads.to_string(),
    },
    Setting {
        name: "depth",
        aliases: &["iodepth"],
        unit: "",
        doc: "outstanding requests per worker, 1 to 4096; above 1 for libaio, io_uring and null only",
        kind: ValueKind::Count,
        set: |cell, text| put_count(&mut cell.trial.depth, text),
        get: |cell| cell.trial.depth.to_string(),
    },
    Setting {
        name: "batch",
        aliases: &[],
        unit: "",
        doc: "completions an asynchronous worker waits for: one, a share such as 50%, all, or auto (chosen by short probes)",
        kind: ValueKind::Word,
        set: put_batch,
        get: |cell| match cell.batch_auto {
            true => "auto".to_owned(),
            false => cell.trial.batch.to_string(),
        },
    },
    Setting {
        name: "read_percent",
        aliases: &["rwmixread"],
        unit: "percent",
        doc: "share of reads: 100 reads only, 0 writes only",
        kind: ValueKind::Count,
        set: put_read_percent,
        get: |cell| cell.trial.read_percent.to_string(),
    },
    Setting {
        name: "workload",
        aliases: &[],
        unit: "",
        doc: "pattern and read_percent in one: WS, RS, WR or RR (write or read, sequential or random); none to say them apart",
        kind: ValueKind::Word,
        set: put_workload,
        get: |cell| or_none(cell.workload.as_ref()),
    },
    Setting {
        name: "layout",
        aliases: &[],
        unit: "",
        doc: "who touches what: shared (one file, a share per thread), interleaved (one file, blocks dealt out in turn) or private (a file per thread)",
        kind: ValueKind::Word,
        set: |cell, text| put(&mut cell.trial.layout, text),
        get: |cell| cell.trial.layout.to_string(),
    },
    Setting {
        name: "descriptors",
        aliases: &[],
        unit: "",
        doc: "who opens the file: private (each thread) or shared (one descriptor for all; backend sync then locks around lseek and read)",
        kind: ValueKind::Word,
        set: |cell, text| put(&mut cell.trial.descriptors, text),
        get: |cell| cell.trial.descriptors.to_string(),
    },
    Setting {
        name: "fresh",
        aliases: &[],
        unit: "",
        doc: "trials that only write start on a new file each, whose space is not allocated yet",
        kind: ValueKind::Flag,
        set: |cell, text| put_flag(&mut cell.trial.fresh, text),
        get: |cell| cell.trial.fresh.to_string(),
    },
    Setting {
        name: "sync",
        aliases: &[],
        unit: "",
        doc: "when writes are made durable: none, end, each, osync or odsync",
        kind: ValueKind::Word,
        set: |cell, text| put(&mut cell.trial.sync, text),
        get: |cell| cell.trial.sync.to_string(),
    },
    Setting {
        name: "cache",
        aliases: &[],
        unit: "",
        doc: "page cache: direct (bypassed), cold (dropped before the trial) or hot (read before the trial)",
        kind: ValueKind::Word,
        set: |cell, text| put(&mut cell.trial.cache, text),
        get: |cell| cell.trial.cache.to_string(),
    },
    Setting {
        name: "buffer_init",
        aliases: &[],
        unit: "",
        doc: "buffer preparation: untouched, zeroed, touched, populated, huge, nohuge or random",
        kind: ValueKind::Word,
        set: |cell, text| put(&mut cell.trial.buffer_init, text),
        get: |cell| cell.trial.buffer_init.to_string(),
    },
    Setting {
        name: "content",
        aliases: &[],
        unit: "",
        doc: "what is written: unique (incompressible, different in every 4 KiB), repeated or zero",
        kind: ValueKind::Word,
        set: |cell, text| put(&mut cell.trial.content, text),
        get: |cell| cell.trial.content.to_string(),
    },
    Setting {
        name: "verify",
        aliases: &[],
        unit: "",
        doc: "write blocks that bear offset, generation and checksum, and read them back after each trial, outside its time",
        kind: ValueKind::Flag,
        set: |cell, text| put_flag(&mut cell.trial.verify, text),
        get: |cell| cell.trial.verify.to_string(),
    },
    Setting {
        name: "bytes",
        aliases: &[],
        unit: "bytes",
        doc: "ends a trial after so many bytes over all threads; none for no such bound",
        kind: ValueKind::Size,
        set: |cell, text| put_bound(&mut cell.trial.limit.bytes, text, parse_size),
        get: |cell| bound_text(cell.trial.limit.bytes, format_size),
    },
    Setting {
        name: "requests",
        aliases: &[],
        unit: "",
        doc: "ends a trial after so many requests over all threads; none for no such bound",
        kind: ValueKind::Count,
        set: |cell, text| put_bound(&mut cell.trial.limit.requests, text, parse_count),
        get: |cell| bound_text(cell.trial.limit.requests, |n| n.to_string()),
    },
    Setting {
        name: "time",
        aliases: &["runtime"],
        unit: "s",
        doc: "ends a trial after so much time; none for no such bound",
        kind: ValueKind::Time,
        set: |cell, text| put_bound(&mut cell.trial.limit.time, text, parse_duration),
        get: |cell| bound_text(cell.trial.limit.time, format_duration),
    },
    Setting {
        name: "rate",
        aliases: &["rate_iops"],
        unit: "1/s",
        doc: "requests per second over all threads, made at intended starts whatever the storage does (open loop); none for the next as soon as one completes",
        kind: ValueKind::Count,
        set: |cell, text| put_bound(&mut cell.trial.rate, text, parse_rate),
        get: |cell| bound_text(cell.trial.rate, |n| n.to_string()),
    },
    Setting {
        name: "arrivals",
        aliases: &[],
        unit: "",
        doc: "spacing of the intended starts of a rate: constant or poisson",
        kind: ValueKind::Word,
        set: |cell, text| put(&mut cell.trial.arrivals, text),
        get: |cell| cell.trial.arrivals.to_string(),
    },
    Setting {
        name: "latency",
        aliases: &[],
        unit: "",
        doc: "record the service time of every request; false where that would cost more than the request",
        kind: ValueKind::Flag,
        set: |cell, text| put_flag(&mut cell.trial.latency, text),
        get: |cell| cell.trial.latency.to_string(),
    },
    Setting {
        name: "hardware_counters",
        aliases: &[],
        unit: "",
        doc: "count cycles, instructions, cache and TLB misses of the workers, where the machine offers it",
        kind: ValueKind::Flag,
        set: |cell, text| put_flag(&mut cell.trial.hardware_counters, text),
        get: |cell| cell.trial.hardware_counters.to_string(),
    },
    Setting {
        name: "registered",
        aliases: &[],
        unit: "",
        doc: "io_uring: register the file and the buffers",
        kind: ValueKind::Flag,
        set: |cell, text| put_flag(&mut cell.trial.registered, text),
        get: |cell| cell.trial.registered.to_string(),
    },
    Setting {
        name: "sqpoll",
        aliases: &[],
        unit: "",
        doc: "io_uring: a kernel thread polls the submission queue",
        kind: ValueKind::Flag,
        set: |cell, text| put_flag(&mut cell.trial.sqpoll, text),
        get: |cell| cell.trial.sqpoll.to_string(),
    },
    Setting {
        name: "iopoll",
        aliases: &[],
        unit: "",
        doc: "io_uring, pvsync2: poll for completions instead of taking interrupts",
        kind: ValueKind::Flag,
        set: |cell, text| put_flag(&mut cell.trial.iopoll, text),
        get: |cell| cell.trial.iopoll.to_string(),
    },
    Setting {
        name: "linkage",
        aliases: &[],
        unit: "",
        doc: "times iolab's small reader as a whole program, built so: static or dynamic; none for no program",
        kind: ValueKind::Word,
        set: |cell, text| put_or_none(&mut cell.linkage, text),
        get: |cell| or_none(cell.linkage.as_ref()),
    },
    Setting {
        name: "command",
        aliases: &[],
        unit: "",
        doc: "times a program of yours; {file}, {size} and {bs} are filled in; none for no program",
        kind: ValueKind::Word,
        set: |cell, text| put_or_none(&mut cell.command, text),
        get: |cell| or_none(cell.command.as_ref()),
    },
    Setting {
        name: "tool",
        aliases: &["peer"],
        unit: "",
        doc: "what carries the cell out: iolab, or your fio or iozone with options that mean the same",
        kind: ValueKind::Word,
        set: |cell, text| put(&mut cell.tool, text),
        get: |cell| cell.tool.to_string(),
    },
];

impl PartialEq for Setting {
    /// Names are unique in the table.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Setting {
    /// The setting of this name or fio alias.
    pub fn find(name: &str) -> Option<&'static Setting> {
        SETTINGS
            .iter()
            .find(|setting| setting.name == name || setting.aliases.contains(&name))
    }

    /// Sets it in a cell.
    ///
    /// # Errors
    /// Of kind usage, naming the setting and what it takes.
    pub fn set(&self, cell: &mut CellSpec, text: &str) -> Result<()> {
        (self.set)(cell, text.trim()).map_err(|error| error.within(self.name))
    }

    /// Its value in a cell, in the one form in which levels are written: `4KiB`, `rand`, `250ms`.
    pub fn get(&self, cell: &CellSpec) -> String {
        (self.get)(cell)
    }

    /// Brings a value into the one form in which levels are written.
    ///
    /// # Errors
    /// Of kind usage, naming the setting and what it takes.
    pub fn canonical(&self, text: &str) -> Result<String> {
        let mut cell = CellSpec::default();
        self.set(&mut cell, text)?;
        Ok(self.get(&cell))
    }
}

/// The error for a name that is in no table, with the nearest known names.
pub(crate) fn unknown(what: &str, name: &str, known: &[&str]) -> Error {
    let near = nearest(name, known);
    let hint = match near.as_slice() {
        [] => format!("it is one of: {}", known.join(", ")),
        near => format!("did you mean {}?", near.join(" or ")),
    };
    Error::usage(format!("{what} '{name}' is unknown")).hint(hint)
}

/// Known names that a slip of the keyboard could have turned into `name`, nearest first, at most three.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Vec<&'a str> {
    // A name from a stranger's file may be of any length; only short ones can be near.
    if name.is_empty() || name.len() > 64 {
        return Vec::new();
    }
    let lower = name.to_lowercase();
    let mut near: Vec<(usize, &str)> = known
        .iter()
        .map(|candidate| (distance(&lower, candidate), *candidate))
        .filter(|(far, candidate)| {
            *far <= candidate.len().div_ceil(3) || (name.len() > 2 && candidate.contains(&lower))
        })
        .collect();
    near.sort_by_key(|(far, _)| *far);
    near.into_iter().map(|(_, name)| name).take(3).collect()
}

/// Edit distance (insert, delete, replace), Wagner and Fischer, J. ACM 21 (1974).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

fn put<T: FromStr<Err = Error>>(place: &mut T, text: &str) -> Result<()> {
    *place = text.parse()?;
    Ok(())
}

fn put_size(place: &mut u64, text: &str) -> Result<()> {
    *place = parse_size(text)?;
    Ok(())
}

fn parse_count(text: &str) -> Result<u64> {
    text.parse::<u64>()
        .ok()
        .filter(|count| *count <= i64::MAX as u64)
        .ok_or_else(|| {
            Error::usage(format!("'{text}' is not a whole number"))
                .hint("write a number such as 16")
        })
}

fn parse_rate(text: &str) -> Result<u64> {
    parse_count(text)
        .ok()
        .filter(|rate| (1..=RATE_MAX).contains(rate))
        .ok_or_else(|| {
            Error::usage(format!("'{text}' is no rate")).hint(format!(
                "write requests per second, a whole number from 1 to {RATE_MAX}; or none"
            ))
        })
}

fn put_count(place: &mut u32, text: &str) -> Result<()> {
    *place = u32::try_from(parse_count(text)?).map_err(|_| {
        Error::usage(format!("{text} is far too many")).hint("choose a smaller number")
    })?;
    Ok(())
}

fn put_read_percent(cell: &mut CellSpec, text: &str) -> Result<()> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    cell.trial.read_percent = u8::try_from(parse_count(number)?)
        .ok()
        .filter(|percent| *percent <= 100)
        .ok_or_else(|| Error::usage(format!("{text} is no percentage")).hint("choose 0 to 100"))?;
    Ok(())
}

fn put_workload(cell: &mut CellSpec, text: &str) -> Result<()> {
    put_or_none(&mut cell.workload, text)?;
    if let Some(workload) = cell.workload {
        (cell.trial.pattern, cell.trial.read_percent) = workload.parts();
    }
    Ok(())
}

fn put_batch(cell: &mut CellSpec, text: &str) -> Result<()> {
    cell.batch_auto = text == "auto";
    if !cell.batch_auto {
        cell.trial.batch = text.parse::<Batch>().map_err(|_| {
            Error::usage(format!("'{text}' is unknown")).hint(
                "it is one of: one, all, a share of the depth such as 50% (1% to 99%), or auto",
            )
        })?;
    }
    Ok(())
}

fn put_flag(place: &mut bool, text: &str) -> Result<()> {
    *place = match text {
        "true" | "yes" | "on" | "1" => true,
        "false" | "no" | "off" | "0" => false,
        _ => {
            return Err(Error::usage(format!("'{text}' is neither true nor false"))
                .hint("write true or false"));
        }
    };
    Ok(())
}

/// Sets or lifts a bound of a trial.
fn put_bound<T>(place: &mut Option<T>, text: &str, parse: fn(&str) -> Result<T>) -> Result<()>
where
    T: PartialEq + Default,
{
    *place = match text {
        "none" => None,
        _ => Some(parse(text)?),
    };
    if *place == Some(T::default()) {
        return Err(Error::usage(format!("'{text}' bounds a trial to nothing"))
            .hint("give a value above zero, or none for no such bound"));
    }
    Ok(())
}

/// Sets something that can be absent.
fn put_or_none<T: FromStr<Err = Error>>(place: &mut Option<T>, text: &str) -> Result<()> {
    *place = match text {
        "none" => None,
        _ => Some(text.parse()?),
    };
    Ok(())
}

fn or_none(value: Option<&impl ToString>) -> String {
    value.map_or_else(|| "none".to_owned(), ToString::to_string)
}

fn bound_text<T: Copy>(bound: Option<T>, format: impl Fn(T) -> String) -> String {
    bound.map_or_else(|| "none".to_owned(), format)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value for each setting as users write it, and its canonical form.
    const EXAMPLES: &[(&str, &str, &str)] = &[
        ("backend", "io_uring", "io_uring"),
        ("pattern", "zipf:1.20", "zipf:1.2"),
        ("bs", "4k", "4KiB"),
        ("skip", "1024k", "1MiB"),
        ("offset", "0", "0"),
        ("region", "1G", "1GiB"),
        ("threads", " 8 ", "8"),
        ("depth", "32", "32"),
        ("batch", "auto", "auto"),
        ("read_percent", "70%", "70"),
        // Pattern and direction are those of the default: no other setting changes with it.
        ("workload", "rs", "RS"),
        ("layout", "private", "private"),
        ("descriptors", "shared", "shared"),
        ("fresh", "yes", "true"),
        ("sync", "each", "each"),
        ("cache", "hot", "hot"),
        ("buffer_init", "zeroed", "zeroed"),
        ("content", "repeated", "repeated"),
        ("verify", "on", "true"),
        ("bytes", "1048576", "1MiB"),
        ("requests", "1000", "1000"),
        ("time", "0.25", "250ms"),
        ("rate", "5000", "5000"),
        ("arrivals", "poisson", "poisson"),
        ("latency", "off", "false"),
        ("hardware_counters", "yes", "true"),
        ("registered", "0", "false"),
        ("sqpoll", "true", "true"),
        ("iopoll", "yes", "true"),
        ("linkage", "static", "static"),
        ("command", " cat  {file} ", "cat  {file}"),
        ("tool", "fio", "fio"),
    ];

    #[test]
    fn every_setting_sets_what_it_says() {
        for ((name, text, canonical), setting) in EXAMPLES.iter().zip(SETTINGS) {
            assert_eq!(setting.name, *name);
            let mut cell = CellSpec::default();
            setting.set(&mut cell, text).unwrap();
            assert_eq!(setting.get(&cell), *canonical, "{name}");
            assert_eq!(setting.canonical(canonical).unwrap(), *canonical, "{name}");
            for other in SETTINGS.iter().filter(|other| other.name != *name) {
                let untouched = other.get(&CellSpec::default());
                assert_eq!(other.get(&cell), untouched, "{name} changed {}", other.name);
            }
        }
    }

    #[test]
    fn defaults_can_be_written_and_read() {
        for setting in SETTINGS {
            let default = setting.get(&CellSpec::default());
            assert_eq!(setting.canonical(&default).unwrap(), default);
        }
    }

    #[test]
    fn fio_names_are_known() {
        for (alias, name) in [
            ("numjobs", "threads"),
            ("iodepth", "depth"),
            ("rwmixread", "read_percent"),
            ("ioengine", "backend"),
            ("size", "region"),
            ("rate_iops", "rate"),
        ] {
            assert_eq!(Setting::find(alias).unwrap().name, name);
        }
    }

    #[test]
    fn wrong_values_name_the_setting() {
        for (name, text) in [
            ("bs", "4kB"),
            ("threads", "-1"),
            ("threads", "99999999999"),
            ("read_percent", "101"),
            ("batch", "0%"),
            ("time", "0"),
            ("bytes", "0"),
            ("sqpoll", "maybe"),
            ("backend", "aio"),
            ("pattern", "zipf:x"),
            ("rate", "0"),
            ("rate", "-5"),
            ("rate", "1e3"),
            ("rate", "1000000001"),
            ("arrivals", "burst"),
            ("linkage", "both"),
            ("command", "cat {path}"),
            ("tool", "bonnie"),
            ("workload", "RW"),
            ("layout", "own"),
            ("descriptors", "both"),
        ] {
            let error = Setting::find(name).unwrap().canonical(text).unwrap_err();
            assert!(error.message().starts_with(name), "{error}");
            assert!(error.remedy().is_some(), "{error}");
        }
    }

    #[test]
    fn a_bound_can_be_lifted() {
        let mut cell = CellSpec::default();
        let bytes = Setting::find("bytes").unwrap();
        bytes.set(&mut cell, "1G").unwrap();
        bytes.set(&mut cell, "none").unwrap();
        assert_eq!(cell.trial.limit.bytes, None);
    }

    #[test]
    fn near_names_are_offered() {
        let known: Vec<&str> = SETTINGS.iter().map(|s| s.name).collect();
        assert_eq!(nearest("patern", &known)[0], "pattern");
        assert_eq!(nearest("thread", &known)[0], "threads");
        assert_eq!(nearest("percent", &known)[0], "read_percent");
        assert!(nearest("zzzzzz", &known).is_empty());
        assert!(nearest(&"x".repeat(1 << 20), &known).is_empty());
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
