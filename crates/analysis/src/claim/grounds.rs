//! Basis of each kind of claim: its cells, and the doubts that turned a part of it.

use std::collections::BTreeSet;

use super::{
    Best, Candidate, CellId, ChangePlace, Claim, FixedCosts, Preparation, Reproduction, Rounds,
    State, Suspected, Suspects,
};
use crate::analysis::{Analysis, CellAnalysis};
use crate::doubt::{Doubt, DoubtKind};

impl Claim {
    /// The cells that the claim is based on, by the indices of these runs. For a claim about a run as a whole
    /// these are all cells that can show it, otherwise just [`cells`](Self::cells).
    pub(crate) fn rests_on(&self, runs: &[&Analysis]) -> BTreeSet<CellId> {
        let of_run = |run: &usize, is: &dyn Fn(&CellAnalysis) -> bool| {
            let cells = runs.get(*run).into_iter().flat_map(|run| &run.cells);
            let own = cells.filter(|cell| is(cell)).map(|cell| CellId {
                run: *run,
                cell: cell.cell.id,
            });
            own.collect()
        };
        match self {
            Self::Verified(one) => of_run(&one.run, &|cell| cell.verified.is_some()),
            Self::Load(one) => of_run(&one.run, &|cell| cell.rate_report.is_some()),
            Self::Programs(one) => of_run(&one.run, &|_| true),
            Self::Preparation(Preparation { run, .. })
            | Self::FixedCosts(FixedCosts { run, .. })
            | Self::Rounds(Rounds { run, .. })
            | Self::Reproduced(Reproduction { run, .. })
            | Self::Suspects(Suspects { run, .. }) => of_run(run, &|_| true),
            Self::Comparison(_)
            | Self::Best(_)
            | Self::TooFew(_)
            | Self::Gradual(_)
            | Self::NoChange(_)
            | Self::Steady(_)
            | Self::LongTail(_)
            | Self::TimeByLayer(_)
            | Self::Change(_)
            | Self::Limit(_) => self.cells().into_iter().collect(),
        }
    }

    /// The doubts that turned a part of it to "cannot tell".
    pub(crate) fn doubts(&self) -> impl Iterator<Item = &Doubt> {
        let all: Vec<&Doubt> = match self {
            Self::Comparison(comparison) => {
                let effects = comparison.effects.iter();
                effects.flat_map(|effect| &effect.doubts).collect()
            }
            Self::Best(curves) => curves.iter().flat_map(of_best).collect(),
            Self::Load(load) => load.doubts.iter().collect(),
            Self::Reproduced(found) => found.doubts.iter().collect(),
            Self::Suspects(found) => {
                let suspects = found.suspects.iter();
                suspects.flat_map(|one: &Suspected| &one.doubts).collect()
            }
            Self::Verified(_)
            | Self::Programs(_)
            | Self::TooFew(_)
            | Self::Preparation(_)
            | Self::Change(_)
            | Self::Gradual(_)
            | Self::NoChange(_)
            | Self::LongTail(_)
            | Self::TimeByLayer(_)
            | Self::Steady(_)
            | Self::Rounds(_)
            | Self::Limit(_)
            | Self::FixedCosts(_) => Vec::new(),
        };
        all.into_iter()
    }

    /// What the claim says against the level of measured trials.
    pub(crate) fn unsettled(&self) -> Option<DoubtKind> {
        match self {
            Self::Change(change) => match change.place {
                ChangePlace::OverRun { .. } => Some(DoubtKind::LevelChanged),
                // Where both levels were asked for, both are shown.
                ChangePlace::WithinTrials { asked, .. } => {
                    (!asked).then_some(DoubtKind::LevelChanged)
                }
                ChangePlace::InWarmUp => None,
            },
            // A change that is shown has a claim of its own.
            Self::Steady(steady) => match steady.state {
                State::NotReached { .. } => Some(DoubtKind::NotSettled),
                State::NotWrittenOver { .. } => None,
            },
            Self::Comparison(_)
            | Self::Best(_)
            | Self::Load(_)
            | Self::Reproduced(_)
            | Self::Suspects(_)
            | Self::Verified(_)
            | Self::Programs(_)
            | Self::TooFew(_)
            | Self::Preparation(_)
            | Self::Gradual(_)
            | Self::NoChange(_)
            | Self::LongTail(_)
            | Self::TimeByLayer(_)
            | Self::Rounds(_)
            | Self::Limit(_)
            | Self::FixedCosts(_) => None,
        }
    }
}

fn of_best(best: &Best) -> impl Iterator<Item = &Doubt> {
    let all = best.candidates.iter();
    all.flat_map(|one: &Candidate| &one.doubts)
}
