//! What the kernel says in files of `/proc` and `/sys`.

use std::fs;
use std::path::Path;

/// The content of a file of `/proc` or `/sys` without the blanks around it; `None` where it is missing or empty.
pub fn text_of(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// The content of a file of `/proc` whose text may hold names that are not UTF-8, which are shown with marks in their places.
///
/// # Errors
/// It cannot be read.
pub(crate) fn lossy_text_of(path: impl AsRef<Path>) -> std::io::Result<String> {
    let bytes = fs::read(path)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The entry in brackets of a list such as `none [mq-deadline] kyber`; the whole text when there is none.
pub fn chosen(text: &str) -> String {
    let inside = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text, |(name, _)| name).trim().to_owned()
}

/// A file of `/proc` or `/sys` that holds a number.
pub fn number_of(path: impl AsRef<Path>) -> Option<u64> {
    text_of(path)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_in_brackets_is_chosen() {
        assert_eq!(chosen("none [mq-deadline] kyber bfq\n"), "mq-deadline");
        assert_eq!(chosen("none\n"), "none");
        assert_eq!(chosen("[none\n"), "[none");
    }
}
