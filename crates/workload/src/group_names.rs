//! Names of groups: which are valid, several together, one before a dot.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

/// Name for all groups of a trial together; reserved.
pub const ALL: &str = "all";

/// The active groups of a cell, if not all are: `a+b`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Active(Vec<String>);

impl Active {
    /// Their names.
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
