//! How claims write values of other crates in JSON.

use std::fmt::Display;

use serde::{Serialize, Serializer};

/// A value by its name.
///
/// # Errors
/// Errors of the serializer.
pub fn name<T: Display, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

/// A value by its name, where there is one.
pub(crate) fn maybe_name<T: Display, S: Serializer>(
    value: &Option<T>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => to.collect_str(value),
        None => to.serialize_none(),
    }
}

/// Values by their names.
pub(crate) fn names<T: Display, S: Serializer>(values: &[T], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(values.iter().map(ToString::to_string))
}

/// Pairs of a name and a value as an object.
pub(crate) fn object<K: Display, V: Serialize, S: Serializer>(
    pairs: &[(K, V)],
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_map(pairs.iter().map(|(name, value)| (name.to_string(), value)))
}
