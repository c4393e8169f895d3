//! Where the ceiling of a device is from.

use std::fmt;

/// Where a ceiling is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeakSource {
    /// The user's `--peak`.
    Stated,
    /// A probe before the run (`--peak measure`).
    Measured,
    /// The speed of the link that the device is connected by.
    Link,
}

impl fmt::Display for PeakSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Stated => "stated",
            Self::Measured => "measured",
            Self::Link => "link",
        })
    }
}
