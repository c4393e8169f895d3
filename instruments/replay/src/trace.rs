//! Traces of block requests, read as a stream in bounded memory: lines, numbers and units that all formats share.

pub mod format;
pub mod survey;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use iolab_workload::trial::BS_MAX;
use iolab_workload::units::{exact_size, parse_positive_duration};
use iolab_workload::{Error, Result};

use format::Parser;

/// Longest line, bytes.
const LINE_MAX: u64 = 64 << 10;
/// Requests among which stamps are put in order. A request that is late by more keeps its place.
const REORDERED: usize = 1024;
/// Most requests whose ends are kept to count those in flight.
const ENDS_MAX: usize = 1 << 16;
/// Longest trace, ns: 146 years.
const SPAN_MAX: u128 = 1 << 62;

/// A request of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// Arrival, ns since the first one.
    pub at_ns: u64,
    /// Whether it writes.
    pub writes: bool,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub bytes: u32,
    /// Requests in flight at its arrival, with itself; `None` in a trace without completions.
    pub depth: Option<u32>,
}

/// A trace, and how it is read.
#[derive(Debug, Clone, Default, Args)]
pub struct Reading {
    /// Trace: fio iolog 2 or 3, text of blkparse, MSR Cambridge, Alibaba, SYSTOR '17, or CSV with a header
    /// (time_us,op,offset,bytes)
    pub trace: PathBuf,
    /// Format of the trace; default: by its first line
    #[arg(long, value_enum)]
    pub trace_format: Option<Format>,
    /// Unit of its time stamps; default: the unit of the format
    #[arg(long, value_enum)]
    pub time_unit: Option<TimeUnit>,
    /// Device, volume or file of the trace, if it has several
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Leave out the requests after this time of the trace; default: none
    #[arg(long = "for", value_name = "TIME", value_parser = parse_positive_duration)]
    pub window: Option<Duration>,
}

/// A trace in a file.
#[derive(Debug, Clone)]
pub struct Trace {
    parser: Parser,
    reading: Reading,
}

impl Trace {
    /// Finds the format of a trace by its first lines.
    ///
    /// # Errors
    /// Of kind usage: the file cannot be read, or its format is not known.
    pub fn open(reading: &Reading) -> Result<Self> {
        let mut lines = Lines::of(open(&reading.trace)?);
        let within = |error: Error| error.within(reading.trace.display());
        let parser = format::parser(&mut lines, reading.trace_format).map_err(within)?;
        Ok(Self {
            parser,
            reading: reading.clone(),
        })
    }

    /// Its format.
    pub fn format(&self) -> Format {
        self.parser.format()
    }

    /// The unit of its time stamps.
    pub fn unit(&self) -> TimeUnit {
        self.reading.time_unit.unwrap_or(self.parser.unit())
    }

    /// The trace from its first request on.
    ///
    /// # Errors
    /// Of kind usage: the file cannot be read.
    pub fn requests(&self) -> Result<Requests> {
        Ok(Requests::of(open(&self.reading.trace)?, self))
    }
}

fn open(path: &Path) -> Result<Box<dyn BufRead + Send>> {
    let place = path.display();
    // Before it is opened: opening a FIFO may wait for ever.
    let is_other = std::fs::metadata(path).is_ok_and(|data| !data.is_file());
    if is_other || path == Path::new("-") {
        return Err(Error::usage(format!("{place} is not a regular file"))
            .hint("write the trace to a file first: it is read more than once"));
    }
    match File::open(path) {
        Ok(file) => Ok(Box::new(BufReader::with_capacity(1 << 18, file))),
        Err(error) => {
            Err(Error::usage(format!("cannot read {place}: {error}"))
                .hint("give the file of a trace"))
        }
    }
}

/// Lines of bounded length.
struct Lines {
    from: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    number: u64,
}

impl Lines {
    fn of(from: Box<dyn BufRead + Send>) -> Self {
        Self {
            from,
            line: Vec::new(),
            number: 0,
        }
    }

    /// The next line without its end; `None` after the last.
    ///
    /// # Errors
    /// Of kind usage: a line that is too long, or no text.
    fn next(&mut self) -> Result<Option<&str>> {
        self.line.clear();
        let mut part = std::io::Read::take(&mut self.from, LINE_MAX);
        let read = part.read_until(b'\n', &mut self.line);
        self.number += 1;
        match read {
            Err(error) => return Err(Error::failed(format!("cannot read the trace: {error}"))),
            Ok(0) => return Ok(None),
            Ok(_) => {}
        }
        if self.line.len() as u64 == LINE_MAX {
            let longest = exact_size(LINE_MAX);
            return Err(self.wrong(&format!("is longer than {longest}")));
        }
        match std::str::from_utf8(&self.line) {
            // Spreadsheets begin a file with a mark of its encoding.
            Ok(text) => Ok(Some(text.trim_start_matches('\u{feff}').trim_end())),
            Err(_) => Err(self.wrong("is not text")),
        }
    }

    fn wrong(&self, what: &str) -> Error {
        Error::usage(format!("line {} {what}", self.number))
            .hint("give a trace in a format that iolab replay --help names, unpacked; --trace-format states the format")
    }
}

/// A request by stamp and number, with its time in service, ns.
type Waiting = (u128, u64, Access, Option<u64>);

/// The requests of a trace in the order of their stamps.
pub struct Requests {
    lines: Lines,
    parser: Parser,
    device: Option<String>,
    /// Time after which no request counts, ns.
    window_ns: u128,
    unit: TimeUnit,
    /// Requests that are put in order.
    waiting: BinaryHeap<Reverse<Waiting>>,
    number: u64,
    ended: bool,
    first: Option<u128>,
    /// Ends of requests in flight, ns.
    ends: BinaryHeap<Reverse<u64>>,
    on_line: survey::OnLines,
}

impl Requests {
    fn of(from: Box<dyn BufRead + Send>, trace: &Trace) -> Self {
        Self {
            lines: Lines::of(from),
            parser: trace.parser.clone(),
            device: trace.reading.device.clone(),
            window_ns: trace
                .reading
                .window
                .map_or(u128::MAX, |window| window.as_nanos()),
            unit: trace.unit(),
            waiting: BinaryHeap::with_capacity(REORDERED + 1),
            number: 0,
            ended: false,
            first: None,
            ends: BinaryHeap::new(),
            on_line: survey::OnLines::default(),
        }
    }

    /// The next request; `None` after the last.
    ///
    /// # Errors
    /// Of kind usage: a line that is not one of the format, with its number.
    pub fn next_request(&mut self) -> Result<Option<Access>> {
        while !self.ended && self.waiting.len() <= REORDERED {
            self.read_line()?;
        }
        let Some(Reverse((stamp, _, access, took_ns))) = self.waiting.pop() else {
            return Ok(None);
        };
        let first = *self.first.get_or_insert(stamp);
        let since = stamp.saturating_sub(first);
        if since >= self.window_ns {
            // Later ones may be out of order by as many as are put in order, and not by more.
            self.ended = true;
            self.waiting.clear();
            return Ok(None);
        }
        if since >= SPAN_MAX {
            return Err(
                Error::usage("its time stamps are more than 146 years apart")
                    .hint("state their unit with --time-unit"),
            );
        }
        let at_ns = since as u64;
        let counted = || took_ns.map(|took| self.in_flight(at_ns, took));
        Ok(Some(Access {
            at_ns,
            depth: access.depth.or_else(counted),
            ..access
        }))
    }

    /// Requests in flight when one arrives that takes this time, with itself.
    fn in_flight(&mut self, at_ns: u64, took_ns: u64) -> u32 {
        while self.ends.peek().is_some_and(|Reverse(end)| *end <= at_ns) {
            self.ends.pop();
        }
        if self.ends.len() >= ENDS_MAX {
            self.ends.pop();
        }
        self.ends.push(Reverse(at_ns.saturating_add(took_ns)));
        self.ends.len() as u32
    }

    fn read_line(&mut self) -> Result<()> {
        let Some(text) = self.lines.next()? else {
            self.ended = true;
            return Ok(());
        };
        let line = match self.parser.line(text) {
            Ok(None) => return Ok(()),
            Ok(Some(line)) => line,
            Err(what) => return Err(self.lines.wrong(&what)),
        };
        self.on_line.device(line.device);
        if self.device.as_deref().is_some_and(|own| own != line.device) {
            return Ok(());
        }
        self.on_line.stamp(line.stamp);
        let (unit, Line { offset, bytes, .. }) = (self.unit, line);
        let stamp = unit.ns(line.stamp);
        if bytes == 0 {
            return Ok(());
        }
        let ends = offset.checked_add(bytes);
        if bytes > BS_MAX || ends.is_none_or(|end| end > i64::MAX as u64) {
            return Err(self.lines.wrong(&format!(
                "has a request of {bytes} bytes at {offset}, beyond what a system call transfers"
            )));
        }
        let (took_ns, depth) = match line.took {
            Taken::Unknown => (None, None),
            Taken::Time(time) => (Some(u64::try_from(unit.ns(time)).unwrap_or(u64::MAX)), None),
            Taken::Depth(depth) => (None, Some(depth)),
        };
        let access = Access {
            // Known once the first request is.
            at_ns: 0,
            writes: line.writes,
            offset,
            bytes: bytes as u32,
            depth,
        };
        self.number += 1;
        let waiting = (stamp, self.number, access, took_ns);
        self.waiting.push(Reverse(waiting));
        Ok(())
    }
}

/// Format of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// iolog of fio, version 2 or 3
    Iolog,
    /// Text of blkparse
    Blkparse,
    /// MSR Cambridge
    Msr,
    /// Alibaba block traces
    Alibaba,
    /// SYSTOR '17
    Systor,
    /// CSV with a header: time_us,op,offset,bytes
    Csv,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Iolog => "fio iolog",
            Self::Blkparse => "blkparse",
            Self::Msr => "MSR Cambridge",
            Self::Alibaba => "Alibaba",
            Self::Systor => "SYSTOR '17",
            Self::Csv => "CSV",
        })
    }
}

/// A request as a line has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line<'a> {
    device: &'a str,
    /// Time stamp, in units of the format, times [`SCALE`].
    stamp: u128,
    writes: bool,
    offset: u64,
    bytes: u64,
    took: Taken,
}

/// End of a request, as far as its line has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Unknown,
    /// Time in service, in units of the format, times [`SCALE`].
    Time(u128),
    /// Requests in flight at its arrival, with itself.
    Depth(u32),
}

/// The request of a line, or what the line is instead.
type Parsed<'a> = std::result::Result<Option<Line<'a>>, String>;

/// Whether an operation of this name writes; `None` for unknown names.
fn writes(name: &str) -> Option<bool> {
    let is = |names: [&str; 2]| names.iter().any(|one| name.eq_ignore_ascii_case(one));
    match (is(["r", "read"]), is(["w", "write"])) {
        (true, _) => Some(false),
        (_, true) => Some(true),
        _ => None,
    }
}

/// Parts of a unit that a stamp distinguishes: nine decimals.
const SCALE: u128 = 1_000_000_000;

/// Unit of time stamps, the longest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TimeUnit {
    /// Seconds
    S,
    /// Milliseconds
    Ms,
    /// Microseconds
    Us,
    /// 100 nanoseconds, since 1601 if stamps are dates (FILETIME)
    #[value(name = "100ns")]
    Filetime,
    /// Nanoseconds
    Ns,
}

impl TimeUnit {
    /// Its name in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::S => "seconds",
            Self::Ms => "milliseconds",
            Self::Us => "microseconds",
            Self::Filetime => "units of 100 ns",
            Self::Ns => "nanoseconds",
        }
    }

    /// Its name as an argument.
    pub fn argument(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Its length, ns.
    fn length_ns(self) -> u128 {
        match self {
            Self::S => 1_000_000_000,
            Self::Ms => 1_000_000,
            Self::Us => 1_000,
            Self::Filetime => 100,
            Self::Ns => 1,
        }
    }

    /// Nanoseconds of a number of [`decimal`].
    fn ns(self, number: u128) -> u128 {
        number.saturating_mul(self.length_ns()) / SCALE
    }
}

/// A number without sign, times [`SCALE`]; decimals beyond nine are cut.
fn decimal(text: &str) -> Option<u128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 20 || !digits(whole) || !digits(part) {
        return None;
    }
    let mut decimals = 0;
    for place in 0..9 {
        let digit = part.as_bytes().get(place).map_or(0, |digit| digit - b'0');
        decimals = decimals * 10 + u128::from(digit);
    }
    Some(whole.parse::<u128>().ok()? * SCALE + decimals)
}
