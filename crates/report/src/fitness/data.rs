//! The answer of `iolab fit` as data for other programs.

use std::time::Duration;

use iolab_analysis::doubt::{Direction, Doubt, Doubts};
use iolab_analysis::fitness::{Answer, Change, LevelAnswer};
use iolab_analysis::io_limit::ReachedLimit;
use iolab_workload::service_level::Need;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Fitness, Measured, WorkloadResult, unit, why};
use crate::document_header::{IOLAB_VERSION, SCHEMA};
use crate::doubt;

/// JSON document of `iolab fit --format json`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FitDocument<'a> {
    /// Version of this schema: it rises where a name vanishes or changes its meaning, not where one is added.
    schema: u32,
    /// Version of iolab that wrote this.
    iolab_version: &'static str,
    /// Name of the requirement.
    requirement: &'a str,
    /// Question of the requirement.
    question: &'a str,
    /// The target.
    target: &'a str,
    /// Answer for all levels of all workloads together.
    #[schemars(extend("enum" = Answer::NAMES))]
    answer: &'static str,
    /// Aspects that the requirement leaves out, in words.
    not_covered: &'a str,
    /// Aspects that the answer does not cover on this target, in words.
    limits: Vec<String>,
    /// The workloads, in the order of the requirement.
    workloads: Vec<Workload<'a>>,
}

/// A workload of a requirement.
#[derive(Serialize, JsonSchema)]
struct Workload<'a> {
    /// Name of the workload.
    workload: &'a str,
    /// Whether all of it was measured: its run is done, and loaded the storage for as long as requested.
    complete: bool,
    /// The load that was run, in words.
    ran: &'a str,
    /// Time under load, ns.
    load_ns: u64,
    /// Bytes that its trials wrote; 0 on a model, which stores none.
    written_bytes: u64,
    /// Doubts about its answers.
    doubts: Vec<DoubtData<'a>>,
    /// Run file of the workload.
    run_file: &'a str,
    /// Levels of the workload.
    levels: Vec<Level<'a>>,
}

/// Something in the evidence that makes storage look better or worse than it is.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Doubt")]
struct DoubtData<'a> {
    /// Name of the doubt: METHODS.md, "Doubts", has the rules.
    doubt: &'a str,
    /// The doubt as a sentence.
    text: String,
    /// Answers that the doubt contradicts: `yes`, `no`, or both. Doubts that turn no answer are listed too.
    against: Vec<&'static str>,
    /// Trials that the doubt concerns.
    trials: usize,
    /// All trials of the workload.
    of_trials: usize,
    /// The greatest value in any trial: a share, or ns of `suspended`; `null` where there is none.
    worst: Option<f64>,
    /// Advice on the doubt; `null` where nothing is known to help.
    remedy: Option<String>,
}

/// A level of a workload, with what was measured.
#[derive(Serialize, JsonSchema)]
struct Level<'a> {
    /// The level as it is written: `syncs.p99<10ms`.
    level: String,
    /// Bound of the level, in `unit`.
    limit: f64,
    /// Unit of the numbers: `ns`, `1/s` or `MB/s`.
    unit: &'static str,
    /// The measured quantity, in `unit`; `null` without requests.
    measured: Option<f64>,
    /// Low end of its interval, in `unit`.
    low: Option<f64>,
    /// High end of its interval, in `unit`; `null` where too few requests were measured.
    high: Option<f64>,
    /// Confidence of the interval, a share.
    confidence: f64,
    /// Requests that the answer rests on.
    requests: u64,
    /// Trials that the answer rests on.
    trials: usize,
    /// Whether the level holds.
    #[schemars(extend("enum" = Answer::NAMES))]
    answer: &'static str,
    /// The answer before doubts.
    #[schemars(extend("enum" = Answer::NAMES))]
    as_measured: &'static str,
    /// Names of the doubts that turned the answer into `cannot tell`.
    turned_by: Vec<&'a str>,
    /// Limit of control groups that the load reached, for a `no`; `null` otherwise.
    cause: Option<Cause>,
    /// The greatest share of trials that may miss the level although it holds, by what `trials` show, with 95 %
    /// confidence. `null` unless the answer is `yes`, and where so few stalls cannot make the level fail.
    unseen_stalls: Option<f64>,
    /// Reason why `as_measured` is `cannot tell`; empty otherwise.
    why: &'static str,
    /// The last lasting change in the course of the load; `null` without one.
    change: Option<ChangeData>,
    /// The document that states the level, or a note that there is none.
    source: &'a str,
    /// Quotation from `source`; empty without one.
    wording: &'a str,
    /// Change that would make a `no` a `yes`.
    remedy: &'a str,
}

/// A limit of control groups.
#[derive(Serialize, JsonSchema)]
struct Cause {
    /// The limited traffic: `rbps`, `wbps` (bytes per second that are read, written), `riops`, `wiops` (requests
    /// per second).
    what: &'static str,
    /// The bound, per second.
    per_second: u64,
    /// The limit in words.
    text: String,
}

/// A lasting change in the course of the load.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Change")]
struct ChangeData {
    /// Time under load before it, ns.
    after_ns: u64,
    /// Bytes that were moved before it.
    after_bytes: u64,
    /// Median over the trials before it, in the unit of the level.
    from: f64,
    /// Median over the trials since, in the unit of the level.
    to: f64,
}

impl<'a> FitDocument<'a> {
    pub(super) fn of(fitness: &'a Fitness) -> Self {
        Self {
            schema: SCHEMA,
            iolab_version: IOLAB_VERSION,
            requirement: &fitness.requirement,
            question: &fitness.question,
            target: &fitness.target,
            answer: fitness.answer().name(),
            not_covered: &fitness.not,
            limits: fitness.limits_of_load(),
            workloads: fitness
                .found
                .iter()
                .map(|found| Workload::of(found, fitness.hold))
                .collect(),
        }
    }
}

impl<'a> Workload<'a> {
    fn of(found: &'a WorkloadResult, hold: Duration) -> Self {
        let levels = found.found.levels.iter().zip(&found.needs);
        let doubts = &found.found.doubts;
        Self {
            workload: &found.workload,
            complete: found.measured == Measured::Whole && !found.is_short_of(hold),
            ran: &found.ran,
            load_ns: found.found.load_ns,
            written_bytes: found.written_bytes,
            doubts: doubts
                .all
                .iter()
                .map(|doubt| DoubtData::of(doubt, doubts))
                .collect(),
            run_file: &found.file,
            levels: levels
                .map(|(answered, need)| Level::of(found, answered, need))
                .collect(),
        }
    }
}

impl<'a> Level<'a> {
    fn of(found: &WorkloadResult, answered: &'a LevelAnswer, need: &'a Need) -> Self {
        let judged = &answered.judged;
        let cause = found.found.cause(answered);
        Self {
            level: judged.level.to_string(),
            limit: judged.level.limit(),
            unit: unit(&judged.level),
            measured: judged.estimate,
            low: judged.low,
            high: judged.high,
            confidence: 0.95,
            requests: judged.requests,
            trials: judged.trials,
            answer: found.answer(answered).name(),
            as_measured: judged.answer.name(),
            turned_by: answered.turned_by.iter().map(|by| by.what.name()).collect(),
            unseen_stalls: match found.answer(answered) {
                Answer::Yes => answered.unseen_stalls().map(|unseen| unseen.share),
                Answer::No | Answer::CannotTell => None,
            },
            why: why(judged),
            change: judged.change.as_ref().map(ChangeData::of),
            source: &need.source,
            wording: &need.wording,
            remedy: match cause {
                Some(_) => doubt::RAISE_LIMIT,
                None => &need.remedy,
            },
            cause: cause.as_ref().map(Cause::of),
        }
    }
}

impl<'a> DoubtData<'a> {
    fn of(doubt: &'a Doubt, all: &Doubts) -> Self {
        let turns = |direction, answer: Answer| {
            let turns = doubt.what.turns(direction);
            turns.then_some(answer.name())
        };
        let against = [
            turns(Direction::AtLeast, Answer::Yes),
            turns(Direction::AtMost, Answer::No),
        ];
        Self {
            doubt: doubt.what.name(),
            text: doubt::words(doubt, all),
            against: against.into_iter().flatten().collect(),
            trials: doubt.samples.len(),
            of_trials: all.trials,
            worst: doubt.extent,
            remedy: doubt::remedy(doubt.what),
        }
    }
}

impl Cause {
    fn of(limit: &ReachedLimit) -> Self {
        Self {
            what: limit.what.name(),
            per_second: limit.per_second,
            text: format!(
                "this container is limited to {}",
                limit.what.format(limit.per_second)
            ),
        }
    }
}

impl ChangeData {
    fn of(change: &Change) -> Self {
        Self {
            after_ns: change.after_ns,
            after_bytes: change.after_bytes,
            from: change.from,
            to: change.to,
        }
    }
}
