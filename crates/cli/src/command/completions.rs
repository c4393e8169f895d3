//! `iolab completions`: completions of commands and options for shells.

use std::io::Write;

use clap::CommandFactory;

use crate::arguments::{Arguments, Completions};
use crate::exit::Outcome;
use crate::output::open;

/// Writes the completions of a shell to stdout.
pub(crate) fn completions(options: &Completions) -> Outcome {
    let mut command = Arguments::command();
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut command, "iolab", &mut script);
    let mut to = open(None)?;
    to.write_all(&script)?;
    Ok(to.flush()?)
}
