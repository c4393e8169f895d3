//! Output to stdout and stderr, and its width.

use std::fmt::Display;
use std::fs::{File, Metadata};
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::analysis::Analysis;
use iolab_analysis::equivalence::program_pairs;
use iolab_analysis::preparation::preparation;
use iolab_plan::named_file;
use iolab_report::agreement;
use iolab_report::chart::{Style, chart};
use iolab_report::compare;
use iolab_report::comparison_table;
use iolab_report::durable_write;
use iolab_report::equivalence;
use iolab_report::findings::interpretation::Interpretation;
use iolab_report::findings::{Finding, conclusion, cross_findings};
use iolab_report::input::Input;
use iolab_report::layout::{self, paragraph, wrapped};
use iolab_report::overview::Overview;
use iolab_report::panels;
use iolab_report::preparation as prepare;
use iolab_report::table;
use iolab_workload::escape_control::escape_control;
use iolab_workload::{Error, Result};
use serde_json::{Map, Value};

use crate::arguments::{LogFormat, LogOptions};
use crate::exit::Outcome;
use crate::harmless::{Harmless, harmless};
use crate::screen;

/// Columns assumed without a terminal.
const WIDTH_ELSEWHERE: u16 = 100;
/// Widest lines, for readability.
const WIDTH_MAX: u16 = 220;

/// What is printed on stderr during measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Log {
    /// The live view, on a terminal.
    Live,
    /// Notes, and a line at the start and the end of each experiment.
    Lines,
    /// An object per event, as JSON.
    Json,
    /// Errors only.
    Quiet,
}

impl Log {
    /// The mode that the options request.
    pub(crate) fn asked(options: &LogOptions) -> Self {
        match (options.log, options.quiet, options.no_live) {
            (Some(LogFormat::Json), ..) => Self::Json,
            (None, true, _) => Self::Quiet,
            (None, false, true) => Self::Lines,
            (None, false, false) => Self::Live,
        }
    }
}

static LOG: OnceLock<Log> = OnceLock::new();

/// Sets the mode, once, before any output. Without a suitable terminal, the live view becomes lines.
pub(crate) fn set_log(asked: Log) {
    let shows = io::stderr().is_terminal() && !is_dumb();
    let log = match asked {
        Log::Live if !shows => Log::Lines,
        asked => asked,
    };
    // Set only once.
    let _ = LOG.set(log);
}

/// The mode.
pub(crate) fn log() -> Log {
    LOG.get().copied().unwrap_or(Log::Lines)
}

/// Prints a message on stderr.
pub(crate) fn note(text: impl Display) {
    let text = text.to_string();
    match log() {
        Log::Quiet => {}
        Log::Json => {
            let text = text.trim().trim_start_matches("note: ");
            event("note", Map::from_iter([("text".to_owned(), text.into())]));
        }
        Log::Lines | Log::Live => told(&text),
    }
}

/// Prints a message with the time on stderr.
pub(crate) fn stamped(text: &str) {
    note(format_args!("{} {text}", now()));
}

/// Writes an event as JSON on stderr.
pub(crate) fn event(name: &str, fields: Map<String, Value>) {
    let head = [("at", now()), ("event", name.to_owned())];
    let head = head.map(|(key, text)| (key.to_owned(), Value::String(text)));
    let event: Map<String, Value> = head.into_iter().chain(fields).collect();
    error_line(&harmless(&Value::Object(event).to_string()));
}

/// The time, to the second.
fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

/// Writes a line on stderr, above the live view where there is one. Ignores errors, which are no reason to stop measuring.
pub(crate) fn error_line(text: &str) {
    if !screen::tell(text) {
        let _ = writeln!(io::stderr().lock(), "{text}");
    }
}

/// Writes a text on stderr, wrapped between words on a terminal; logs keep one line per message.
pub(crate) fn told(text: &str) {
    let text = harmless(text);
    match terminal_width(io::stderr()) {
        Some(width) => error_line(within(&text, clamped(width)).trim_end_matches('\n')),
        None => error_line(&text),
    }
}

/// A text in lines of at most `width` columns, indented after `note:` and the like.
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

/// The style of charts and tables on stdout.
pub(crate) fn style() -> Style {
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
fn terminal_width(to: impl IsTerminal + AsFd) -> Option<u16> {
    if !to.is_terminal() {
        return None;
    }
    let asked = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let size = || rustix::termios::tcgetwinsize(&to).ok();
    let shown = || {
        size()
            .map(|size| size.ws_col)
            .filter(|columns| *columns > 0)
    };
    asked.or_else(shown)
}

/// A readable width.
fn clamped(width: u16) -> u16 {
    width.clamp(layout::WIDTH_MIN, WIDTH_MAX)
}

/// Whether the terminal or locale supports only ASCII. Without information, Unicode is assumed.
pub(crate) fn is_ascii_only() -> bool {
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
pub(crate) fn is_coloured() -> bool {
    takes_colours(&io::stdout())
}

/// Whether stderr supports colours.
pub(crate) fn colours_of_stderr() -> bool {
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

/// Writes the question, the table, the chart, the comparison with other tools and the findings of one run.
pub(crate) fn report(
    run: &AnalysedRun,
    interpretation: &Interpretation,
    to: &mut dyn Write,
) -> Outcome {
    let (analysis, style) = (run.analysis(), style());
    heading(analysis, style, to)?;
    write!(to, "{}", table::text(analysis, style.width))?;
    writeln!(to, "\n{}", chart(analysis, &style))?;
    for pair in program_pairs(analysis) {
        writeln!(to, "{}", equivalence::text(&pair, style.width))?;
    }
    for comparison in comparison_table::tabled(analysis) {
        writeln!(to, "{}", comparison_table::text(&comparison, style.width))?;
    }
    let prepared = preparation(analysis);
    if !prepared.is_empty() {
        writeln!(to, "{}", prepare::text(&prepared, style.width))?;
    }
    for comparison in &interpretation.peers {
        writeln!(to, "{}", compare::text(comparison, style.width))?;
        paragraphs(&compare::remarks(comparison), style, to)?;
        writeln!(to)?;
    }
    sentences(&interpretation.findings, style, to)
}

/// Writes the one-line summary of a run, and its question.
fn heading(analysis: &Analysis, style: Style, to: &mut dyn Write) -> Outcome {
    if let Some(line) = conclusion(analysis) {
        writeln!(
            to,
            "{}\n",
            paragraph(&escape_control(&line), "", style.width).trim_end()
        )?;
    }
    Ok(writeln!(
        to,
        "{}",
        wrapped(&escape_control(&analysis.question), style.width)
    )?)
}

/// Writes one run, in full or only what matters.
pub(crate) fn run(input: &Input, full: bool, to: &mut dyn Write) -> Outcome {
    match full {
        true => report(&input.run, &input.interpretation, to),
        false => brief(input, to),
    }
}

/// Writes runs one after the other, and what several show together.
pub(crate) fn runs(inputs: &[Input], full: bool, to: &mut dyn Write) -> Outcome {
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

/// Writes the question, whether other tools agree, the table, its curves and the findings that matter.
fn brief(input: &Input, to: &mut dyn Write) -> Outcome {
    let (analysis, style) = (input.run.analysis(), style());
    if durable_write::asks(input) {
        return Ok(write!(to, "{}", durable_write::text(input, &style))?);
    }
    let mut text: Vec<u8> = Vec::new();
    heading(analysis, style, &mut text)?;
    if !input.interpretation.peers.is_empty() {
        writeln!(
            text,
            "{}",
            agreement::text(&input.interpretation.peers, style.width)
        )?;
    }
    write!(text, "{}", table::text(analysis, style.width))?;
    let curves = panels::curves(analysis, &style);
    if !curves.is_empty() {
        write!(text, "\n{curves}")?;
    }
    for pair in program_pairs(analysis) {
        writeln!(text, "\n{}", equivalence::text(&pair, style.width))?;
    }
    let prepared = preparation(analysis);
    if !prepared.is_empty() {
        write!(text, "\n{}", prepare::text(&prepared, style.width))?;
    }
    let used = text.iter().filter(|byte| **byte == b'\n').count();
    to.write_all(&text)?;
    let findings = Overview::new([input]).findings_text(used, style.width);
    Ok(write!(to, "{findings}")?)
}

/// Writes findings as paragraphs that fit the width.
pub(crate) fn sentences(findings: &[Finding], style: Style, to: &mut dyn Write) -> Outcome {
    let texts: Vec<&str> = findings.iter().map(|f| f.text.as_str()).collect();
    paragraphs(&texts, style, to)
}

/// Writes texts as a list of paragraphs that fit the width.
pub(crate) fn paragraphs(texts: &[impl AsRef<str>], style: Style, to: &mut dyn Write) -> Outcome {
    for text in texts {
        write!(
            to,
            "{}",
            paragraph(&escape_control(text.as_ref()), "- ", style.width)
        )?;
    }
    Ok(())
}

/// Files as arguments of a command.
pub(crate) fn listed(files: &[PathBuf]) -> String {
    let names: Vec<String> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    names.join(" ")
}

/// Opens the output of a command: a new file, or stdout, filtered by [`harmless`]. Output that is not flushed at the end is
/// discarded.
///
/// # Errors
///
/// Of kind [`Refused`](iolab_workload::Kind::Refused) when the file exists.
pub(crate) fn open(path: Option<&Path>) -> Result<Box<dyn Write>> {
    // The filter buffers, so that it sees whole characters.
    Ok(Box::new(BufWriter::new(Harmless::new(open_raw(path)?))))
}

/// The same without the filter, for binary data and for text with iolab's own colours.
///
/// # Errors
///
/// Those of [`open`].
pub(crate) fn open_raw(path: Option<&Path>) -> Result<Box<dyn Write>> {
    let Some(path) = path else {
        return Ok(Box::new(BufWriter::new(io::stdout().lock())));
    };
    Ok(Box::new(NewFile {
        to: BufWriter::new(create(path)?),
        path: path.to_owned(),
        is_whole: false,
    }))
}

/// A new file of results, removed unless it is written completely.
struct NewFile {
    to: BufWriter<File>,
    path: PathBuf,
    /// Whether everything is written.
    is_whole: bool,
}

impl NewFile {
    /// Adds the file's name to an error.
    fn named<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
        })
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_whole = false;
        let written = self.to.write(bytes);
        self.named(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.to.flush();
        self.is_whole = flushed.is_ok();
        self.named(flushed)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_whole {
            // An earlier error was reported; an empty file would only prevent the next try.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Creates a file for results.
///
/// # Errors
///
/// Of kind [`Refused`](iolab_workload::Kind::Refused) when it exists.
pub(crate) fn create(path: &Path) -> Result<File> {
    match File::create_new(path) {
        Ok(file) => Ok(file),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(exists(path)),
        Err(error) => Err(
            Error::usage(format!("cannot create {}: {error}", path.display()))
                .hint("name a file in a folder that can be written"),
        ),
    }
}

/// What --force may replace: only files that begin like this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replaceable {
    /// A figure.
    Figure,
    /// What `iolab export --format prometheus` writes.
    Gauges,
}

impl Replaceable {
    fn begins(self) -> &'static [&'static [u8]] {
        match self {
            Self::Figure => &[b"<svg", b"<?xml", b"\x89PNG\r\n\x1a\n", b"%PDF-"],
            Self::Gauges => &[b"# HELP iolab_"],
        }
    }

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Figure => ("is no figure", "figures"),
            Self::Gauges => ("holds no gauges of iolab", "files of gauges"),
        }
    }
}

/// Refuses to replace anything else: links, devices, files with several names or other content belong to somebody.
///
/// # Errors
///
/// Of kind [`Refused`](iolab_workload::Kind::Refused), with what it is.
pub(crate) fn check_replaceable(path: &Path, by: Replaceable) -> Result<()> {
    let Ok(there) = path.symlink_metadata() else {
        return Ok(());
    };
    let (other, kind) = by.words();
    let what = if !there.is_file() {
        "is no regular file"
    } else if there.nlink() > 1 {
        "has several names (hard links)"
    } else if !begins_so(path, &there, by.begins()) {
        other
    } else {
        return Ok(());
    };
    let refused = format!("{} {what}: --force replaces {kind} only", path.display());
    Err(Error::refused(refused).hint("choose another name with -o"))
}

/// Whether a file begins with one of these byte strings; false for an empty one.
fn begins_so(path: &Path, metadata: &Metadata, with: &[&[u8]]) -> bool {
    let mut first = Vec::new();
    let read =
        named_file::open(path, metadata).and_then(|file| file.take(16).read_to_end(&mut first));
    let begins = |with: &&[u8]| first.starts_with(with);
    read.is_ok() && (first.is_empty() || with.iter().any(begins))
}

/// Replaces a file atomically, without writing through links.
///
/// # Errors
///
/// Those of [`check_replaceable`]; when it cannot be written.
pub(crate) fn replace(path: &Path, bytes: &[u8], by: Replaceable) -> Outcome {
    check_replaceable(path, by)?;
    let beside = path.with_file_name(format!(".iolab-new-{}", std::process::id()));
    let mut to = open_raw(Some(&beside))?;
    to.write_all(bytes)?;
    to.flush()?;
    if let Err(error) = std::fs::rename(&beside, path) {
        // This process has just created it.
        let _ = std::fs::remove_file(&beside);
        let cannot = format!("cannot replace {}: {error}", path.display());
        return Err(Error::usage(cannot)
            .hint("name a file in a folder that can be written")
            .into());
    }
    Ok(())
}

/// Standard output of a command that measures. An error, such as a closed pipe or a full disk, does not end the measurement:
/// further output is discarded, the user is informed at once, and the command fails at its end.
pub(crate) struct Results<W: Write = io::Stdout> {
    to: BufWriter<Harmless<W>>,
    failed: Option<io::Error>,
}

impl Results {
    /// Nothing is written yet.
    pub(crate) fn new() -> Self {
        Self::to(io::stdout())
    }
}

impl<W: Write> Results<W> {
    fn to(to: W) -> Self {
        Self {
            to: BufWriter::new(Harmless::new(to)),
            failed: None,
        }
    }

    fn attempt(&mut self, write: impl FnOnce(&mut BufWriter<Harmless<W>>) -> io::Result<()>) {
        if self.failed.is_some() {
            return;
        }
        if let Err(error) = write(&mut self.to) {
            note(format_args!(
                "note: standard output cannot be written ({error}): the results go to the run files only"
            ));
            self.failed = Some(error);
        }
    }

    /// Flushes the output. `kept` says where the results are.
    ///
    /// # Errors
    ///
    /// Of kind [`Failed`](iolab_workload::Kind::Failed) when anything could not be written.
    pub(crate) fn end(mut self, kept: impl Display) -> Result<()> {
        self.attempt(Write::flush);
        match self.failed {
            None => Ok(()),
            Some(error) => Err(Error::failed(format!(
                "everything is measured, but standard output could not be written: {error}"
            ))
            .hint(format!("see the results with: iolab table {kept}"))),
        }
    }
}

impl<W: Write> Write for Results<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.attempt(|to| to.write_all(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.attempt(Write::flush);
        Ok(())
    }
}

/// The refusal to overwrite a result.
pub(crate) fn exists(path: &Path) -> Error {
    Error::refused(format!("{} exists already", path.display()))
        .hint("results are never overwritten: choose another name, or remove it yourself")
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
    }

    #[test]
    fn a_file_that_is_not_written_to_its_end_does_not_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.csv");
        for flushes in [false, true] {
            let mut to = open(Some(&path)).unwrap();
            to.write_all(b"1,2").unwrap();
            if flushes {
                to.flush().unwrap();
            }
            drop(to);
            assert_eq!(path.exists(), flushes);
        }
        open(Some(&path)).err().expect("it is there");
        assert_eq!(std::fs::read(&path).unwrap(), b"1,2", "kept");
    }
}
