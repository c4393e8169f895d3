//! How two sides differ besides what is compared.

use crate::imbalance::Disturber;

/// A difference of the sides besides what is compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// A key of the environment, a setting, or a disturbance.
    pub what: String,
    /// The base's value.
    pub base: SideValue,
    /// The new side's value.
    pub new: SideValue,
}

/// What a side has.
#[derive(Debug, Clone, PartialEq)]
pub enum SideValue {
    /// This, as in exports.
    Known(String),
    /// This much of a disturbance: the median over the cells.
    Disturbed(Disturber, f64),
    /// It is not known.
    Unknown,
    /// Another value in each cell.
    Various,
}
