//! The parts of a document. A document is a list of them, and each writer writes the same list in the same order.

mod html;
mod latex;
mod text;

use crate::layout::{self, Column, SCREEN_LINES, none, wrapped};
use crate::markdown::sentence;
use crate::notation::in_groups;
use iolab_figure::Figure;

pub use html::page;
pub(crate) use latex::{article, parts_in_latex};
pub(crate) use text::document;
pub use text::{first_screen, in_text, parts_in_markdown};

/// A part of a document. Each writer escapes its text.
#[derive(Debug)]
pub enum Block {
    /// Begins a part, which ends at the next heading of the same or a higher level.
    Heading(Heading),
    /// A text.
    Paragraph(Look, String),
    /// Findings.
    List(List),
    /// Names and values.
    Facts(Vec<(String, String)>),
    /// A table.
    Table(Table),
    /// A figure.
    Figure(Picture),
    /// Lines that are copied as they are.
    Lines(Lines),
}

/// Beginning of a part.
#[derive(Debug)]
pub struct Heading {
    /// 1 for the title of the document.
    pub level: u8,
    /// Id of the part in a page; empty for none.
    pub id: String,
    /// The heading.
    pub text: String,
    /// Whether a page shows the part on request only.
    pub is_folded: bool,
}

/// Purpose of a paragraph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Further text.
    Plain,
    /// The result, to copy.
    Result,
    /// Result of a measurement.
    Subject,
    /// The question of an experiment.
    Question,
    /// Notes about tables.
    Caption,
    /// The verdict on the numbers, with the name of its level.
    Trust(&'static str),
}

/// Findings, or other texts with their origin.
#[derive(Debug)]
pub struct List {
    /// Whether the items are numbered.
    pub is_ordered: bool,
    /// The items.
    pub items: Vec<Item>,
}

/// A text with its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The text.
    pub text: String,
    /// Name of each part that it is about, and its id.
    pub about: Vec<(String, String)>,
    /// Ids of the rows of tables that it is about.
    pub rows: Vec<String>,
    /// Basis of the text; empty for none.
    pub basis: String,
}

/// A table.
#[derive(Debug)]
pub struct Table {
    /// Title of the table.
    pub title: String,
    /// Explanations of its columns.
    pub notes: Vec<String>,
    /// The columns, at least one.
    pub columns: Vec<Column>,
    /// Ids of the first rows in a page.
    pub ids: Vec<String>,
}

/// A figure of a document.
#[derive(Debug)]
pub struct Picture {
    /// Name of its file without prefix and extension.
    pub name: String,
    /// Class of the figure in a page; empty for none.
    pub class: &'static str,
    /// The figure.
    pub figure: Box<Figure>,
}

/// Lines that are copied as they are.
#[derive(Debug)]
pub struct Lines {
    /// Name under which the lines are saved; empty for commands.
    pub file: String,
    /// The lines.
    pub text: String,
}

impl Block {
    /// A heading with an id; empty for none.
    pub fn heading(level: u8, id: &str, text: impl Into<String>) -> Self {
        Self::Heading(Heading {
            level,
            id: id.to_owned(),
            text: text.into(),
            is_folded: false,
        })
    }

    /// A heading of a part that a page shows on request.
    pub fn folded(level: u8, id: &str, text: impl Into<String>) -> Self {
        Self::Heading(Heading {
            level,
            id: id.to_owned(),
            text: text.into(),
            is_folded: true,
        })
    }

    /// A paragraph.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Paragraph(Look::Plain, text.into())
    }

    /// A list without numbers.
    pub fn list(items: Vec<Item>) -> Self {
        Self::List(List {
            is_ordered: false,
            items,
        })
    }

    /// Commands to copy.
    pub fn commands(text: impl Into<String>) -> Self {
        Self::Lines(Lines {
            file: String::new(),
            text: text.into(),
        })
    }
}

impl Item {
    /// A text without an origin.
    pub fn of(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            about: Vec::new(),
            rows: Vec::new(),
            basis: String::new(),
        }
    }

    /// The names of the parts that it is about.
    fn names(&self) -> String {
        let names: Vec<&str> = self.about.iter().map(|(name, _)| name.as_str()).collect();
        names.join(", ")
    }

    /// The item as text, with its origin.
    fn in_full(&self) -> String {
        let names = match self.about.is_empty() {
            true => String::new(),
            false => format!(" ({})", self.names()),
        };
        let basis = match self.basis.is_empty() {
            true => String::new(),
            false => format!(" Based on: {}.", self.basis),
        };
        format!("{}{names}{basis}", self.text)
    }
}

impl Table {
    /// A table. Columns that show nothing are left out; a value that all rows share becomes a note.
    pub fn new(
        title: impl Into<String>,
        notes: impl IntoIterator<Item = String>,
        mut columns: Vec<Column>,
    ) -> Self {
        let mut notes: Vec<String> = notes.into_iter().collect();
        let rows = columns.first().map_or(0, Column::rows);
        let mut shared = Vec::new();
        columns.retain(|column| {
            let Some(value) = column.common_value().filter(|_| column.dispensable > 0) else {
                return true;
            };
            let is_empty = value.is_empty() || value == none();
            if rows > 1 && !is_empty {
                shared.push(format!("{} {value}", column.heading));
            }
            rows < 2 && !is_empty
        });
        if !shared.is_empty() {
            notes.push(format!("in all rows: {}", shared.join(", ")));
        }
        Self {
            title: title.into(),
            notes,
            columns,
            ids: Vec::new(),
        }
    }

    /// The title, then the notes.
    fn caption(&self) -> impl Iterator<Item = &str> {
        let all = std::iter::once(&self.title).chain(&self.notes);
        all.map(String::as_str).filter(|line| !line.is_empty())
    }

    /// Title and notes in one line.
    fn caption_in_one_line(&self) -> String {
        self.caption().collect::<Vec<_>>().join("; ")
    }

    /// The table for a terminal of `width` columns. Columns that do not fit are dropped, least important first, and
    /// named in a line below.
    pub fn text(&self, width: u16) -> String {
        self.caption_lines(width) + &layout::text(self.columns.clone(), width)
    }

    /// Title and notes, a line each.
    fn caption_lines(&self, width: u16) -> String {
        let lines = self.caption().map(|line| wrapped(&in_groups(line), width));
        lines.collect()
    }

    /// The table in Markdown, with every column.
    pub fn markdown(&self) -> String {
        let columns = layout::markdown(self.columns.clone());
        format!("{columns}\n{}\n\n", sentence(&self.caption_in_one_line()))
    }

    /// The table as a LaTeX `tabular` with every column; needs no package.
    pub fn latex(&self) -> String {
        let caption = self.caption().map(|line| format!("% {line}\n"));
        caption.collect::<String>() + &layout::latex(&self.columns)
    }
}

/// An answer as blocks.
#[derive(Debug)]
pub struct ShownAnswer {
    /// Sentences of the answer with which a document begins.
    pub(crate) lead: Vec<String>,
    /// Further sentences of the answer, and steps to complete it.
    pub(crate) rest: Vec<Block>,
    /// Basis of the answer as a table, reasons why it is open, and its limits.
    pub(crate) basis: Vec<Block>,
}

impl ShownAnswer {
    /// An answer: the sentences with which a document begins, a further one, steps that the user has to take, the basis as a
    /// table with its title, and remarks.
    pub fn new(
        (lead, rest): (Vec<String>, Option<String>),
        to_do: &[ToDo],
        (title, columns): (&str, Vec<Column>),
        remarks: Vec<String>,
    ) -> Self {
        let rest = rest.map(Block::text).into_iter();
        let table = (!columns.is_empty()).then(|| Block::Table(Table::new(title, [], columns)));
        let remarks: Vec<Item> = remarks.into_iter().map(Item::of).collect();
        let remarks = (!remarks.is_empty()).then(|| Block::list(remarks));
        Self {
            lead,
            rest: rest.chain(to_do.iter().flat_map(ToDo::blocks)).collect(),
            basis: table.into_iter().chain(remarks).collect(),
        }
    }

    /// The sentences of the answer.
    pub(crate) fn sentences(self) -> impl Iterator<Item = Block> {
        let lead = self.lead.into_iter();
        let lead = lead.map(|text| Block::Paragraph(Look::Result, text));
        lead.chain(self.rest)
    }

    /// All of it.
    pub(crate) fn blocks(mut self) -> Vec<Block> {
        let basis = std::mem::take(&mut self.basis);
        self.sentences().chain(basis).collect()
    }

    /// The answer on one screen of lines of at most `width` characters.
    pub fn screen(self, width: u16) -> String {
        first_screen(&self.blocks(), SCREEN_LINES, "iolab table FILE", width)
    }
}

/// A step that the user has to take.
#[derive(Debug, Clone)]
pub struct ToDo {
    /// The advice in words.
    pub words: String,
    /// The command that does it, on a line of its own, where people copy it.
    pub command: Option<String>,
}

impl ToDo {
    /// Advice to finish this number of runs with the command; `None` for runs on a model.
    pub fn to_finish(runs: usize, command: Option<String>) -> Self {
        let them = if runs == 1 { "it" } else { "them" };
        let words = match command {
            Some(_) => format!("Finish {them} with:"),
            None => format!("Run {them} again: the state of a model is not kept."),
        };
        Self { words, command }
    }

    /// The advice for a document.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let command = self.command.clone().map(Block::commands);
        let words = std::iter::once(Block::text(self.words.as_str()));
        words.chain(command).collect()
    }
}
