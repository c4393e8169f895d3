//! Text that is safe to show, since text from a run file may contain sequences that a terminal executes; and safe to paste
//! into a shell.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

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

/// Files as arguments of a command, for a shell.
pub fn shell_words(files: &[PathBuf]) -> String {
    let names: Vec<String> = files.iter().map(|file| shell_path(file)).collect();
    names.join(" ")
}

/// A path as one word for a shell, even if it is not UTF-8.
pub fn shell_path(path: &Path) -> String {
    if let Some(text) = path.to_str() {
        return shell_word(text);
    }
    let bytes = path.as_os_str().as_encoded_bytes();
    let visible: String = bytes
        .utf8_chunks()
        .flat_map(|chunk| [visible(chunk.valid()), hex(chunk.invalid())])
        .collect();
    format!("$'{visible}'")
}

/// Quotes a text as one word for a shell, without characters that would steer a terminal. Those become `$'\x1b'`, which
/// bash, zsh and ksh read, and the POSIX shell of 2024.
pub fn shell_word(text: &str) -> String {
    let harmless = |c: char| c.is_alphanumeric() || "-_./:=,+%@".contains(c);
    if text.contains(steers) {
        return format!("$'{}'", visible(text));
    }
    match !text.is_empty() && text.chars().all(harmless) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// The content between `$'` and `'` that stands for a text.
fn visible(text: &str) -> String {
    let visible = |c: char| match c {
        '\'' | '\\' => format!("\\{c}"),
        c if steers(c) => hex(c.encode_utf8(&mut [0; 4]).as_bytes()),
        c => c.to_string(),
    };
    text.chars().map(visible).collect()
}

fn hex(bytes: &[u8]) -> String {
    let hex = |byte| format!("\\x{byte:02x}");
    bytes.iter().map(hex).collect()
}
