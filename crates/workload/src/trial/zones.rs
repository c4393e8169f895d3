//! Parts of the region that random requests prefer.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

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
