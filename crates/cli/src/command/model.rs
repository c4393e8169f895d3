//! `iolab model`: the models that come with iolab and their definitions.

use std::io::Write;

use iolab_diskmodel::definition::{Definition, catalogue};
use iolab_report::layout::{self, paragraph};
use iolab_runfile::model_definition;
use iolab_workload::Result;
use iolab_workload::escape_control::escape_control;
use serde_json::{Value, json};

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
        ModelFormat::Text => list_text(&all, output::style().width),
        ModelFormat::Json => list_json(&all),
    })
}

/// The text as it was written, comments included, once it is known to be a definition.
fn show(name: &str) -> Result<String> {
    Ok(model_definition(name)?.0)
}

/// Names, titles and sources, for a terminal of `width` columns.
fn list_text(models: &[(&str, Definition)], width: u16) -> String {
    let longest = models.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let width = width.max(layout::WIDTH_MIN);
    let mut text = String::new();
    for (name, definition) in models {
        text.push_str(&format!(
            "{name:longest$}  {}\n",
            escape_control(&definition.title)
        ));
        for source in &definition.source {
            text.push_str(&paragraph(&escape_control(source), "    - ", width));
        }
    }
    text
}

/// An array with one object per model.
fn list_json(models: &[(&str, Definition)]) -> String {
    let all: Vec<Value> = models
        .iter()
        .map(|(name, definition)| {
            json!({ "name": name, "title": definition.title, "source": definition.source })
        })
        .collect();
    format!("{:#}\n", Value::Array(all))
}
