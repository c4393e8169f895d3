//! A run file that was read, with what it says.

use std::path::PathBuf;

use crate::findings::interpretation::Interpretation;
use iolab_analysis::analysed_run::AnalysedRun;

/// A run file that was read.
#[derive(Debug, Clone)]
pub struct Input {
    /// Where it lies.
    pub path: PathBuf,
    /// What it holds, analysed.
    pub run: AnalysedRun,
    /// What it says.
    pub interpretation: Interpretation,
}

impl Input {
    /// A run that was read from `path`, with what it says.
    pub fn new(path: PathBuf, run: AnalysedRun) -> Self {
        Self {
            path,
            interpretation: Interpretation::of(&run),
            run,
        }
    }
}
