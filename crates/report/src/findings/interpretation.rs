//! What an analysed run says: the costly part, which a command asks for once, for text, figures and pages.

use crate::findings::{Finding, findings, of_runs};
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
    /// All that can be said of the run, beside those that it is shown with.
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

    /// Interprets runs that are shown together: none says what another contradicts.
    pub fn of_each<'a>(runs: impl IntoIterator<Item = &'a AnalysedRun>) -> Vec<Self> {
        let runs: Vec<(&AnalysedRun, Bends)> = runs
            .into_iter()
            .map(|run| (run, Bends::of(run.analysis())))
            .collect();
        let bending: Vec<_> = runs
            .iter()
            .map(|(run, bends)| (run.analysis(), bends))
            .collect();
        let findings = of_runs(&bending).each;
        let all = runs.into_iter().zip(findings);
        all.map(|((run, bends), findings)| Self {
            peers: with_peers(run),
            findings,
            bends,
        })
        .collect()
    }
}
