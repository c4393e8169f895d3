//! `iolab model`: the models that come with iolab and their definitions.

use std::io::Write;

use crate::model_text;
use iolab_diskmodel::definition::catalogue;
use iolab_runfile::model_definition;
use iolab_workload::Result;

use crate::arguments::{Model, ModelAction, ModelFormat};
use iolab_command::failure::Outcome;
use iolab_command::output;

/// Writes the requested output to stdout.
pub(crate) fn model(options: &Model) -> Outcome {
    let text = match &options.action {
        ModelAction::List { format } => list(*format)?,
        ModelAction::Show { definition } => show(definition)?,
    };
    let mut to = output::open(None)?;
    write!(to, "{text}")?;
    Ok(to.flush()?)
}

fn list(format: ModelFormat) -> Result<String> {
    let all = catalogue::ENTRIES
        .iter()
        .map(|entry| Ok((entry.name, model_definition(entry.name)?.1)))
        .collect::<Result<Vec<_>>>()?;
    Ok(match format {
        ModelFormat::Text => model_text::list_text(&all, output::style().width),
        ModelFormat::Json => model_text::list_json(&all),
    })
}

/// The text as it was written, comments included, once it is known to be a definition.
fn show(name: &str) -> Result<String> {
    Ok(model_definition(name)?.0)
}
