//! The report of a study in one document: questions, findings and measurements. Its content is collected once, for all formats.

mod bundle;
mod captioned;
mod cited_method;
mod commands;
mod environment;
mod evidence;
mod file_names;
mod html;
mod latex;
mod latex_table;
mod markdown;
mod markdown_blocks;
mod method;
mod own_model;
mod page_table;
mod picture;
mod program;
mod run_sequence;
mod section;
mod sparkline;
mod standard_tables;
mod statement;
pub(crate) mod summary;
mod visits;

use crate::findings::{self, Finding, FindingKind, agreement, choices, limits};
use iolab_analysis::analysis::{Analysis, TrialOrder};
use iolab_analysis::runs::FiledRun;
use iolab_figure::{Figure, Options};
use iolab_workload::Result;

use crate::answer::Answers;
use crate::input::Input;
use crate::overview::Overview;
use crate::to_do::ToDo;
use iolab_workload::escape_control::escape_control;

pub use bundle::Bundle;
pub use program::ProgramInput;

use captioned::Captioned;
use environment::Fact;
use program::ProgramPart;
use run_sequence::RunSequence;
use section::Section;
use statement::{Statement, StatementGroup};

/// The style sheet of every page.
pub const STYLE: &str = include_str!("../templates/report.css");

/// A figure of several runs of one experiment, which are given in the order of time. An instrument adds such
/// figures to pages.
#[derive(Debug, Clone, Copy)]
pub struct SequenceFigure {
    /// Name of the figure, at the end of the names of its files.
    pub name: &'static str,
    /// The function that draws the figure.
    pub draw: fn(&[FiledRun<'_>], &Options) -> Result<Figure>,
}

/// The content of a report, in the order of the run files. Text from outside contains no control characters; each format escapes
/// it.
#[derive(Debug)]
pub struct StudyReport<'a> {
    inputs: &'a [Input],
    title: String,
    /// The answers of the runs to the questions that they were made for.
    answers: Vec<AnswerPart>,
    /// Sentences on the measured quantities and targets.
    summary: Vec<String>,
    /// The results: of all experiments together, then of each one.
    results: Vec<StatementGroup>,
    /// Limits of trust in the numbers.
    doubts: Vec<StatementGroup>,
    /// Limits of this study.
    limits: Vec<StatementGroup>,
    /// Choices of settings.
    choices: Vec<Statement>,
    /// The headlines and main numbers of the latest run of each experiment.
    overview: Overview<'a>,
    /// The runs of each experiment.
    sequences: Vec<RunSequence>,
    /// Figures of several runs of one experiment.
    sequence_figures: &'a [SequenceFigure],
    /// Indices of the runs in the overview.
    latest: Vec<usize>,
    /// All findings of each run; empty for earlier runs of an experiment.
    each: Vec<Vec<Finding>>,
    sections: Vec<Section>,
    /// Observations of programs and devices.
    programs: Vec<ProgramPart>,
    environment: Vec<Fact>,
    /// Facts about the measurement, the machine and the method: name and value, each short.
    facts: Vec<(&'static str, String)>,
    commands: Vec<String>,
}

impl<'a> StudyReport<'a> {
    /// Order of the trials of each shown run.
    fn orders(&self) -> Vec<Option<TrialOrder>> {
        let shown = self
            .latest
            .iter()
            .filter_map(|place| self.inputs.get(*place));
        shown
            .map(|input| input.run.analysis().trial_order)
            .collect()
    }

    /// Collects the content of a report from run files. Deterministic.
    pub fn new(inputs: &'a [Input]) -> Self {
        Self::with_programs(inputs, &[])
    }

    /// A report on runs and on observations of programs; there may be no runs.
    pub fn with_programs(inputs: &'a [Input], programs: &[ProgramInput]) -> Self {
        let sequences = RunSequence::all(inputs);
        let latest: Vec<usize> = sequences.iter().filter_map(RunSequence::latest).collect();
        let shown: Vec<&Input> = latest
            .iter()
            .filter_map(|place| inputs.get(*place))
            .collect();
        let analyses: Vec<&Analysis> = shown.iter().map(|input| input.run.analysis()).collect();
        let sections = section::all(inputs, &sequences);
        let choices = choices(&analyses);
        let said = findings::of_runs(&analyses);
        let mut together = said.across;
        together.extend(limits(&analyses));
        // Earlier runs of an experiment appear in its series only.
        let mut each: Vec<Vec<Finding>> = vec![Vec::new(); inputs.len()];
        for ((place, input), own) in latest.iter().zip(&shown).zip(said.each) {
            if let Some(all) = each.get_mut(*place) {
                all.extend(agreement(&input.interpretation.peers));
                all.extend(own);
            }
        }
        let of = |kind| statement::groups(kind, &together, &each, &sections);
        Self {
            inputs,
            title: summary::title(inputs),
            answers: answers(inputs),
            summary: summary::sentences(inputs),
            results: of(FindingKind::Result),
            doubts: of(FindingKind::Doubt),
            limits: of(FindingKind::Limit),
            choices: statement::statements(FindingKind::Result, &choices),
            environment: environment::facts(inputs),
            facts: summary::facts(inputs),
            commands: commands::of_report(inputs),
            overview: Overview::new(latest.iter().filter_map(|place| inputs.get(*place))),
            sequences,
            sequence_figures: &[],
            latest,
            each,
            sections,
            programs: ProgramPart::all(programs),
        }
    }

    /// The same report, with these figures of several runs of one experiment.
    pub fn drawn_by(mut self, figures: &'a [SequenceFigure]) -> Self {
        self.sequence_figures = figures;
        self
    }

    /// The report as one self-contained HTML page.
    ///
    /// # Errors
    ///
    /// When the template cannot be rendered.
    pub fn html(&self) -> Result<String> {
        html::page(self)
    }

    /// The report in Markdown, with a figure as SVG for each experiment; `prefix` begins the figures' names.
    ///
    /// # Errors
    /// When a figure cannot be written.
    pub fn markdown(&self, prefix: &str) -> Result<Bundle> {
        markdown::bundle(self, prefix)
    }

    /// The report in LaTeX, with a figure as PDF for each experiment; `prefix` begins the figures' names.
    ///
    /// # Errors
    /// When a figure cannot be written.
    pub fn latex(&self, prefix: &str) -> Result<Bundle> {
        latex::bundle(self, prefix)
    }

    /// Sentences on the measured quantities and targets, and on the runs that are only shown over time.
    fn subject(&self) -> String {
        let subject = self.overview.subject();
        match self.inputs.len() - self.latest.len() {
            0 => subject,
            1 => format!("{subject} 1 earlier run is shown over time only."),
            n => format!("{subject} {n} earlier runs are shown over time only."),
        }
    }

    /// First lines of the document, to copy: the answers to questions, otherwise the results of the runs.
    fn lines(&self) -> Vec<String> {
        let answers = self.answers.iter().flat_map(|one| &one.lead);
        match self.answers.is_empty() {
            true => self.overview.lines(),
            false => answers.cloned().collect(),
        }
    }

    /// The commands that repeat all of it, a line each.
    fn all_commands(&self) -> String {
        let each = self.sections.iter().flat_map(|s| &s.commands);
        let commands: Vec<&str> = each.chain(&self.commands).map(String::as_str).collect();
        commands.join("\n")
    }
}

/// An answer with its question.
#[derive(Debug)]
struct AnswerPart {
    /// The lines that the document begins with.
    lead: Vec<String>,
    /// Lines after the lead.
    rest: Vec<String>,
    to_do: Vec<ToDo>,
    table: Captioned,
    remarks: Vec<String>,
}

fn answers(inputs: &[Input]) -> Vec<AnswerPart> {
    let runs = inputs
        .iter()
        .map(|input| (input.path.display().to_string(), &input.run));
    let all = Answers::of(runs).shown().into_iter();
    let cleaned = |texts: Vec<String>| texts.iter().map(|text| clean(text)).collect();
    all.map(|shown| AnswerPart {
        lead: cleaned(shown.lead),
        rest: cleaned(shown.rest),
        to_do: shown.to_do.iter().map(ToDo::cleaned).collect(),
        table: Captioned {
            caption: shown.caption.to_owned(),
            grid: shown.grid,
        },
        remarks: cleaned(shown.remarks),
    })
    .collect()
}

/// Text from outside without control characters.
fn clean(text: &str) -> String {
    escape_control(text).into_owned()
}
