//! Output of commands to stdout, stderr and files: its width, characters and colours, messages and events, the text of runs, and the
//! filter for all of it.

mod files;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_report::chart::Style;
use iolab_report::findings::interpretation::Interpretation;
use iolab_report::findings::{Finding, cross_findings};
use iolab_report::layout::paragraph;
use iolab_report::overview::{Input, Overview};
use iolab_report::{layout, run_text};
use iolab_workload::escape_control::{escape_control, steers};
use iolab_workload::{Error, Result};
use serde_json::{Map, Value};
use terminal_size::terminal_size_of;

use crate::failure::Outcome;
pub use files::{
    Replaceable, check_replaceable, create, exists, exists_without_force, is_stdout, open,
    open_raw, replace,
};

#[cfg(unix)]
use std::os::fd::AsFd as Stream;
#[cfg(windows)]
use std::os::windows::io::AsHandle as Stream;

/// Columns assumed without a terminal.
const WIDTH_ELSEWHERE: u16 = 100;

/// Widest lines, for readability.
const WIDTH_MAX: u16 = 220;

/// The style of charts and tables on stdout, by the terminal, the locale and the environment.
pub fn style() -> Style {
    Style {
        width: width(),
        ascii: is_ascii_only(),
    }
}

fn width() -> u16 {
    let elsewhere = || {
        let asked = std::env::var("COLUMNS").ok()?;
        asked.parse().ok()
    };
    let width = terminal_width(io::stdout()).or_else(elsewhere);
    clamped(width.unwrap_or(WIDTH_ELSEWHERE))
}

/// The columns of a terminal, unless `COLUMNS` is set; `None` without a terminal.
fn terminal_width(to: impl IsTerminal + Stream) -> Option<u16> {
    if !to.is_terminal() {
        return None;
    }
    let asked = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    asked.or_else(|| terminal_size_of(&to).map(|(columns, _)| columns.0))
}

/// A readable width.
fn clamped(width: u16) -> u16 {
    width.clamp(layout::WIDTH_MIN, WIDTH_MAX)
}

/// Whether the terminal or locale supports only ASCII. Without information, Unicode is assumed.
fn is_ascii_only() -> bool {
    if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
        return true;
    }
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(std::env::var_os)
        .find(|value| !value.is_empty());
    locale.is_some_and(|value| {
        let value = value.to_string_lossy().to_ascii_lowercase();
        !value.contains("utf-8") && !value.contains("utf8")
    })
}

/// Whether stdout supports colours: a terminal other than dumb, and colours not disabled (no-color.org).
pub fn is_coloured() -> bool {
    takes_colours(&io::stdout())
}

/// Whether stderr supports colours.
pub fn colours_of_stderr() -> bool {
    takes_colours(&io::stderr())
}

fn takes_colours(to: &impl IsTerminal) -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    to.is_terminal() && !is_dumb() && !is_set("NO_COLOR")
}

/// Whether the terminal is dumb.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term == "dumb")
}

/// Kind of output on stderr during measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Log {
    /// The live view, on a terminal.
    Live,
    /// Notes, and a line at the start and the end of each experiment.
    Lines,
    /// An object per event, as JSON.
    Json,
    /// Errors only.
    Quiet,
}

static LOG: OnceLock<Log> = OnceLock::new();

/// Prints a line above a live view; returns whether there is one.
type TellAbove = fn(&str) -> bool;

static VIEW: OnceLock<TellAbove> = OnceLock::new();

/// Has a live view print the lines that arrive while it is shown.
pub fn set_view(tell: TellAbove) {
    // Later views pass the same function, so a second call may be ignored.
    let _ = VIEW.set(tell);
}

/// Sets the mode, once, before any output. Without a suitable terminal, the live view becomes lines.
pub fn set_log(asked: Log) {
    let asked = match asked {
        Log::Live if is_dumb() || !io::stderr().is_terminal() => Log::Lines,
        asked => asked,
    };
    // Set only once.
    let _ = LOG.set(asked);
}

/// The mode.
pub fn log() -> Log {
    LOG.get().copied().unwrap_or(Log::Lines)
}

/// Prints a message on stderr.
pub fn note(text: impl Display) {
    let text = text.to_string();
    match log() {
        Log::Quiet => {}
        Log::Json => {
            let text = text.trim().trim_start_matches("note: ");
            event("note", Map::from_iter([("text".to_owned(), text.into())]));
        }
        Log::Live | Log::Lines => told(&text),
    }
}

/// Notes that the user has seen.
static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Prints a note on stderr, unless the user has seen it: several runs of a command have much in common.
pub fn note_once(text: &str) {
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if told.insert(text.to_owned()) {
        note(format_args!("note: {text}"));
    }
}

/// Prints a message with the time on stderr.
pub fn stamped(text: &str) {
    note(format_args!("{} {text}", now()));
}

/// Writes an event as JSON on stderr.
pub fn event(name: &str, fields: Map<String, Value>) {
    let head = [("at", now()), ("event", name.to_owned())];
    let head = head.map(|(key, text)| (key.to_owned(), Value::String(text)));
    let event: Map<String, Value> = head.into_iter().chain(fields).collect();
    error_line(&harmless(&Value::Object(event).to_string()));
}

/// The time, to the second.
fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

/// Writes a line on stderr, above the live view if there is one. Ignores errors, which are not a reason to stop measuring.
fn error_line(text: &str) {
    if VIEW.get().is_some_and(|tell| tell(text)) {
        return;
    }
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Writes a text on stderr, wrapped between words on a terminal; logs keep one line per message.
pub fn told(text: &str) {
    let text = harmless(text);
    let text = spelled(&text, style().ascii);
    match terminal_width(io::stderr()) {
        Some(width) => error_line(within(&text, clamped(width)).trim_end_matches('\n')),
        None => error_line(&text),
    }
}

/// A text in lines of at most `width` columns, indented after `note:` and the like. A command stays whole, to be pasted.
fn within(text: &str, width: u16) -> String {
    const MARKS: [&str; 3] = ["note: ", "error: ", "  "];
    let lines = text.split('\n').map(|line| {
        let mark = MARKS.into_iter().find(|mark| line.starts_with(mark));
        let mark = mark.unwrap_or_default();
        match line.is_empty() {
            true => "\n".to_owned(),
            false => paragraph(&line[mark.len()..], mark, width),
        }
    });
    lines.collect()
}

/// Whether the reader of a pipe has closed it.
fn is_closed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

/// Standard output of a command that measures. An error, such as a closed pipe or a full disk, does not end the measurement:
/// further output is discarded, the user is informed at once, and the command fails at its end.
pub struct Results {
    to: BufWriter<Harmless<io::Stdout>>,
    failed: Option<io::Error>,
}

impl Default for Results {
    fn default() -> Self {
        Self {
            to: BufWriter::new(Harmless::new(io::stdout(), style().ascii)),
            failed: None,
        }
    }
}

impl Results {
    fn attempt(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
        if self.failed.is_some() {
            return;
        }
        self.failed = write(&mut self.to).err();
        if let Some(error) = self.failed.as_ref().filter(|error| !is_closed(error)) {
            note(format_args!(
                "note: standard output cannot be written ({error}): the results go to the run files only"
            ));
        }
    }

    /// Flushes the output. `kept` names the results. A reader that closed the pipe has seen enough, which is not a failure.
    ///
    /// # Errors
    ///
    /// Of kind [`Failed`](iolab_workload::Kind::Failed) when anything could not be written.
    pub fn end(mut self, kept: impl Display) -> Result<()> {
        self.attempt(|to| to.flush());
        match self.failed {
            None => Ok(()),
            Some(error) if is_closed(&error) => {
                note(format_args!(
                    "note: standard output was closed early; see the results with: iolab table {kept}"
                ));
                Ok(())
            }
            Some(error) => Err(Error::failed(format!(
                "everything is measured, but standard output could not be written: {error}"
            ))
            .hint(format!("see the results with: iolab table {kept}"))),
        }
    }
}

impl Write for Results {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.attempt(|to| to.write_all(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.attempt(|to| to.flush());
        Ok(())
    }
}

/// Lines after the text of a run: an empty one, and its run file.
const LINES_BELOW: usize = 2;

/// Writes everything about one run.
pub fn report(run: &AnalysedRun, interpretation: &Interpretation, to: &mut dyn Write) -> Outcome {
    let text = run_text::text(run, interpretation, &style());
    Ok(write!(to, "{text}")?)
}

/// Writes the summary of a run, one line per target.
pub fn conclusions(interpretation: &Interpretation, to: &mut dyn Write) -> Outcome {
    let width = style().width;
    for line in &interpretation.conclusions {
        let line = escape_control(&line.text);
        write!(to, "{}", paragraph(&line, "", width))?;
    }
    Ok(())
}

/// Writes findings as paragraphs that fit the width.
pub fn sentences(findings: &[Finding], style: Style, to: &mut dyn Write) -> Outcome {
    let texts: Vec<&str> = findings.iter().map(|f| f.text.as_str()).collect();
    paragraphs(&texts, style, to)
}

/// Writes texts as a list of paragraphs that fit the width.
pub fn paragraphs(texts: &[impl AsRef<str>], style: Style, to: &mut dyn Write) -> Outcome {
    for text in texts {
        write!(
            to,
            "{}",
            paragraph(&escape_control(text.as_ref()), "- ", style.width)
        )?;
    }
    Ok(())
}

/// Writes one run, in full or in brief.
fn run(input: &Input, full: bool, to: &mut dyn Write) -> Outcome {
    let text = match full {
        true => return report(&input.run, &input.interpretation, to),
        false => Overview::new([input]).screen(LINES_BELOW, &style()),
    };
    Ok(write!(to, "{text}")?)
}

/// Writes runs one after the other, then their common findings; of runs that a command has just made only what matters.
pub fn runs(inputs: &[Input], full: bool, to: &mut dyn Write) -> Outcome {
    for (number, input) in inputs.iter().enumerate() {
        if number > 0 {
            writeln!(to)?;
        }
        run(input, full, to)?;
    }
    if inputs.len() > 1 {
        let analyses = inputs.iter().map(|input| input.run.analysis());
        let found = cross_findings(analyses);
        if !found.is_empty() {
            writeln!(to, "\nAll together\n")?;
            sentences(&found, style(), to)?;
        }
    }
    Ok(())
}

/// Whether a character is escaped: it could control a terminal, and is not a line break or tab.
fn is_replaced(c: char) -> bool {
    steers(c) && c != '\n' && c != '\t'
}

/// The text with everything escaped that could control a terminal, except line breaks and tabs. Escapes have four digits
/// (`\u001b`), so that JSON stays valid.
///
/// All text to stdout, stderr and files is filtered, whatever its source: run files, experiments and job files have many foreign
/// texts, and one unescaped line suffices for an attack. The reports escape text that they know to be foreign; this filter covers
/// everything.
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

    #[test]
    fn messages_are_wrapped_between_words() {
        let text = "note: one two three four five six seven eight nine ten\n\nrun file: a/b";
        assert_eq!(
            within(text, 40),
            "note: one two three four five six seven\n      eight nine ten\n\nrun file: a/b\n"
        );
        assert_eq!(
            within(
                "  finish the runs with: iolab resume a.iolab b.iolab c.iolab",
                40
            ),
            "  finish the runs with:\n  iolab resume a.iolab b.iolab c.iolab\n"
        );
    }
}

#[cfg(test)]
mod escaping_tests {
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
        let value: Value = serde_json::from_str(&safe).expect("JSON");
        assert_eq!(value["a\u{9b}"], "\u{1b}[2J\u{202e}\u{2028}");
    }
}
