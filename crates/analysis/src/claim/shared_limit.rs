//! What groups reach at once, against each alone.

use std::collections::BTreeMap;

use iolab_workload::group::ALL;
use iolab_workload::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use super::effect::{
    CellId, Difference, Estimate, MARGIN_UP, confidence, judge, log_ratios_to_sum, of_blocks,
    within_run,
};
use super::series::id;
use crate::analysis::{Analysis, CellAnalysis};
use crate::doubt::{SideDoubt, SideDoubts};
use crate::json;

/// What groups reach while all of them are active, compared with the sum of what each reaches alone.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Together {
    /// The cell in which all groups are active.
    pub cell: CellId,
    /// The cell of each group alone, in the order of the groups.
    pub alone_cells: Vec<CellId>,
    /// Factor and level of the other factors.
    #[serde(serialize_with = "json::object")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub at: Vec<(String, String)>,
    /// The quantity.
    #[serde(serialize_with = "json::name")]
    #[schemars(with = "String")]
    pub response: Response,
    /// The median while all are active, in the unit of the response.
    pub at_once: f64,
    /// The sum of the medians of the groups alone.
    pub alone: f64,
    /// What they reach at once over the sum of what each reaches alone, in the blocks that all these cells share; `None` below six.
    pub estimate: Option<Estimate>,
    /// Whether the groups share a limit.
    pub limit: SharedLimit,
    /// What kept that from being claimed.
    pub doubts: Vec<SideDoubt>,
}

/// Whether groups share a limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SharedLimit {
    /// They do: at once they reach less than one at a time.
    Shared(ReachedBy),
    /// They share none up to the sum of what they reach alone, within the margin.
    NotShared,
    /// None was found: the interval holds 1, and more than the margin.
    NotFound,
    /// Too few shared blocks for an interval, or evidence that could reverse the claim.
    CannotTell,
}

/// Which groups suffice to reach a limit that all of them share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReachedBy {
    /// These, as the level of the factor names them: the fewest that are shown to reach what all do.
    Groups(String),
    /// All together; each smaller set that was measured is shown to reach less.
    AllOnly,
    /// No smaller set is shown to reach it, and some are not shown to miss it.
    Unknown,
}

/// The factor that selects the active groups.
const ACTIVE: &str = "active";

/// A cell in which all groups are active, with those in which some are, at the same levels of the other factors.
struct Active<'a> {
    whole: &'a CellAnalysis,
    at: Vec<(String, String)>,
    /// Each group alone, in the order of the groups.
    alone: Vec<&'a CellAnalysis>,
    /// Some groups, with the level that names them.
    some: Vec<(String, &'a CellAnalysis)>,
}

/// For runs that have a cell with all groups and one for each group alone. All comparisons hold together.
pub(super) fn shared_limits(analysis: &Analysis, run: usize) -> Vec<Together> {
    let place = analysis.factors.iter().position(|factor| factor == ACTIVE);
    let Some(place) = place else {
        return Vec::new();
    };
    if analysis.response.is_time() || analysis.response_group.is_some() {
        return Vec::new();
    }
    let level = |cell: &CellAnalysis| cell.cell.levels.get(place).cloned().unwrap_or_default();
    let others = |cell: &CellAnalysis| -> Vec<(String, String)> {
        let levels = analysis.factors.iter().zip(&cell.cell.levels).enumerate();
        let others = levels.filter(|(number, _)| *number != place);
        others
            .map(|(_, (factor, level))| (factor.clone(), level.clone()))
            .collect()
    };
    let whole = analysis.cells.iter().filter(|cell| level(cell) == ALL);
    let active = whole.filter_map(|whole| {
        let at = others(whole);
        let beside = analysis.cells.iter();
        let beside = beside.filter(|cell| others(cell) == at && level(cell) != ALL);
        Active::of(
            whole,
            at.clone(),
            beside.map(|cell| (level(cell), cell)).collect(),
        )
    });
    let active: Vec<Active<'_>> = active.collect();
    let confidence = confidence(active.iter().map(|one| 1 + one.some.len()).sum());
    let claims = active.into_iter();
    let claims = claims.filter_map(|one| one.judged(analysis.response, run, confidence));
    claims.collect()
}

impl<'a> Active<'a> {
    /// `None` where a group was not measured alone, or stops at a rate, whatever the storage could do.
    fn of(
        whole: &'a CellAnalysis,
        at: Vec<(String, String)>,
        some: Vec<(String, &'a CellAnalysis)>,
    ) -> Option<Self> {
        let groups = &whole.cell.spec.groups;
        let mut trials = groups.iter().map(|group| group.trial());
        if trials.any(|trial| trial.rate.is_some()) {
            return None;
        }
        let alone = groups.iter().map(|group| {
            let mut all = some.iter();
            all.find(|(level, _)| *level == group.name)
                .map(|(_, cell)| *cell)
        });
        Some(Self {
            alone: alone.collect::<Option<_>>()?,
            whole,
            at,
            some,
        })
    }

    fn judged(self, response: Response, run: usize, confidence: f64) -> Option<Together> {
        let median = |cell: &CellAnalysis| cell.response.map(|response| response.median);
        let medians = self.alone.iter().map(|cell| median(cell));
        let parts: Vec<_> = self.alone.iter().map(|cell| cell.trials()).collect();
        let logs: Vec<f64> = log_ratios_to_sum(&parts, self.whole.trials())
            .into_values()
            .collect();
        let estimate = of_blocks(&logs, confidence);
        let against = self
            .alone
            .iter()
            .map(|cell| SideDoubts::of_cells(cell, self.whole, response));
        let against = SideDoubts::of_any(against.collect::<Vec<_>>().iter());
        let (difference, doubts) = match &estimate {
            Some(estimate) => judge(estimate, MARGIN_UP, &against, response.more_is_better()),
            None => (Difference::CannotTell, Vec::new()),
        };
        let limit = match difference {
            Difference::Lower => SharedLimit::Shared(self.reached_by(confidence)),
            Difference::Equivalent | Difference::Higher => SharedLimit::NotShared,
            Difference::NotFound => SharedLimit::NotFound,
            Difference::CannotTell => SharedLimit::CannotTell,
        };
        Some(Together {
            cell: id(run, self.whole),
            alone_cells: self.alone.iter().map(|cell| id(run, cell)).collect(),
            at_once: median(self.whole)?,
            alone: medians.sum::<Option<f64>>()?,
            at: self.at,
            response,
            estimate,
            limit,
            doubts,
        })
    }

    /// The fewest groups that are shown to reach what all do.
    fn reached_by(&self, confidence: f64) -> ReachedBy {
        let shown = self.some.iter().map(|(level, cell)| {
            let estimate = within_run(self.whole, cell, confidence);
            let shown = estimate.map_or(Difference::CannotTell, |found| found.shows(MARGIN_UP));
            (level, shown)
        });
        let shown: Vec<(&String, Difference)> = shown.collect();
        let reach = shown.iter().filter(|(_, difference)| {
            matches!(difference, Difference::Equivalent | Difference::Higher)
        });
        let fewest = reach.min_by_key(|(level, _)| level.matches('+').count());
        match fewest {
            Some((level, _)) => ReachedBy::Groups((*level).clone()),
            None if shown
                .iter()
                .all(|(_, difference)| *difference == Difference::Lower) =>
            {
                ReachedBy::AllOnly
            }
            None => ReachedBy::Unknown,
        }
    }
}
