//! `iolab model`: the models that come with iolab, their definitions, and how far one is from a measured drive.

use std::fs;
use std::io::Write;
use std::path::Path;

use iolab_model::check::{check, parse_trace};
use iolab_model::{Definition, catalogue};
use iolab_report::model as report;
use iolab_spec::names::unknown;
use iolab_spec::{Error, Result};

use crate::arguments::{Model, ModelAction, ModelFormat};
use crate::exit::Outcome;
use crate::output::{self, harmless};

/// Writes what was asked for to stdout.
pub(crate) fn model(options: &Model) -> Outcome {
    let text = match &options.action {
        ModelAction::List { format } => list(*format)?,
        ModelAction::Show { definition } => show(definition)?,
        ModelAction::Check {
            definition,
            trace,
            format,
        } => compare(definition, trace, *format)?,
    };
    let mut to = output::open(None)?;
    write!(to, "{text}")?;
    Ok(to.flush()?)
}

fn list(format: ModelFormat) -> Result<String> {
    let all = catalogue::ENTRIES
        .iter()
        .map(|entry| Ok((entry.name, parsed(entry.text, entry.name)?)))
        .collect::<Result<Vec<_>>>()?;
    Ok(match format {
        ModelFormat::Text => report::list_text(&all, output::style().width),
        ModelFormat::Json => report::list_json(&all),
    })
}

/// The text as it was written, comments included, once it is known to be a definition.
fn show(name: &str) -> Result<String> {
    let text = text_of(name)?;
    parsed(&text, name)?;
    Ok(harmless(&text))
}

fn compare(name: &str, path: &Path, format: ModelFormat) -> Result<String> {
    let definition = find(name)?;
    let trace = parse_trace(&read(path)?)
        .map_err(|why| Error::usage(why).within(path.display()))
        .map_err(|error| error.hint("see the form of a trace with: iolab model check --help"))?;
    let found = check(&definition, &trace).map_err(|why| Error::usage(why).within(name))?;
    if found.all().is_none() {
        return Err(Error::usage(format!(
            "all {} requests of {} lie outside the model {name}",
            found.outside,
            path.display()
        ))
        .hint("name the definition of the drive that the trace is from"));
    }
    Ok(match format {
        ModelFormat::Text => report::check_text(&definition, &found, output::style().width),
        ModelFormat::Json => report::check_json(&definition, &found),
    })
}

/// The definition of a name in the catalogue, or of a TOML file.
///
/// # Errors
/// Of kind usage for a name that is neither, and for a file that is no definition, with line and column.
pub(crate) fn find(name: &str) -> Result<Definition> {
    parsed(&text_of(name)?, name)
}

fn parsed(text: &str, name: &str) -> Result<Definition> {
    Definition::parse(text).map_err(|why| {
        Error::usage(why.trim_end().to_owned())
            .within(name)
            .hint("see a definition with: iolab model show hp-97560")
    })
}

fn text_of(name: &str) -> Result<String> {
    if let Some(entry) = catalogue::ENTRIES.iter().find(|entry| entry.name == name) {
        return Ok(entry.text.to_owned());
    }
    let path = Path::new(name);
    if path.exists() || path.extension().is_some_and(|end| end == "toml") {
        return read(path);
    }
    let known: Vec<&str> = catalogue::ENTRIES.iter().map(|entry| entry.name).collect();
    Err(unknown("model", name, &known))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| {
        Error::usage(format!("cannot read {}: {error}", path.display()))
            .hint("check the path; 'iolab model list' shows the models that come with iolab")
    })
}
