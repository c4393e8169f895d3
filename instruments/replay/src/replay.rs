//! `iolab replay`: a trace on targets and models.

use std::io::Write;

use iolab_command::failure::{Failure, Outcome};
use iolab_command::output;
use iolab_command::output_format::format_of;
use iolab_runner::campaign::Program;

use crate::answer::Answer;
use crate::options::{Options, ReplayFormat};
use crate::run::carry_out;
use crate::text::text;
use crate::trace::Trace;
use crate::trace::survey::Survey;

/// Replays a trace and prints the answer.
pub(crate) fn replay(options: &Options, program: Program) -> Outcome {
    let formats = &[
        (ReplayFormat::Text, &["txt"][..]),
        (ReplayFormat::Json, &["json"]),
    ];
    let path = options.output.as_deref();
    let format = format_of(path, options.format, Some(ReplayFormat::Text), formats)?;
    let trace = Trace::open(&options.reading)?;
    let survey = Survey::of(&trace)?;
    // Opened first, so that no measurement is lost to a name that is taken.
    let mut to = output::open(path)?;
    let mut trials = Vec::new();
    let ended = carry_out((&trace, &survey), options, program, &mut trials);
    if trials.is_empty() {
        return ended.map_err(Failure::from);
    }
    let file = options.reading.trace.display().to_string();
    let words = std::env::args_os().skip(1);
    let answer = Answer {
        arguments: words
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        ..Answer::of(file, &trace, &survey, options.seed, trials)
    };
    match format {
        ReplayFormat::Text => write!(to, "{}", text(&answer, output::style().width))?,
        ReplayFormat::Json => {
            serde_json::to_writer_pretty(&mut to, &answer).map_err(std::io::Error::from)?;
            writeln!(to)?;
        }
    }
    to.flush()?;
    ended?;
    match answer.is_kept() {
        true => Ok(()),
        false => Err(Failure::CannotTell),
    }
}
