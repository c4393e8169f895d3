//! Text of runs that a command has just made: only what matters.

use std::io::Write;

use iolab_report::durable_write;
use iolab_report::findings::cross_findings;
use iolab_report::input::Input;
use iolab_report::overview::Overview;

use super::{report, sentences, style};
use crate::failure::Outcome;

/// Lines after the text of a run: an empty one, and its run file.
const LINES_BELOW: usize = 2;

/// Writes one run, in full or in brief.
pub fn run(input: &Input, full: bool, to: &mut dyn Write) -> Outcome {
    let text = match full {
        true => return report(&input.run, &input.interpretation, to),
        false if durable_write::asks(input) => durable_write::text(input, &style()),
        false => Overview::new([input]).screen(LINES_BELOW, &style()),
    };
    Ok(write!(to, "{text}")?)
}

/// Writes runs one after the other, then their common findings.
pub fn runs(inputs: &[Input], full: bool, to: &mut dyn Write) -> Outcome {
    for (number, input) in inputs.iter().enumerate() {
        if number > 0 {
            writeln!(to)?;
        }
        run(input, full, to)?;
    }
    if inputs.len() > 1 {
        let analyses = inputs.iter().map(|input| input.run.analysis());
        let found = cross_findings(analyses);
        if !found.is_empty() {
            writeln!(to, "\nAll together\n")?;
            sentences(&found, style(), to)?;
        }
    }
    Ok(())
}
