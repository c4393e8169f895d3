//! What is wrong in a job file, told all at once.

use iolab_spec::{Error, Result};

/// Most mistakes that a message lists.
const MISTAKES_TOLD: usize = 40;

/// Mistakes in a job file, by the number of their line.
#[derive(Default)]
pub(super) struct Mistakes(Vec<(usize, Error)>);

impl Mistakes {
    /// Adds one; what `[global]` is wrong about is wrong in every job, and told once.
    pub(super) fn add(&mut self, line: usize, error: Error) {
        let mistake = (line, error);
        if !self.0.contains(&mistake) {
            self.0.push(mistake);
        }
    }

    /// All of them as one error, in the order of their lines, each with its way out.
    pub(super) fn told(mut self) -> Result<()> {
        self.0.sort_by_key(|(line, _)| *line);
        if self.0.len() <= 1 {
            return self
                .0
                .pop()
                .map_or(Ok(()), |(line, error)| Err(at(line, error)));
        }
        let mut message = format!("{} mistakes", self.0.len());
        for (line, error) in self.0.iter().take(MISTAKES_TOLD) {
            message.push_str(&format!("\n  line {line}: {}", error.message()));
            if let Some(remedy) = error.remedy() {
                message.push_str(&format!("\n    {remedy}"));
            }
        }
        if let Some(more) = self
            .0
            .len()
            .checked_sub(MISTAKES_TOLD)
            .filter(|more| *more > 0)
        {
            message.push_str(&format!("\n  and {more} more"));
        }
        Err(Error::usage(message).hint(
            "mend these lines, or run the job with fio --output-format=json+ and bring the report in with 'iolab import'",
        ))
    }
}

/// An error with the number of its line.
pub(super) fn at(line: usize, error: Error) -> Error {
    error.within(format!("line {line}"))
}
