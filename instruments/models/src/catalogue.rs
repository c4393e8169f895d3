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
#[cfg(feature = "measure")]
use iolab_record::digest;
use iolab_report::layout::{self, paragraph};
use iolab_workload::escape_control::escape_control;
use iolab_workload::names::unknown;
use iolab_workload::{Error, Result};
use serde_json::{Value, json};

use crate::definition::{self, Definition};

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
        ModelAction::Show { definition } => model_definition(definition)?.0,
    };
    let mut to = open(None)?;
    write!(to, "{text}")?;
    Ok(to.flush()?)
}

fn list_models(format: TextOrJson) -> Result<String> {
    let all = definition::ENTRIES
        .iter()
        .map(|entry| Ok((entry.name, model_definition(entry.name)?.1)))
        .collect::<Result<Vec<_>>>()?;
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

/// The definition of a name in the catalogue, or of a TOML file: its text, comments included, and the parsed form.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): no such name, with similar ones; or a fault in the file, with line and
/// column.
pub(crate) fn model_definition(name: &str) -> Result<(String, Definition)> {
    parsed(name, text_of(name)?)
}

/// The definition with a name from a run file and the digest that the run measured. A name in a run file may be any file:
/// its text is compared before it is parsed, since parse errors quote it.
///
/// # Errors
/// As [`model_definition`]; also a definition with another digest.
#[cfg(feature = "measure")]
pub(crate) fn measured_definition(
    name: &str,
    measured: Option<&str>,
) -> Result<(String, Definition)> {
    let text = text_of(name)?;
    match measured == Some(digest(text.bytes()).as_str()) {
        true => parsed(name, text),
        false => Err(other_disk(name)),
    }
}

#[cfg(feature = "measure")]
fn other_disk(name: &str) -> Error {
    Error::usage(format!(
        "model:{name} is not the disk that the run measured: its definition has changed"
    ))
    .hint("measure again, and ask about that run")
}

fn parsed(name: &str, text: String) -> Result<(String, Definition)> {
    let definition = Definition::parse(&text)
        .map_err(|why| of_text(Path::new(name), wrong_definition(why, name)))?;
    Ok((text, definition))
}

/// The error for a definition of an impossible disk.
pub(crate) fn wrong_definition(why: String, name: &str) -> Error {
    Error::usage(why.trim_end().to_owned())
        .within(name)
        .hint("see a definition with: iolab model show hp-97560")
}

/// Largest definition of a model, bytes.
const DEFINITION_MAX: u64 = 1 << 20;

fn text_of(name: &str) -> Result<String> {
    if let Some(entry) = definition::ENTRIES.iter().find(|entry| entry.name == name) {
        return Ok(entry.text.to_owned());
    }
    let path = Path::new(name);
    if path.exists() || path.extension().is_some_and(|end| end == "toml") {
        let hint = "check the path; 'iolab model list' shows the built-in models";
        return read_user_file::text(path, DEFINITION_MAX, hint);
    }
    let known: Vec<&str> = definition::ENTRIES.iter().map(|entry| entry.name).collect();
    Err(unknown("model", name, &known))
}

#[cfg(all(test, feature = "measure"))]
mod tests {
    use super::*;

    #[test]
    fn names_in_run_files_quote_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        std::fs::write(&path, "root:x:0:0:root\n").expect("a file");
        let name = path.to_str().expect("UTF-8");
        for measured in [None, Some("1234")] {
            let error = measured_definition(name, measured).unwrap_err();
            assert_eq!(error, other_disk(name));
        }
        let text = definition::ENTRIES[0].text;
        let measured = digest(text.bytes());
        assert!(measured_definition(definition::ENTRIES[0].name, Some(&measured)).is_ok());
    }
}
