//! Groups at once, compared with the sum of the rates that each reaches alone.

use iolab_workload::group::ALL;

use super::comparison::{Comparison, Contrast};
use super::effect::{CellId, Effect, MARGIN_UP, confidence, judge, log_ratios_to_sum, of_blocks};
use super::series::id;
use crate::analysis::{Analysis, CellAnalysis};
use crate::doubt::SideDoubts;

/// The factor that selects the active groups.
const ACTIVE: &str = "active";

/// A cell in which all groups are active, and the cells of each group alone at the same levels of the other
/// factors.
struct Company<'a> {
    whole: &'a CellAnalysis,
    held: Vec<(String, String)>,
    alone: Vec<&'a CellAnalysis>,
}

/// The comparison of all groups at once with each alone; `None` for runs without these cells.
pub(super) fn company(analysis: &Analysis, run: usize) -> Option<Comparison> {
    let place = analysis
        .factors
        .iter()
        .position(|factor| factor == ACTIVE)?;
    if analysis.response.is_time() || analysis.response_group.is_some() {
        return None;
    }
    let level = |cell: &CellAnalysis| cell.cell.levels.get(place).cloned().unwrap_or_default();
    let held = |cell: &CellAnalysis| -> Vec<(String, String)> {
        let levels = analysis.factors.iter().zip(&cell.cell.levels);
        let others = levels.filter(|(factor, _)| *factor != ACTIVE);
        others
            .map(|(factor, level)| (factor.clone(), level.clone()))
            .collect()
    };
    // `None` if a group was not measured alone, or has a rate, which limits it whatever the storage can do.
    let of = |whole: &'_ CellAnalysis| -> Option<Vec<&CellAnalysis>> {
        let groups = whole.cell.spec.groups.iter();
        groups
            .map(|group| {
                let mut cells = analysis.cells.iter();
                let is_alone =
                    |cell: &&CellAnalysis| level(cell) == group.name && held(cell) == held(whole);
                let is_free = group.trial().rate.is_none();
                cells.find(is_alone).filter(|_| is_free)
            })
            .collect()
    };
    let all = analysis.cells.iter().filter(|cell| level(cell) == ALL);
    let all: Vec<Company<'_>> = all
        .filter_map(|whole| {
            Some(Company {
                whole,
                held: held(whole),
                alone: of(whole)?,
            })
        })
        .collect();
    let confidence = confidence(all.len());
    let effects = all
        .iter()
        .filter_map(|one| one.effect(analysis, run, confidence));
    let effects: Vec<Effect> = effects.collect();
    let alone = all.iter().flat_map(|one| &one.alone);
    (!effects.is_empty()).then(|| Comparison {
        contrast: Contrast::Company {
            alone: alone.map(|cell| id(run, cell)).collect(),
        },
        response: analysis.response,
        leads: true,
        held: effects[0]
            .held
            .iter()
            .map(|(name, _)| name.clone())
            .collect(),
        effects,
    })
}

impl Company<'_> {
    /// The effect of having all groups active; `None` below six shared blocks.
    fn effect(&self, analysis: &Analysis, run: usize, confidence: f64) -> Option<Effect> {
        let response = analysis.response;
        let median = |cell: &CellAnalysis| cell.response.map(|response| response.median);
        let medians = self.alone.iter().map(|cell| median(cell));
        let parts: Vec<_> = self.alone.iter().map(|cell| cell.trials()).collect();
        let logs = log_ratios_to_sum(&parts, self.whole.trials());
        let estimate = of_blocks(&logs.into_values().collect::<Vec<f64>>(), confidence)?;
        let against = self
            .alone
            .iter()
            .map(|cell| SideDoubts::of_cells(cell, self.whole, response));
        let against = SideDoubts::of_any(against.collect::<Vec<_>>().iter());
        let (difference, doubts) = judge(&estimate, MARGIN_UP, &against, response.more_is_better());
        let base: CellId = id(run, self.alone.first()?);
        Some(Effect {
            base,
            other: id(run, self.whole),
            levels: ("alone".to_owned(), ALL.to_owned()),
            held: self.held.clone(),
            medians: (medians.sum::<Option<f64>>()?, median(self.whole)?),
            estimate,
            difference,
            doubts,
        })
    }
}
