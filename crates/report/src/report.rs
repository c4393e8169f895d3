//! The report of a study: what was asked, what was found and what was measured, in one document. What it says is put
//! together once, for all formats.

mod bundle;
mod commands;
mod course;
mod data;
mod environment;
mod evidence;
mod html;
mod latex;
mod markdown;
mod method;
mod picture;
mod references;
mod section;
mod small;
mod statement;
mod summary;

use std::path::PathBuf;

use iolab_analysis::analysed::AnalysedRun;
use iolab_analysis::analysis::Analysis;
use iolab_findings::interpretation::Interpretation;
use iolab_findings::{Finding, Kind, agreement, costs_of_random, limits, optimal_pattern};
use iolab_spec::Result;

use crate::overview::Overview;
use iolab_spec::plain::plain;

pub use bundle::Bundle;

use course::Course;
use environment::Fact;
use section::Section;
use statement::{Group, Statement};

pub(crate) use summary::counted;

/// A run file that was read.
#[derive(Debug, Clone)]
pub struct Input {
    /// Where it lies.
    pub path: PathBuf,
    /// What it holds, analysed.
    pub run: AnalysedRun,
    /// What it says.
    pub interpretation: Interpretation,
}

impl Input {
    /// A run that was read from `path`, with what it says.
    pub fn new(path: PathBuf, run: AnalysedRun) -> Self {
        Self {
            path,
            interpretation: Interpretation::of(&run),
            run,
        }
    }
}

/// Everything that a report says, in the order of the run files. Text from outside bears no control characters; each
/// format escapes it in its own way.
#[derive(Debug)]
pub struct Report<'a> {
    inputs: &'a [Input],
    title: String,
    /// What was tested, and on what.
    summary: Vec<String>,
    /// What was found: all together, then each experiment.
    results: Vec<Group>,
    /// How far the numbers can be trusted.
    doubts: Vec<Group>,
    /// Limits of this study.
    limits: Vec<Group>,
    /// Which settings to choose.
    optimal: Vec<Statement>,
    /// The few results and numbers of the latest run of each experiment.
    overview: Overview<'a>,
    /// The runs of each experiment.
    courses: Vec<Course>,
    /// Places of the runs that the overview is of.
    latest: Vec<usize>,
    /// All findings of each run.
    each: Vec<Vec<Finding>>,
    sections: Vec<Section>,
    environment: Vec<Fact>,
    commands: Vec<String>,
}

impl<'a> Report<'a> {
    /// Puts together what run files tell. The same files give the same report, always.
    pub fn new(inputs: &'a [Input]) -> Self {
        let analyses: Vec<&Analysis> = inputs.iter().map(|i| i.run.analysis()).collect();
        let sections = section::all(inputs);
        let optimal = optimal_pattern(&analyses);
        let mut together = costs_of_random(&analyses);
        together.extend(limits(&analyses));
        let of_run = |input: &Input| {
            let mut all = agreement(&input.interpretation.peers);
            all.extend_from_slice(&input.interpretation.findings);
            all
        };
        let each: Vec<Vec<Finding>> = inputs.iter().map(of_run).collect();
        let of = |kind| statement::groups(kind, &together, &each, &sections);
        let courses = Course::all(inputs);
        let latest: Vec<usize> = courses.iter().filter_map(Course::latest).collect();
        Self {
            inputs,
            title: summary::title(inputs),
            summary: summary::sentences(inputs),
            results: of(Kind::Result),
            doubts: of(Kind::Doubt),
            limits: of(Kind::Limit),
            optimal: statement::statements(Kind::Result, &optimal),
            environment: environment::facts(inputs),
            commands: commands::of_report(inputs),
            overview: Overview::new(latest.iter().filter_map(|place| inputs.get(*place))),
            courses,
            latest,
            each,
            sections,
        }
    }

    /// The report as one page that needs nothing else: no network, no other file.
    ///
    /// # Errors
    /// When the page cannot be put together.
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

    /// The commands that repeat all of it, a line each.
    fn all_commands(&self) -> String {
        let each = self.sections.iter().flat_map(|s| &s.commands);
        let commands: Vec<&str> = each.chain(&self.commands).map(String::as_str).collect();
        commands.join("\n")
    }
}

/// Text from outside, without what could steer whatever shows it.
fn clean(text: &str) -> String {
    plain(text).into_owned()
}
