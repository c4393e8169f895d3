//! A part of a report about a program, a process or devices that `iolab witness` observed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use askama::Template;
use iolab_analysis::witness::{Evidence, OtherCommand};
use iolab_figure::Figure;
use iolab_record::witness::Witnessed;
use iolab_workload::quantity::{counted, format_bytes};
use iolab_workload::witness::Subject;
use iolab_workload::{Error, Result};

use super::bundle::Bundle;
use super::captioned::Captioned;
use super::file_names::file_name;
use super::page_table::PageTable;
use super::picture::{page_options, paper_options};
use super::summary::moment;
use super::{STYLE, clean, latex_table, markdown_blocks};
use crate::fact;
use crate::latex;
use crate::layout::{Column, Grid};
use crate::markdown::{block, escaped, sentence};
use crate::witness;

/// Most names of other processes that a report lists.
const OTHERS_MAX: usize = 20;

/// A file of `iolab witness` that was read.
#[derive(Debug, Clone)]
pub struct ProgramInput {
    /// Path of the file.
    pub path: PathBuf,
    /// Content of the file.
    pub witnessed: Witnessed,
}

/// The content of a report about one observation. Text from outside contains no control characters.
#[derive(Debug)]
pub(super) struct ProgramPart {
    /// Id of the part in the document.
    pub(super) id: String,
    /// Subject of the observation: the name of the program, or of the devices.
    pub(super) name: String,
    /// The result of the evidence.
    pub(super) headline: String,
    /// When, and the file.
    pub(super) origin: String,
    /// Rows of evidence: label and value.
    pub(super) rows: Vec<(&'static str, String)>,
    /// I/O of other processes meanwhile.
    others: Captioned,
    evidence: Evidence,
    /// Name and value.
    pub(super) environment: Vec<(String, String)>,
    /// The command that repeats it.
    pub(super) command: String,
}

impl ProgramPart {
    /// The parts of all files, in the same order.
    pub(super) fn all(inputs: &[ProgramInput]) -> Vec<Self> {
        let parts = (1..).zip(inputs);
        parts
            .map(|(number, input)| Self::new(number, input))
            .collect()
    }

    fn new(number: usize, input: &ProgramInput) -> Self {
        let ProgramInput { path, witnessed } = input;
        let evidence = Evidence::of(witnessed.clone());
        let facts = witnessed.environment.iter();
        let rows = witness::rows(&evidence).into_iter();
        Self {
            id: format!("p{number}"),
            name: clean(&name(&evidence)),
            headline: witness::headline(&evidence),
            origin: origin(witnessed, path),
            // The table names them all.
            rows: rows
                .filter(|(label, _)| *label != "other")
                .map(|(label, value)| (label, clean(&value)))
                .collect(),
            others: others(&evidence),
            environment: facts
                .map(|(key, text)| (fact::name(key), fact::value(key, text)))
                .collect(),
            command: clean(&witness::command(&evidence.observed)),
            evidence,
        }
    }

    fn figure(&self, options: &iolab_figure::Options) -> Result<Figure> {
        iolab_figure::witness(&self.evidence, options)
    }

    /// The name of its files: `p1-dd`.
    pub(super) fn file_name(&self) -> String {
        format!("{}-{}", self.id, file_name(&self.name))
    }

    /// The figure for paper with the name of its file.
    fn on_paper(&self, prefix: &str, extension: &str) -> Result<(String, Figure)> {
        let name = format!("{}-{}.{extension}", file_name(prefix), self.file_name());
        Ok((name, self.figure(&paper_options())?))
    }

    /// Text in place of an empty table of others.
    pub(super) fn no_others(&self) -> Option<&'static str> {
        let is_empty = self.others.grid.rows.is_empty();
        is_empty.then_some("No other process that iolab can see did I/O on any disk.")
    }

    /// The part in Markdown, with its figure.
    pub(super) fn markdown(&self, prefix: &str) -> Result<Bundle> {
        let (file, figure) = self.on_paper(prefix, "svg")?;
        let mut text = format!(
            "## {}\n\n{}\n\n",
            escaped(&self.name),
            sentence(&self.headline)
        );
        let words = clean(figure.description());
        let _ = writeln!(text, "![{}]({file})\n", escaped(&words));
        text.push_str("| | |\n|---|---|\n");
        for (label, value) in &self.rows {
            let _ = writeln!(text, "| {} | {} |", escaped(label), escaped(value));
        }
        text.push('\n');
        match self.no_others() {
            Some(words) => text.push_str(words),
            None => text.push_str(&markdown_blocks::table(&self.others)),
        }
        text.push_str("\n\n");
        let _ = writeln!(
            text,
            "{}\n\n{}",
            sentence(&self.origin),
            block(&self.command)
        );
        Ok(Bundle {
            text,
            figures: vec![(file, figure.svg().into_bytes())],
        })
    }

    /// The part in LaTeX, with its figure.
    pub(super) fn latex(&self, prefix: &str) -> Result<Bundle> {
        let (file, figure) = self.on_paper(prefix, "pdf")?;
        let mut text = format!(
            "\\subsection{{{}}}\n{}\n\n",
            latex::escaped(&self.name),
            latex::sentence(&self.headline)
        );
        let _ = writeln!(
            text,
            "\\begin{{figure}}[tbp]\\centering\n\\includegraphics[width=\\columnwidth,height=0.4\\textheight,keepaspectratio]{{{file}}}\n\\caption{{{}}}\n\\end{{figure}}\n",
            latex::sentence(&clean(figure.description()))
        );
        text.push_str("{\\footnotesize\\raggedright\n");
        for (label, value) in &self.rows {
            let _ = writeln!(text, "{label}: {}\\par", latex::escaped(value));
        }
        text.push_str("}\n");
        match self.no_others() {
            Some(words) => text.push_str(&latex::sentence(words)),
            None => text.push_str(&latex_table::table(&self.others)),
        }
        text.push_str("\n\n");
        let _ = writeln!(text, "{}\n", latex::sentence(&self.origin));
        Ok(Bundle {
            text,
            figures: vec![(file, figure.pdf()?)],
        })
    }
}

/// Subject of the observation, in a few words.
fn name(evidence: &Evidence) -> String {
    match &evidence.observed.subject {
        Subject::Program(command) => witness::short(command),
        Subject::Process { pid, command } => format!("{} (PID {pid})", witness::short(command)),
        Subject::Devices => evidence.devices.join(", "),
    }
}

fn origin(witnessed: &Witnessed, path: &Path) -> String {
    format!(
        "Observed from {} by iolab {}. File: {}.",
        moment(&witnessed.started_utc),
        clean(&witnessed.tool_version),
        clean(&path.to_string_lossy())
    )
}

/// Other processes that did I/O, those that did most first.
fn others(evidence: &Evidence) -> Captioned {
    let others = &evidence.observed.others;
    let all = OtherCommand::all(others);
    let (shown, left) = all.split_at(all.len().min(OTHERS_MAX));
    let column = |heading, of: &dyn Fn(&OtherCommand<'_>) -> String| {
        Column::new(heading, 0, shown.iter().map(of))
    };
    let bytes = |bytes: u64| format_bytes(bytes as f64);
    let mut caption = "Other processes, on any disk".to_owned();
    let left: usize = left.iter().map(OtherCommand::count).sum();
    if left > 0 {
        let _ = write!(caption, "; {} did less", counted(left, "further process"));
    }
    if others.unread > 0 {
        let unread = counted(others.unread, "process");
        let _ = write!(caption, "; the accounts of {unread} cannot be read");
    }
    if !others.sees_ended {
        caption.push_str(
            "; processes that ended during the observation are missing: only root sees them",
        );
    }
    Captioned {
        caption,
        grid: Grid::of(vec![
            column("process", &|one| clean(&witness::others::name(one))).left(),
            column("read", &|one| bytes(one.read_bytes())),
            column("written", &|one| bytes(one.write_bytes())),
        ]),
    }
}

/// Parts of an observation as a page shows them.
pub(super) struct Shown<'a> {
    pub(super) part: &'a ProgramPart,
    /// The course, and its description.
    pub(super) svg: String,
    pub(super) words: String,
    pub(super) others: PageTable<'a>,
}

impl<'a> Shown<'a> {
    /// All parts, with their figures.
    ///
    /// # Errors
    /// When a figure cannot be drawn.
    pub(super) fn all(parts: &'a [ProgramPart]) -> Result<Vec<Self>> {
        let shown = |part: &'a ProgramPart| {
            let figure = part.figure(&page_options(&part.id))?;
            Ok(Self {
                part,
                svg: figure.svg(),
                words: clean(figure.description()),
                others: PageTable::of(&part.others),
            })
        };
        parts.iter().map(shown).collect()
    }
}

/// The page of observations without runs.
#[derive(Template)]
#[template(path = "witness.html")]
struct Page<'a> {
    title: String,
    programs: Vec<Shown<'a>>,
    style: &'static str,
    figure_style: String,
}

/// Title of a report of observations alone.
pub(super) fn title(parts: &[ProgramPart]) -> String {
    match parts {
        [only] => format!("Evidence for {}", only.name),
        parts => format!("Evidence for {}", counted(parts.len(), "program")),
    }
}

/// The page of observations alone.
///
/// # Errors
/// When it cannot be put together.
pub(super) fn page(parts: &[ProgramPart]) -> Result<String> {
    let page = Page {
        title: title(parts),
        programs: Shown::all(parts)?,
        style: STYLE,
        figure_style: iolab_figure::style(),
    };
    page.render()
        .map_err(|error| Error::failed(format!("the page cannot be put together: {error}")))
}

/// Observations alone in Markdown.
///
/// # Errors
/// When a figure cannot be drawn.
pub(super) fn markdown_alone(parts: &[ProgramPart], prefix: &str) -> Result<Bundle> {
    let mut all = Bundle {
        text: format!("# {}\n\n", escaped(&title(parts))),
        figures: Vec::new(),
    };
    for part in parts {
        all.append(part.markdown(prefix)?);
    }
    all.text.push_str("## Environment\n\n| | |\n|---|---|\n");
    for (name, value) in parts.iter().flat_map(|part| &part.environment) {
        let _ = writeln!(all.text, "| {} | {} |", escaped(name), escaped(value));
    }
    Ok(all)
}
