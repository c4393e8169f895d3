//! Lines of columns: CSV with a header that names columns and their units, and formats whose columns are always the same.

use clap::ValueEnum;

use super::line::{Format, Line, Parsed, Taken, TimeUnit, decimal, writes};

/// Longest header, columns.
const COLUMNS_MAX: usize = 64;
const SECTOR: u64 = 512;

/// The formats whose columns are always the same, with the names that a header would give them, and their own header.
const FIXED: [(Format, &str, &str); 3] = [
    (
        Format::Msr,
        "time_100ns,device,device,op,offset,bytes,latency_100ns",
        "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
    ),
    (
        Format::Alibaba,
        "device,op,offset,bytes,time_us",
        "device_id,opcode,offset,length,timestamp",
    ),
    (
        Format::Systor,
        "time_s,latency_s,op,device,offset,bytes",
        "Timestamp,Response,IOType,LUN,Offset,Size",
    ),
];

/// The columns of a file, by their places.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    pub(super) format: Format,
    header: String,
    count: usize,
    time: (usize, TimeUnit),
    op: usize,
    offset: (usize, u64),
    bytes: (usize, u64),
    latency: Option<(usize, TimeUnit)>,
    /// First and last column of its name.
    device: Option<(usize, usize)>,
}

impl Columns {
    /// The columns of a format that always has the same.
    pub(super) fn fixed(format: Format) -> Option<Self> {
        let (_, names, header) = FIXED.into_iter().find(|(own, ..)| *own == format)?;
        Some(Self {
            format,
            header: header.to_owned(),
            ..Self::of(names).ok()?
        })
    }

    /// The first of these formats that reads a line.
    pub(super) fn of_line(text: &str) -> Option<Self> {
        let mut all = FIXED.into_iter();
        all.find_map(|(format, ..)| Self::fixed(format).filter(|own| own.line(text).is_ok()))
    }

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
            device: place("device").zip(
                names
                    .iter()
                    .rposition(|own| own.eq_ignore_ascii_case("device")),
            ),
            header: header.to_owned(),
            count: names.len(),
            format: Format::Csv,
        })
    }

    pub(super) fn unit(&self) -> TimeUnit {
        self.time.1
    }

    pub(super) fn line<'a>(&self, text: &'a str) -> Parsed<'a> {
        let header = self.header.split(',').map(str::trim);
        if text.split(',').map(str::trim).eq(header) {
            return Ok(None);
        }
        self.read(text).ok_or_else(|| match self.format {
            Format::Csv => format!("does not fit the columns {}", self.header),
            format => format!("is not one of the format {format}"),
        })
    }

    fn read<'a>(&self, text: &'a str) -> Option<Option<Line<'a>>> {
        let mut fields = [""; COLUMNS_MAX];
        for (field, text) in fields.iter_mut().zip(text.split(',')) {
            *field = text.trim();
        }
        let is_fixed = self.format != Format::Csv;
        if is_fixed && text.split(',').count() != self.count {
            return None;
        }
        // SYSTOR '17 leaves requests out by their type, and answers by their time.
        let has_gaps = self.format == Format::Systor;
        if has_gaps && fields[self.op].is_empty() {
            return Some(None);
        }
        let number = |(at, unit): (usize, u64)| fields[at].parse::<u64>().ok()?.checked_mul(unit);
        let unit = self.time.1;
        let latency = |(at, own): (usize, TimeUnit)| {
            let time = decimal(fields[at])?;
            Some(time.saturating_mul(own.length_ns()) / unit.length_ns())
        };
        Some(Some(Line {
            device: self.device.map_or("", |place| between(text, place)),
            stamp: decimal(fields[self.time.0])?,
            writes: writes(fields[self.op])?,
            offset: number(self.offset)?,
            bytes: number(self.bytes)?,
            took: match self.latency {
                None => Taken::Unknown,
                Some((at, _)) if has_gaps && fields[at].is_empty() => Taken::Unknown,
                Some(place) => Taken::Time(latency(place)?),
            },
        }))
    }
}

/// The text from the first of these columns to the last.
fn between(text: &str, (first, last): (usize, usize)) -> &str {
    let commas = || text.match_indices(',').map(|(at, _)| at);
    let begin = first.checked_sub(1).and_then(|before| commas().nth(before));
    let end = commas().nth(last).unwrap_or(text.len());
    text[begin.map_or(0, |comma| comma + 1)..end].trim()
}
