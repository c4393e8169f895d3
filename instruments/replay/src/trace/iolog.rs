//! The iolog of fio: versions 2 and 3 are read, version 3 is written.

use std::io::{self, Write};

use super::Access;
use super::line::{Line, Parsed, Taken, TimeUnit, decimal, writes};

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
pub fn write(
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
