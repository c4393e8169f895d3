//! The formats of traces (columns, blkparse, fio's iolog), and which of them a file has.

use std::collections::BTreeSet;
use std::io::{self, Write};

use clap::ValueEnum;
use iolab_workload::Error;

use super::{Access, Format, Line, Lines, Parsed, Taken, TimeUnit, decimal, writes};

/// Lines that are looked at to find a format.
const LOOKED_AT: usize = 10_000;

/// Reader of the lines of one format.
#[derive(Debug, Clone)]
pub(super) enum Parser {
    Iolog(Iolog),
    Blkparse(Blkparse),
    Columns(Columns),
}

impl Parser {
    pub(super) fn format(&self) -> Format {
        match self {
            Self::Iolog(_) => Format::Iolog,
            Self::Blkparse(_) => Format::Blkparse,
            Self::Columns(columns) => columns.format,
        }
    }

    /// The unit of its stamps.
    pub(super) fn unit(&self) -> TimeUnit {
        match self {
            Self::Iolog(iolog) => iolog.unit(),
            Self::Blkparse(_) => TimeUnit::S,
            Self::Columns(columns) => columns.unit(),
        }
    }

    /// The request of a line; `None` for a line without one. The error says what the line is, without its number.
    pub(super) fn line<'a>(&mut self, text: &'a str) -> Parsed<'a> {
        if text.is_empty() || text.starts_with('#') {
            return Ok(None);
        }
        match self {
            Self::Iolog(iolog) => iolog.line(text),
            Self::Blkparse(blkparse) => Ok(blkparse.line(text)),
            Self::Columns(columns) => columns.line(text),
        }
    }
}

/// The parser for these lines: of a format that is stated, or else of the first that reads a line.
pub(super) fn parser(lines: &mut Lines, stated: Option<Format>) -> iolab_workload::Result<Parser> {
    let mut first = loop {
        match lines.next()? {
            None => return Err(Error::usage("the trace is empty").hint("give another file")),
            Some(text) if text.is_empty() || text.starts_with('#') => {}
            Some(text) => break text.to_owned(),
        }
    };
    let format = match stated {
        Some(format) => format,
        None => of_line(&first).ok_or_else(|| lines.wrong("is of no format that iolab knows"))?,
    };
    if let Some(columns) = Columns::fixed(format) {
        return Ok(Parser::Columns(columns));
    }
    Ok(match format {
        Format::Iolog => Parser::Iolog(Iolog::of(&first).map_err(|what| lines.wrong(&what))?),
        Format::Blkparse => {
            let mut queued = false;
            for _ in 0..LOOKED_AT {
                queued |= Blkparse::queues(&first);
                match lines.next()? {
                    Some(text) if !queued => text.clone_into(&mut first),
                    _ => break,
                }
            }
            Parser::Blkparse(Blkparse::new(queued))
        }
        _ => Parser::Columns(Columns::of(&first).map_err(|what| lines.wrong(&what))?),
    })
}

/// The format of a first line.
fn of_line(text: &str) -> Option<Format> {
    if text.starts_with("fio version ") {
        return Some(Format::Iolog);
    }
    if let Some(columns) = Columns::of_line(text) {
        return Some(columns.format);
    }
    // Names of columns, even if not all are there: the message then says which is missing.
    if text.contains(',') && text.starts_with(char::is_alphabetic) {
        return Some(Format::Csv);
    }
    Blkparse::is_one(text).then_some(Format::Blkparse)
}

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

/// The columns of a file, by their places: named by a header with their units, or always the same.
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

/// Most requests in flight of which completions are looked for.
const IN_FLIGHT_MAX: usize = 1 << 16;

/// Reader of the text of blkparse in its default format: `8,0 3 1 0.000000000 697 Q W 223490 + 8 [kjournald]`. Arrivals are
/// events Q, or D in a trace without them; completions are events C. Remaps, merges, summaries and other lines are passed over.
#[derive(Debug, Clone)]
pub(super) struct Blkparse {
    arrival: &'static str,
    /// First sectors of requests in flight, of reads and of writes.
    in_flight: BTreeSet<(bool, u64)>,
    completes: bool,
}

/// An event with sectors.
struct Event<'a> {
    device: &'a str,
    time: u128,
    action: &'a str,
    writes: bool,
    first: u64,
    count: u64,
}

impl Event<'_> {
    fn of(text: &str) -> Option<Event<'_>> {
        let mut words = text.split_ascii_whitespace();
        let device = words.next()?;
        let (major, minor) = device.split_once(',')?;
        let is_number = |text: &str| text.parse::<u32>().is_ok();
        if !is_number(major) || !is_number(minor) {
            return None;
        }
        words.next().filter(|word| is_number(word))?;
        words.next()?;
        let time = decimal(words.next()?)?;
        words.next().filter(|word| is_number(word))?;
        let (action, flags) = (words.next()?, words.next()?);
        let writes = match (flags.contains('R'), flags.contains('W')) {
            (true, false) => false,
            (false, true) => true,
            _ => return None,
        };
        let first = words.next()?.parse().ok()?;
        if flags.contains('D') || words.next()? != "+" {
            return None;
        }
        Some(Event {
            device,
            time,
            action,
            writes,
            first,
            count: words.next()?.parse().ok()?,
        })
    }
}

impl Blkparse {
    /// A reader that takes events Q as arrivals, or else D.
    pub(super) fn new(queued: bool) -> Self {
        Self {
            arrival: if queued { "Q" } else { "D" },
            in_flight: BTreeSet::new(),
            completes: false,
        }
    }

    /// Whether a line is an event.
    pub(super) fn is_one(text: &str) -> bool {
        let mut words = text.split_ascii_whitespace();
        let device = words.next().and_then(|device| device.split_once(','));
        device.is_some_and(|(major, _)| major.parse::<u32>().is_ok())
            && words.nth(2).is_some_and(|time| time.contains('.'))
    }

    /// Whether a line is an event Q.
    pub(super) fn queues(text: &str) -> bool {
        Event::of(text).is_some_and(|event| event.action == "Q")
    }

    pub(super) fn line<'a>(&mut self, text: &'a str) -> Option<Line<'a>> {
        let event = Event::of(text)?;
        let Event { writes, first, .. } = event;
        if event.action == "C" {
            self.completes = true;
            let end = first.saturating_add(event.count);
            let done = self
                .in_flight
                .range((writes, first)..(writes, end.max(first)));
            let done: Vec<_> = done.copied().collect();
            for key in done {
                self.in_flight.remove(&key);
            }
            return None;
        }
        if event.action != self.arrival {
            return None;
        }
        if self.in_flight.len() >= IN_FLIGHT_MAX {
            self.in_flight.pop_first();
        }
        self.in_flight.insert((writes, first));
        Some(Line {
            device: event.device,
            stamp: event.time,
            writes,
            offset: first.saturating_mul(SECTOR),
            bytes: event.count.saturating_mul(SECTOR),
            took: match self.completes {
                true => Taken::Depth(self.in_flight.len() as u32),
                false => Taken::Unknown,
            },
        })
    }
}

/// Reader of an iolog.
///
/// Version 2 has times only in its lines `wait`. The manual calls them microseconds since the wait before; the program (`iolog.c`,
/// `read_iolog_get`) takes them as milliseconds since its start, and so does this. Version 3 begins each line with microseconds.
#[derive(Debug, Clone)]
pub(super) struct Iolog {
    is_third: bool,
    /// Stamp of the last `wait`.
    waited: u128,
}

impl Iolog {
    /// The log with this first line.
    pub(super) fn of(first: &str) -> Result<Self, String> {
        let version = first
            .strip_prefix("fio version ")
            .and_then(|rest| rest.strip_suffix(" iolog"));
        match version {
            Some("2") => Ok(Self::new(false)),
            Some("3") => Ok(Self::new(true)),
            Some(_) => Err("is of an iolog that is neither version 2 nor 3".to_owned()),
            None => Err("does not begin an iolog (fio version 2 iolog)".to_owned()),
        }
    }

    fn new(is_third: bool) -> Self {
        Self {
            is_third,
            waited: 0,
        }
    }

    pub(super) fn unit(&self) -> TimeUnit {
        match self.is_third {
            true => TimeUnit::Us,
            false => TimeUnit::Ms,
        }
    }

    pub(super) fn line<'a>(&mut self, text: &'a str) -> Parsed<'a> {
        let wrong = || "is not one of an iolog".to_owned();
        if text.starts_with("fio version ") {
            return Ok(None);
        }
        let mut words = text.split_ascii_whitespace();
        let stamp = match self.is_third {
            true => words.next().and_then(decimal).ok_or_else(wrong)?,
            false => self.waited,
        };
        let (device, action) = words.next().zip(words.next()).ok_or_else(wrong)?;
        let number = words.next().and_then(|word| word.parse::<u64>().ok());
        let bytes = words.next().and_then(|word| word.parse::<u64>().ok());
        match (action, writes(action)) {
            ("wait", _) if !self.is_third => {
                let number = number.ok_or_else(wrong)?;
                self.waited = decimal(&number.to_string()).ok_or_else(wrong)?;
                Ok(None)
            }
            (_, Some(writes)) => Ok(Some(Line {
                device,
                stamp,
                writes,
                offset: number.ok_or_else(wrong)?,
                bytes: bytes.ok_or_else(wrong)?,
                took: Taken::Unknown,
            })),
            ("add" | "open" | "close" | "sync" | "datasync" | "trim", _) => Ok(None),
            _ => Err(wrong()),
        }
    }
}

/// Writes requests to one file as an iolog of version 3.
///
/// # Errors
/// The log cannot be written.
pub fn write_iolog(
    to: &mut dyn Write,
    file: &str,
    requests: impl Iterator<Item = Access>,
) -> io::Result<()> {
    writeln!(to, "fio version 3 iolog\n0 {file} add\n0 {file} open")?;
    let mut at_us = 0;
    for row in requests {
        let kind = if row.writes { "write" } else { "read" };
        at_us = row.at_ns / 1000;
        writeln!(to, "{at_us} {file} {kind} {} {}", row.offset, row.bytes)?;
    }
    writeln!(to, "{at_us} {file} close")
}
