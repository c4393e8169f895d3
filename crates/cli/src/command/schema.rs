//! `iolab schema`: the structure of the JSON that a command prints.

use std::io::Write;

use crate::arguments::Schema;
use iolab_command::failure::Outcome;
use iolab_command::lists::Lists;
use iolab_command::output;

/// Writes a JSON Schema to stdout.
pub(crate) fn schema(options: &Schema, lists: &Lists) -> Outcome {
    let mut to = output::open(None)?;
    let mut documents = lists.documents.iter();
    if let Some(document) = documents.find(|document| document.name == options.output) {
        write!(to, "{}", document.text())?;
    }
    Ok(to.flush()?)
}
