//! A row of the table of settings, and the operations on it.

use super::value::UNKNOWN;
use super::{CellSpec, SETTINGS, Value, ValueKind};
use crate::{Error, Result};

/// Longest value, bytes: above the length of any real list, and fast to parse.
const VALUE_MAX: usize = 64 << 10;

/// End of the remedy of each setting that takes `none`.
pub(super) const OR_NONE: &str = "or none, to leave it out";

/// A word that only settings which take any word accept.
const ANY_WORD: &str = "any-word";

/// The topic of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// The form of a request.
    Requests,
    /// Position of requests.
    Region,
    /// Number of requests, and how they are issued.
    Load,
    /// Durability of writes.
    Durability,
    /// The page cache.
    Cache,
    /// Written data.
    Data,
    /// Processors and memory.
    Processors,
    /// Limits of a trial.
    Bounds,
    /// Recorded data.
    Records,
    /// Programs to measure.
    Programs,
}

impl Topic {
    /// Every topic, in the order of the help.
    pub const ALL: [Self; 10] = [
        Self::Requests,
        Self::Region,
        Self::Load,
        Self::Durability,
        Self::Cache,
        Self::Data,
        Self::Processors,
        Self::Bounds,
        Self::Records,
        Self::Programs,
    ];

    /// Heading of the topic in lists.
    pub fn title(self) -> &'static str {
        match self {
            Self::Requests => "What a request is",
            Self::Region => "Where requests go",
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

/// One setting.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its name in files, arguments and messages.
    pub name: &'static str,
    /// Topic of the setting.
    pub topic: Topic,
    /// Names of the setting in fio.
    pub aliases: &'static [&'static str],
    /// Unit of its values; empty without one.
    pub unit: &'static str,
    /// Its effect, in one line.
    pub doc: &'static str,
    /// The kind of its values.
    pub kind: ValueKind,
    /// Its column in run files and exports; the name carries the unit.
    pub column: &'static str,
    /// Whether exports include the column.
    pub exported: bool,
    /// A value other than the default, as users write it.
    pub example: &'static str,
    /// Whether `none` is allowed, which leaves the setting out.
    pub is_optional: bool,
    pub(super) set: Set,
    pub(super) get: fn(&CellSpec) -> Value,
}

type Set = fn(&mut CellSpec, &str) -> Result<()>;

/// Changes a setting in a cell, and reads it; whether it takes `none`.
pub(super) type Access = (Set, fn(&CellSpec) -> Value, bool);

/// The rows of one topic, three lines each, with the fields of [`Setting`]; without `aliases`, `unit` or `column` it has none, or that
/// of its name. The third line says where the value is in a cell, and how it is parsed: see [`access`].
macro_rules! rows {
    ($topic:ident: $({
        name: $name:literal, $(aliases: [$($alias:literal),+],)? kind: $kind:ident, $(unit: $unit:literal,)? $(column: $column:literal,)?
        exported: $exported:literal, example: $example:literal,
        doc: $doc:expr,
        $($access:tt)+
    })+) => {
        &[$({
            let (set, get, is_optional): $crate::settings::setting::Access = $crate::settings::setting::access!($($access)+);
            Setting {
                name: $name,
                topic: $crate::settings::Topic::$topic,
                aliases: &[$($($alias),+)?],
                unit: concat!($($unit)?),
                doc: $doc,
                kind: $crate::settings::ValueKind::$kind,
                column: $crate::settings::setting::or!($name $(, $column)?),
                exported: $exported,
                example: $example,
                is_optional,
                set,
                get,
            }
        }),+]
    };
}

/// The second of two arguments, otherwise the first.
macro_rules! or {
    ($one:literal) => {
        $one
    };
    ($one:literal, $other:literal) => {
        $other
    };
}

/// The way to change and read a setting. A `word`, a `value` (a number, a flag or a time) with the function that parses it
/// and its arguments, or two functions of its own. The variants with `or_none` take `none` too, and their errors say so.
macro_rules! access {
    (word: $($at:ident).+) => {(
        |cell, text| $crate::settings::values::put(&mut cell.$($at).+, text),
        |cell| $crate::settings::Value::word(Some(&cell.$($at).+)),
        false,
    )};
    (word_or_none: $($at:ident).+) => {(
        |cell, text| $crate::settings::values::put_or_none(&mut cell.$($at).+, text),
        |cell| $crate::settings::Value::word(cell.$($at).+.as_ref()),
        true,
    )};
    (value: $($value:tt)+) => { $crate::settings::setting::access!(@value false, $($value)+) };
    (value_or_none: $($value:tt)+) => { $crate::settings::setting::access!(@value true, $($value)+) };
    (@value $is_optional:literal, $($at:ident).+, $put:ident $(, $with:expr)?) => {(
        |cell, text| $put(&mut cell.$($at).+, text $(, $with)?),
        |cell| cell.$($at).+.into(),
        $is_optional,
    )};
    (set: $set:expr, get: $get:expr) => { ($set, $get, false) };
    (set_or_none: $set:expr, get: $get:expr) => { ($set, $get, true) };
}
pub(super) use access;
pub(super) use or;
pub(super) use rows;

impl PartialEq for Setting {
    /// Names are unique in the table.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Setting {
    /// Finds a setting by its name or fio alias.
    pub fn find(name: &str) -> Option<&'static Setting> {
        SETTINGS
            .iter()
            .find(|setting| setting.name == name || setting.aliases.contains(&name))
    }

    /// Argument of `--set` for a word that is a setting, or a level of one: `sync=fdatasync`, `bs=...`.
    pub fn change_named(word: &str) -> Option<String> {
        if let Some(setting) = Self::find(word) {
            return Some(format!("{}=...", setting.name));
        }
        let has_level = |setting: &&Setting| {
            let takes = |word: &str| setting.canonical(word).is_ok_and(|level| level == word);
            // A setting that takes any word is not identified by one.
            setting.kind == ValueKind::Word && takes(word) && !takes(ANY_WORD)
        };
        // Words that identify no setting have no best suggestion.
        let says_little = matches!(word, "none" | "all" | "auto" | UNKNOWN);
        let setting = SETTINGS.iter().find(has_level).filter(|_| !says_little)?;
        Some(format!("{}={word}", setting.name))
    }

    /// Sets it in a cell.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](crate::Kind::Usage), with the setting and the accepted values.
    pub fn set(&self, cell: &mut CellSpec, text: &str) -> Result<()> {
        if text.len() > VALUE_MAX {
            let bytes = text.len();
            return Err(
                Error::usage(format!("{}: a value of {bytes} bytes", self.name))
                    .hint(format!("a value has at most {VALUE_MAX} bytes")),
            );
        }
        if text == UNKNOWN {
            cell.unknown.insert(self.name);
            return Ok(());
        }
        let set = (self.set)(cell, self.kind.trimmed(text));
        set.map_err(|error| self.or_none(error).within(self.name))
    }

    /// Adds `none` to the remedy of an error, if the setting takes it: a line of its own, since remedies do not all list values.
    fn or_none(&self, error: Error) -> Error {
        match self.is_optional && error.remedy().is_some() {
            true => error.also(OR_NONE),
            false => error,
        }
    }

    /// Its value in a cell as canonical text: `4KiB`, `rand`, `250ms`.
    pub fn get(&self, cell: &CellSpec) -> String {
        self.value(cell).text(self.kind)
    }

    /// Value of the setting in a cell.
    pub fn value(&self, cell: &CellSpec) -> Value {
        match cell.unknown.contains(self.name) {
            true => Value::Unknown,
            false => (self.get)(cell),
        }
    }

    /// The canonical form of a value.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](crate::Kind::Usage), with the setting and the accepted values.
    pub fn canonical(&self, text: &str) -> Result<String> {
        let mut cell = CellSpec::default();
        self.set(&mut cell, text)?;
        Ok(self.get(&cell))
    }
}
