//! The linkage of the built-in reader.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

use crate::command_template::Template;

/// The linkage of the built-in reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Linkage {
    /// The program contains all code.
    Static,
    /// The C library is loaded when the program starts.
    Dynamic,
}

impl Linkage {
    /// The reader with its arguments, as run files store it.
    pub fn template(self) -> Template {
        let text = match self {
            Linkage::Static => "reader-static {file} {bs}",
            Linkage::Dynamic => "reader-dynamic {file} {bs}",
        };
        text.parse().expect("a constant that a test reads")
    }
}

impl fmt::Display for Linkage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Linkage::Static => "static",
            Linkage::Dynamic => "dynamic",
        })
    }
}

impl FromStr for Linkage {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "static" => Ok(Linkage::Static),
            "dynamic" => Ok(Linkage::Dynamic),
            _ => Err(Error::usage(format!("linkage '{text}' is unknown"))
                .hint("it is one of: none, static, dynamic")),
        }
    }
}
