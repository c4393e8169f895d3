//! Definitions that come with iolab, by name.

use std::path::Path;

use iolab_workload::{Error, Result};

use crate::Lists;

/// Built-in definitions of one kind: a row of the list of built-ins.
#[derive(Debug, Clone, Copy)]
pub struct BuiltIn {
    /// One definition, in words.
    pub one: &'static str,
    /// The argument that takes a name, as messages show it.
    pub argument: &'static str,
    /// The words before a name on the command line.
    pub command: &'static str,
    /// A well-known name.
    pub example: &'static str,
    /// Names with the TOML of each, in alphabetical order.
    pub entries: &'static [(&'static str, &'static str)],
    /// Description of the definition with this name, one line.
    pub about: fn(&str) -> Result<String>,
}

impl BuiltIn {
    /// The kind, without an article.
    pub fn kind(&self) -> &'static str {
        self.one.split_once(' ').map_or(self.one, |(_, kind)| kind)
    }
}

impl Lists {
    /// Refuses the name of a built-in of another kind than `wanted`, unless a file of this name exists. Several kinds may share a
    /// name: a test of a standard is an experiment and a suite.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage), with the command that accepts the name.
    pub fn check_kind(&self, name: &str, wanted: &str) -> Result<()> {
        let has = |kind: &&BuiltIn| kind.entries.iter().any(|(own, _)| *own == name);
        let kinds = self.built_in.iter().filter(has);
        // The first one, unless a later one is wanted.
        match kinds.min_by_key(|kind| kind.one != wanted) {
            Some(kind) if kind.one != wanted && !Path::new(name).exists() => {
                Err(of_another_kind(name, kind.one, wanted, kind.command))
            }
            _ => Ok(()),
        }
    }
}

/// The refusal of what is not `wanted`, with the command that takes it.
pub fn of_another_kind(name: &str, what: &str, wanted: &str, command: &str) -> Error {
    Error::usage(format!("'{name}' is {what}, not {wanted}"))
        .hint(format!("run it with: {command} {name}"))
}
