//! Comparison of several runs with several others, or of a new run with earlier ones. The run is the unit of replication, and the
//! scatter between runs decides.

pub mod comparable_runs;

use std::collections::{BTreeMap, BTreeSet};

use crate::analysed_run::AnalysedRun;
use crate::analysis::CellAnalysis;
use crate::claim::Estimate;
use crate::compare::matching::match_sides;
use crate::compare::{
    ALPHA, Better, CellComparison, CellVerdict, Comparison, Criteria, ReplicationUnit, RunSide,
    Side, SideName,
};
use crate::doubt::{Direction, Doubt, DoubtKind, SideDoubts};
use crate::refusal;
use comparable_runs::targets;
use iolab_record::ServedBy;
use iolab_stats::{Contrast, contrast, mean};
use iolab_workload::Result;

pub use crate::compare::RunName;

/// Probability with which the detectable change would have been found.
pub const GATE_POWER: f64 = 0.9;

/// A run and the file it was read from.
#[derive(Debug, Clone, Copy)]
pub struct FiledRun<'a> {
    /// The path as the user wrote it.
    pub file: &'a str,
    /// Analysed content of the run.
    pub run: &'a AnalysedRun,
}

impl FiledRun<'_> {
    /// The identity of the run.
    pub fn name(&self) -> RunName {
        RunName::of(self.file, self.run.record())
    }
}

impl Comparison {
    /// Compares runs with runs, cell by cell. A run that occurs twice counts once.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): no run on a side, a run on both sides, different responses, no cell in
    /// common, or a definition that cannot be read.
    pub fn of_several(
        base: &[FiledRun<'_>],
        new: &[FiledRun<'_>],
        terms: Criteria,
    ) -> Result<Self> {
        let (base, new) = (in_time(base), in_time(new));
        if base.is_empty() || new.is_empty() {
            return Err(refusal::side_without_run());
        }
        let ids: Vec<String> = base.iter().map(|run| run.run.record().id()).collect();
        if let Some(twice) = new.iter().find(|run| ids.contains(&run.run.record().id())) {
            return Err(refusal::on_both_sides(twice.file));
        }
        let [sources_base, sources_new] = [&base, &new].map(|runs| sources(runs));
        let matched = match_sides(&sources_base, &sources_new)?;
        let response = matched.response;
        let cells = matched.cells.iter().map(|cell| RunCell {
            levels: cell.levels.clone(),
            base: medians(&cell.base),
            new: medians(&cell.new),
            served: [&cell.base, &cell.new].map(|side| served_of(side)),
            against: SideDoubts::of_runs(&known(&cell.base), &known(&cell.new), response),
        });
        let cells: Vec<RunCell> = cells.collect();
        let terms = Criteria {
            better: response.into(),
            ..terms
        };
        let (cells, overall) = judge(&cells, &terms);
        let lacking = base.iter().chain(&new);
        let lacking = lacking.filter(|run| !run.run.analysis().has_definition);
        Ok(Self {
            undefined: lacking.map(|run| run.file.to_owned()).collect(),
            unit: ReplicationUnit::Runs,
            intervals: cells.len(),
            cells,
            overall,
            base: side_name(&base),
            new: side_name(&new),
            terms,
            ..matched.compared
        })
    }
}

/// The runs as sides of a comparison.
pub fn sources<'a>(runs: &[FiledRun<'a>]) -> Vec<RunSide<'a>> {
    runs.iter().map(|run| RunSide::whole(run.run)).collect()
}

/// The side in a comparison: named after its first run.
fn side_name(runs: &[FiledRun<'_>]) -> SideName {
    let last = runs[runs.len() - 1].run.record();
    SideName {
        name: runs[0].file.to_owned(),
        of: [&last.experiment.name, " on ", &last.target_text()].concat(),
        runs: runs.iter().map(FiledRun::name).collect(),
        targets: targets(runs),
    }
}

/// The cells of the runs that have the cell.
fn known<'a>(side: &[Option<&'a CellAnalysis>]) -> Vec<&'a CellAnalysis> {
    side.iter().copied().flatten().collect()
}

/// The median of each run; `None` for a run without one.
fn medians(side: &[Option<&CellAnalysis>]) -> Vec<Option<f64>> {
    let median = |cell: &Option<&CellAnalysis>| {
        Some((*cell)?.response?.median).filter(|median| *median > 0.0)
    };
    side.iter().map(median).collect()
}

/// The most frequent origin of the bytes, over the trials of all runs.
fn served_of(cells: &[Option<&CellAnalysis>]) -> Option<ServedBy> {
    let mut places: BTreeMap<ServedBy, usize> = BTreeMap::new();
    let of_runs = cells.iter().flatten().flat_map(|cell| &cell.served);
    for (place, trials) in of_runs.flat_map(|served| &served.trials) {
        *places.entry(*place).or_default() += trials;
    }
    let most = places.into_iter().max_by_key(|(_, trials)| *trials)?;
    Some(most.0)
}

/// The distinct runs in the order of time.
pub fn in_time<'a>(runs: &[FiledRun<'a>]) -> Vec<FiledRun<'a>> {
    let mut all = runs.to_vec();
    let start = |run: &FiledRun<'a>| &run.run.record().run.started_utc;
    all.sort_by(|a, b| start(a).cmp(start(b)));
    let mut ids = BTreeSet::new();
    all.retain(|run| ids.insert(run.run.record().id()));
    all
}

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
pub fn judge(cells: &[RunCell], terms: &Criteria) -> (Vec<CellComparison>, Option<CellComparison>) {
    let contrast = |cell: &RunCell| {
        let base = logarithms(&cell.base);
        let has_enough = base.len() >= terms.gate.unwrap_or(1);
        has_enough.then(|| contrast(&base, &logarithms(&cell.new), RESOLUTION))?
    };
    let contrasts: Vec<Option<Contrast>> = cells.iter().map(contrast).collect();
    let together = merge_cells(cells);
    let overall = together.as_ref().map(contrast);
    let known = contrasts.iter().flatten().count() as f64;
    // All cells together have the weight of the single cells together: a change of a machine affects most of its
    // cells.
    let is_judged = overall.flatten().is_some();
    let weights = if is_judged { 2.0 * known } else { known };
    let judged = |cell: &RunCell, contrast: Option<Contrast>, share: f64| {
        let level = ALPHA * share;
        let interval = contrast.and_then(|c| c.interval(1.0 - level));
        let interval = interval.map(|interval| (interval.low.exp(), interval.high.exp()));
        let (verdict, doubts) = verdict(cell, contrast.zip(interval), terms);
        CellComparison {
            levels: cell.levels.clone(),
            base: side(&cell.base, cell.served[0]),
            new: side(&cell.new, cell.served[1]),
            estimate: contrast.map(|contrast| {
                let estimate = Estimate::of(contrast.difference.exp(), interval);
                estimate.bounded(&cell.against, terms.better != Better::Lower)
            }),
            verdict,
            doubts,
            further: None,
            tests: Vec::new(),
            p_adjusted: contrast.map(|c| (c.p() / share).min(1.0)),
            run_sd: contrast.map(|c| c.sd),
            // The level of a one-sided test.
            detectable: contrast
                .and_then(|c| Some(c.detectable(level / 2.0, GATE_POWER)?.exp_m1())),
        }
    };
    let of_cells = cells.iter().zip(contrasts);
    let of_cells = of_cells
        .map(|(cell, contrast)| judged(cell, contrast, 1.0 / weights))
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
    let means = |side: fn(&RunCell) -> &[Option<f64>]| {
        let mean = |run: usize| {
            let sum: Option<f64> = whole.iter().map(|cell| Some(side(cell)[run]?.ln())).sum();
            sum.map(|sum| (sum / whole.len() as f64).exp())
        };
        (0..side(whole[0]).len()).map(mean).collect()
    };
    Some(RunCell {
        base: means(|cell| &cell.base),
        new: means(|cell| &cell.new),
        ..RunCell::default()
    })
}

/// The conclusion from the interval of the ratio, with the doubts that could reverse it.
fn verdict(
    cell: &RunCell,
    shown: Option<(Contrast, (f64, f64))>,
    terms: &Criteria,
) -> (CellVerdict, Vec<Doubt>) {
    let Some((contrast, (low, high))) = shown else {
        return (CellVerdict::CannotTell(cell.lacking()), Vec::new());
    };
    let against = &cell.against;
    let margin = terms.margin.ln_1p();
    let is_higher = contrast.difference > 0.0;
    let differs = low > 1.0 || high < 1.0;
    let matters = contrast.difference.abs() > margin;
    let equivalent = margin > 0.0 && low.ln() >= -margin && high.ln() <= margin;
    let direction = terms.better.verdict(is_higher);
    let claim = match equivalent {
        true => Some(CellVerdict::Equivalent),
        false => (differs && matters).then_some(direction),
    };
    let doubts = match claim {
        Some(CellVerdict::Equivalent) => against.turning([Direction::Equal; 2], 1.0),
        Some(_) => {
            let new_is_better = is_higher == (terms.better != Better::Lower);
            against.turning(Direction::of_sides(new_is_better), 1.0)
        }
        // A lack of change has no meaning for cells that were not measured.
        None => against.foreign(),
    };
    let shown = claim.unwrap_or(match terms.gate.is_some() {
        true => CellVerdict::NoChange,
        false => CellVerdict::CannotTell(DoubtKind::WideInterval),
    });
    (CellVerdict::doubted(&doubts).unwrap_or(shown), doubts)
}
