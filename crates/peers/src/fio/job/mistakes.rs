//! What is wrong in a job file, told all at once.

use std::collections::BTreeMap;

use iolab_spec::{Error, Result};

/// Most mistakes that a message lists.
const MISTAKES_TOLD: usize = 40;

/// Mistakes in a job file, by the number of their line.
#[derive(Default)]
pub(super) struct Mistakes(BTreeMap<usize, Vec<Error>>);

impl Mistakes {
    /// Adds one; what `[global]` is wrong about is wrong in every job, and told once.
    pub(super) fn add(&mut self, line: usize, error: Error) {
        let of_line = self.0.entry(line).or_default();
        if !of_line.contains(&error) {
            of_line.push(error);
        }
    }

    /// All of them as one error, in the order of their lines, each with its way out.
    pub(super) fn told(self) -> Result<()> {
        let of_line = |(line, errors): (usize, Vec<Error>)| {
            let errors = errors.into_iter();
            errors.map(move |error| at(line, error))
        };
        let mut all: Vec<Error> = self.0.into_iter().flat_map(of_line).collect();
        if all.len() <= 1 {
            return all.pop().map_or(Ok(()), Err);
        }
        let mut message = format!("{} mistakes", all.len());
        for error in all.iter().take(MISTAKES_TOLD) {
            message.push_str(&format!("\n  {}", error.message()));
            if let Some(remedy) = error.remedy() {
                message.push_str(&format!("\n    {remedy}"));
            }
        }
        let more = all.len().saturating_sub(MISTAKES_TOLD);
        if more > 0 {
            message.push_str(&format!("\n  and {more} more"));
        }
        Err(Error::usage(message).hint(
            "correct these lines, or run the job with fio --output-format=json+ and bring the report in with 'iolab import'",
        ))
    }
}

/// An error with the number of its line.
pub(super) fn at(line: usize, error: Error) -> Error {
    error.within(format!("line {line}"))
}
