//! The number of requests of each size in a trial.

use serde::{Deserialize, Serialize};

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// Number of requests of one direction and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeCount {
    /// Whether these are reads.
    pub reads: bool,
    /// Size of each, bytes.
    pub bytes: u64,
    /// Number of requests issued.
    pub requests: u64,
}

/// The sizes of requests, if they were drawn; empty if all have the same.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RequestSizes(Vec<SizeCount>);

impl RequestSizes {
    /// Leaves out sizes without requests, and adds up counts of the same.
    pub fn new(counts: impl IntoIterator<Item = SizeCount>) -> Self {
        let issued = counts.into_iter().filter(|count| count.requests > 0);
        let mut counts: Vec<SizeCount> = issued.collect();
        counts.sort_by_key(|count| (!count.reads, count.bytes));
        counts.dedup_by(|count, before| {
            let is_same = (count.reads, count.bytes) == (before.reads, before.bytes);
            if is_same {
                before.requests = before.requests.saturating_add(count.requests);
            }
            is_same
        });
        Self(counts)
    }

    /// Reads, then writes, each by size.
    pub fn counts(&self) -> &[SizeCount] {
        &self.0
    }

    /// The sum of two workers.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self::new(self.0.into_iter().chain(other.0))
    }
}

/// `read 4096 601,read 65536 299,write 4096 100`: direction, bytes, requests.
impl fmt::Display for RequestSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = |count: &SizeCount| {
            let direction = if count.reads { "read" } else { "write" };
            format!("{direction} {} {}", count.bytes, count.requests)
        };
        let all: Vec<String> = self.0.iter().map(one).collect();
        f.write_str(&all.join(","))
    }
}

impl FromStr for RequestSizes {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let one = |text: &str| {
            let mut words = text.split(' ');
            let reads = match words.next()? {
                "read" => true,
                "write" => false,
                _ => return None,
            };
            let mut number = || words.next()?.parse().ok();
            let (bytes, requests) = (number()?, number()?);
            words.next().is_none().then_some(SizeCount {
                reads,
                bytes,
                requests,
            })
        };
        let parts = text.split(',').filter(|part| !part.is_empty());
        let counts: Option<Vec<SizeCount>> = parts.map(one).collect();
        counts.map(Self::new).ok_or_else(|| {
            Error::usage(format!("'{text}' are not counts of requests by size"))
                .hint("write for example: read 4096 601,write 65536 299")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_parse_as_written_and_add_up() {
        let of = |text: &str| text.parse::<RequestSizes>().expect(text);
        let text = "read 4096 601,read 65536 299,write 4096 100";
        assert_eq!(of(text).to_string(), text);
        assert_eq!(of(""), RequestSizes::default());
        let sum = of("read 4096 1,write 4096 2").plus(of("write 4096 3,read 512 4"));
        assert_eq!(sum.to_string(), "read 512 4,read 4096 1,write 4096 5");
        // One worker draws sizes in the order of its mix.
        let drawn = [65536, 4096].map(|bytes| SizeCount {
            reads: true,
            bytes,
            requests: 1,
        });
        assert_eq!(
            RequestSizes::new(drawn).to_string(),
            "read 4096 1,read 65536 1"
        );
        for wrong in ["read 4096", "trim 4096 1", "read x 1", "read 1 2 3"] {
            assert!(wrong.parse::<RequestSizes>().is_err(), "{wrong}");
        }
    }
}
