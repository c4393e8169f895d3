//! Mistakes of a job file, reported all at once.

use std::collections::BTreeMap;

use iolab_workload::{Error, Result};

use super::line_position::LinePosition;

/// Most mistakes that a message lists.
const MISTAKES_TOLD: usize = 40;
/// Lines with mistakes after which the rest of a file is not looked at.
const LINES_MAX: usize = 1000;

/// Mistakes in a job file, by their place.
#[derive(Default)]
pub(super) struct Mistakes(BTreeMap<LinePosition, Vec<Error>>);

impl Mistakes {
    /// Adds one; a mistake in `[global]` concerns every job, and is reported once.
    pub(super) fn add(&mut self, place: &LinePosition, error: Error) {
        self.put(place, place.error(error));
    }

    /// Adds a mistake that quotes nothing of the line, and may thus be shown for any line.
    pub(super) fn add_unquoted(&mut self, place: &LinePosition, error: Error) {
        self.put(place, error.within(place));
    }

    /// Whether there are too many to examine the rest of the file.
    pub(super) fn are_enough(&self) -> bool {
        self.0.len() > LINES_MAX
    }

    fn put(&mut self, place: &LinePosition, error: Error) {
        let of_line = self.0.entry(place.clone()).or_default();
        if of_line.len() < MISTAKES_TOLD && !of_line.contains(&error) {
            of_line.push(error);
        }
    }

    /// All mistakes as one error, in the order of their lines, each with its remedy.
    pub(super) fn told(self) -> Result<()> {
        let are_enough = self.are_enough();
        let mut all: Vec<Error> = self.0.into_values().flatten().collect();
        if all.len() <= 1 {
            return all.pop().map_or(Ok(()), Err);
        }
        let mut message = match are_enough {
            true => format!("mistakes in more than {LINES_MAX} lines"),
            false => format!("{} mistakes", all.len()),
        };
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
