//! The one table of settings that an experiment may set or sweep: it serves TOML, `--set`,
//! messages and help.

mod names;
mod values;

use iolab_engine::Result;
use iolab_engine::spec::TrialSpec;

pub(crate) use self::names::{nearest, unknown};
use self::values::{
    bound_text, or_none, parse_count, parse_rate, put, put_batch, put_bound, put_count, put_flag,
    put_or_none, put_read_percent, put_size, put_workload,
};
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
        doc: "buffer preparation: untouched, zeroed, touched, populated, huge (pages: in one piece of memory), nohuge or random",
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

#[cfg(test)]
mod tests;
