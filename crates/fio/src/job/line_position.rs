//! Position of a line of a job file, and whether its text may be shown.

use std::fmt;

use iolab_workload::Error;

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
