//! The name of a target in the cells of a run with several.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_steer_a_terminal_are_refused() {
        let name: TargetName = "/mnt/a b".parse().expect("a path");
        assert_eq!(name.to_string(), "/mnt/a b");
        for wrong in ["", "mnt/a", "/mnt/\u{1b}[2J", "/mnt/a\nb"] {
            let error = wrong.parse::<TargetName>().expect_err(wrong);
            assert!(error.remedy().is_some(), "{error}");
        }
    }
}
