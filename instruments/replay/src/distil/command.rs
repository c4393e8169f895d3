//! The command, and its answer in words.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use iolab_command::failure::{Failure, Outcome};
use iolab_command::output;
use iolab_report::layout::{Column, text, wrapped};
use iolab_workload::Error;
use iolab_workload::escape_control::escape_control;
use iolab_workload::units::counted;

use super::{Distilled, distilled, toml};
use crate::trace::survey::Survey;
use crate::trace::{Reading, Trace};

/// Fewest requests whose distributions mean something.
const REQUESTS_MIN: u64 = 100;
/// Greatest distance of an experiment that stands for its trace.
const FAR: f64 = 0.2;

const DISTIL_HELP: &str = "\
The experiment is made of the first half of the trace: reads and writes as groups, their sizes, \
rates and order. It is held against the second half. Above a distance of 0.2 in any respect the \
trace cannot be distilled: no file is written, and the exit code is 5.";

#[derive(Debug, Args)]
#[command(after_help = DISTIL_HELP)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// New file for the experiment (TOML) instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Writes an experiment that resembles a trace.
pub(crate) fn distil(options: &Options) -> Outcome {
    let trace = Trace::open(&options.reading)?;
    let survey = Survey::of(&trace)?;
    if survey.requests() < REQUESTS_MIN {
        let count = counted(survey.requests(), "request");
        let few = Error::usage(format!("{count} are too few to be distilled"));
        return Err(few
            .hint(format!("give a trace of at least {REQUESTS_MIN}"))
            .into());
    }
    let distilled = distilled(&trace, &survey)?;
    let name = options.reading.trace.display().to_string();
    let name = escape_control(&name);
    output::told(answer(&distilled, &name, output::style().width).trim_end());
    if far(&distilled).next().is_some() {
        return Err(Failure::CannotTell);
    }
    let mut to = output::open(options.output.as_deref())?;
    to.write_all(toml::text(&distilled, &name.replace('\n', " ")).as_bytes())?;
    Ok(to.flush()?)
}

fn far(distilled: &Distilled) -> impl Iterator<Item = &'static str> {
    let far = distilled.distances.iter().filter(|own| own.value > FAR);
    far.map(|own| own.what)
}

fn answer(distilled: &Distilled, name: &str, width: u16) -> String {
    let of = |value: fn(&super::Distance) -> String| {
        distilled.distances.iter().map(value).collect::<Vec<_>>()
    };
    let table = text(
        vec![
            Column::new(
                "distance from the second half in",
                0,
                of(|own| own.what.to_owned()),
            )
            .left(),
            Column::new("", 0, of(|own| format!("{:.3}", own.value))),
        ],
        width,
    );
    let far: Vec<&str> = far(distilled).collect();
    let said = match far.is_empty() {
        true => format!("{name} resembles groups of random requests at constant rates."),
        false => format!(
            "{name} cannot be distilled: its second half differs from an experiment like its first half in {} by more than {FAR}. Replay it instead.",
            far.join(", ")
        ),
    };
    format!("{table}\n{}", wrapped(&said, width))
}
