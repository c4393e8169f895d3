//! The figures of one experiment.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use super::Input;
use crate::block::Drawing;
use iolab_analysis::analysis::Response;
use iolab_figure::{Figure, FigureKind, FigureRun, Options, default_kind, draw};

/// Width and text size on a page, points: 640 pixels, and 12 pixels for labels.
const PAGE: (f64, f64) = (480.0, 9.0);

/// Width and text size on paper, points: about five inches.
const PAPER: (f64, f64) = (370.0, 8.0);

/// Place of a figure, which decides its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Medium {
    Page,
    Paper,
}

impl Medium {
    /// Options for figures, whose ids on a page begin with `id`.
    pub(super) fn options(self, id: &str) -> Options {
        let (width_pt, text_pt) = match self {
            Self::Page => PAGE,
            Self::Paper => PAPER,
        };
        Options {
            id: id.to_owned(),
            width_pt,
            text_pt,
            ..Options::default()
        }
    }
}

/// The figure of a run, or of one experiment on several targets; `None` if the data makes none.
pub(super) fn of_runs(id: &str, inputs: &[&Input], medium: Medium) -> Option<Drawing> {
    let runs = runs(inputs);
    let kind = other_kind(&runs);
    let options = Options {
        kind,
        ..medium.options(id)
    };
    draw(&runs, &options).ok().map(Drawing::from)
}

/// The kind of figure of these runs if it is not the default. Ratios of runs with several factors would lack the
/// curves that they compare.
fn other_kind(runs: &[FigureRun<'_>]) -> Option<FigureKind> {
    let mut factors = runs.iter().map(|run| run.run.analysis().factors.len());
    let has_curves = runs.len() > 1 && factors.any(|count| count > 1);
    (has_curves && default_kind(runs) == FigureKind::Ratio).then_some(FigureKind::Response)
}

/// Further figures of runs, each with a name of its own. These are the latency inside the trials (the tail, or
/// the median if intervals have too few requests), rounds until they are steady, and the stages of traced
/// requests. The stages are of `own` alone, since each run has a chapter. `options` gives the options of a
/// figure by its name.
pub(super) fn further(
    inputs: &[&Input],
    own: &Input,
    options: impl Fn(&str) -> Options,
) -> Vec<(&'static str, Figure)> {
    let (own, runs) = (runs(&[own]), runs(inputs));
    let drawn = |runs: &[FigureRun<'_>], name: &'static str, kind, quantity| {
        let options = Options {
            kind: Some(kind),
            y: quantity,
            ..options(name)
        };
        draw(runs, &options).ok().map(|figure| (name, figure))
    };
    let latency = |quantity| drawn(&runs, "latency", FigureKind::Course, Some(quantity));
    let is_course = default_kind(&runs) == FigureKind::Course;
    let inside = [Response::P99, Response::Latency];
    let inside = inside.into_iter().filter(|_| is_course).find_map(latency);
    let stages = drawn(&own, "stages", FigureKind::Stages, None);
    let is_first = default_kind(&runs) == FigureKind::Rounds;
    let rounds = (!is_first).then(|| drawn(&runs, "rounds", FigureKind::Rounds, None));
    let rounds = rounds.flatten();
    inside.into_iter().chain(rounds).chain(stages).collect()
}

/// One run under the name of its experiment, several under the names of their targets. If the target is a
/// factor, which would be named twice, several under the names of their files.
fn runs<'a>(inputs: &[&'a Input]) -> Vec<FigureRun<'a>> {
    let compares_targets = |input: &&Input| {
        let mut factors = input.run.analysis().factors.iter();
        factors.any(|factor| factor == "target")
    };
    let files: BTreeSet<&str> = inputs.iter().filter_map(|input| file(input)).collect();
    let by_file = inputs.iter().any(compares_targets) && files.len() == inputs.len();
    let named = |input: &&'a Input| {
        let analysis = input.run.analysis();
        let name = match inputs.len() {
            1 => &analysis.experiment,
            _ => file(input).filter(|_| by_file).unwrap_or(&analysis.target),
        };
        FigureRun {
            series: &input.inside.throughput,
            over_time: &input.inside.latency,
            ..FigureRun::new(name, &input.run)
        }
    };
    inputs.iter().map(named).collect()
}

/// The name of the file of a run, without its extension.
fn file(input: &Input) -> Option<&str> {
    input.path.file_stem().and_then(OsStr::to_str)
}
