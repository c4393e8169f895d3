//! Models as plain data and as text.
//!
//! A [`Definition`] describes a disk in TOML; [`catalogue`] contains the built-in ones.
//! [`build`](crate::build()) makes a model of a definition.
//!
//! Files to begin with: `parts.rs`, `disk.rs` and `ssd.rs` the parts, `check.rs` valid values, `catalogue.rs` those in
//! `models/*.toml`.

pub mod catalogue;
mod check;
pub mod disk;
pub mod parts;
pub mod ssd;

use serde::{Deserialize, Serialize};

pub use parts::PartDefinition;

/// A named model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// A short description.
    pub title: String,
    /// The sources of its values.
    pub source: Vec<String>,
    /// The model.
    pub model: PartDefinition,
}

impl Definition {
    /// Reads a definition.
    ///
    /// # Errors
    ///
    /// A message of the TOML reader, with line and column, or an error of [`Definition::check`].
    pub fn parse(text: &str) -> Result<Self, String> {
        let definition: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        definition.check()?;
        Ok(definition)
    }

    /// The definition as text.
    ///
    /// # Errors
    ///
    /// A value that TOML cannot express (an integer above 2^63).
    pub fn to_toml(&self) -> Result<String, String> {
        toml::to_string(self).map_err(|error| error.to_string())
    }

    /// Bytes of the smallest unit that the model addresses.
    pub fn block(&self) -> u64 {
        self.model.block()
    }
}
