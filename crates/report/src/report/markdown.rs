//! The report in Markdown, for further editing.

use std::fmt::Write as _;

use iolab_workload::Result;

use super::bundle::{Bundle, Chapter, Shown, chapters};
use super::markdown_blocks::table;
use super::method;
use super::section::Section;
use super::statement::{Statement, StatementGroup};
use super::{StudyReport, program};
use crate::markdown::{block, escaped, sentence};
use crate::trust;

/// The text, with its figures as SVG.
pub(super) fn bundle(report: &StudyReport<'_>, prefix: &str) -> Result<Bundle> {
    if report.inputs.is_empty() {
        return program::markdown_alone(&report.programs, prefix);
    }
    let chapters = chapters(report, prefix, "svg", |figure| {
        Ok(figure.svg().into_bytes())
    })?;
    let programs = report.programs.iter();
    let programs = programs.map(|part| part.markdown(prefix));
    let programs: Vec<Bundle> = programs.collect::<Result<_>>()?;
    let text = text(report, &chapters, &programs);
    let mut all = Bundle::new(text, chapters);
    let figures = programs.into_iter().flat_map(|part| part.figures);
    all.figures.extend(figures);
    Ok(all)
}

fn text(report: &StudyReport<'_>, chapters: &[Chapter<'_>], programs: &[Bundle]) -> String {
    let mut text = format!("# {}\n\n", escaped(&report.title));
    for line in report.lines() {
        let _ = writeln!(text, "**{}**\n", sentence(&line));
    }
    for words in &report.summary {
        let _ = writeln!(text, "{}\n", sentence(words));
    }
    if !report.inputs.is_empty() {
        let trust = trust::sentence(&report.overview.digest.trust);
        let _ = writeln!(text, "{}\n", sentence(&trust));
    }
    text.push_str(&answers(report));
    text.push_str(&questions(chapters));
    for (heading, groups) in [
        ("What was found", &report.results),
        ("How far to trust it", &report.doubts),
        ("Limits of this study", &report.limits),
    ] {
        if groups.is_empty() {
            continue;
        }
        let _ = writeln!(text, "## {heading}\n");
        text.extend(groups.iter().map(group));
    }
    let is_only = chapters.len() == 1;
    let one = |chapter| experiment(chapter, is_only);
    text.extend(chapters.iter().map(one));
    text.extend(programs.iter().map(|part| part.text.as_str()));
    if !report.choices.is_empty() {
        let _ = writeln!(
            text,
            "## Which settings to choose\n\n{}",
            list(&report.choices)
        );
    }
    text.push_str(&appendix(report));
    text
}

/// The answers of the runs to the questions that they were made for.
fn answers(report: &StudyReport<'_>) -> String {
    let mut text = String::new();
    if !report.answers.is_empty() {
        text.push_str("## Answer\n\n");
    }
    for answer in &report.answers {
        for words in &answer.rest {
            let _ = writeln!(text, "{}\n", sentence(words));
        }
        let to_do = answer.to_do.iter();
        text.extend(to_do.map(|to_do| to_do.written(sentence, block)));
        text.push_str(&table(&answer.table));
        for remark in &answer.remarks {
            let _ = writeln!(text, "- {}", sentence(remark));
        }
        text.push('\n');
    }
    text
}

/// The questions, where there are several.
fn questions(chapters: &[Chapter<'_>]) -> String {
    let item = |s: &Section| format!("- {}: {}\n", sentence(&s.name), escaped(&s.question));
    match chapters {
        [] | [_] => String::new(),
        chapters => chapters.iter().map(|c| item(c.section)).collect::<String>() + "\n",
    }
}

fn group(group: &StatementGroup) -> String {
    let about = escaped(&group.about.words());
    let trials = match group.about.trials() {
        "" => String::new(),
        trials => format!("From {}.\n\n", escaped(trials)),
    };
    format!("### {about}\n\n{trials}{}\n", list(&group.statements))
}

fn list(statements: &[Statement]) -> String {
    let item = |s: &Statement| match s.basis.as_str() {
        "" => format!("- {}\n", sentence(&s.text)),
        basis => format!("- {} Based on: {}.\n", sentence(&s.text), escaped(basis)),
    };
    statements.iter().map(item).collect()
}

/// One experiment; the lines of an only one begin the text.
fn experiment(chapter: &Chapter<'_>, is_only: bool) -> String {
    let section = chapter.section;
    let mut text = format!("## {}\n\n", escaped(&section.name));
    let conclusions = section.conclusions.iter().filter(|_| !is_only);
    let lines = std::iter::once(&section.question).chain(conclusions);
    for words in lines.filter(|words| !words.is_empty()) {
        let _ = writeln!(text, "{}\n", sentence(words));
    }
    let figure = |shown: &Shown| format!("![{}]({})\n\n", escaped(&shown.words), shown.file);
    if let Some(over_time) = &chapter.over_time {
        text.push_str("### Over time\n\n");
        text.extend(chapter.series.iter().map(figure));
        text.push_str(&table(over_time));
        text.push_str("### Latest run\n\n");
    }
    text.extend(chapter.leading.iter().map(figure));
    text.extend(section.standard_tables.iter().map(table));
    text.extend(chapter.own.iter().chain(&chapter.further).map(figure));
    text.extend(section.tables.iter().map(table));
    let _ = writeln!(text, "### Evidence\n\n{}", table(&section.evidence));
    let _ = writeln!(text, "### Settings\n\n{}\n", sentence(&section.ended));
    for (name, value) in &section.settings {
        let _ = writeln!(text, "- {}: {}", sentence(name), escaped(value));
    }
    let _ = writeln!(
        text,
        "\nDefinition, as `{}`:\n\n{}",
        section.toml_name,
        block(&section.toml)
    );
    if let Some(model) = section.model.as_ref().filter(|model| model.is_shown) {
        let _ = writeln!(
            text,
            "Model, as `{}`:\n\n{}",
            model.file,
            block(&model.shown())
        );
    }
    if !section.model_note.is_empty() {
        let _ = writeln!(text, "{}\n", sentence(&section.model_note));
    }
    for earlier in &chapter.otherwise_defined {
        let _ = writeln!(
            text,
            "Definition of the earlier run {}, as `{}`:\n\n{}",
            sentence(&earlier.name),
            earlier.toml_name,
            block(&earlier.toml)
        );
    }
    if !section.events.is_empty() {
        text.push_str("### Events\n\n");
        for event in &section.events {
            let _ = writeln!(text, "- {}", sentence(&event.line()));
        }
        text.push('\n');
    }
    text
}

fn appendix(report: &StudyReport<'_>) -> String {
    let mut text = "## Environment\n\n| | |\n|---|---|\n".to_owned();
    for fact in &report.environment {
        let _ = writeln!(
            text,
            "| {} | {} |",
            escaped(&fact.name),
            escaped(&fact.values.join("; "))
        );
    }
    text.push_str("\n## Method\n\n");
    for rule in method::rules(&report.orders()) {
        let _ = write!(text, "**{}.** {}", rule.name, escaped(&rule.text));
        if !rule.formula.is_empty() {
            let _ = write!(text, " `{}`.", rule.formula);
        }
        if !rule.source.is_empty() {
            let _ = write!(text, " Source: {}.", escaped(rule.source));
        }
        text.push_str("\n\n");
    }
    let _ = write!(
        text,
        "## Repeat it\n\nSave each definition above under its name. Then run:\n\n{}",
        block(&report.all_commands())
    );
    text
}
