//! The tool that carries out the cells, by its name in definitions and run files.

use std::fmt;
use std::str::FromStr;

use crate::Error;
use crate::Result;

/// Longest name, bytes.
const NAME_MAX: usize = 15;

/// Issuer of a cell's requests: iolab (or a program that it times), or a peer. The runner knows which peers it can start; a
/// run file may name others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tool {
    letters: [u8; NAME_MAX],
}

impl Tool {
    /// iolab itself.
    pub const IOLAB: Self = Self::named("iolab").expect("letters");

    /// The tool of a name; `None` unless that is 1 to 15 lowercase letters, digits and hyphens.
    pub const fn named(name: &str) -> Option<Self> {
        let bytes = name.as_bytes();
        if bytes.is_empty() || bytes.len() > NAME_MAX {
            return None;
        }
        let mut letters = [0; NAME_MAX];
        let mut at = 0;
        while at < bytes.len() {
            if !matches!(bytes[at], b'a'..=b'z' | b'0'..=b'9' | b'-') {
                return None;
            }
            letters[at] = bytes[at];
            at += 1;
        }
        Some(Self { letters })
    }

    /// Its name in definitions, run files and exports.
    pub fn name(&self) -> &str {
        let length = self.letters.iter().position(|letter| *letter == 0);
        let letters = &self.letters[..length.unwrap_or(NAME_MAX)];
        // All bytes are checked ASCII.
        std::str::from_utf8(letters).unwrap_or_default()
    }

    /// Whether it is a tool other than iolab.
    pub fn is_peer(self) -> bool {
        self != Self::IOLAB
    }
}

impl Default for Tool {
    fn default() -> Self {
        Self::IOLAB
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Tool {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::named(text).ok_or_else(|| {
            Error::usage(format!("'{text}' is not the name of a tool"))
                .hint("write iolab, or the name of a peer such as fio")
        })
    }
}
