//! A table with its caption.

use crate::layout::Grid;

/// A table with an explanation of its columns.
#[derive(Debug, Clone)]
pub(super) struct Captioned {
    pub(super) caption: String,
    pub(super) grid: Grid,
}
