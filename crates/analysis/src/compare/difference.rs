//! How two sides differ besides what is compared.

/// A difference of the sides besides what is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// A key of the environment, or a setting.
    pub what: String,
    /// The base's value.
    pub base: SideValue,
    /// The new side's value.
    pub new: SideValue,
}

/// What a side has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SideValue {
    /// This, as in exports.
    Known(String),
    /// It is not known.
    Unknown,
    /// Another value in each cell.
    Various,
}
