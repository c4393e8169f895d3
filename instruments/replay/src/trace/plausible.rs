//! Time stamps in another unit than their format says: found by dates and rates that cannot be.

use std::time::Duration;

use clap::ValueEnum;
use iolab_workload::units::{rough_duration, significant};
use iolab_workload::{Error, Result};

use super::line::TimeUnit;

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
