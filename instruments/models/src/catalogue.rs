//! Models by name: those that come with iolab, and TOML files.
//!
//! `iolab model`: the models that come with iolab and their definitions.

use std::io::Write;
use std::path::Path;

use clap::{Args, Subcommand};
use iolab_command::failure::Outcome;
use iolab_command::output::{open, style};
use iolab_command::output_format::TextOrJson;
use iolab_plan::read_user_file::{self, of_text};
use iolab_report::layout::{self, paragraph};
use iolab_workload::escape_control::escape_control;
use iolab_workload::names::unknown;
use iolab_workload::{Error, Result};
use serde_json::{Value, json};

use crate::definition::{Definition, ENTRIES, built_in};

/// Largest definition of a model, bytes.
const DEFINITION_MAX: u64 = 1 << 20;

#[derive(Debug, Args)]
pub(crate) struct Model {
    #[command(subcommand)]
    pub(crate) action: ModelAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelAction {
    /// List the built-in models, each with the sources of its values
    List {
        /// Output format
        #[arg(long, value_enum, default_value_t = TextOrJson::Text)]
        format: TextOrJson,
    },
    /// Print the definition (TOML) of a model, to copy and change
    Show {
        /// Name from 'iolab model list', or a TOML file
        #[arg(value_name = "DEFINITION")]
        definition: String,
    },
}

/// Writes the requested output to stdout.
pub(crate) fn model(options: &Model) -> Outcome {
    let text = match &options.action {
        ModelAction::List { format } => list_models(*format)?,
        // As it was written, comments included, once it is known to be a definition.
        ModelAction::Show { definition } => {
            let text = text_of(definition)?;
            parsed(definition, &text)?;
            text
        }
    };
    let mut to = open(None)?;
    write!(to, "{text}")?;
    Ok(to.flush()?)
}

fn list_models(format: TextOrJson) -> Result<String> {
    let all = ENTRIES.iter();
    let all = all.map(|(name, text)| Ok((*name, parsed(name, text)?)));
    let all = all.collect::<Result<Vec<_>>>()?;
    Ok(match format {
        TextOrJson::Text => list_text(&all, style().width),
        TextOrJson::Json => list_json(&all),
    })
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

/// The definition as text that a name in the catalogue or a TOML file has, comments included.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): no such name, with similar ones.
pub(crate) fn text_of(name: &str) -> Result<String> {
    if let Some(text) = built_in(name) {
        return Ok(text.to_owned());
    }
    let path = Path::new(name);
    if path.exists() || path.extension().is_some_and(|end| end == "toml") {
        let hint = "check the path; 'iolab model list' shows the built-in models";
        return read_user_file::text(path, DEFINITION_MAX, hint);
    }
    let known: Vec<&str> = ENTRIES.iter().map(|(name, _)| *name).collect();
    Err(unknown("model", name, &known))
}

/// The definition with this name, parsed.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): a fault in the text, with line and column.
pub(crate) fn parsed(name: &str, text: &str) -> Result<Definition> {
    Definition::parse(text).map_err(|why| of_text(Path::new(name), wrong_definition(why, name)))
}

/// The error for a definition of an impossible disk.
pub(crate) fn wrong_definition(why: String, name: &str) -> Error {
    Error::usage(why.trim_end().to_owned())
        .within(name)
        .hint("see a definition with: iolab model show hp-97560")
}
