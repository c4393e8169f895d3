//! Blocks in an order that is given, as fio's `random_distribution=sequence`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

/// Most blocks of a sequence; fio has 64.
const BLOCKS_MAX: usize = 32;

/// Numbers of blocks, visited in this order again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sequence {
    /// Entries from `count` on are zero.
    blocks: [u32; BLOCKS_MAX],
    count: u8,
    moves: bool,
}

impl Sequence {
    /// The blocks, at least one.
    pub fn blocks(&self) -> &[u32] {
        &self.blocks[..usize::from(self.count)]
    }

    /// The highest of them.
    pub fn highest(&self) -> u64 {
        self.blocks().iter().copied().max().unwrap_or(0).into()
    }

    /// Whether each pass over the sequence moves it on by the number of its blocks.
    pub fn moves(&self) -> bool {
        self.moves
    }

    /// As fio names it: `sequence:2,0,1`; whether it moves is an option of its own.
    pub fn as_fio(&self) -> String {
        format!("sequence:{}", self.separated(","))
    }

    fn separated(&self, by: &str) -> String {
        let blocks: Vec<String> = self.blocks().iter().map(u32::to_string).collect();
        blocks.join(by)
    }

    /// How many different blocks it has.
    pub(super) fn distinct(&self) -> u64 {
        self.blocks().iter().collect::<BTreeSet<_>>().len() as u64
    }

    /// A sequence of these blocks.
    ///
    /// # Errors
    /// Of kind [`Usage`](crate::Kind::Usage): there is none, or there are more than 32.
    pub fn new(numbers: &[u32], moves: bool) -> Result<Self> {
        let mut blocks = [0; BLOCKS_MAX];
        match blocks.get_mut(..numbers.len()) {
            Some(place) if !numbers.is_empty() => place.copy_from_slice(numbers),
            _ => {
                return Err(
                    Error::usage(format!("a sequence of {} blocks", numbers.len()))
                        .hint("list 1 to 32 blocks"),
                );
            }
        }
        Ok(Self {
            blocks,
            count: numbers.len() as u8,
            moves,
        })
    }
}

/// `2:0:1`, `2:0:1/next`.
impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.separated(":"))?;
        match self.moves {
            true => f.write_str("/next"),
            false => Ok(()),
        }
    }
}

/// `2:0:1`, or `2:0:1/next` for a sequence that moves on.
impl FromStr for Sequence {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (listed, moves) = match text.strip_suffix("/next") {
            Some(listed) => (listed, true),
            None => (text, false),
        };
        let blocks = listed.split(':').map(|block| block.trim().parse::<u32>());
        let blocks: std::result::Result<Vec<u32>, _> = blocks.collect();
        let blocks = blocks.map_err(|_| {
            Error::usage(format!("'{text}' is no sequence of blocks"))
                .hint("write numbers of blocks from 0 on, and /next where each pass moves them on: sequence:2:0:1/next")
        })?;
        Self::new(&blocks, moves)
    }
}

#[cfg(test)]
mod tests {
    use super::super::TrialSpec;
    use super::*;

    #[test]
    fn sequences_are_written_as_they_are_read() {
        for text in ["2:0:1", "2:0:1/next", "7"] {
            let sequence: Sequence = text.parse().expect("a sequence");
            assert_eq!(sequence.to_string(), text);
        }
        for text in ["", "/next", "2:x", "2,0", "-1", "99999999999"] {
            assert!(text.parse::<Sequence>().is_err(), "{text}");
        }
        assert!(["1"; 33].join(":").parse::<Sequence>().is_err());
        assert!(["1"; 32].join(":").parse::<Sequence>().is_ok());
    }

    #[test]
    fn a_sequence_that_stays_reaches_its_blocks() {
        for (pattern, blocks) in [
            ("sequence:2:0:1:2", 3),
            ("sequence:2:0:1:2/next", 8),
            ("rand", 8),
        ] {
            let spec = TrialSpec {
                pattern: pattern.parse().expect("a pattern"),
                region: 8 * 4096,
                ..TrialSpec::default()
            };
            assert_eq!(spec.reached_bytes(), blocks * 4096, "{pattern}");
        }
    }

    #[test]
    fn a_block_beyond_the_region_is_refused() {
        let of = |region| TrialSpec {
            pattern: "sequence:2:0:1".parse().expect("a pattern"),
            region,
            ..TrialSpec::default()
        };
        of(3 * 4096).check().expect("three blocks");
        let error = of(2 * 4096).check().expect_err("two blocks");
        insta::assert_snapshot!(error.message(), @"pattern=sequence:2:0:1: block 2 of 2, which are numbered from 0 on");
    }
}
