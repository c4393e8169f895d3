//! `iolab schema`: the structure of the JSON that a command prints.

use std::io::Write;

use crate::arguments::Schema;
use iolab_command::failure::Outcome;
use iolab_command::output;

/// Writes a JSON Schema to stdout.
pub(crate) fn schema(options: &Schema) -> Outcome {
    let mut to = output::open(None)?;
    write!(to, "{}", options.output.text())?;
    Ok(to.flush()?)
}
