//! Contents of a trace, counted in one pass before a replay, and doubts about the unit of its time stamps.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::ValueEnum;
use iolab_latency::{LatencyHistogram, new_latency_histogram};
use iolab_workload::units::{counted, rough_duration, significant};
use iolab_workload::{Error, Result};

use super::{SCALE, TimeUnit, Trace};

/// Most devices whose requests are counted apart.
const DEVICES_MAX: usize = 1000;
/// Devices that a message names.
const NAMED: usize = 3;
/// Number of requests from which stamps in whole seconds cannot be chance.
const WHOLE_FROM: u64 = 10;

/// Facts that the lines of a trace show in addition to their requests.
#[derive(Debug, Default)]
pub struct OnLines {
    devices: BTreeMap<String, u64>,
    /// The first stamp, in units of the format, times [`SCALE`].
    pub(super) first_stamp: Option<u128>,
    has_parts_of_seconds: bool,
    stamps: u64,
    /// One second, as a stamp.
    one_second: u128,
}

impl OnLines {
    pub(super) fn device(&mut self, name: &str) {
        if let Some(count) = self.devices.get_mut(name) {
            *count += 1;
        } else if self.devices.len() < DEVICES_MAX {
            self.devices.insert(name.to_owned(), 1);
        }
    }

    pub(super) fn stamp(&mut self, stamp: u128) {
        self.first_stamp.get_or_insert(stamp);
        self.stamps += 1;
        self.has_parts_of_seconds |= !stamp.is_multiple_of(self.one_second.max(1));
    }
}

/// The content of a trace.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes that are read.
    pub read_bytes: u64,
    /// Bytes that are written.
    pub written_bytes: u64,
    /// From the first arrival to the last, ns.
    pub span_ns: u64,
    /// End of the last byte.
    pub end: u64,
    /// Longest request, bytes.
    pub largest: u32,
    /// Median time from one arrival to the next, ns.
    pub median_gap_ns: u64,
    /// Mean requests in flight at an arrival, with it; `None` in a trace without completions.
    pub mean_depth: Option<f64>,
    /// Whether all stamps are whole seconds.
    pub whole_seconds: bool,
}

impl Survey {
    /// Goes through a trace.
    ///
    /// # Errors
    /// Of kind usage: a line that is not one of the format; no request; several devices; stamps that cannot be in their unit.
    pub fn of(trace: &Trace) -> Result<Self> {
        Self::counted(trace).map_err(|error| error.within(trace.reading.trace.display()))
    }

    fn counted(trace: &Trace) -> Result<Self> {
        let mut requests = trace.requests()?;
        requests.on_line.one_second = SCALE * 1_000_000_000 / trace.unit().length_ns();
        let mut own = Self::default();
        let mut gaps: LatencyHistogram = new_latency_histogram();
        let (mut depths, mut known) = (0.0, 0u64);
        while let Some(access) = requests.next_request()? {
            let (count, bytes) = match access.writes {
                true => (&mut own.writes, &mut own.written_bytes),
                false => (&mut own.reads, &mut own.read_bytes),
            };
            *count += 1;
            *bytes = bytes.saturating_add(access.bytes.into());
            own.end = own.end.max(access.offset + u64::from(access.bytes));
            own.largest = own.largest.max(access.bytes);
            if own.requests() > 1 {
                gaps.saturating_record(access.at_ns.saturating_sub(own.span_ns));
            }
            own.span_ns = own.span_ns.max(access.at_ns);
            if let Some(depth) = access.depth {
                depths += f64::from(depth);
                known += 1;
            }
        }
        let on_line = requests.on_line;
        if own.requests() == 0 {
            return Err(nothing(&on_line.devices, trace.reading.device.as_deref()));
        }
        if on_line.devices.len() > 1 && trace.reading.device.is_none() {
            return Err(several(&on_line.devices));
        }
        own.median_gap_ns = gaps.value_at_quantile(0.5);
        own.mean_depth = (known > 0).then(|| depths / known as f64);
        own.whole_seconds = !on_line.has_parts_of_seconds && on_line.stamps >= WHOLE_FROM;
        if trace.reading.time_unit.is_none() {
            let stamped = Stamped {
                requests: own.requests(),
                bytes: own.read_bytes.saturating_add(own.written_bytes),
                span_ns: own.span_ns,
                first: on_line.first_stamp.unwrap_or_default() / SCALE,
            };
            check(&stamped, trace.unit())?;
        }
        Ok(own)
    }

    /// All requests.
    pub fn requests(&self) -> u64 {
        self.reads + self.writes
    }

    /// Requests per second.
    pub fn rate(&self) -> f64 {
        self.requests() as f64 * 1e9 / self.span_ns.max(1) as f64
    }
}

fn nothing(devices: &BTreeMap<String, u64>, wanted: Option<&str>) -> Error {
    match wanted {
        Some(_) if devices.keys().eq([""]) => {
            Error::usage("--device: the trace names no devices").hint("leave it out")
        }
        Some(device) if !devices.is_empty() => {
            Error::usage(format!("no request to the device {device}"))
                .hint(format!("choose one with --device: {}", named(devices)))
        }
        _ => Error::usage("no reads and no writes").hint("give another trace"),
    }
}

fn several(devices: &BTreeMap<String, u64>) -> Error {
    let count = match devices.len() {
        DEVICES_MAX => format!("{DEVICES_MAX} devices or more"),
        few => format!("{few} devices"),
    };
    Error::usage(format!("its requests are of {count}")).hint(format!(
        "replay one of them with --device: {}",
        named(devices)
    ))
}

/// The busiest devices.
fn named(devices: &BTreeMap<String, u64>) -> String {
    let mut all: Vec<_> = devices.iter().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let some = all.iter().take(NAMED);
    let some: Vec<String> = some
        .map(|(name, count)| format!("{name} ({})", counted(**count, "request")))
        .collect();
    some.join(", ")
}

/// Requests from which a mean rate means something.
const COUNT_MIN: u64 = 100;
/// Greatest rate of one device, requests per second.
const RATE_MAX: f64 = 5e6;
/// Greatest throughput of one device, bytes per second.
const BYTES_MAX: f64 = 100e9;
/// Longest mean time between two requests of a trace, s.
const GAP_MAX: f64 = 1000.0;
/// Longest mean time between two requests of a trace whose dates are read in another unit, s.
const DATED_GAP_MAX: f64 = 1.0;
/// Seconds from 1601 to 1970.
const FILETIME_EPOCH: u128 = 11_644_473_600;
const YEAR: u128 = 31_556_952;

/// The stamps of a trace, read in its unit.
pub(super) struct Stamped {
    pub(super) requests: u64,
    /// Bytes that are read or written.
    pub(super) bytes: u64,
    pub(super) span_ns: u64,
    /// The first stamp, in its unit.
    pub(super) first: u128,
}

/// Refuses stamps that only another unit makes plausible.
pub(super) fn check(stamped: &Stamped, unit: TimeUnit) -> Result<()> {
    // Stamps that are all the same say nothing of their unit.
    if stamped.requests < COUNT_MIN || stamped.span_ns == 0 {
        return Ok(());
    }
    let read = |other: TimeUnit| Read::of(stamped, unit, other);
    let own = read(unit);
    let mut others: Vec<TimeUnit> = TimeUnit::value_variants()
        .iter()
        .copied()
        .filter(|other| *other != unit)
        .collect();
    let ratio = |other: &TimeUnit| {
        let (one, other) = (unit.length_ns(), other.length_ns());
        one.max(other) / one.min(other)
    };
    others.sort_by_key(ratio);
    let mut others = others.into_iter().map(read).filter(Read::is_plausible);
    let better = match own.is_plausible() {
        false => others.next(),
        true if own.year.is_some() => None,
        true => others.find(|other| other.year.is_some() && other.gap() <= DATED_GAP_MAX),
    };
    let Some(better) = better else {
        return Ok(());
    };
    Err(Error::usage(format!(
        "its time stamps cannot be {}: read as {}; read as {}",
        unit.name(),
        own.words(),
        better.words()
    ))
    .hint(format!(
        "state the unit that it has: --time-unit {}, or --time-unit {}",
        better.unit.argument(),
        unit.argument()
    )))
}

/// A trace whose stamps are read in some unit.
struct Read {
    unit: TimeUnit,
    requests: f64,
    bytes: f64,
    span_s: f64,
    /// Year of the first stamp, if it is a date of our time.
    year: Option<u128>,
}

impl Read {
    fn of(stamped: &Stamped, own: TimeUnit, unit: TimeUnit) -> Self {
        let longer = unit.length_ns() as f64 / own.length_ns() as f64;
        let seconds = stamped.first.saturating_mul(unit.length_ns()) / 1_000_000_000;
        let since_1970 = match unit {
            TimeUnit::Filetime => seconds.checked_sub(FILETIME_EPOCH),
            _ => Some(seconds),
        };
        let year = since_1970.map(|seconds| 1970 + seconds / YEAR);
        Self {
            unit,
            requests: stamped.requests as f64,
            bytes: stamped.bytes as f64,
            span_s: stamped.span_ns as f64 * longer / 1e9,
            year: year.filter(|year| (1990..2100).contains(year)),
        }
    }

    fn gap(&self) -> f64 {
        self.span_s / self.requests
    }

    fn is_plausible(&self) -> bool {
        self.requests / self.span_s <= RATE_MAX
            && self.bytes / self.span_s <= BYTES_MAX
            && self.gap() <= GAP_MAX
    }

    fn words(&self) -> String {
        let span = Duration::try_from_secs_f64(self.span_s).unwrap_or(Duration::MAX);
        let span = match span.as_secs() {
            0..60 => iolab_workload::units::format_ns(self.span_s * 1e9),
            _ => rough_duration(span),
        };
        let of = self
            .year
            .map_or_else(String::new, |year| format!(" of {year}"));
        let rate = significant(self.requests / self.span_s);
        format!(
            "{}, the trace is {span}{of} with {rate} requests/s",
            self.unit.name()
        )
    }
}
