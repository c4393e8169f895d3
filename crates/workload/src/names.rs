//! Names: checks, errors for unknown ones with suggestions, and enums with one name per value.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use strsim::osa_distance;

use crate::{Error, Result};

/// The error for an unknown name, with the nearest known names.
pub fn unknown(what: &str, name: &str, known: &[&str]) -> Error {
    let near = nearest(name, known);
    let hint = match near.as_slice() {
        [] => format!("it is one of: {}", known.join(", ")),
        near => format!("did you mean {}?", alternatives(near)),
    };
    Error::usage(format!("{what} '{name}' is unknown")).hint(hint)
}

/// Alternatives in a sentence: `a`, `a or b`, `a, b or c`.
pub fn alternatives(names: &[&str]) -> String {
    in_a_sentence(names, "or")
}

/// All of some names in a sentence: `a`, `a and b`, `a, b and c`.
pub fn all_of(names: &[impl Borrow<str>]) -> String {
    in_a_sentence(names, "and")
}

/// The commands that start several processes as one run, in a sentence. A literal, for `concat!`.
#[macro_export]
macro_rules! launchers {
    () => {
        "mpiexec, mpirun or srun"
    };
}

fn in_a_sentence(names: &[impl Borrow<str>], before_last: &str) -> String {
    match names {
        [others @ .., last] if !others.is_empty() => {
            format!("{} {before_last} {}", others.join(", "), last.borrow())
        }
        _ => names.concat(),
    }
}

/// The error for an unknown word of a short list, with the whole list, since similar words may differ in meaning (`fsync`,
/// `osync`).
pub fn unknown_word(what: &str, word: &str, known: &[&str]) -> Error {
    let all = format!("it is one of: {}", known.join(", "));
    let hint = match nearest(word, known).first() {
        Some(near) => format!("did you mean {near}? {all}"),
        None => all,
    };
    Error::usage(format!("{what} '{word}' is unknown")).hint(hint)
}

/// Known names that resemble `name` after a typing error or in another tool, at most three, nearest first.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Vec<&'a str> {
    // Text from a foreign file may be long; only short names can be similar.
    if name.is_empty() || name.len() > 64 {
        return Vec::new();
    }
    let lower = name.to_lowercase();
    let mut near: Vec<(usize, &str)> = known
        .iter()
        .map(|candidate| (osa_distance(&lower, candidate), *candidate))
        .filter(|(far, candidate)| {
            *far <= errors_max(&lower, candidate)
                || has_word_like(candidate, &lower)
                || has_same_words(&lower, candidate)
                || (candidate.len() > 1 && lower.starts_with(candidate))
        })
        .collect();
    near.sort_by_key(|(far, candidate)| (!has_same_words(&lower, candidate), *far));
    near.into_iter().map(|(_, name)| name).take(3).collect()
}

/// Most typing errors between two similar names: one in three letters of the longer one. In two letters, one that is not the first, or a
/// swap. `foo` is not `flow`.
fn errors_max(name: &str, candidate: &str) -> usize {
    let [mut one, mut other] = [name, candidate].map(|name| name.chars().collect::<Vec<_>>());
    let begin_alike = one.first() == other.first();
    one.sort_unstable();
    other.sort_unstable();
    let longer = one.len().max(other.len());
    (longer / 3).max(usize::from(begin_alike || one == other))
}

/// Whether a word of `candidate` begins with `name`, or `name` is more than half of it: `percent` in `read_percent`.
fn has_word_like(candidate: &str, name: &str) -> bool {
    let mut words = candidate.split(is_separator);
    let begins = words.any(|word| word.starts_with(name));
    name.len() >= WORD_MIN
        && (begins || 2 * name.len() > candidate.len() && candidate.contains(name))
}

const fn is_separator(c: char) -> bool {
    matches!(c, '-' | '_' | '.')
}

/// Fewest letters that abbreviate a word in a compound name: `randread`.
const WORD_MIN: usize = 3;

/// Whether `name` consists of the words of `candidate`, or of their beginnings, in any order: `randread` for `read-random`.
fn has_same_words(name: &str, candidate: &str) -> bool {
    let mut left = name.replace(is_separator, " ");
    let mut words = 0;
    for word in candidate
        .split(is_separator)
        .filter(|word| !word.is_empty())
    {
        let ends = word.char_indices().map(|(place, c)| place + c.len_utf8());
        let mut begins = ends.rev().filter(|end| *end >= WORD_MIN.min(word.len()));
        let Some(end) = begins.find(|end| left.contains(&word[..*end])) else {
            return false;
        };
        left = left.replacen(&word[..end], " ", 1);
        words += 1;
    }
    words > 1 && left.trim().is_empty()
}

/// Checks a name that becomes a file name.
///
/// # Errors
///
/// Of kind [`Usage`](crate::Kind::Usage): an invalid name.
pub fn check_file_name(name: &str) -> Result<String> {
    let fits = !name.is_empty()
        && name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if fits {
        return Ok(name.to_owned());
    }
    Err(
        Error::usage(format!("{name:?} is not a valid name for a file"))
            .hint("use 1 to 64 letters, digits, '-', '_' and '.', a letter or digit first"),
    )
}

/// Name for all groups of a trial together; reserved.
pub const ALL: &str = "all";

/// The active groups of a cell, if not all are: `a+b`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Active(Vec<String>);

impl Active {
    /// Names of the active groups.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl FromStr for Active {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut names: Vec<String> = Vec::new();
        for name in text.split('+').map(str::trim) {
            check_group_name(name)?;
            if names.iter().any(|other| other == name) {
                return Err(Error::usage(format!("'{text}' names {name} twice"))
                    .hint("name each group once: a+b"));
            }
            names.push(name.to_owned());
        }
        Ok(Self(names))
    }
}

impl fmt::Display for Active {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.join("+"))
    }
}

/// Checks that a name can precede a dot, as in `reader.p99`.
///
/// # Errors
///
/// Of kind [`Usage`](crate::Kind::Usage): an invalid name.
pub fn check_group_name(name: &str) -> Result<()> {
    let fits = name.len() <= 32
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if fits && name != ALL {
        return Ok(());
    }
    Err(
        Error::usage(format!("'{name}' cannot be the name of a group")).hint(format!(
            "use 1 to 32 letters, digits, '-' and '_', a letter first; '{ALL}' stands for all groups together"
        )),
    )
}

/// Splits `reader.p99` into group and rest; without a group name before a dot, gives no group.
pub fn split_group(text: &str) -> (Option<&str>, &str) {
    match text.split_once('.') {
        // In p99.9, the dot is part of a quantile.
        Some((group, rest))
            if (group == ALL || check_group_name(group).is_ok())
                && !rest.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            (Some(group), rest)
        }
        _ => (None, text),
    }
}

/// The absolute path of a target: a level of the factor `target`. Contains no control characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TargetName(String);

impl TargetName {
    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TargetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for TargetName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if !text.starts_with('/') || text.chars().any(char::is_control) {
            let shown: String = text.chars().take(100).collect();
            return Err(Error::usage(format!("{shown:?} cannot name a target")).hint(
                "give a path that begins with / and has no control characters; or name several TARGETs on the command line",
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

/// Defines an enum with its names: one list serves parsing, printing and messages. `else FUNCTION` handles other texts: a second
/// name of a value, or an error that explains why there is no such name.
#[macro_export]
macro_rules! named {
    (
        $(#[$outer:meta])*
        pub enum $type:ident: $what:literal $(, else $other:path)? {
            $($(#[$inner:meta])* $value:ident = $name:literal,)+
        }
    ) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $type {
            $($(#[$inner])* $value,)+
        }

        impl $type {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$value),+];
            /// The names of the values, in their order.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Its name in definitions, run files and exports.
            pub fn name(self) -> &'static str {
                Self::NAMES[self as usize]
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::Error;

            fn from_str(text: &str) -> $crate::Result<Self> {
                $(if let Some(answer) = $other(text) {
                    return answer;
                })?
                let of = |value: &&Self| value.name() == text;
                Self::ALL.iter().find(of).copied().ok_or_else(|| {
                    $crate::names::unknown_word($what, text, Self::NAMES)
                })
            }
        }

        impl $crate::serde::Serialize for $type {
            fn serialize<S: $crate::serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
                to.serialize_str(self.name())
            }
        }

        impl<'de> $crate::serde::Deserialize<'de> for $type {
            fn deserialize<D: $crate::serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
                let name = <std::borrow::Cow<'_, str>>::deserialize(from)?;
                name.parse().map_err($crate::serde::de::Error::custom)
            }
        }

        impl $crate::schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut $crate::schemars::SchemaGenerator) -> $crate::schemars::Schema {
                $crate::schemars::json_schema!({"type": "string", "enum": Self::NAMES})
            }
        }
    };
}
pub(crate) use named;
