//! How large the requests of a trial are, and how often they are sent.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{BS_MAX, FileLayout, Pattern, TrialSpec};
use crate::error::{Error, Result};
use crate::units::{exact_size, format_size, parse_size};
use crate::usage_errors;

const HINT: &str = "write sizes with their shares in percent, for example 4k:60,64k:30,1M:10; a range such as 4k-64k is all multiples of its first size; a slash separates reads from writes: 4k:100/64k:50,1M:50; @ sets the alignment of their offsets: 4k/64k@64k";

/// Most sizes, since each has a share of at least 1 %.
const SIZES_MAX: usize = 100;

/// Most sizes of a range: the requests of each are counted.
const RANGE_MAX: u64 = 4096;

/// A size of requests with its share, or several equally likely ones that share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SizeShare {
    /// Bytes of one request; the smallest of a range.
    pub bytes: u64,
    /// Number of sizes, from 1: the first multiples of `bytes`.
    pub multiples: u32,
    /// Share of the requests in percent, 1 to 100.
    pub percent: u32,
}

impl SizeShare {
    /// The largest of its sizes, bytes.
    pub fn largest(&self) -> u64 {
        self.bytes * u64::from(self.multiples)
    }

    /// Mean of its sizes, bytes.
    fn mean(&self) -> f64 {
        self.bytes as f64 * f64::from(self.multiples + 1) / 2.0
    }
}

/// Sizes whose shares add up to 100 %; at least one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sizes {
    shares: Vec<SizeShare>,
    start: Option<u64>,
}

/// The distribution of request sizes in a trial; each size is drawn independently.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SizeMix {
    /// Sizes of reads.
    pub reads: Sizes,
    /// Sizes of writes.
    pub writes: Sizes,
}

impl Sizes {
    /// Sizes with their shares, in the order given.
    pub fn shares(&self) -> &[SizeShare] {
        &self.shares
    }

    /// Alignment of random requests of these sizes, bytes; `None` for the `bs` of the trial.
    pub fn start(&self) -> Option<u64> {
        self.start
    }

    /// The mix with this alignment.
    pub fn starting_at(mut self, multiples_of: u64) -> Self {
        self.start = Some(multiples_of);
        self
    }

    /// Index in [`Sizes::shares`] of the size for a uniform draw from 0 to 99.
    #[inline]
    pub fn place(&self, draw: u32) -> usize {
        let mut below = 0;
        let found = self.shares.iter().position(|share| {
            below += share.percent;
            draw < below
        });
        found.unwrap_or(self.shares.len() - 1)
    }

    /// Mean size of a request, bytes.
    pub fn mean(&self) -> f64 {
        let part = |share: &SizeShare| share.mean() * f64::from(share.percent);
        self.shares.iter().map(part).sum::<f64>() / 100.0
    }

    fn of_one(text: &str) -> Result<Self> {
        let (text, start) = match text.split_once('@') {
            Some((sizes, start)) => (sizes, Some(parse_size(start)?)),
            None => (text, None),
        };
        let mut read: Vec<(u64, u32, Option<u32>)> = Vec::new();
        usage_errors! {
            text.split(',').nth(SIZES_MAX).is_some() => format!("more than {SIZES_MAX} sizes: shares are whole percent"), HINT;
        }
        for part in text.split(',') {
            let (size, percent) = match part.split_once(':') {
                Some((size, percent)) => (size, Some(parse_percent(percent)?)),
                None => (part, None),
            };
            let (bytes, multiples) = range(size)?;
            let mut own = (1..=multiples).map(|number| bytes * u64::from(number));
            let is_taken = |size: &u64| {
                let of = |(other, count, _): &(u64, u32, Option<u32>)| {
                    *other > 0
                        && size.is_multiple_of(*other)
                        && (1..=u64::from(*count)).contains(&(size / other))
                };
                read.iter().any(of)
            };
            if let Some(twice) = own.find(is_taken) {
                return Err(Error::usage(format!(
                    "{} appears twice in '{text}'",
                    exact_size(twice)
                ))
                .hint(HINT));
            }
            read.push((bytes, multiples, percent));
        }
        // Sizes without a share divide the rest evenly, as in fio.
        let given: u32 = read.iter().filter_map(|(_, _, percent)| *percent).sum();
        let is_open = |(_, _, percent): &&(u64, u32, Option<u32>)| percent.is_none();
        let open = read.iter().filter(is_open).count() as u32;
        let rest = 100u32.saturating_sub(given);
        let even = open > 0 && rest > 0 && rest.is_multiple_of(open);
        usage_errors! {
            given > 100 || (open == 0 && given < 100) || (open > 0 && !even) => format!("the shares of '{text}' do not add up to 100 %"),
                HINT;
        }
        let share = |(bytes, multiples, percent): (u64, u32, Option<u32>)| SizeShare {
            bytes,
            multiples,
            percent: percent.unwrap_or(rest / open.max(1)),
        };
        let shares = read.into_iter().map(share).collect();
        Ok(Self { shares, start })
    }
}

/// `4k`, or the range `4k-64k`: its smallest size, and how many multiples of it there are up to the largest.
fn range(text: &str) -> Result<(u64, u32)> {
    let Some((first, last)) = text.split_once('-') else {
        return Ok((parse_size(text)?, 1));
    };
    let (first, last) = (parse_size(first)?, parse_size(last)?);
    let multiples = last.checked_div(first).unwrap_or(0);
    usage_errors! {
        multiples < 2 || !last.is_multiple_of(first) || multiples > RANGE_MAX =>
            format!("'{text}' is not a range of 2 to {RANGE_MAX} sizes, all multiples of the first one"),
            HINT;
    }
    // At most RANGE_MAX.
    Ok((first, multiples as u32))
}

fn parse_percent(text: &str) -> Result<u32> {
    let number = text.trim().trim_end_matches('%').parse().ok();
    number
        .filter(|percent| (1..=100).contains(percent))
        .ok_or_else(|| {
            Error::usage(format!(
                "'{text}' is not a share in whole percent, 1 to 100"
            ))
            .hint(HINT)
        })
}

impl SizeMix {
    /// The sizes of reads or of writes.
    pub fn of(&self, reads: bool) -> &Sizes {
        if reads { &self.reads } else { &self.writes }
    }

    /// Whether any of its sizes are a range.
    pub fn has_ranges(&self) -> bool {
        self.all().any(|share| share.multiples > 1)
    }

    /// Whether reads have one size or range, and writes too.
    pub fn is_single(&self) -> bool {
        self.reads.shares.len() == 1 && self.writes.shares.len() == 1
    }

    fn all(&self) -> impl Iterator<Item = &SizeShare> {
        self.reads.shares.iter().chain(&self.writes.shares)
    }
}

impl FromStr for SizeMix {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (reads, writes) = match text.split_once('/') {
            Some((reads, writes)) => (Sizes::of_one(reads)?, Sizes::of_one(writes)?),
            None => (Sizes::of_one(text)?, Sizes::of_one(text)?),
        };
        Ok(Self { reads, writes })
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, share) in self.shares.iter().enumerate() {
            let separator = if place == 0 { "" } else { "," };
            write!(f, "{separator}{}", format_size(share.bytes))?;
            if share.multiples > 1 {
                write!(f, "-{}", format_size(share.largest()))?;
            }
            write!(f, ":{}", share.percent)?;
        }
        match self.start {
            None => Ok(()),
            Some(start) => write!(f, "@{}", format_size(start)),
        }
    }
}

impl fmt::Display for SizeMix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.reads)?;
        match self.reads == self.writes {
            true => Ok(()),
            false => write!(f, "/{}", self.writes),
        }
    }
}

impl TrialSpec {
    /// The largest request, bytes.
    pub fn largest_request(&self) -> u64 {
        let sizes = self.bs_mix.iter().flat_map(SizeMix::all);
        sizes.map(SizeShare::largest).max().unwrap_or(self.bs)
    }

    /// A size in the mix that is not a multiple of `alignment` bytes, if any.
    pub fn unaligned_request(&self, alignment: u64) -> Option<u64> {
        let sizes = self.bs_mix.iter().flat_map(SizeMix::all);
        sizes
            .map(|share| share.bytes)
            .find(|bytes| !bytes.is_multiple_of(alignment))
    }

    /// Mean size of a request, bytes.
    pub fn mean_request(&self) -> f64 {
        let Some(mix) = &self.bs_mix else {
            return self.bs as f64;
        };
        let reads = f64::from(self.read_percent) / 100.0;
        mix.reads.mean() * reads + mix.writes.mean() * (1.0 - reads)
    }

    /// Number of bytes over all threads that ends a trial with several sizes; `None` if all requests have one size, and are
    /// counted instead, or if another limit ends it.
    pub fn bytes_bound(&self) -> Option<u64> {
        self.bs_mix.as_ref()?;
        let bounded = self.limit.time.is_some();
        self.limit.bytes.or((!bounded).then_some(self.region))
    }

    /// Checks the sizes of a mix.
    pub(super) fn check_sizes(&self) -> Result<()> {
        let Some(mix) = &self.bs_mix else {
            return Ok(());
        };
        if let Some(odd) = mix.all().find(|share| {
            share.bytes == 0
                || share.largest() > BS_MAX
                || self.bs == 0
                || share.largest() > self.bs && !share.bytes.is_multiple_of(self.bs)
        }) {
            let (odd, bs) = (exact_size(odd.bytes), format_size(self.bs));
            return Err(Error::usage(format!(
                "bs_mix has requests of {odd}, which is neither below bs={bs} nor a multiple of it"
            ))
            .hint("with bs_mix, requests start at multiples of bs: set bs to a size that divides all larger sizes of the mix"));
        }
        let mut starts = [&mix.reads, &mix.writes]
            .into_iter()
            .filter_map(Sizes::start);
        let is_ordered = matches!(self.pattern, Pattern::Seq | Pattern::Reverse);
        usage_errors! {
            starts.clone().any(|start| start == 0 || start > BS_MAX || !start.is_multiple_of(self.bs)) =>
                format!("bs_mix={mix} with bs={}: a start that is not a multiple of bs", format_size(self.bs)),
                "set bs to a size that divides what follows the @";
            is_ordered && starts.next().is_some() => format!("bs_mix={mix} with pattern {}", self.pattern),
                "ordered requests start where the last one ended: leave the @ out, or choose a random pattern";
        }
        let largest = self.largest_request();
        let sharers = match self.parts_region() && self.pattern != Pattern::Rand
            || self.layout == FileLayout::Private
        {
            true => u64::from(self.workers()),
            false => 1,
        };
        usage_errors! {
            self.region / self.bs / sharers * self.bs < largest =>
                format!("bs_mix has requests of {}, more than the share of a thread", exact_size(largest)),
                format!("enlarge the region with --size, or use {}", self.fewer_workers());
            self.pattern == Pattern::Strided || self.layout == FileLayout::Interleaved =>
                format!("bs_mix with pattern {} and layout {}", self.pattern, self.layout),
                "strided and interleaved blocks have one size: set pattern=seq or rand and layout=shared";
            self.verify => "verify with bs_mix",
                "requests of different sizes replace parts of each other: leave out one of the two";
            self.fills_new_file() => "bs_mix with allocate=append or preallocated",
                "requests of different sizes do not fill a new file exactly: set allocate=recycled, or leave bs_mix out";
        }
        Ok(())
    }
}

/// Highest rate, requests per second: one per nanosecond, more than any storage.
pub const RATE_MAX: u64 = 1_000_000_000;

/// Highest rate in bytes per second: 1 EB/s, which fits a run file.
const BYTES_MAX: u64 = 1_000_000_000_000_000_000;

/// Units of a rate in bytes with their factors; the decimal ones of throughput come first.
const UNITS: [(&str, u64); 9] = [
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("TB", 1_000_000_000_000),
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

/// A rate over all threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// Requests per second, at most [`RATE_MAX`].
    Requests(u64),
    /// Bytes per second.
    Bytes(u64),
}

impl Rate {
    /// A group with this rate issues no requests.
    pub const ZERO: Self = Self::Requests(0);

    /// The rate in requests per second, for requests of this mean size in bytes.
    pub fn per_second(self, mean_request: f64) -> f64 {
        match self {
            Self::Requests(requests) => requests as f64,
            Self::Bytes(bytes) => bytes as f64 / mean_request.max(1.0),
        }
    }

    /// Requests per second; `None` for a rate in bytes.
    pub fn requests(self) -> Option<u64> {
        match self {
            Self::Requests(requests) => Some(requests),
            Self::Bytes(_) => None,
        }
    }

    /// Bytes per second; `None` for a rate in requests.
    pub fn bytes(self) -> Option<u64> {
        match self {
            Self::Requests(_) => None,
            Self::Bytes(bytes) => Some(bytes),
        }
    }
}

/// `5000` for requests, `50MB/s` or `64MiB/s` for bytes.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Requests(requests) => f.pad(&requests.to_string()),
            Self::Bytes(bytes) => {
                let whole = |(_, unit): &&(&str, u64)| bytes.is_multiple_of(*unit);
                let decimal = UNITS[..3].iter().find(whole);
                let binary = || UNITS[4..].iter().find(whole);
                let (name, unit) = decimal.or_else(binary).unwrap_or(&("B", 1));
                f.pad(&format!("{}{name}/s", bytes / unit))
            }
        }
    }
}

/// `5000`, `50MB/s`, `64MiB/s`; the `/s` is optional. 0 is [`Rate::ZERO`] in any unit.
impl FromStr for Rate {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::usage(format!("'{text}' is not a rate")).hint(format!(
                "write requests per second, a whole number from 1 to {RATE_MAX}, or bytes per second such as 50MB/s or 64MiB/s"
            ))
        };
        let trimmed = text.trim();
        let trimmed = trimmed.strip_suffix("/s").unwrap_or(trimmed);
        let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, unit) = trimmed.split_at(split.unwrap_or(trimmed.len()));
        let rate = match unit.trim() {
            "" if trimmed.len() == text.trim().len() => {
                let requests = number.parse().ok().filter(|rate| *rate <= RATE_MAX);
                Self::Requests(requests.ok_or_else(wrong)?)
            }
            unit => {
                let (_, unit) = UNITS
                    .iter()
                    .find(|(name, _)| name.eq_ignore_ascii_case(unit))
                    .ok_or_else(wrong)?;
                let bytes = match number.parse::<u64>() {
                    Ok(whole) => whole.checked_mul(*unit),
                    Err(_) => {
                        let bytes = number.parse::<f64>().map_err(|_| wrong())? * *unit as f64;
                        (bytes.fract() == 0.0).then_some(bytes as u64)
                    }
                };
                let bytes = bytes.filter(|bytes| *bytes <= BYTES_MAX);
                Self::Bytes(bytes.ok_or_else(wrong)?)
            }
        };
        Ok(match rate {
            Self::Bytes(0) => Self::ZERO,
            rate => rate,
        })
    }
}

/// The longest [`TrialSpec::rate_slack`]. With more, a backlog at the end of a trial could come from the slack and not from
/// the storage.
const SLACK_MAX: Duration = Duration::from_millis(1);

/// The slack of Linux's timers, by which other programs' sleeps end late: they serve as many requests with one sleep.
pub(super) const RATE_SLACK: Duration = Duration::from_micros(50);

impl TrialSpec {
    /// Checks the pauses of the threads.
    pub(super) fn check_pauses(&self) -> Result<()> {
        usage_errors! {
            self.thinktime.is_some() && self.rate.is_some() => "a rate with thinktime",
                "a rate determines when each request starts: leave out one of the two";
            self.rate_slack != RATE_SLACK && self.rate.is_none() => "rate_slack without a rate",
                "it is how late requests of a rate may start: set rate, for example rate=1000";
            self.rate_slack > SLACK_MAX => "rate_slack is longer than 1ms",
                "a longer one saves hardly more CPU time, and most of the response time would be iolab's own: set rate_slack=1ms, or less";
        }
        Ok(())
    }
}
