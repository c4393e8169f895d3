//! How far a run has come: a bar with the time left on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use iolab_runner::{Observer, Progress};
use iolab_workload::escape_control::escape_control;
use iolab_workload::units::rough_duration;

use crate::output;

/// Time between two plain lines.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Steps of the bar.
const STEPS: u64 = 1000;

/// Shows the progress of one experiment, or of filling the scratch file.
pub(crate) struct Display {
    name: String,
    bar: Option<ProgressBar>,
    last_line: Instant,
    told: Vec<String>,
    run_file: Option<PathBuf>,
    suite_ends: Option<Instant>,
}

impl Display {
    /// Starts to show the progress of what `name` says.
    pub(crate) fn new(name: &str) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let bar = (std::io::stderr().is_terminal() && !dumb).then(|| {
            let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr());
            let chars = if output::is_ascii_only() {
                "=> "
            } else {
                "█▉▊▋▌▍▎▏ "
            };
            // The template is a constant that is known to parse; without it the bar is merely plainer.
            let style = ProgressStyle::with_template("{prefix} {bar:24} {percent:>3} % {wide_msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.set_style(style.progress_chars(chars));
            bar.set_prefix(name.to_owned());
            bar
        });
        if bar.is_none() {
            output::note(format_args!("{name}: started"));
        }
        Self {
            name: name.to_owned(),
            bar,
            last_line: Instant::now(),
            told: Vec::new(),
            run_file: None,
            suite_ends: None,
        }
    }

    /// Counts what is left up to the end of the suite's budget, because further experiments follow.
    pub(crate) fn until(mut self, suite_ends: Option<Instant>) -> Self {
        self.suite_ends = suite_ends;
        self
    }

    /// Leaves out these notes: the user has seen them.
    pub(crate) fn without(mut self, told: &[String]) -> Self {
        self.told.extend_from_slice(told);
        self
    }

    /// Ends the display, and gives the notes that the user has seen by now.
    pub(crate) fn end(mut self) -> Vec<String> {
        std::mem::take(&mut self.told)
    }

    /// Shows that `done` of `total` bytes of the scratch file are written.
    pub(crate) fn filled(&mut self, done: u64, total: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(total);
            bar.set_message(format!("{} of {} MiB", done >> 20, total >> 20));
            bar.set_position(done);
        } else if self.line_is_due() {
            let line = format!("{}: {} of {} MiB", self.name, done >> 20, total >> 20);
            output::note(line);
        }
    }

    /// The run file, once there is one.
    pub(crate) fn kept_in(&self) -> Option<&Path> {
        self.run_file.as_deref()
    }

    fn line_is_due(&mut self) -> bool {
        let due = self.last_line.elapsed() >= LINE_EVERY;
        if due {
            self.last_line = Instant::now();
        }
        due
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Observer for Display {
    fn run_file(&mut self, path: &Path) {
        self.run_file = Some(path.to_owned());
    }

    fn trial_done(&mut self, progress: Progress) {
        let left = progress.left.map_or(String::new(), |left| {
            let of_suite = |end: Instant| end.saturating_duration_since(Instant::now());
            let left = self.suite_ends.map_or(left, |end| left.max(of_suite(end)));
            let word = match progress.left_is_bound {
                true => "at most",
                false => "about",
            };
            format!(", {word} {} left", rough_duration(left))
        });
        let trials = match progress.trials_done {
            1 => format!("1 trial{left}"),
            done => format!("{done} trials{left}"),
        };
        if let Some(bar) = &self.bar {
            bar.set_length(STEPS);
            bar.set_message(trials);
            bar.set_position((progress.share * STEPS as f64) as u64);
        } else if self.line_is_due() {
            // 100 % are reached by the last trial alone.
            let percent = (progress.share * 100.0) as u64;
            output::note(format_args!("{}: {percent} %, {trials}", self.name));
        }
    }

    fn note(&mut self, message: &str) {
        if self.told.iter().any(|told| told == message) {
            return;
        }
        self.told.push(message.to_owned());
        let line = format!("note: {}", escape_control(message));
        match &self.bar {
            Some(bar) => bar.suspend(|| output::note(line)),
            None => output::note(line),
        }
    }
}
