//! How far a run is the test of a standard that it follows. Of runs by rounds the claim about these says it.

use iolab_plan::standard::Deviation;

use crate::analysis::{Analysis, GroupAnalysis, StandardFollowed};

/// A run that follows a test of a standard, and has no rounds until they are steady.
#[derive(Debug, Clone, PartialEq)]
pub struct Conformance {
    /// The run.
    pub run: usize,
    /// The test, and where the run deviates from it.
    pub followed: StandardFollowed,
    /// The throughput of the stages of its only cell, which follow one another as in the test; empty without any.
    pub stages: Vec<StageThroughput>,
}

/// The throughput of a stage.
#[derive(Debug, Clone, PartialEq)]
pub struct StageThroughput {
    /// Its name.
    pub name: String,
    /// Median over the trials, MB/s.
    pub mb_s: f64,
    /// Trials.
    pub n: usize,
}

/// That of a run.
pub(super) fn conformance(analysis: &Analysis, run: usize) -> Option<Conformance> {
    let followed = analysis.standard.clone()?;
    let stages = match followed.deviations.contains(&Deviation::Stages) {
        true => Vec::new(),
        false => stages(analysis),
    };
    analysis.steady.is_none().then_some(Conformance {
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
    let of = |group: &GroupAnalysis| {
        Some(StageThroughput {
            name: group.name.clone(),
            mb_s: group.cell.throughput?.median,
            n: group.cell.n,
        })
    };
    let all: Option<Vec<StageThroughput>> = cell.following_groups().into_iter().map(of).collect();
    all.unwrap_or_default()
}
