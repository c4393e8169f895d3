//! Words of a command line as people paste them.

use std::path::PathBuf;

use crate::escape_control::steers;

/// Files as arguments of a command, for a shell.
pub fn shell_words(files: &[PathBuf]) -> String {
    let names: Vec<String> = files
        .iter()
        .map(|file| shell_word(&file.to_string_lossy()))
        .collect();
    names.join(" ")
}

/// Quotes a text as one word for a shell, without characters that would steer a terminal: those become `$'\x1b'`, which bash, zsh and ksh
/// read, and the POSIX shell of 2024.
pub fn shell_word(text: &str) -> String {
    let harmless = |c: char| c.is_alphanumeric() || "-_./:=,+%@".contains(c);
    if text.contains(steers) {
        let visible = |c: char| match c {
            '\'' | '\\' => format!("\\{c}"),
            c if steers(c) => {
                let mut buffer = [0; 4];
                let bytes = c.encode_utf8(&mut buffer).bytes();
                bytes.map(|byte| format!("\\x{byte:02x}")).collect()
            }
            c => c.to_string(),
        };
        return format!("$'{}'", text.chars().map(visible).collect::<String>());
    }
    match !text.is_empty() && text.chars().all(harmless) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_a_word_back_as_it_was() {
        for (text, word) in [
            ("plain-1.txt", "plain-1.txt"),
            ("", "''"),
            ("it's a $HOME", r"'it'\''s a $HOME'"),
            ("a\u{1b}[2Jb", r"$'a\x1b[2Jb'"),
            ("it's\ntwo\\", r"$'it\'s\x0atwo\\'"),
            ("\u{202e}f", r"$'\xe2\x80\xaef'"),
        ] {
            assert_eq!(shell_word(text), word);
        }
    }

    #[test]
    fn a_file_is_one_argument() {
        let files = ["a.iolab", "b c.iolab", "$d.iolab"].map(PathBuf::from);
        assert_eq!(shell_words(&files), "a.iolab 'b c.iolab' '$d.iolab'");
    }
}
