//! `IOLAB_REQUIRE`: needs that this machine must have.

use std::collections::BTreeSet;
use std::fmt;

use crate::Need;

/// The environment variable.
pub const VARIABLE: &str = "IOLAB_REQUIRE";

/// Needs for which a skip is a failure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Required(BTreeSet<Need>);

/// An unknown name in the variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownNeed(String);

impl fmt::Display for UnknownNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<&str> = Need::ALL.iter().map(|need| need.name()).collect();
        write!(
            f,
            "{VARIABLE} names '{}', which is not a need; choose from all, {}",
            self.0,
            known.join(", ")
        )
    }
}

impl Required {
    /// Reads names separated by commas; `all` means every need.
    ///
    /// # Errors
    ///
    /// The first unknown name.
    pub fn parse(text: &str) -> Result<Self, UnknownNeed> {
        let mut required = BTreeSet::new();
        for name in text
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
        {
            match (name, Need::of_name(name)) {
                ("all", _) => required.extend(Need::ALL),
                (_, Some(need)) => drop(required.insert(need)),
                (_, None) => return Err(UnknownNeed(name.to_owned())),
            }
        }
        Ok(Self(required))
    }

    /// The needs in the variable; none if it is not set.
    ///
    /// # Errors
    ///
    /// Errors of [`Self::parse`].
    pub fn by_environment() -> Result<Self, UnknownNeed> {
        std::env::var_os(VARIABLE).map_or_else(
            || Ok(Self::default()),
            |text| Self::parse(&text.to_string_lossy()),
        )
    }

    /// Whether a need is among the required ones.
    pub fn has(&self, need: Need) -> bool {
        self.0.contains(&need)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_needs_or_an_error() {
        let some = Required::parse("root, fio,").unwrap();
        assert!(some.has(Need::Root) && some.has(Need::Fio) && !some.has(Need::Fuse));
        assert_eq!(Required::parse(""), Ok(Required::default()));
        let all = Required::parse("all").unwrap();
        assert!(Need::ALL.iter().all(|need| all.has(*need)));
        assert_eq!(
            Required::parse("root,fus"),
            Err(UnknownNeed("fus".to_owned()))
        );
    }
}
