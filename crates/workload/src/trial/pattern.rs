//! The order in which blocks are visited, its names and codes, and parts of the region that random requests
//! prefer.

use std::fmt;
use std::str::FromStr;

use crate::names::named;
use crate::{Error, Result};

/// The order in which blocks of the region are visited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pattern {
    /// Ascending, one block after the other.
    Seq,
    /// Ascending, with `skip` bytes left out after each block; wraps to the next unvisited phase.
    Strided,
    /// Descending.
    Reverse,
    /// A random permutation: each block once per pass.
    Rand,
    /// Uniform, independent draws.
    RandReplace,
    /// Zipf distribution with this exponent over scattered blocks.
    Zipf(f64),
    /// Pareto distribution over scattered blocks: with this parameter h, above 0 and below 1, a share of 1 - h of the requests
    /// goes to a share of h of the blocks.
    Pareto(f64),
    /// fio's normal distribution over scattered blocks: the mean of 12 uniform draws (Irwin-Hall), to which a uniform one over this
    /// percentage of the region is added, from 0 to below 100.
    Normal(f64),
    /// Independent draws that prefer parts of the region.
    Zoned(Zones),
}

impl Pattern {
    /// Whether every worker visits a contiguous share in the order of offsets, ascending or descending.
    pub fn is_ordered(self) -> bool {
        match self {
            Self::Seq | Self::Reverse | Self::Strided => true,
            Self::Rand
            | Self::RandReplace
            | Self::Zipf(_)
            | Self::Pareto(_)
            | Self::Normal(_)
            | Self::Zoned(_) => false,
        }
    }

    /// Whether every thread draws from the whole region, instead of a share of its own.
    pub fn shares_region(self) -> bool {
        match self {
            Self::RandReplace
            | Self::Zipf(_)
            | Self::Pareto(_)
            | Self::Normal(_)
            | Self::Zoned(_) => true,
            Self::Seq | Self::Strided | Self::Reverse | Self::Rand => false,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seq => f.pad("seq"),
            Self::Strided => f.pad("strided"),
            Self::Reverse => f.pad("reverse"),
            Self::Rand => f.pad("rand"),
            Self::RandReplace => f.pad("rand-replace"),
            Self::Zipf(theta) => f.pad(&format!("zipf:{theta}")),
            Self::Pareto(h) => f.pad(&format!("pareto:{h}")),
            Self::Normal(percent) => f.pad(&format!("normal:{percent}")),
            Self::Zoned(zones) => f.pad(&format!("zones:{zones}")),
        }
    }
}

impl FromStr for Pattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let number = |number: &str, is_valid: fn(f64) -> bool| {
            let number = number.parse::<f64>().ok();
            number.filter(|number| is_valid(*number))
        };
        let wrong =
            |hint: &str| Error::usage(format!("pattern '{text}' has no usable number")).hint(hint);
        match text {
            "seq" => return Ok(Self::Seq),
            "strided" => return Ok(Self::Strided),
            "reverse" => return Ok(Self::Reverse),
            "rand" => return Ok(Self::Rand),
            "rand-replace" => return Ok(Self::RandReplace),
            _ => {}
        }
        match text.split_once(':') {
            Some(("zipf", theta)) => number(theta, |theta| theta > 0.0 && theta <= 100.0)
                .map(Self::Zipf)
                .ok_or_else(|| {
                    Error::usage(format!("pattern '{text}' has no usable exponent"))
                        .hint("write zipf:THETA with a number above 0 and at most 100, for example zipf:1.1")
                }),
            Some(("pareto", h)) => number(h, |h| h > 0.0 && h < 1.0)
                .map(Self::Pareto)
                .ok_or_else(|| {
                    wrong("write pareto:H with a number above 0 and below 1: with pareto:0.2, 80 % of the requests go to 20 % of the blocks")
                }),
            Some(("normal", percent)) => number(percent, |percent| (0.0..=50.0).contains(&percent))
                .map(Self::Normal)
                .ok_or_else(|| {
                    wrong("write normal:PERCENT with a number from 0 to 50, the share of the blocks over which its mean is spread (fio takes more, and uses 50)")
                }),
            Some(("zones", zones)) => Ok(Self::Zoned(zones.parse()?)),
            _ => Err(Error::usage(format!("pattern '{text}' is unknown")).hint(
                "it is one of: seq, strided, reverse, rand, rand-replace, zipf:THETA, pareto:H, normal:PERCENT, zones:50/5:30/15:20/80",
            )),
        }
    }
}

named! {
    /// Write or read, sequential or random.
    pub enum WorkloadCode: "workload", else in_capitals {
        /// Sequential writes.
        WS = "WS",
        /// Sequential reads.
        RS = "RS",
        /// Random writes, each block once per pass.
        WR = "WR",
        /// Random reads, each block once per pass.
        RR = "RR",
    }
}

fn in_capitals(text: &str) -> Option<Result<WorkloadCode>> {
    let capitals = text.to_uppercase();
    (capitals != text).then(|| capitals.parse())
}

impl WorkloadCode {
    /// Its pattern, and its share of reads in percent.
    pub fn parts(self) -> (Pattern, u8) {
        match self {
            Self::WS => (Pattern::Seq, 0),
            Self::RS => (Pattern::Seq, 100),
            Self::WR => (Pattern::Rand, 0),
            Self::RR => (Pattern::Rand, 100),
        }
    }

    /// The code for a pattern's name and a share of reads in percent; `None` if there is none.
    pub fn of(pattern: &str, read_percent: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| {
            let (its, percent) = code.parts();
            percent == read_percent && its.to_string() == pattern
        })
    }
}

/// Most parts of the region.
const ZONES_MAX: usize = 16;

/// Shares of the requests for consecutive shares of the region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zones {
    /// Percent of the requests and of the region; entries from `count` on are zero.
    shares: [(u8, u8); ZONES_MAX],
    count: u8,
}

/// A part of the region with its share of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone {
    /// Cumulated percent of the requests, for this part and those before it.
    pub up_to: u8,
    /// First block of the zone.
    pub first: u64,
    /// Its number of blocks, at least 1.
    pub blocks: u64,
}

impl Zones {
    /// The zones with requests, in a region of `blocks` blocks. A zone smaller than a block gets the block at its start.
    pub fn of(&self, blocks: u64) -> Vec<Zone> {
        let at = |percent: u64| (u128::from(blocks) * u128::from(percent) / 100) as u64;
        let (mut requests, mut before) = (0, 0);
        let mut zones = Vec::with_capacity(usize::from(self.count));
        for (share, length) in self.shares() {
            let end = before + u64::from(*length);
            requests += share;
            if *share > 0 {
                let first = at(before).min(blocks.saturating_sub(1));
                zones.push(Zone {
                    up_to: requests,
                    first,
                    blocks: at(end).saturating_sub(first).max(1),
                });
            }
            before = end;
        }
        zones
    }

    fn shares(&self) -> &[(u8, u8)] {
        &self.shares[..usize::from(self.count)]
    }
}

/// `50/5:30/15:20/80`.
impl fmt::Display for Zones {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (requests, length)) in self.shares().iter().enumerate() {
            let separator = if place == 0 { "" } else { ":" };
            write!(f, "{separator}{requests}/{length}")?;
        }
        Ok(())
    }
}

/// `50/5:30/15:20/80`; the last number may be left out, and is then the rest.
impl FromStr for Zones {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |why: &str| {
            Error::usage(format!("'{text}' are not zones: {why}")).hint(
                "write the percentage of the requests and of the region for each zone, each adding up to 100: zones:50/5:30/15:20/80",
            )
        };
        let mut zones = Self {
            shares: [(0, 0); ZONES_MAX],
            count: 0,
        };
        let (mut requests, mut lengths) = (0_u32, 0_u32);
        let mut parts = text.split(':').peekable();
        while let Some(part) = parts.next() {
            let (share, length) = part.split_once('/').unwrap_or((part, ""));
            let rest = 100_u32.saturating_sub(lengths);
            let length = match length.trim() {
                "" if parts.peek().is_none() => Some(rest),
                length => length.parse::<u32>().ok(),
            };
            let share = share.trim().parse::<u32>().ok();
            let Some((share, length)) = share.zip(length) else {
                return Err(wrong("a share is not a whole number"));
            };
            if length == 0 && share > 0 {
                return Err(wrong("a zone without blocks has requests"));
            }
            let Some(place) = zones.shares.get_mut(usize::from(zones.count)) else {
                return Err(wrong("there are more than 16"));
            };
            requests = requests.saturating_add(share);
            lengths = lengths.saturating_add(length);
            match (u8::try_from(share), u8::try_from(length)) {
                (Ok(share), Ok(length)) if requests <= 100 && lengths <= 100 => {
                    *place = (share, length);
                }
                _ => return Err(wrong("they add up to more than 100 %")),
            }
            zones.count += 1;
        }
        match (requests, lengths) {
            (100, 100) => Ok(zones),
            _ => Err(wrong("they add up to less than 100 %")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_mean_pattern_and_direction() {
        for code in WorkloadCode::ALL {
            let (pattern, percent) = code.parts();
            assert_eq!(WorkloadCode::of(&pattern.to_string(), percent), Some(*code));
            let lower = code.to_string().to_lowercase();
            assert_eq!(lower.parse::<WorkloadCode>().expect("a code"), *code);
        }
        assert_eq!(WorkloadCode::of("seq", 50), None);
        assert_eq!(WorkloadCode::of("reverse", 100), None);
        let error = "RW".parse::<WorkloadCode>().expect_err("no code");
        assert!(error.remedy().is_some());
    }
}
