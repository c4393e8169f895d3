//! Comparisons of two levels of a factor, over all settings in which both were measured.

use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeSet;

use iolab_workload::response::Response;
use iolab_workload::settings::{SETTINGS, Setting, Topic};
use iolab_workload::trial::{Pattern, SyncPolicy};

use super::effect::{
    CellId, Difference, Estimate, MARGIN, across_runs, confidence, judge, within_run,
};
use super::kind::{EFFECT, Role};
use super::series::id;
use super::{Claim, Payload, Point, Quantity, Standing};
use crate::analysis::{Analysis, CellAnalysis};
use crate::curve::size;
use crate::doubt::{Doubt, SideDoubts};
use crate::trial_values::distinct;

/// Factors that other kinds of claims cover: curves over sizes and rates, other tools, programs.
const OTHERWISE: [&str; 5] = ["bs", "rate", "tool", "program", "size"];
/// The settings in which sequential and random accesses differ.
const PATTERN: [&str; 2] = ["pattern", "workload"];
/// The factor whose levels are the targets of a run.
pub(super) const TARGET: &str = "target";
/// Sync policies, from the one that promises least.
const POLICIES: [SyncPolicy; 7] = [
    SyncPolicy::None,
    SyncPolicy::End,
    SyncPolicy::Fdatasync,
    SyncPolicy::Each,
    SyncPolicy::RwfDsync,
    SyncPolicy::Odsync,
    SyncPolicy::Osync,
];

/// Property that is compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Contrast {
    /// Random accesses with sequential ones.
    Pattern,
    /// Writes with reads.
    Direction,
    /// The other levels of a factor with a base: of counts and sizes with the least.
    Levels {
        /// The factor.
        factor: String,
    },
    /// All groups at once, compared with the sum of the rates that each reaches alone.
    Company,
}

/// Comparison that the points of a claim make.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// Property that is compared.
    pub contrast: Contrast,
    /// Whether this is what the experiment asks first: the first factor compared, or accesses across runs.
    pub leads: bool,
    /// Factors whose levels distinguish the points.
    pub held: Vec<String>,
}

/// A measured cell.
type Cell<'a> = &'a CellAnalysis;

/// The comparisons of one run, factor by factor, with a point per setting and level in the order of the definition. `run` is its
/// index.
pub fn comparisons(analysis: &Analysis, run: usize) -> Vec<Claim> {
    // Programs are compared size by size; see `equivalence.rs`.
    let mut cells = analysis.cells.iter();
    if cells.any(|cell| cell.cell.spec.runs_program()) {
        return Vec::new();
    }
    let factors = analysis.factors.iter().enumerate();
    let of_factor = |(place, factor): (usize, &String)| match factor.as_str() {
        name if OTHERWISE.contains(&name) || is_own_rate(analysis, name) => Vec::new(),
        "workload" => of_workload(analysis, run, place),
        _ => vec![of_levels(analysis, run, place)],
    };
    factors.flat_map(of_factor).flatten().collect()
}

/// Whether a factor is the rate of a group whose requests are among those that the response counts: it sets what the response measures.
fn is_own_rate(analysis: &Analysis, factor: &str) -> bool {
    let group = factor.strip_suffix(".rate");
    let asked = analysis.response_group.as_deref();
    is_rate(analysis.response) && group.is_some_and(|group| asked.is_none_or(|own| own == group))
}

/// Whether a response is a number per second.
pub fn is_rate(response: Response) -> bool {
    matches!(response, Response::Throughput | Response::Iops)
}

/// Whether the storage decides how the responses of two cells differ. It does not where both keep the rates that they were asked for, nor
/// where one adds up other groups than the other: what groups reach together is compared with what they reach alone, by claims of their own.
fn is_comparable(analysis: &Analysis, base: Cell<'_>, other: Cell<'_>) -> bool {
    if !base.cell.spec.is_comparable(&other.cell.spec) {
        return false;
    }
    let active = |cell: Cell<'_>| -> Vec<String> {
        let groups = cell.cell.spec.active();
        groups.map(|group| group.name.clone()).collect()
    };
    let (groups, of_other) = (active(base), active(other));
    let is_sum = analysis.response_group.is_none() && groups != of_other;
    let are_single = groups.len() == 1 && of_other.len() == 1;
    match is_rate(analysis.response) {
        true if is_sum => are_single && !base.is_paced() && !other.is_paced(),
        true => !(base.is_paced() && other.is_paced()),
        false => true,
    }
}

/// The pattern of all groups of a cell; `None` where they differ.
fn pattern_of(cell: Cell<'_>) -> Option<Pattern> {
    cell.cell.spec.shared(|trial| trial.pattern)
}

/// The share of reads of all groups of a cell, in percent; `None` where they differ.
fn reads_of(cell: Cell<'_>) -> Option<u8> {
    cell.cell.spec.shared(|trial| trial.read_percent)
}

/// Compares random with sequential for each direction, and writes with reads for each pattern.
fn of_workload(analysis: &Analysis, run: usize, factor: usize) -> Vec<Option<Claim>> {
    let measured = || analysis.cells.iter().filter(|cell| !cell.values.is_empty());
    // Of groups with different patterns neither is known.
    let is_random = |cell: Cell<'_>| Some(pattern_of(cell)? == Pattern::Rand);
    let reads: BTreeSet<u8> = measured().filter_map(reads_of).collect();
    let by_pattern = reads.into_iter().rev().flat_map(|read_percent| {
        let of = |random: bool| {
            let own = measured().filter(move |c| reads_of(c) == Some(read_percent));
            own.filter(move |c| is_random(c) == Some(random))
        };
        pairs(analysis, of(false), of(true), |name| name == "workload")
    });
    let by_direction = [false, true].into_iter().flat_map(|random| {
        let of = |reads: u8| {
            let own = measured().filter(move |c| reads_of(c) == Some(reads));
            own.filter(move |c| is_random(c) == Some(random))
        };
        // The sync policy does not affect reads, which are measured with one policy only.
        let free = |name: &str| name == "workload" || name == "sync";
        pairs(analysis, of(100), of(0), free)
    });
    let compare = |contrast, pairs| comparison(analysis, (run, factor), contrast, pairs);
    vec![
        compare(Contrast::Pattern, by_pattern.collect()),
        compare(Contrast::Direction, by_direction.collect()),
    ]
}

/// Place of a level in the order of comparison: for most factors the order of definition.
fn rank(cell: &CellAnalysis, factor: &str, level: &str) -> u64 {
    match factor {
        "pattern" => u64::from(level != "seq"),
        "sync" => {
            let policies = POLICIES.iter().map(SyncPolicy::to_string);
            policies.take_while(|policy| policy != level).count() as u64
        }
        _ => size(cell, factor),
    }
}

/// Compares the other levels of a factor with a base level: of counts and sizes with the least.
fn of_levels(analysis: &Analysis, run: usize, factor: usize) -> Option<Claim> {
    let name = &analysis.factors[factor];
    let measured = || analysis.cells.iter().filter(|cell| !cell.values.is_empty());
    let mut levels: Vec<(u64, &String)> = Vec::new();
    for cell in measured() {
        let level = cell.cell.levels.get(factor)?;
        if !levels.iter().any(|(_, known)| *known == level) {
            levels.push((rank(cell, name, level), level));
        }
    }
    levels.sort_by_key(|(rank, _)| *rank);
    let levels: Vec<&String> = levels.into_iter().map(|(_, level)| level).collect();
    let (base, others) = levels.split_first()?;
    let of = |level: &String| {
        let level = level.clone();
        measured().filter(move |cell| cell.cell.levels.get(factor) == Some(&level))
    };
    let pairs = others
        .iter()
        .flat_map(|other| pairs(analysis, of(base), of(other), |own| own == name));
    let contrast = Contrast::Levels {
        factor: name.clone(),
    };
    comparison(analysis, (run, factor), contrast, pairs.collect())
}

/// Pairs each of `others` with the cell of `base` that has the same levels of all factors except those in `free`.
fn pairs<'a>(
    analysis: &Analysis,
    base: impl Iterator<Item = Cell<'a>>,
    others: impl Iterator<Item = Cell<'a>>,
    free: impl Fn(&str) -> bool,
) -> Pairs<'a> {
    let key = |cell: Cell<'a>| -> Vec<&'a str> {
        let levels = analysis.factors.iter().zip(&cell.cell.levels);
        let bound = levels.filter(|(factor, _)| !free(factor));
        bound.map(|(_, level)| level.as_str()).collect()
    };
    let base: Vec<(Vec<&str>, Cell<'a>)> = base.map(|cell| (key(cell), cell)).collect();
    let partner = |other: Cell<'a>| {
        let own = key(other);
        Some((base.iter().find(|(key, _)| *key == own)?.1, other))
    };
    others.filter_map(partner).collect()
}

/// Pairs of cells: the base and the other.
type Pairs<'a> = Vec<(Cell<'a>, Cell<'a>)>;

/// The comparison of these pairs, with simultaneous intervals; `None` where none is comparable.
fn comparison(
    analysis: &Analysis,
    (run, factor): (usize, usize),
    contrast: Contrast,
    pairs: Pairs<'_>,
) -> Option<Claim> {
    let others = analysis.factors.iter().enumerate();
    let others = others.filter(|(i, _)| *i != factor);
    let varies = |(i, _): &(usize, &String)| {
        let mut levels = pairs.iter().map(|(_, other)| other.cell.levels.get(*i));
        let first = levels.next();
        levels.any(|level| Some(level) != first)
    };
    let held = others.filter(varies).map(|(_, name)| name.clone());
    let is_comparable = |(base, other): &(Cell<'_>, Cell<'_>)| is_comparable(analysis, base, other);
    let comparable = pairs.iter().copied().filter(is_comparable);
    let comparable: Vec<(Cell<'_>, Cell<'_>)> = comparable.collect();
    let confidence = confidence(comparable.len());
    let others = comparable.iter().map(|(_, other)| *other);
    let access = contrast.access(others);
    let effects = comparable.iter().filter_map(|(base, other)| {
        let estimate = within_run(base, other, confidence)?;
        let ids = [id(run, base), id(run, other)];
        effect(analysis.response, (base, other), ids, estimate)
    });
    let effects = effects.collect();
    let comparison = Comparison {
        contrast,
        leads: leading_factor(analysis) == Some(factor),
        held: access.into_iter().map(str::to_owned).chain(held).collect(),
    };
    comparison.claim(effects)
}

impl Comparison {
    /// The claim with these points; `None` where there are none.
    pub(super) fn claim(self, points: Vec<Point>) -> Option<Claim> {
        let cells = points.iter().flat_map(|one| [one.base, one.cell]);
        let claim = Claim::new(&EFFECT[0], cells.flatten().collect());
        let claim = claim.with_payload(Payload::Comparison(self));
        (!points.is_empty()).then(|| claim.with_points(points))
    }

    /// Whether it is what its cells were measured for: several targets, or groups at once and alone. An open one is an answer too.
    fn is_asked(&self) -> bool {
        [TARGET, "company"].contains(&self.contrast.topic())
    }
}

impl Claim {
    /// The comparison with its kind, its role and the order of its points by what these show.
    pub(super) fn settled(mut self) -> Self {
        self.settle();
        self
    }

    /// Puts the greatest difference first, marks those in the other direction, and sets kind and role.
    pub(super) fn settle_effects(&mut self) {
        let is_higher = |one: &Point| one.difference() == Difference::Higher;
        let weight = |one: &Point| match one.is_effect() {
            true => one.ratio.map_or(0.0, |ratio| ratio.size()),
            false => -1.0,
        };
        self.points.sort_by(|a, b| {
            let by_direction = is_higher(b).cmp(&is_higher(a));
            weight(b).total_cmp(&weight(a)).then(by_direction)
        });
        let first = self.points[0].difference();
        let mut is_first = true;
        for point in self.points.iter_mut().filter(|one| one.is_effect()) {
            point.standing = match std::mem::take(&mut is_first) {
                true => Standing::Main,
                false if point.difference() != first => Standing::Opposite,
                false => Standing::Differs,
            };
        }
        let shows = !is_first;
        let equivalent = self.of(Standing::Equivalent).count();
        let comparison = self.comparison();
        let leads = comparison.is_some_and(|comparison| comparison.leads);
        self.role = if comparison.is_some_and(Comparison::is_asked) {
            Role::Answer
        } else if shows {
            Role::Effect
        } else if equivalent > 0 {
            // That the factor asked about never makes a difference is an answer.
            match leads && equivalent == self.points.len() {
                true => Role::Answer,
                false => Role::Equivalence,
            }
        } else {
            Role::Nothing
        };
        self.kind = &EFFECT[usize::from(!shows)];
    }
}

impl Contrast {
    /// The property of accesses that stays fixed when their pattern, or their direction, is compared; `None` where it is the same in
    /// all cells.
    fn access<'a>(&self, cells: impl Iterator<Item = Cell<'a>>) -> Option<&'static str> {
        match self {
            Self::Pattern => (distinct(cells.map(reads_of)).len() > 1).then_some("read_percent"),
            Self::Direction => (distinct(cells.map(pattern_of)).len() > 1).then_some("pattern"),
            Self::Levels { .. } | Self::Company => None,
        }
    }
}

/// The factor that an experiment asks about first: the target, where the user gave several, else the first that is compared.
fn leading_factor(analysis: &Analysis) -> Option<usize> {
    let place = |is_it: &dyn Fn(&str) -> bool| analysis.factors.iter().position(|name| is_it(name));
    place(&|name| name == TARGET).or_else(|| place(&|name| !OTHERWISE.contains(&name)))
}

fn effect(
    response: Response,
    (base, other): (Cell<'_>, Cell<'_>),
    ids: [CellId; 2],
    estimate: Estimate,
) -> Option<Point> {
    let against = SideDoubts::of_cells(base, other, response);
    let more_is_better = response.more_is_better();
    let judged = judge(&estimate, MARGIN, &against, more_is_better);
    let medians = (base.response?.median, other.response?.median);
    let estimate = estimate.bounded(&against, more_is_better);
    Some(Point::effect(ids, response, medians, (estimate, judged)))
}

impl Point {
    /// The response of a cell compared with the base's, with the conclusion from the ratio of both.
    pub(super) fn effect(
        [base, other]: [CellId; 2],
        response: Response,
        medians: (f64, f64),
        (ratio, (difference, doubts)): (Estimate, (Difference, Vec<Doubt>)),
    ) -> Self {
        let standing = match difference {
            Difference::Higher | Difference::Lower => Standing::Differs,
            Difference::Equivalent => Standing::Equivalent,
            Difference::NotFound => Standing::NotFound,
            Difference::CannotTell if doubts.is_empty() => Standing::Unknown,
            Difference::CannotTell => Standing::Doubtful,
        };
        Self {
            cell: Some(other),
            base: Some(base),
            ratio: Some(ratio),
            doubts,
            ..Self::new(standing, Quantity::Of(response), medians.1).of(medians.0)
        }
    }
}

/// Random with sequential accesses where each was measured by a run of its own on the same target, with the same settings in all
/// else.
pub(super) fn random_across_runs<'a>(runs: &[&'a Analysis]) -> Vec<Claim> {
    // The variants of a run that looks for a cause are compared by itself.
    let shown = runs.iter().enumerate();
    let shown = shown.filter(|(_, run)| run.inquiry.is_none());
    let cells = shown.flat_map(|(place, run)| {
        let measured = run.cells.iter().filter(|cell| is_plain(cell));
        measured.map(move |cell| (place, *run, cell))
    });
    let of_pattern = |pattern: Pattern| {
        let own = cells.clone();
        own.filter(move |(.., cell)| pattern_of(cell) == Some(pattern))
    };
    let sequential = of_pattern(Pattern::Seq);
    let sequential = sequential.map(|one| (settings_but(one.2, &PATTERN), one));
    let sequential: Vec<_> = sequential.collect();
    let pair = |random: OfRun<'a>| {
        let own = settings_but(random.2, &PATTERN);
        let mut alike = sequential.iter().filter(|(settings, _)| *settings == own);
        let of = |run: &Analysis| (run.target.clone(), run.storage.clone(), run.response);
        // A run that has both says so itself.
        let is_known = alike.clone().any(|(_, (run, ..))| *run == random.0);
        let base = alike.find(|(_, (_, run, _))| of(run) == of(random.1))?;
        (!is_known).then_some((base.1, random))
    };
    let mut all: Vec<Found<'_>> = of_pattern(Pattern::Rand).filter_map(pair).collect();
    let confidence = confidence(all.len());
    all.sort_by_key(|(_, (_, run, cell))| (run.target.as_str(), Reverse(reads_of(cell))));
    let of_targets = all.chunk_by(|a, b| a.1.1.target == b.1.1.target);
    let compared = of_targets.filter_map(|own| of_pairs(Contrast::Pattern, own, confidence));
    compared.collect()
}

/// Comparisons of one experiment on several targets, each measured by a run of its own: the first target with
/// all others. The last of several runs on a target counts. A run that has both targets compares them itself.
pub(super) fn targets_across_runs(runs: &[&Analysis]) -> Vec<Claim> {
    let kinds = distinct(
        runs.iter()
            .map(|run| (run.experiment.as_str(), run.response)),
    );
    let of_kind = |(experiment, response): &(&str, Response)| {
        let alike = runs.iter().enumerate();
        let alike = alike.filter(|(_, run)| {
            (run.experiment.as_str(), run.response) == (*experiment, *response)
                && run.response_group.is_none()
                && run.inquiry.is_none()
        });
        alike.clone().nth(1)?;
        let mut last: Vec<((&str, &str), String, OfRun<'_>)> = Vec::new();
        for (place, run) in alike {
            for cell in run.cells.iter().filter(|cell| is_plain(cell)) {
                // A path of the same name may be another disk.
                let name = run.target_of(cell.cell.spec.target.as_ref());
                let place_of = (name, run.storage.as_str());
                let settings = settings_but(cell, &[TARGET]);
                last.retain(|(target, own, _)| *target != place_of || *own != settings);
                last.push((place_of, settings, (place, *run, cell)));
            }
        }
        let targets = distinct(last.iter().map(|(target, ..)| *target));
        let (first, others) = targets.split_first()?;
        let pairs_with = |other: &(&str, &str)| {
            let own = last.iter().filter(|(its, ..)| its == other);
            let pairs = own.filter_map(|(_, settings, one)| {
                let mut base = last.iter().filter(|(its, ..)| its == first);
                let (.., base) = base.find(|(_, own, _)| own == settings)?;
                // One run compares its targets itself.
                (base.0 != one.0).then_some((*base, *one))
            });
            pairs.collect::<Vec<_>>()
        };
        let pairs: Vec<Found<'_>> = others.iter().flat_map(pairs_with).collect();
        let contrast = Contrast::Levels {
            factor: TARGET.to_owned(),
        };
        of_pairs(contrast, &pairs, confidence(pairs.len()))
    };
    kinds.iter().filter_map(of_kind).collect()
}

/// Whether a cell was measured, without groups or programs.
fn is_plain(cell: &CellAnalysis) -> bool {
    !cell.values.is_empty() && !cell.cell.spec.has_groups() && !cell.cell.spec.runs_program()
}

/// A cell with its run and the place of that.
type OfRun<'a> = (usize, &'a Analysis, Cell<'a>);
/// The base and the other.
type Found<'a> = (OfRun<'a>, OfRun<'a>);

fn of_pairs(contrast: Contrast, pairs: &[Found<'_>], confidence: f64) -> Option<Claim> {
    let response = pairs.first()?.0.1.response;
    let compared: &[&str] = match &contrast {
        Contrast::Levels { .. } => &[TARGET],
        _ => &PATTERN,
    };
    let spec = |pair: &Found<'_>| pair.1.2.cell.spec.clone();
    let varying = SETTINGS.iter().filter(|setting| {
        let mut values = pairs.iter().map(|pair| setting.get(&spec(pair)));
        let first = values.next();
        // Where its trials end follows from what a cell does.
        let is_bound = setting.topic == Topic::Bounds;
        let is_compared = compared.contains(&setting.name);
        !is_bound && !is_compared && values.any(|value| Some(value) != first)
    });
    let is_factor = |setting: &&Setting| {
        let mut runs = pairs.iter().map(|pair| pair.1.1);
        runs.any(|run| run.factors.iter().any(|factor| factor == setting.name))
    };
    let (factors, others): (Vec<&Setting>, Vec<&Setting>) = varying.partition(is_factor);
    // Settings that distinguish the pairs: factors first, and none that follows from those before it.
    let mut distinct: Vec<Vec<String>> = vec![Vec::new(); pairs.len()];
    let mut varying: Vec<&Setting> = Vec::new();
    for setting in factors.into_iter().chain(others) {
        let mut finer = distinct.clone();
        for (values, pair) in finer.iter_mut().zip(pairs) {
            values.push(setting.get(&spec(pair)));
        }
        let count = |all: &[Vec<String>]| all.iter().collect::<BTreeSet<_>>().len();
        if count(&finer) > count(&distinct) {
            distinct = finer;
            varying.push(setting);
        }
    }
    let effects = pairs.iter().filter_map(|pair| {
        let ((base_run, _, base), (run, _, other)) = pair;
        let estimate = across_runs(base, other, confidence)?;
        let ids = [id(*base_run, base), id(*run, other)];
        effect(response, (base, other), ids, estimate)
    });
    let effects = effects.collect();
    let held = varying.iter().map(|setting| setting.name.to_owned());
    let comparison = Comparison {
        contrast,
        leads: true,
        held: held.collect(),
    };
    comparison.claim(effects)
}

/// The settings of a cell but for some, as text.
pub(super) fn settings_but(cell: &CellAnalysis, but: &[&str]) -> String {
    let own = SETTINGS.iter();
    let own = own.filter(|setting| !but.contains(&setting.name));
    let values: Vec<String> = own.map(|setting| setting.get(&cell.cell.spec)).collect();
    values.join("\n")
}
