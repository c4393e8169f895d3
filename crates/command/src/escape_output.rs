//! Filter for all text to stdout, stderr and files: escapes characters that could control a terminal, whatever their source.
//!
//! Run files, experiments and job files have many foreign texts, and one unescaped line suffices for an attack.
//! The reports escape text that they know to be foreign; this filter covers everything.

use std::borrow::Cow;
use std::io::{self, Write};

use iolab_workload::escape_control::steers;

/// Whether a character is escaped: it could control a terminal, and is not a line break or tab.
fn is_replaced(c: char) -> bool {
    steers(c) && c != '\n' && c != '\t'
}

/// The text with everything escaped that could control a terminal, except line breaks and tabs. Escapes have four digits
/// (`\u001b`), so that JSON stays valid.
pub fn harmless(text: &str) -> Cow<'_, str> {
    // ASCII text needs no replacement, which a look at its bytes shows quickly: a file can have gigabytes.
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    if text.bytes().all(is_plain) || !text.contains(is_replaced) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_replaced(c) {
            true => safe.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

/// The text with our units spelled in ASCII if nothing else is shown.
pub fn spelled(text: &str, ascii: bool) -> Cow<'_, str> {
    match ascii {
        true => Cow::Owned(
            text.replace(" µs", " us")
                .replace('±', "+/-")
                .replace('×', "x"),
        ),
        false => Cow::Borrowed(text),
    }
}

/// A writer that applies [`harmless`].
pub struct Harmless<W: Write> {
    to: W,
    /// Whether the output can only show ASCII: iolab's unit µs then becomes `us`; other text stays.
    ascii: bool,
    /// The first bytes of an incomplete character.
    begun: Vec<u8>,
}

impl<W: Write> Harmless<W> {
    /// Wraps a writer.
    pub fn new(to: W, ascii: bool) -> Self {
        Self {
            to,
            ascii,
            begun: Vec::new(),
        }
    }

    /// Writes all complete characters of `bytes`, with invalid ones replaced. Returns the rest.
    fn pass<'a>(&mut self, bytes: &'a [u8]) -> io::Result<&'a [u8]> {
        let mut rest = bytes;
        for chunk in bytes.utf8_chunks() {
            self.put(chunk.valid())?;
            rest = &rest[chunk.valid().len()..];
            let is_last = rest.len() == chunk.invalid().len();
            let wrong = std::str::from_utf8(chunk.invalid());
            if is_last && wrong.is_err_and(|error| error.error_len().is_none()) {
                return Ok(rest);
            }
            if !chunk.invalid().is_empty() {
                self.put(REPLACEMENT)?;
                rest = &rest[chunk.invalid().len()..];
            }
        }
        Ok(rest)
    }

    fn put(&mut self, text: &str) -> io::Result<()> {
        self.to
            .write_all(spelled(&harmless(text), self.ascii).as_bytes())
    }
}

/// Replacement for bytes that are not text.
const REPLACEMENT: &str = "\u{fffd}";

impl<W: Write> Write for Harmless<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = match self.begun.is_empty() {
            true => self.pass(bytes)?.to_vec(),
            false => {
                let whole = [&std::mem::take(&mut self.begun), bytes].concat();
                self.pass(&whole)?.to_vec()
            }
        };
        self.begun = left;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.begun).is_empty() {
            self.put(REPLACEMENT)?;
        }
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output for these pieces.
    fn written(pieces: &[&[u8]]) -> String {
        let mut to = Harmless::new(Vec::new(), false);
        for piece in pieces {
            to.write_all(piece).expect("written");
        }
        to.flush().expect("flushed");
        String::from_utf8(to.to).expect("UTF-8")
    }

    #[test]
    fn line_breaks_are_kept_and_escapes_are_not() {
        assert_eq!(harmless("a\tb\n\u{1b}[31mc"), "a\tb\n\\u001b[31mc");
        assert_eq!(harmless("\u{9b}2J\u{202e}"), "\\u009b2J\\u202e");
        assert!(matches!(harmless("4 KiB µs 文件\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_character_may_come_in_pieces() {
        let text = "µ文\u{1b}[2J\u{9b}x".as_bytes();
        let whole = written(&[text]);
        assert_eq!(whole, "µ文\\u001b[2J\\u009bx");
        for at in 0..text.len() {
            assert_eq!(written(&[&text[..at], &text[at..]]), whole);
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(written(&bytes), whole);
    }

    #[test]
    fn ascii_only_output_spells_units_in_ascii() {
        let mut to = Harmless::new(Vec::new(), true);
        to.write_all("12.3 µs of µ.iolab".as_bytes())
            .expect("written");
        assert_eq!(to.to, "12.3 us of µ.iolab".as_bytes());
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        assert_eq!(
            written(&[b"a\x9b2J\xffb\xc2"]),
            "a\u{fffd}2J\u{fffd}b\u{fffd}"
        );
    }

    #[test]
    fn json_stays_json() {
        let text = serde_json::json!({"a\u{9b}": "\u{1b}[2J\u{202e}\u{2028}"}).to_string();
        let safe = harmless(&text);
        assert!(!safe.contains(steers), "{safe}");
        let value: serde_json::Value = serde_json::from_str(&safe).expect("JSON");
        assert_eq!(value["a\u{9b}"], "\u{1b}[2J\u{202e}\u{2028}");
    }
}
