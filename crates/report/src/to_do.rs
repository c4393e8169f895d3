//! Steps that the user has to take.

use iolab_workload::escape_control::escape_control;

use crate::block::Block;
use crate::layout::paragraph;

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

    /// The advice without control characters.
    fn cleaned(&self) -> Self {
        let clean = |text: &String| escape_control(text).into_owned();
        Self {
            words: clean(&self.words),
            command: self.command.as_ref().map(clean),
        }
    }

    /// The advice for a terminal of `width` columns, which a command may exceed.
    pub(crate) fn text(&self, width: u16) -> String {
        let Self { words, command } = self.cleaned();
        let command = command.map(|command| format!("  {command}\n"));
        paragraph(&words, "", width) + &command.unwrap_or_default()
    }

    /// The advice for a document.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let Self { words, command } = self.cleaned();
        let command = command.map(Block::commands);
        std::iter::once(Block::text(words)).chain(command).collect()
    }
}
