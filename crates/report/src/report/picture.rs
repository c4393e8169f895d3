//! The figure of one experiment: once for paper, and in the variants that a page switches between.

use super::{Input, clean};
use iolab_figure::{Center, Figure, FigureKind, FigureRun, Options, default_kind, draw};

/// Width and size of text on a page, points: 640 pixels, and 12 for the labels.
const PAGE: (f64, f64) = (480.0, 9.0);
/// The same on paper: about five inches.
const PAPER: (f64, f64) = (370.0, 8.0);

/// A figure in its variants; one of them is shown first.
#[derive(Debug, Clone)]
pub(super) struct Picture {
    /// What it shows, in words.
    pub(super) words: String,
    pub(super) variants: Vec<Variant>,
}

/// One way to draw the same data.
#[derive(Debug, Clone)]
pub(super) struct Variant {
    /// `log` or `linear`: the axis of the response. Empty where there is no choice, as below.
    pub(super) scale: &'static str,
    /// `median` or `mean`.
    pub(super) center: &'static str,
    pub(super) shown: bool,
    pub(super) svg: String,
}

/// The figure for paper, of one run, or of the same experiment on several targets; `None` where the data makes none.
pub(super) fn on_paper(inputs: &[&Input]) -> Option<Figure> {
    draw(&runs(inputs), &paper_options()).ok()
}

/// How figures are drawn for paper.
pub(super) fn paper_options() -> Options {
    let (width_pt, text_pt) = PAPER;
    Options {
        width_pt,
        text_pt,
        ..Options::default()
    }
}

/// How figures are drawn for a page, with ids that begin with `id`.
pub(super) fn page_options(id: &str) -> Options {
    let (width_pt, text_pt) = PAGE;
    Options {
        id: id.to_owned(),
        width_pt,
        text_pt,
        ..Options::default()
    }
}

/// The figure for a page, with ids that begin with `id`, of one run, or of the same experiment on several targets; `None` where the
/// data makes none.
pub(super) fn on_page(id: &str, inputs: &[&Input]) -> Option<Picture> {
    let runs = runs(inputs);
    let variant = |scale: &'static str, center: &'static str| {
        let options = Options {
            log_y: (!scale.is_empty()).then_some(scale == "log"),
            center: match center {
                "mean" => Center::Mean,
                _ => Center::Median,
            },
            ..page_options(&format!("{id}-{scale}{center}"))
        };
        let figure = draw(&runs, &options).ok()?;
        let variant = Variant {
            scale,
            center,
            shown: false,
            svg: figure.svg(),
        };
        Some((figure, variant))
    };
    let (first, mut only) = variant("", "")?;
    let mut picture = Picture {
        words: clean(first.description()),
        variants: Vec::new(),
    };
    if default_kind(&runs) == FigureKind::Response {
        for (scale, center) in [
            ("log", "median"),
            ("linear", "median"),
            ("log", "mean"),
            ("linear", "mean"),
        ] {
            if let Some((figure, mut variant)) = variant(scale, center) {
                variant.shown = figure.same_picture(&first);
                picture.variants.push(variant);
            }
        }
    }
    // Where none is the one that was chosen for the data, there is nothing to switch between.
    if picture.variants.iter().filter(|v| v.shown).count() != 1 {
        only.shown = true;
        picture.variants = vec![only];
    }
    Some(picture)
}

/// One run under the name of its experiment, several under those of their targets.
fn runs<'a>(inputs: &[&'a Input]) -> Vec<FigureRun<'a>> {
    let named = |input: &&'a Input| {
        let analysis = input.run.analysis();
        let name = match inputs.len() {
            1 => &analysis.experiment,
            _ => &analysis.target,
        };
        FigureRun {
            bends: Some(&input.interpretation.bends),
            ..FigureRun::new(name, &input.run)
        }
    };
    inputs.iter().map(named).collect()
}
