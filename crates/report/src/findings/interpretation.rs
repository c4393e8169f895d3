//! Interpretation of an analysed run: the costly part, which a command computes once for text, figures and
//! pages.

use crate::findings::{Conclusion, Finding, conclusions, of_runs, with_choices};
use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::compare::{Comparison, with_peers};

/// Conclusions from the analysis of one run. Deterministic.
#[derive(Debug, Clone, PartialEq)]
pub struct Interpretation {
    /// The run in lines that can be pasted, one per target.
    pub conclusions: Vec<Conclusion>,
    /// iolab against each peer of the run.
    pub peers: Vec<Comparison>,
    /// All findings on the run that no run shown with it contradicts.
    pub findings: Vec<Finding>,
}

impl Interpretation {
    /// Interprets a run by itself.
    pub fn of(run: &AnalysedRun) -> Self {
        let (mut each, _) = of_runs(&[run.analysis()]);
        Self::with(run, each.pop().unwrap_or_default())
    }

    fn with(run: &AnalysedRun, findings: Vec<Finding>) -> Self {
        let peers = with_peers(run);
        Self {
            conclusions: conclusions(run.analysis(), &peers),
            peers,
            findings,
        }
    }
}

/// Interpretation of runs that are shown together.
#[derive(Debug, Clone, PartialEq)]
pub struct Together {
    /// Each run by itself, in their order, without what another run contradicts.
    pub each: Vec<Interpretation>,
    /// Findings on several runs: comparisons across them, and choices of settings.
    pub across: Vec<Finding>,
}

impl Together {
    /// Interprets the runs together.
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a AnalysedRun>) -> Self {
        let runs: Vec<&AnalysedRun> = runs.into_iter().collect();
        let analyses: Vec<_> = runs.iter().map(|run| run.analysis()).collect();
        let (each, across) = of_runs(&analyses);
        let all = runs.into_iter().zip(each);
        Self {
            each: all
                .map(|(run, findings)| Interpretation::with(run, findings))
                .collect(),
            across: with_choices(across, &analyses),
        }
    }
}
