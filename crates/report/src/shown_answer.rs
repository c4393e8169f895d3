//! An answer as blocks, and steps that the user has to take.

use crate::block::{self, Block, Item, Look, Table};
use crate::layout::{Column, SCREEN_LINES};

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
    pub(crate) fn new(
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
        block::first_screen(&self.blocks(), SCREEN_LINES, "iolab table FILE", width)
    }
}

/// A step that the user has to take.
#[derive(Debug, Clone)]
pub(crate) struct ToDo {
    /// The advice in words.
    pub(crate) words: String,
    /// The command that does it, on a line of its own, where people copy it.
    pub(crate) command: Option<String>,
}

impl ToDo {
    /// Advice to finish this number of runs with the command; `None` for runs on a model.
    pub(crate) fn to_finish(runs: usize, command: Option<String>) -> Self {
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
