//! What the table says of a setting, and what can be done with it.

use super::{CellSpec, SETTINGS, Value};
use crate::{Error, Result};

/// Longest value, bytes: a list that people or programs write is shorter, and reading it takes no time.
const VALUE_MAX: usize = 64 << 10;

/// What kind of value a setting takes.
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
    /// A name out of a list.
    Word,
    /// A path from the root on, as it stands: a name may end in a space.
    Path,
    /// A text that may hold commas.
    List,
}

impl ValueKind {
    /// Whether its values are stored as numbers.
    pub fn is_number(self) -> bool {
        !matches!(self, ValueKind::Word | ValueKind::Path | ValueKind::List)
    }

    /// A value without the blanks that do not belong to it.
    fn trimmed(self, text: &str) -> &str {
        match self {
            ValueKind::Path => text.trim_start(),
            _ => text.trim(),
        }
    }

    /// What stands between several values on the command line.
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

    /// What it takes, for messages.
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

/// What a setting is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// What a request is.
    Requests,
    /// Where requests go.
    Place,
    /// How many requests are made, and how.
    Load,
    /// When writes are made durable.
    Durability,
    /// The page cache.
    Cache,
    /// What is written.
    Data,
    /// Processors and memory.
    Processors,
    /// What ends a trial.
    Bounds,
    /// What is recorded.
    Records,
    /// Programs that are measured instead.
    Programs,
}

impl Topic {
    /// Every topic, in the order in which they are shown.
    pub const ALL: [Self; 10] = [
        Self::Requests,
        Self::Place,
        Self::Load,
        Self::Durability,
        Self::Cache,
        Self::Data,
        Self::Processors,
        Self::Bounds,
        Self::Records,
        Self::Programs,
    ];

    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Requests => "What a request is",
            Self::Place => "Where requests go",
            Self::Load => "How requests are issued",
            Self::Durability => "When writes are synced",
            Self::Cache => "Page cache",
            Self::Data => "What is written",
            Self::Processors => "Processors and memory",
            Self::Bounds => "What ends a trial",
            Self::Records => "What is recorded",
            Self::Programs => "Programs and other tools",
        }
    }
}

/// One setting of the engine.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its name in files, arguments and messages.
    pub name: &'static str,
    /// What it is about.
    pub topic: Topic,
    /// Names that fio users know it by.
    pub aliases: &'static [&'static str],
    /// Unit of its values; empty where there is none.
    pub unit: &'static str,
    /// What it does, in one line.
    pub doc: &'static str,
    /// What kind of value it takes.
    pub kind: ValueKind,
    /// The column of a run file and of exports that holds it; the name carries the unit.
    pub column: &'static str,
    /// The schema version that brought the column.
    pub since: i64,
    /// Whether exports have that column.
    pub exported: bool,
    pub(super) set: fn(&mut CellSpec, &str) -> Result<()>,
    pub(super) get: fn(&CellSpec) -> Value,
}

impl PartialEq for Setting {
    /// Names are unique in the table.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Setting {
    /// The setting of this name or fio alias.
    pub fn find(name: &str) -> Option<&'static Setting> {
        SETTINGS
            .iter()
            .find(|setting| setting.name == name || setting.aliases.contains(&name))
    }

    /// Sets it in a cell.
    ///
    /// # Errors
    /// Of kind usage, naming the setting and what it takes.
    pub fn set(&self, cell: &mut CellSpec, text: &str) -> Result<()> {
        if text.len() > VALUE_MAX {
            let bytes = text.len();
            return Err(
                Error::usage(format!("{}: a value of {bytes} bytes", self.name))
                    .hint(format!("a value has at most {VALUE_MAX} bytes")),
            );
        }
        (self.set)(cell, self.kind.trimmed(text)).map_err(|error| error.within(self.name))
    }

    /// Its value in a cell, in the one form in which levels are written: `4KiB`, `rand`, `250ms`.
    pub fn get(&self, cell: &CellSpec) -> String {
        self.value(cell).text(self.kind)
    }

    /// Its value in a cell.
    pub fn value(&self, cell: &CellSpec) -> Value {
        (self.get)(cell)
    }

    /// Brings a value into the one form in which levels are written.
    ///
    /// # Errors
    /// Of kind usage, naming the setting and what it takes.
    pub fn canonical(&self, text: &str) -> Result<String> {
        let mut cell = CellSpec::default();
        self.set(&mut cell, text)?;
        Ok(self.get(&cell))
    }
}
