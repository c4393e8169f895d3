//! What a run tells of service levels: `iolab run --slo`.

use std::io::Write;
use std::path::Path;

use iolab_analysis::fitness::{Answer, Verdicts};
use iolab_analysis::slo::SearchAnswer;
use iolab_plan::experiment::Experiment;
use iolab_report::slo::{Searched, at_rates};
use iolab_spec::Result;
use iolab_spec::level::Levels;

use crate::exit::Outcome;
use crate::output::style;

/// Says up to which rate the levels hold, by the run that searched for it; whether it found out.
fn searched(levels: &Levels, path: &Path, to: &mut dyn Write) -> Outcome<Answer> {
    let record = iolab_runfile::read(path)?;
    let found = SearchAnswer::of(levels, &record, iolab_runfile::read_latency(path)?)?;
    write!(to, "{}", Searched(&found).text(style().width))?;
    Ok(found.answer())
}

/// Says whether the levels hold in every cell of a run.
fn judged(levels: &Levels, path: &Path, to: &mut dyn Write) -> Outcome<Answer> {
    let record = iolab_runfile::read(path)?;
    let found = Verdicts::of(levels, &record, iolab_runfile::read_latency(path)?)?;
    write!(to, "{}", at_rates(&found, style().width))?;
    Ok(found.answer)
}

/// The levels that a run file's run searched the rate of; `None` where it searched none.
pub(super) fn levels_of(toml: &str) -> Option<Levels> {
    Experiment::from_toml(toml, "run file").ok()?.seek
}

/// Answers what a run was asked with `--slo`; `None` where it was not.
pub(super) fn answer(
    experiment: &Experiment,
    path: &Path,
    to: &mut dyn Write,
) -> Outcome<Option<Answer>> {
    Ok(match (&experiment.seek, &experiment.hold) {
        (Some(levels), _) => Some(searched(levels, path, to)?),
        (None, Some(levels)) => Some(judged(levels, path, to)?),
        (None, None) => None,
    })
}

/// Reads the levels of `--slo`.
pub(super) fn read(text: &str) -> Result<Levels> {
    text.parse()
        .map_err(|error: iolab_spec::Error| error.within("--slo"))
}
