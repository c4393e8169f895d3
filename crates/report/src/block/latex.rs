//! A document in LaTeX: the draft of a paper in two columns, for pdflatex with its usual packages.

use iolab_workload::Result;

use super::latex_table::table;
use super::{Block, Drawing, Lines, List, Look, Picture};
use crate::latex::{block, escaped, sentence};

const PREAMBLE: &str = r"\pdfminorversion=7
\documentclass[a4paper,10pt,twocolumn]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{textcomp}
\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}
\input{glyphtounicode}\pdfgentounicode=1
\usepackage[margin=18mm]{geometry}
\usepackage{graphicx}
\usepackage{array}
\setlength{\columnsep}{6mm}
\setlength{\tabcolsep}{2.5pt}
\emergencystretch=3em
\sloppy
";

/// Figures with their file names.
type Figures = Vec<(String, Vec<u8>)>;

/// The document, with its figures as PDF whose names begin with `prefix`. What precedes the first part is its
/// abstract.
///
/// # Errors
/// When a figure cannot be written.
pub(crate) fn article(blocks: &[Block], prefix: &str) -> Result<(String, Figures)> {
    let is_part = |block: &Block| matches!(block, Block::Heading(heading) if heading.level > 1);
    let (head, parts) = blocks.split_at(blocks.iter().position(is_part).unwrap_or(blocks.len()));
    let mut text = PREAMBLE.to_owned();
    let mut figures = Vec::new();
    if let Some((Block::Heading(title), about)) = head.split_first() {
        text += &format!(
            "\\title{{{}}}\n\\author{{}}\n\\date{{}}\n\\begin{{document}}\n\\maketitle\n",
            escaped(&title.text)
        );
        if !about.is_empty() {
            let about = parts_in_latex(about);
            text += &format!("\\begin{{abstract}}\n{about}\\end{{abstract}}\n\n");
        }
    }
    let mut tables = 0;
    let floats = |part: &Block| matches!(part, Block::Figure(_) | Block::Table(_));
    for parts in parts.chunk_by(|a, b| floats(a) == floats(b)) {
        let mut named = Vec::new();
        let mut body = String::new();
        for part in parts {
            match part {
                Block::Figure(Picture {
                    name,
                    drawing: Drawing::Figure(figure, _),
                    ..
                }) => {
                    let file = format!("{prefix}-{name}.pdf");
                    figures.push((file.clone(), figure.pdf()?));
                    let label = format!("fig:{}", figures.len());
                    named.push(format!("Figure~\\ref{{{label}}}"));
                    body += &format!(
                        "\\begin{{figure}}[tbp]\\centering\n\\includegraphics[width=\\columnwidth,height=0.4\\textheight,keepaspectratio]{{{file}}}\n\\caption{{{}}}\\label{{{label}}}\n\\end{{figure}}\n\n",
                        sentence(figure.description())
                    );
                }
                Block::Table(one) => {
                    tables += 1;
                    let label = format!("tab:{tables}");
                    named.push(format!("Table~\\ref{{{label}}}"));
                    body += &table(one, &format!("\\label{{{label}}}"));
                }
                other => body += &written(other),
            }
        }
        // Floats drift away from the text that they belong to.
        if !named.is_empty() {
            text += &format!("See {}.\n\n", named.join(", "));
        }
        text += &body;
    }
    Ok((text + "\\end{document}\n", figures))
}

/// The parts without their figures.
pub(crate) fn parts_in_latex(blocks: &[Block]) -> String {
    blocks.iter().map(written).collect()
}

fn written(part: &Block) -> String {
    match part {
        Block::Heading(heading) => {
            let command = match heading.level {
                0..=2 => "section",
                3 => "subsection",
                4 => "subsubsection",
                _ => "paragraph",
            };
            format!("\\{command}{{{}}}\n", escaped(&heading.text))
        }
        Block::Paragraph(Look::Result, words) => format!("\\textbf{{{}}}\n\n", sentence(words)),
        Block::Paragraph(_, words) => format!("{}\n\n", sentence(words)),
        Block::List(list) => items(list),
        Block::Facts(facts) => {
            let fact = |(name, value): &(String, String)| {
                format!("{}: {}\\par\n", escaped(name), escaped(value))
            };
            let facts: String = facts.iter().map(fact).collect();
            format!("{{\\footnotesize\\raggedright\n{facts}}}\n\n")
        }
        Block::Table(one) => table(one, ""),
        Block::Lines(Lines { text, .. }) => block(text),
        Block::Figure(_) | Block::Contents(_) => String::new(),
    }
}

/// A list; empty text for no items.
fn items(list: &List) -> String {
    let name = if list.is_ordered {
        "enumerate"
    } else {
        "itemize"
    };
    let items = list.items.iter();
    let items = items.map(|item| format!("\\item {}\n", sentence(&item.in_full())));
    match items.collect::<String>() {
        none if none.is_empty() => none,
        items => format!("\\begin{{{name}}}\n{items}\\end{{{name}}}\n\n"),
    }
}
