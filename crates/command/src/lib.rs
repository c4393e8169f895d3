//! iolab-command: the lists of the program, and what its commands share: reading run files, output, how they end.
//!
//! The core is one value of [`Lists`], and each instrument another; additions are rows of these.
//!
//! Files to begin with: `lib.rs`, `run_files.rs`: reading runs, `output.rs`: output, `failure.rs`: exit code and last message.

pub mod built_in;
pub mod failure;
#[cfg(feature = "measure")]
pub mod options;
pub mod output;
pub mod output_format;
pub mod run_files;
#[cfg(target_os = "linux")]
pub mod signals;

use std::path::{Path, PathBuf};

use clap::{ArgMatches, Args};
use iolab_plan::experiment::Experiment;
use iolab_record::{Observation, RunRecord};
use iolab_report::answer::AnsweredBy;
use iolab_report::document::Document;
use iolab_report::export::ExportFormat;
use iolab_report::observation::{FiledObservation, ObservedBy};
use iolab_report::report::SequenceFigure;
use iolab_workload::{Error, Kind, Result};

use built_in::BuiltIn;
use failure::{Failure, Outcome};
use output::Log;

/// The lists, with the rows of the core, of an instrument, or of all.
#[derive(Default)]
pub struct Lists {
    /// Commands of the program.
    pub commands: Vec<Command>,
    /// JSON documents that commands print.
    pub documents: Vec<Document>,
    /// Formats of other tools for definitions.
    pub definitions: Vec<DefinitionFormat>,
    /// Formats of `iolab export`.
    pub formats: Vec<ExportFormat>,
    /// Figures of several runs of one experiment, for pages.
    pub sequence_figures: Vec<SequenceFigure>,
    /// Commands that keep what they saw in files without trials.
    pub observations: Vec<ObservedBy>,
    /// Definitions that come with the program.
    pub built_in: Vec<BuiltIn>,
    /// Instruments that answer questions of runs.
    pub answers: Vec<AnsweredBy>,
}

impl Lists {
    /// Appends the rows of others to these lists.
    pub fn with(mut self, others: Self) -> Self {
        self.commands.extend(others.commands);
        self.documents.extend(others.documents);
        self.definitions.extend(others.definitions);
        self.formats.extend(others.formats);
        self.sequence_figures.extend(others.sequence_figures);
        self.observations.extend(others.observations);
        self.built_in.extend(others.built_in);
        self.answers.extend(others.answers);
        self
    }

    /// The format of another tool in which a definition is, by the name of its file.
    pub fn format_of(&self, definition: &Path) -> Option<&DefinitionFormat> {
        let extension = definition.extension()?.to_str()?;
        let mut all = self.definitions.iter();
        all.find(|format| format.extensions.contains(&extension))
    }

    /// The observation that a file keeps.
    ///
    /// # Errors
    /// Of kind [`Usage`](Kind::Usage): this program lacks the command, or the command cannot have kept it.
    pub fn seen(&self, kept: Observation, path: &Path) -> Result<FiledObservation> {
        let mut all = self.observations.iter();
        let by = all.find(|by| by.command == kept.command);
        let what = format!("what 'iolab {}' saw", kept.command);
        let seen = (by.ok_or_else(|| lacks(path, &what))?.read)(&kept.content);
        Ok(FiledObservation {
            path: path.to_owned(),
            seen: seen.ok_or_else(|| iolab_runfile::invalid(path, what))?,
            kept,
        })
    }

    /// Refuses a run whose question this program cannot answer.
    ///
    /// # Errors
    /// Of kind [`Usage`](Kind::Usage): this program lacks the command that asked.
    pub fn check_answerable(&self, record: &RunRecord, path: &Path) -> Result<()> {
        let asked = record.experiment.asked.as_ref();
        let command = asked.and_then(|question| question.kind().command());
        match command.filter(|name| self.answers.iter().all(|by| by.command != *name)) {
            Some(name) => Err(lacks(path, &format!("a run of 'iolab {name}'"))),
            None => Ok(()),
        }
    }
}

/// The refusal of a file with something of a command that this program lacks.
fn lacks(path: &Path, what: &str) -> Error {
    let place = path.display();
    Error::usage(format!("{place} holds {what}, which this program lacks"))
        .hint("use an iolab that has this command")
}

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

/// Reader of a command's arguments.
type ReadTask = dyn Fn(&ArgMatches) -> clap::error::Result<Task>;

/// A command: its arguments, and the function that carries it out.
pub struct Command {
    name: &'static str,
    arguments: Box<dyn Fn() -> clap::Command>,
    read: Box<ReadTask>,
}

impl Command {
    /// A command with its name and its description.
    pub fn new<A: Args + 'static>(
        name: &'static str,
        about: &'static str,
        work: impl Fn(&A, &Lists) -> Outcome + Copy + 'static,
    ) -> Self {
        Self::with_log(name, about, |_| Log::Lines, work)
    }

    /// A command whose arguments decide the output on stderr while it runs.
    pub fn with_log<A: Args + 'static>(
        name: &'static str,
        about: &'static str,
        log: fn(&A) -> Log,
        work: impl Fn(&A, &Lists) -> Outcome + Copy + 'static,
    ) -> Self {
        let read = move |matches: &ArgMatches| {
            let arguments = A::from_arg_matches(matches)?;
            Ok(Task {
                log: log(&arguments),
                work: Box::new(move |lists| work(&arguments, lists)),
            })
        };
        // Set last, because arguments may bring descriptions of their own.
        let arguments = move || {
            let command = A::augment_args(clap::Command::new(name));
            command.about(about).long_about(None)
        };
        Self {
            name,
            arguments: Box::new(arguments),
            read: Box::new(read),
        }
    }

    /// Name of the command.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Arguments of the command, as they are parsed and shown.
    pub fn arguments(&self) -> clap::Command {
        (self.arguments)()
    }

    /// The task that the parsed arguments describe.
    ///
    /// # Errors
    ///
    /// An argument has no value of its type.
    pub fn read(&self, matches: &ArgMatches) -> clap::error::Result<Task> {
        (self.read)(matches)
    }
}

/// A command with its arguments.
pub struct Task {
    /// Output on stderr while the task runs.
    pub log: Log,
    /// Carries it out.
    pub work: Box<dyn FnOnce(&Lists) -> Outcome>,
}

/// Prints the last message; returns the exit code documented in `iolab --help`.
pub fn code_of(outcome: Outcome) -> u8 {
    match outcome {
        Ok(()) | Err(Failure::BrokenPipe | Failure::ToldElsewhere) => 0,
        Err(Failure::No) => 4,
        Err(Failure::CannotTell) => 5,
        Err(Failure::Planned(kind)) => code_of_kind(kind),
        Err(Failure::Code(code)) => code,
        Err(Failure::Told(error)) => {
            tell(&error);
            code_of_kind(error.kind())
        }
    }
}

fn code_of_kind(kind: Kind) -> u8 {
    match kind {
        Kind::Failed => 1,
        Kind::Usage => 2,
        Kind::Refused => 3,
        Kind::Interrupted => 130,
    }
}

/// Prints an error as a message, or as an event if those are asked for.
pub fn tell(error: &Error) {
    if output::log() == Log::Json {
        let texts = [("text", Some(error.message())), ("remedy", error.remedy())];
        let fields = texts.map(|(key, text)| (key.to_owned(), text.into()));
        return output::event("error", fields.into_iter().collect());
    }
    let mut text = format!("error: {}", error.message());
    if let Some(remedy) = error.remedy() {
        text += &format!("\n  {remedy}");
    }
    output::told(&text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observation_of_unknown_command_is_refused_by_name() {
        let kept = Observation {
            command: "look".to_owned(),
            ..Observation::default()
        };
        let error = Lists::default()
            .seen(kept, Path::new("o.iolab"))
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.message()),
            (
                Kind::Usage,
                "o.iolab holds what 'iolab look' saw, which this program lacks"
            )
        );
    }
}
