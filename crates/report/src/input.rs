//! A run file with its interpretation.

use std::path::PathBuf;

use crate::findings::interpretation::Interpretation;
use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::runs::comparable_runs::is_same_experiment;
use iolab_figure::{FigureRun, default_kind};
use iolab_record::{SampleLatencyOverTime, SampleSeries};
use iolab_workload::units::counted;

/// A run file that was read.
#[derive(Debug, Clone)]
pub struct Input {
    /// Path of the run file.
    pub path: PathBuf,
    /// Analysed content of the run file.
    pub run: AnalysedRun,
    /// Interpretation of the run.
    pub interpretation: Interpretation,
    /// Series within its trials; empty unless [`Input::shows_inside`] holds and they were read.
    pub inside: InsideTrials,
}

/// Throughput and latencies within trials.
#[derive(Debug, Clone, Default)]
pub struct InsideTrials {
    /// Throughput of the trials over time.
    pub throughput: Vec<SampleSeries>,
    /// Latencies of the trials over time.
    pub latency: Vec<SampleLatencyOverTime>,
}

impl Input {
    /// A run read from `path`, with its interpretation.
    pub fn new(path: PathBuf, run: AnalysedRun) -> Self {
        Self {
            path,
            interpretation: Interpretation::of(&run),
            run,
            inside: InsideTrials::default(),
        }
    }

    /// Whether the curves of both belong on common axes: runs of one experiment on different targets. Excludes
    /// runs of `iolab why`, and one run given twice.
    pub(crate) fn asks_the_same(&self, other: &Self) -> bool {
        let (a, b) = (self.run.analysis(), other.run.analysis());
        let is_itself = self.run.record().id() == other.run.record().id();
        let differ = (&a.target, &a.storage) != (&b.target, &b.storage);
        a.inquiry.is_none()
            && b.inquiry.is_none()
            && (is_itself || differ && is_same_experiment(&self.run, &other.run))
    }

    /// Whether its figure shows the course within its trials.
    pub fn shows_inside(&self) -> bool {
        default_kind(&[FigureRun::new("", &self.run)]).needs_series()
    }
}

/// `2 experiments`, `2 experiments, 3 runs`.
pub(crate) fn experiments<'a>(inputs: impl IntoIterator<Item = &'a Input>) -> String {
    let mut distinct: Vec<&Input> = Vec::new();
    let mut runs = 0;
    for input in inputs {
        runs += 1;
        let is_known = |known: &&Input| is_same_experiment(&known.run, &input.run);
        if !distinct.iter().any(is_known) {
            distinct.push(input);
        }
    }
    let text = counted(distinct.len(), "experiment");
    match runs == distinct.len() {
        true => text,
        false => format!("{text}, {}", counted(runs, "run")),
    }
}
