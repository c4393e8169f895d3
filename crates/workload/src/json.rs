//! How values are written in JSON that have no form of their own there.

use std::fmt::Display;
use std::path::Path;

use serde::{Serialize, Serializer};

/// A path, whatever bytes it has.
///
/// # Errors
/// Errors of the serializer.
pub fn path<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&path.display())
}

/// A value as text.
///
/// # Errors
/// Errors of the serializer.
pub fn name<T: Display, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

/// Pairs of a name and a value as an object.
///
/// # Errors
/// Errors of the serializer.
pub fn object<K: Display, V: Serialize, S: Serializer>(
    pairs: &[(K, V)],
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_map(pairs.iter().map(|(name, value)| (name.to_string(), value)))
}
