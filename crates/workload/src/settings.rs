//! The table of all settings of an experiment: it serves TOML, `--set`, messages and help. Its rows are in `settings/rows.rs`.
//!
//! Settings that a consumer other than the engine (another tool, a modelled disk) carries out, and refusals of all others.

mod cell;
mod rows;
mod setting;
#[cfg(test)]
mod tests;

use std::fmt::{self, Display};
use std::str::FromStr;
use std::time::Duration;

use crate::trial::{Rate, TrialSpec};
use crate::units::{format_duration, format_size};
use crate::{Error, Result};

pub use self::cell::{CellSpec, DESCRIBING, GroupSpec, cell_label, level_label, own_cells};
pub use self::rows::SETTINGS;
pub use self::setting::{Setting, Topic};

/// The kind of values that a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Bytes: `4096`, `4k`, `4KiB`.
    Size,
    /// A whole number.
    Count,
    /// A time: `0.5`, `250ms`.
    Time,
    /// Requests or bytes per second: `5000`, `50MB/s`.
    Rate,
    /// `true` or `false`.
    Flag,
    /// One word: a name from a list, or a text of its own form such as `zipf:1.2` or a nice value.
    Word,
    /// An absolute path, unchanged: a name may end in a space.
    Path,
    /// Text that may contain commas.
    List,
}

impl ValueKind {
    /// Whether its values are stored as numbers.
    pub fn is_number(self) -> bool {
        !matches!(self, ValueKind::Word | ValueKind::Path | ValueKind::List)
    }

    /// A value without surrounding blanks; a path keeps them.
    fn trimmed(self, text: &str) -> &str {
        match self {
            ValueKind::Path => text.trim_start(),
            _ => text.trim(),
        }
    }

    /// The separator of several values on the command line.
    pub fn separator(self) -> char {
        match self {
            ValueKind::List => ';',
            _ => ',',
        }
    }

    /// Whether its values are times.
    pub fn is_time(self) -> bool {
        self == ValueKind::Time
    }

    /// The accepted values, for messages.
    pub fn wants(self) -> &'static str {
        match self {
            ValueKind::Size => "a size such as \"4KiB\" or 4096",
            ValueKind::Count => "a whole number",
            ValueKind::Time => "a time such as \"250ms\" or 0.5",
            ValueKind::Rate => "requests per second, or bytes per second such as \"50MB/s\"",
            ValueKind::Flag => "true or false",
            ValueKind::Word => "a name in quotes",
            ValueKind::Path => "a path in quotes",
            ValueKind::List => "a text in quotes",
        }
    }
}

/// The text of a value that is not known.
const UNKNOWN: &str = "unknown";

/// The value of a setting in a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Absent: a limit that does not exist, a program that does not run.
    None,
    /// Missing in the report of another tool.
    Unknown,
    /// On or off.
    Flag(bool),
    /// Bytes, or a count.
    Number(u64),
    /// A time.
    Time(Duration),
    /// Requests or bytes per second.
    Rate(Rate),
    /// A name.
    Word(String),
}

impl Value {
    /// A name, or [`Value::None`].
    pub fn word(name: Option<impl Display>) -> Self {
        name.map_or(Self::None, |name| Self::Word(name.to_string()))
    }

    /// The canonical text: `4KiB`, `rand`, `250ms`, `none`.
    pub fn text(&self, kind: ValueKind) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Unknown => UNKNOWN.to_owned(),
            Self::Flag(on) => on.to_string(),
            Self::Number(bytes) if kind == ValueKind::Size => format_size(*bytes),
            Self::Number(count) => count.to_string(),
            Self::Time(Duration::ZERO) => "0".to_owned(),
            Self::Time(time) => format_duration(*time),
            Self::Rate(rate) => rate.to_string(),
            Self::Word(name) => name.clone(),
        }
    }
}

impl From<bool> for Value {
    fn from(on: bool) -> Self {
        Self::Flag(on)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<u8> for Value {
    fn from(number: u8) -> Self {
        Self::Number(number.into())
    }
}

impl From<Duration> for Value {
    fn from(time: Duration) -> Self {
        Self::Time(time)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::None, Into::into)
    }
}

/// As exports write it: a time in ns, a rate in requests per second.
impl From<Value> for serde_json::Value {
    fn from(value: Value) -> Self {
        match value {
            Value::None | Value::Unknown => Self::Null,
            Value::Flag(on) => on.into(),
            Value::Number(number) => number.into(),
            Value::Time(time) => u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).into(),
            Value::Rate(rate) => rate.requests().into(),
            Value::Word(name) => name.into(),
        }
    }
}

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

impl Display for Tool {
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

/// Why a consumer refuses settings that no consumer names.
const NO_SETTING: &str = "it has no such setting";

/// Settings as a consumer takes them. Settings that a consumer does not name must have their default value.
#[derive(Debug, Clone, Copy)]
pub struct Consumer {
    /// Settings that it carries out as the engine does, or that iolab carries out around it. Names here are separated by blanks.
    pub takes: &'static str,
    /// Settings of which it carries out the default value only, and why.
    pub lacks: &'static [(&'static str, &'static str)],
    /// Settings of which it refuses some values: whether the value at hand is one, and why.
    pub cannot: fn(&TrialSpec) -> Vec<(&'static str, bool, &'static str)>,
}

impl Consumer {
    /// Why a consumer refuses the value of each setting that it refuses in this cell.
    pub fn refusals(&self, cell: &CellSpec) -> Vec<(&'static Setting, &'static str)> {
        let conditions = (self.cannot)(&cell.trial);
        let plain = CellSpec::default();
        let has = |names: &str, name: &str| names.split(' ').any(|other| other == name);
        let why = |setting: &&'static Setting| {
            let name = setting.name;
            let mut own = conditions.iter().filter(|(of, ..)| *of == name).peekable();
            let is_taken = own.peek().is_some() || has(self.takes, name);
            if let Some((.., why)) = own.find(|(_, refused, _)| *refused) {
                return Some((*setting, *why));
            }
            let lacked = self.lacks.iter().find(|(names, _)| has(names, name));
            let is_plain = is_taken || setting.value(cell) == setting.value(&plain);
            (!is_plain).then_some((*setting, lacked.map_or(NO_SETTING, |(_, why)| why)))
        };
        SETTINGS
            .iter()
            .filter_map(|setting| why(&setting))
            .collect()
    }

    /// Refuses a trial, for the first setting of the table that it refuses.
    ///
    /// # Errors
    /// The reason.
    pub fn check(&self, trial: &TrialSpec) -> std::result::Result<(), String> {
        match self.refusals(&CellSpec::of(trial.clone())).first() {
            Some((_, why)) => Err((*why).to_owned()),
            None => Ok(()),
        }
    }
}
