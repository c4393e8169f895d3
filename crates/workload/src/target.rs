//! The name of a target in the cells of a run with several.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

/// Most targets that one stream is striped over.
const STRIPED_MAX: usize = 64;

/// Separates the paths of a striped target, as in fio's `filename`: `/mnt/a:/mnt/b`.
const PARTS: &str = ":/";

/// The paths of a striped target, or the only one, in order: each begins with its slash.
pub fn paths(text: &str) -> impl Iterator<Item = &str> {
    let colons = text.match_indices(PARTS).map(|(colon, _)| colon);
    let mut begin = 0;
    colons.chain([text.len()]).map(move |end| {
        let path = &text[begin..end];
        begin = end + 1;
        path
    })
}

/// The absolute path of a target, or of several that a trial is striped over: a level of the factor `target`. Contains no control
/// characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TargetName {
    text: String,
    /// The parts of a striped target; empty for a single one.
    parts: Vec<TargetName>,
}

impl TargetName {
    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The targets in order: itself, or those that a trial is striped over.
    pub fn parts(&self) -> &[TargetName] {
        match self.parts.is_empty() {
            true => std::slice::from_ref(self),
            false => &self.parts,
        }
    }

    /// The path of one target.
    fn one(text: &str) -> Result<Self> {
        if !text.starts_with('/') || text.chars().any(char::is_control) {
            let shown: String = text.chars().take(100).collect();
            return Err(Error::usage(format!("{shown:?} cannot name a target")).hint(
                "give a path that begins with / and has no control characters; or name several TARGETs on the command line",
            ));
        }
        Ok(Self {
            text: text.to_owned(),
            parts: Vec::new(),
        })
    }
}

impl fmt::Display for TargetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl FromStr for TargetName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut parts = Vec::new();
        for path in paths(text) {
            let part = Self::one(path)?;
            if parts.contains(&part) {
                return Err(
                    Error::usage(format!("a trial is striped over {part} twice"))
                        .hint("name each target once: /mnt/a:/mnt/b"),
                );
            }
            parts.push(part);
        }
        if parts.len() > STRIPED_MAX {
            return Err(
                Error::usage(format!("a trial is striped over {} targets", parts.len()))
                    .hint(format!("name at most {STRIPED_MAX}")),
            );
        }
        Ok(match parts.len() {
            1 => parts.remove(0),
            _ => Self {
                text: text.to_owned(),
                parts,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_names_and_what_would_steer_a_terminal_is_not() {
        let name: TargetName = "/mnt/a b".parse().expect("a path");
        assert_eq!(name.to_string(), "/mnt/a b");
        assert_eq!(name.parts(), std::slice::from_ref(&name));
        // A colon without a slash is part of a name.
        let name: TargetName = "/dev/by-path/pci-0:1.0".parse().expect("a path");
        assert_eq!(name.parts().len(), 1);
        for wrong in ["", "mnt/a", "/mnt/\u{1b}[2J", "/mnt/a\nb", "/a:/b:/a"] {
            let error = wrong.parse::<TargetName>().expect_err(wrong);
            assert!(error.remedy().is_some(), "{error}");
        }
    }

    #[test]
    fn several_paths_are_the_targets_of_a_stripe() {
        let name: TargetName = "/mnt/a:/mnt/b b:/c".parse().expect("paths");
        let parts: Vec<&str> = name.parts().iter().map(TargetName::as_str).collect();
        assert_eq!(parts, ["/mnt/a", "/mnt/b b", "/c"]);
        assert_eq!(name.to_string(), "/mnt/a:/mnt/b b:/c");
    }
}
