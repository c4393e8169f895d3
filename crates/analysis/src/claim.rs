//! Claims: what runs show, as data. `iolab-report` writes the sentences.
//!
//! A claim compares cells that differ only in what is asked about. Its intervals are simultaneous over all comparisons of one
//! kind in one run (Bonferroni), so that at most 5 % of runs have a false claim of a kind. Evidence of exactly these cells that
//! could reverse a comparison makes it [`Difference::CannotTell`]. METHODS.md has the rules and their measured error rates.
//!
//! Files to begin with:
//! - `kind.rs`: the kinds, one row each.
//! - `effect.rs`: two cells, `comparison.rs`: two levels of a factor in all settings, `contradictions.rs`:
//!   comparisons that disagree.
//! - `best.rs`: the best sizes of a curve, `limit.rs`: limits and costs that explain a curve,
//!   `concurrency.rs`: requests in flight, and groups at once.
//! - `series.rs`: the trials of a cell in their order, `tail.rs`: slow requests, `rounds.rs`: rounds until they are steady, `change.rs`:
//!   levels over time.
//! - `causes.rs`: results of interventions.
//! - `answers.rs`: claims of particular experiments, `stages.rs`: layers and drives, `order.rs`: the order of claims.
//! - `weaknesses.rs`: how a run was carried out, and doubts about its cells, `ranks.rs`: differences between ranks.

mod answers;
mod best;
mod causes;
mod change;
mod comparison;
mod concurrency;
mod contradictions;
pub(crate) mod effect;
pub mod kind;
mod limit;
mod order;
mod ranks;
mod rounds;
mod series;
mod stages;
mod tail;
mod weaknesses;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::analysis::{Analysis, CellAnalysis, ClientName};
use crate::doubt::Doubt;
use crate::timeline::Access;
use best::{best_of_curves, ways};
use comparison::{random_across_runs, targets_across_runs};
use iolab_workload::counters::Traffic;
use iolab_workload::json;
use iolab_workload::region_state::FaultKind;
use iolab_workload::response::Response;
use iolab_workload::stages::{CarriedBy, Stage};
pub(crate) use series::id;

pub use best::{choices, simplest};
pub use causes::{WhyUntried, is_answered, remainders};
pub use change::LevelChange;
pub use comparison::{Comparison, Contrast, comparisons, is_rate};
pub use effect::{CellId, Difference, Estimate, MARGIN, Trials, ratio_of_samples};
pub use kind::{Kind, Role};
pub use order::{HEADLINES_MAX, headlines, ordered};
pub use rounds::against_steady_state;
pub use series::{Groups, dependent_cells, drifting_cells, fell, groups, two_groups};
pub use tail::{leaves_tails_open, longest_tail};

/// A statement about cells of one or more runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Claim {
    /// Kind of the claim.
    #[serde(skip)]
    pub kind: &'static Kind,
    /// Meaning of the claim for the reader, if it shows something.
    #[serde(skip)]
    role: Role,
    /// The cells that it is based on, in the order of their runs.
    pub cells: Vec<CellId>,
    /// Whether it is about a run as a whole, and not about single cells.
    #[serde(skip)]
    pub is_of_run: bool,
    /// Factors that its cells hold, with their levels; empty where its cells differ in them. For an observation, a weakness of a run,
    /// rounds, and what explains a difference, the names in its sentence.
    #[serde(serialize_with = "json::object")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub held: Vec<(String, String)>,
    /// Its numbers.
    pub points: Vec<Point>,
    /// The ratio that it states, with the interval that decides; `null` for most kinds.
    pub ratio: Option<Estimate>,
    /// Doubts whether its numbers are the storage's own.
    pub doubts: Vec<Doubt>,
    /// Evidence of its kind.
    #[serde(flatten)]
    pub payload: Option<Payload>,
}

/// Evidence of kinds that points alone do not show.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", content = "evidence", rename_all = "snake_case")]
pub enum Payload {
    /// Property that is compared.
    Comparison(Comparison),
    /// Reason why its suspects were not tried.
    NotTried(WhyUntried),
}

impl Claim {
    /// A claim about these cells.
    pub fn new(kind: &'static Kind, cells: Vec<CellId>) -> Self {
        Self {
            kind,
            role: kind.role,
            cells,
            is_of_run: false,
            held: Vec::new(),
            points: Vec::new(),
            ratio: None,
            doubts: Vec::new(),
            payload: None,
        }
    }

    /// A claim about the cells of a run that can show it.
    fn of_run(
        kind: &'static Kind,
        (analysis, run): (&Analysis, usize),
        shows: impl Fn(&CellAnalysis) -> bool,
    ) -> Self {
        let cells = analysis.cells.iter().filter(|cell| shows(cell));
        Self {
            is_of_run: true,
            ..Self::new(kind, cells.map(|cell| id(run, cell)).collect())
        }
    }

    fn in_role(self, role: Role) -> Self {
        Self { role, ..self }
    }

    /// The claim with these points.
    pub fn with_points(self, points: impl IntoIterator<Item = Point>) -> Self {
        Self {
            points: points.into_iter().collect(),
            ..self
        }
    }

    fn with_payload(self, payload: Payload) -> Self {
        Self {
            payload: Some(payload),
            ..self
        }
    }

    fn with_ratio(self, ratio: f64, interval: Option<(f64, f64)>) -> Self {
        Self {
            ratio: Some(Estimate::of(ratio, interval)),
            ..self
        }
    }

    /// The runs that it is based on: their indices in ascending order.
    pub fn runs(&self) -> Vec<usize> {
        let mut runs: Vec<usize> = self.cells.iter().map(|cell| cell.run).collect();
        runs.sort_unstable();
        runs.dedup();
        runs
    }

    /// The points with a standing.
    pub fn of(&self, standing: Standing) -> impl Iterator<Item = &Point> {
        let all = self.points.iter();
        all.filter(move |point| point.standing == standing)
    }

    /// The doubts that turned a part of it to "cannot tell".
    pub(crate) fn doubts(&self) -> impl Iterator<Item = &Doubt> {
        let of_points = self.points.iter().flat_map(|point| &point.doubts);
        self.doubts.iter().chain(of_points)
    }

    /// The property that it compares.
    pub fn comparison(&self) -> Option<&Comparison> {
        match &self.payload {
            Some(Payload::Comparison(comparison)) => Some(comparison),
            _ => None,
        }
    }
}

/// The claims about several runs.
#[derive(Debug, Clone, PartialEq)]
pub struct OfRuns {
    /// Claims about single runs, in the order of the runs.
    pub each: Vec<Vec<Claim>>,
    /// Claims about several runs together.
    pub across: Vec<Claim>,
}

/// All claims about runs. Deterministic. Where two runs contradict each other, both claims become
/// [`Difference::CannotTell`].
pub fn of_runs(runs: &[&Analysis]) -> OfRuns {
    let each = runs.iter().enumerate();
    let each = each.map(|(place, run)| of_run(run, place));
    let each: Vec<Vec<Claim>> = each.collect();
    let lengths: Vec<usize> = each.iter().map(Vec::len).collect();
    let mut all: Vec<Claim> = each.into_iter().flatten().collect();
    // Both write out all settings of every cell, to find pairs in different runs.
    if runs.len() > 1 {
        all.extend(random_across_runs(runs).into_iter().map(Claim::settled));
        all.extend(targets_across_runs(runs).into_iter().map(Claim::settled));
    }
    contradictions::reconcile(&mut all, runs);
    best::among_settings(&mut all);
    let mut all = all.into_iter();
    let each = lengths.into_iter();
    let each = each.map(|length| all.by_ref().take(length).collect());
    OfRuns {
        each: each.collect(),
        across: all.collect(),
    }
}

/// The claims of [`of_runs`] as one list.
pub fn claims(runs: &[&Analysis]) -> Vec<Claim> {
    let OfRuns { each, across } = of_runs(runs);
    each.into_iter().flatten().chain(across).collect()
}

fn of_run(run: &Analysis, place: usize) -> Vec<Claim> {
    let of = (run, place);
    let mut all = results(run, place);
    all.extend(weaknesses::unfinished(of));
    all.extend(weaknesses::definition_not_read(of));
    all.extend(weaknesses::order_of_cells(of));
    all.extend(weaknesses::gaps(of));
    all.extend(weaknesses::peers(of));
    all.extend(weaknesses::model(of));
    all.extend(weaknesses::over_the_network(of));
    all.extend(weaknesses::doubts(of));
    all.extend(weaknesses::requests_in_pieces(of));
    all.extend(weaknesses::not_durable(of));
    all.extend(ranks::stragglers(of));
    all.extend(ranks::imbalance(of));
    all.extend(ranks::caches_kept(of));
    all.extend(weaknesses::below_precision(of));
    all.extend(series::in_two_groups(of));
    all.extend(series::drift(of));
    all.extend(weaknesses::tail_unknown(of));
    all.extend(weaknesses::not_joined(of));
    all
}

/// Claims on what a run shows.
fn results(run: &Analysis, place: usize) -> Vec<Claim> {
    // Its cells are variants of two: what else tells them apart was chosen, and is not the question.
    if let Some(found) = causes::causes(run) {
        return found.claims((run, place));
    }
    let mut all = Vec::new();
    all.extend(rounds::rounds(run, place));
    all.extend(answers::verified(run, place));
    all.extend(answers::programs(run, place));
    all.extend(answers::load(run, place));
    all.extend(ways(run, place));
    all.extend(concurrency::too_few(run, place));
    all.extend(limit::of_faults(run, place));
    all.extend(comparisons(run, place).into_iter().map(Claim::settled));
    all.extend(best_of_curves(run, place));
    all.extend(change::changes(run, place));
    all.extend(longest_tail(run, place, |_| true));
    all.extend(stages::throttled(run, place));
    all.extend(stages::amplifications(run, place));
    all.extend(stages::time_by_layer(run, place));
    all.extend(series::steady(run, place));
    all.extend(series::block_apart(run, place));
    all.extend(limit::limits(run, place));
    all.extend(limit::of_requests(run, place));
    all.extend(concurrency::company(run, place).map(Claim::settled));
    all
}

/// A number of a claim.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Point {
    /// Meaning of the number.
    pub standing: Standing,
    /// Cell of the number; `null` for a number of several cells.
    pub cell: Option<CellId>,
    /// Cell that it is compared with, in a comparison: its value is `of`; `null` for other numbers.
    pub base: Option<CellId>,
    /// Host, or rank of a host, of the number; `null` for a number of all of them.
    pub client: Option<ClientName>,
    /// Beginning of a level; `null` for the first level and for other numbers.
    pub since: Option<Since>,
    /// Requests per second that were asked for; `null` without a given load.
    pub rate: Option<f64>,
    /// Size of the file that programs read, bytes; `null` for other numbers.
    pub size: Option<u64>,
    /// Suspects that its variant leaves out, or that it is about; absent for other numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suspects: Vec<String>,
    /// `throughput`, `IOPS`, `trials`, `times`, or another quantity: times are in ns, throughput in MB/s, sizes in bytes, shares from 0 to 1, also of a stage: `device`, or `layers` or `device or layers` if device mapper or md carried the requests.
    #[schemars(with = "String")]
    pub quantity: Quantity,
    /// Value of the point.
    pub value: f64,
    /// Its simultaneous 95 % interval, if it has one.
    pub interval: Option<(f64, f64)>,
    /// Number that the value is a part of, or the limit or the base's value that it is compared with; for an open suspect
    /// the blocks that would settle it.
    pub of: Option<f64>,
    /// Its ratio to the best point, or to the base; `null` for that point, for other kinds, and without an interval.
    pub ratio: Option<Estimate>,
    /// Doubts that could reverse the comparison with the best point.
    pub doubts: Vec<Doubt>,
}

/// Beginning of a level of throughput.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Since {
    /// Timed time since the beginning of the run or of the trial, ns.
    pub ns: u64,
    /// Bytes moved by then.
    pub bytes: f64,
    /// Kind of the bytes: written, or read where only reads changed.
    pub access: Access,
}

/// Quantity of a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quantity {
    /// Response of a cell.
    Of(Response),
    /// Number of things, by the word for one of them.
    Count(&'static str),
    /// Size, bytes.
    Bytes,
    /// Size that a user gave, bytes.
    Size,
    /// Requests per second that are asked for, or made.
    Rate,
    /// Blocks with this fault.
    Fault(FaultKind),
    /// Ratio of two values.
    Times,
    /// Share from 0 to 1.
    Share,
    /// Limit of a control group on this traffic, bytes or requests per second.
    Limit(Traffic),
    /// Share of a stage in a time, from 0 to 1, with the layers that carried it out.
    Stage(Stage, CarriedBy),
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Of(response) => to.collect_str(response),
            Self::Count(one) => to.serialize_str(&[one, "s"].concat()),
            Self::Fault(kind) => to.serialize_str(kind.name()),
            Self::Bytes | Self::Size => to.serialize_str("bytes"),
            Self::Rate => to.serialize_str("requests/s"),
            Self::Times => to.serialize_str("times"),
            Self::Share => to.serialize_str("share"),
            Self::Limit(what) => to.collect_str(what),
            Self::Stage(Stage::Device, CarriedBy::Layers) => to.serialize_str("layers"),
            Self::Stage(Stage::Device, CarriedBy::Both) => to.serialize_str("device or layers"),
            Self::Stage(stage, _) => to.collect_str(stage),
        }
    }
}

/// Meaning of a point in its claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Statement of the claim.
    Main,
    /// The best median of all.
    Best,
    /// Within [`MARGIN`] of every size that may be the best, even if shown to be worse.
    Near,
    /// Possibly the best: not shown to be worse than the size with the best median.
    Open,
    /// Shown to be worse than that size, or than the others.
    Worse,
    /// Not shown to be worse, although it is worse in each shared block: these are too few for an interval.
    WorseInEach,
    /// Shared blocks, of those that an interval takes.
    Measured,
    /// Apparently worse, but its evidence holds doubts that could reverse the result.
    Doubtful,
    /// Too few trials, or none.
    Unknown,
    /// A level of throughput.
    Level,
    /// Length of a level.
    Seen,
    /// A round, in the order of time.
    Round,
    /// Number of trials over which values are medians.
    MedianOf,
    /// The first tenth of a trial.
    First,
    /// The last tenth of a trial.
    Last,
    /// The lowest tenth of a trial.
    Lowest,
    /// The highest tenth of a trial.
    Highest,
    /// Cells, or settings, of which the same is true.
    Alike,
    /// Trials that were disturbed from outside.
    Disturbed,
    /// Trials that were disturbed, or during some of which the machine was suspended.
    Suspended,
    /// The least step that would have been found.
    Step,
    /// The least drift that would have been found.
    Drift,
    /// Cells that are not judged.
    NotJudged,
    /// Page faults of a trial.
    Faults,
    /// Cost of one page fault.
    Cost,
    /// The size at which half of a rate is reached.
    Half,
    /// Response times at the highest requested rate, which was held.
    HighestAsked,
    /// Response times at the highest rate that was held.
    HighestHeld,
    /// Response times at the highest rate that is not shown to be too high.
    NotTooHigh,
    /// Bytes that the page cache may have served, or held.
    Cached,
    /// Trials in which these are not known.
    CacheUnknown,
    /// Wrong data.
    Wrong,
    /// Overload that trials are too short to show, and their length.
    Hidden,
    /// Part that the trial itself wrote.
    Own,
    /// Time that the storage needed after a trial for writes in its cache, as a share of the timed span.
    Stored,
    /// Share of a stage in the time of all.
    Part,
    /// Largest share of a stage in the time of the slowest 1 %.
    Slowest,
    /// Syncs, and the journal commits that they waited for.
    Journalled,
    /// Journal commits that several syncs waited for.
    Shared,
    /// Values that are shown to differ.
    Differs,
    /// Values that are shown to differ in the opposite direction.
    Opposite,
    /// Values without a shown difference.
    NotFound,
    /// Values that differ by at most the margin.
    Equivalent,
    /// Size from which on all of them are shown to be equivalent.
    From,
    /// Size from which on the ratio of the medians alone is within the margin.
    Alone,
    /// Times of the largest size.
    AsMeasured,
    /// Bytes that a program asked for.
    Asked,
    /// Bytes that storage carried for a program.
    Carried,
    /// The least that storage carried for a program.
    CarriedAtLeast,
    /// Bytes that may have been read from holes, at most.
    Holes,
    /// Bytes that may have been read from pipes, at most.
    Piped,
    /// Bytes that had still to be written back.
    Owed,
    /// Bytes that were discarded before they were written.
    Discarded,
    /// Syncs within which the disk completed a cache flush.
    Flushed,
    /// Syncs on a disk without a volatile cache.
    Uncached,
    /// Time that was traced.
    Traced,
    /// Events of a trace that are missing.
    Lost,
    /// Reads of others, or of all processes.
    Read,
    /// Writes of others, or of all processes.
    Written,
    /// Writes of others, or of the file system.
    WrittenBySystem,
    /// Written bytes that may have been dirty before an observation, at most.
    DirtyBefore,
    /// Requests in flight on average.
    InFlight,
    /// Share of the time in which a request was in flight.
    Busy,
    /// Bytes that a program sent to storage, to an unknown place.
    Sent,
    /// Processes that have ended.
    Ended,
    /// Throughput that a program reports.
    Rate,
    /// The most that devices carried of it.
    RateAtMost,
    /// Blocks in which a difference is there again.
    Reproduced,
    /// Blocks in which a difference is absent, reversed, or less than half of the original.
    NotReproduced,
    /// Share of the original difference that is there again, if that may be more than nothing.
    Remains,
    /// Share of the difference that remains without the suspects that were tried.
    Unexplained,
    /// Time of a trial that is shorter than in the run that showed the difference.
    Shorter,
    /// Idle time before each trial.
    Idle,
    /// Share that is gone without a suspect: half of the difference or more.
    Cause,
    /// Share that is gone without a suspect, without which the difference is reversed.
    Reverses,
    /// Share that is gone without a suspect alone, although it suffices to make the difference.
    Joint,
    /// Share that is gone without all joint causes.
    Together,
    /// Share that is gone without all joint causes, without which the difference is reversed.
    TogetherReverse,
    /// A part that is gone without a suspect.
    Contributes,
    /// Share that is gone without a suspect after all others have been removed, and not before.
    ByItself,
    /// Share that is gone without a suspect: none, within a quarter of the difference or the margin.
    Cleared,
    /// Share that is gone without a cleared suspect, above the margin.
    Minor,
    /// Neither shown nor excluded: too few blocks, too much noise, or doubts.
    Undecided,
    /// Undecided in so few blocks: a number of blocks that would settle it is known.
    MoreBlocks,
    /// Share that is gone without a suspect, less than half of it on the side that the suspect acts on.
    OtherSide,
    /// Trials in which a suspect was not shown to be removed count for nothing.
    NotTried,
}

impl Point {
    /// A number without an interval.
    pub fn new(standing: Standing, quantity: Quantity, value: f64) -> Self {
        Self {
            standing,
            cell: None,
            base: None,
            client: None,
            since: None,
            rate: None,
            size: None,
            suspects: Vec::new(),
            quantity,
            value,
            interval: None,
            of: None,
            ratio: None,
            doubts: Vec::new(),
        }
    }

    /// A number that the claim states first.
    pub fn main(quantity: Quantity, value: f64) -> Self {
        Self::new(Standing::Main, quantity, value)
    }

    /// A number of things.
    pub fn count(standing: Standing, one: &'static str, value: usize) -> Self {
        Self::new(standing, Quantity::Count(one), value as f64)
    }

    /// The value as a part of a whole, or compared with a limit.
    pub fn of(self, whole: f64) -> Self {
        Self {
            of: Some(whole),
            ..self
        }
    }
}
