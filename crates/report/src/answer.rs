//! The answers of runs to their questions, for each format, computed from the given run files only.

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::answer::{AnswerBasis, RunAnswer};
use iolab_analysis::consent::command_to_finish;
use iolab_analysis::fitness::{Answer, CellAnswer, merge_answers};
use iolab_analysis::slo::SearchAnswer;
use iolab_record::question::{Asked as AskedOf, Fit, Question};
use iolab_record::{RunRecord, TargetKind};
use iolab_workload::escape_control::escape_control;
use iolab_workload::trial_description::requests_of_cell;
use serde_json::Value;

use crate::block::{self, Block, Item, Table};
use crate::fitness::{self, Asked, AskedWorkload, Fitness, Measured};
use crate::layout::{Column, paragraph};
use crate::slo::{SearchResult, at_rates, cell_columns, cell_remarks, sentence_at_rates};
use crate::to_do::ToDo;

const LEVELS: &str = "Each level, with the 95 % interval of what was measured.";
/// Introduction to the results of an incomplete run.
const SO_FAR: &str = "As measured so far:";
const RATES: &str = "The rates nearest to the limit.";

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

/// An answer for documents.
#[derive(Debug)]
pub(crate) struct Shown {
    /// Sentences of the answer with which a document begins.
    pub(crate) lead: Vec<String>,
    /// Further sentences of the answer, and steps to complete it.
    pub(crate) rest: Vec<Block>,
    /// Basis of the answer as a table, reasons why it is open, and its limits.
    pub(crate) basis: Vec<Block>,
}

impl Shown {
    fn new(
        (lead, rest): (Vec<String>, Option<String>),
        to_do: &[ToDo],
        (caption, columns): (&str, Vec<Column>),
        remarks: Vec<String>,
    ) -> Self {
        let clean = |text: String| escape_control(&text).into_owned();
        let rest = rest.map(|text| Block::text(clean(text))).into_iter();
        let table = (!columns.is_empty()).then(|| Block::Table(Table::new(caption, columns)));
        let remarks: Vec<Item> = remarks
            .into_iter()
            .map(|text| Item::of(clean(text)))
            .collect();
        let remarks = (!remarks.is_empty()).then(|| Block::list(remarks));
        Self {
            lead,
            rest: rest.chain(to_do.iter().flat_map(ToDo::blocks)).collect(),
            basis: table.into_iter().chain(remarks).collect(),
        }
    }
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

    /// Text for a terminal of `width` columns, with an empty line between answers; empty without a question.
    pub fn text(&self, width: u16) -> String {
        let all: Vec<String> = self.all.iter().map(|given| given.text(width)).collect();
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
        let of = |shown: Shown| {
            let lead = shown.lead.into_iter();
            let lead = lead.map(|text| Block::text(escape_control(&text).into_owned()));
            lead.chain(shown.rest)
        };
        self.shown().into_iter().flat_map(of).collect()
    }

    /// The answers for documents.
    pub(crate) fn shown(&self) -> Vec<Shown> {
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

    fn text(&self, width: u16) -> String {
        match self {
            Self::Fit(fitness) => fitness.text(width),
            Self::Run(run) => {
                let head = run.lack().map(|text| {
                    let to_do = run.to_do().text(width);
                    paragraph(&text, "", width) + &to_do + SO_FAR + "\n\n"
                });
                head.unwrap_or_default()
                    + &match &run.answer.found {
                        AnswerBasis::Limit(found) => run.searched(found).text(width),
                        AnswerBasis::Cells(found) => at_rates(
                            found,
                            &sentence_at_rates(found, run.record),
                            run.answer.answer(),
                            width,
                        ),
                        AnswerBasis::Workload(_) => String::new(),
                    }
            }
        }
    }

    fn shown(&self) -> Shown {
        match self {
            Self::Fit(fitness) => Shown::new(
                (
                    vec![format!("{}.", fitness.sentence())],
                    Some(fitness.requirement.question.clone()),
                ),
                &fitness.to_do(),
                (LEVELS, fitness.columns()),
                fitness.remarks().into_iter().map(|one| one.text).collect(),
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

    fn searched<'a>(&self, found: &'a SearchAnswer) -> SearchResult<'a> {
        SearchResult {
            found,
            is_complete: self.answer.is_complete(),
        }
    }

    /// Step to complete the run.
    fn to_do(&self) -> ToDo {
        ToDo::to_finish(1, command_to_finish([(self.record, self.file.as_str())]))
    }

    fn shown(&self) -> Shown {
        let (first, rest, columns, caption, remarks) = match &self.answer.found {
            AnswerBasis::Limit(found) => {
                let searched = self.searched(found);
                let (first, second) = searched.sentences();
                let (columns, remarks) = (searched.columns(), searched.remarks());
                (Some(first), second, columns, RATES, remarks)
            }
            AnswerBasis::Cells(found) => (
                Some(format!("{}.", sentence_at_rates(found, self.record))),
                None,
                cell_columns(found),
                LEVELS,
                cell_remarks(found, self.answer.answer()),
            ),
            AnswerBasis::Workload(_) => (None, None, Vec::new(), LEVELS, Vec::new()),
        };
        let lack = self.lack();
        let to_do: Vec<ToDo> = lack.iter().map(|_| self.to_do()).collect();
        let lead: Vec<String> = match lack {
            None => first.into_iter().collect(),
            Some(lack) => {
                let so_far = first.map(|first| format!("{SO_FAR} {first}"));
                std::iter::once(lack).chain(so_far).collect()
            }
        };
        Shown::new((lead, rest), &to_do, (caption, columns), remarks)
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
    let (mut workloads, mut found) = (Vec::new(), Vec::new());
    let names: Vec<String> = runs[0].fit.workloads.clone();
    for name in names {
        let own: Vec<&FitRun<'_>> = runs.iter().filter(|run| run.fit.workload == name).collect();
        if own.is_empty() {
            workloads.push(AskedWorkload {
                name: name.clone(),
                levels: Vec::new(),
            });
            found.push(fitness::WorkloadResult {
                workload: name,
                measured: Measured::Nothing,
                ran: String::new(),
                written_bytes: 0,
                found: CellAnswer::default(),
                file: String::new(),
            });
            continue;
        }
        for run in own {
            let AnswerBasis::Workload(own) = &run.answer.found else {
                continue;
            };
            workloads.push(AskedWorkload {
                name: name.clone(),
                levels: run.question.needs.clone(),
            });
            found.push(fitness::WorkloadResult {
                workload: name.clone(),
                measured: match run.answer.is_complete() {
                    true => Measured::Whole,
                    false => Measured::Part,
                },
                ran: ran(run.record),
                written_bytes: written_bytes(run.record),
                found: own.clone(),
                file: run.file.clone(),
            });
        }
    }
    let unfinished = runs.iter().filter(|run| !run.answer.is_complete());
    let to_finish = command_to_finish(unfinished.map(|run| (run.record, run.file.as_str())));
    let FitRun { record, fit, .. } = &runs[0];
    Fitness {
        requirement: Asked {
            name: fit.requirement.clone(),
            question: record.experiment.question.clone(),
            not: fit.not.clone(),
            hold: fit.hold,
            workloads,
        },
        target: record.run.target.clone(),
        found,
        to_finish,
        limits: fit.limits.clone(),
    }
}
