//! `iolab show`: the definition of an experiment, suite or requirement.

use std::io::Write;

use iolab_plan::experiment::{BUILTIN, Experiment};
use iolab_plan::requirement::BUILTIN_REQUIREMENTS;
use iolab_plan::suite::BUILTIN_SUITES;

use crate::arguments::Show;
use crate::exit::Outcome;
use crate::output::{harmless, open};

/// Writes the TOML to stdout: of what is built in with its comments, of a file with everything resolved.
pub(crate) fn show(options: &Show) -> Outcome {
    let builtin = BUILTIN.iter().chain(BUILTIN_SUITES);
    let mut builtin = builtin.chain(BUILTIN_REQUIREMENTS);
    let text = match builtin.find(|(name, _)| *name == options.name) {
        Some((_, text)) => (*text).to_owned(),
        None => harmless(&Experiment::find(&options.name)?.to_toml()?),
    };
    let mut to = open(None)?;
    write!(to, "{text}")?;
    Ok(to.flush()?)
}
