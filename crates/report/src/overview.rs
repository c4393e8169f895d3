//! Several runs together: each with its interpretation, the measurement and how reliable it is, and the most
//! important findings.

pub(crate) mod main_numbers;
mod screen;

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::findings::digest::{Digest, Headline, Told};
use crate::findings::interpretation::Interpretation;
use crate::notation::clean;
use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::analysis::{Analysis, MeasuredTarget};
use iolab_analysis::claim::HEADLINES_MAX;
use iolab_analysis::runs::comparable_runs::is_same_experiment;
use iolab_analysis::trial_values::distinct;
use iolab_figure::{FigureRun, default_kind, preview_image};
use iolab_record::{RunRecord, SampleLatencyOverTime, SampleSeries, TargetKind};
use iolab_workload::Result;
use iolab_workload::units::{counted, format_bytes, rough_duration};

/// Most experiments, or targets, named in a statement; for more it gives their number.
const NAMED_MAX: usize = 3;

/// Runs, with the first part of a page about them.
#[derive(Debug)]
pub struct Overview<'a> {
    pub(crate) inputs: Vec<&'a Input>,
    pub(crate) digest: Digest<'a>,
    /// The targets of the picture; the index of a target decides its colour.
    pub(crate) targets: Vec<String>,
}

impl<'a> Overview<'a> {
    /// Overview of runs, in the order of time.
    pub fn new(inputs: impl IntoIterator<Item = &'a Input>) -> Self {
        let inputs: Vec<&Input> = inputs.into_iter().collect();
        let told = inputs.iter().map(|input| Told {
            run: &input.run,
            peers: &input.interpretation.peers,
        });
        let digest = Digest::of(&told.collect::<Vec<_>>());
        let targets = digest.glance.rows.iter().map(|row| row.target.to_owned());
        let targets = distinct(targets);
        Self {
            inputs,
            digest,
            targets,
        }
    }

    /// The results of a few runs, in lines to copy: one per target.
    pub(crate) fn lines(&self) -> Vec<String> {
        let few = self
            .inputs
            .iter()
            .filter(|_| self.inputs.len() <= HEADLINES_MAX);
        let lines = few.flat_map(|input| &input.interpretation.conclusions);
        lines.map(|line| clean(&line.text)).collect()
    }

    /// Sentence on the measurement: experiments, cells, trials, time and targets.
    pub(crate) fn subject(&self) -> String {
        let records = || self.inputs.iter().map(|input| input.run.record());
        let measured = || {
            records()
                .flat_map(|r| &r.samples)
                .filter(|s| s.is_measured())
        };
        let spent = |of_models: bool| {
            let is_model = |record: &&RunRecord| record.run.target_kind == TargetKind::Model;
            let mut own = records().filter(|record| is_model(record) == of_models);
            let first = own.next()?;
            let samples = std::iter::once(first).chain(own).flat_map(|r| &r.samples);
            // Saturates, since a damaged file may have any numbers.
            let spent = samples.map(|s| s.wall_ns).fold(0, u64::saturating_add);
            let virtually = if of_models { " of virtual time" } else { "" };
            let time = rough_duration(std::time::Duration::from_nanos(spent));
            Some(format!("{time}{virtually}"))
        };
        let spent: Vec<String> = [false, true].into_iter().filter_map(spent).collect();
        let targets = records().flat_map(RunRecord::target_names);
        let targets = distinct(targets.map(|name| clean(&name)));
        let is_computed = records().all(|record| record.run.target_kind == TargetKind::Model);
        format!(
            "{}: {}, {}, {} in {}, on {}.",
            if is_computed { "Computed" } else { "Measured" },
            experiments(self.inputs.iter().copied()),
            counted(self.digest.cells, "cell"),
            counted(measured().count(), "trial"),
            spent.join(" and "),
            targets.join(", "),
        )
    }

    /// The main numbers as a PNG picture of 1200 by 630 pixels; `None` for none.
    ///
    /// # Errors
    /// Of kind [`Failed`](iolab_workload::Kind::Failed) when it cannot be drawn.
    pub fn picture(&self) -> Result<Option<Vec<u8>>> {
        let parts = self.picture_parts();
        let drawn = parts.map(|(numbers, words)| preview_image::png(&numbers, &words));
        drawn.transpose()
    }

    /// The runs of a headline, if there are several and its text does not name them.
    pub(crate) fn about(&self, headline: &Headline) -> String {
        if self.inputs.len() < 2 || headline.names_runs {
            return String::new();
        }
        let names_target = self.needs_target(headline);
        self.names_of(headline, "experiments", |run| match names_target {
            true => format!("{} on {}", run.experiment, run.target),
            false => run.experiment.clone(),
        })
    }

    /// The targets of a headline, if the runs have several and its text does not name them.
    pub(crate) fn place(&self, headline: &Headline) -> String {
        match self.needs_target(headline) {
            true => self.names_of(headline, "targets", |run| run.target.clone()),
            false => String::new(),
        }
    }

    /// Whether a headline needs the name of its target.
    fn needs_target(&self, headline: &Headline) -> bool {
        let targets = self.inputs.iter().map(|input| &input.run.analysis().target);
        targets.collect::<BTreeSet<_>>().len() > 1 && !headline.names_targets
    }

    /// `NAME, NAME: ` of the runs of a headline, each once; `5 KIND: ` for many.
    fn names_of(
        &self,
        headline: &Headline,
        kind: &str,
        name: impl Fn(&Analysis) -> String,
    ) -> String {
        let named = headline.runs.iter().filter_map(|run| self.inputs.get(*run));
        let names = distinct(named.map(|input| name(input.run.analysis())));
        match names.len() {
            0 => String::new(),
            n if n > NAMED_MAX => format!("{n} {kind}: "),
            _ => format!("{}: ", names.join(", ")),
        }
    }
}

/// Names of runs: of their experiments, with the targets, or on the same target with the files, where several have one
/// experiment.
pub(crate) fn names(inputs: &[&Input]) -> Vec<String> {
    let name = |input: &&Input| {
        let name = &input.run.record().experiment.name;
        let stem = input.path.file_stem().unwrap_or_default();
        let target = input.run.record().target_text();
        let alike = inputs
            .iter()
            .filter(|other| other.run.record().experiment.name == *name);
        let on_target = alike
            .clone()
            .filter(|other| other.run.record().target_text() == target);
        let name = match (alike.count(), on_target.count()) {
            (1, _) => name.clone(),
            (_, 1) => format!("{name} on {target}"),
            _ => format!("{name} ({})", stem.to_string_lossy()),
        };
        clean(&name)
    };
    inputs.iter().map(name).collect()
}

/// Description of a target: `Samsung SSD 990 (nvme0n1), 2.00 TB, ext4`.
pub(crate) fn description(target: &MeasuredTarget) -> String {
    if target.kind == TargetKind::Model {
        return "simulated; no device was measured".to_owned();
    }
    let device = target.device.as_deref().map(str::to_owned);
    let disk = match (target.model.as_deref().map(str::trim), device) {
        (Some(model), Some(device)) => Some(format!("{model} ({device})")),
        (None, Some(device)) => Some(device),
        (model, None) => model.map(str::to_owned),
    };
    let size = target.bytes.map(|bytes| format_bytes(bytes as f64));
    let parts = [disk, size, target.file_system.clone()];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match parts.is_empty() {
        true => kind(target.kind).to_owned(),
        false => parts.join(", "),
    }
}

fn kind(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::Scratch => "scratch file",
        TargetKind::File => "file",
        TargetKind::BlockDevice => "block device",
        TargetKind::CharDevice => "character device",
        TargetKind::Imported => "imported results",
        TargetKind::Model => "model",
        TargetKind::Commands => "commands",
    }
}

/// A run file that was read.
#[derive(Debug, Clone)]
pub struct Input {
    /// Path of the run file.
    pub path: PathBuf,
    /// Analysed content of the run file.
    pub run: AnalysedRun,
    /// Interpretation of the run.
    pub interpretation: Interpretation,
    /// Throughput of its trials over time; empty unless [`Input::shows_inside`] holds and it was read.
    pub series: Vec<SampleSeries>,
    /// Latencies of its trials over time, likewise.
    pub over_time: Vec<SampleLatencyOverTime>,
}

impl Input {
    /// A run read from `path`, with its interpretation.
    pub fn new(path: PathBuf, run: AnalysedRun) -> Self {
        Self {
            path,
            interpretation: Interpretation::of(&run),
            run,
            series: Vec::new(),
            over_time: Vec::new(),
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
