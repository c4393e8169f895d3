//! The built-in models.

use crate::definition::Definition;

/// A built-in model: its name and its definition as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatalogueEntry {
    /// The name that users write.
    pub name: &'static str,
    /// The definition.
    pub text: &'static str,
}

macro_rules! entries {
    ($($name:literal),* $(,)?) => {
        &[$(CatalogueEntry { name: $name, text: include_str!(concat!("../../models/", $name, ".toml")) }),*]
    };
}

/// All built-in models, by kind and name.
pub const ENTRIES: &[CatalogueEntry] = entries![
    "atlas10k", "cheetah4lp", "cheetah9lp", "dec-rz26", "hp-97560", "hp-c2247a", "hp-c2490a",
    "hp-c3323a", "sata-7200", "sata-ssd", "nvme-970pro", "mqsim-default", "qlc-slc-cached",
    "cloud-volume",
];

/// The definition of a name; `None` for a name that is not in the catalogue, an error for an invalid definition.
pub fn find(name: &str) -> Option<Result<Definition, String>> {
    ENTRIES
        .iter()
        .find(|entry| entry.name == name)
        .map(|entry| Definition::parse(entry.text))
}
