//! `iolab witness`: where the bytes of any program came from and went to.

use std::io::Write;
use std::path::Path;

use iolab_host::program::Program;
use iolab_host::witness::{Witness, end_by};
use iolab_report::witness as report;
use iolab_runner::witness::observe;
use iolab_workload::escape_control::escape_control;
use iolab_workload::witness::ObservedEnd;

use crate::arguments;
use crate::exit::{Failure, Outcome};
use crate::output::{self, note};
use crate::output_format::format_of;

#[derive(Clone, Copy, PartialEq)]
enum Format {
    Text,
    Json,
}

/// Runs the program and writes the evidence; ends as the program has.
pub(crate) fn witness(options: &arguments::Witness) -> Outcome {
    let named = options.output.as_deref();
    let known: &[(Format, &[&str])] = &[(Format::Json, &["json"]), (Format::Text, &["txt"])];
    let format = format_of(named, None, Some(Format::Text), known)?;
    // Made before the program runs: a name that cannot be written is no surprise at its end.
    let file = named.map(|path| output::open(Some(path))).transpose()?;
    let name = options
        .command
        .first()
        .map(Path::new)
        .unwrap_or(Path::new(""));
    if let Some(path) = options.on.as_deref().filter(|path| !path.exists()) {
        note(format_args!(
            "note: {} does not exist before the program starts, so that --on shows nothing of it",
            escape_control(&path.display().to_string())
        ));
    }
    let program = Witness {
        program: &Program::find(name)?,
        words: &options.command,
        target: options.on.as_deref(),
    };
    let evidence = observe(&program, &mut |left| {
        note(format_args!(
            "note: the program has ended; {left} of its processes go on and are observed until they end (Ctrl-C ends that)"
        ));
    })?;
    let width = output::style().width;
    match file {
        Some(mut to) => {
            match format {
                Format::Json => report::json(&evidence, &mut to)?,
                Format::Text => write!(to, "{}", report::text(&evidence, width))?,
            }
            to.flush()?;
            note(report::headline(&evidence));
        }
        None => output::told(report::text(&evidence, width).trim_end()),
    }
    match evidence.observed.end {
        ObservedEnd::Code(0) | ObservedEnd::Running => Ok(()),
        ObservedEnd::Code(code) => Err(Failure::Program(code)),
        ObservedEnd::Signal(signal) => {
            end_by(signal);
            Err(Failure::Program(128 + signal))
        }
    }
}
