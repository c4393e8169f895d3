//! The progress of the runs: one line on a terminal.

use std::io::{self, Write};

use iolab_command::output::{self, Log};
use iolab_runner::{Observer, RunEnd, RunStart, TrialDone};
use iolab_workload::units::{counted, rough_duration};

/// Shows how many runs are done, and the time left.
pub(crate) struct Line {
    is_shown: bool,
}

impl Line {
    /// A line, if stderr is a terminal.
    pub(crate) fn new() -> Self {
        Self {
            is_shown: output::log() == Log::Live,
        }
    }

    /// Replaces the line. Errors do not stop the timing.
    fn show(&self, text: &str) {
        if self.is_shown {
            let _ = write!(io::stderr().lock(), "\r{text}\x1b[K");
        }
    }
}

impl Observer for Line {
    fn run_starts(&mut self, start: &RunStart<'_>) {
        let commands = counted(start.cells as u64, "command");
        let left = rough_duration(start.progress.left);
        self.show(&format!("{commands}, up to about {left}"));
    }

    fn trial_done(&mut self, trial: &TrialDone<'_>) {
        let runs = counted(trial.progress.trials_done, "run");
        let left = rough_duration(trial.progress.left);
        self.show(&format!("{runs}, up to about {left} left"));
    }

    fn run_ends(&mut self, _end: &RunEnd) {
        self.show("");
    }

    fn note(&mut self, message: &str) {
        self.show("");
        output::note(format_args!("note: {message}"));
    }
}
