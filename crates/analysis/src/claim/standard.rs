//! How far a run is the test of a standard that it follows.

use iolab_plan::standard::Deviation;
use schemars::JsonSchema;
use serde::Serialize;

use crate::analysis::{Analysis, GroupAnalysis, StandardFollowed};

/// A run that follows a test of a standard.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Conformance {
    /// The run.
    #[serde(skip)]
    pub run: usize,
    /// The test, and where the run deviates from it.
    #[serde(flatten)]
    pub followed: StandardFollowed,
    /// The throughput of the stages of its only cell, which follow one another as in the test; empty without any.
    pub stages: Vec<StageThroughput>,
}

/// The throughput of a stage.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StageThroughput {
    /// Its name.
    pub name: String,
    /// Median over the trials, MB/s.
    pub mb_s: f64,
    /// The same over that of the first stage; `None` of that one itself, and where it has none.
    pub of_first: Option<f64>,
    /// Number of trials.
    pub n: usize,
}

/// The test that a run followed, and its stages; `None` where it followed none.
pub(super) fn conformance(analysis: &Analysis, run: usize) -> Option<Conformance> {
    let followed = analysis.standard.clone()?;
    let stages = match followed.deviations.contains(&Deviation::Stages) {
        true => Vec::new(),
        false => stages(analysis),
    };
    Some(Conformance {
        run,
        followed,
        stages,
    })
}

/// The stages of the only cell; empty where one of them has no value.
fn stages(analysis: &Analysis) -> Vec<StageThroughput> {
    let [cell] = analysis.cells.as_slice() else {
        return Vec::new();
    };
    let stages = cell.following_groups();
    let median = |group: &GroupAnalysis| Some(group.cell.throughput?.median);
    let first = stages.first().copied().and_then(median);
    let of = |(place, group): (usize, &GroupAnalysis)| {
        let mb_s = median(group)?;
        let base = first.filter(|base| place > 0 && *base > 0.0);
        Some(StageThroughput {
            name: group.name.clone(),
            mb_s,
            of_first: base.map(|base| mb_s / base),
            n: group.cell.n,
        })
    };
    let all: Option<Vec<StageThroughput>> = stages.into_iter().enumerate().map(of).collect();
    all.unwrap_or_default()
}
