//! The answer of `iolab fit` as data for other programs.

use iolab_analysis::doubt::{Doubt, DoubtKind};
use iolab_analysis::fitness::{Answer, Judged, LevelAnswer};
use iolab_analysis::io_limit::ReachedLimit;
use iolab_workload::service_level::Need;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Fitness, WorkloadRun};
use iolab_report::data_column::{IOLAB_VERSION, SCHEMA};
use iolab_report::doubt;

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
    answer: Answer,
    /// Aspects that the requirement leaves out, in words.
    not_covered: &'a str,
    /// Aspects that the answer does not cover on this target, in words.
    limits: Vec<String>,
    /// The workloads, in the order of the requirement.
    workloads: Vec<Workload<'a>>,
}

/// A workload of a requirement.
#[derive(Default, Serialize, JsonSchema)]
struct Workload<'a> {
    /// Name of the workload.
    workload: &'a str,
    /// Whether all of it was measured: its run is done, and loaded the storage for as long as requested.
    complete: bool,
    /// The load that was run, in words.
    ran: String,
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
#[schemars(rename = "DoubtOfTrials")]
struct DoubtData<'a> {
    #[serde(flatten)]
    doubt: &'a Doubt,
    /// The doubt as a sentence.
    text: String,
    /// Advice on the doubt; `null` where nothing is known to help.
    remedy: Option<String>,
}

/// A level of a workload, with what was measured.
#[derive(Serialize, JsonSchema)]
struct Level<'a> {
    #[serde(flatten)]
    judged: &'a Judged,
    /// Whether the level holds.
    answer: Answer,
    /// Names of the doubts that turned the answer into `cannot tell`.
    turned_by: Vec<DoubtKind>,
    /// Limit of control groups that the load reached, for a `no`; `null` otherwise.
    cause: Option<ReachedLimit>,
    /// The document that states the level, or a note that there is none.
    source: &'a str,
    /// Quotation from `source`; empty without one.
    wording: &'a str,
    /// Change that would make a `no` a `yes`.
    remedy: &'a str,
}

impl<'a> FitDocument<'a> {
    pub(super) fn of(fitness: &'a Fitness<'a>) -> Self {
        let workloads = fitness.found.iter();
        let workloads = workloads.map(|(name, run)| match run {
            Some(run) => Workload::of(name, run),
            None => Workload {
                workload: name,
                ..Workload::default()
            },
        });
        Self {
            schema: SCHEMA,
            iolab_version: IOLAB_VERSION,
            requirement: &fitness.fit.requirement,
            question: fitness.question,
            target: fitness.target,
            answer: fitness.answer(),
            not_covered: &fitness.fit.not,
            limits: fitness.limits_of_load(),
            workloads: workloads.collect(),
        }
    }
}

impl<'a> Workload<'a> {
    fn of(workload: &'a str, run: &'a WorkloadRun<'a>) -> Self {
        let levels = run.found.levels.iter().zip(&run.run.question.needs);
        let all = &run.found.doubts;
        let doubts = all.all.iter().map(|doubt| DoubtData {
            doubt,
            text: doubt::words(doubt, all),
            remedy: doubt::remedy(doubt.what),
        });
        Self {
            workload,
            complete: run.is_complete && !run.is_short(),
            ran: run.ran(),
            load_ns: run.found.load_ns,
            written_bytes: run.written_bytes(),
            doubts: doubts.collect(),
            run_file: &run.run.file,
            levels: levels
                .map(|(answered, need)| Level::of(run, answered, need))
                .collect(),
        }
    }
}

impl<'a> Level<'a> {
    fn of(run: &WorkloadRun<'_>, answered: &'a LevelAnswer, need: &'a Need) -> Self {
        let cause = run.found.cause(answered);
        Self {
            judged: &answered.judged,
            answer: match run.is_complete {
                true => answered.answer(),
                false => Answer::CannotTell,
            },
            turned_by: answered.turned_by.iter().map(|by| by.what).collect(),
            source: &need.source,
            wording: &need.wording,
            remedy: match cause {
                Some(_) => doubt::RAISE_LIMIT,
                None => &need.remedy,
            },
            cause,
        }
    }
}
