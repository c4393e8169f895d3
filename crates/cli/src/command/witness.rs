//! `iolab witness`: where the bytes of any program came from and went to, and who used a device.

use std::io::Write;
use std::path::Path;
use std::time::SystemTime;

use iolab_analysis::witness::Evidence;
use iolab_figure::Options;
use iolab_host::program::Program;
use iolab_host::witness::{Witness, WitnessOf, end_by};
use iolab_report::witness as report;
use iolab_runner::witness::{claim, observe, report_of};
use iolab_workload::escape_control::escape_control;
use iolab_workload::witness::ObservedEnd;

use crate::arguments;
use crate::command::plot;
use crate::exit::{Failure, Outcome};
use crate::output::{self, note};
use crate::output_format::{Extensions, format_of};

#[derive(Clone, Copy, PartialEq)]
enum Format {
    Text,
    Json,
    Figure(plot::Format),
}

const FORMATS: &Extensions<Format> = &[
    (Format::Json, &["json"]),
    (Format::Text, &["txt"]),
    (Format::Figure(plot::Format::Svg), &["svg"]),
    (Format::Figure(plot::Format::Png), &["png"]),
    (Format::Figure(plot::Format::Pdf), &["pdf"]),
];

/// Observes what was asked for and writes the evidence; ends as the program has.
pub(crate) fn witness(options: &arguments::Witness) -> Outcome {
    let named = options.output.as_deref();
    let format = format_of(named, None, Some(Format::Text), FORMATS)?;
    // Made before the program runs: a name that cannot be written is no surprise at its end.
    let open = match format {
        Format::Text | Format::Json => output::open,
        Format::Figure(_) => output::open_raw,
    };
    let file = named.map(|path| open(Some(path))).transpose()?;
    if let Some(path) = options.on.as_deref().filter(|path| !path.exists()) {
        note(format_args!(
            "note: {} does not exist before the program starts, so that --on shows nothing of it",
            escape_control(&path.display().to_string())
        ));
    }
    let found;
    let of = match (options.pid, options.command.first()) {
        (Some(process), _) => WitnessOf::Process(process),
        (None, Some(name)) => {
            found = Program::find(Path::new(name))?;
            WitnessOf::Program {
                file: &found,
                words: &options.command,
            }
        }
        (None, None) => WitnessOf::Devices(&options.device),
    };
    let witness = Witness {
        of,
        target: options.on.as_deref(),
        time: options.time,
    };
    let began = SystemTime::now();
    let mut evidence = observe(&witness, &mut |left| {
        note(format_args!(
            "note: the program has ended; {left} of its processes go on and are observed until they end (Ctrl-C ends that)"
        ));
    })?;
    add_claim(&mut evidence, options, began);
    let width = output::style().width;
    let text = report::text(&evidence, width);
    match file {
        Some(mut to) => {
            match format {
                Format::Json => report::json(&evidence, &mut to)?,
                Format::Text => write!(to, "{text}")?,
                Format::Figure(format) => {
                    let figure = iolab_figure::witness(&evidence, &Options::default())?;
                    to.write_all(&plot::bytes(&figure, format)?)?;
                }
            }
            to.flush()?;
            match format {
                Format::Json | Format::Text => note(report::headline(&evidence)),
                Format::Figure(_) => output::told(text.trim_end()),
            }
        }
        None => output::told(text.trim_end()),
    }
    match evidence.observed.end {
        ObservedEnd::Code(0) | ObservedEnd::Gone | ObservedEnd::Running => Ok(()),
        ObservedEnd::Code(code) => Err(Failure::Program(code)),
        ObservedEnd::Signal(signal) => {
            end_by(signal);
            Err(Failure::Program(128 + signal))
        }
    }
}

/// Adds what the program says of itself: the report that was named, or the one that its arguments name, where iolab can read that.
fn add_claim(evidence: &mut Evidence, options: &arguments::Witness, began: SystemTime) {
    let by_arguments = || report_of(&options.command);
    let Some(path) = options.claim.clone().or_else(by_arguments) else {
        return;
    };
    match claim(&path, began) {
        Ok(claim) => evidence.claim = Some(claim),
        // The evidence stands without it, and a report of another format was not asked for.
        Err(error) if options.claim.is_some() => note(format_args!(
            "note: no claim is shown: {}",
            escape_control(error.message())
        )),
        Err(_) => {}
    }
}
