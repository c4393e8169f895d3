//! The report in LaTeX: the draft of a paper in two columns, for pdflatex with its usual packages.

use std::fmt::Write as _;

use crate::findings::FindingKind;
use iolab_workload::Result;

use super::bundle::{Bundle, Chapter, Shown, chapters};
use super::captioned::Captioned;
use super::cited_method;
use super::latex_table::table;
use super::section::{Event, Section};
use super::statement::{Statement, statements};
use super::{AnswerPart, StudyReport, clean, program};
use crate::latex::{block, escaped, sentence};
use crate::layout::Grid;
use crate::trust;

const PREAMBLE: &str = r"\pdfminorversion=7
\documentclass[a4paper,10pt,twocolumn]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{textcomp}
\usepackage[margin=18mm]{geometry}
\usepackage{graphicx}
\usepackage{array}
\setlength{\columnsep}{6mm}
\setlength{\tabcolsep}{2.5pt}
\emergencystretch=3em
\sloppy
";
/// The text, with its figures as PDF.
pub(super) fn bundle(report: &StudyReport<'_>, prefix: &str) -> Result<Bundle> {
    let programs = report.programs.iter();
    let programs = programs.map(|part| part.latex(prefix));
    let programs: Vec<Bundle> = programs.collect::<Result<_>>()?;
    if report.inputs.is_empty() {
        return Ok(alone(report, programs));
    }
    let chapters = chapters(report, prefix, "pdf", iolab_figure::Figure::pdf)?;
    let text = text(report, &chapters, &programs);
    let mut all = Bundle::new(text, chapters);
    let figures = programs.into_iter().flat_map(|part| part.figures);
    all.figures.extend(figures);
    Ok(all)
}

/// A document of observations only.
fn alone(report: &StudyReport<'_>, programs: Vec<Bundle>) -> Bundle {
    let mut all = Bundle {
        text: head(&program::title(&report.programs)) + "\\section{Evidence}\n",
        figures: Vec::new(),
    };
    for part in programs {
        all.append(part);
    }
    all.text.push_str("\\end{document}\n");
    all
}

/// The preamble, with the title.
fn head(title: &str) -> String {
    format!(
        "{PREAMBLE}\\title{{{}}}\n\\author{{}}\n\\date{{}}\n\\begin{{document}}\n\\maketitle\n",
        escaped(title)
    )
}

fn text(report: &StudyReport<'_>, chapters: &[Chapter<'_>], programs: &[Bundle]) -> String {
    let mut text = head(&title(report));
    text.push_str(&summary(report));
    text.push_str(&method(report, chapters));
    text.push_str("\\section{Results}\n");
    text.extend(report.answers.iter().map(answer));
    if !report.overview.digest.glance.rows.is_empty() {
        text.push_str(&table(&Captioned {
            caption: format!(
                "Throughput or IOPS with half of the 95 % interval for a repeat at once, and latency. {}",
                report.overview.glance_note()
            ),
            grid: Grid::of(report.overview.glance_for_paper()),
        }));
    }
    for chapter in chapters {
        let own = report
            .each
            .get(chapter.place)
            .map_or(&[][..], Vec::as_slice);
        text.push_str(&experiment(chapter, &statements(FindingKind::Result, own)));
    }
    text.extend(programs.iter().map(|part| part.text.as_str()));
    text.push_str(&threats(report));
    text.push_str("\\section{Discussion}\n% Write this section.\n\n");
    text.push_str("\\clearpage\n\\appendix\n");
    text.push_str(&appendix(report, chapters));
    text.push_str("\\end{document}\n");
    text
}

/// The answer of the runs to a question that they were made for.
fn answer(answer: &AnswerPart) -> String {
    let sentences = answer.lead.iter().chain(&answer.rest);
    let sentences: Vec<String> = sentences.map(|s| sentence(s)).collect();
    let to_do = answer.to_do.iter();
    let to_do: String = to_do.map(|to_do| to_do.written(sentence, block)).collect();
    let remarks = answer.remarks.iter();
    format!(
        "{}\n\n{to_do}{}{}\n",
        sentences.join("\n"),
        table(&answer.table),
        items(remarks.map(|remark| format!("\\item {}\n", sentence(remark))))
    )
}

/// The only question as the title; with several, the measurement.
fn title(report: &StudyReport<'_>) -> String {
    match report.sections.as_slice() {
        [only] if !only.question.is_empty() => only.question.clone(),
        _ => report.title.clone(),
    }
}

/// The abstract: the measurement, and the headlines.
fn summary(report: &StudyReport<'_>) -> String {
    // Results have no full stop at their end, answers do.
    let stop = if report.answers.is_empty() { "." } else { "" };
    let lines = report.lines();
    let lines = lines.into_iter().map(|line| line + stop);
    let headlines = report.overview.digest.headlines.iter();
    let headlines = headlines.map(|headline| {
        clean(&format!(
            "{}{}",
            report.overview.about(headline),
            headline.text
        ))
    });
    let found: Vec<String> = lines.chain(headlines).map(|text| sentence(&text)).collect();
    format!(
        "\\begin{{abstract}}\n{}\n{}\n{}\n\\end{{abstract}}\n\n",
        sentence(&report.subject()),
        found.join("\n"),
        sentence(&trust::sentence(&report.overview.digest.trust))
    )
}

/// The method as one paragraph.
fn method(report: &StudyReport<'_>, chapters: &[Chapter<'_>]) -> String {
    let questions: Vec<String> = chapters
        .iter()
        .map(|chapter| chapter.section)
        .filter(|section| !section.question.is_empty())
        .map(|section| {
            format!(
                "\\item \\textbf{{{}}}: {}\n",
                escaped(&section.name),
                sentence(&section.question)
            )
        })
        .collect();
    let summary: Vec<String> = report.summary.iter().map(|s| sentence(s)).collect();
    format!(
        "\\section{{Questions}}\n{}\n\\section{{Method}}\n{}\n\n{}\n\n",
        items(questions.into_iter()),
        cited_method::method(&report.orders(), |rule| {
            let mut found = report.each.iter().flatten();
            found.any(|finding| finding.rule.name == rule)
        }),
        summary.join(" ")
    )
}

fn experiment(chapter: &Chapter<'_>, results: &[Statement]) -> String {
    let section = chapter.section;
    let mut text = format!("\\subsection{{{}}}\n", escaped(&section.name));
    let _ = writeln!(text, "{}.\n", sentence(&section.trials));
    for statement in results {
        let _ = writeln!(text, "{}\n", sentence(&statement.text));
    }
    let figure = |shown: &Shown| {
        format!(
            "\\begin{{figure}}[tbp]\\centering\n\\includegraphics[width=\\columnwidth,height=0.4\\textheight,keepaspectratio]{{{}}}\n\\caption{{{}}}\n\\end{{figure}}\n\n",
            shown.file,
            sentence(&shown.words)
        )
    };
    text.extend(chapter.series.iter().chain(&chapter.leading).map(figure));
    text.extend(section.standard_tables.iter().map(table));
    text.extend(chapter.own.iter().chain(&chapter.further).map(figure));
    text.extend(chapter.over_time.iter().chain(&section.tables).map(table));
    text
}

/// Threats to validity: limits of the numbers.
fn threats(report: &StudyReport<'_>) -> String {
    let groups = report.doubts.iter().chain(&report.limits);
    let item = |(about, statement): (String, &Statement)| {
        format!(
            "\\item {}: {}\n",
            escaped(&about),
            sentence(&statement.text)
        )
    };
    let all = groups.flat_map(|group| group.statements.iter().map(|s| (group.about.words(), s)));
    format!("\\section{{Threats to validity}}\n{}", items(all.map(item)))
}

fn appendix(report: &StudyReport<'_>, chapters: &[Chapter<'_>]) -> String {
    let mut text = "\\section{Environment}\n{\\footnotesize\\raggedright\n".to_owned();
    for fact in &report.environment {
        let _ = writeln!(
            text,
            "{}: {}\\par",
            escaped(&fact.name),
            escaped(&fact.values.join("; "))
        );
    }
    text.push_str("}\n\\section{Settings, evidence and events}\n");
    for chapter in chapters {
        text.push_str(&settings(chapter));
    }
    let _ = writeln!(
        text,
        "\\section{{Repeat it}}\nSave each definition above under its name. Then run:\n\n{}",
        block(&report.all_commands())
    );
    text
}

fn settings(chapter: &Chapter<'_>) -> String {
    let section = chapter.section;
    let mut text = format!(
        "\\subsection{{{}}}\n{}\n\n",
        escaped(&section.name),
        escaped(&section.ended)
    );
    let settings: Vec<String> = section
        .settings
        .iter()
        .map(|(name, value)| format!("{} {}", escaped(name), escaped(value)))
        .collect();
    let _ = writeln!(text, "{}.\n", settings.join(", "));
    let definition = |of: &str, section: &Section| {
        format!(
            "Definition{of}, as {}:\n\n{}\n",
            escaped(&section.toml_name),
            block(&section.toml)
        )
    };
    text.push_str(&definition("", section));
    if let Some(model) = section.model.as_ref().filter(|model| model.is_shown) {
        let _ = writeln!(
            text,
            "Model, as {}:\n\n{}",
            escaped(&model.file),
            block(&model.shown())
        );
    }
    let _ = writeln!(text, "{}\n", sentence(&section.model_note));
    for earlier in &chapter.otherwise_defined {
        let of = format!(" of the earlier run {}", sentence(&earlier.name));
        text.push_str(&definition(&of, earlier));
    }
    text.push_str(&table(&section.evidence));
    if !section.events.is_empty() {
        text.push_str("Events:\n");
        let item = |event: &Event| format!("\\item {}\n", escaped(&event.line()));
        text.push_str(&items(section.events.iter().map(item)));
    }
    text
}

/// A list; empty text for no items.
fn items(items: impl Iterator<Item = String>) -> String {
    match items.collect::<String>() {
        none if none.is_empty() => none,
        items => format!("\\begin{{itemize}}\n{items}\\end{{itemize}}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_is_none() {
        assert_eq!(items(std::iter::empty()), "");
    }
}
