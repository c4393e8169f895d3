//! Formats of other tools for definitions of experiments.

use std::path::{Path, PathBuf};

use iolab_plan::experiment::Experiment;
use iolab_workload::Result;

/// A format of another tool: a row of the list of definitions.
#[derive(Debug, Clone, Copy)]
pub struct DefinitionFormat {
    /// The name that `iolab show --format` takes.
    pub name: &'static str,
    /// A description of what is written, for the help.
    pub words: &'static str,
    /// A file of this format, in words.
    pub file: &'static str,
    /// Extensions of its files.
    pub extensions: &'static [&'static str],
    /// Reads a file, for a measurement on this target, or otherwise on the target that it names. The last argument lets it
    /// include files outside of its folder.
    pub read: fn(&Path, Option<&Path>, bool) -> Result<ForeignExperiment>,
    /// Writes the cells of an experiment, with a remark.
    pub write: fn(Experiment, Option<&str>) -> Result<Written>,
}

/// The text of a definition for another tool, and a note for each reason for which cells are left out.
pub type Written = (String, Vec<String>);

/// The content of a definition that was written for another tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignExperiment {
    /// The experiment.
    pub experiment: Experiment,
    /// The target that the user or the file names.
    pub target: Option<PathBuf>,
    /// Note on the target, which no definition of iolab names; `None` if it is where a run goes without one.
    pub left_target: Option<String>,
    /// Whether the file names the bytes to use, which are then not cut to the free space.
    pub is_sized: bool,
    /// Differences between iolab and the tool for this file.
    pub notes: Vec<String>,
    /// Every option with its place and its meaning for iolab.
    pub told: Vec<String>,
}

impl ForeignExperiment {
    /// Every option of the file with its meaning, and iolab's differences: a line each.
    pub fn explained(&self) -> Vec<String> {
        let notes = self.notes.iter().map(|note| format!("note: {note}"));
        self.told.iter().cloned().chain(notes).collect()
    }

    /// The experiment as TOML, below the meaning of each option.
    ///
    /// # Errors
    /// Never for a file that was read.
    pub fn to_toml(&self) -> Result<String> {
        let explained = self.explained().into_iter().chain(self.left_target.clone());
        let comments: String = explained.map(|line| format!("# {line}\n")).collect();
        Ok(format!("{comments}\n{}", self.experiment.to_toml()?))
    }
}
