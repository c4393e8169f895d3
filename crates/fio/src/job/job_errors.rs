//! Mistakes of a job file with their places, reported all at once.

use std::collections::BTreeMap;
use std::fmt;

use iolab_workload::{Error, Result};

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
            "correct these lines; if fio itself accepts the job, run it with fio --output-format=json+ and bring the report in with 'iolab import'",
        ))
    }
}

/// Position of a line.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LinePosition {
    /// The number of the line in the file that was named.
    pub(super) line: usize,
    /// The file that this line includes, with the lines in that file and in further included files.
    pub(super) included: Option<(String, Vec<usize>)>,
    /// Why its text is not shown.
    pub(super) hidden: Option<Hidden>,
}

/// Why the text of a line is not shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Hidden {
    /// The value of variables of the environment is in it; so the job file writes it.
    Variables(String),
    /// The text comes from another file.
    Elsewhere,
}

impl LinePosition {
    /// A line of the file itself.
    pub(super) fn of(line: usize) -> Self {
        Self {
            line,
            ..Self::default()
        }
    }

    /// An error there, without the text that is hidden.
    pub(super) fn error(&self, error: Error) -> Error {
        match &self.hidden {
            None => error,
            Some(Hidden::Variables(written)) => Error::usage(format!(
                "iolab cannot carry out {written} with what is in the environment"
            ))
            .hint("values of variables are not shown: write the value itself to see what is wrong"),
            Some(Hidden::Elsewhere) => Error::usage("iolab cannot carry out this line").hint(
                "lines of other files are not shown: look there, or write the line into the job file",
            ),
        }
        .within(self)
    }
}

/// `line 3`, `line 3 (common.fio, line 7)`.
impl fmt::Display for LinePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        let Some((file, lines)) = &self.included else {
            return Ok(());
        };
        write!(f, " ({file}")?;
        for line in lines {
            write!(f, ", line {line}")?;
        }
        f.write_str(")")
    }
}
