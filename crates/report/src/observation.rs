//! Observations of commands, from files without trials: the instrument of the command puts them into words.

use std::fmt::Debug;
use std::io::{self, Write};
use std::path::PathBuf;

use iolab_figure::{Figure, Options};
use iolab_record::Observation;
use iolab_workload::Result;

use crate::block::{Block, Look, in_text};

/// An observation, as reports, tables and figures show it.
pub trait Seen: Debug {
    /// Subject, in a few words.
    fn name(&self) -> String;
    /// The result in one line.
    fn headline(&self) -> String;
    /// Facts, each with its label.
    fn rows(&self) -> Vec<(&'static str, String)>;
    /// The command that repeats the observation.
    fn command(&self) -> String;
    /// The only figure.
    ///
    /// # Errors
    /// Errors of the layout; of kind [`Usage`](iolab_workload::Kind::Usage) for an option that it does not use.
    fn figure(&self, options: &Options) -> Result<Figure>;
    /// Writes one JSON object.
    ///
    /// # Errors
    /// Errors of `to`.
    fn json(&self, to: &mut dyn Write) -> io::Result<()>;

    /// Headline and facts in lines of at most `width` characters.
    fn text(&self, width: u16) -> String {
        let rows = self.rows().into_iter();
        let rows = rows.map(|(name, value)| (name.to_owned(), value));
        let all = [
            Block::Paragraph(Look::Result, self.headline()),
            Block::Facts(rows.collect()),
        ];
        in_text(&all, width)
    }
}

/// A command that keeps what it saw: a row of the list of observations.
#[derive(Debug, Clone, Copy)]
pub struct ObservedBy {
    /// Name of the command.
    pub command: &'static str,
    /// Reads what it kept; `None` where it cannot have.
    pub read: fn(&str) -> Option<Box<dyn Seen>>,
}

/// An observation with its file.
#[derive(Debug)]
pub struct FiledObservation {
    /// Path of the file.
    pub path: PathBuf,
    /// Content of the file.
    pub kept: Observation,
    /// The observation as its instrument shows it.
    pub seen: Box<dyn Seen>,
}
