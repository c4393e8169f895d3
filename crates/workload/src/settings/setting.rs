//! A row of the table of settings, and the operations on it: values are parsed into a cell.

use std::str::FromStr;

use super::{CellSpec, SETTINGS, UNKNOWN, Value, ValueKind};
use crate::names::{ALL, named};
use crate::units::{format_size, parse_size};
use crate::{Error, Result};

/// Longest value, bytes: above the length of any real list, and fast to parse.
const VALUE_MAX: usize = 64 << 10;

/// End of the remedy of each setting that takes `none`.
pub(super) const OR_NONE: &str = "or none, to leave it out";

/// A word that only settings which take any word accept.
const ANY_WORD: &str = "any-word";

named! {
    /// The topic of a setting, with its heading in lists.
    pub enum Topic: "topic" {
        /// The form of a request.
        Requests = "What a request is",
        /// Position of requests.
        Region = "Where requests go",
        /// Number of requests, and how they are issued.
        Load = "How requests are issued",
        /// Durability of writes.
        Durability = "When writes are synced",
        /// The page cache.
        Cache = "Page cache",
        /// Written data.
        Data = "What is written",
        /// Processors and memory.
        Processors = "Processors and memory",
        /// Limits of a trial.
        Bounds = "What ends a trial",
        /// Recorded data.
        Records = "What is recorded",
        /// Programs to measure.
        Programs = "Programs and other tools",
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

/// Rows of three lines each, with the topic and the fields of [`Setting`]; without `aliases`, `unit` or `column` it has none, or that
/// of its name. The third line says where the value is in a cell, and how it is parsed: see [`access`].
macro_rules! rows {
    ($({
        $topic:ident, name: $name:literal, $(aliases: [$($alias:literal),+],)? kind: $kind:ident, $(unit: $unit:literal,)? $(column: $column:literal,)?
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
        |cell, text| $crate::settings::setting::put(&mut cell.$($at).+, text),
        |cell| $crate::settings::Value::word(Some(&cell.$($at).+)),
        false,
    )};
    (word_or_none: $($at:ident).+) => {(
        |cell, text| $crate::settings::setting::put_or_none(&mut cell.$($at).+, text),
        |cell| $crate::settings::Value::word(cell.$($at).+.as_ref()),
        true,
    )};
    (value: $($value:tt)+) => { $crate::settings::setting::access!(@value false, $($value)+) };
    (value_or_none: $($value:tt)+) => { $crate::settings::setting::access!(@value true, $($value)+) };
    (@value $is_optional:literal, $($at:ident).+, $parse:ident $(, $with:expr)?) => {(
        |cell, text| {
            cell.$($at).+ = $parse(text $(, $with)?)?;
            Ok(())
        },
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

pub(super) fn put<T: FromStr<Err = Error>>(place: &mut T, text: &str) -> Result<()> {
    *place = text.parse()?;
    Ok(())
}

/// Any size or count.
pub(super) const ANY_SIZE: [u64; 2] = [0, i64::MAX as u64];

/// Sizes above 0.
pub(super) const SOME_SIZE: [u64; 2] = [1, i64::MAX as u64];

/// Counts above 0.
pub(super) const SOME_COUNT: [u32; 2] = [1, u32::MAX];

/// Parses a size between the two `bounds`, inclusive; refuses others.
pub(super) fn parse_size_within(text: &str, bounds: [u64; 2]) -> Result<u64> {
    let bytes = parse_size(text)?;
    let [least, most] = bounds;
    if !(least..=most).contains(&bytes) {
        // Rounded down to 11 bits: a system call takes 2097148 KiB.
        let digits = u64::BITS - most.leading_zeros();
        let unit = digits.saturating_sub(11);
        let (least, most) = (format_size(least), format_size(most >> unit << unit));
        return Err(Error::usage(format!("'{text}' is out of range"))
            .hint(format!("choose a size from {least} to {most}")));
    }
    Ok(bytes)
}

fn parse_count(text: &str) -> Result<u64> {
    text.parse::<u64>()
        .ok()
        .filter(|count| *count <= i64::MAX as u64)
        .ok_or_else(|| {
            Error::usage(format!("'{text}' is not a whole number"))
                .hint("write a number such as 16")
        })
}

/// Parses a count between the two `bounds`, inclusive; refuses others.
pub(super) fn parse_count_within(text: &str, bounds: [u32; 2]) -> Result<u32> {
    let [least, most] = bounds;
    u32::try_from(parse_count(text)?)
        .ok()
        .filter(|count| (least..=most).contains(count))
        .ok_or_else(|| {
            Error::usage(format!("'{text}' is out of range"))
                .hint(format!("choose a number from {least} to {most}"))
        })
}

/// Parses a count above 0, or none.
pub(super) fn parse_count_or_none(text: &str) -> Result<Option<u32>> {
    parse_bound(text, |text| parse_count_within(text, SOME_COUNT))
}

pub(super) fn put_active(cell: &mut CellSpec, text: &str) -> Result<()> {
    cell.active = match text {
        ALL => None,
        _ => Some(text.parse()?),
    };
    Ok(())
}

pub(super) fn parse_percent(text: &str) -> Result<u8> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    u8::try_from(parse_count(number)?)
        .ok()
        .filter(|percent| *percent <= 100)
        .ok_or_else(|| Error::usage(format!("{text} is not a percentage")).hint("choose 0 to 100"))
}

pub(super) fn put_workload(cell: &mut CellSpec, text: &str) -> Result<()> {
    put_or_none(&mut cell.workload, text)?;
    if let Some(workload) = cell.workload {
        (cell.trial.pattern, cell.trial.read_percent) = workload.parts();
    }
    Ok(())
}

pub(super) fn put_batch(cell: &mut CellSpec, text: &str) -> Result<()> {
    cell.batch_auto = text == "auto";
    if !cell.batch_auto {
        cell.trial.batch = text.parse()?;
    }
    Ok(())
}

pub(super) fn parse_flag(text: &str) -> Result<bool> {
    match text {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" => Ok(false),
        _ => {
            Err(Error::usage(format!("'{text}' is neither true nor false"))
                .hint("write true or false"))
        }
    }
}

/// Parses a limit of a trial, or a pause; or none.
pub(super) fn parse_bound<T>(text: &str, parse: fn(&str) -> Result<T>) -> Result<Option<T>>
where
    T: PartialEq + Default,
{
    if text == "none" {
        return Ok(None);
    }
    let value = parse(text)?;
    if value == T::default() {
        return Err(
            Error::usage(format!("'{text}' is not above zero")).hint("give a value above zero")
        );
    }
    Ok(Some(value))
}

/// Sets an optional value.
pub(super) fn put_or_none<T: FromStr<Err = Error>>(
    place: &mut Option<T>,
    text: &str,
) -> Result<()> {
    *place = match text {
        "none" => None,
        _ => Some(text.parse()?),
    };
    Ok(())
}
