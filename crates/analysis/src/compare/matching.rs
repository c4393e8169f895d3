//! Matches the cells of two sides, and finds other differences of the sides.

use std::collections::BTreeMap;

use iolab_workload::{Error, Result};

use super::Pair;
use super::difference::{Difference, DiffersIn, SideValue};
use crate::analysed_run::AnalysedRun;
use crate::analysis::{Analysis, CellAnalysis, Response};
use crate::claim::effect::log_ratios;
use crate::doubt::SideDoubts;
use crate::refusal;
use crate::run_definition::definition;
use iolab_plan::cells::cells;
use iolab_record::environment::{self, KEYS};
use iolab_record::{Cell, RunRecord, ServedBy, TargetKind, UNKNOWN_TARGET};
use iolab_workload::group::split_group;
use iolab_workload::operation::Operation;
use iolab_workload::settings::{CellSpec, Setting, Value, cell_label};
use iolab_workload::trial::TrialSpec;

/// One side: a run, or the cells of a run with one level of a factor.
#[derive(Debug, Clone, Copy)]
pub struct RunSide<'a> {
    /// The run.
    pub run: &'a AnalysedRun,
    /// A factor with the level that all cells of this side have.
    pub held: Option<(&'a str, &'a str)>,
}

impl<'a> RunSide<'a> {
    /// A whole run.
    pub fn whole(run: &'a AnalysedRun) -> Self {
        Self { run, held: None }
    }
}

/// Two sides, matched.
pub(super) struct Matched {
    pub(super) response: Response,
    pub(super) factors: Vec<String>,
    pub(super) pairs: Vec<Pair>,
    /// The mean over the cells of the logarithm of new over base, in each block with all cells on both sides; empty where the
    /// sides share no block.
    pub(super) together: Vec<f64>,
    pub(super) only_base: Vec<String>,
    pub(super) only_new: Vec<String>,
    pub(super) without_requests: Vec<String>,
    pub(super) differences: Vec<Difference>,
}

/// A cell with the levels to match.
pub(crate) struct Keyed<'a> {
    pub(crate) levels: Vec<String>,
    pub(crate) cell: &'a CellAnalysis,
    /// Whether requests are made in it that the response is of: its group may not run, its operation may not be asked for.
    pub(crate) has_requests: bool,
}

/// Takes out the cells that make no requests of the response on any side, unless there are no others; returns their labels.
pub(crate) fn take_without_requests<C>(
    cells: &mut Vec<C>,
    has_requests: impl Fn(&C) -> bool,
    label: impl Fn(&C) -> String,
) -> Vec<String> {
    if !cells.iter().any(&has_requests) {
        return Vec::new();
    }
    let silent = cells.iter().filter(|cell| !has_requests(cell));
    let silent = silent.map(label).collect();
    cells.retain(has_requests);
    silent
}

/// Matches the cells of two sides by the levels of all factors of both; a factor that is fixed on one side has its fixed value
/// there.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): different responses, no cell in common, or an experiment in a run file that
/// cannot be read.
pub(super) fn match_cells(base: RunSide<'_>, new: RunSide<'_>) -> Result<Matched> {
    let response = common_response(&[base, new])?;
    let factors = common_factors(&[base, new]);
    let base_cells = keyed(base, &factors)?;
    let new_cells = keyed(new, &factors)?;
    let partner = |levels: &[String]| new_cells.iter().find(|c| c.levels == levels);
    let alone = |all: &[Keyed<'_>], other: &[Keyed<'_>]| -> Vec<String> {
        all.iter()
            .filter(|cell| !other.iter().any(|o| o.levels == cell.levels))
            .map(|cell| cell_label(&factors, &cell.levels))
            .collect()
    };
    let mut both: Vec<(&Keyed<'_>, &Keyed<'_>)> = base_cells
        .iter()
        .filter_map(|cell| Some((cell, partner(&cell.levels)?)))
        .collect();
    let matched = both.len();
    both.retain(|(a, b)| a.cell.cell.spec.is_comparable(&b.cell.cell.spec));
    if both.is_empty() && matched > 0 {
        return Err(refusal::unknown_settings());
    }
    if both.is_empty() {
        let held = base.held.or(new.held).map(|(factor, _)| factor);
        return Err(no_common_cell(&factors, &base_cells, &new_cells, held));
    }
    let without_requests = take_without_requests(
        &mut both,
        |(a, b)| a.has_requests || b.has_requests,
        |(a, _)| cell_label(&factors, &a.levels),
    );
    let is_one_run = std::ptr::eq(base.run, new.run);
    let within: Vec<Option<BTreeMap<u32, f64>>> = both
        .iter()
        .map(|(a, b)| is_one_run.then(|| log_ratios(a.cell.trials(), b.cell.trials())))
        .collect();
    let together = merge_blocks(&within.iter().flatten().collect::<Vec<_>>());
    let pairs = both
        .iter()
        .zip(within)
        .map(|((a, b), within)| Pair {
            levels: a.levels.clone(),
            base: a.cell.values.clone(),
            new: b.cell.values.clone(),
            served: [a.cell, b.cell].map(served_by),
            against: match within {
                Some(_) => SideDoubts::of_cells(a.cell, b.cell, response),
                None => SideDoubts::of_two_runs(a.cell, b.cell, response),
            },
            within_blocks: within.map(|blocks| blocks.into_values().collect()),
        })
        .collect();
    let mut differences = run_differences(base.run.record(), new.run.record());
    let expected = |name: &str| {
        let held = base.held.or(new.held).map(|(factor, _)| factor);
        let mut varied = factors.iter().map(String::as_str).chain(held);
        varied.any(|factor| is_of(factor, name))
    };
    let cells: Vec<_> = both.iter().map(|(a, b)| (a.cell, b.cell)).collect();
    differences.extend(setting_differences(&cells, expected));
    Ok(Matched {
        response,
        pairs,
        together,
        only_base: alone(&base_cells, &new_cells),
        only_new: alone(&new_cells, &base_cells),
        without_requests,
        factors,
        differences,
    })
}

/// The source of the bytes of a cell; `None` if that was not judged.
fn served_by(cell: &CellAnalysis) -> Option<ServedBy> {
    let served = cell.served.as_ref()?;
    Some(served.unanimous().unwrap_or(ServedBy::Mixed))
}

/// The common response of all sources.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage) where they differ.
pub(crate) fn common_response(sources: &[RunSide<'_>]) -> Result<Response> {
    let response = sources.first().map(|source| source.run.analysis().response);
    let mut all = sources
        .iter()
        .map(|source| source.run.analysis().response_name());
    let first = all.next().unwrap_or_default();
    match all.find(|asked| *asked != first) {
        None => Ok(response.unwrap_or_default()),
        Some(new) => Err(refusal::other_response(&first, &new)),
    }
}

/// Distinguishes the operations of a mix whose latencies are compared: a write can become slower while reads do
/// not.
const OPERATION: &str = "operation";

/// The factors of the first source, then the further ones of later sources, without fixed factors. The operation comes last,
/// if latencies of several are compared.
pub fn common_factors(sources: &[RunSide<'_>]) -> Vec<String> {
    let mut factors: Vec<String> = Vec::new();
    for source in sources {
        let held = source.held.map(|(factor, _)| factor);
        for factor in &source.run.record().experiment.factors {
            if Some(factor.as_str()) != held && !factors.contains(factor) {
                factors.push(factor.clone());
            }
        }
    }
    if sources
        .iter()
        .any(|source| !source.run.by_operation().is_empty())
    {
        factors.push(OPERATION.to_owned());
    }
    factors
}

/// The cells of a source with their levels of the factors, without gaps.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage) where the definition is needed and cannot be read.
pub(crate) fn keyed<'a>(source: RunSide<'a>, factors: &[String]) -> Result<Vec<Keyed<'a>>> {
    let own = &source.run.record().experiment.factors;
    let place = |name: &str| own.iter().position(|factor| factor == name);
    // The definition is needed only for a factor of another side.
    let planned = if factors
        .iter()
        .any(|factor| factor != OPERATION && place(factor).is_none())
    {
        let experiment = definition(source.run.record())?;
        Some(cells(&experiment)?)
    } else {
        None
    };
    let level = |index: usize, cell: &CellAnalysis, factor: &str| -> Option<String> {
        match place(factor) {
            Some(at) => cell.cell.levels.get(at).cloned(),
            None => {
                let spec = match cell.cell.spec.unknown.is_empty() {
                    true => &planned.as_ref()?.get(index)?.spec,
                    // A definition says nothing of what is unknown.
                    false => &cell.cell.spec,
                };
                let (group, name) = split_group(factor);
                let setting = Setting::find(name)?;
                let own = |name| spec.groups.iter().find(|group| group.name == name);
                match group {
                    None => Some(setting.get(spec)),
                    Some(name) => own(name).map(|group| setting.get(&group.spec)),
                }
            }
        }
    };
    let is_held = |cell: &CellAnalysis| {
        source.held.is_none_or(|(factor, held)| {
            place(factor)
                .and_then(|at| cell.cell.levels.get(at))
                .is_some_and(|l| l == held)
        })
    };
    let of = |analysis: &'a Analysis, operation: Option<Operation>| -> Vec<Keyed<'a>> {
        analysis
            .cells
            .iter()
            .enumerate()
            // A gap has no values to compare.
            .filter(|(_, cell)| is_held(cell) && (cell.n > 0 || cell.gap.is_none()))
            .filter(|(_, cell)| operation.is_none_or(|operation| analysis.asks(cell, operation)))
            .filter_map(|(index, cell)| {
                // A run without a mix has the operation of its requests.
                let asked = || Operation::ALL.iter().find(|one| analysis.asks(cell, **one));
                let levels = factors.iter().map(|factor| match factor.as_str() {
                    OPERATION => Some(operation.or_else(|| asked().copied())?.to_string()),
                    factor => level(index, cell, factor),
                });
                Some(Keyed {
                    levels: levels.collect::<Option<_>>()?,
                    cell,
                    has_requests: analysis.has_response(cell),
                })
            })
            .collect()
    };
    let by_operation = source.run.by_operation();
    if by_operation.is_empty() {
        return Ok(of(source.run.analysis(), None));
    }
    let each = by_operation.iter();
    Ok(each
        .flat_map(|(operation, analysis)| of(analysis, Some(*operation)))
        .collect())
}

/// Two sides have no cell in common; `held` is the factor whose levels they are, where both are of one run.
pub(crate) fn no_common_cell(
    factors: &[String],
    base: &[Keyed<'_>],
    new: &[Keyed<'_>],
    held: Option<&str>,
) -> Error {
    let first = |cells: &[Keyed<'_>]| Some(cell_label(factors, &cells.first()?.levels));
    let level = |cell: &Keyed<'_>, at: usize| cell.levels.get(at).cloned();
    let is_shared = |at: usize| {
        base.iter()
            .any(|cell| new.iter().any(|other| level(cell, at) == level(other, at)))
    };
    let apart: Vec<&str> = factors
        .iter()
        .enumerate()
        .filter(|(at, _)| !is_shared(*at))
        .map(|(_, factor)| factor.as_str())
        .collect();
    let apart = match (base.is_empty() || new.is_empty(), apart.is_empty()) {
        // Nothing was measured on one side.
        (true, _) => Vec::new(),
        // Each level alone may be on both sides, while no combination is.
        (false, true) => factors.iter().map(String::as_str).collect(),
        (false, false) => apart,
    };
    refusal::no_cell_in_common(first(base), first(new), held.map(|held| (held, apart)))
}

/// The mean over all cells in each block that all of them have.
fn merge_blocks(cells: &[&BTreeMap<u32, f64>]) -> Vec<f64> {
    let Some((first, rest)) = cells.split_first() else {
        return Vec::new();
    };
    let mean = |(block, value): (&u32, &f64)| {
        let others = rest.iter().map(|cell| cell.get(block).copied());
        let sum = others.sum::<Option<f64>>()? + value;
        Some(sum / cells.len() as f64)
    };
    first.iter().filter_map(mean).collect()
}

/// The differences of two runs: program, target, and environment.
pub(crate) fn run_differences(base: &RunRecord, new: &RunRecord) -> Vec<Difference> {
    let named = |record: &RunRecord| {
        [
            (DiffersIn::Experiment, record.experiment.name.clone()),
            (DiffersIn::Target, record.target_text()),
            (DiffersIn::TargetKind, record.run.target_kind.to_string()),
            (DiffersIn::ToolVersion, record.run.tool_version.clone()),
        ]
    };
    let runs = named(base).into_iter().zip(named(new));
    // What is unknown of both may be two things.
    let runs = runs.filter(|((_, a), (_, b))| a != b || a == UNKNOWN_TARGET);
    let value = |text: String| match text == UNKNOWN_TARGET {
        true => SideValue::Unknown,
        false => SideValue::Known(text),
    };
    let runs = runs.map(|((what, base), (_, new))| Difference {
        what,
        base: value(base),
        new: value(new),
    });
    let facts = environment::differences(&base.environment, &new.environment);
    let facts = facts.into_iter().map(|(key, of_base, of_new)| Difference {
        base: side(base, &key, of_base),
        new: side(new, &key, of_new),
        what: DiffersIn::Fact(key),
    });
    runs.chain(facts.filter(|fact| fact.base != fact.new))
        .collect()
}

/// A fact of a run. Where iolab measured without MPI, one process did.
fn side(record: &RunRecord, key: &str, value: Option<String>) -> SideValue {
    let is_count = [KEYS.ranks.name(), KEYS.rank_hosts.name()].contains(&key);
    let is_own = record.run.target_kind != TargetKind::Imported;
    let value = value.or_else(|| (is_count && is_own).then(|| "1".to_owned()));
    value.map_or(SideValue::Unknown, SideValue::Known)
}

/// Settings that differ between the cells of a pair, except expected ones.
pub(crate) fn setting_differences(
    both: &[(&CellAnalysis, &CellAnalysis)],
    expected: impl Fn(&str) -> bool,
) -> Vec<Difference> {
    let mut found: Vec<Difference> = Vec::new();
    let default = CellSpec::of(TrialSpec::default());
    for (a, b) in both {
        let own = |cell: &CellAnalysis| -> Vec<(String, Cell)> {
            let groups = cell.cell.groups();
            groups.map(|(name, cell)| (name.to_owned(), cell)).collect()
        };
        let (groups, others) = (own(a), own(b));
        let mut sides = Vec::new();
        if groups.is_empty() && others.is_empty() {
            sides.push((None, &a.cell, &b.cell));
        } else if !groups
            .iter()
            .map(|(name, _)| name)
            .eq(others.iter().map(|(name, _)| name))
        {
            let names = |groups: &[(String, Cell)]| {
                let names = groups.iter().map(|(name, _)| name.as_str());
                SideValue::Known(names.collect::<Vec<_>>().join(", "))
            };
            note(
                &mut found,
                DiffersIn::Groups,
                names(&groups),
                names(&others),
            );
        } else {
            let pairs = groups.iter().zip(&others);
            sides.extend(pairs.map(|((name, a), (_, b))| (Some(name.clone()), a, b)));
        }
        for (group, a, b) in sides {
            for ((setting, base), (_, new)) in a.in_force().zip(b.in_force()) {
                let group = group.clone();
                let what = DiffersIn::Setting { group, setting };
                // Unknown and its default may be the same, unknown and another value hardly.
                let [likely_base, likely_new] = [&base, &new].map(|value| match value {
                    Value::Unknown => setting.value(&default),
                    known => known.clone(),
                });
                if likely_base != likely_new && !expected(&what.key()) {
                    let [base, new] = [base, new].map(|value| match value {
                        Value::Unknown => SideValue::Unknown,
                        known => SideValue::Set(setting, known),
                    });
                    note(&mut found, what, base, new);
                }
            }
        }
    }
    found
}

/// Adds a difference of a pair of cells.
fn note(found: &mut Vec<Difference>, what: DiffersIn, base: SideValue, new: SideValue) {
    let difference = Difference { what, base, new };
    match found.iter_mut().find(|d| d.what == difference.what) {
        None => found.push(difference),
        Some(seen) if *seen == difference => {}
        Some(seen) => (seen.base, seen.new) = (SideValue::Various, SideValue::Various),
    }
}

/// Whether a difference with this name belongs to a factor: of all groups, or of the one that it names.
pub(crate) fn is_of(factor: &str, name: &str) -> bool {
    let (group, setting) = split_group(factor);
    let column = column_of(setting);
    match (group, split_group(name)) {
        (Some(group), (of, rest)) => of == Some(group) && rest == column,
        (None, (_, rest)) => rest == column,
    }
}

/// The column with a setting of a cell.
fn column_of(setting: &str) -> &str {
    match setting {
        "linkage" => "command",
        name => Setting::find(name).map_or(name, |setting| setting.column),
    }
}
