//! The report in LaTeX: an article ready to be finished by hand, for pdflatex and its usual packages.

use std::fmt::Write as _;

use iolab_spec::Result;

use super::Report;
use super::bundle::{Bundle, Shown, draw};
use super::method::RULES;
use super::section::{Captioned, Event, Section};
use super::statement::{Group, Statement};
use crate::latex::escaped;

const PREAMBLE: &str = r"\pdfminorversion=7
\documentclass[a4paper]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{textcomp}
\usepackage[margin=22mm]{geometry}
\usepackage{graphicx}
\usepackage{longtable}
\usepackage{array}
\setlength{\tabcolsep}{3pt}
\setlength{\parindent}{0pt}
\setlength{\parskip}{4pt}
\emergencystretch=3em
\sloppy
";
/// A column with longer text than this is broken into lines.
const COLUMN_MAX: usize = 24;
/// Space between columns, in characters.
const GAP: usize = 2;
/// A table with more characters across than this is set in the smallest size.
const SMALL_MAX: usize = 125;
/// A table with more characters across than this has its columns close to each other besides.
const TINY_MAX: usize = 150;

/// The text, with its figures as PDF.
pub(super) fn bundle(report: &Report<'_>, prefix: &str) -> Result<Bundle> {
    let figures = draw(report, prefix, "pdf", crate::figure::Figure::pdf)?;
    Ok(Bundle::new(text(report, &figures), figures))
}

fn text(report: &Report<'_>, figures: &[Option<Shown>]) -> String {
    let mut text = format!(
        "{PREAMBLE}\\title{{{}}}\n\\author{{}}\n\\begin{{document}}\n\\maketitle\n",
        escaped(&report.title)
    );
    for sentence in &report.summary {
        let _ = writeln!(text, "{}\n", escaped(sentence));
    }
    text.push_str(&questions(report));
    for (heading, groups) in [
        ("What was found", &report.results),
        ("How far to trust it", &report.doubts),
        ("What can not be concluded", &report.limits),
    ] {
        if groups.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\\section{{{heading}}}");
        text.extend(groups.iter().map(group));
    }
    for (section, figure) in report.sections.iter().zip(figures) {
        text.push_str(&experiment(section, figure.as_ref()));
    }
    if !report.optimal.is_empty() {
        let _ = writeln!(
            text,
            "\\section{{The optimal pattern}}\n{}",
            list(&report.optimal)
        );
    }
    text.push_str(&appendix(report));
    text.push_str("\\end{document}\n");
    text
}

/// What was asked, where there is more than one question.
fn questions(report: &Report<'_>) -> String {
    let item = |s: &Section| format!("\\item {}: {}\n", escaped(&s.name), escaped(&s.question));
    match report.sections.as_slice() {
        [] | [_] => String::new(),
        sections => items(sections.iter().map(item)),
    }
}

fn group(group: &Group) -> String {
    let about = escaped(&group.about.words());
    let trials = match group.about.trials() {
        "" => String::new(),
        trials => format!("From {}.\n", escaped(trials)),
    };
    format!(
        "\\subsection*{{{about}}}\n{trials}{}",
        list(&group.statements)
    )
}

fn list(statements: &[Statement]) -> String {
    let item = |s: &Statement| match s.basis.as_str() {
        "" => format!("\\item {}\n", escaped(&s.text)),
        basis => format!(
            "\\item {} {{\\footnotesize Rests on: {}.}}\n",
            escaped(&s.text),
            escaped(basis)
        ),
    };
    items(statements.iter().map(item))
}

/// A list; nothing where there is no item, since LaTeX refuses an empty one.
fn items(items: impl Iterator<Item = String>) -> String {
    match items.collect::<String>() {
        none if none.is_empty() => none,
        items => format!("\\begin{{itemize}}\n{items}\\end{{itemize}}\n"),
    }
}

fn experiment(section: &Section, figure: Option<&Shown>) -> String {
    let mut text = format!(
        "\\section{{{}}}\n\\emph{{{}}}\n\n",
        escaped(&section.name),
        escaped(&section.question)
    );
    if let Some(shown) = figure {
        let _ = writeln!(
            text,
            "\\begin{{center}}\\includegraphics[width=\\linewidth,height=0.7\\textheight,keepaspectratio]{{{}}}\\end{{center}}\n{}\n",
            shown.file,
            escaped(&shown.words)
        );
    }
    text.extend(section.tables.iter().map(table));
    let _ = writeln!(
        text,
        "\\subsection*{{Evidence}}\n{}",
        table(&section.evidence)
    );
    let _ = writeln!(
        text,
        "\\subsection*{{Settings}}\n{}\n",
        escaped(&section.ended)
    );
    let settings = section.settings.iter();
    let settings: Vec<String> = settings
        .map(|(name, value)| format!("{} {}", escaped(name), escaped(value)))
        .collect();
    let _ = writeln!(text, "{}.\n\n{}", settings.join(", "), block(&section.toml));
    if !section.events.is_empty() {
        text.push_str("\\subsection*{What happened meanwhile}\n");
        let item = |event: &Event| format!("\\item {}\n", escaped(&event.line()));
        text.push_str(&items(section.events.iter().map(item)));
    }
    text
}

fn appendix(report: &Report<'_>) -> String {
    let mut text = "\\section{Environment}\n".to_owned();
    for fact in &report.environment {
        let _ = writeln!(
            text,
            "{}: {}\\par",
            escaped(&fact.name),
            escaped(&fact.values.join("; "))
        );
    }
    text.push_str("\\section{Method}\n");
    for rule in RULES {
        let _ = writeln!(text, "\\textbf{{{}.}} {}", rule.name, escaped(rule.text));
        if !rule.latex.is_empty() {
            let _ = writeln!(text, "\\[{}\\]", rule.latex);
        }
        if !rule.source.is_empty() {
            let _ = writeln!(text, "Source: {}.", escaped(rule.source));
        }
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "\\section{{Repeat it}}\nEach definition above goes into a file of its own.\n\n{}",
        block(&report.all_commands())
    );
    text
}

fn table(table: &Captioned) -> String {
    let grid = &table.grid;
    let width = |column: usize| {
        let values = grid.rows.iter().filter_map(|row| row.get(column));
        values.map(|v| v.chars().count()).max().unwrap_or(0)
    };
    let across: usize = (0..grid.headings.len())
        .map(|i| {
            width(i)
                .max(grid.headings[i].0.chars().count())
                .min(COLUMN_MAX)
                + GAP
        })
        .sum();
    let size = if across > TINY_MAX {
        "tiny\\setlength{\\tabcolsep}{0.8pt}"
    } else if across > SMALL_MAX {
        "tiny"
    } else {
        "scriptsize"
    };
    let columns: String = grid
        .headings
        .iter()
        .enumerate()
        .map(|(i, (_, right))| match (width(i), *right) {
            (long, _) if long > COLUMN_MAX => r">{\raggedright\arraybackslash}p{0.15\linewidth}",
            (_, true) => "r",
            (_, false) => "l",
        })
        .collect();
    let line = |values: Vec<String>| format!("{} \\\\\n", values.join(" & "));
    let heading = line(grid.headings.iter().map(|(h, _)| escaped(h)).collect());
    let rows = grid.rows.iter();
    let rows: String = rows
        .map(|row| line(row.iter().map(|v| escaped(v)).collect()))
        .collect();
    format!(
        "{{\\{size}\n\\begin{{longtable}}{{{columns}}}\n\\hline\n{heading}\\hline\n\\endhead\n{rows}\\hline\n\\end{{longtable}}\n}}\n{{\\footnotesize {}}}\n\n",
        escaped(&table.caption)
    )
}

/// Lines that are shown as they are. Not `verbatim`, which a line could end.
fn block(lines: &str) -> String {
    let line = |line: &str| {
        let indent = line.len() - line.trim_start_matches(' ').len();
        format!(
            "\\mbox{{}}{}{}\n",
            "~".repeat(indent),
            escaped(line.trim_start_matches(' '))
        )
    };
    let lines: String = lines.trim_end().lines().map(line).collect();
    format!("{{\\ttfamily\\footnotesize\\raggedright\\obeylines\n{lines}}}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_is_none() {
        assert_eq!(items(std::iter::empty()), "");
    }
}
