//! The figure of one experiment: one for paper, and the variants for a page.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use iolab_analysis::analysis::Response;
use iolab_figure::{Center, Figure, FigureKind, FigureRun, Options, default_kind, draw};
use serde::Serialize;

use super::{Input, clean};
use crate::notation::on_page;

/// Width and text size on a page, points: 640 pixels, and 12 pixels for labels.
const PAGE: (f64, f64) = (480.0, 9.0);
/// Width and text size of a figure that a page also has for narrow screens, points.
const NARROW: (f64, f64) = (260.0, 8.0);
/// Width and text size on paper, points: about five inches.
const PAPER: (f64, f64) = (370.0, 8.0);

/// Metrics that a page switches between, with their names on it.
pub(super) const METRICS: [(Response, &str); 4] = [
    (Response::Throughput, "throughput"),
    (Response::Iops, "IOPS"),
    (Response::Latency, "p50"),
    (Response::P99, "p99"),
];

/// A figure as it is shown first.
#[derive(Debug, Clone)]
pub(super) struct Picture {
    /// A description of the figure.
    pub(super) words: String,
    /// The metric that it shows.
    pub(super) metric: Response,
    pub(super) svg: String,
    /// The same for a narrow screen; `None` of figures that scroll there.
    pub(super) narrow: Option<String>,
}

/// Every way to draw the figures of a page, each picture once.
#[derive(Debug, Default, Serialize)]
pub(super) struct Variants {
    /// For the id of each figure: the place of its picture for `METRIC AXIS CENTER`, where AXIS is `auto`, `log` or `linear`.
    figures: BTreeMap<String, BTreeMap<String, usize>>,
    pictures: Vec<Drawn>,
}

/// One way to draw a figure.
#[derive(Debug, Serialize)]
struct Drawn {
    svg: String,
    /// What it shows, for the line below it: another metric has other ends.
    caption: String,
}

impl Variants {
    /// Draws the figure of a run, or of the same experiment on several targets, with ids that begin with `id`, in all ways that its data allows; gives it as it is shown first. `None`
    /// where the data makes no figure.
    pub(super) fn add(&mut self, id: &str, inputs: &[&Input]) -> Option<Picture> {
        let runs = runs(inputs);
        let other = other_kind(&runs);
        let kind = other.unwrap_or_else(|| default_kind(&runs));
        let drawn = |metric: Option<Response>, log_y: Option<bool>, center: Center| {
            let options = Options {
                kind: other,
                y: metric,
                log_y,
                center,
                ..page_options(id)
            };
            draw(&runs, &options).ok()
        };
        let first = drawn(None, None, Center::Median)?;
        let asked = match kind {
            FigureKind::Course => Response::Throughput,
            _ => inputs.first()?.run.analysis().response,
        };
        let has_others = matches!(kind, FigureKind::Response | FigureKind::Course);
        let others = METRICS.iter().map(|(metric, _)| *metric);
        let others = others.filter(|metric| has_others && *metric != asked);
        let metrics = std::iter::once((asked, None)).chain(others.map(|m| (m, Some(m))));
        let centers = match kind {
            FigureKind::Response => &[(Center::Median, "median"), (Center::Mean, "mean")][..],
            _ => &[(Center::Median, "median")],
        };
        let mut places = BTreeMap::new();
        for (metric, given) in metrics {
            for (center, center_name) in centers {
                let mut known: Vec<(Figure, usize)> = Vec::new();
                for (axis, log_y) in [("auto", None), ("log", Some(true)), ("linear", Some(false))]
                {
                    let Some(figure) = drawn(given, log_y, *center) else {
                        continue;
                    };
                    let same = known.iter().find(|(other, _)| other.same_picture(&figure));
                    let place = match same {
                        Some((_, place)) => *place,
                        None => {
                            self.pictures.push(Drawn {
                                svg: figure.svg(),
                                caption: on_page(&clean(figure.description())),
                            });
                            known.push((figure, self.pictures.len() - 1));
                            self.pictures.len() - 1
                        }
                    };
                    places.insert(format!("{} {axis} {center_name}", metric.name()), place);
                }
            }
        }
        self.figures.insert(id.to_owned(), places);
        let (width_pt, text_pt) = NARROW;
        let narrow = Options {
            width_pt,
            text_pt,
            ..page_options(&format!("{id}-narrow"))
        };
        let is_why = kind == FigureKind::Why;
        let narrow = is_why.then(|| draw(&runs, &narrow).ok()).flatten();
        Some(Picture {
            words: clean(first.description()),
            metric: asked,
            svg: first.svg(),
            narrow: narrow.map(|figure| figure.svg()),
        })
    }

    /// All of it as compressed JSON in letters that a page can hold; empty where there is nothing to switch between.
    ///
    /// # Errors
    /// When it cannot be written to memory.
    pub(super) fn packed(&self) -> std::io::Result<String> {
        if self.pictures.len() == self.figures.len() {
            return Ok(String::new());
        }
        let mut packer = GzEncoder::new(Vec::new(), Compression::best());
        packer.write_all(serde_json::json!(self).to_string().as_bytes())?;
        Ok(STANDARD.encode(packer.finish()?))
    }
}

/// The figure for paper, of one run, or of the same experiment on several targets; `None` where the data makes none.
pub(super) fn on_paper(inputs: &[&Input]) -> Option<Figure> {
    let runs = runs(inputs);
    let options = Options {
        kind: other_kind(&runs),
        ..paper_options()
    };
    draw(&runs, &options).ok()
}

/// The kind of figure of these runs where it is not the default. Ratios of runs with several factors would stand without the curves that
/// they are of.
fn other_kind(runs: &[FigureRun<'_>]) -> Option<FigureKind> {
    let mut factors = runs.iter().map(|run| run.run.analysis().factors.len());
    let has_curves = runs.len() > 1 && factors.any(|count| count > 1);
    (has_curves && default_kind(runs) == FigureKind::Ratio).then_some(FigureKind::Response)
}

/// What runs have to show beside their figure, each under a name of its own: the latency inside the trials beside their throughput (the
/// tail, else the median where intervals have too few requests for that), rounds until they are steady, and the stages of traced requests,
/// of `own` alone: each run has a chapter. `options` are those of the figure of a name.
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

/// One run under the name of its experiment, several under those of their targets: or of their files, where the target is a factor too and would be
/// named twice.
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
