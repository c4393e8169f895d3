//! The report as one page of HTML.

use crate::findings::FindingKind;
use crate::findings::trust::Level;
use askama::Template;
use iolab_workload::{Error, Result};

use super::data;
use super::method::{MethodRule, RULES};
use super::picture::{self, Picture};
use super::run_sequence::RunSequence;
use super::section::{Captioned, Section};
use super::sparkline::Small;
use super::statement::{About, Statement, statements};
use super::{StudyReport, clean};
use crate::layout::Grid;
use crate::overview;

/// What the template shows. The template escapes every text; what stands there unescaped is our own style and script, and
/// JSON that was made safe.
#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    report: &'a StudyReport<'a>,
    subject: String,
    glance: Option<Captioned>,
    trust: String,
    level: &'static str,
    caveats: Vec<String>,
    smalls: Vec<Small>,
    headlines: Vec<Headline>,
    views: Vec<View<'a>>,
    style: &'static str,
    figure_style: String,
    script: &'static str,
    data: String,
    rules: &'static [MethodRule],
}

/// A finding that matters, with links to the sections that it is about.
struct Headline {
    text: String,
    /// Names of experiments and ids of their sections.
    links: Vec<(String, String)>,
}

/// An experiment: its latest run with its figure, then the runs before it.
struct View<'a> {
    section: &'a Section,
    picture: Option<Picture>,
    findings: Vec<Statement>,
    over_time: Option<Captioned>,
    /// The same as a figure, and what it shows in words.
    series: Option<(String, String)>,
    earlier: Vec<&'a Section>,
}

/// The whole page.
pub(super) fn page<'a>(report: &'a StudyReport<'a>) -> Result<String> {
    let views: Vec<View<'a>> = report
        .sequences
        .iter()
        .filter_map(|sequence| view(report, sequence))
        .collect();
    let overview = &report.overview;
    let digest = &overview.digest;
    let named = |number: usize| {
        let section = report.sections.get(*report.latest.get(number)?)?;
        Some((section.name.clone(), section.id.clone()))
    };
    let headlines = digest.headlines.iter().map(|headline| Headline {
        text: bound(&clean(&headline.text)),
        links: headline.runs.iter().filter_map(|run| named(*run)).collect(),
    });
    let outlines = overview.outlines();
    let smalls = outlines.iter().filter_map(|(number, name, outline)| {
        let (_, id) = named(*number)?;
        Small::of(&id, name, outline)
    });
    let glance = Captioned {
        caption: overview.glance_note().to_owned(),
        grid: Grid::of(overview.glance_columns()),
    };
    let page = Page {
        report,
        subject: overview.subject(),
        glance: Some(glance).filter(|_| !digest.glance.rows.is_empty()),
        trust: overview::trust(&digest.trust),
        level: match digest.trust.level {
            Level::Good => "good",
            Level::Limited => "limited",
            Level::Poor => "poor",
        },
        caveats: overview
            .caveat_words()
            .iter()
            .map(|text| clean(text))
            .collect(),
        smalls: smalls.collect(),
        headlines: headlines.collect(),
        views,
        figure_style: iolab_figure::style(),
        style: include_str!("../../templates/report.css"),
        script: include_str!("../../templates/report.js"),
        data: data::json(report.inputs, &report.latest),
        rules: RULES,
    };
    page.render()
        .map_err(|error| Error::failed(format!("the page cannot be put together: {error}")))
}

fn view<'a>(report: &'a StudyReport<'a>, sequence: &RunSequence) -> Option<View<'a>> {
    let latest = sequence.latest()?;
    let section = report.sections.get(latest)?;
    let drawn = sequence.on_all_targets(&report.sequences, report.inputs);
    let own = report.each.get(latest)?;
    let kinds = [FindingKind::Result, FindingKind::Doubt, FindingKind::Limit];
    let earlier = sequence.0.iter().rev().skip(1);
    Some(View {
        section,
        picture: picture::on_page(&section.id, &drawn),
        findings: kinds
            .into_iter()
            .flat_map(|kind| statements(kind, own))
            .collect(),
        over_time: sequence.table(report.inputs),
        series: sequence
            .figure(
                report.inputs,
                &picture::page_options(&format!("{}-series", section.id)),
            )
            .map(|figure| (figure.svg(), clean(figure.description()))),
        earlier: earlier
            .filter_map(|place| report.sections.get(*place))
            .collect(),
    })
}

/// The text, with each share on one line with its sign.
fn bound(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}
