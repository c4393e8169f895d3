//! Models as text: a definition says what a model is made of, and where its values are from.

use serde::{Deserialize, Serialize};

use crate::definition::parts::PartDefinition;

/// A named model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// What it is, in a few words.
    pub title: String,
    /// Where its values are from.
    pub source: Vec<String>,
    /// What it is made of.
    pub model: PartDefinition,
}

impl Definition {
    /// Reads a definition.
    ///
    /// # Errors
    ///
    /// What is no definition, with line and column; and as [`Definition::check`].
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
