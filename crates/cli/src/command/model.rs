//! `iolab model`: the models that come with iolab, their definitions, and how far one is from a measured drive.

use std::io::Write;
use std::path::Path;

use crate::model_text;
use iolab_diskmodel::definition::catalogue;
use iolab_diskmodel::drive_comparison::{check, parse_trace};
use iolab_plan::experiment::of_text;
use iolab_plan::read_user_file;
use iolab_runfile::model_definition;
use iolab_workload::{Error, Result};

use crate::arguments::{Model, ModelAction, ModelFormat};
use crate::exit::Outcome;
use crate::output;

/// Largest trace that is compared, bytes.
const TRACE_MAX: u64 = 1 << 30;
const TRACE_HINT: &str = "see the form of a trace with: iolab model check --help";

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

fn compare(name: &str, path: &Path, format: ModelFormat) -> Result<String> {
    let (_, definition) = model_definition(name)?;
    let trace = parse_trace(&read_user_file::text(path, TRACE_MAX, TRACE_HINT)?)
        .map_err(|why| Error::usage(why).within(path.display()))
        .map_err(|error| error.hint(TRACE_HINT))
        .map_err(|error| of_text(path, error))?;
    let found = check(&definition, &trace).map_err(|why| Error::usage(why).within(name))?;
    if found.all().is_none() {
        return Err(Error::usage(format!(
            "all {} requests of {} lie outside the model {name}",
            found.outside,
            path.display()
        ))
        .hint("choose the definition of the traced drive"));
    }
    Ok(match format {
        ModelFormat::Text => model_text::check_text(&definition, &found, output::style().width),
        ModelFormat::Json => model_text::check_json(&definition, &found),
    })
}
