//! The figure of one experiment: for paper and for a page.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use iolab_analysis::analysis::Response;
use iolab_figure::{Figure, FigureKind, FigureRun, Options, default_kind, draw};

use super::{Input, clean};

/// Width and text size on a page, points: 640 pixels, and 12 pixels for labels.
const PAGE: (f64, f64) = (480.0, 9.0);
/// Width and text size of a figure that a page also has for narrow screens, points.
const NARROW: (f64, f64) = (260.0, 8.0);
/// Width and text size on paper, points: about five inches.
const PAPER: (f64, f64) = (370.0, 8.0);

/// The figure of an experiment on a page.
#[derive(Debug, Clone)]
pub(super) struct Picture {
    /// A description of the figure.
    pub(super) words: String,
    pub(super) svg: String,
    /// Version for a narrow screen; `None` for figures that scroll there.
    pub(super) narrow: Option<String>,
}

/// The figure for a page of a run, or of one experiment on several targets, with ids that begin with `id`.
/// `None` if the data makes none.
pub(super) fn on_page(id: &str, inputs: &[&Input]) -> Option<Picture> {
    let runs = runs(inputs);
    let other = other_kind(&runs);
    let kind = other.unwrap_or_else(|| default_kind(&runs));
    let drawn = |options| {
        draw(
            &runs,
            &Options {
                kind: other,
                ..options
            },
        )
        .ok()
    };
    let figure = drawn(page_options(id))?;
    let (width_pt, text_pt) = NARROW;
    let narrow = Options {
        width_pt,
        text_pt,
        ..page_options(&format!("{id}-narrow"))
    };
    let is_why = kind == FigureKind::Why;
    let narrow = is_why.then(|| drawn(narrow)).flatten();
    Some(Picture {
        words: clean(figure.description()),
        svg: figure.svg(),
        narrow: narrow.map(|figure| figure.svg()),
    })
}

/// The figure for paper, of a run, or of one experiment on several targets; `None` if the data makes none.
pub(super) fn on_paper(inputs: &[&Input]) -> Option<Figure> {
    let runs = runs(inputs);
    let options = Options {
        kind: other_kind(&runs),
        ..paper_options()
    };
    draw(&runs, &options).ok()
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

/// Options for figures on paper.
pub(super) fn paper_options() -> Options {
    let (width_pt, text_pt) = PAPER;
    Options {
        width_pt,
        text_pt,
        ..Options::default()
    }
}

/// Options for figures on a page, whose ids begin with `id`.
pub(super) fn page_options(id: &str) -> Options {
    let (width_pt, text_pt) = PAGE;
    Options {
        id: id.to_owned(),
        width_pt,
        text_pt,
        ..Options::default()
    }
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
            bends: Some(&input.interpretation.bends),
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
