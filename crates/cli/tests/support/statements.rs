//! Statements of the formats of a report, without escapes.

use crate::visible;

/// Text with single spaces between its words.
pub(crate) fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The paragraphs of the list below a table.
pub(crate) fn of_text(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut continues = false;
    for line in text.lines() {
        if let Some(first) = line.strip_prefix("- ") {
            all.push(first.to_owned());
            continues = true;
        } else if let (true, Some(more), Some(last)) =
            (continues, line.strip_prefix("  "), all.last_mut())
        {
            last.push(' ');
            last.push_str(more);
        } else {
            continues = false;
        }
    }
    all.iter().map(|text| plain(text)).collect()
}

/// Findings, trust and limits of the study, each statement with its basis.
pub(crate) fn of_markdown(markdown: &str) -> Vec<(String, String)> {
    let parts = [
        "What was found", "How far to trust it", "Limits of this study",
    ];
    let part = |heading: &&str| {
        let mut parts = markdown.split("\n## ");
        parts.find(|part| part.starts_with(*heading))
    };
    let lines = parts.iter().filter_map(part).flat_map(str::lines);
    let lines = lines.filter_map(|line| line.strip_prefix("- ")?.split_once(" Based on: "));
    lines
        .map(|(text, basis)| {
            let basis = basis.trim_end_matches('.');
            (unescaped_markdown(text), unescaped_markdown(basis))
        })
        .collect()
}

pub(crate) fn unescaped_markdown(text: &str) -> String {
    let text = text.replace('\\', "");
    plain(
        &text
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&"),
    )
}

/// Statements of the first part of a page, and of its sections.
pub(crate) fn of_page(page: &str) -> (Vec<String>, Vec<String>) {
    let (_, found) = page
        .split_once("<section id=\"found\">")
        .expect("what matters");
    let (first, sections) = found.split_once("</section>").expect("its end");
    let (sections, _) = sections
        .split_once("<section id=\"all\">")
        .expect("their end");
    let lines = |html: &str| visible(html).lines().map(unescaped_html).collect();
    (lines(first), lines(sections))
}

pub(crate) fn unescaped_html(text: &str) -> String {
    let mut text = text.to_owned();
    for (escaped, c) in [
        ("&#60;", "<"),
        ("&#62;", ">"),
        ("&#39;", "'"),
        ("&#34;", "\""),
        ("&#38;", "&"),
    ] {
        text = text.replace(escaped, c);
    }
    // Spaces in the notation of pages.
    for (shown, plain) in [("\u{202f}", ""), ("\u{a0}", " ")] {
        text = text.replace(shown, plain);
    }
    plain(&text)
}

/// The paragraphs of the results, and of the threats to validity.
pub(crate) fn of_latex(latex: &str) -> Vec<String> {
    let found = latex.split("\\section{Results}").nth(1).unwrap_or_default();
    let lines = found.lines().map(|line| {
        // An item begins with its experiment.
        let item = line
            .strip_prefix("\\item ")
            .and_then(|item| item.split_once(": "));
        unescaped_latex(item.map_or(line, |(_, text)| text))
    });
    lines.collect()
}

pub(crate) fn unescaped_latex(text: &str) -> String {
    let mut text = text.to_owned();
    for (escaped, plain) in [
        ("~", " "),
        ("\\,", ""),
        ("\\textless{}", "<"),
        ("\\textgreater{}", ">"),
        ("\\textquotesingle{}", "'"),
        ("\\textbar{}", "|"),
        ("{-}", "-"),
        ("{[}", "["),
        ("{]}", "]"),
        ("\\%", "%"),
        ("\\_", "_"),
        ("\\&", "&"),
        ("\\#", "#"),
    ] {
        text = text.replace(escaped, plain);
    }
    plain(&text)
}
