//! A line of a trace, as all formats yield it.
//!
//! Numbers of traces: decimal fractions without rounding, and units of time.

use std::fmt;

use clap::ValueEnum;

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
pub(super) struct Line<'a> {
    pub(super) device: &'a str,
    /// Time stamp, in units of the format, times [`SCALE`].
    pub(super) stamp: u128,
    pub(super) writes: bool,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) took: Taken,
}

/// End of a request, as far as its line has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    Unknown,
    /// Time in service, in units of the format, times [`SCALE`].
    Time(u128),
    /// Requests in flight at its arrival, with itself.
    Depth(u32),
}

/// The request of a line, or what the line is instead.
pub(super) type Parsed<'a> = Result<Option<Line<'a>>, String>;

/// Whether an operation of this name writes; `None` for unknown names.
pub(super) fn writes(name: &str) -> Option<bool> {
    let is = |names: [&str; 2]| names.iter().any(|one| name.eq_ignore_ascii_case(one));
    match (is(["r", "read"]), is(["w", "write"])) {
        (true, _) => Some(false),
        (_, true) => Some(true),
        _ => None,
    }
}

/// Parts of a unit that a stamp distinguishes: nine decimals.
pub(super) const SCALE: u128 = 1_000_000_000;

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
    pub(super) fn length_ns(self) -> u128 {
        match self {
            Self::S => 1_000_000_000,
            Self::Ms => 1_000_000,
            Self::Us => 1_000,
            Self::Filetime => 100,
            Self::Ns => 1,
        }
    }

    /// Nanoseconds of a number of [`decimal`].
    pub(super) fn ns(self, number: u128) -> u128 {
        number.saturating_mul(self.length_ns()) / SCALE
    }
}

/// A number without sign, times [`SCALE`]; decimals beyond nine are cut.
pub(super) fn decimal(text: &str) -> Option<u128> {
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
