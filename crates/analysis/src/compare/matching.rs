//! Matches the cells of two sides, and finds other differences of the sides.

use std::collections::BTreeMap;

use iolab_workload::{Error, Result};

use super::difference::{Difference, DiffersIn, SideValue};
use super::{Comparison, Pair};
use crate::analysed_run::AnalysedRun;
use crate::analysis::{Analysis, CellAnalysis, Response};
use crate::claim::effect::log_ratios;
use crate::doubt::SideDoubts;
use crate::refusal;
use crate::trial_values::distinct;
use iolab_plan::cells::cells;
use iolab_plan::experiment::Experiment;
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
pub(crate) struct Matched<'a> {
    pub(crate) response: Response,
    /// The cells of both sides, in the order of the base.
    pub(crate) cells: Vec<MatchedCell<'a>>,
    /// The comparison before its cells are compared, without names and parameters.
    pub(crate) compared: Comparison,
}

/// A cell of both sides: its levels, and the cell of each run, where it has one.
pub(crate) struct MatchedCell<'a> {
    pub(crate) levels: Vec<String>,
    pub(crate) base: Vec<Option<&'a CellAnalysis>>,
    pub(crate) new: Vec<Option<&'a CellAnalysis>>,
}

/// Runs with the cells of each.
pub struct Side<'a>(Vec<Vec<Keyed<'a>>>);

impl<'a> Side<'a> {
    /// The runs as one side, with their cells by the levels of these factors.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage) where a definition is needed and cannot be read.
    pub fn new(runs: &[RunSide<'a>], factors: &[String]) -> Result<Self> {
        let cells = runs.iter().map(|run| keyed(*run, factors));
        Ok(Self(cells.collect::<Result<_>>()?))
    }

    /// The distinct levels of all cells, in the order of the last run, which has the latest definition.
    pub fn levels(&self) -> Vec<&Vec<String>> {
        distinct(self.0.iter().rev().flatten().map(|cell| &cell.levels))
    }

    /// The cell with these levels in each run.
    pub fn cell(&self, levels: &[String]) -> Vec<Option<&'a CellAnalysis>> {
        let of = |cells: &Vec<Keyed<'a>>| {
            let found = cells.iter().find(|cell| cell.levels == levels);
            found.map(|cell| cell.cell)
        };
        self.0.iter().map(of).collect()
    }

    /// Whether any run makes requests in the cell with these levels that the response is of.
    fn has_requests(&self, levels: &[String]) -> bool {
        let mut cells = self.0.iter().flatten();
        cells.any(|cell| cell.levels == levels && cell.has_requests)
    }
}

/// A cell with the levels to match.
struct Keyed<'a> {
    levels: Vec<String>,
    cell: &'a CellAnalysis,
    /// Whether requests are made in it that the response is of: its group may not run, its operation may not be asked for.
    has_requests: bool,
}

/// Matches the cells of two sides by the levels of all factors of all runs; a factor that is fixed in a run has its fixed value
/// there.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): different responses, no cell in common, or an experiment in a run file that
/// cannot be read.
pub(crate) fn match_sides<'a>(base: &[RunSide<'a>], new: &[RunSide<'a>]) -> Result<Matched<'a>> {
    let all = [base, new].concat();
    let response = common_response(&all)?;
    let factors = common_factors(&all);
    let held = all.iter().find_map(|side| side.held);
    let held = held.map(|(factor, _)| factor);
    // The last base run and the first new run are closest in time.
    let mut differences = match (base.last(), new.first()) {
        (Some(before), Some(after)) => run_differences(before.run.record(), after.run.record()),
        _ => Vec::new(),
    };
    let (base, new) = (Side::new(base, &factors)?, Side::new(new, &factors)?);
    let (of_base, of_new) = (base.levels(), new.levels());
    let alone = |all: &[&Vec<String>], other: &[&Vec<String>]| -> Vec<String> {
        let alone = all.iter().filter(|levels| !other.contains(levels));
        alone.map(|levels| cell_label(&factors, levels)).collect()
    };
    let both = of_base.iter().filter(|levels| of_new.contains(levels));
    let both = both.map(|levels| MatchedCell {
        levels: (*levels).clone(),
        base: base.cell(levels),
        new: new.cell(levels),
    });
    let mut cells: Vec<MatchedCell<'_>> = both.collect();
    let matched = cells.len();
    cells.retain(|cell| {
        let specs = cell.base.iter().chain(&cell.new).flatten();
        let mut specs = specs.map(|own| &own.cell.spec);
        let first = specs.next();
        specs.all(|spec| first.is_some_and(|first| first.is_comparable(spec)))
    });
    if cells.is_empty() && matched > 0 {
        return Err(refusal::unknown_settings());
    }
    if cells.is_empty() {
        let [a, b] = [&base, &new].map(|side| side.0.last().map_or(&[][..], Vec::as_slice));
        return Err(no_common_cell(&factors, a, b, held));
    }
    let has_requests =
        |cell: &MatchedCell<'_>| base.has_requests(&cell.levels) || new.has_requests(&cell.levels);
    let mut silent = Vec::new();
    if cells.iter().any(has_requests) {
        (cells, silent) = cells.into_iter().partition(has_requests);
    }
    let label = |cell: &MatchedCell<'_>| cell_label(&factors, &cell.levels);
    let without_requests = silent.iter().map(label).collect();
    let expected = |name: &str| {
        let mut varied = factors.iter().map(String::as_str).chain(held);
        varied.any(|factor| is_of(factor, name))
    };
    let pairs = cells.iter();
    let pairs = pairs.filter_map(|cell| Some(((*cell.base.last()?)?, (*cell.new.first()?)?)));
    differences.extend(setting_differences(&pairs.collect::<Vec<_>>(), expected));
    let compared = Comparison {
        response: Some(response),
        only_base: alone(&of_base, &of_new),
        only_new: alone(&of_new, &of_base),
        without_requests,
        differences,
        factors,
        ..Comparison::default()
    };
    Ok(Matched {
        response,
        cells,
        compared,
    })
}

impl Matched<'_> {
    /// The cells of two single runs, or of two levels of one run, whose trials share blocks.
    pub(super) fn pairs(&self, is_one_run: bool) -> Vec<Pair> {
        let single = self.cells.iter().filter_map(|cell| {
            let (base, new) = (cell.base[0]?, cell.new[0]?);
            Some(Pair {
                levels: cell.levels.clone(),
                base: base.values.clone(),
                new: new.values.clone(),
                served: [base, new].map(served_by),
                against: match is_one_run {
                    true => SideDoubts::of_cells(base, new, self.response),
                    false => SideDoubts::of_two_runs(base, new, self.response),
                },
                within_blocks: is_one_run.then(|| log_ratios(base.trials(), new.trials())),
            })
        });
        single.collect()
    }
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
fn common_response(sources: &[RunSide<'_>]) -> Result<Response> {
    let analyses = || sources.iter().map(|source| source.run.analysis());
    let response = analyses().next().map(|one| one.response);
    let mut all = analyses().map(Analysis::response_name);
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
    let free = sources.iter().flat_map(|source| {
        let held = source.held.map(|(factor, _)| factor);
        let own = source.run.record().experiment.factors.iter();
        own.filter(move |factor| Some(factor.as_str()) != held)
            .cloned()
    });
    let mut factors: Vec<String> = distinct(free);
    let mut runs = sources.iter().map(|source| source.run);
    if runs.any(|run| !run.by_operation().is_empty()) {
        factors.push(OPERATION.to_owned());
    }
    factors
}

/// The cells of a source with their levels of the factors, without gaps.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage) where the definition is needed and cannot be read.
fn keyed<'a>(source: RunSide<'a>, factors: &[String]) -> Result<Vec<Keyed<'a>>> {
    let own = &source.run.record().experiment.factors;
    let place = |name: &str| own.iter().position(|factor| factor == name);
    // The definition is needed only for a factor of another side.
    let is_foreign = |factor: &String| factor != OPERATION && place(factor).is_none();
    let planned = match factors.iter().any(is_foreign) {
        true => {
            let toml = &source.run.record().experiment.toml;
            Some(cells(&Experiment::from_toml(toml, "the run file")?)?)
        }
        false => None,
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
            let level = place(factor).and_then(|at| cell.cell.levels.get(at));
            level.is_some_and(|level| level == held)
        })
    };
    let of = |analysis: &'a Analysis, operation: Option<Operation>| -> Vec<Keyed<'a>> {
        let keyed = analysis
            .cells
            .iter()
            .enumerate()
            .filter_map(|(index, cell)| {
                let is_asked = operation.is_none_or(|operation| analysis.asks(cell, operation));
                // A gap has no values to compare.
                if !is_held(cell) || !is_asked || cell.n == 0 && cell.gap.is_some() {
                    return None;
                }
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
            });
        keyed.collect()
    };
    let each = match source.run.by_operation() {
        [] => return Ok(of(source.run.analysis(), None)),
        each => each.iter(),
    };
    let each = each.flat_map(|(operation, analysis)| of(analysis, Some(*operation)));
    Ok(each.collect())
}

/// Two sides have no cell in common; `held` is the factor whose levels they are, where both are of one run.
fn no_common_cell(
    factors: &[String],
    base: &[Keyed<'_>],
    new: &[Keyed<'_>],
    held: Option<&str>,
) -> Error {
    let first = |cells: &[Keyed<'_>]| Some(cell_label(factors, &cells.first()?.levels));
    let is_shared = |at: usize| {
        let level = |cell: &Keyed<'_>| cell.levels.get(at).cloned();
        base.iter()
            .any(|cell| new.iter().any(|other| level(cell) == level(other)))
    };
    let all = factors.iter().map(String::as_str);
    let apart = all.clone().enumerate().filter(|(at, _)| !is_shared(*at));
    let mut apart: Vec<&str> = apart.map(|(_, factor)| factor).collect();
    if base.is_empty() || new.is_empty() {
        // Nothing was measured on one side.
        apart.clear();
    } else if apart.is_empty() {
        // Each level alone may be on both sides, while no combination is.
        apart.extend(all);
    }
    refusal::no_cell_in_common(first(base), first(new), held.map(|held| (held, apart)))
}

/// The mean over all cells in each block that all of them have.
pub(super) fn merge_blocks(cells: &[&BTreeMap<u32, f64>]) -> BTreeMap<u32, f64> {
    let Some((first, rest)) = cells.split_first() else {
        return BTreeMap::new();
    };
    let mean = |(block, value): (&u32, &f64)| {
        let others = rest.iter().map(|cell| cell.get(block).copied());
        let sum = others.sum::<Option<f64>>()? + value;
        Some((*block, sum / cells.len() as f64))
    };
    first.iter().filter_map(mean).collect()
}

/// The differences of two runs: program, target, and environment.
fn run_differences(base: &RunRecord, new: &RunRecord) -> Vec<Difference> {
    let named = |record: &RunRecord| {
        [
            (DiffersIn::Experiment, record.experiment.name.clone()),
            (DiffersIn::Target, record.target_text()),
            (DiffersIn::TargetKind, record.run.target_kind.to_string()),
            (DiffersIn::ToolVersion, record.run.tool_version.clone()),
        ]
    };
    let value = |text: String| match text == UNKNOWN_TARGET {
        true => SideValue::Unknown,
        false => SideValue::Known(text),
    };
    let runs = named(base).into_iter().zip(named(new));
    let runs = runs.map(|((what, base), (_, new))| Difference {
        what,
        base: value(base),
        new: value(new),
    });
    // What is unknown of both may be two things.
    let runs = runs.filter(|one| one.base != one.new || one.base == SideValue::Unknown);
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
        let own = |cell: &CellAnalysis| -> (Vec<String>, Vec<Cell>) {
            let groups = cell.cell.groups();
            groups.map(|(name, cell)| (name.to_owned(), cell)).unzip()
        };
        let ((groups, of_base), (others, of_new)) = (own(a), own(b));
        let mut sides = Vec::new();
        if groups.is_empty() && others.is_empty() {
            sides.push((None, &a.cell, &b.cell));
        } else if groups != others {
            let [base, new] = [groups, others].map(|names| SideValue::Known(names.join(", ")));
            note(&mut found, DiffersIn::Groups, base, new);
        } else {
            let pairs = groups.into_iter().zip(of_base.iter().zip(&of_new));
            sides.extend(pairs.map(|(name, (a, b))| (Some(name), a, b)));
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
fn is_of(factor: &str, name: &str) -> bool {
    let (group, setting) = split_group(factor);
    let column = match setting {
        "linkage" => "command",
        name => Setting::find(name).map_or(name, |setting| setting.column),
    };
    let (of, rest) = split_group(name);
    rest == column && (group.is_none() || of == group)
}
