//! Claims as data for other programs, each with its sentence. One function makes them, for every format that has JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;

use iolab_analysis::analysis::{Analysis, Response};
use iolab_analysis::bends::Bends;
use iolab_analysis::claim::{
    self, Best, Candidate, CellId, Claim, Comparison, Contrast, Difference, Effect, Estimate,
    OfRuns, Role, Standing,
};
use iolab_record::ShownLatency;
use iolab_workload::escape_control::escape_control;
use schemars::JsonSchema;
use serde::Serialize;

use crate::findings::FindingKind;
use crate::findings::sentences::{self, WrittenClaims};
use crate::notation::in_text;
use crate::ratio_data::Ratio;

mod evidence;
mod remarks;
mod side_doubt;

use evidence::{
    BentCurveData, ChangeData, CourseData, FixedCostData, GradualData, LoadData, PreparationData,
    ProgramsData, QueuedData, ReproductionData, RoundsData, StandardData, SteadyData, SuspectsData,
    TimeByLayerData, TogetherData, TooFewData, VerifiedData,
};
pub(crate) use evidence::{
    ClaimedData, DeviceLoadData, DirectionData, OtherCommandData, OtherProcessData, OtherUseData,
    OverstatedData, ServedData, SyncsData,
};
pub(crate) use remarks::{RemarkData, remarks};
pub(crate) use side_doubt::Against;

/// What runs show: a statement about cells, with the numbers that it rests on and the sentence that iolab prints for it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Claim")]
pub(crate) struct ClaimData {
    /// What is claimed: `random-against-sequential`, `writes-against-reads`, `scaling` (each level of a count or size with the
    /// least), `levels` (one level of a factor with another), `best-size` (where curves over I/O sizes are best), `fastest-way` (which of the combinations that an experiment names is best), `long-tail`
    /// (slow requests far from the median one); `verified`, `verify-failed`, `programs-differ`, `programs-significance`,
    /// `programs-equivalent`, `load`, `serialised`, `preparation`, `level-over-run`, `level-within-trials`, `level-in-warm-up`,
    /// `no-level-change` (no trial of a soak changes its level),
    /// `steady-state`, `not-written-over`, `not-steady`, `steady-rounds`, `rounds-alike` (but not shown to be steady), `rounds-not-steady`,
    /// `rounds-not-judged` (rounds that are repeated until they are steady), `standard` (a test of a standard without rounds), `queued`, `fixed-costs`, `bends`, `shared-limit`, `drift`, `dependence`,
    /// `two-groups`, `time-by-layer` (which layer takes the time of
    /// requests); of `iolab why`: `phenomenon`, `cause`, `joint-cause`, `contributes`, `cleared`, `suspects-open`,
    /// `suspects-not-tried`; of `iolab witness`: `served-by` (where bytes came from or went to), `cache-flushes`, `syncs`, `other-use`,
    /// `more-than-devices` (a program says that it moved more than devices can have carried), `nothing-of-note`, `device-load`, `most-io`.
    pub(crate) kind: String,
    /// What its sentence is for.
    pub(crate) purpose: Purpose,
    /// Whether the claim answers a question, changes a decision, or explains another claim.
    pub(crate) role: Role,
    /// Whether its sentence is among the five at most of its run, or of several runs together, that matter most.
    pub(crate) headline: bool,
    /// Runs that it rests on, as `run` of the cells names them; none of `iolab witness`.
    pub(crate) runs: Vec<String>,
    /// What iolab prints for it; levels that are equivalent to the same one may share a sentence, and so may claims that show nothing.
    pub(crate) sentence: String,
    /// Estimator and intervals that it rests on, in words.
    pub(crate) basis: String,
    /// Cells and numbers that it rests on.
    pub(crate) evidence: Evidence,
}

/// Cells and numbers that a claim rests on, by their type.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Evidence {
    /// Pairs of cells that differ in one thing.
    Comparison {
        /// Factor that is compared, of `scaling` and `levels`; `null` for other kinds.
        factor: Option<String>,
        /// Share of reads among the requests, %, of `random-against-sequential`; `null` for other kinds.
        read_percent: Option<u8>,
        /// Pattern of the requests, of `writes-against-reads`; `null` for other kinds.
        pattern: Option<String>,
        /// Quantity of the medians.
        quantity: QuantityData,
        /// The pairs, in the order of the experiment.
        effects: Vec<EffectData>,
    },
    /// Curves over I/O sizes.
    BestSize {
        /// All curves of one run, or the only curve of each of several.
        curves: Vec<CurveData>,
    },
    /// Ways to do the same that an experiment names one by one.
    Ways {
        /// Quantity of the medians.
        quantity: QuantityData,
        /// The way with the best median; whether it is shown to be best is up to the others.
        best: Option<CellData>,
        /// All of them, in the order of the experiment.
        ways: Vec<SizeData>,
    },
    /// Slow requests far from the median one.
    LongTail {
        /// The cell with the longest tail.
        cell: CellData,
        /// 99th percentile of latency over the median one of the same trial: geometric mean over the trials.
        ratio: f64,
        /// Low end of the interval of the ratio, which holds in 95 % together with those of all cells.
        ratio_low: f64,
        /// High end of that interval.
        ratio_high: f64,
        /// Median latency, ns: median over the trials.
        p50_ns: f64,
        /// 99th percentile of latency, ns: median over the trials.
        p99_ns: f64,
        /// Cells whose tail is shown to be long.
        cells: usize,
        /// Measured cells that are not judged: disturbed, with several operations, behind their rate, with fewer than six trials, or with too few
        /// requests in each for a 99th percentile.
        unjudged: usize,
    },
    /// Which layer takes the time of requests, and of the slowest ones.
    TimeByLayer(TimeByLayerData),
    /// Data that was read back after it was written.
    Verified(VerifiedData),
    /// Two programs over the sizes of what they read.
    Programs(ProgramsData),
    /// Response times at given rates.
    Load(LoadData),
    /// Fewer requests at once than were asked for.
    TooFew(TooFewData),
    /// Untouched buffers against zeroed ones.
    Preparation(PreparationData),
    /// Throughput that changes its level for good.
    Change(ChangeData),
    /// Throughput that is not constant over an only trial, without a step.
    Gradual(GradualData),
    /// Trials of a soak that keep their level.
    NoChange {
        /// The cells, of which each has one trial.
        cells: Vec<CellData>,
        /// A rise or a fall by this factor that lasts for a quarter of a trial would have been found in each of them; `null` where one by 20
        /// would not.
        factor: Option<f64>,
        /// A steady rise or fall by this factor over a whole trial would have been found in each of them; `null` where one by 20 would not.
        drift: Option<f64>,
        /// Throughput of the first interval over that of the rest, in the cell in which it is furthest from it; `null` where it lies apart in
        /// none.
        began: Option<f64>,
    },
    /// The last trials of cells that write.
    Steady(SteadyData),
    /// Rounds that were repeated until they were steady.
    Rounds(RoundsData),
    /// A test of a standard that a run without such rounds follows.
    Standard(StandardData),
    /// What more requests in flight gained.
    Queued(QueuedData),
    /// Time of a request as a fixed cost and a rate.
    FixedCosts {
        /// The curves that the model describes.
        curves: Vec<FixedCostData>,
    },
    /// Where curves over I/O sizes bend.
    Bends {
        /// The curves with a bend.
        curves: Vec<BentCurveData>,
    },
    /// What groups reach at once, against each alone.
    Together(TogetherData),
    /// Trials that drift, depend on each other or form two groups.
    Course(CourseData),
    /// Whether a difference that another run showed is there again.
    Phenomenon(ReproductionData),
    /// What interventions show of suspects.
    Suspects(SuspectsData),
    /// An observed program moved nothing of note.
    NothingOfNote,
    /// Where the bytes of an observed program came from, or went to.
    Served(ServedData),
    /// Flushes of a write cache while an observed program wrote.
    Flushes {
        /// The disks that completed any, by name.
        devices: Vec<String>,
        /// Flushes that they completed, of all processes.
        flushes: u64,
    },
    /// Syncs of an observed program.
    Syncs(SyncsData),
    /// What others did with the devices of an observed program.
    OtherUse(OtherUseData),
    /// A program says that it moved more than devices can have carried.
    Overstated(OverstatedData),
    /// What a device that was watched alone did.
    DeviceLoad(DeviceLoadData),
    /// The processes of one name that did most I/O meanwhile.
    MostIo(OtherCommandData),
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Quantity")]
pub(crate) struct QuantityData {
    /// `throughput`, `IOPS`, `median latency`, `elapsed time`, or another one of `--metric`.
    pub(crate) name: String,
    /// `MB/s`, `IOPS` or `ns`.
    pub(crate) unit: String,
    /// `read`, `write` or `trim`: whose latency it is, where cells of the run mix operations; `null` otherwise.
    pub(crate) operation: Option<String>,
    /// Group of workers whose quantity it is; `null` for whole trials.
    pub(crate) group: Option<String>,
}

/// What a sentence is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Purpose {
    /// It answers a question.
    Result,
    /// It says how far the numbers can be trusted.
    Doubt,
    /// It says what the numbers do not tell.
    Limit,
}

/// A cell, with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Cell")]
pub(crate) struct CellData {
    /// Its run, as `run` of the cells names it.
    pub(crate) run: String,
    /// Its id in the run file, as `cell` of the cells has it.
    pub(crate) cell: i64,
    /// Level of each factor of its experiment, as it is written: `4KiB`.
    pub(crate) levels: BTreeMap<String, String>,
}

/// Two cells that differ in what is asked about, and in nothing else.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Effect")]
pub(crate) struct EffectData {
    /// The cell that is compared with.
    pub(crate) base: CellData,
    /// The cell that is compared with it.
    pub(crate) other: CellData,
    /// Level of the base in what is asked about.
    pub(crate) base_level: String,
    /// Level of the other in what is asked about.
    pub(crate) other_level: String,
    /// Levels that both share and other pairs do not.
    pub(crate) held: BTreeMap<String, String>,
    /// Median of the base, in the unit of the quantity.
    pub(crate) base_median: f64,
    /// Median of the other, in the unit of the quantity.
    pub(crate) other_median: f64,
    /// What is claimed of the other against the base.
    pub(crate) relation: Relation,
    #[serde(flatten)]
    pub(crate) ratio: Ratio,
    /// Blocks that both share and were compared in; `null` where they share too few, or belong to two runs.
    pub(crate) blocks: Option<usize>,
    /// Doubts that could reverse it; then `relation` is `cannot_tell`.
    pub(crate) doubts: Vec<Against>,
}

/// How one quantity relates to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Relation {
    /// It is higher.
    Higher,
    /// It is lower.
    Lower,
    /// It differs by at most the margin (of the claims on a run 5 %).
    Equivalent,
    /// No difference was found: the interval holds 1, and more than the margin on a side.
    NoDifferenceFound,
    /// Too few trials for an interval, or the evidence holds something that could turn the claim round.
    CannotTell,
}

/// A curve over I/O sizes, and where it is best.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Curve")]
pub(crate) struct CurveData {
    /// Quantity of the medians.
    pub(crate) quantity: QuantityData,
    /// Level of each factor that the curve holds.
    pub(crate) held: BTreeMap<String, String>,
    /// The size with the best median, bytes; whether it is shown to be best is up to the others.
    pub(crate) best_bs_bytes: Option<u64>,
    /// Its sizes in ascending order.
    pub(crate) sizes: Vec<SizeData>,
}

/// One size of a curve.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Size")]
pub(crate) struct SizeData {
    /// Its cell.
    pub(crate) cell: CellData,
    /// The I/O size, bytes.
    pub(crate) bs_bytes: u64,
    /// Its median, in the unit of the quantity.
    pub(crate) median: f64,
    /// Median of the lower one of two groups, where its trials form these: its median may be that of no trial.
    pub(crate) low_group_median: Option<f64>,
    /// Median of the upper group.
    pub(crate) high_group_median: Option<f64>,
    /// How it compares with the other sizes.
    pub(crate) standing: StandingName,
    /// Its quantity over that of the size with the best median.
    #[serde(flatten)]
    pub(crate) ratio: Ratio,
    /// Blocks that both sizes share and were compared in.
    pub(crate) blocks: Option<usize>,
    /// Whether it is worse in each of these blocks, which are too few to show that among all pairs; then `standing` is `may_be_best`.
    pub(crate) worse_in_each_block: bool,
    /// Doubts that could reverse it; then `standing` is `cannot_tell`.
    pub(crate) doubts: Vec<Against>,
}

/// How a size compares with the others of its curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Standing")]
pub(crate) enum StandingName {
    /// It comes within 5 % of each size that may be best.
    Near,
    /// It may be the best one: no difference from that size was found.
    MayBeBest,
    /// It is worse than the size with the best median.
    Worse,
    /// Another size looks better, and the evidence holds something that could turn that round.
    CannotTell,
    /// Too few trials.
    TooFewTrials,
}

/// A run with its id, and where its curves bend.
#[derive(Debug, Clone)]
pub(crate) struct IdentifiedRun<'a> {
    pub(crate) id: String,
    pub(crate) analysis: &'a Analysis,
    pub(crate) bends: Cow<'a, Bends>,
}

/// All claims of some runs in the order in which they are shown: those of each run, and then what several show together.
pub(crate) fn of_runs(runs: &[IdentifiedRun<'_>]) -> Vec<ClaimData> {
    let OfRuns { each, across } = claim::of_runs(&analyses(runs));
    let mut all = Vec::new();
    for (place, (mut claims, run)) in each.into_iter().zip(runs).enumerate() {
        claims.extend(claim::bent(run.analysis, &run.bends, place));
        all.extend(in_order(&claims, runs));
    }
    all.extend(in_order(&across, runs));
    all
}

fn purpose(kind: FindingKind) -> Purpose {
    match kind {
        FindingKind::Result => Purpose::Result,
        FindingKind::Doubt => Purpose::Doubt,
        FindingKind::Limit => Purpose::Limit,
    }
}

fn analyses<'a>(runs: &[IdentifiedRun<'a>]) -> Vec<&'a Analysis> {
    runs.iter().map(|run| run.analysis).collect()
}

fn in_order(claims: &[Claim], runs: &[IdentifiedRun<'_>]) -> Vec<ClaimData> {
    let mut headlines = claim::headlines(claims);
    headlines.truncate(claim::HEADLINES_MAX);
    let (shown, not) = sentences::written(claims, &analyses(runs));
    let of_one = |written: &WrittenClaims<'_>| -> Vec<ClaimData> {
        let is_first = written.claims.iter().any(|one| headlines.contains(one));
        let data = |claim: &&Claim| Runs(runs).claim(claim, written, is_first);
        written.claims.iter().map(data).collect()
    };
    shown.iter().chain(&not).flat_map(of_one).collect()
}

/// The runs that claims name by their places.
struct Runs<'a>(&'a [IdentifiedRun<'a>]);

impl Runs<'_> {
    fn claim(&self, claim: &Claim, written: &WrittenClaims<'_>, headline: bool) -> ClaimData {
        let ids = claim.runs();
        ClaimData {
            kind: claim.kind().0.to_owned(),
            purpose: purpose(written.finding.rule.kind),
            role: claim.role(),
            headline,
            runs: ids.into_iter().map(|run| self.run(run)).collect(),
            sentence: clean(&in_text(&written.finding.text)),
            basis: written.finding.rule.basis.to_owned(),
            evidence: self.evidence(claim),
        }
    }

    fn evidence(&self, claim: &Claim) -> Evidence {
        match claim {
            Claim::Comparison(comparison) => self.comparison(comparison),
            Claim::Best(curves) => Evidence::BestSize {
                curves: curves.iter().map(|best| self.curve(best)).collect(),
            },
            Claim::LongTail(tail) => Evidence::LongTail {
                cell: self.cell(tail.cell),
                ratio: tail.ratio,
                ratio_low: tail.interval.0,
                ratio_high: tail.interval.1,
                p50_ns: tail.quantiles.0,
                p99_ns: tail.quantiles.1,
                cells: tail.cells,
                unjudged: tail.unjudged,
            },
            Claim::TimeByLayer(time) => Evidence::TimeByLayer(TimeByLayerData::of(time, self)),
            Claim::Verified(verified) => Evidence::Verified(VerifiedData::of(verified)),
            Claim::Programs(programs) => Evidence::Programs(ProgramsData::of(programs)),
            Claim::Load(load) => Evidence::Load(LoadData::of(load)),
            Claim::TooFew(few) => Evidence::TooFew(TooFewData::of(few, self)),
            Claim::Preparation(untouched) => Evidence::Preparation(PreparationData::of(untouched)),
            Claim::Change(change) => Evidence::Change(ChangeData::of(change, self)),
            Claim::Gradual(change) => Evidence::Gradual(GradualData::of(change, self)),
            Claim::NoChange(kept) => Evidence::NoChange {
                cells: kept.cells.iter().map(|cell| self.cell(*cell)).collect(),
                factor: kept.factor,
                drift: kept.drift,
                began: kept.began.map(|(_, first)| first.ratio),
            },
            Claim::Steady(steady) => Evidence::Steady(SteadyData::of(steady, self)),
            Claim::Rounds(rounds) => Evidence::Rounds(RoundsData::of(rounds, self)),
            Claim::Standard(found) => Evidence::Standard(StandardData::of(found)),
            Claim::Queued(queued) => Evidence::Queued(QueuedData::of(queued, self)),
            Claim::Ways(ways) => Evidence::Ways {
                quantity: self.quantity(ways.response, ways.candidates.first().map(|one| one.cell)),
                best: ways
                    .candidates
                    .get(ways.best)
                    .map(|top| self.cell(top.cell)),
                ways: self.curve(ways).sizes,
            },
            Claim::FixedCosts(costs) => Evidence::FixedCosts {
                curves: costs.curves.iter().map(FixedCostData::of).collect(),
            },
            Claim::Bent(bent) => Evidence::Bends {
                curves: bent.curves.iter().map(BentCurveData::of).collect(),
            },
            Claim::Together(together) => Evidence::Together(TogetherData::of(together, self)),
            Claim::Course(course) => Evidence::Course(CourseData::of(course, self)),
            Claim::Reproduced(found) => Evidence::Phenomenon(ReproductionData::of(found)),
            Claim::Suspects(found) => Evidence::Suspects(SuspectsData::of(found)),
        }
    }

    fn comparison(&self, comparison: &Comparison) -> Evidence {
        let (mut compared, mut read_percent, mut pattern) = (None, None, None);
        match &comparison.contrast {
            Contrast::Pattern { read_percent: own } => read_percent = Some(*own),
            Contrast::Direction { pattern: own } => pattern = Some(own.to_string()),
            Contrast::Ordered { factor } | Contrast::Levels { factor, .. } => {
                compared = Some(clean(factor));
            }
        }
        let first = comparison.effects.first();
        Evidence::Comparison {
            factor: compared,
            read_percent,
            pattern,
            quantity: self.quantity(comparison.response, first.map(|effect| effect.base)),
            effects: comparison
                .effects
                .iter()
                .map(|one| self.effect(one))
                .collect(),
        }
    }

    /// What was measured; of a run of groups, the group of this cell's run.
    fn quantity(&self, response: Response, cell: Option<CellId>) -> QuantityData {
        let run = cell.and_then(|cell| self.0.get(cell.run));
        let group = run.and_then(|run| run.analysis.response_group.as_deref());
        QuantityData {
            name: response.to_string(),
            unit: response.unit().to_owned(),
            operation: run.filter(|_| response.is_latency()).and_then(|run| {
                match run.analysis.timed {
                    ShownLatency::Own => None,
                    ShownLatency::Of(operation) => Some(operation.to_string()),
                }
            }),
            group: group.map(clean),
        }
    }

    fn run(&self, place: usize) -> String {
        let run = self.0.get(place);
        run.map_or_else(String::new, |run| run.id.clone())
    }

    fn cell(&self, id: CellId) -> CellData {
        let run = self.0.get(id.run);
        let levels = run.map_or_else(BTreeMap::new, |run| {
            let run = run.analysis;
            named(run.factors.iter().zip(run.levels_of(id.cell)))
        });
        CellData {
            run: self.run(id.run),
            cell: id.cell,
            levels,
        }
    }

    fn effect(&self, effect: &Effect) -> EffectData {
        EffectData {
            base: self.cell(effect.base),
            other: self.cell(effect.other),
            base_level: clean(&effect.levels.0),
            other_level: clean(&effect.levels.1),
            held: held(&effect.held),
            base_median: effect.medians.0,
            other_median: effect.medians.1,
            relation: Relation::of(effect.difference),
            ratio: Ratio::of(Some(&effect.estimate)),
            blocks: effect.estimate.blocks,
            doubts: effect.doubts.iter().map(Against::of).collect(),
        }
    }

    fn curve(&self, best: &Best) -> CurveData {
        let size = |one: &Candidate| SizeData {
            cell: self.cell(one.cell),
            bs_bytes: one.bs,
            median: one.median,
            low_group_median: one.groups.map(|(low, _)| low),
            high_group_median: one.groups.map(|(_, high)| high),
            standing: standing(one.standing),
            ratio: Ratio::of(one.of_best.as_ref()),
            blocks: one.of_best.and_then(|estimate| estimate.blocks),
            worse_in_each_block: one.is_worse_in_each_block,
            doubts: one.doubts.iter().map(Against::of).collect(),
        };
        let first = best.candidates.first();
        CurveData {
            quantity: self.quantity(best.response, first.map(|one| one.cell)),
            held: held(&best.held),
            best_bs_bytes: best.candidates.get(best.best).map(|top| top.bs),
            sizes: best.candidates.iter().map(size).collect(),
        }
    }
}

impl Relation {
    pub(crate) fn of(difference: Difference) -> Self {
        match difference {
            Difference::Higher => Self::Higher,
            Difference::Lower => Self::Lower,
            Difference::Equivalent => Self::Equivalent,
            Difference::NotFound => Self::NoDifferenceFound,
            Difference::CannotTell => Self::CannotTell,
        }
    }
}

fn standing(standing: Standing) -> StandingName {
    match standing {
        Standing::Near => StandingName::Near,
        Standing::Open => StandingName::MayBeBest,
        Standing::Worse => StandingName::Worse,
        Standing::Doubtful => StandingName::CannotTell,
        Standing::Unknown => StandingName::TooFewTrials,
    }
}

fn ends(estimate: &Estimate) -> (Option<f64>, Option<f64>) {
    estimate.interval.unzip()
}

fn held(levels: &[(String, String)]) -> BTreeMap<String, String> {
    named(levels.iter().map(|(factor, level)| (factor, level)))
}

fn named<'a>(levels: impl Iterator<Item = (&'a String, &'a String)>) -> BTreeMap<String, String> {
    levels
        .map(|(factor, level)| (clean(factor), clean(level)))
        .collect()
}

/// As columns and levels of the rows are written.
fn clean(text: &str) -> String {
    escape_control(text).into_owned()
}
