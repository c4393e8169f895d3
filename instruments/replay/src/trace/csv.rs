//! CSV with a header that names columns and their units.

use clap::ValueEnum;

use super::line::{Line, Parsed, Taken, writes};
use super::number::{TimeUnit, decimal};

/// Longest header, columns.
const COLUMNS_MAX: usize = 64;
const SECTOR: u64 = 512;

/// The columns of a file, by their places.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    header: String,
    time: (usize, TimeUnit),
    op: usize,
    offset: (usize, u64),
    bytes: (usize, u64),
    latency: Option<(usize, TimeUnit)>,
    device: Option<usize>,
}

impl Columns {
    /// The columns of this header.
    pub(super) fn of(header: &str) -> Result<Self, String> {
        let names: Vec<&str> = header.split(',').take(COLUMNS_MAX).map(str::trim).collect();
        let place = |name: &str| names.iter().position(|own| own.eq_ignore_ascii_case(name));
        let timed = |what: &str| {
            let named = |unit: &TimeUnit| {
                let at = place(&format!("{what}_{}", unit.argument()))?;
                Some((at, *unit))
            };
            TimeUnit::value_variants().iter().find_map(named)
        };
        let sized = |bytes: &str, sectors: &str| {
            let in_bytes = place(bytes).map(|at| (at, 1));
            in_bytes.or_else(|| place(sectors).map(|at| (at, SECTOR)))
        };
        let missing = |what: &str| format!("names no column {what}");
        Ok(Self {
            time: timed("time").ok_or_else(|| missing("time_s, time_ms, time_us or time_ns"))?,
            op: place("op").ok_or_else(|| missing("op"))?,
            offset: sized("offset", "sector").ok_or_else(|| missing("offset or sector"))?,
            bytes: sized("bytes", "sectors").ok_or_else(|| missing("bytes or sectors"))?,
            latency: timed("latency"),
            device: place("device"),
            header: header.to_owned(),
        })
    }

    pub(super) fn unit(&self) -> TimeUnit {
        self.time.1
    }

    pub(super) fn line<'a>(&self, text: &'a str) -> Parsed<'a> {
        if text == self.header {
            return Ok(None);
        }
        self.read(text)
            .map(Some)
            .ok_or_else(|| format!("does not fit the columns {}", self.header))
    }

    fn read<'a>(&self, text: &'a str) -> Option<Line<'a>> {
        let mut fields = [""; COLUMNS_MAX];
        for (field, text) in fields.iter_mut().zip(text.split(',')) {
            *field = text.trim();
        }
        let number = |(at, unit): (usize, u64)| fields[at].parse::<u64>().ok()?.checked_mul(unit);
        let unit = self.time.1;
        let latency = |(at, own): (usize, TimeUnit)| {
            let time = decimal(fields[at])?;
            Some(time.saturating_mul(own.length_ns()) / unit.length_ns())
        };
        Some(Line {
            device: self.device.map_or("", |at| fields[at]),
            stamp: decimal(fields[self.time.0])?,
            writes: writes(fields[self.op])?,
            offset: number(self.offset)?,
            bytes: number(self.bytes)?,
            took: match self.latency {
                None => Taken::Unknown,
                Some(place) => Taken::Time(latency(place)?),
            },
        })
    }
}
