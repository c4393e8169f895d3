//! The answers of runs to their questions, for each format, computed from the given run files only.

use iolab_analysis::analysed_run::{AnalysedRun, AnswerBasis, RunAnswer};
use iolab_analysis::consent::command_to_finish;
use iolab_analysis::fitness::{Answer, merge_answers};
use iolab_record::question::{Asked as AskedOf, Fit, Question};
use iolab_record::{RunRecord, TargetKind};
use iolab_workload::escape_control::escape_control;
use iolab_workload::trial_description::requests_of_cell;
use serde_json::Value;

use crate::block::{self, Block, ShownAnswer, ToDo};
use crate::fitness::{Fitness, Measured, WorkloadResult};
use crate::slo::{SearchResult, cell_columns, cell_remarks, sentence_at_rates};

const LEVELS: &str = "Each level, with the 95 % interval of what was measured";
/// Introduction to the results of an incomplete run.
const SO_FAR: &str = "As measured so far:";

/// The answers of runs. All workloads of a requirement share one answer.
#[derive(Debug)]
pub struct Answers<'a> {
    all: Vec<Given<'a>>,
}

/// An answer, with its origin.
#[derive(Debug)]
enum Given<'a> {
    /// Answer to a requirement, from the runs of its workloads.
    Fit(Fitness),
    /// Answer of a single run.
    Run(OfRun<'a>),
}

#[derive(Debug)]
struct OfRun<'a> {
    file: String,
    record: &'a RunRecord,
    answer: &'a RunAnswer,
}

impl<'a> Answers<'a> {
    /// The answers of runs, given with the names of their files; runs without a question have none.
    pub fn of(runs: impl IntoIterator<Item = (String, &'a AnalysedRun)>) -> Self {
        let mut all = Vec::new();
        let mut fits: Vec<FitRun<'_>> = Vec::new();
        for (file, run) in runs {
            let (record, Some(answer)) = (run.record(), run.answer()) else {
                continue;
            };
            match &record.experiment.asked {
                Some(
                    question @ Question {
                        of: AskedOf::Fit(fit),
                        ..
                    },
                ) => fits.push(FitRun {
                    file,
                    record,
                    question,
                    fit,
                    answer,
                }),
                _ => all.push(Given::Run(OfRun {
                    file,
                    record,
                    answer,
                })),
            }
        }
        while let Some(first) = fits.first() {
            let (id, name, workloads) = first.key();
            let key = (id.to_owned(), name.to_owned(), workloads.to_vec());
            let (own, others) = fits
                .into_iter()
                .partition(|run| run.key() == (&*key.0, &*key.1, &*key.2));
            all.push(Given::Fit(fitness(own)));
            fits = others;
        }
        Self { all }
    }

    /// All answers together; `None` without a question.
    pub fn answer(&self) -> Option<Answer> {
        let answers = self.all.iter().map(Given::answer);
        (!self.all.is_empty()).then(|| merge_answers(answers))
    }

    /// The answers as text in lines of at most `width` characters; empty without a question.
    pub fn text(&self, width: u16) -> String {
        let all = self.shown().into_iter().flat_map(ShownAnswer::blocks);
        block::in_text(&all.collect::<Vec<_>>(), width)
    }

    /// The answers on a screen each, with an empty line between them; empty without a question.
    pub fn screen(&self, width: u16) -> String {
        let all = self.shown().into_iter();
        let all: Vec<String> = all.map(|shown| shown.screen(width)).collect();
        all.join("\n")
    }

    /// The answers to requirements, for programs; `iolab schema fit` describes them.
    pub fn of_requirements(&self) -> impl Iterator<Item = Value> {
        self.all.iter().filter_map(|given| match given {
            Given::Fit(fitness) => Some(fitness.json()),
            Given::Run(_) => None,
        })
    }

    /// The answers in Markdown, without their tables; empty without a question.
    pub fn markdown(&self) -> String {
        block::parts_in_markdown(&self.sentences())
    }

    /// The answers in LaTeX, without their tables; empty without a question.
    pub fn latex(&self) -> String {
        block::parts_in_latex(&self.sentences())
    }

    fn sentences(&self) -> Vec<Block> {
        let all = self.shown().into_iter();
        all.flat_map(ShownAnswer::sentences).collect()
    }

    /// The answers for documents.
    pub(crate) fn shown(&self) -> Vec<ShownAnswer> {
        self.all.iter().map(Given::shown).collect()
    }
}

impl Given<'_> {
    fn answer(&self) -> Answer {
        match self {
            Self::Fit(fitness) => fitness.answer(),
            Self::Run(run) => run.answer.answer(),
        }
    }

    fn shown(&self) -> ShownAnswer {
        match self {
            Self::Fit(fitness) => ShownAnswer::new(
                (
                    vec![format!("{}.", fitness.sentence())],
                    Some(fitness.question.clone()),
                ),
                &fitness.to_do(),
                (LEVELS, fitness.columns()),
                fitness.remarks(),
            ),
            Self::Run(run) => run.shown(),
        }
    }
}

impl OfRun<'_> {
    /// A note in front of [`SO_FAR`] that the run is incomplete, so that the sentence after it is not the
    /// answer. `None` for a complete run.
    fn lack(&self) -> Option<String> {
        (!self.answer.is_complete()).then(|| {
            format!(
                "{} on {}: cannot tell: the run is not complete.",
                escape_control(&self.record.experiment.name),
                escape_control(&self.record.target_text()),
            )
        })
    }

    /// Step to complete the run.
    fn to_do(&self) -> ToDo {
        ToDo::to_finish(1, command_to_finish([(self.record, self.file.as_str())]))
    }

    fn shown(&self) -> ShownAnswer {
        let mut shown = match &self.answer.found {
            AnswerBasis::Limit(found) => {
                let is_complete = self.answer.is_complete();
                SearchResult { found, is_complete }.shown()
            }
            AnswerBasis::Cells(found) => ShownAnswer::new(
                (
                    vec![format!("{}.", sentence_at_rates(found, self.record))],
                    None,
                ),
                &[],
                (LEVELS, cell_columns(found)),
                cell_remarks(found, self.answer.answer()),
            ),
            AnswerBasis::Workload(_) => {
                ShownAnswer::new((Vec::new(), None), &[], (LEVELS, Vec::new()), Vec::new())
            }
        };
        if let Some(lack) = self.lack() {
            let so_far = shown.lead.iter().map(|first| format!("{SO_FAR} {first}"));
            shown.lead = std::iter::once(lack).chain(so_far).collect();
            shown.rest.extend(self.to_do().blocks());
        }
        shown
    }
}

/// The run of a workload.
struct FitRun<'a> {
    file: String,
    record: &'a RunRecord,
    question: &'a Question,
    fit: &'a Fit,
    answer: &'a RunAnswer,
}

impl FitRun<'_> {
    /// The key shared by the runs of one answer.
    fn key(&self) -> (&str, &str, &[String]) {
        (&self.fit.id, &self.fit.requirement, &self.fit.workloads)
    }
}

/// Description of the load of a workload's run, which has one cell.
fn ran(record: &RunRecord) -> String {
    let cell = record.cells.first();
    cell.map_or_else(String::new, |cell| requests_of_cell(&cell.spec))
}

/// Bytes that trials wrote to storage; a model stores none.
fn written_bytes(record: &RunRecord) -> u64 {
    if record.run.target_kind == TargetKind::Model {
        return 0;
    }
    let written = record
        .samples
        .iter()
        .map(|sample| sample.operations.write.bytes);
    written.fold(0, u64::saturating_add)
}

/// The answer from the runs of one requirement, at least one.
fn fitness(runs: Vec<FitRun<'_>>) -> Fitness {
    let of_run = |run: &&FitRun<'_>| {
        let AnswerBasis::Workload(found) = &run.answer.found else {
            return None;
        };
        Some(WorkloadResult {
            workload: run.fit.workload.clone(),
            needs: run.question.needs.clone(),
            measured: match run.answer.is_complete() {
                true => Measured::Whole,
                false => Measured::Part,
            },
            ran: ran(run.record),
            written_bytes: written_bytes(run.record),
            found: found.clone(),
            file: run.file.clone(),
        })
    };
    let of_workload = |name: &String| {
        let own: Vec<&FitRun<'_>> = runs
            .iter()
            .filter(|run| run.fit.workload == *name)
            .collect();
        match own.is_empty() {
            true => vec![WorkloadResult::without_a_run(name)],
            false => own.iter().filter_map(of_run).collect(),
        }
    };
    let unfinished = runs.iter().filter(|run| !run.answer.is_complete());
    let to_finish = command_to_finish(unfinished.map(|run| (run.record, run.file.as_str())));
    let FitRun { record, fit, .. } = &runs[0];
    Fitness {
        requirement: fit.requirement.clone(),
        question: record.experiment.question.clone(),
        not: fit.not.clone(),
        hold: fit.hold,
        target: record.run.target.clone(),
        found: fit.workloads.iter().flat_map(of_workload).collect(),
        to_finish,
        limits: fit.limits.clone(),
    }
}
