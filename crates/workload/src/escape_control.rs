//! Escapes control characters, since text from a run file may contain sequences that a terminal executes.

use std::borrow::Cow;

/// Replaces every character that may control a terminal by a visible form: control characters (`\u{1b}`), line and paragraph
/// separators, and marks that reverse the direction of writing.
pub fn escape_control(text: &str) -> Cow<'_, str> {
    // Most text is ASCII, in which a single byte shows that nothing has to be replaced.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) || !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if steers(c) {
            safe.extend(c.escape_unicode());
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

/// Whether a character may control a terminal or reorder the text after it.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_is_left_alone() {
        assert!(matches!(escape_control("4KiB µs 文件"), Cow::Borrowed(_)));
    }

    #[test]
    fn commands_to_a_terminal_become_visible() {
        assert_eq!(escape_control("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(escape_control("a\r\nb\u{9b}c"), "a\\u{d}\\u{a}b\\u{9b}c");
        assert_eq!(escape_control("x\u{202e}y"), "x\\u{202e}y");
    }
}
