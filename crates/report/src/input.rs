//! A run file with its interpretation.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::findings::interpretation::Interpretation;
use iolab_analysis::analysed_run::AnalysedRun;
use iolab_workload::quantity::counted;

/// A run file that was read.
#[derive(Debug, Clone)]
pub struct Input {
    /// Where it lies.
    pub path: PathBuf,
    /// Its analysed content.
    pub run: AnalysedRun,
    /// Its interpretation.
    pub interpretation: Interpretation,
}

impl Input {
    /// A run read from `path`, with its interpretation.
    pub fn new(path: PathBuf, run: AnalysedRun) -> Self {
        Self {
            path,
            interpretation: Interpretation::of(&run),
            run,
        }
    }
}

/// `2 experiments`, `2 experiments, 3 runs`.
pub(crate) fn experiments<'a>(inputs: impl IntoIterator<Item = &'a Input>) -> String {
    let names: Vec<&str> = inputs
        .into_iter()
        .map(|input| input.run.analysis().experiment.as_str())
        .collect();
    let distinct: BTreeSet<&str> = names.iter().copied().collect();
    let text = counted(distinct.len(), "experiment");
    match names.len() == distinct.len() {
        true => text,
        false => format!("{text}, {}", counted(names.len(), "run")),
    }
}
