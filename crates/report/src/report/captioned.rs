//! A table with what it shows in words.

use crate::layout::Grid;

/// A table with an explanation of its columns.
#[derive(Debug, Clone)]
pub(super) struct Captioned {
    pub(super) caption: String,
    pub(super) grid: Grid,
}
