//! The report as one HTML page.

use crate::findings::FindingKind;
use askama::Template;
use iolab_analysis::sparkline::Sparkline;
use iolab_workload::{Error, Result};

use super::captioned::Captioned;
use super::method::{self, MethodRule};
use super::page_table::{PageTable, Shared};
use super::picture::{self, Picture};
use super::program;
use super::run_sequence::RunSequence;
use super::section::Section;
use super::sparkline::{Small, TargetKey};
use super::statement::{About, Statement, StatementGroup, statements};
use super::{STYLE, StudyReport, clean};
use crate::glance::FirstNumber;
use crate::layout::Grid;
use crate::notation::on_page;
use crate::trust;

/// The values of the template, which escapes every text. Only our own style and script, and escaped JSON, are inserted unescaped.
#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    report: &'a StudyReport<'a>,
    /// The results of the runs, one line each, to copy.
    lines: Vec<String>,
    subject: String,
    answers: Vec<(&'a super::AnswerPart, PageTable<'a>)>,
    glance: Option<Glance>,
    trust: String,
    level: &'static str,
    /// Look of each of several targets in the small figures.
    keys: Vec<TargetKey>,
    smalls: Vec<Small>,
    headlines: Vec<Headline>,
    shared: String,
    views: Vec<View<'a>>,
    /// Observations of programs.
    programs: Vec<program::Shown<'a>>,
    /// Statements on several experiments: results, then limits of trust, then limits of the study.
    together: [Vec<&'a StatementGroup>; 3],
    evidence: Vec<(&'a Section, PageTable<'a>)>,
    style: &'static str,
    figure_style: String,
    script: &'static str,
    rules: Vec<MethodRule>,
}

/// The first numbers as a table with bars, and as a picture to save.
struct Glance {
    headings: Vec<(String, bool)>,
    rows: Vec<(Vec<String>, Option<Bar>)>,
    /// Whether each row is one number.
    has_bars: bool,
    /// Whether each row is of a kind of access, and each column of a target.
    is_turned: bool,
    note: &'static str,
    /// The column after which the bars are drawn.
    bars_after: usize,
    has_doubts: bool,
    has_whiskers: bool,
    picture: String,
}

/// A bar: where it ends, and its interval, %.
struct Bar {
    end: f64,
    interval: Option<(f64, f64)>,
    is_doubtful: bool,
    /// Id of the row of its cell.
    row: String,
}

/// A finding that matters, with links to the sections and rows that it is about.
struct Headline {
    text: String,
    /// Name of each experiment, and id of its section.
    links: Vec<(String, String)>,
    /// Ids of the rows of its cells.
    rows: Vec<String>,
}

/// An experiment: its latest run with its figure, and the series of its runs.
struct View<'a> {
    section: &'a Section,
    /// Figures before its own, as those further ones.
    leading: Vec<(&'static str, String, String)>,
    /// The tables that follow them.
    standard_tables: Vec<PageTable<'a>>,
    picture: Option<Picture>,
    /// Further figures: name, figure and description.
    further: Vec<(&'static str, String, String)>,
    tables: Vec<PageTable<'a>>,
    findings: Vec<Statement>,
    over_time: Option<Captioned>,
    /// Figures of all runs over time, each with its description.
    series: Vec<(String, String)>,
    earlier: Vec<(&'a Section, Vec<PageTable<'a>>)>,
}

impl View<'_> {
    fn over_time(&self) -> Option<PageTable<'_>> {
        self.over_time.as_ref().map(PageTable::of)
    }
}

/// The whole page.
pub(super) fn page<'a>(report: &'a StudyReport<'a>) -> Result<String> {
    if report.inputs.is_empty() {
        return program::page(&report.programs);
    }
    let latest = report.latest.iter();
    let latest = latest.filter_map(|place| report.sections.get(*place));
    let shared = Shared::of(latest.filter_map(|section| section.tables.first()));
    let views: Vec<View<'a>> = report
        .sequences
        .iter()
        .filter_map(|sequence| view(report, sequence, &shared))
        .collect();
    let overview = &report.overview;
    let digest = &overview.digest;
    let section_of = |number: usize| report.sections.get(*report.latest.get(number)?);
    let named = |number: usize| {
        let section = section_of(number)?;
        Some((section.name.clone(), section.id.clone()))
    };
    let row_of =
        |number: usize, cell: i64| section_of(number).and_then(|section| section.row_id(cell));
    let headlines = digest.headlines.iter().map(|headline| {
        let rows = headline.cells.iter();
        let mut rows: Vec<String> = rows.filter_map(|id| row_of(id.run, id.cell)).collect();
        let mut seen = std::collections::HashSet::new();
        rows.retain(|row| seen.insert(row.clone()));
        Headline {
            text: on_page(&clean(&format!(
                "{}{}",
                overview.place(headline),
                headline.text
            ))),
            links: headline.runs.iter().filter_map(|run| named(*run)).collect(),
            rows,
        }
    });
    let targets: Vec<&str> = overview.targets.iter().map(String::as_str).collect();
    let outlines = overview.overlaid_outlines.iter();
    let outlines: Vec<&Sparkline> = outlines.map(|(.., outline)| outline).collect();
    let is_alone = |name: &str| {
        let alike = overview.overlaid_outlines.iter();
        alike.filter(|(_, other, _)| other == name).count() == 1
    };
    let smalls = overview
        .overlaid_outlines
        .iter()
        .filter_map(|(number, name, outline)| {
            let (of_section, id) = named(*number)?;
            let name = if is_alone(name) { name } else { &of_section };
            Small::of(&id, name, outline, &targets)
        });
    let groups = [&report.results, &report.doubts, &report.limits];
    let page = Page {
        report,
        lines: report.lines(),
        subject: report.subject(),
        answers: report
            .answers
            .iter()
            .map(|answer| (answer, PageTable::of(&answer.table)))
            .collect(),
        glance: glance(report, row_of),
        trust: trust::sentence(&digest.trust),
        level: digest.trust.level.name(),
        keys: TargetKey::all(&targets, &outlines),
        smalls: smalls.collect(),
        headlines: headlines.collect(),
        shared: shared.text(),
        views,
        programs: program::Shown::all(&report.programs)?,
        together: groups.map(|groups| {
            let several = groups.iter();
            let several = several.filter(|group| !matches!(group.about, About::One { .. }));
            several.collect()
        }),
        evidence: report
            .sections
            .iter()
            .map(|section| (section, PageTable::of(&section.evidence)))
            .collect(),
        figure_style: iolab_figure::style(),
        style: STYLE,
        script: include_str!("../../templates/report.js"),
        rules: method::rules(&report.orders()),
    };
    page.render().map_err(|error| failed(&error))
}

fn failed(error: &dyn std::fmt::Display) -> Error {
    Error::failed(format!("the page cannot be put together: {error}"))
}

/// The first numbers; `None` where there are none.
fn glance(
    report: &StudyReport<'_>,
    row_of: impl Fn(usize, i64) -> Option<String>,
) -> Option<Glance> {
    let overview = &report.overview;
    let numbers = overview.first_numbers();
    let picture = overview.picture_svg("glance")?;
    let grid = Grid::of(overview.first_columns(&numbers));
    let bar = |number: &FirstNumber<'_>| Bar {
        end: number.shown.share * 100.0,
        interval: number
            .shown
            .interval
            .map(|(low, high)| (low * 100.0, high * 100.0)),
        is_doubtful: number.shown.is_doubtful,
        row: row_of(number.run, number.cell.cell.id).unwrap_or_default(),
    };
    // A target's row has several numbers, and no single bar shows them all.
    let has_bars = !overview.digest.glance.varies_in_target();
    let bars = numbers.iter().filter(|_| has_bars).map(bar);
    let bars: Vec<Option<Bar>> = bars
        .map(Some)
        .chain(std::iter::repeat_with(|| None))
        .take(grid.rows.len())
        .collect();
    let mut headings = grid.headings.iter();
    let bars_after = headings.position(|(heading, _)| heading == "median");
    Some(Glance {
        has_bars,
        is_turned: overview.glance_is_turned(),
        has_whiskers: numbers.iter().any(|number| number.shown.interval.is_some()),
        has_doubts: has_bars && numbers.iter().any(|number| number.shown.is_doubtful),
        rows: grid.rows.into_iter().zip(bars).collect(),
        headings: grid.headings,
        note: overview.glance_note(),
        bars_after: bars_after.unwrap_or(0),
        picture,
    })
}

fn view<'a>(
    report: &'a StudyReport<'a>,
    sequence: &RunSequence,
    shared: &Shared,
) -> Option<View<'a>> {
    let latest = sequence.latest()?;
    let section = report.sections.get(latest)?;
    let drawn = sequence.on_all_targets(&report.sequences, report.inputs);
    let own = report.each.get(latest)?;
    let own_run = report.inputs.get(latest)?;
    let kinds = [FindingKind::Result, FindingKind::Doubt, FindingKind::Limit];
    let earlier = sequence.0.iter().rev().skip(1);
    let tables = |section: &'a Section| shared.left_out(section);
    let further = picture::further(&drawn, own_run, |name| {
        picture::page_options(&format!("{}-{name}", section.id))
    });
    let (leading, further) = further
        .into_iter()
        .map(|(name, figure)| (name, figure.svg(), clean(figure.description())))
        .partition(|(name, ..)| section.leads_with(name));
    Some(View {
        section,
        leading,
        standard_tables: section.standard_tables.iter().map(PageTable::of).collect(),
        picture: picture::on_page(&section.id, &drawn),
        further,
        tables: tables(section),
        findings: kinds
            .into_iter()
            .flat_map(|kind| statements(kind, own))
            .collect(),
        over_time: sequence.table(report.inputs),
        series: sequence
            .figures(report, |name| {
                picture::page_options(&format!("{}-{name}", section.id))
            })
            .into_iter()
            .map(|(_, figure)| (figure.svg(), clean(figure.description())))
            .collect(),
        earlier: earlier
            .filter_map(|place| report.sections.get(*place))
            .map(|section| (section, tables(section)))
            .collect(),
    })
}
