//! The figures of one experiment, in its section and small at the top of a page.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use super::{Input, clean};
use crate::block::{Contents, Drawing, SmallFigure, TargetKey};
use crate::overview::Overview;
use iolab_analysis::analysis::Response;
use iolab_analysis::sparkline::{Sparkline, SparklineCurve};
use iolab_figure::{Figure, FigureKind, FigureRun, Options, default_kind, draw, sparkline};
use iolab_workload::units::counted;

/// Width and text size on a page, points: 640 pixels, and 12 pixels for labels.
const PAGE: (f64, f64) = (480.0, 9.0);

/// Width and text size of a figure that a page also has for narrow screens, points.
const NARROW: (f64, f64) = (260.0, 8.0);

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
    let drawn = |options| draw(&runs, &Options { kind, ..options }).ok();
    let figure = drawn(medium.options(id))?;
    let is_why = default_kind(&runs) == FigureKind::Why;
    let (width_pt, text_pt) = NARROW;
    let narrow = is_why.then(|| {
        drawn(Options {
            width_pt,
            text_pt,
            ..medium.options(&format!("{id}-narrow"))
        })
    });
    let narrow = narrow.flatten().map(Box::new);
    Some(Drawing::Figure(Box::new(figure), narrow))
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

/// Most targets whose best values are printed next to a figure.
const BEST_MAX: usize = 3;

/// Longest name of a level below a figure, characters.
const LEVEL_MAX: usize = 12;

/// The small figures of an overview; `place` gives the name and the id of the part about a run.
pub(super) fn contents(
    overview: &Overview<'_>,
    place: impl Fn(usize) -> Option<(String, String)>,
) -> Contents {
    let targets: Vec<&str> = overview.targets.iter().map(String::as_str).collect();
    let all = &overview.overlaid_outlines;
    let outlines: Vec<&Sparkline> = all.iter().map(|(.., outline)| outline).collect();
    let figures = all.iter().filter_map(|(number, name, outline)| {
        let (of_part, id) = place(*number)?;
        let alike = all.iter().filter(|(_, other, _)| other == name);
        let name = if alike.count() == 1 { name } else { &of_part };
        figure(&id, name, outline, &targets)
    });
    Contents {
        figures: figures.collect(),
        keys: keys(&targets, &outlines),
    }
}

/// The keys of the targets that the small figures show; empty for a page with a single target.
fn keys(targets: &[&str], shown: &[&Sparkline]) -> Vec<TargetKey> {
    let is_shown = |target: &str| shown.iter().any(|one| one.targets().contains(&target));
    let several = targets.iter().enumerate();
    let several = several.filter(|(_, target)| targets.len() > 1 && is_shown(target));
    let key = |(place, target): (usize, &&str)| TargetKey {
        colour: sparkline::colour_property(place),
        marker: sparkline::marker_letter(place),
        name: clean(target),
    };
    several.map(key).collect()
}

/// The figure of a sparkline, on a page with these targets; `None` without a value.
fn figure(id: &str, name: &str, outline: &Sparkline, targets: &[&str]) -> Option<SmallFigure> {
    let best_of = |curve: &SparklineCurve| {
        let values = curve.points.iter().map(|(_, point)| point.value);
        let worth = |value: &f64| outline.response.worth(*value);
        let best = values.max_by(|a, b| worth(a).total_cmp(&worth(b)))?;
        Some(outline.response.format(best))
    };
    let best = best_of(outline.best()?)?;
    let name = clean(name);
    let factor = clean(&outline.factor);
    let words = format!("{} along {factor}, best {best}", outline.response);
    let of_each = targets.iter().enumerate().filter_map(|(place, target)| {
        let colour = sparkline::colour_property(place);
        Some((Some(colour), best_of(outline.best_of_target(target)?)?))
    });
    let best = match targets.len() {
        2..=BEST_MAX => of_each.collect(),
        _ => vec![(None, best)],
    };
    let (first, last) = (outline.levels.first()?, outline.levels.last()?);
    let is_long = [first, last]
        .iter()
        .any(|level| level.chars().count() > LEVEL_MAX);
    let (first, factor, last) = match is_long {
        true => {
            let levels = counted(outline.levels.len(), "level");
            (String::new(), format!("{factor}, {levels}"), String::new())
        }
        false => (clean(first), factor, clean(last)),
    };
    Some(SmallFigure {
        id: id.to_owned(),
        svg: sparkline::svg(outline, targets, &format!("overview-{id}"), &name, &words),
        name,
        best,
        first,
        factor,
        last,
    })
}
