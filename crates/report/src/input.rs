//! A run file with its interpretation.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::findings::interpretation::Interpretation;
use iolab_analysis::analysed_run::AnalysedRun;
use iolab_figure::{FigureRun, default_kind};
use iolab_record::{SampleLatencyOverTime, SampleSeries};
use iolab_workload::quantity::counted;

/// A run file that was read.
#[derive(Debug, Clone)]
pub struct Input {
    /// Where it lies.
    pub path: PathBuf,
    /// Its analysed content.
    pub run: AnalysedRun,
    /// Its interpretation.
    pub interpretation: Interpretation,
    /// What its trials did over their time; empty unless [`Input::shows_inside`] holds and it was read.
    pub inside: InsideTrials,
}

/// What trials did over their time.
#[derive(Debug, Clone, Default)]
pub struct InsideTrials {
    /// Their throughput.
    pub throughput: Vec<SampleSeries>,
    /// Their latencies.
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

    /// Whether the curves of both belong on the same axes: runs of one experiment, of which none is a run of `iolab why`.
    pub(crate) fn asks_the_same(&self, other: &Self) -> bool {
        let (own, other) = (self.run.analysis(), other.run.analysis());
        own.inquiry.is_none()
            && other.inquiry.is_none()
            && own.experiment == other.experiment
            && own.response == other.response
            && own.response_group == other.response_group
    }

    /// Whether its figure shows what its trials did over their time.
    pub fn shows_inside(&self) -> bool {
        default_kind(&[FigureRun::new("", &self.run)]).needs_series()
    }
}

/// `2 experiments`, `2 experiments, 3 runs`.
pub(crate) fn experiments<'a>(inputs: impl IntoIterator<Item = &'a Input>) -> String {
    let names: Vec<&str> = inputs
        .into_iter()
        .map(|input| input.run.analysis().experiment.as_str())
        .collect();
    let distinct: BTreeSet<&str> = names.iter().copied().collect();
    let text = counted(distinct.len(), "experiment");
    match names.len() == distinct.len() {
        true => text,
        false => format!("{text}, {}", counted(names.len(), "run")),
    }
}
