//! Computes verdicts from the medians of runs. Pure, on plain numbers; METHODS.md has the rule and its sources.

use iolab_record::ServedBy;
use iolab_stats::{Contrast, contrast, mean};

use super::{GATE_POWER, ReportedChanges, RunCriteria};
use crate::claim::Estimate;
use crate::compare::{ALPHA, Better, CellComparison, CellVerdict, Side};
use crate::doubt::{Direction, Doubt, DoubtKind, SideDoubts};

/// Medians within this share of each other count as equal: latencies have three significant digits.
const RESOLUTION: f64 = 0.001;

/// The medians of one cell; `None` for a run without one, or with one that is not positive.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunCell {
    /// The levels that both sides share.
    pub levels: Vec<String>,
    /// A median for each run of the base.
    pub base: Vec<Option<f64>>,
    /// A median for each new run.
    pub new: Vec<Option<f64>>,
    /// Origin of most bytes of the base and of the new runs; `None` where unknown.
    pub served: [Option<ServedBy>; 2],
    /// Evidence against the comparison.
    pub against: SideDoubts,
}

/// Judges all cells, and all undisturbed ones together where there are several.
pub fn judge(
    cells: &[RunCell],
    better: Better,
    terms: &RunCriteria,
) -> (Vec<CellComparison>, Option<CellComparison>) {
    let contrast = |cell: &RunCell| cell.contrast(terms.base_min);
    let contrasts: Vec<Option<Contrast>> = cells.iter().map(contrast).collect();
    let together = merge_cells(cells);
    let overall = together.as_ref().map(contrast);
    let known = contrasts.iter().flatten().count() as f64;
    // All cells together have the weight of the single cells together: a change of a machine affects most of its
    // cells.
    let weights = if overall.flatten().is_some() {
        2.0 * known
    } else {
        known
    };
    let judged = |cell: &RunCell, contrast: Option<Contrast>, share: f64| {
        let level = ALPHA * share;
        let interval = contrast.and_then(|c| c.interval(1.0 - level));
        let interval = interval.map(|interval| (interval.low.exp(), interval.high.exp()));
        let (verdict, doubts) = terms.verdict(cell, contrast.zip(interval), better);
        CellComparison {
            estimate: contrast.map(|contrast| Estimate {
                bound: cell.against.bound(),
                ..Estimate::of(contrast.difference.exp(), interval)
            }),
            doubts,
            p_adjusted: contrast.map(|c| (c.p() / share).min(1.0)),
            run_sd: contrast.map(|c| c.sd),
            // The level of a one-sided test.
            detectable: contrast
                .and_then(|c| Some(c.detectable(level / 2.0, GATE_POWER)?.exp_m1())),
            ..CellComparison::new(
                cell.levels.clone(),
                side(&cell.base, cell.served[0]),
                side(&cell.new, cell.served[1]),
                verdict,
            )
        }
    };
    let of_cells = cells.iter().zip(&contrasts);
    let of_cells = of_cells
        .map(|(cell, contrast)| judged(cell, *contrast, 1.0 / weights))
        .collect();
    let overall = together.as_ref().zip(overall);
    let overall = overall.map(|(cell, contrast)| judged(cell, contrast, known / weights));
    (of_cells, overall)
}

fn side(medians: &[Option<f64>], served_by: Option<ServedBy>) -> Side {
    Side {
        values: medians.iter().copied().flatten().collect(),
        centre: mean(&logarithms(medians)).map(f64::exp),
        served_by,
        ..Side::default()
    }
}

fn logarithms(medians: &[Option<f64>]) -> Vec<f64> {
    medians.iter().flatten().map(|median| median.ln()).collect()
}

impl RunCell {
    fn contrast(&self, base_min: usize) -> Option<Contrast> {
        let base = logarithms(&self.base);
        (base.len() >= base_min).then(|| contrast(&base, &logarithms(&self.new), RESOLUTION))?
    }

    /// Reason why there is no contrast.
    fn lacking(&self) -> DoubtKind {
        let lacks = |values: &[Option<f64>]| values.iter().flatten().next().is_none();
        match lacks(&self.base) || lacks(&self.new) {
            true => DoubtKind::NoValue,
            false => DoubtKind::FewRuns,
        }
    }
}

/// The mean over the undisturbed cells that every run has; `None` for fewer than two.
fn merge_cells(cells: &[RunCell]) -> Option<RunCell> {
    let whole = |cell: &&RunCell| {
        cell.against.is_empty() && cell.base.iter().chain(&cell.new).all(Option::is_some)
    };
    let whole: Vec<&RunCell> = cells.iter().filter(whole).collect();
    if whole.len() < 2 {
        return None;
    }
    let mean = |run: usize, side: fn(&RunCell) -> &[Option<f64>]| {
        let sum: Option<f64> = whole.iter().map(|cell| Some(side(cell)[run]?.ln())).sum();
        sum.map(|sum| (sum / whole.len() as f64).exp())
    };
    let first = whole[0];
    Some(RunCell {
        base: (0..first.base.len())
            .map(|run| mean(run, |c| &c.base))
            .collect(),
        new: (0..first.new.len())
            .map(|run| mean(run, |c| &c.new))
            .collect(),
        ..RunCell::default()
    })
}

impl RunCriteria {
    /// The conclusion from the interval of the ratio, with the doubts that could reverse it.
    fn verdict(
        &self,
        cell: &RunCell,
        shown: Option<(Contrast, (f64, f64))>,
        better: Better,
    ) -> (CellVerdict, Vec<Doubt>) {
        let Some((contrast, (low, high))) = shown else {
            return (CellVerdict::CannotTell(cell.lacking()), Vec::new());
        };
        let against = &cell.against;
        let margin = self.margin.ln_1p();
        let is_higher = contrast.difference > 0.0;
        let differs = low > 1.0 || high < 1.0;
        let matters = contrast.difference.abs() > margin;
        let equivalent = low.ln() >= -margin && high.ln() <= margin;
        let direction = better.verdict(is_higher);
        let claim = match self.looks_for {
            ReportedChanges::Changes if equivalent => Some(CellVerdict::Equivalent),
            ReportedChanges::Changes => (matters && differs).then_some(direction),
            _ if differs => Some(direction),
            ReportedChanges::AnyChangeOrEquivalence if equivalent => Some(CellVerdict::Equivalent),
            _ => None,
        };
        let doubts = match claim {
            Some(CellVerdict::Equivalent) => against.turning([Direction::Equal; 2], 1.0),
            Some(_) => {
                let new_is_better = is_higher == (better != Better::Lower);
                against.turning(Direction::of_sides(new_is_better), 1.0)
            }
            // A lack of change has no meaning for cells that were not measured.
            None => against.foreign(),
        };
        let shown = match (claim, self.looks_for) {
            (Some(verdict), _) => verdict,
            (None, ReportedChanges::AnyChange) => CellVerdict::NoChange,
            (None, _) => CellVerdict::CannotTell(DoubtKind::WideInterval),
        };
        (CellVerdict::doubted(&doubts).unwrap_or(shown), doubts)
    }
}
