//! Messages and events on stderr.

use std::fmt::Display;
use std::io::IsTerminal;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::SystemTime;

use iolab_report::layout::paragraph;
use serde_json::{Map, Value};

use super::terminal::is_dumb;
use super::terminal::{clamped, style, terminal_width};
use crate::escape_output::{harmless, spelled};

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
        Log::Live => told(&text),
        Log::Lines => told(&text),
    }
}

/// Prints a note on stderr and adds it to `told`, unless it is there already.
pub fn note_once(told: &mut Vec<String>, text: String) {
    if !told.contains(&text) {
        note(format_args!("note: {text}"));
        told.push(text);
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
