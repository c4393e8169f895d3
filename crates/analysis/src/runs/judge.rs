//! From the medians of runs to verdicts: pure, on plain numbers. METHODS.md has the rule and its sources.

use iolab_stats::{Contrast, contrast, holm_weighted};

use super::{GATE_POWER, LooksFor, RunCriteria};
use crate::compare::{Better, CellVerdict};

/// Medians closer than this, as a share, are taken for equal: latencies are kept to three significant digits.
const RESOLUTION: f64 = 0.001;

/// The logarithms of the medians of one cell; `None` for a run that has none.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunCell {
    /// A value for each run of the base.
    pub base: Vec<Option<f64>>,
    /// A value for each new run.
    pub new: Vec<Option<f64>>,
    /// Whether the sides differ in what disturbs.
    pub is_disturbed: bool,
}

/// What the runs say of a cell, or of all cells together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// New minus base, on the logarithms; `None` where there are fewer than three runs.
    pub contrast: Option<Contrast>,
    /// Two-sided p of a change.
    pub p: Option<f64>,
    /// The same adjusted over all cells and all cells together by Holm's method with weights.
    pub p_adjusted: Option<f64>,
    /// The change, as a share, that would have been found with 90 % if it were in this cell alone, or of all cells
    /// together in all of them.
    pub detectable: Option<f64>,
    /// What can be said.
    pub verdict: CellVerdict,
}

/// Judges all cells, and all undisturbed ones together where there are several.
pub fn judge(
    cells: &[RunCell],
    better: Better,
    terms: &RunCriteria,
) -> (Vec<Judged>, Option<Judged>) {
    let contrast = |cell: &RunCell| cell.contrast(terms.base_min);
    let contrasts: Vec<Option<Contrast>> = cells.iter().map(contrast).collect();
    let together = merge_cells(cells);
    let overall = together.as_ref().map(contrast);
    let known = contrasts.iter().flatten().count();
    // All cells together weigh as much as the cells do: what changes a machine changes most of its cells.
    let overall_weight = if overall.flatten().is_some() {
        known as f64
    } else {
        0.0
    };
    let total = known as f64 + overall_weight;
    let all = || contrasts.iter().copied().chain(overall);
    let p_adjusted = adjusted(all(), known, overall_weight);
    let judged = |place: usize, contrast: Option<Contrast>, weight: f64, is_disturbed: bool| {
        let p_adjusted = p_adjusted[place];
        Judged {
            contrast,
            p: contrast.map(|c| c.p()),
            p_adjusted,
            detectable: contrast.and_then(|c| {
                // The level is that of one direction.
                let alpha = terms.alpha * weight / total / 2.0;
                Some(c.detectable(alpha, GATE_POWER)?.exp_m1())
            }),
            verdict: terms.verdict(contrast, p_adjusted, better, is_disturbed),
        }
    };
    let of_cells = cells.iter().zip(&contrasts).enumerate();
    let of_cells = of_cells
        .map(|(place, (cell, contrast))| judged(place, *contrast, 1.0, cell.is_disturbed))
        .collect();
    let overall = overall.map(|contrast| judged(cells.len(), contrast, overall_weight, false));
    (of_cells, overall)
}

impl RunCell {
    fn contrast(&self, base_min: usize) -> Option<Contrast> {
        let known = |values: &[Option<f64>]| values.iter().copied().flatten().collect::<Vec<_>>();
        let base = known(&self.base);
        (base.len() >= base_min).then(|| contrast(&base, &known(&self.new), RESOLUTION))?
    }
}

/// The mean over the undisturbed cells that every run has; `None` where these are fewer than two.
fn merge_cells(cells: &[RunCell]) -> Option<RunCell> {
    let whole = |cell: &&RunCell| {
        !cell.is_disturbed && cell.base.iter().chain(&cell.new).all(Option::is_some)
    };
    let whole: Vec<&RunCell> = cells.iter().filter(whole).collect();
    if whole.len() < 2 {
        return None;
    }
    let mean = |run: usize, side: fn(&RunCell) -> &[Option<f64>]| {
        let sum: Option<f64> = whole.iter().map(|cell| side(cell)[run]).sum();
        sum.map(|sum| sum / whole.len() as f64)
    };
    let first = whole[0];
    Some(RunCell {
        base: (0..first.base.len())
            .map(|run| mean(run, |c| &c.base))
            .collect(),
        new: (0..first.new.len())
            .map(|run| mean(run, |c| &c.new))
            .collect(),
        is_disturbed: false,
    })
}

/// Holm's adjustment over the cells and all of them together, in their order; `None` where there is no contrast.
fn adjusted(
    all: impl Iterator<Item = Option<Contrast>>,
    known: usize,
    overall_weight: f64,
) -> Vec<Option<f64>> {
    let p: Vec<Option<f64>> = all.map(|contrast| contrast.map(|c| c.p())).collect();
    let values: Vec<f64> = p.iter().copied().flatten().collect();
    let weights: Vec<f64> = (0..values.len())
        .map(|place| if place < known { 1.0 } else { overall_weight })
        .collect();
    let mut adjusted = holm_weighted(&values, &weights)
        .unwrap_or_default()
        .into_iter();
    p.iter().map(|p| p.and_then(|_| adjusted.next())).collect()
}

impl RunCriteria {
    fn verdict(
        &self,
        contrast: Option<Contrast>,
        p_adjusted: Option<f64>,
        better: Better,
        is_disturbed: bool,
    ) -> CellVerdict {
        let Some(contrast) = contrast else {
            return CellVerdict::CannotTell;
        };
        let shown = p_adjusted.is_some_and(|p| p < self.alpha);
        let inside = contrast.difference.abs() <= self.margin.ln_1p();
        let equivalent = inside && contrast.within_p(self.margin.ln_1p()) < self.alpha;
        let direction = better.verdict(contrast.difference > 0.0);
        let claim = match self.looks_for {
            LooksFor::Changes if equivalent => Some(CellVerdict::Equivalent),
            LooksFor::Changes => (!inside && shown).then_some(direction),
            _ if shown => Some(direction),
            LooksFor::AnyChangeOrEquivalence if equivalent => Some(CellVerdict::Equivalent),
            _ => None,
        };
        match (claim, self.looks_for) {
            (Some(_), _) if is_disturbed => CellVerdict::Disturbed,
            (Some(verdict), _) => verdict,
            (None, LooksFor::AnyChange) => CellVerdict::NoChange,
            (None, _) => CellVerdict::CannotTell,
        }
    }
}
