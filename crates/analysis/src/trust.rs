//! Trust in an output, as one verdict with its basis.
//!
//! The verdict follows from the claims and numbers that the output shows. Their basis is the evidence of exactly
//! the cells that they use, and the doubts that turned a part of a claim to "cannot tell". Other cells do not
//! count. Text, page, paper and JSON show the same claims and so have the same verdict. A picture shows only
//! numbers, and judges only these.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use iolab_record::RunStatus;
use iolab_workload::named;

use crate::analysed_run::AnalysedRun;
use crate::analysis::{Analysis, CellAnalysis};
use crate::claim::{self, CellId, Claim, id};
use crate::doubt::{self, DoubtClass, DoubtKind};

named! {
    /// The verdict, best first.
    #[derive(PartialOrd, Ord)]
    pub enum TrustLevel: "trust" {
        /// Nothing weakens the output, and nearly all of its cells reached the precision goal.
        Good = "good",
        /// Some of its cells are disturbed, imprecise or not from the device, or a part of it is open.
        Limited = "limited",
        /// Trials failed, data was wrong, or most of its cells do not show the device.
        Poor = "poor",
    }
}

/// Contents of an output.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// The runs, by whose indices claims and numbers name their cells.
    pub runs: &'a [&'a AnalysedRun],
    /// The findings that it shows, in their order, each with the claims that it makes.
    pub findings: &'a [Vec<&'a Claim>],
    /// The cells whose numbers it shows by themselves.
    pub numbers: &'a [CellId],
}

/// Trust in an output. Counts include the cells that it uses, if they have measured trials.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Trust {
    /// The verdict.
    pub level: TrustLevel,
    /// The weightiest doubt; `None` if the verdict is the best one.
    pub doubt: Option<DoubtKind>,
    /// Number of cells that the doubt concerns; 0 if it concerns runs or a finding.
    pub concerned: usize,
    /// Place of the first finding that the doubt leaves open, if it concerns no cell.
    pub finding: Option<usize>,
    /// Number of claims in the output.
    pub claims: usize,
    /// Claims of which a part is open.
    pub undecided: usize,
    /// Number of cells that claims and numbers use; all cells if neither is shown.
    pub cells: usize,
    /// Cells of the runs with measured trials, used or not.
    pub measured: usize,
    /// Cells whose run repeats trials for a precision goal.
    pub sought: usize,
    /// Number of these cells with too few trials for an interval.
    pub without_interval: usize,
    /// The greatest precision that is above the goal of its run.
    pub too_wide: Option<f64>,
    /// The greatest precision.
    pub widest: Option<f64>,
    /// Cells that others disturbed.
    pub disturbed: usize,
    /// Cells with a trial that has no valid number.
    pub invalid: usize,
}

/// Share of cells that may miss the precision goal in a trusted output.
const IMPRECISE_MAX: f64 = 0.1;

/// A run with its index among the shown ones, and its cells that count.
struct OfRun<'a> {
    place: usize,
    run: &'a AnalysedRun,
    cells: Vec<&'a CellAnalysis>,
}

/// The cells that each doubt concerns.
#[derive(Default)]
struct Concerned(BTreeMap<DoubtKind, BTreeSet<CellId>>);

impl Concerned {
    fn add(&mut self, doubt: DoubtKind, cells: impl IntoIterator<Item = CellId>) {
        self.0.entry(doubt).or_default().extend(cells);
    }

    /// Number of cells with a doubt of this class.
    fn of_class(&self, class: DoubtClass) -> usize {
        let own = self.0.iter().filter(|(doubt, _)| doubt.class() == class);
        let cells: BTreeSet<&CellId> = own.flat_map(|(_, cells)| cells).collect();
        cells.len()
    }

    fn of(&self, doubt: DoubtKind) -> usize {
        self.0.get(&doubt).map_or(0, BTreeSet::len)
    }
}

impl Trust {
    /// Judges an output; if it shows neither claims nor numbers, all cells of its runs.
    pub fn of(shown: &Shown<'_>) -> Self {
        let runs = of_runs(shown);
        let mut concerned = Concerned::default();
        for own in &runs {
            own.doubts(&mut concerned);
        }
        let claims = || shown.findings.iter().flatten();
        for claim in claims() {
            if let Some(doubt) = claim.kind.unsettled {
                concerned.add(doubt, claim.cells.iter().copied());
            }
        }
        // A table also has the cells, and the runs, on which no claim rests.
        let sought = || {
            let seeking = shown.runs.iter().map(|run| run.analysis());
            let seeking = seeking.filter(|run| run.seeks_precision);
            seeking.flat_map(|run| {
                run.cells
                    .iter()
                    .filter(|cell| cell.n > 0)
                    .map(move |cell| (run, cell))
            })
        };
        let too_wide = sought().filter_map(|(run, cell)| {
            cell.precision
                .filter(|precision| *precision > run.precision_goal)
        });
        let every = shown.runs.iter().flat_map(|run| &run.analysis().cells);
        let is_open = |claim: &&&Claim| claim.doubts().next().is_some();
        let trust = Self {
            level: TrustLevel::Good,
            doubt: None,
            concerned: 0,
            finding: None,
            claims: claims().count(),
            undecided: claims().filter(is_open).count(),
            cells: runs.iter().flat_map(OfRun::measured).count(),
            measured: every.filter(|cell| cell.n > 0).count(),
            sought: sought().count(),
            without_interval: sought()
                .filter(|(run, cell)| {
                    imprecision(run, cell).any(|doubt| doubt == DoubtKind::FewTrials)
                })
                .count(),
            too_wide: too_wide.max_by(f64::total_cmp),
            widest: sought()
                .filter_map(|(_, cell)| cell.precision)
                .max_by(f64::total_cmp),
            disturbed: concerned.of_class(DoubtClass::Others),
            invalid: concerned.of_class(DoubtClass::Invalid),
        };
        trust.judged(shown, &concerned)
    }

    /// The verdict from the doubts about cells and claims.
    fn judged(self, shown: &Shown<'_>, concerned: &Concerned) -> Self {
        let is_most = |n: usize| 2 * n > self.cells;
        let imprecise = concerned.of(DoubtKind::FewTrials) + concerned.of(DoubtKind::Imprecise);
        let is_imprecise = imprecise as f64 > IMPRECISE_MAX * self.cells as f64;
        let invalid = self.invalid > 0;
        let sources = is_most(concerned.of_class(DoubtClass::Source));
        let others = is_most(self.disturbed) && is_most(imprecise);
        let is_poor = |doubt: DoubtKind| match doubt.class() {
            DoubtClass::Invalid => invalid,
            DoubtClass::Source => sources,
            DoubtClass::Others => others,
            _ if doubt == DoubtKind::AboveMedian => is_most(concerned.of(doubt)),
            _ => doubt == DoubtKind::NoTrial,
        };
        let counts = |doubt: DoubtKind| match doubt {
            DoubtKind::AboveMedian => is_poor(doubt),
            DoubtKind::FewTrials | DoubtKind::Imprecise => is_imprecise,
            DoubtKind::StorageCache => !is_imprecise,
            _ => true,
        };
        let of_cells = concerned.0.iter().filter(|(doubt, _)| counts(**doubt));
        let of_cells = of_cells.map(|(doubt, cells)| (*doubt, cells.len(), None));
        let of_findings = shown
            .findings
            .iter()
            .enumerate()
            .flat_map(|(place, claims)| {
                let doubts = claims.iter().flat_map(|claim| claim.doubts());
                doubts.map(move |doubt| (doubt.what, 0, Some(place)))
            });
        let nothing = (self.cells == 0).then_some((DoubtKind::NoTrial, 0, None));
        let all: Vec<_> = of_cells.chain(of_findings).chain(nothing).collect();
        let is_limited = |doubt: DoubtKind| !is_poor(doubt) && doubt.class() != DoubtClass::Invalid;
        let kinds = all.iter().map(|(doubt, ..)| *doubt);
        let first = kinds.min_by_key(|doubt| (is_limited(*doubt), *doubt));
        let Some(first) = first else { return self };
        // Of several doubts of the class, the one about most cells.
        let is_alike = |doubt: DoubtKind| match first.class() {
            DoubtClass::Source | DoubtClass::Others => doubt.class() == first.class(),
            _ => doubt == first,
        };
        let alike = all.into_iter().filter(|(doubt, ..)| is_alike(*doubt));
        let most = alike.min_by_key(|(doubt, n, place)| (std::cmp::Reverse(*n), *doubt, *place));
        let (doubt, concerned, finding) = most.unwrap_or((first, 0, None));
        Self {
            level: match is_limited(doubt) {
                true => TrustLevel::Limited,
                false => TrustLevel::Poor,
            },
            doubt: Some(doubt),
            concerned,
            finding,
            ..self
        }
    }
}

impl<'a> OfRun<'a> {
    /// Its cells with measured trials.
    fn measured(&self) -> impl Iterator<Item = &'a CellAnalysis> {
        self.cells.iter().copied().filter(|cell| cell.n > 0)
    }

    /// Adds the doubts about the run and its cells.
    fn doubts(&self, concerned: &mut Concerned) {
        let analysis = self.run.analysis();
        if analysis.status != RunStatus::Done {
            concerned.add(DoubtKind::Unfinished, []);
        }
        if !analysis.has_definition {
            concerned.add(DoubtKind::NoDefinition, []);
        }
        let unsettled = unsettled(analysis, &self.cells);
        for cell in self.measured() {
            let own = doubt::of_cell(cell).into_iter().map(|doubt| doubt.what);
            let own = own.filter(|doubt| lowers_trust(*doubt));
            let of_trials = unsettled.iter().filter(|(_, id)| *id == cell.cell.id);
            let of_trials = of_trials.map(|(doubt, _)| *doubt);
            let all = own.chain(of_trials).chain(imprecision(analysis, cell));
            all.for_each(|doubt| concerned.add(doubt, [id(self.place, cell)]));
        }
    }
}

/// Whether a doubt about the trials of a cell lowers the trust in its number.
fn lowers_trust(doubt: DoubtKind) -> bool {
    match doubt.class() {
        DoubtClass::Invalid | DoubtClass::Source | DoubtClass::Others => true,
        _ => matches!(doubt, DoubtKind::EarlierWrites | DoubtKind::StorageCache),
    }
}

/// Doubts about the precision of a cell, if its run has a goal.
fn imprecision(analysis: &Analysis, cell: &CellAnalysis) -> impl Iterator<Item = DoubtKind> {
    let is_sought = analysis.seeks_precision;
    let width = cell.precision.filter(|_| is_sought);
    let is_without = is_sought && cell.precision.is_none() && analysis.has_response(cell);
    let lacks = [DoubtKind::FewRequests, DoubtKind::FewTrials];
    let lack = lacks.into_iter().find(|lack| cell.flags.contains(lack));
    let exceeds = |most: f64| width.is_some_and(|width| width > most);
    let found = [
        exceeds(1.0).then_some(DoubtKind::AboveMedian),
        exceeds(analysis.precision_goal).then_some(DoubtKind::Imprecise),
        lack.filter(|_| is_without),
    ];
    found.into_iter().flatten()
}

/// The cells that an output uses, by their run; without runs that it does not use.
fn of_runs<'a>(shown: &Shown<'a>) -> Vec<OfRun<'a>> {
    let of_claims = shown.findings.iter().flatten();
    let of_claims = of_claims.flat_map(|claim| &claim.cells);
    let rests: BTreeSet<CellId> = of_claims.chain(shown.numbers).copied().collect();
    let own = shown.runs.iter().enumerate().map(|(place, run)| {
        let is_own = |cell: &&CellAnalysis| rests.is_empty() || rests.contains(&id(place, cell));
        let cells = run.analysis().cells.iter().filter(is_own).collect();
        OfRun { place, run, cells }
    });
    own.filter(|own| rests.is_empty() || !own.cells.is_empty())
        .collect()
}

/// Factor by which an interval is at most too narrow if trials drift or depend on earlier ones.
const TOO_NARROW: f64 = 3.0;

/// Doubts from the order and the groups of some cells' trials, each with the id of its cell.
fn unsettled(analysis: &Analysis, own: &[&CellAnalysis]) -> Vec<(DoubtKind, i64)> {
    let timeline = &analysis.timeline;
    let over_run = timeline.over_run.iter();
    let over_run = over_run.flat_map(|shift| shift.cells.iter().copied());
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
        let is_dependent = dependent.contains(&cell.cell.id) && is_wide(cell);
        let has_groups = claim::groups(analysis, cell).is_some();
        let found = [
            (is_changed(cell), DoubtKind::LevelChanged),
            (has_groups, DoubtKind::TwoGroups),
            (is_dependent, DoubtKind::Dependent),
        ];
        found.map(|(holds, reason)| holds.then_some((reason, cell.cell.id)))
    });
    found.flatten().collect()
}
