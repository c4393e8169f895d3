//! The formats of traces, and which of them a file has.

use std::fmt;

use clap::ValueEnum;
use iolab_workload::{Error, Result};

use super::Lines;
use super::blkparse::Blkparse;
use super::csv::Columns;
use super::iolog::Iolog;
use super::line::{Line, Parsed, Taken, writes};
use super::number::{TimeUnit, decimal};

/// Lines that are looked at to find a format.
const LOOKED_AT: usize = 10_000;

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

/// Reader of the lines of one format.
#[derive(Debug, Clone)]
pub(super) enum Parser {
    Iolog(Iolog),
    Blkparse(Blkparse),
    /// A format whose lines each stand alone.
    Rows(Format),
    Csv(Columns),
}

/// The formats whose lines each stand alone.
const OF_ROWS: [Format; 3] = [Format::Msr, Format::Alibaba, Format::Systor];

impl Parser {
    pub(super) fn format(&self) -> Format {
        match self {
            Self::Iolog(_) => Format::Iolog,
            Self::Blkparse(_) => Format::Blkparse,
            Self::Rows(format) => *format,
            Self::Csv(_) => Format::Csv,
        }
    }

    /// The unit of its stamps.
    pub(super) fn unit(&self) -> TimeUnit {
        match self {
            Self::Iolog(iolog) => iolog.unit(),
            Self::Rows(Format::Msr) => TimeUnit::Filetime,
            Self::Rows(Format::Alibaba) => TimeUnit::Us,
            Self::Blkparse(_) | Self::Rows(_) => TimeUnit::S,
            Self::Csv(columns) => columns.unit(),
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
            Self::Rows(format) => {
                row(*format, text).ok_or_else(|| format!("is not one of the format {format}"))
            }
            Self::Csv(columns) => columns.line(text),
        }
    }
}

/// The request of a line that stands alone, if it has one; `None` for a line of another format.
fn row(format: Format, text: &str) -> Option<Option<Line<'_>>> {
    match format {
        Format::Msr => msr(text),
        Format::Alibaba => alibaba(text),
        _ => systor(text),
    }
}

/// The fields of a line that has exactly this many.
fn fields<const N: usize>(text: &str) -> Option<[&str; N]> {
    let mut parts = text.split(',');
    let mut all = [""; N];
    for field in &mut all {
        *field = parts.next()?.trim();
    }
    parts.next().is_none().then_some(all)
}

/// A request to a device, from the fields of its stamp, its type, its offset and its size.
fn request<'a>(device: &'a str, fields: [&str; 4], took: Taken) -> Option<Option<Line<'a>>> {
    let [stamp, kind, offset, bytes] = fields;
    Some(Some(Line {
        device,
        stamp: decimal(stamp)?,
        writes: writes(kind)?,
        offset: offset.parse().ok()?,
        bytes: bytes.parse().ok()?,
        took,
    }))
}

/// `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, times as FILETIME. The device is named by its host and number.
fn msr(text: &str) -> Option<Option<Line<'_>>> {
    let [stamp, _, _, kind, offset, bytes, took] = fields(text)?;
    let (_, rest) = text.split_once(',')?;
    let (end, _) = rest.match_indices(',').nth(1)?;
    let took = Taken::Time(decimal(took)?);
    request(&rest[..end], [stamp, kind, offset, bytes], took)
}

/// `device_id,opcode,offset,length,timestamp`.
fn alibaba(text: &str) -> Option<Option<Line<'_>>> {
    let [device, kind, offset, bytes, stamp] = fields(text)?;
    match device {
        "device_id" => Some(None),
        _ => request(device, [stamp, kind, offset, bytes], Taken::Unknown),
    }
}

/// `Timestamp,Response,IOType,LUN,Offset,Size`. A request without a type, or without an answer, is one that the trace left out.
fn systor(text: &str) -> Option<Option<Line<'_>>> {
    let [stamp, response, kind, device, offset, bytes] = fields(text)?;
    if stamp == "Timestamp" || kind.is_empty() {
        return Some(None);
    }
    let took = match response {
        "" => Taken::Unknown,
        time => Taken::Time(decimal(time)?),
    };
    request(device, [stamp, kind, offset, bytes], took)
}

/// The parser for these lines: of a format that is stated, or else of the first that reads a line.
pub(super) fn parser(lines: &mut Lines, stated: Option<Format>) -> Result<Parser> {
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
    Ok(match format {
        Format::Iolog => Parser::Iolog(Iolog::of(&first).map_err(|what| lines.wrong(&what))?),
        Format::Csv => Parser::Csv(Columns::of(&first).map_err(|what| lines.wrong(&what))?),
        Format::Msr | Format::Alibaba | Format::Systor => Parser::Rows(format),
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
    })
}

/// The format of a first line.
fn of_line(text: &str) -> Option<Format> {
    if text.starts_with("fio version ") {
        return Some(Format::Iolog);
    }
    let mut rows = OF_ROWS.into_iter();
    if let Some(format) = rows.find(|format| row(*format, text).is_some()) {
        return Some(format);
    }
    // Names of columns, even if not all are there: the message then says which is missing.
    if text.contains(',') && text.starts_with(char::is_alphabetic) {
        return Some(Format::Csv);
    }
    Blkparse::is_one(text).then_some(Format::Blkparse)
}
