//! What an analysed run says: the costly part, which a command asks for once, for text, figures and pages.

use crate::findings::{Finding, findings};
use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::bends::Bends;
use iolab_analysis::compare::{Comparison, with_peers};

/// What follows from the analysis of one run. The same run always gives the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Interpretation {
    /// Where its curves bend.
    pub bends: Bends,
    /// iolab against each peer of the run.
    pub peers: Vec<Comparison>,
    /// All that can be said of the run alone.
    pub findings: Vec<Finding>,
}

impl Interpretation {
    /// Interprets a run: fits its curves, compares its tools and applies all rules.
    pub fn of(run: &AnalysedRun) -> Self {
        let bends = Bends::of(run.analysis());
        Self {
            peers: with_peers(run),
            findings: findings(run.analysis(), &bends),
            bends,
        }
    }
}
