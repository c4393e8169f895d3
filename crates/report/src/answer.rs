//! The answers of runs to their questions, for each format, computed from the given run files only.

use std::collections::BTreeMap;
use std::path::PathBuf;

use iolab_analysis::analysed_run::{AnalysedRun, AnswerBasis, RunAnswer};
use iolab_analysis::consent::command_to_finish;
use iolab_analysis::fitness::{Answer, merge_answers};
use iolab_record::{Question, RunRecord};
use iolab_workload::Result;
use iolab_workload::escape_control::escape_control;

use serde_json::Value;

use crate::block::{self, Block, ShownAnswer, ToDo};
use crate::slo::{SearchResult, cell_columns, cell_remarks, sentence_at_rates};

/// Title of the levels of an answer.
pub const LEVELS: &str = "Each level, with the 95 % interval of what was measured";
/// Introduction to the results of an incomplete run.
const SO_FAR: &str = "As measured so far:";

/// An instrument that answers questions of runs: a row of the list of answers.
#[derive(Debug, Clone, Copy)]
pub struct AnsweredBy {
    /// Name of the command that asks the questions.
    pub command: &'static str,
    /// Answers runs with such a question.
    pub answers: fn(Vec<AskedRun<'_>>) -> Vec<Given>,
    /// Run files next to these ones that belong to the same answers. They are only read.
    pub companions: fn(&[PathBuf]) -> Result<Vec<PathBuf>>,
}

/// A run with a question.
#[derive(Debug)]
pub struct AskedRun<'a> {
    /// Name of the run file.
    pub file: String,
    /// The content of the run file.
    pub record: &'a RunRecord,
    /// The question.
    pub question: &'a Question,
    /// The answer of this run alone.
    pub answer: &'a RunAnswer,
}

impl<'a> AskedRun<'a> {
    /// The run in a file of this name; `None` without a question.
    pub fn of(file: String, run: &'a AnalysedRun) -> Option<Self> {
        let record = run.record();
        Some(Self {
            file,
            record,
            question: record.experiment.asked.as_ref()?,
            answer: run.answer()?,
        })
    }
}

/// An answer in each form.
#[derive(Debug)]
pub struct Given {
    /// The answer.
    pub answer: Answer,
    /// The answer in words.
    pub shown: ShownAnswer,
    /// The answer for programs, if it has a document.
    pub document: Option<Value>,
}

/// The answers of runs.
#[derive(Debug)]
pub struct Answers {
    all: Vec<Given>,
}

impl Answers {
    /// The answers of runs, given with the names of their files, and of instruments; runs without a question have none.
    pub fn of<'a>(
        runs: impl IntoIterator<Item = (String, &'a AnalysedRun)>,
        instruments: &[AnsweredBy],
    ) -> Self {
        let mut asked: BTreeMap<_, Vec<AskedRun<'a>>> = BTreeMap::new();
        let runs = runs.into_iter();
        for run in runs.filter_map(|(file, run)| AskedRun::of(file, run)) {
            let command = run.question.kind().command();
            asked.entry(command).or_default().push(run);
        }
        let all = asked.into_iter().flat_map(|(command, runs)| {
            let Some(command) = command else {
                return runs.iter().map(alone).collect();
            };
            let mut instruments = instruments.iter();
            match instruments.find(|own| own.command == command) {
                Some(own) => (own.answers)(runs),
                None => vec![left_out(command)],
            }
        });
        Self { all: all.collect() }
    }

    /// All answers together; `None` without a question.
    pub fn answer(&self) -> Option<Answer> {
        let answers = self.all.iter().map(|given| given.answer);
        (!self.all.is_empty()).then(|| merge_answers(answers))
    }

    /// The answers as text in lines of at most `width` characters; empty without a question.
    pub fn text(self, width: u16) -> String {
        let all = self.shown().flat_map(ShownAnswer::blocks);
        block::in_text(&all.collect::<Vec<_>>(), width)
    }

    /// The answers on a screen each, with an empty line between them; empty without a question.
    pub fn screen(self, width: u16) -> String {
        let all: Vec<String> = self.shown().map(|shown| shown.screen(width)).collect();
        all.join("\n")
    }

    /// The JSON documents of the answers that have one.
    pub fn documents(&self) -> impl Iterator<Item = &Value> {
        self.all.iter().filter_map(|given| given.document.as_ref())
    }

    /// The answers in Markdown, without their tables; empty without a question.
    pub fn markdown(self) -> String {
        block::parts_in_markdown(&self.sentences())
    }

    /// The answers in LaTeX, without their tables; empty without a question.
    pub fn latex(self) -> String {
        block::parts_in_latex(&self.sentences())
    }

    fn sentences(self) -> Vec<Block> {
        self.shown().flat_map(ShownAnswer::sentences).collect()
    }

    /// The answers for documents.
    pub(crate) fn shown(self) -> impl Iterator<Item = ShownAnswer> {
        self.all.into_iter().map(|given| given.shown)
    }
}

/// The answers of a command that this program lacks.
fn left_out(command: &str) -> Given {
    let lead =
        format!("The answer of 'iolab {command}' is left out: this program lacks the command.");
    let table = (LEVELS, Vec::new());
    let shown = ShownAnswer::new((vec![lead], None), &[], table, Vec::new());
    Given {
        answer: Answer::CannotTell,
        shown,
        document: None,
    }
}

/// The answer of a single run.
fn alone(run: &AskedRun<'_>) -> Given {
    let (record, answer) = (run.record, run.answer);
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
        let command = command_to_finish([(record, run.file.as_str())]);
        shown.rest.extend(ToDo::to_finish(1, command).blocks());
    }
    Given {
        answer: answer.answer(),
        shown,
        document: None,
    }
}
