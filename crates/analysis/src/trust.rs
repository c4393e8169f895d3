//! Trust in an output, as one verdict with its basis.
//!
//! The verdict follows from the claims and numbers that the output shows. Their basis is the evidence of exactly
//! the cells that they use, and the doubts that turned a part of a claim to "cannot tell". Other cells do not
//! count. Text, page, paper and JSON show the same claims and so have the same verdict. A picture shows only
//! numbers, and judges only these.

use std::collections::{BTreeMap, BTreeSet};

use iolab_record::environment::KEYS;
use iolab_record::{RunStatus, ServedBy};

use crate::analysed_run::AnalysedRun;
use crate::analysis::{Analysis, CellAnalysis, Flag};
use crate::claim::{self, CellId, Claim, Unsettled};
use crate::doubt::{self, SideDoubts};
use crate::imbalance::Disturber;

/// The verdict, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrustLevel {
    /// Nothing weakens the output, and nearly all of its cells reached the precision goal.
    Good,
    /// Some of its cells are disturbed, imprecise or not from the device, or a part of it is open.
    Limited,
    /// Trials failed, data was wrong, or most of its cells do not show the device.
    Poor,
}

/// Reason why an output is not fully trusted: the first of these that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrustReason {
    /// Nothing was measured.
    NoTrials,
    /// Some trials have no valid number, by the worst flag.
    Ruined(Flag),
    /// Most cells were not served by the requested source.
    NotAsAsked,
    /// Others used the disk or the CPUs during most cells, and most missed the precision goal.
    DisturbedAndImprecise,
    /// Most intervals are wider than twice their medians.
    NothingPrecise,
    /// Some cells were not served by the requested source.
    SomeNotAsAsked,
    /// Some cells were disturbed.
    SomeDisturbed,
    /// Some cells only read while the storage may still have written for others.
    ReadsAfterWrites,
    /// The trials leave open a part of the claims: two groups, dependence, the clock, another run.
    Undecided,
    /// The level of some cells changed or drifted during the run, so that their median may describe no period.
    LevelChanged,
    /// The trials of some cells form two groups, so that their median may describe no trial.
    TwoGroups,
    /// Trials of some cells depend on the ones before: their intervals are too narrow.
    Dependent,
    /// The last trials of some writing cells differ too much to be called settled, although no change of level
    /// is shown.
    NotSettled,
    /// A run did not finish.
    Unfinished,
    /// The definition of a run cannot be read.
    NoDefinition,
    /// More than a tenth of the cells missed the precision goal.
    Imprecise,
    /// Some cells missed their precision goal, and none of these has an interval.
    NoIntervals,
}

/// Contents of an output.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// The runs, by whose indices claims and numbers name their cells.
    pub runs: &'a [&'a AnalysedRun],
    /// The claims that it makes.
    pub claims: &'a [&'a Claim],
    /// The cells whose numbers it shows by themselves.
    pub numbers: &'a [CellId],
}

/// Trust in an output. Counts include the cells that it uses, if they have measured trials.
#[derive(Debug, Clone, PartialEq)]
pub struct Trust {
    /// The verdict.
    pub level: TrustLevel,
    /// Reason why the verdict is not the best one.
    pub reason: Option<TrustReason>,
    /// Number of cells that the reason concerns; 0 if it concerns runs or claims.
    pub concerned: usize,
    /// Number of claims in the output.
    pub claims: usize,
    /// Number of cells that claims and numbers use; all cells if neither is shown.
    pub cells: usize,
    /// Cells of the runs with measured trials, used or not.
    pub measured: usize,
    /// Cells of the runs without measured trials.
    pub unmeasured: usize,
    /// Cells per source of their bytes; a cell whose trials disagree counts as [`ServedBy::Mixed`].
    pub served: BTreeMap<ServedBy, usize>,
    /// Cells whose run repeats trials for a precision goal.
    pub sought: usize,
    /// Number of these cells that reached the goal.
    pub precise: usize,
    /// Number of these cells with too few trials for an interval.
    pub without_interval: usize,
    /// The least strict goal of the runs.
    pub goal: f64,
    /// The widest interval: its half-width over the median.
    pub widest: Option<f64>,
    /// Cells that were disturbed from outside, by something other than a suspended machine.
    pub disturbed: usize,
    /// Cells during whose trials the machine or iolab was suspended.
    pub suspended: usize,
    /// Disturbances of cells, and those that turned a claim, each once.
    pub disturbers: Vec<Disturber>,
    /// Cells that only read while the storage may still have written for others.
    pub after_writes: usize,
    /// Cells with a trial that has no valid number.
    pub ruined: usize,
    /// Claims of which a part is open.
    pub undecided: usize,
    /// The most important reason that turned a part of a claim.
    pub turned_by: Option<doubt::ReasonKind>,
    /// Whether the machine is virtual; `None` where that is not known or differs between runs.
    pub is_virtual: Option<bool>,
    /// Runs that did not finish.
    pub unfinished: usize,
    /// Runs whose definition cannot be read.
    pub undefined: usize,
}

/// Share of cells that may miss the precision goal in a trusted output.
const IMPRECISE_MAX: f64 = 0.1;

/// A run with its index among the shown ones, and its cells that count.
struct OfRun<'a> {
    place: usize,
    run: &'a AnalysedRun,
    cells: Vec<&'a CellAnalysis>,
}

impl Trust {
    /// Judges an output; if it shows neither claims nor numbers, all cells of its runs.
    pub fn of(shown: &Shown<'_>) -> Self {
        let runs = of_runs(shown);
        let all = || runs.iter().flat_map(|own| own.cells.iter().copied());
        let cells: Vec<&CellAnalysis> = all().filter(|cell| cell.n > 0).collect();
        let evidence = cells.iter().map(|cell| SideDoubts::of_values([*cell]));
        let evidence: Vec<SideDoubts> = evidence.collect();
        let weakened = |is: fn(&doubt::Reason) -> bool| {
            let weakened = evidence.iter().filter(|own| own.reasons().any(is));
            weakened.count()
        };
        let against = shown
            .claims
            .iter()
            .map(|claim| claim.doubts().collect::<Vec<_>>());
        let against: Vec<Vec<&doubt::Reason>> = against.collect();
        let is_by = |by: &Disturber| {
            let of_cells = evidence.iter().flat_map(SideDoubts::reasons);
            let mut reasons = of_cells.chain(against.iter().flatten().copied());
            reasons.any(|reason| reason.disturber() == Some(*by))
        };
        let ruins: Vec<Flag> = cells.iter().filter_map(|cell| ruin(cell)).collect();
        let seeking = || {
            let seeking = runs.iter();
            seeking.filter(|own| own.run.analysis().seeks_precision)
        };
        let sought = || seeking().flat_map(|own| own.cells.iter().copied());
        let precise = seeking()
            .map(|own| precise(own.run.analysis(), &own.cells))
            .sum();
        let every = || shown.runs.iter().flat_map(|run| &run.analysis().cells);
        let measured = every().filter(|cell| cell.n > 0).count();
        let is_of_run = |is: fn(&Analysis) -> bool| {
            let found = runs.iter().filter(|own| is(own.run.analysis()));
            found.count()
        };
        let trust = Self {
            level: TrustLevel::Good,
            reason: None,
            concerned: 0,
            claims: shown.claims.len(),
            cells: cells.len(),
            measured,
            unmeasured: every().count() - measured,
            served: served(&cells),
            sought: sought().filter(|cell| cell.n > 0).count(),
            precise,
            without_interval: seeking()
                .map(|own| without_interval(own.run.analysis(), &own.cells))
                .sum(),
            goal: seeking()
                .map(|own| own.run.analysis().precision_goal)
                .fold(0.0, f64::max),
            widest: sought()
                .filter_map(|cell| cell.precision)
                .max_by(f64::total_cmp),
            disturbed: weakened(doubt::Reason::is_disturbance),
            suspended: cells.iter().filter(|cell| cell.is_suspended()).count(),
            disturbers: Disturber::ALL.iter().copied().filter(is_by).collect(),
            after_writes: weakened(|reason| matches!(reason, doubt::Reason::ReadsAfterWrites)),
            ruined: ruins.len(),
            undecided: against.iter().filter(|doubts| !doubts.is_empty()).count(),
            turned_by: against.iter().flatten().map(|reason| reason.kind()).min(),
            is_virtual: is_virtual(&runs),
            unfinished: is_of_run(|run| run.status != RunStatus::Done),
            undefined: is_of_run(|run| !run.has_definition),
        };
        let worst = ruins.into_iter().min_by_key(|flag| rank(*flag));
        let of_claims = against.into_iter().flatten();
        let of_claims = of_claims.map(|doubt| (TrustReason::of(doubt), 0));
        let analyses: Vec<&Analysis> = shown.runs.iter().map(|run| run.analysis()).collect();
        let mut unsettled: BTreeMap<TrustReason, BTreeSet<CellId>> = BTreeMap::new();
        for OfRun { place, run, cells } in &runs {
            for (reason, cell) in self::unsettled(run.analysis(), cells) {
                let id = CellId { run: *place, cell };
                unsettled.entry(reason).or_default().insert(id);
            }
        }
        for claim in shown.claims {
            let reason = match claim.unsettled() {
                Some(Unsettled::Changed) => TrustReason::LevelChanged,
                Some(Unsettled::NotShownToSettle) => TrustReason::NotSettled,
                None => continue,
            };
            let cells = unsettled.entry(reason).or_default();
            cells.extend(claim.rests_on(&analyses));
        }
        let of_trials = unsettled
            .iter()
            .map(|(reason, cells)| (*reason, cells.len()));
        let found = match worst {
            Some(flag) => Some((TrustReason::Ruined(flag), trust.ruined)),
            None => trust.judge(&cells, of_claims.chain(of_trials)),
        };
        let reason = found.map(|(reason, _)| reason);
        Self {
            level: reason.map_or(TrustLevel::Good, TrustReason::level),
            reason,
            concerned: found.map_or(0, |(_, cells)| cells),
            ..trust
        }
    }

    /// The first reason that holds, and the number of its cells. `further` has reasons that turned a part of a
    /// claim, and reasons from the order and the groups of trials.
    fn judge(
        &self,
        cells: &[&CellAnalysis],
        further: impl Iterator<Item = (TrustReason, usize)>,
    ) -> Option<(TrustReason, usize)> {
        let asked = cells.iter().filter(|cell| cell.is_as_asked()).count();
        let is_unprecise = |cell: &&&CellAnalysis| cell.precision.is_some_and(|p| p > 1.0);
        let unprecise = cells.iter().filter(is_unprecise).count();
        let imprecise = self.sought - self.precise;
        let is_most = |n: usize| 2 * n > self.cells;
        let reasons = [
            (self.cells == 0, TrustReason::NoTrials, 0),
            (
                2 * asked < self.cells,
                TrustReason::NotAsAsked,
                self.cells - asked,
            ),
            (
                is_most(self.disturbed) && is_most(imprecise),
                TrustReason::DisturbedAndImprecise,
                self.disturbed,
            ),
            (is_most(unprecise), TrustReason::NothingPrecise, unprecise),
            (
                asked < self.cells,
                TrustReason::SomeNotAsAsked,
                self.cells - asked,
            ),
            (
                self.disturbed > 0,
                TrustReason::SomeDisturbed,
                self.disturbed,
            ),
            (
                self.after_writes > 0,
                TrustReason::ReadsAfterWrites,
                self.after_writes,
            ),
            (self.unfinished > 0, TrustReason::Unfinished, 0),
            (self.undefined > 0, TrustReason::NoDefinition, 0),
            (
                imprecise as f64 > IMPRECISE_MAX * self.cells as f64,
                match self.without_interval == imprecise {
                    true => TrustReason::NoIntervals,
                    false => TrustReason::Imprecise,
                },
                imprecise,
            ),
        ];
        let found = reasons.into_iter().filter(|(holds, ..)| *holds);
        let found = found.map(|(_, reason, cells)| (reason, cells));
        // Keeps the largest number of cells for each reason.
        found
            .chain(further)
            .min_by_key(|(reason, cells)| (*reason, std::cmp::Reverse(*cells)))
    }
}

/// The cells that an output uses, by their run; without runs that it does not use.
fn of_runs<'a>(shown: &Shown<'a>) -> Vec<OfRun<'a>> {
    let analyses: Vec<&Analysis> = shown.runs.iter().map(|run| run.analysis()).collect();
    let of_claims = shown
        .claims
        .iter()
        .flat_map(|claim| claim.rests_on(&analyses));
    let rests: BTreeSet<CellId> = of_claims.chain(shown.numbers.iter().copied()).collect();
    let own = shown.runs.iter().enumerate().map(|(place, run)| {
        let is_own = |cell: &&CellAnalysis| {
            rests.is_empty()
                || rests.contains(&CellId {
                    run: place,
                    cell: cell.cell.id,
                })
        };
        let cells = run.analysis().cells.iter().filter(is_own);
        OfRun {
            place,
            run,
            cells: cells.collect(),
        }
    });
    own.filter(|own| rests.is_empty() || !own.cells.is_empty())
        .collect()
}

/// The worst flag that makes the numbers of a cell useless.
fn ruin(cell: &CellAnalysis) -> Option<Flag> {
    let ruins = |flag: &Flag| flag.caution().is_some_and(|caution| caution.ruins);
    let all = cell.flags.iter().copied().filter(ruins);
    all.min_by_key(|flag| rank(*flag))
}

/// The rank of a flag among all, the worst first.
fn rank(flag: Flag) -> Option<u8> {
    flag.caution().map(|caution| caution.rank)
}

/// Number of cells of a run that reached its goal, or do not have its response.
fn precise(analysis: &Analysis, own: &[&CellAnalysis]) -> usize {
    let goal = analysis.precision_goal;
    let is_silent = |cell: &CellAnalysis| cell.n > 0 && !analysis.has_response(cell);
    let reached =
        |cell: &&&CellAnalysis| cell.precision.is_some_and(|p| p <= goal) || is_silent(cell);
    own.iter().filter(reached).count()
}

/// Number of measured cells of a run that have its response, but no interval.
fn without_interval(analysis: &Analysis, own: &[&CellAnalysis]) -> usize {
    let is_without = |cell: &&&CellAnalysis| {
        cell.n > 0 && cell.precision.is_none() && analysis.has_response(cell)
    };
    own.iter().filter(is_without).count()
}

/// Factor by which an interval is at most too narrow if trials drift or depend on earlier ones.
const TOO_NARROW: f64 = 3.0;

/// Reasons in the order and the groups of some cells' trials against their numbers, each with the id of its
/// cell.
fn unsettled(analysis: &Analysis, own: &[&CellAnalysis]) -> Vec<(TrustReason, i64)> {
    let timeline = &analysis.timeline;
    let over_run = timeline.over_run.iter().map(|shift| shift.cell);
    // A run that asks about the beginning of its trials shows both levels.
    let within = timeline.within.iter().filter(|_| !timeline.is_of_beginning);
    let shifted: BTreeSet<_> = over_run.chain(within.map(|shift| shift.cell)).collect();
    let ids = |cells: Vec<&CellAnalysis>| -> BTreeSet<_> {
        cells.into_iter().map(|cell| cell.cell.id).collect()
    };
    let drifting = ids(claim::drifting_cells(analysis));
    let dependent = ids(claim::dependent_cells(analysis));
    // If numbers are nearly equal, as for models, their order does not change any statement.
    let is_wide = |cell: &CellAnalysis| {
        let widened = cell.precision.map(|precision| TOO_NARROW * precision);
        widened.is_none_or(|precision| precision > claim::MARGIN)
    };
    let is_changed = |cell: &CellAnalysis| {
        drifting.contains(&cell.cell.id) && is_wide(cell) || shifted.contains(&cell.cell.id)
    };
    let found = own.iter().flat_map(|cell| {
        [
            (is_changed(cell), TrustReason::LevelChanged),
            (
                claim::groups(analysis, cell).is_some(),
                TrustReason::TwoGroups,
            ),
            (
                dependent.contains(&cell.cell.id) && is_wide(cell),
                TrustReason::Dependent,
            ),
        ]
        .map(|(holds, reason)| holds.then_some((reason, cell.cell.id)))
    });
    found.flatten().collect()
}

fn served(cells: &[&CellAnalysis]) -> BTreeMap<ServedBy, usize> {
    let mut served = BTreeMap::new();
    for cell in cells {
        let verdict = cell
            .served
            .as_ref()
            .map(|s| s.unanimous().unwrap_or(ServedBy::Mixed));
        *served.entry(verdict.unwrap_or_default()).or_insert(0) += 1;
    }
    served
}

fn is_virtual(runs: &[OfRun<'_>]) -> Option<bool> {
    let mut all = runs
        .iter()
        .map(|own| own.run.record().environment.get(&KEYS.machine_is_virtual));
    let first = all.next().flatten();
    first.filter(|_| all.all(|other| other == first))
}

impl TrustReason {
    /// The reason for trust that a doubt becomes if it turned a part of a claim to "cannot tell".
    fn of(doubt: &doubt::Reason) -> Self {
        match doubt {
            doubt::Reason::ServedBy { .. }
            | doubt::Reason::NotSynced { .. }
            | doubt::Reason::Unsynced { .. }
            | doubt::Reason::NeverFlushed { .. } => Self::SomeNotAsAsked,
            doubt::Reason::Disturbed { .. } | doubt::Reason::Imbalance(_) => Self::SomeDisturbed,
            // A time that includes a suspend does not show the storage.
            doubt::Reason::Suspended => Self::Ruined(Flag::Suspended),
            doubt::Reason::ReadsAfterWrites => Self::ReadsAfterWrites,
            doubt::Reason::RateNotHeld
            | doubt::Reason::EndedByTime
            | doubt::Reason::ClockResolution { .. }
            | doubt::Reason::Contradicted
            | doubt::Reason::TwoGroups { .. }
            | doubt::Reason::Dependent { .. } => Self::Undecided,
        }
    }

    fn level(self) -> TrustLevel {
        match self {
            Self::NoTrials
            | Self::Ruined(_)
            | Self::NotAsAsked
            | Self::DisturbedAndImprecise
            | Self::NothingPrecise => TrustLevel::Poor,
            Self::SomeNotAsAsked
            | Self::SomeDisturbed
            | Self::ReadsAfterWrites
            | Self::Undecided
            | Self::LevelChanged
            | Self::TwoGroups
            | Self::Dependent
            | Self::NotSettled
            | Self::Unfinished
            | Self::NoDefinition
            | Self::Imprecise
            | Self::NoIntervals => TrustLevel::Limited,
        }
    }

    /// Name of the reason for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoTrials => "no_trials",
            Self::Ruined(_) => "invalid_trials",
            Self::NotAsAsked => "most_not_as_asked",
            Self::DisturbedAndImprecise => "most_disturbed_and_imprecise",
            Self::NothingPrecise => "most_intervals_above_medians",
            Self::SomeNotAsAsked => "some_not_as_asked",
            Self::SomeDisturbed => "some_disturbed",
            Self::ReadsAfterWrites => "reads_after_writes",
            Self::Undecided => "undecided",
            Self::LevelChanged => "level_changed",
            Self::TwoGroups => "two_groups",
            Self::Dependent => "dependent",
            Self::NotSettled => "not_settled",
            Self::Unfinished => "unfinished",
            Self::NoDefinition => "no_definition",
            Self::Imprecise => "imprecise",
            Self::NoIntervals => "no_intervals",
        }
    }
}

impl TrustLevel {
    /// Name of the level, in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Limited => "limited",
            Self::Poor => "poor",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Effects of a suspended machine are described by its flag, and not as the work of others.
    #[test]
    fn effect_of_a_sleep_is_not_called_disturbed() {
        let reason = TrustReason::of(&doubt::Reason::Suspended);
        assert_eq!(reason, TrustReason::Ruined(Flag::Suspended));
        assert_eq!(reason.level(), TrustLevel::Poor);
        let by = Disturber::OtherTraffic;
        let others = doubt::Reason::Disturbed { by, worst: 0.5 };
        assert_eq!(TrustReason::of(&others), TrustReason::SomeDisturbed);
    }
}
