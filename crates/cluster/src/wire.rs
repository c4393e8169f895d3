//! Values as messages between ranks, which all run the same build: JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The value as a message; empty for a value that only one process can have.
pub fn encode(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

/// The value of a message; `None` for a truncated or foreign one.
pub fn decode<T: DeserializeOwned>(message: &[u8]) -> Option<T> {
    serde_json::from_slice(message).ok()
}
