//! Escapes text from a run file for LaTeX.

use std::fmt::Write as _;

use crate::notation::on_page;

/// The text with special characters of LaTeX escaped, and characters missing in its fonts replaced.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => safe.push_str("\\textbackslash{}"),
            '{' | '}' | '$' | '&' | '#' | '_' | '%' => {
                safe.push('\\');
                safe.push(c);
            }
            '~' => safe.push_str("\\textasciitilde{}"),
            '^' => safe.push_str("\\textasciicircum{}"),
            '<' => safe.push_str("\\textless{}"),
            '>' => safe.push_str("\\textgreater{}"),
            '|' => safe.push_str("\\textbar{}"),
            '"' => safe.push_str("\\textquotedbl{}"),
            '\'' => safe.push_str("\\textquotesingle{}"),
            '`' => safe.push_str("\\textasciigrave{}"),
            // Two dashes would become a long one, and a bracket after a line break would be read as an option.
            '-' | '[' | ']' => {
                safe.push('{');
                safe.push(c);
                safe.push('}');
            }
            // No-break spaces; the second one is narrow.
            '\u{a0}' => safe.push('~'),
            '\u{202f}' => safe.push_str("\\,"),
            '−' => safe.push_str("$-$"),
            '≤' => safe.push_str("$\\le$"),
            '√' => safe.push_str("$\\surd$"),
            'Σ' => safe.push_str("$\\Sigma$"),
            c if c.is_ascii() && !c.is_control() => safe.push(c),
            // pdflatex supports Latin-1.
            '\u{a1}'..='\u{ff}' if c != '\u{ad}' => safe.push(c),
            c => {
                let _ = write!(safe, "{{[}}U+{:04X}{{]}}", u32::from(c));
            }
        }
    }
    safe
}

/// A sentence in the notation of pages.
pub(crate) fn sentence(text: &str) -> String {
    escaped(&on_page(text))
}

/// Lines that are shown as they are. Not `verbatim`, which a line could end.
pub(crate) fn block(lines: &str) -> String {
    let line = |line: &str| {
        let indent = line.len() - line.trim_start_matches(' ').len();
        format!(
            "\\mbox{{}}{}{}\n",
            "~".repeat(indent),
            escaped(line.trim_start_matches(' '))
        )
    };
    let lines: String = lines.trim_end().lines().map(line).collect();
    format!("{{\\ttfamily\\scriptsize\\raggedright\\obeylines\n{lines}}}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        assert_eq!(
            escaped(r"50 % of \input{x} $a_b$ --"),
            r"50 \% of \textbackslash{}input\{x\} \$a\_b\$ {-}{-}"
        );
        assert_eq!(sentence("12345 us at 4KiB"), r"12\,345~µs at 4~KiB");
        assert_eq!(escaped("µ → 文"), "µ {[}U+2192{]} {[}U+6587{]}");
    }
}
