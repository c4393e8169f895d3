//! The source of a device's ceiling.

use std::fmt;

/// The source of a device's ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeakSource {
    /// The user's `--peak`.
    Stated,
    /// A probe before the run (`--peak measure`).
    Measured,
    /// The rate of the device's link.
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
