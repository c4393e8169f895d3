//! The formats of traces, and which of them a file has.

use iolab_workload::{Error, Result};

use super::Lines;
use super::blkparse::Blkparse;
use super::csv::Columns;
use super::iolog::Iolog;
use super::line::{Format, Parsed, TimeUnit};

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
