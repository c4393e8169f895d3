//! Matches the cells of many runs, and finds other differences of the sides.

use iolab_workload::Result;

use super::comparable_runs::targets;
use super::{FiledRun, RunCell, RunCriteria, judge};
use crate::analysis::CellAnalysis;
use crate::compare::matching::{
    Keyed, common_factors, common_response, is_of, keyed, no_common_cell, run_differences,
    setting_differences, take_without_requests,
};
use crate::compare::{Comparison, Criteria, Difference, ReplicationUnit, RunSide, SideName};
use crate::doubt::SideDoubts;
use crate::refusal;
use iolab_record::ServedBy;
use iolab_workload::settings::cell_label;

/// Runs with the cells of each.
pub struct Side<'a> {
    runs: &'a [FiledRun<'a>],
    cells: Vec<Vec<Keyed<'a>>>,
}

/// The runs as sides of a comparison.
pub fn sources<'a>(runs: impl IntoIterator<Item = &'a FiledRun<'a>>) -> Vec<RunSide<'a>> {
    runs.into_iter()
        .map(|run| RunSide::whole(run.run))
        .collect()
}

impl<'a> Side<'a> {
    /// The runs as one side, with their cells by the levels of these factors.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage) where a definition is needed and cannot be read.
    pub fn new(runs: &'a [FiledRun<'a>], factors: &[String]) -> Result<Self> {
        let cells = runs
            .iter()
            .map(|run| keyed(RunSide::whole(run.run), factors));
        Ok(Self {
            runs,
            cells: cells.collect::<Result<_>>()?,
        })
    }

    /// The distinct levels of all cells, in the order of the last run, which has the latest definition.
    pub fn levels(&self) -> Vec<&Vec<String>> {
        let mut levels: Vec<&Vec<String>> = Vec::new();
        for cell in self.cells.iter().rev().flatten() {
            if !levels.contains(&&cell.levels) {
                levels.push(&cell.levels);
            }
        }
        levels
    }

    /// The cell with these levels in each run.
    pub fn cell(&self, levels: &[String]) -> Vec<Option<&'a CellAnalysis>> {
        let of = |cells: &Vec<Keyed<'a>>| {
            let found = cells.iter().find(|cell| cell.levels == levels);
            found.map(|cell| cell.cell)
        };
        self.cells.iter().map(of).collect()
    }
}

impl Side<'_> {
    /// The side in a comparison: named after its first run.
    fn name(&self) -> SideName {
        let last = self.runs[self.runs.len() - 1].run.record();
        SideName {
            name: self.runs[0].file.to_owned(),
            of: [&last.experiment.name, " on ", &last.target_text()].concat(),
            runs: self.runs.iter().map(FiledRun::name).collect(),
            targets: targets(self.runs),
        }
    }

    /// Whether any run makes requests in the cell with these levels that the response is of.
    fn has_requests(&self, levels: &[String]) -> bool {
        let mut cells = self.cells.iter().flatten();
        cells.any(|cell| cell.levels == levels && cell.has_requests)
    }
}

pub(super) fn compare(
    base: &[FiledRun<'_>],
    new: &[FiledRun<'_>],
    terms: RunCriteria,
) -> Result<Comparison> {
    let sources = sources(base.iter().chain(new));
    let response = common_response(&sources)?;
    let factors = common_factors(&sources);
    let (base, new) = (Side::new(base, &factors)?, Side::new(new, &factors)?);
    let (of_base, of_new) = (base.levels(), new.levels());
    let alone = |all: &[&Vec<String>], other: &[&Vec<String>]| -> Vec<String> {
        let alone = all.iter().filter(|levels| !other.contains(levels));
        alone.map(|levels| cell_label(&factors, levels)).collect()
    };
    let mut both: Vec<&Vec<String>> = of_new
        .iter()
        .filter(|levels| of_base.contains(levels))
        .copied()
        .collect();
    let matched = both.len();
    both.retain(|levels| {
        let mut cells = known(&base.cell(levels));
        cells.extend(known(&new.cell(levels)));
        let specs: Vec<_> = cells.iter().map(|cell| &cell.cell.spec).collect();
        specs.iter().all(|spec| spec.is_comparable(specs[0]))
    });
    if both.is_empty() && matched > 0 {
        return Err(refusal::unknown_settings());
    }
    if both.is_empty() {
        let none = Vec::new();
        let (a, b) = (base.cells.last(), new.cells.last());
        return Err(no_common_cell(
            &factors,
            a.unwrap_or(&none),
            b.unwrap_or(&none),
            None,
        ));
    }
    let without_requests = take_without_requests(
        &mut both,
        |levels| base.has_requests(levels) || new.has_requests(levels),
        |levels| cell_label(&factors, levels),
    );
    let cells: Vec<RunCell> = both
        .iter()
        .map(|levels| {
            let (base, new) = (base.cell(levels), new.cell(levels));
            RunCell {
                levels: (*levels).clone(),
                base: medians(&base),
                new: medians(&new),
                served: [&base, &new].map(|side| served_of(side)),
                against: SideDoubts::of_runs(&known(&base), &known(&new), response),
            }
        })
        .collect();
    let (cells, overall) = judge(&cells, response.into(), &terms);
    let all = base.runs.iter().chain(new.runs.iter());
    let lacking = all.filter(|run| !run.run.analysis().has_definition);
    Ok(Comparison {
        base: base.name(),
        new: new.name(),
        response: Some(response),
        only_base: alone(&of_base, &of_new),
        only_new: alone(&of_new, &of_base),
        without_requests,
        differences: differences(&base, &new, &both, &factors),
        undefined: lacking.map(|run| run.file.to_owned()).collect(),
        unsteady: Vec::new(),
        unit: ReplicationUnit::Runs,
        terms: Criteria {
            margin: terms.margin,
            tests: Vec::new(),
            better: response.into(),
            repeats: Vec::new(),
            within_run: false,
        },
        intervals: cells.len() + usize::from(overall.is_some()),
        is_of_rounds: false,
        factors,
        cells,
        overall,
    })
}

/// The cells of the runs that have the cell.
fn known<'a>(side: &[Option<&'a CellAnalysis>]) -> Vec<&'a CellAnalysis> {
    side.iter().copied().flatten().collect()
}

/// The median of each run; `None` for a run without one.
fn medians(side: &[Option<&CellAnalysis>]) -> Vec<Option<f64>> {
    let median = |cell: &Option<&CellAnalysis>| Some(cell.as_ref()?.response?.median);
    side.iter()
        .map(|cell| median(cell).filter(|median| *median > 0.0))
        .collect()
}

/// The most frequent origin of the bytes, over the trials of all runs.
fn served_of(cells: &[Option<&CellAnalysis>]) -> Option<ServedBy> {
    let mut places: Vec<(ServedBy, usize)> = Vec::new();
    let of_runs = cells
        .iter()
        .flatten()
        .filter_map(|cell| cell.served.as_ref());
    for (place, trials) in of_runs.flat_map(|served| &served.trials) {
        match places.iter_mut().find(|(known, _)| known == place) {
            Some((_, count)) => *count += trials,
            None => places.push((*place, *trials)),
        }
    }
    let most = places.into_iter().max_by_key(|(_, trials)| *trials)?;
    Some(most.0)
}

/// The differences of the last base run and the first new run, which are closest in time.
fn differences(
    base: &Side<'_>,
    new: &Side<'_>,
    both: &[&Vec<String>],
    factors: &[String],
) -> Vec<Difference> {
    let (Some(before), Some(after)) = (base.runs.last(), new.runs.first()) else {
        return Vec::new();
    };
    let mut found = run_differences(before.run.record(), after.run.record());
    let pairs: Vec<(&CellAnalysis, &CellAnalysis)> = both
        .iter()
        .filter_map(|levels| {
            let (a, b) = (base.cell(levels), new.cell(levels));
            Some(((*a.last()?)?, (*b.first()?)?))
        })
        .collect();
    let expected = |name: &str| factors.iter().any(|factor| is_of(factor, name));
    found.extend(setting_differences(&pairs, expected));
    found
}
