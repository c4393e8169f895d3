//! The lists of the program. The core is one value of [`Lists`], and each instrument another; additions are rows
//! of these.

use clap::{ArgMatches, Args};

use crate::failure::Outcome;
use crate::output::Log;

/// The lists, with the rows of the core, of an instrument, or of all.
#[derive(Default)]
pub struct Lists {
    /// Commands of the program.
    pub commands: Vec<Command>,
}

impl Lists {
    /// Appends the rows of others to these lists.
    pub fn with(mut self, others: Self) -> Self {
        self.commands.extend(others.commands);
        self
    }
}

/// A command: its arguments, and the function that carries it out.
pub struct Command {
    arguments: clap::Command,
    read: Box<dyn Fn(&ArgMatches) -> clap::error::Result<Task>>,
}

impl Command {
    /// A command with its name and its description.
    pub fn new<A: Args + 'static>(
        name: &'static str,
        about: &'static str,
        work: fn(&A, &Lists) -> Outcome,
    ) -> Self {
        Self::with_log(name, about, |_| Log::Lines, work)
    }

    /// A command whose arguments decide the output on stderr while it runs.
    pub fn with_log<A: Args + 'static>(
        name: &'static str,
        about: &'static str,
        log: fn(&A) -> Log,
        work: fn(&A, &Lists) -> Outcome,
    ) -> Self {
        let read = move |matches: &ArgMatches| {
            let arguments = A::from_arg_matches(matches)?;
            Ok(Task {
                log: log(&arguments),
                work: Box::new(move |lists| work(&arguments, lists)),
            })
        };
        let arguments = A::augment_args(clap::Command::new(name));
        Self {
            // Set last, because arguments may bring descriptions of their own.
            arguments: arguments.about(about).long_about(None),
            read: Box::new(read),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.arguments.get_name()
    }

    /// Its arguments, as they are parsed and shown.
    pub fn arguments(&self) -> &clap::Command {
        &self.arguments
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
    work: Box<dyn FnOnce(&Lists) -> Outcome>,
}

impl Task {
    /// Carries it out.
    ///
    /// # Errors
    ///
    /// Those of the command.
    pub fn carry_out(self, lists: &Lists) -> Outcome {
        (self.work)(lists)
    }
}
