//! How far a run is the test of a standard that it follows. Of runs by rounds the claim about these says it.

use crate::analysis::{Analysis, StandardFollowed};

/// A run that follows a test of a standard, and has no rounds until they are steady.
#[derive(Debug, Clone, PartialEq)]
pub struct Conformance {
    /// The run.
    pub run: usize,
    /// The test, and where the run deviates from it.
    pub followed: StandardFollowed,
}

/// That of a run.
pub(super) fn conformance(analysis: &Analysis, run: usize) -> Option<Conformance> {
    let followed = analysis.standard.clone()?;
    analysis
        .steady
        .is_none()
        .then_some(Conformance { run, followed })
}
