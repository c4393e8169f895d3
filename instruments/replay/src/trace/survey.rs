//! Contents of a trace, counted in one pass before anything is replayed.

use std::collections::BTreeMap;

use iolab_latency::{LatencyHistogram, new_latency_histogram};
use iolab_workload::units::counted;
use iolab_workload::{Error, Result};

use super::Trace;
use super::line::SCALE;
use super::plausible::{self, Stamped};

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
            plausible::check(&stamped, trace.unit())?;
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
