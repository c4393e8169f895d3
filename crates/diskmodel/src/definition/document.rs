//! Definitions as text, with the sources of their values.

use serde::{Deserialize, Serialize};

use crate::definition::parts::PartDefinition;

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
