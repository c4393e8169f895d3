//! Words of a command line as people paste them.

/// Quotes a text as one word for a shell.
pub fn shell_word(text: &str) -> String {
    let harmless = |c: char| c.is_alphanumeric() || "-_./:=,+%@".contains(c);
    match !text.is_empty() && text.chars().all(harmless) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}
