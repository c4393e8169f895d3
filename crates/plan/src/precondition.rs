//! What is written to a target before the first trial, to bring it into the state of long use.

use std::fmt;
use std::str::FromStr;

use iolab_workload::{Error, Result};

/// Most passes of one kind.
const PASSES_MAX: u32 = 100;

/// How a target is prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precondition {
    /// Nothing is written.
    #[default]
    None,
    /// This many passes over the region: sequential writes, then random ones.
    Passes {
        /// Sequential passes.
        seq: u32,
        /// Random passes, each of which writes every block once.
        rand: u32,
    },
    /// One sequential pass, then random writes until their rate is steady.
    Steady,
}

impl Precondition {
    /// Whether anything is written.
    pub fn writes(self) -> bool {
        self != Precondition::None
    }

    /// Fewest passes over the region, and whether there may be more; `None` where nothing is written.
    pub fn passes(self) -> Option<(u32, bool)> {
        match self {
            Precondition::None => None,
            Precondition::Passes { seq, rand } => Some((seq + rand, false)),
            // Steadiness is judged over several passes.
            Precondition::Steady => Some((2, true)),
        }
    }
}

impl fmt::Display for Precondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Precondition::None => "none".to_owned(),
            Precondition::Steady => "steady".to_owned(),
            Precondition::Passes { seq, rand: 0 } => format!("seq:{seq}"),
            Precondition::Passes { seq: 0, rand } => format!("rand:{rand}"),
            Precondition::Passes { seq, rand } => format!("seq:{seq}+rand:{rand}"),
        };
        f.pad(&text)
    }
}

impl FromStr for Precondition {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::usage(format!("precondition '{text}' is unknown")).hint(format!(
                "write none, seq:PASSES, rand:PASSES, both as seq:1+rand:2 (at most {PASSES_MAX} each), or steady"
            ))
        };
        match text.trim() {
            "none" => return Ok(Precondition::None),
            "steady" => return Ok(Precondition::Steady),
            _ => {}
        }
        let (mut seq, mut rand) = (0, 0);
        for part in text.trim().split('+') {
            let (name, passes) = part.split_once(':').unwrap_or((part, "1"));
            let passes: u32 = passes.parse().map_err(|_| wrong())?;
            let place = match name {
                "seq" => &mut seq,
                "rand" => &mut rand,
                _ => return Err(wrong()),
            };
            if *place > 0 || !(1..=PASSES_MAX).contains(&passes) {
                return Err(wrong());
            }
            *place = passes;
        }
        Ok(Precondition::Passes { seq, rand })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for (text, canonical) in [
            ("none", "none"),
            ("steady", "steady"),
            ("seq", "seq:1"),
            ("rand:3", "rand:3"),
            (" seq:2+rand ", "seq:2+rand:1"),
            ("rand:1+seq:1", "seq:1+rand:1"),
        ] {
            let read: Precondition = text.parse().unwrap();
            assert_eq!(read.to_string(), canonical);
            assert_eq!(canonical.parse::<Precondition>().unwrap(), read);
        }
        for wrong in [
            "",
            "seq:0",
            "seq:101",
            "seq:x",
            "seq:1+seq:1",
            "zap",
            "seq:1,rand:1",
            "steady+seq",
        ] {
            let error = wrong.parse::<Precondition>().unwrap_err();
            assert!(error.message().contains("precondition"), "{error}");
        }
    }
}
