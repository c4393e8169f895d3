//! Standard output of commands that measure, and the names of their run files.

use std::fmt::Display;
use std::io::{self, BufWriter, Write};

use iolab_workload::{Error, Result};

use super::{note, style};
use crate::escape_output::Harmless;

/// Whether the reader of a pipe has closed it.
fn is_closed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

/// Standard output of a command that measures. An error, such as a closed pipe or a full disk, does not end the measurement:
/// further output is discarded, the user is informed at once, and the command fails at its end.
pub struct Results<W: Write = io::Stdout> {
    to: BufWriter<Harmless<W>>,
    failed: Option<io::Error>,
}

impl Default for Results {
    fn default() -> Self {
        Self::to(io::stdout())
    }
}

impl<W: Write> Results<W> {
    fn to(to: W) -> Self {
        Self {
            to: BufWriter::new(Harmless::new(to, style().ascii)),
            failed: None,
        }
    }

    fn attempt(&mut self, write: impl FnOnce(&mut BufWriter<Harmless<W>>) -> io::Result<()>) {
        if self.failed.is_some() {
            return;
        }
        if let Err(error) = write(&mut self.to) {
            if is_closed(&error) {
                self.failed = Some(error);
                return;
            }
            note(format_args!(
                "note: standard output cannot be written ({error}): the results go to the run files only"
            ));
            self.failed = Some(error);
        }
    }

    /// Flushes the output. `kept` names the results. A reader that closed the pipe has seen enough, which is not a failure.
    ///
    /// # Errors
    ///
    /// Of kind [`Failed`](iolab_workload::Kind::Failed) when anything could not be written.
    pub fn end(mut self, kept: impl Display) -> Result<()> {
        self.attempt(Write::flush);
        match self.failed {
            None => Ok(()),
            Some(error) if is_closed(&error) => {
                note(format_args!(
                    "note: standard output was closed early; see the results with: iolab table {kept}"
                ));
                Ok(())
            }
            Some(error) => Err(Error::failed(format!(
                "everything is measured, but standard output could not be written: {error}"
            ))
            .hint(format!("see the results with: iolab table {kept}"))),
        }
    }
}

impl<W: Write> Write for Results<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.attempt(|to| to.write_all(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.attempt(Write::flush);
        Ok(())
    }
}
