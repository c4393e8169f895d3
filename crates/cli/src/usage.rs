//! The command line as it was typed, and what is wrong with it.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use iolab_workload::foreign_options::unknown_option;
use iolab_workload::names::nearest;

use crate::arguments::Arguments;
use crate::builtin::{Builtin, check_no_target_as_command};

impl Arguments {
    /// Reads the command line. What is wrong with it clap prints, and ends the program.
    ///
    /// # Errors
    /// Of kind usage: an option that other tools have, with iolab's way; what is built in, but no command.
    pub(crate) fn read(is_silent: bool) -> iolab_workload::Result<Self> {
        Self::try_parse().or_else(|mut error| {
            // No value of iolab begins with a dash: not the tip to pass the option as one.
            if error.kind() == ErrorKind::UnknownArgument
                && error.get(ContextKind::SuggestedArg).is_none()
            {
                error.remove(ContextKind::Suggested);
            }
            answer_unknown_command(&mut error)?;
            let known_elsewhere = match error.get(ContextKind::InvalidArg) {
                Some(ContextValue::String(option))
                    if error.kind() == ErrorKind::UnknownArgument =>
                {
                    unknown_option(option)
                }
                _ => None,
            };
            match is_silent {
                true => Err(iolab_workload::Error::usage(error.to_string())),
                false => known_elsewhere.map_or_else(|| error.exit(), Err),
            }
        })
    }
}

/// Answers a command that does not exist: by the one that takes this name, or by the nearest where clap has none to offer,
/// which sees no likeness between `rnu` and `run`.
fn answer_unknown_command(error: &mut clap::Error) -> iolab_workload::Result<()> {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return Ok(());
    };
    Builtin::Command.check(name)?;
    check_no_target_as_command(name)?;
    let command = Arguments::command();
    let known: Vec<&str> = command.get_subcommands().map(|c| c.get_name()).collect();
    let near = nearest(name, &known).into_iter().map(str::to_owned);
    let near: Vec<String> = near.collect();
    if !near.is_empty() && error.get(ContextKind::SuggestedSubcommand).is_none() {
        error.insert(
            ContextKind::SuggestedSubcommand,
            ContextValue::Strings(near),
        );
    }
    Ok(())
}
