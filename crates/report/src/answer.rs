//! The answers of runs to their questions, for each format, computed from the given run files only.

use iolab_analysis::analysed_run::{AnalysedRun, AnswerBasis, RunAnswer};
use iolab_analysis::consent::command_to_finish;
use iolab_analysis::fitness::{Answer, merge_answers};
use iolab_record::{Asked, Question, RunRecord};
use iolab_workload::escape_control::escape_control;
use serde_json::{Value, json};

use crate::block::{self, Block, ShownAnswer, ToDo};
use crate::fitness::data::FitDocument;
use crate::fitness::{Fitness, WorkloadRun};
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
    Fit(Fitness<'a>),
    /// Answer of a single run, with the name of its file.
    Run(String, &'a RunRecord, &'a RunAnswer),
}

impl<'a> Answers<'a> {
    /// The answers of runs, given with the names of their files; runs without a question have none.
    pub fn of(runs: impl IntoIterator<Item = (String, &'a AnalysedRun)>) -> Self {
        let mut all = Vec::new();
        let mut fits: Vec<WorkloadRun<'_>> = Vec::new();
        for (file, run) in runs {
            let (record, Some(answer)) = (run.record(), run.answer()) else {
                continue;
            };
            match (&record.experiment.asked, &answer.found) {
                (
                    Some(Question {
                        of: Asked::Fit(fit),
                        needs,
                    }),
                    AnswerBasis::Cells(cells),
                ) => {
                    let Some(found) = cells.first() else {
                        continue;
                    };
                    fits.push(WorkloadRun {
                        file,
                        record,
                        fit,
                        needs,
                        found,
                        is_complete: answer.is_complete(),
                    });
                }
                _ => all.push(Given::Run(file, record, answer)),
            }
        }
        while let Some(first) = fits.first().map(|run| run.fit) {
            let (own, others) = fits.into_iter().partition(|run| run.is_of(first));
            all.push(Given::Fit(Fitness::of(first, own)));
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
            Given::Fit(fitness) => Some(json!(FitDocument::of(fitness))),
            Given::Run(..) => None,
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
            Self::Run(_, _, answer) => answer.answer(),
        }
    }

    fn shown(&self) -> ShownAnswer {
        match self {
            Self::Fit(fitness) => ShownAnswer::new(
                (
                    vec![format!("{}.", fitness.sentence())],
                    Some(fitness.question.to_owned()),
                ),
                &fitness.to_do(),
                (LEVELS, fitness.columns()),
                fitness.remarks(),
            ),
            Self::Run(file, record, answer) => shown(file, record, answer),
        }
    }
}

/// The answer of a single run.
fn shown(file: &str, record: &RunRecord, answer: &RunAnswer) -> ShownAnswer {
    let is_complete = answer.is_complete();
    let mut shown = match &answer.found {
        AnswerBasis::Limit(found) => SearchResult { found, is_complete }.shown(),
        AnswerBasis::Cells(found) => ShownAnswer::new(
            (vec![format!("{}.", sentence_at_rates(found, record))], None),
            &[],
            (LEVELS, cell_columns(found)),
            cell_remarks(found, answer.answer()),
        ),
    };
    if !is_complete {
        // The sentence after it is not the answer.
        let lack = format!(
            "{} on {}: cannot tell: the run is not complete.",
            escape_control(&record.experiment.name),
            escape_control(&record.target_text()),
        );
        let so_far = shown.lead.iter().map(|first| format!("{SO_FAR} {first}"));
        shown.lead = std::iter::once(lack).chain(so_far).collect();
        let command = command_to_finish([(record, file)]);
        shown.rest.extend(ToDo::to_finish(1, command).blocks());
    }
    shown
}
