//! How far a run is the test of a standard that it follows.

use schemars::JsonSchema;
use serde::Serialize;

use crate::analysis::{Analysis, StandardFollowed};

/// A run that follows a test of a standard.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Conformance {
    /// The run.
    #[serde(skip)]
    pub run: usize,
    /// The test, and where the run deviates from it.
    #[serde(flatten)]
    pub followed: StandardFollowed,
}

/// The test that a run followed; `None` where it followed none.
pub(super) fn conformance(analysis: &Analysis, run: usize) -> Option<Conformance> {
    let followed = analysis.standard.clone()?;
    Some(Conformance { run, followed })
}
