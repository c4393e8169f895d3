//! Escapes text from a run file for Markdown, so that it contains no markup, HTML or links.
//!
//! Source: the specifications of CommonMark 0.31 and of GitHub Flavored Markdown, whose autolinks need no brackets.

use iolab_workload::escape_control::escape_control;

use crate::notation::in_text;

/// Characters of markup, with a backslash before each.
const MARKS: &str = r"\`*_{}[]#|!~$";

/// Text within a line or a table cell.
pub(crate) fn escaped(text: &str) -> String {
    let text = escape_control(text);
    let mut safe = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let (before, after) = (&text[..at], &text[at + c.len_utf8()..]);
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            c => {
                if MARKS.contains(c) || begins_link(before, c, after) {
                    safe.push('\\');
                }
                safe.push(c);
            }
        }
    }
    safe
}

/// Whether this character makes the surrounding text a link: `https://`, `www.`, `mailto:` or an address.
fn begins_link(before: &str, c: char, after: &str) -> bool {
    let ends_with = |end: &str| {
        let at = before.len().checked_sub(end.len());
        let tail = at.and_then(|at| before.get(at..));
        tail.is_some_and(|tail| tail.eq_ignore_ascii_case(end))
    };
    match c {
        '@' => true,
        ':' => after.starts_with('/') || ends_with("mailto") || ends_with("xmpp"),
        '.' => ends_with("www"),
        _ => false,
    }
}

/// Text at the beginning of a line: also escapes list items, headings, rules and code blocks.
pub(crate) fn line(text: &str) -> String {
    let safe = escaped(text.trim());
    let digits = safe.bytes().take_while(u8::is_ascii_digit).count();
    let at = match safe[digits..].chars().next() {
        // A dot or a bracket follows the number of a list item.
        Some('.' | ')') if digits > 0 => digits,
        Some('-' | '+' | '=') if digits == 0 => 0,
        _ => return safe,
    };
    let (before, after) = safe.split_at(at);
    format!("{before}\\{after}")
}

/// A sentence at the beginning of a line, in the notation of words.
pub fn sentence(text: &str) -> String {
    line(&in_text(text))
}

/// A code block, whose fences are longer than any in its lines.
pub(crate) fn block(lines: &str) -> String {
    let longest = lines
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}\n\n", lines.trim_end())
}

#[cfg(test)]
mod tests {
    use comrak::{Options, markdown_to_html};
    use proptest::prelude::*;

    use super::*;

    /// The page that GitHub makes of it.
    fn shown(markdown: &str) -> String {
        let mut options = Options::default();
        options.extension.autolink = true;
        options.extension.strikethrough = true;
        options.extension.table = true;
        options.extension.tasklist = true;
        options.extension.footnotes = true;
        options.extension.math_dollars = true;
        options.render.r#unsafe = true;
        markdown_to_html(markdown, &options)
    }

    /// The text as HTML shows it.
    fn html(text: &str) -> String {
        escape_control(text)
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            .replace('"', "&quot;")
    }

    #[test]
    fn fence_is_longer_than_fences_inside() {
        assert_eq!(block("a\n"), "```\na\n```\n\n");
        assert_eq!(block("```\nb"), "````\n```\nb\n````\n\n");
    }

    #[test]
    fn text_stays_text() {
        assert_eq!(
            escaped("[a](b) <img> `x` | y_z"),
            "\\[a\\](b) &lt;img&gt; \\`x\\` \\| y\\_z"
        );
        assert_eq!(
            escaped("see https://x.org/a: www.x.org, MAILTO:a@b.c"),
            "see https\\://x.org/a: www\\.x.org, MAILTO\\:a\\@b.c"
        );
        assert_eq!(escaped("a\nb\u{1b}c"), "a\\\\u\\{a\\}b\\\\u\\{1b\\}c");
        assert_eq!(escaped("-1.5 at 10:30"), "-1.5 at 10:30");
    }

    #[test]
    fn a_line_begins_with_text() {
        for text in [
            "- a", "+ a", "-", "---", "===", "1. a", "12) a", "1.", "> a", "    a", "# a", "\ta",
        ] {
            let expected = format!("<p>{}</p>\n", html(text.trim()));
            assert_eq!(shown(&line(text)), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_paragraph_of_itself(
            text in prop_oneof![
                any::<String>(),
                "[-+=*_`~<>&!\\[\\](){}#|.:/\\\\\"'$@^ a0-2w\n\t]{0,24}",
                "(https?://|HTTP://|ftp://|www\\.|WWW\\.|mailto:|xmpp:|<b>|<!--|!\\[|\\]\\(|&#60;|&lt;|\\\\|:smile:| |[a-c.@/:]){1,8}",
            ]
        ) {
            let page = shown(&line(&text));
            let text = html(text.trim());
            let expected = if text.is_empty() { String::new() } else { format!("<p>{text}</p>\n") };
            prop_assert_eq!(page, expected);
        }

        #[test]
        fn any_text_is_one_cell_of_a_table(text in "[-+=*_`~<>&!\\[\\](){}#|.:/\\\\\"'$@ a0-2w\n\t]{0,24}") {
            let page = shown(&format!("| h | i |\n|---|---|\n| {} | x |\n", escaped(&text)));
            let expected = format!("<tr>\n<td>{}</td>\n<td>x</td>\n</tr>", html(text.trim_matches(' ')));
            prop_assert!(page.contains(&expected), "{}", page);
        }
    }
}
